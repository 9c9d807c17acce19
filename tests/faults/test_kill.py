"""Many processes write to one file, and are killed while they write. Nothing may be lost."""

import os
import selectors
import signal
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
import writers
from inspection import check, entries_of
from nursery import Child, Nursery
from scenarios import TODAY, drafts, message, open_store

from refold.errors import SessionForgotten

KILLS = int(os.environ.get("REFOLD_KILLS", "200"))
LOOK_EVERY = 20


@dataclass
class Writer:
    """A writer, through all its lives."""

    child: Child
    is_at_work: bool = False
    intended: set[tuple[int, int]] = field(default_factory=set)
    acknowledged: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def intend(self, which: tuple[int, int]):
        self.intended.add(which)

    def acknowledge(self, which: tuple[int, int], first: int, last: int):
        assert self.acknowledged.setdefault(which, (first, last)) == (first, last)
        self.is_at_work = True

    def unacknowledged(self) -> set[tuple[int, int]]:
        return self.intended - self.acknowledged.keys()

    def next_number(self) -> int:
        """Where its replacement goes on: at what was not acknowledged."""
        waiting = self.unacknowledged()
        if waiting:
            return min(number for number, _ in waiting)
        return max((number for number, _ in self.acknowledged), default=-1) + 1


class Crowd:
    """All writers, killed and replaced."""

    def __init__(self, nursery: Nursery, path, random: Random):
        self.nursery = nursery
        self.path = path
        self.random = random
        self.figures: Counter[str] = Counter()
        self.heads: Counter[str] = Counter()
        self.selector = selectors.DefaultSelector()
        self.writers = [Writer(self._start(number, 0)) for number in range(writers.WRITERS)]

    def _start(self, writer: int, number: int) -> Child:
        child = self.nursery.start("write", path=self.path, writer=writer, number=number)
        self.selector.register(child.reports, selectors.EVENT_READ, writer)
        return child

    def listen(self, reports: int):
        """Hear at least so many reports."""
        while reports > 0:
            for key, _ in self.selector.select():
                writer = self.writers[key.data]
                heard = writer.child.available()
                assert heard, f"writer {key.data} ended with {writer.child.wait()}"
                self._hear(writer, heard)
                reports -= len(heard)

    def kill_one(self):
        number = self.random.randrange(writers.WRITERS)
        writer = self.writers[number]
        assert writer.child.kill() == -signal.SIGKILL
        self._bury(writer)
        self.figures["kills"] += 1
        self.figures["in mid-write"] += bool(writer.unacknowledged())
        writer.child = self._start(number, writer.next_number())
        writer.is_at_work = False

    def stop(self):
        """Let each finish what it is writing, and what its predecessor left."""
        while not all(writer.is_at_work for writer in self.writers):
            self.listen(1)
        for writer in self.writers:
            os.kill(writer.child.pid, signal.SIGTERM)
        for writer in self.writers:
            self._bury(writer)
            assert writer.child.wait() == 0

    def look(self):
        """What a process that opens the store now finds."""
        heads, integrity = self.nursery.run("look", path=self.path)
        assert integrity == [["ok"]]
        assert self.heads.keys() <= heads.keys()
        assert all(heads[session] >= head for session, head in self.heads.items())

    def _hear(self, writer: Writer, reports: list):
        for report in reports:
            assert isinstance(report, list), report["failed"]
            kind, number, at, session, *rest = report
            if kind == "intent":
                writer.intend((number, at))
                continue
            first, last, repeated, conflicts = rest
            writer.acknowledge((number, at), first, last)
            self.heads[session] = max(self.heads[session], last)
            self.figures["repeated"] += repeated
            self.figures["conflicts"] += conflicts

    def _bury(self, writer: Writer):
        self._hear(writer, writer.child.all())
        self.selector.unregister(writer.child.reports)
        writer.child.reports.close()


@pytest.mark.req("R098")
async def test_no_kill_loses_or_doubles_an_entry(nursery, tmp_path):
    path = tmp_path / "refold.db"
    opening = drafts("shared", writers.OPENING)
    async with open_store(path) as store:
        await store.log().append(writers.SHARED, opening, expected=0)
    random = Random(KILLS)  # noqa: S311 - which is killed when; the rest is up to the machine
    crowd = Crowd(nursery, path, random)
    crowd.listen(writers.WRITERS * 10)
    while crowd.figures["kills"] < KILLS:
        crowd.listen(random.randint(1, 60))
        crowd.kill_one()
        if crowd.figures["kills"] % LOOK_EVERY == 0:
            crowd.look()
    crowd.stop()

    await check(path)
    found = await entries_of(path)
    acknowledged = _check_acknowledged(crowd, found)
    assert sum(map(len, found.values())) == acknowledged + len(opening)
    figures = {**crowd.figures, "acknowledged": acknowledged}
    print("\n" + ", ".join(f"{value} {name}" for name, value in figures.items()))  # noqa: T201
    assert crowd.figures["in mid-write"] > KILLS / 4


def _check_acknowledged(crowd, found):
    """Each entry is where its writer was told, as its writer made it; how many those are."""
    count = 0
    for number, writer in enumerate(crowd.writers):
        assert not writer.unacknowledged()
        for (operation, at), (first, last) in writer.acknowledged.items():
            append = writers.operation(number, operation)[at]
            entries = found[append.session][first - 1 : last]
            assert [_draft_fields(entry) for entry in entries] == [
                _draft_fields(draft) for draft in append.drafts
            ]
            count += len(append.drafts)
    return count


def _draft_fields(one):
    return one.id, one.at, one.kind, one.version, one.body, one.scope, one.rests_on


async def test_what_is_appended_after_another_process_indexed_is_found(tmp_path):
    """A writer's memory of its session is older than what the other has noted there."""
    path = tmp_path / "refold.db"
    async with open_store(path) as ours, open_store(path) as theirs:
        log = ours.log()
        await log.append("one", drafts("opening", writers.OPENING), expected=0)
        for number in range(1, 4):
            await log.append("one", drafts(f"{number}", message(f"w{number}")), expected=number)
            assert len(await theirs.log().search(f"w{number}")) == 1
    await check(path)


async def test_nothing_is_appended_to_what_another_process_forgot(tmp_path):
    """Also while a fork still reads the forgotten session's entries."""
    path = tmp_path / "refold.db"
    async with open_store(path) as ours, open_store(path) as theirs:
        log = ours.log()
        await log.append("one", drafts("opening", writers.OPENING, message("x")), expected=0)
        await log.append("one", drafts("known", message("known")), expected=2)
        await theirs.log().fork("one", "fork", at=2)
        await log.append("one", drafts("more", message("more")), expected=3)
        await theirs.log().expire(int(TODAY.timestamp() * 1000))
        with pytest.raises(SessionForgotten):
            await log.append("one", drafts("late", message("late")), expected=4)
    await check(path)
