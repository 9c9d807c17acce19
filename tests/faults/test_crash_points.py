"""A process dies at every named point of the store's work; what it leaves must be whole."""

import asyncio
import re
import shutil
import signal
from pathlib import Path

import pytest
from inspection import check, contents, entries_of, files_of
from scenarios import SCENARIOS, SECRETS, open_store, play, prepare

import refold.stores
from refold.errors import InvalidInput
from refold.testing.crash import POINTS, CrashAt

STORES = Path(refold.stores.__file__).parent
APPENDING = ("append.begun", "commit.written", "commit.done")
SCRUBBING = ("scrub.merged", "scrub.vacuumed")
CASES = [
    ("opening", "migrate.written", 0),
    ("opening", "migrate.committed", 0),
    *((what, point, 0) for what in ("append", "batch", "together") for point in APPENDING),
    ("together", "append.begun", 3),
    ("upload", "upload.begun", 0),
    ("upload", "upload.begun", 2),
    ("upload", "commit.written", 0),
    *((what, "fork.written", 0) for what in ("fork", "fork_with_copies")),
    ("search", "index.written", 0),
    ("search", "index.written", 1),
    *((what, "forget.erased", 0) for what in ("forget_span", "forget_session")),
    ("expire", "expire.erased", 0),
    ("expire", "expire.erased", 1),
    *(
        (what, point, 0)
        for what in ("fork", "search", "forget_session", "forget_span", "expire")
        for point in ("write.written", "write.done")
    ),
    *((what, at, 0) for what in ("forget_span", "forget_session", "expire") for at in SCRUBBING),
]
COMMITTED = {"commit.done", "write.done", "migrate.committed", *SCRUBBING}
"""By then, what was to be done is done."""
IN_STEPS = ("search", "expire")
"""One transaction for each session."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A store with sessions, forks, artifacts, and words that are partly indexed."""
    path = tmp_path_factory.mktemp("prepared") / "refold.db"

    async def make():
        async with open_store(path) as store:
            await prepare(store.log())
        await check(path)

    asyncio.run(make())
    return path


@pytest.fixture(scope="module")
def before(prepared):
    """What is in that store: its tables, and its sessions as the log reads them."""
    return contents(prepared), asyncio.run(entries_of(prepared))


@pytest.fixture
def begin(tmp_path, prepared):
    """`begin(scenario)`: a store to play it in."""

    def begun(scenario):
        _begin(tmp_path / "refold.db", scenario, prepared)
        return tmp_path / "refold.db"

    return begun


@pytest.fixture(scope="module")
def uninterrupted(prepared, tmp_path_factory):
    """What each scenario comes to when nothing goes wrong."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    done = {name: asyncio.run(_whole(folder / name, name, prepared)) for name in SCENARIOS}
    assert done["fork_with_copies"]["copies"]
    return done


async def _whole(path, scenario, prepared):
    _begin(path, scenario, prepared)
    await play(path, scenario)
    await check(path)
    return contents(path)


def _begin(path, scenario, prepared):
    if scenario != "opening":
        shutil.copy(prepared, path)


async def _reopen(path):
    """Open and close, as the next process would."""
    async with open_store(path):
        pass


def _crash(nursery, path, scenario, point, after=0):
    child = nursery.start("crash", path=path, scenario=scenario, point=point, after=after)
    assert child.all() == [], "the point was not reached"
    assert child.wait() == -signal.SIGKILL


def test_every_point_is_listed_and_has_a_case():
    files = (file for file in STORES.rglob("*.py") if "postgres" not in file.parts)
    source = "\n".join(file.read_text() for file in files)
    reached = re.findall(r"(?<!def )(?<!\w)_?reach\(\s*(.*?)\s*\)", source)
    assert {name.strip('"') for name in reached} == set(POINTS)
    assert {point for _, point, _ in CASES} == set(POINTS)


def test_a_misspelt_point_is_refused():
    with pytest.raises(InvalidInput, match="reaches a point"):
        CrashAt("commit.writen")


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
async def test_a_crash_leaves_all_or_nothing(nursery, begin, before, uninterrupted, case):
    scenario, point, after = case
    path, (rows, acknowledged) = begin(scenario), before
    _crash(nursery, path, scenario, point, after)
    await _reopen(path)
    await check(path)
    found = contents(path)
    if point in SCRUBBING or (point in COMMITTED and scenario not in IN_STEPS):
        assert found == uninterrupted[scenario]
    elif point not in COMMITTED and scenario != "opening" and not after:
        assert found == rows
    if scenario != "opening":
        await _check_kept(path, acknowledged)

    await play(path, scenario)
    await check(path)
    assert contents(path) == uninterrupted[scenario]


async def _check_kept(path, acknowledged):
    """What was acknowledged before is there, byte for byte, unless it was to be forgotten."""
    found = await entries_of(path)
    for name in acknowledged.keys() - {"doomed", "branch", "old", "older"}:
        assert found[name][: len(acknowledged[name])] == acknowledged[name]


@pytest.mark.parametrize("scenario", ["append", "batch", "together"])
async def test_a_lost_acknowledgement_is_given_again(nursery, tmp_path, prepared, scenario):
    path, other = tmp_path / "refold.db", tmp_path / "other.db"
    _begin(path, scenario, prepared)
    _begin(other, scenario, prepared)
    _crash(nursery, path, scenario, "commit.done")
    again = await play(path, scenario)
    given = await play(other, scenario)
    assert [(one.first, one.last) for one in again] == [(one.first, one.last) for one in given]
    assert all(one.repeated for one in again)


@pytest.mark.parametrize(
    ("scenario", "point", "after"),
    [
        *(("forget_session", at, 0) for at in ("forget.erased", "write.done", *SCRUBBING)),
        *(("expire", at, 0) for at in ("expire.erased", *SCRUBBING)),
        ("expire", "write.done", 1),
    ],
)
async def test_an_interrupted_erasure_is_finished_at_the_next_open(erasing, scenario, point, after):
    path, crash = erasing
    # The same words are in sessions that the other scenario erases.
    await play(path, "expire" if scenario == "forget_session" else "forget_session")
    crash(scenario, point, after)
    assert _secrets_in(path) == set(SECRETS), "nothing was left to erase"
    await _reopen(path)
    if point not in COMMITTED:
        assert _secrets_in(path) == set(SECRETS), "a crash before the commit erases nothing"
        await play(path, scenario)
    assert not _secrets_in(path)
    await check(path)


@pytest.fixture
def erasing(nursery, tmp_path, prepared):
    path = tmp_path / "refold.db"
    shutil.copy(prepared, path)
    return path, lambda *case: _crash(nursery, path, *case)


def _secrets_in(path):
    """Which secrets are in any of the store's files, also in lower case or without their start,
    as an index that leaves out common beginnings would hold them."""
    everything = b"\n".join(files_of(path).values()).lower()
    return {secret for secret in SECRETS if secret[3:].lower().encode() in everything}
