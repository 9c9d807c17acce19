"""The view: one more request of a long session, beside a short one, and beside the peers.

A view is open while its session goes on: each request takes in a step of two messages, plans, and
renders. The same steps follow every session. They are timed for all lengths in turns, so that what
else the machine does meets them alike. `whole` is a window so large that every message stays in the
view; `bounded` has room for as many tokens as the peers are given, and an open view rewrites itself
from time to time to stay within them.
"""

import tracemalloc
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import mean, median
from typing import Any
from uuid import UUID

from benchmarks import peers
from benchmarks.figures import Figure
from benchmarks.peers.timing import GIVE_UP, LIMIT, timed
from benchmarks.sessions import session
from refold.log import CODEC, Entry, Message, Opened, Outline, SessionInfo, Visible
from refold.models import counter_for
from refold.view.budget import Budget
from refold.view.profiles import PROFILES
from refold.view.tokens import Counter, Estimate
from refold.view.view import View
from refold.view.view_input import ViewInput
from refold.wire import wire_for

FORMAT = "pydantic-ai"
PROFILE = PROFILES["balanced"]
MODEL = "openai:gpt-4o"
WINDOWS = {"whole": 100_000_000, "bounded": LIMIT + PROFILE.reserve}
SHORT, LONG, LONGEST = 100, 10_000, 100_000
STEPS = 300
GROWTH, LEAD, MEMORY = 2, 20, 2
"""The bars: 10,000 messages beside 100; peers at work beside our next request, and beside the mean
of ours at their limit, with our rewrites; the open view beside its raw JSON."""
WORKING = ("ClearToolResults(", "SlidingWindowCompaction(", "trim_messages(")
"""The peers that must be seen at work: what has nothing to do proves nothing."""


def figures(*, quick: bool) -> list[Figure]:
    found: list[Figure] = []
    exact, estimate = counter_for(MODEL), Estimate()
    sizes = (SHORT, 1_000, LONG)
    ours: dict[str, Case] = {}
    for view in WINDOWS:
        ours[view] = Case(view, exact, "exact", sizes)
        found += ours[view].figures()
        if quick and view == "bounded":  # which takes longest, and the counter matters least
            continue
        longer = sizes if quick else (*sizes, LONGEST)
        found += Case(view, estimate, "estimate", longer).figures()
        found.append(_memory(view))
    rows = peers.measure([LONG] if quick else sizes, quick=quick)
    return [*found, *_passed(ours["whole"]), *_beside(rows, ours)]


class Session:
    """A session of some length with its view open, and the times that its requests took."""

    def __init__(self, size: int, counter: Counter, window: int) -> None:
        self.visible = _visible(size)
        self.counter = counter
        self.budget = Budget(window=window, reserve=PROFILE.reserve)
        self.next: list[float] = []
        opened = 3 if size < LONG else 1  # the first may load things, which weighs on short ones
        self.first = min(timed(self._open, self.visible) for _ in range(opened))
        self._go_on(self._entries(_prompt()))

    def go_on(self, step: Sequence[bytes]) -> None:
        """One more step, and the request after it."""
        self.next.append(timed(self._go_on, self._entries(step)))

    def _open(self, visible: Visible) -> None:
        inputs = ViewInput.of(visible, wire_for(FORMAT), self.counter)
        self.view = View(inputs, PROFILE)
        self._request()

    def _go_on(self, entries: Sequence[Entry]) -> None:
        self.view.extend(entries)
        self._request()

    def _request(self) -> None:
        request = self.view.request(self.budget)
        assert len(request.messages) > 0
        assert len(request.digest) == 64

    def _entries(self, payloads: Sequence[bytes]) -> list[Entry]:
        return _entries(payloads, self.view.inputs.head + 1)


