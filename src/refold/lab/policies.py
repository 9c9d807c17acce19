"""Policies to compare: the usual baselines, and views that a profile plans."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from refold.lab.messages import Reader
from refold.lab.replay import Mark, Policy
from refold.log import Entry, Message
from refold.models import Usage
from refold.transcripts import messages as make
from refold.view.budget import Budget
from refold.view.profiles import Profile
from refold.view.tokens import Counter
from refold.view.view import Messages, View
from refold.view.view_input import ViewInput
from refold.wire import wire_for

Factory = Callable[[Reader], Policy]
"""Makes a fresh policy for one replay."""
Rank = Callable[[Reader, Sequence[bytes]], dict[str, float]]
"""How likely each identifier of some messages is to be used again: higher comes first."""

Summarize = Callable[[Sequence[bytes]], str]

MASK = "[An old tool result was cleared]"

_WEIGHT = {"system": 4.0, "user": 4.0, "assistant": 4.0, "tool": 1.0}
_HALF_LIFE = 300


def by_occurrence(reader: Reader, messages: Sequence[bytes]) -> dict[str, float]:
    """By how often each was said, and by whom."""
    score = defaultdict[str, float](float)
    for payload in messages:
        weight = _WEIGHT[reader.read(payload).speaker]
        for identifier, times in reader.identifiers(payload).items():
            score[identifier] += weight * times
    return score


def by_recency(reader: Reader, messages: Sequence[bytes]) -> dict[str, float]:
    """By how many messages hold each, by whom they are, and how long ago they were."""
    score = defaultdict[str, float](float)
    for age, payload in enumerate(reversed(messages)):
        weight = _WEIGHT[reader.read(payload).speaker] * 0.5 ** (age / _HALF_LIFE)
        for identifier in reader.identifiers(payload):
            score[identifier] += weight
    return score


def ledger(reader: Reader, tokens: int, rank: Rank) -> Summarize:
    """A summary of at most this many tokens that only lists identifiers, the likeliest first."""

    def summarize(messages: Sequence[bytes]) -> str:
        score = rank(reader, messages)
        left = tokens
        lines: list[str] = []
        for identifier in sorted(score, key=lambda name: (-score[name], name)):
            line = f"{identifier}\n"
            left -= reader.count(line)
            if left < 0:
                break
            lines.append(line)
        return "".join(lines)

    return summarize


def mask(payload: bytes, reader: Reader) -> bytes:
    """The message with its tool returns masked; unchanged when that would not make it smaller."""
    message = make.parse(payload)
    for part in make.parts_of(message):
        if part.get("part_kind") == "tool-return":
            part["content"] = MASK
    masked = make.dump(message)
    return masked if reader.tokens(masked) < reader.tokens(payload) else payload


@dataclass(frozen=True, slots=True)
class Settings:
    """The sizes of the baselines, in tokens."""

    threshold: int = 100_000
    """From here on they act; the sliding window is as large."""
    tail: int = 20_000
    """What a fold leaves of the newest messages."""
    summary: int = 1_500
    keep: int = 10
    """How many of the newest tool returns the rolling mask leaves."""
    batch_keep: int = 12
    """How many the batched mask leaves."""
    fold: int = 0
    """What a fold leaves in all, with a tail as long as that allows; 0: `tail` decides."""


class Everything:
    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        return messages


class SlidingWindow:
    """Sends the newest messages that fit a window."""

    def __init__(self, reader: Reader, window: int, *, pair_safe: bool) -> None:
        self._reader = reader
        self._window = window
        self._pair_safe = pair_safe

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """The newest messages; when pair-safe, from the first that answers no call."""
        first = newest_start(self._reader, messages, self._window)
        if self._pair_safe:
            fallback = _call_before(self._reader, messages, first)
            indexes = range(first, len(messages))
            no_returns = (i for i in indexes if not self._reader.read(messages[i]).returns)
            first = next(no_returns, fallback)
        return messages[first:]


class RollingMask:
    """Masks all tool returns but the newest, at every request."""

    def __init__(self, reader: Reader, keep: int) -> None:
        self._reader = reader
        self._keep = keep
        self._masked: dict[bytes, bytes] = {}

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        old = set(_returns(self._reader, messages)[: -self._keep])
        return [self._mask(payload) if i in old else payload for i, payload in enumerate(messages)]

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
        for index in _returns(self._reader, messages)[: -self._keep]:
            if index not in self._masked:
                self._masked[index] = mask(messages[index], self._reader)
        return self._view(messages)

    def _view(self, messages: Sequence[bytes]) -> list[bytes]:
        return [self._masked.get(index, payload) for index, payload in enumerate(messages)]


class HeadTail:
    """Folds the middle when a view would be too large: the head, a summary, the tail."""

    def __init__(
        self,
        reader: Reader,
        settings: Settings,
        summarize: Summarize,
        *,
        users: bool = False,
        called: bool = True,
    ) -> None:
        """`users` keeps the user's own messages; `called` counts a model call for each fold."""
        self._reader = reader
        self._settings = settings
        self._summarize = summarize
        self._users = users
        self._called = called
        self.marks: list[Mark] = []
        self._fold: tuple[list[bytes], int] | None = None
        """What replaces the messages before an index, and that index."""
        self._usage = Usage(0)

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """The head, the summary of the middle, and the rest."""
        self._usage = Usage(0)
        view = self._view(messages)
        size = sum(map(self._reader.tokens, view))
        if not self._due(size):
            return view
        self._fold = self._compact(messages)
        if self._called:
            self._usage = Usage(size, self._settings.summary, cache_read=size)
        view = self._view(messages)
        self.marks.append(Mark(len(messages), size, sum(map(self._reader.tokens, view))))
        return view

    def usage(self) -> Usage:
        """What the call for the summary used, when the last view needed one."""
        return self._usage

    def _due(self, size: int) -> bool:
        return size > self._settings.threshold

    def _view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        if self._fold is None:
            return messages
        front, cut = self._fold
        return [*front, *messages[cut:]]

    def _compact(self, messages: Sequence[bytes]) -> tuple[list[bytes], int]:
        prompts = (i for i, m in enumerate(messages) if self._reader.read(m).speaker == "user")
        head = next(prompts, -1) + 1
        room = self._settings.tail
        if self._settings.fold:
            room = self._settings.fold - self._settings.summary
            room = max(1, room - sum(map(self._reader.tokens, messages[:head])))
        tail = newest_start(self._reader, messages, room)
        cut = max(head, _call_before(self._reader, messages, tail))
        middle = messages[head:cut]
        own = [message for message in middle if self._reader.read(message).speaker == "user"]
        summary = make.request([make.user_prompt(self._summarize(middle))])
        return [*messages[:head], *(own if self._users else ()), summary], cut


