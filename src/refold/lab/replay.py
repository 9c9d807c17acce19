"""Replaying a recording under a policy: one request for each assistant message.

A replay sees what a policy would have sent and lost. It cannot see the extra turns that forgetting
causes, and it underestimates absolute cost: compare replays with one another.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Final, NamedTuple, Protocol, runtime_checkable

from refold.lab.messages import MESSAGE_TOKENS, ParsedMessage, Reader
from refold.models import Usage
from refold.transcripts.recording import Recording

_FIRST = 5  # answers: later, other tokenizers and the agent's own compactions blur the difference


class Policy(Protocol):
    """Decides what a model sees. It may keep state: each replay gets a fresh one."""

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """What to send, given all that was said before the next assistant message."""
        ...


@runtime_checkable
class ModelCaller(Protocol):
    """A policy that calls a model itself."""

    def usage(self) -> Usage:
        """What its model calls used for the view it made last."""
        ...


class Mark(NamedTuple):
    """A compaction: before which message, and the tokens before and after."""

    at: int
    before: int
    after: int


@runtime_checkable
class _Marking(Protocol):
    @property
    def marks(self) -> Sequence[Mark]: ...


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Conditions:
    """What requests have beside their messages, and how long a provider keeps what it read."""

    fixed: int = 0
    """Tokens of the instructions and tool definitions that begin every request."""
    lifetime: float | None = None
    """Seconds without a request after which the cache is empty; None: it never is."""


NO_CONDITIONS: Final = Conditions()


@dataclass(frozen=True, slots=True)
class Request:
    """What was sent for one assistant message."""

    at: int
    """The index of that message in the recording."""
    view: tuple[bytes, ...]
    sent: int
    """Tokens of the view, and of what begins every request."""
    cached: int
    """Tokens that begin both this request and the one before, unless the cache has expired."""
    output: int
    orphans: int
    """Pairs that the policy broke: returns without their call, calls without their return."""
    unanswered: int
    """Calls without a return that had none in the recording either."""
    milliseconds: float
    """What the policy took."""
    own_usage: Usage
    """What the policy's own model calls used."""

    @property
    def new(self) -> int:
        """Tokens that were not in the cache."""
        return self.sent - self.cached

    @property
    def usage(self) -> Usage:
        """What the request and the policy's own model calls used, with a prompt cache."""
        own = self.own_usage
        return Usage(
            self.sent + own.input,
            self.output + own.output,
            self.cached + own.cache_read,
            self.new + own.cache_write,
        )


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording, and the requests that a policy made of it."""

    recording: Recording
    policy: str
    requests: tuple[Request, ...]
    marks: tuple[Mark, ...] = ()


def recorded_prefix(recording: Recording, reader: Reader) -> int:
    """Tokens of instructions and tools: what the first answers' usage has beside the messages."""
    size = 0
    beside: list[int] = []
    for message in recording.messages:
        if message.usage is not None and message.usage.input:
            beside.append(max(0, message.usage.input - size))
        if len(beside) == _FIRST:
            break
        size += reader.tokens(message.payload)
    return min(beside, default=0)


def requests_of(
    recording: Recording, reader: Reader, lifetime: float | None = None
) -> Iterator[tuple[int, bool]]:
    """The index of each assistant message, and whether the cache was empty when it was asked for.

    The time between the answer before and the newest message that the model was sent decides.
    """
    first, touched = True, None
    for index, message in enumerate(recording.messages):
        if reader.read(message.payload).speaker != "assistant":
            continue
        asked = (index and recording.messages[index - 1].at) or message.at
        expired = (
            lifetime is not None
            and bool(asked and touched)
            and ((asked or 0) - (touched or 0) > lifetime * 1000)
        )
        yield index, first or expired
        first, touched = False, message.at or asked or touched


def play(  # noqa: PLR0913 - the rest by name
    recording: Recording,
    policy: Policy,
    reader: Reader,
    *,
    name: str = "",
    conditions: Conditions = NO_CONDITIONS,
    on_request: Callable[[], object] = bool,
) -> Replay:
    """Play the recording under the policy; `on_request` is called after each of its requests."""
    with ExitStack() as resources:
        if isinstance(policy, _Closable):
            resources.callback(policy.close)
        requests = _requests(recording, policy, reader, conditions, on_request)
    marks = tuple(policy.marks) if isinstance(policy, _Marking) else ()
    return Replay(recording, name or type(policy).__name__, requests, marks)


def _requests(
    recording: Recording,
    policy: Policy,
    reader: Reader,
    conditions: Conditions,
    on_request: Callable[[], object],
) -> tuple[Request, ...]:
    cold = dict(requests_of(recording, reader, conditions.lifetime))
    payloads = recording.payloads
    requests: list[Request] = []
    answered: set[str] = set()
    previous: tuple[bytes, ...] = ()
    for index, payload in enumerate(payloads):
        message = reader.read(payload)
        if message.speaker == "assistant":
            started = perf_counter()
            view = tuple(policy.view(payloads[:index]))
            took = (perf_counter() - started) * 1000
            parsed = [reader.read(sent) for sent in view]
            orphans, unanswered = _unpaired(parsed, answered)
            shared = _shared_prefix(previous, view)
            previous = view
            requests.append(
                Request(
                    at=index,
                    view=view,
                    sent=conditions.fixed + sum(sent.tokens for sent in parsed),
                    cached=0
                    if cold[index]
                    else conditions.fixed + sum(sent.tokens for sent in parsed[:shared]),
                    output=message.tokens - MESSAGE_TOKENS,
                    orphans=orphans,
                    unanswered=unanswered,
                    milliseconds=took,
                    own_usage=policy.usage() if isinstance(policy, ModelCaller) else Usage(0),
                )
            )
            on_request()
        answered.update(call for call, _ in message.returns)
    return tuple(requests)


def _shared_prefix(left: Sequence[bytes], right: Sequence[bytes]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _unpaired(view: Sequence[ParsedMessage], answered: set[str]) -> tuple[int, int]:
    """The broken pairs of a view, and the calls that nothing had answered.

    `answered` are the calls that had their return in the recording by then.
    """
    waiting = Counter[str]()
    orphans = 0
    for message in view:
        for call_id, _ in message.returns:
            if waiting[call_id]:
                waiting[call_id] -= 1
            else:
                orphans += 1
        for call in message.calls:
            waiting[call.id] += 1
    left = list(waiting.elements())
    lost = sum(call in answered for call in left)
    return orphans + lost, len(left) - lost