class Case:
    """Sessions of several lengths that go on in turns, with one window and one counter."""

    def __init__(self, view: str, counter: Counter, counts: str, sizes: Sequence[int]) -> None:
        self.name = f"{view}, {counts}"
        self.bounded = view == "bounded"
        self.sessions = {size: Session(size, counter, WINDOWS[view]) for size in sizes}
        for step in _steps():
            for one in self.sessions.values():
                one.go_on(step)
        # A figure about rewrites, or about none, must be about what its name says.
        rewrites = [one.view.plan.rewrites for one in self.sessions.values() if one.view.plan]
        assert (rewrites[-1] > 0) == self.bounded

    def usual(self, size: int) -> float:
        """The median next request."""
        return median(self.sessions[size].next)

    def average(self, size: int) -> float:
        """The mean next request; the rewrites are in it."""
        return mean(self.sessions[size].next)

    def growth(self, size: int) -> float:
        """How much longer a request takes than in a short session, step by step."""
        both = zip(self.sessions[size].next, self.sessions[SHORT].next, strict=True)
        return median(one / short for one, short in both)

    def figures(self) -> Iterator[Figure]:
        for size, one in self.sessions.items():
            what = f"{self.name}, {size:,} messages"
            yield Figure(f"{what}: first request, ms", one.first * 1e3)
            yield Figure(f"{what}: next request, ms", self.usual(size) * 1e3)
            if self.bounded:
                yield Figure(f"{what}: mean with rewrites, ms", self.average(size) * 1e3)
        for size in self.sessions:
            name = f"{self.name}: next request, {size:,} messages ÷ {SHORT}"
            if size == LONG and not self.bounded:
                yield Figure(name, self.growth(size), GROWTH, "at most")
            elif size > SHORT:
                yield Figure(name, self.growth(size))


def _memory(view: str) -> Figure:
    """What an open view holds: payloads, rows, parts, the plan, the messages of its request."""
    counter, budget = Estimate(), Budget(window=WINDOWS[view], reserve=PROFILE.reserve)
    payloads = session(LONG)
    raw = sum(map(len, payloads))
    tracemalloc.start()
    try:
        # Copies, so that the payloads themselves are counted.
        entries = _entries([bytes(bytearray(one)) for one in payloads], 1)
        visible = _of(entries)
        held = View(ViewInput.of(visible, wire_for(FORMAT), counter), PROFILE)
        held.request(budget)
        del entries, visible
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    name = f"{view}, {LONG:,} messages: memory ÷ raw JSON"
    return Figure(name, size / raw, MEMORY if view == "whole" else None, "at most")


def _passed(ours: Case) -> Iterator[Figure]:
    """Beside passing the messages through, which copies a list and knows nothing of a limit."""
    for size, one in ours.sessions.items():
        messages = [entry.body for entry in one.visible.entries]
        through = min(timed(list, messages) for _ in range(20))
        what = f"{ours.name}, {size:,} messages"
        yield Figure(f"{what}: next request ÷ list(messages)", ours.usual(size) / through)
        yield Figure(f"{what}: first request ÷ list(messages)", one.first / through)


def _beside(rows: Sequence[dict[str, Any]], ours: dict[str, Case]) -> Iterator[Figure]:
    """Each peer's shortest time beside our median; with a bar where it had something to do."""
    worked = [row["name"] for row in rows if row["messages"] == LONG and row.get("changed")]
    assert all(any(one.startswith(name) for one in worked) for name in WORKING)
    whole, bounded = ours["whole"], ours["bounded"]
    for row in rows:
        if "list(" in row["name"]:
            continue
        size, at_work = row["messages"], row.get("changed", row["seconds"] is None)
        seconds = GIVE_UP if row["seconds"] is None else row["seconds"]
        what = f"{row['name']}, {row['request']}, {size:,} messages"
        bar = LEAD if at_work and size == LONG else None
        yield Figure(f"{what} ÷ our next", seconds / whole.usual(size), bar)
        if at_work:
            yield Figure(f"{what} ÷ our bounded mean", seconds / bounded.average(size), bar)
            yield Figure(f"{what} ÷ our bounded first", seconds / bounded.sessions[size].first)


@lru_cache(1)
def _continuation() -> list[bytes]:
    """What is said next. Calls get other ids, for the sessions have used theirs."""
    return [one.replace(b'"call_', b'"later_') for one in session(1_000, seed=2)]


def _prompt() -> list[bytes]:
    return _continuation()[:1]


def _steps() -> Iterator[list[bytes]]:
    """Steps of two messages: a call and its return, or a reply and the next prompt."""
    told = _continuation()
    for at in range(STEPS):
        yield told[1 + 2 * at : 3 + 2 * at]


@lru_cache(4)
def _visible(size: int) -> Visible:
    return _of(_entries(session(size), 2))


def _of(entries: Sequence[Entry]) -> Visible:
    body = CODEC.encode(Opened(FORMAT, PROFILE.name))
    first = Entry(1, UUID(int=1), 0, Opened.KIND, Opened.VERSION, body)
    count = len(entries)
    info = SessionInfo("bench", None, FORMAT, PROFILE.name, 0, 0, count + 1, count)
    return Visible(info, Outline(), (first, *entries))


def _entries(payloads: Sequence[bytes], first: int) -> list[Entry]:
    return [
        Entry(seq, UUID(int=seq), 0, Message.KIND, Message.VERSION, payload)
        for seq, payload in enumerate(payloads, first)
    ]