class SkiRental(HeadTail):
    """Folds when what it read beyond a fold's size has cost as much as writing a fold.

    It knows nothing of the future, and is never more than twice as dear as the best fold times.
    """

    def __init__(
        self, reader: Reader, settings: Settings, summarize: Summarize, *, price: float
    ) -> None:
        """`price`: of a token that is written into the cache, in prices of one read from it."""
        super().__init__(reader, settings, summarize, called=False)
        self._excess = 0
        self._enough = price * settings.fold

    def _due(self, size: int) -> bool:
        self._excess += max(0, size - self._settings.fold)
        if self._excess < self._enough and not super()._due(size):
            return False
        self._excess = 0
        return True


def newest_start(reader: Reader, messages: Sequence[bytes], tokens: int) -> int:
    """Where the newest messages begin that fit; the last is among them however large it is."""
    first = len(messages) - 1
    left = tokens - reader.tokens(messages[first])
    while first and (size := reader.tokens(messages[first - 1])) <= left:
        left -= size
        first -= 1
    return first


def _call_before(reader: Reader, messages: Sequence[bytes], index: int) -> int:
    """The index of the call that a message answers; its own if it answers none."""
    while index and reader.read(messages[index]).returns:
        index -= 1
    return index


def _returns(reader: Reader, messages: Sequence[bytes]) -> list[int]:
    return [index for index, payload in enumerate(messages) if reader.read(payload).returns]


def baselines(settings: Settings | None = None) -> dict[str, Factory]:
    """The policies of the comparison table, by name."""
    sizes = settings or Settings()
    return {
        "none": lambda _: Everything(),
        "sliding window, naive": lambda r: SlidingWindow(r, sizes.threshold, pair_safe=False),
        "sliding window, pair-safe": lambda r: SlidingWindow(r, sizes.threshold, pair_safe=True),
        "mask, rolling": lambda r: RollingMask(r, sizes.keep),
        "mask, batched": lambda r: BatchedMask(r, sizes.threshold, sizes.batch_keep),
        "head and tail only": lambda r: HeadTail(r, sizes, lambda _: " the" * sizes.summary),
        "head / ledger / tail": lambda r: HeadTail(
            r, sizes, ledger(r, sizes.summary, by_occurrence)
        ),
    }


TWICE, MORE, SKI_RENTAL = "fold at twice its size", "fold at 2.5 times its size", "ski rental"
TIMED: Final = (TWICE, MORE, SKI_RENTAL)
"""Rules that differ in when they fold."""


def timed(settings: Settings, fold: int, price: float = 12.5) -> dict[str, Factory]:
    """The rules of `TIMED`: they fold to the same size, with the same list of names.

    `price` is what writing a token costs, in prices of one read from the cache.
    """

    def at(threshold: int) -> Factory:
        sizes = replace(settings, threshold=min(threshold, settings.threshold), fold=fold)
        return lambda r: HeadTail(r, sizes, ledger(r, sizes.summary, by_occurrence), called=False)

    sizes = replace(settings, fold=fold)
    return {
        TWICE: at(2 * fold),
        MORE: at(fold * 5 // 2),
        SKI_RENTAL: lambda r: SkiRental(
            r, sizes, ledger(r, sizes.summary, by_occurrence), price=price
        ),
    }


def frontier(settings: Settings | None = None) -> Factory:
    """Head, the user's own messages, a ledger, tail: without any model."""
    sizes = settings or Settings(summary=3_000)

    def make_policy(reader: Reader) -> Policy:
        summarize = ledger(reader, sizes.summary, by_recency)
        return HeadTail(reader, sizes, summarize, users=True, called=False)

    return make_policy


class Projected:
    """The view that a profile plans, within a budget, so that a profile is measured like others."""

    def __init__(
        self,
        profile: Profile,
        budget: Budget,
        counter: Counter,
        format: str = "pydantic-ai",  # noqa: A002 - the glossary's word
    ) -> None:
        self.session = View(ViewInput(wire_for(format), counter), profile)
        self._budget = budget
        self._received = 0

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the profile sends, given all messages so far."""
        self.session.extend(
            Entry(seq, UUID(int=seq), 0, Message.KIND, 1, payload)
            for seq, payload in enumerate(messages[self._received :], self._received + 1)
        )
        self._received = len(messages)
        return self.session.request(self._budget).messages


def profiled(
    profiles: Iterable[Profile], budget: Budget, counter: Counter
) -> dict[str, Callable[[Reader], Projected]]:
    """The profiles as policies to compare, by name."""

    def factory(profile: Profile) -> Callable[[Reader], Projected]:
        return lambda _: Projected(profile, budget, counter)

    return {profile.name: factory(profile) for profile in profiles}
