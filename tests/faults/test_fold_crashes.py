"""Processes die while they fold, and others go on with the same session.

Whatever happens: every fold has one end, no message is under two folds, no message is lost.
"""

import asyncio
import os
import re
import signal
from collections import Counter
from pathlib import Path
from random import Random

import folders
import pytest
from amounts import seed_of, set_amount
from folders import SESSION, locks_of, maker, said
from inspection import check, entries_of
from scenarios import drafts, message, open_store

import refold.engine
from refold.engine import LocalEngine
from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStarted
from refold.log.entry import intersect
from refold.testing.crash import FOLD_POINTS

ENGINE = Path(refold.engine.__file__).parent
KILLS = set_amount("REFOLD_FOLD_KILLS", few=8, quick=16, ci=16, nightly=200, thorough=400)
COMMITS = ("append.begun", "commit.written", "commit.done")
CASES = [
    *((point, after) for point in FOLD_POINTS if point != "fold.resumed" for after in (0, 2)),
    *((point, after) for point in COMMITS for after in (0, 1, 5)),
]
BEGUN = ("fold.resumed", "fold.made", "commit.written")
"""Where a process dies that found a dead fold."""
_OPENING = drafts("opening", folders.OPENING, *(message(f"early {at}") for at in range(6)))


def test_every_point_is_listed_and_has_a_case():
    source = "\n".join(file.read_text() for file in ENGINE.rglob("*.py"))
    reached = set(re.findall(r"_reach\(\"(.*?)\"\)", source))
    assert sorted(reached) == sorted(FOLD_POINTS)
    assert {point for point, _ in CASES} | set(BEGUN) >= set(FOLD_POINTS)


@pytest.fixture
async def path(tmp_path):
    path = tmp_path / "refold.db"
    async with open_store(path) as store:
        await store.log().append(SESSION, _OPENING, expected=0)
    return path


@pytest.mark.parametrize(("point", "after"), CASES)
async def test_a_crash_leaves_no_fold_half(nursery, path, point, after):
    beside = nursery.start("fold", path=path, folder=1, number=0)
    heard = [beside.next()]
    _crash(nursery, path, point, after)
    heard += _stopped(beside, more=5)
    await _check_whole(path, heard)


@pytest.mark.parametrize("point", BEGUN)
async def test_a_crash_while_finishing_what_died_leaves_no_fold_half(nursery, path, point):
    async with open_store(path) as store:
        log = store.log()
        job = await folders.due(log)
        while job is None or folders.fails(job):
            job = await folders.due(log)
        await log.append(SESSION, drafts("dead", job.started()), expected=None)
    beside = nursery.start("append_beside", path=path, folder=1, number=0)
    heard = [beside.next()]
    _crash(nursery, path, point, 0)
    heard += _stopped(beside, more=1)
    assert await _unended(path) == [job.fold]
    await _check_whole(path, heard)


async def test_no_kill_leaves_a_fold_half(nursery, path):
    random = Random(seed_of("fold kills"))  # noqa: S311 - which is killed when; the rest is up to the machine
    children = [nursery.start("fold", path=path, folder=at, number=0) for at in range(2)]
    heard, figures, folding = [], Counter(), 0
    for _ in range(KILLS):
        at = random.randrange(2)
        reports = [children[at].next() for _ in range(random.randint(1, 4))]
        while reports[-1][0] != "began" and len(reports) < 10:
            reports.append(children[at].next())
        await asyncio.sleep(random.random() / 60)
        assert children[at].kill() == -signal.SIGKILL
        reports += children[at].all()
        children[at].reports.close()
        folding += [one[0] for one in reports if one[0] != "said"][-1:] == ["began"]
        heard += reports
        number = max((one[2] for one in heard if one[:2] == ["said", at]), default=-1) + 1
        children[at] = nursery.start("fold", path=path, folder=at, number=number)
    for child in children:
        heard += _stopped(child, more=3)

    values = await _check_whole(path, heard)
    figures = Counter(type(value).__name__ for value in values)
    print(f"\n{KILLS} kills, {folding} of them while folding, {dict(figures)}")  # noqa: T201
    assert figures["FoldCompleted"] > KILLS / 4
    assert folding > KILLS / 10


def _crash(nursery, path, point, after):
    child = nursery.start("fold_and_crash", path=path, point=point, after=after)
    assert child.all() == [], "the point was not reached"
    assert child.wait() == -signal.SIGKILL


def _stopped(child, *, more):
    """What it reports until it is told to stop, and then; it must still be able to work."""
    heard = [child.next() for _ in range(more)]
    os.kill(child.pid, signal.SIGTERM)
    heard += child.all()
    assert child.wait() == 0, heard[-1]
    return heard


async def _unended(path):
    """The folds that were started and have not ended."""
    async with open_store(path) as store:
        outline = (await store.log().visible(SESSION)).outline
        return [one.fold for one in outline.running]


async def _check_whole(path, heard):
    """After a reopening: all messages, and folds that are whole. What else is in the session."""
    assert len(await _unended(path)) <= 1
    async with open_store(path) as store:
        async with LocalEngine(store.log(), maker(path), locks=locks_of(path)) as engine:
            await engine.recover(SESSION)
        assert not (await store.log().visible(SESSION)).outline.running
    await check(path)
    entries = (await entries_of(path))[SESSION]
    values = [CODEC.decode(entry) for entry in entries]
    _check_messages(entries, heard)
    _check_folds(values)
    async with open_store(path) as store:
        standing = {one.fold for one in (await store.log().visible(SESSION)).outline.folds}
    assert standing == {value.fold for value in values if isinstance(value, FoldCompleted)}
    return values


def _check_messages(entries, heard):
    """Each message is where its writer was told, and none is there twice."""
    assert len({entry.id for entry in entries}) == len(entries)
    assert [entry.id for entry in entries[: len(_OPENING)]] == [draft.id for draft in _OPENING]
    for kind, *rest in heard:
        if kind == "said":
            folder, number, seq = rest
            (draft,) = said(folder, number)
            assert (entries[seq - 1].id, entries[seq - 1].body) == (draft.id, draft.body)


def _check_folds(values):
    started = [value.fold for value in values if isinstance(value, FoldStarted)]
    ended = [value.fold for value in values if isinstance(value, FoldCompleted | FoldFailed)]
    assert len(set(started)) == len(started)
    assert sorted(started) == sorted(ended), "each has one end"
    spans = [span for value in values if isinstance(value, FoldCompleted) for span in value.spans]
    for at, span in enumerate(spans):
        assert not intersect([span], spans[at + 1 :]), "two folds stand for the same"
    for value in values:
        if isinstance(value, FoldFailed):
            assert value.reason.split(":")[0] in {
                "ValueError",
                "cancelled",
                "interrupted",
                "interrupted too often",
            }
