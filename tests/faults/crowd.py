"""Writers that are killed while they write, and replaced; see `writers` for what they write."""

import os
import selectors
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic

import writers
from nursery import Child

from refold.log import Draft, Entry

_MOST_SILENT = 180.0  # seconds; beyond what any writer is patient for
Start = Callable[[int, int], Child]
"""Starts a writer: which one, and the number of its first operation."""


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

    def __init__(self, start: Start, random: Random):
        self.random = random
        self.figures: Counter[str] = Counter()
        self.heads: Counter[str] = Counter()
        """How far each session reaches at least, as its writers were told."""
        self.slowest = (0.0, -1)
        """How long it took a writer at most to write again, and which one that was."""
        self.selector = selectors.DefaultSelector()
        self._start = start
        self.writers = [Writer(self._started(number, 0)) for number in range(writers.WRITERS)]

    def _started(self, writer: int, number: int) -> Child:
        child = self._start(writer, number)
        self.selector.register(child.reports, selectors.EVENT_READ, writer)
        return child

    def listen(self, reports: int):
        """Hear at least so many reports."""
        while reports > 0:
            ready = self.selector.select(_MOST_SILENT)
            assert ready, "nobody writes any more"
            for key, _ in ready:
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
        writer.child = self._started(number, writer.next_number())
        writer.is_at_work = False

    def all_at_work(self):
        """Wait until each has written something since it was last looked at."""
        for writer in self.writers:
            writer.is_at_work = False
        began = monotonic()
        idle = set(range(writers.WRITERS))
        while idle:
            self.listen(1)
            for at in [at for at in idle if self.writers[at].is_at_work]:
                idle.remove(at)
                self.slowest = max(self.slowest, (monotonic() - began, at))

    def stop(self):
        """Let each finish what it is writing, and what its predecessor left."""
        self.all_at_work()
        for writer in self.writers:
            os.kill(writer.child.pid, signal.SIGTERM)
        for writer in self.writers:
            self._bury(writer)
            assert writer.child.wait() == 0

    def check(self, found: Mapping[str, Sequence[Entry]]) -> int:
        """Each entry is where its writer was told, as its writer made it; how many those are."""
        return sum(_check(number, writer, found) for number, writer in enumerate(self.writers))

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


def _check(number: int, writer: Writer, found: Mapping[str, Sequence[Entry]]) -> int:
    assert not writer.unacknowledged()
    count = 0
    places = defaultdict(list)
    for (operation, at), (first, last) in sorted(writer.acknowledged.items()):
        append = writers.operation(number, operation)[at]
        entries = found[append.session][first - 1 : last]
        assert [_drafted(entry) for entry in entries] == [_drafted(one) for one in append.drafts]
        places[append.session].append(first)
        count += len(append.drafts)
    assert all(firsts == sorted(firsts) for firsts in places.values())
    return count


def _drafted(one: Draft | Entry):
    return one.id, one.at, one.kind, one.version, one.body, one.scope, one.rests_on
