"""Processes die while they make a fold of several steps, each of which costs money.

Whatever happens: one fold or none, a log that is sound, and no recorded step paid for again.
"""

import asyncio
import signal
from collections import Counter
from random import Random

import pytest
from amounts import set_amount
from folders import OPENING, SESSION
from inspection import check, entries_of
from scenarios import drafts, message, open_store
from steppers import AT_ONCE, CHUNKS, FAILING, IN_TURN, JOB, NAMES, paid

from refold.engine.local import MAX_ATTEMPTS
from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStarted, FoldStepped
from refold.testing.crash import FOLD_POINTS

CHAINS = set_amount("REFOLD_STEP_KILLS", few=4, quick=6, ci=6, nightly=40, thorough=100)
COMMITS = ("append.begun", "commit.written", "commit.done")
APPENDS = 2 + len(NAMES)
CASES = [
    ("fold.locked", 0),
    ("fold.started", 0),
    *(("fold.stepping", after) for after in range(len(NAMES))),
    *(("fold.stepped", after) for after in range(len(NAMES))),
    ("fold.made", 0),
    ("fold.completed", 0),
    *((point, after) for point in COMMITS for after in range(APPENDS)),
]
AFTERWARDS = ("fold.resumed", "fold.stepping", "fold.stepped", "commit.written", "fold.failed")
"""Where a process dies that goes on with a dead fold."""


def test_every_point_has_a_case():
    assert {point for point, _ in CASES} | {*AFTERWARDS} >= {*FOLD_POINTS}


@pytest.fixture
async def path(tmp_path):
    return await _opened(tmp_path / "refold.db")


async def _opened(path):
    values = (OPENING, *(message(f"early {at}") for at in range(6)))
    async with open_store(path) as store:
        await store.log().append(SESSION, drafts("opening", *values), expected=0)
    return path


class Books:
    """What was recorded in the log and what was paid, looked at after each death."""

    def __init__(self, path):
        self.path = path
        self._recorded: set[str] = set()
        self._seen = 0

    async def audit(self):
        """Nothing that was recorded when we looked last has been paid for since."""
        bill = paid(self.path)
        again = self._recorded.intersection(bill[self._seen :])
        assert not again, f"paid for again: {again}"
        values = await self._values()
        names = [value.name for value in values if isinstance(value, FoldStepped)]
        assert len(names) == len(set(names)), "no step is recorded twice"
        assert {*names} <= {*bill}
        assert {*names} >= self._recorded, "what was recorded stays"
        self._recorded, self._seen = {*names}, len(bill)
        return values

    async def _values(self):
        return [CODEC.decode(one) for one in (await entries_of(self.path))[SESSION]]


@pytest.mark.parametrize(("point", "after"), CASES)
async def test_a_crash_pays_for_nothing_twice(nursery, path, point, after):
    books = Books(path)
    _crash(nursery, path, point, after)
    await books.audit()
    await _finish(nursery, books)
    assert len(paid(path)) <= len(NAMES) + 1, "only what was being done is done again"


@pytest.mark.parametrize("point", AFTERWARDS)
async def test_a_second_crash_pays_for_nothing_twice(nursery, path, point):
    books = Books(path)
    way = FAILING if point == "fold.failed" else IN_TURN
    for crash in (("fold.stepped", 1), (point, 0)):
        _crash(nursery, path, *crash, way)
        await books.audit()
    await _finish(nursery, books, completes=way == IN_TURN)


async def test_crashes_while_steps_are_done_at_once_pay_for_nothing_twice(nursery, path):
    books = Books(path)
    for after in (1, 0):
        _crash(nursery, path, "fold.stepped", after, AT_ONCE)
        await books.audit()
    await _finish(nursery, books)


async def test_no_kill_pays_for_anything_twice(nursery, tmp_path):
    random = Random(CHAINS)  # noqa: S311 - which is killed when; the rest is up to the machine
    figures = Counter()
    for at in range(CHAINS):
        path = await _opened(tmp_path / f"{at}.db")
        books, kills = Books(path), random.randint(1, MAX_ATTEMPTS + 1)
        for _ in range(kills):
            child = _start(nursery, path, way=random.choice((IN_TURN, AT_ONCE)))
            await _kill(child, random)
            figures["killed"] += child.ended == -signal.SIGKILL
            await books.audit()
        values = await _finish(nursery, books, completes=None)
        figures.update(type(value).__name__ for value in values)
        figures["paid"] += len(paid(path))
    print(f"\n{CHAINS} folds, {dict(figures)}")  # noqa: T201
    assert figures["killed"] > CHAINS / 2
    assert figures["FoldCompleted"] > CHAINS / 4


async def _kill(child, random):
    """Kill it a moment after it has paid for some steps, unless it is done before."""
    for _ in range(random.randint(0, 3)):
        try:
            child.next()
        except EOFError:
            return
    await asyncio.sleep(random.random() / 100)
    child.kill()
    child.all()


def _start(nursery, path, crash=None, way=IN_TURN):
    return nursery.start("fold_in_steps", path=path, crash=crash, way=way)


def _crash(nursery, path, point, after, way=IN_TURN):
    child = _start(nursery, path, (point, after), way)
    child.all()
    assert child.wait() == -signal.SIGKILL, "the point was not reached"


async def _finish(nursery, books, *, completes: bool | None = True):
    """Let a process bring it to its end: one fold or none. All that the log holds then."""
    child = _start(nursery, books.path)
    reports = child.all()
    assert child.wait() == 0, reports[-1:]
    values = await books.audit()
    await check(books.path)
    assert [value.fold for value in values if isinstance(value, FoldStarted)] == [JOB.fold]
    (end,) = (value for value in values if isinstance(value, FoldCompleted | FoldFailed))
    if completes is not None:
        assert isinstance(end, FoldCompleted) == completes
    if isinstance(end, FoldCompleted):
        assert end.summary == [{"text": f"what {name} says"} for name in (*CHUNKS, "merged")]
        assert {*paid(books.path)} == {*NAMES}
        steps = [value.name for value in values if isinstance(value, FoldStepped)]
        assert sorted(steps) == sorted(NAMES)
    return values
