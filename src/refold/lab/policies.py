"""The policies that others use, to compare with."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from pydantic import JsonValue, TypeAdapter

from refold.lab import messages as make
from refold.lab.messages import Reader
from refold.lab.replay import Mark, Policy, Spent
from refold.log import Entry, Message
from refold.view.budget import Budget
from refold.view.profiles import Profile
from refold.view.tokens import Counter
from refold.view.view import Messages, View
from refold.view.view_input import ViewInput
from refold.wire import wire_for

# A ledger: the identifiers of what was folded, the most likely to be used again first.

Rank = Callable[[Reader, Sequence[bytes]], dict[str, float]]
"""How likely each identifier of some messages is to be used again: higher comes first."""

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


def ledger(reader: Reader, tokens: int, rank: Rank) -> Callable[[Sequence[bytes]], str]:
    """A summary of at most this many tokens that only names identifiers, one on a line."""

    def summarise(messages: Sequence[bytes]) -> str:
        score = rank(reader, messages)
        left = tokens
        lines: list[str] = []
        for identifier in sorted(score, key=lambda one: (-score[one], one)):
            line = f"{identifier}\n"
            left -= reader.count(line)
            if left < 0:
                break
            lines.append(line)
        return "".join(lines)

    return summarise


# Tool returns, masked: a short line stands where the answer was.

MASK = "[An old tool result was cleared]"

_MESSAGE = TypeAdapter(dict[str, JsonValue])


def mask(payload: bytes, reader: Reader) -> bytes:
    """The message with its tool returns masked; as it is when that would not make it smaller."""
    message = _MESSAGE.validate_json(payload)
    match message:
        case {"parts": list(parts)}:
            message["parts"] = [_masked(part) for part in parts]
            masked = make.dump(message)
            return masked if reader.tokens(masked) < reader.tokens(payload) else payload
        case _:
            return payload


def _masked(part: JsonValue) -> JsonValue:
    match part:
        case {"part_kind": "tool-return"}:
            return part | {"content": MASK}
        case _:
            return part


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


# Our own views as a policy, so that a profile is measured like any other.


class Projected:
    """The view that a profile gives, within a budget."""

    def __init__(
        self,
        profile: Profile,
        budget: Budget,
        counter: Counter,
        format: str = "pydantic-ai",  # noqa: A002 - the glossary's word
    ) -> None:
        self.session = View(ViewInput(wire_for(format), counter), profile)
        self._budget = budget
        self._known = 0

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the profile sends, given all that was said so far."""
        self.session.extend(
            Entry(at, UUID(int=at), 0, Message.KIND, 1, payload)
            for at, payload in enumerate(messages[self._known :], self._known + 1)
        )
        self._known = len(messages)
        return self.session.request(self._budget).messages


def profiled(
    profiles: Iterable[Profile], budget: Budget, counter: Counter
) -> dict[str, Callable[[Reader], Projected]]:
    """The profiles as policies to compare, by name."""
    return {one.name: partial(_projected, one, budget, counter) for one in profiles}


def _projected(profile: Profile, budget: Budget, counter: Counter, _: Reader) -> Projected:
    return Projected(profile, budget, counter)
