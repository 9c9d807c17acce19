"""The policies that others use, to compare with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refold.lab import messages as make
from refold.lab.ledger import by_occurrence, by_recency, ledger
from refold.lab.masking import mask
from refold.lab.reading import Reader
from refold.lab.replay import Mark, Policy, Spent

Factory = Callable[[Reader], Policy]
"""Makes a fresh policy for one replay."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the policies that we compare with are set to, in tokens."""

    threshold: int = 100_000
    """From here on they act; the sliding window is as large."""
    tail: int = 20_000
    """What a fold leaves of the newest messages."""
    summary: int = 1_500
    keep: int = 10
    """How many of the newest tool returns the rolling mask leaves."""
    batch_keep: int = 12
    """How many the batched mask leaves."""


class Everything:
    """Sends all there is."""

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """All messages."""
        return messages


class SlidingWindow:
    """Sends the newest messages that fit a window."""

    def __init__(self, reader: Reader, window: int, *, pair_safe: bool) -> None:
        self._reader = reader
        self._window = window
        self._pair_safe = pair_safe

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """The newest messages; when pair-safe, from the first that answers no call."""
        first = newest(self._reader, messages, self._window)
        if self._pair_safe:
            first = self._whole(messages, first)
        return messages[first:]

    def _whole(self, messages: Sequence[bytes], first: int) -> int:
        for at in range(first, len(messages)):
            if not self._reader.read(messages[at]).returns:
                return at
        return _call_before(self._reader, messages, first)


class RollingMask:
    """Masks all tool returns but the newest, at every request."""

    def __init__(self, reader: Reader, keep: int) -> None:
        self._reader = reader
        self._keep = keep
        self._masked: dict[bytes, bytes] = {}

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """All messages, the old returns masked."""
        old = set(returns(self._reader, messages)[: -self._keep])
        return [
            self._mask(payload) if at in old else payload for at, payload in enumerate(messages)
        ]

    def _mask(self, payload: bytes) -> bytes:
        if payload not in self._masked:
            self._masked[payload] = mask(payload, self._reader)
        return self._masked[payload]


class BatchedMask:
    """Masks tool returns only when a view would be too large, then all but the newest."""

    def __init__(self, reader: Reader, threshold: int, keep: int) -> None:
        self._reader = reader
        self._threshold = threshold
        self._keep = keep
        self._masked: dict[int, bytes] = {}

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """All messages, with the returns masked that some request had to mask."""
        view = self._view(messages)
        if sum(map(self._reader.tokens, view)) <= self._threshold:
            return view
        for at in returns(self._reader, messages)[: -self._keep]:
            if at not in self._masked:
                self._masked[at] = mask(messages[at], self._reader)
        return self._view(messages)

    def _view(self, messages: Sequence[bytes]) -> list[bytes]:
        return [self._masked.get(at, payload) for at, payload in enumerate(messages)]


class HeadTail:
    """Folds the middle when a view would be too large: the head, a summary, the tail."""

    def __init__(
        self,
        reader: Reader,
        settings: Settings,
        summarise: Callable[[Sequence[bytes]], str],
        *,
        users: bool = False,
        called: bool = True,
    ) -> None:
        """`users` keeps the user's own messages; `called` counts a model call for each fold."""
        self._reader = reader
        self._settings = settings
        self._summarise = summarise
        self._users = users
        self._called = called
        self.marks: list[Mark] = []
        self._stands: tuple[list[bytes], int] | None = None
        self._spent = Spent()

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """The head, what stands for the middle, and the rest."""
        self._spent = Spent()
        view = self._view(messages)
        size = sum(map(self._reader.tokens, view))
        if size <= self._settings.threshold:
            return view
        self._stands = self._fold(messages)
        if self._called:
            self._spent = Spent(cached=size, output=self._settings.summary)
        folded = self._view(messages)
        self.marks.append(Mark(len(messages), size, sum(map(self._reader.tokens, folded))))
        return folded

    def spent(self) -> Spent:
        """What the call for the summary used, when the last view needed one."""
        return self._spent

    def _view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        if self._stands is None:
            return messages
        front, cut = self._stands
        return [*front, *messages[cut:]]

    def _fold(self, messages: Sequence[bytes]) -> tuple[list[bytes], int]:
        head = _head_of(self._reader, messages)
        newest_first = newest(self._reader, messages, self._settings.tail)
        cut = max(head, _call_before(self._reader, messages, newest_first))
        middle = messages[head:cut]
        own = [one for one in middle if self._reader.read(one).speaker == "user"]
        summary = make.request([make.user_prompt(self._summarise(middle))])
        return [*messages[:head], *(own if self._users else ()), summary], cut


def newest(reader: Reader, messages: Sequence[bytes], tokens: int) -> int:
    """Where the newest messages begin that fit; the last is among them however large it is."""
    first = len(messages) - 1
    left = tokens - reader.tokens(messages[first])
    while first and (size := reader.tokens(messages[first - 1])) <= left:
        left -= size
        first -= 1
    return first


def _call_before(reader: Reader, messages: Sequence[bytes], at: int) -> int:
    """Where the call stands that the message answers; the message itself if it answers none."""
    while at and reader.read(messages[at]).returns:
        at -= 1
    return at


def _head_of(reader: Reader, messages: Sequence[bytes]) -> int:
    """How many messages the head is: up to the first that the user said."""
    for at, payload in enumerate(messages):
        if reader.read(payload).speaker == "user":
            return at + 1
    return 0


def returns(reader: Reader, messages: Sequence[bytes]) -> list[int]:
    """Which messages hold tool returns."""
    return [at for at, payload in enumerate(messages) if reader.read(payload).returns]


def baselines(settings: Settings | None = None) -> dict[str, Factory]:
    """The policies of the comparison table, by name."""
    of = settings or Settings()
    return {
        "none": lambda _: Everything(),
        "sliding window, naive": lambda r: SlidingWindow(r, of.threshold, pair_safe=False),
        "sliding window, pair-safe": lambda r: SlidingWindow(r, of.threshold, pair_safe=True),
        "mask, rolling": lambda r: RollingMask(r, of.keep),
        "mask, batched": lambda r: BatchedMask(r, of.threshold, of.batch_keep),
        "head / empty summary / tail": lambda r: HeadTail(r, of, lambda _: " the" * of.summary),
        "head / ledger / tail": lambda r: HeadTail(r, of, ledger(r, of.summary, by_occurrence)),
    }


def frontier(settings: Settings | None = None) -> Factory:
    """Head, the user's own messages, a ledger, tail: without any model."""
    of = settings or Settings(summary=3_000)

    def make_policy(reader: Reader) -> Policy:
        summarise = ledger(reader, of.summary, by_recency)
        return HeadTail(reader, of, summarise, users=True, called=False)

    return make_policy
