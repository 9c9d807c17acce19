"""Replaying a recording under a policy: one request for each assistant message.

A replay sees what a policy would have sent and lost. It cannot see the extra turns that forgetting
causes, and it underestimates absolute cost: compare replays with one another.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple, Protocol, runtime_checkable

from refold.lab.messages import MESSAGE_TOKENS, Reader, Said
from refold.lab.recording import Recording


class Policy(Protocol):
    """Decides what a model sees. It may keep state: each replay gets a fresh one."""

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """What to send, given all that was said before the next assistant message."""
        ...


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens that a policy's own model calls used."""

    cached: int = 0
    new: int = 0
    output: int = 0


@runtime_checkable
class Spending(Protocol):
    """A policy that calls a model itself."""

    def spent(self) -> Spent:
        """What its model calls used for the view it made last."""
        ...


class Mark(NamedTuple):
    """A place where a policy folded: before which message, and the tokens before and after."""

    at: int
    before: int
    after: int


@runtime_checkable
class Marking(Protocol):
    """A policy that knows where it folded."""

    @property
    def marks(self) -> Sequence[Mark]:
        ...


@runtime_checkable
class Closing(Protocol):
    """A policy that holds something to let go of."""

    def close(self) -> None:
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What was sent for one assistant message."""

    at: int
    """The index of that message in the recording."""
    view: tuple[bytes, ...]
    sent: int
    """Tokens of the view."""
    cached: int
    """Tokens of the messages that begin both this view and the one before."""
    output: int
    orphans: int
    """Pairs that the policy broke: returns without their call, calls without their return."""
    unanswered: int
    """Calls without a return that had none in the recording either."""
    milliseconds: float
    """What the policy took."""
    spent: Spent

    @property
    def new(self) -> int:
        """Tokens that were not in the cache."""
        return self.sent - self.cached


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording, and the requests that a policy made of it."""

    recording: Recording
    policy: str
    requests: tuple[Request, ...]
    marks: tuple[Mark, ...] = ()
    """Where the policy folded, if it is one that does."""


def play(recording: Recording, policy: Policy, reader: Reader, *, name: str = "") -> Replay:
    """Play the recording under the policy."""
    payloads = recording.payloads
    player = _Player(policy, reader)
    requests: list[Request] = []
    for at, payload in enumerate(payloads):
        said = reader.read(payload)
        if said.speaker == "assistant":
            requests.append(player.request(payloads[:at], said.tokens - MESSAGE_TOKENS))
        player.answered.update(call for call, _ in said.returns)
    if isinstance(policy, Closing):
        policy.close()
    marks = tuple(policy.marks) if isinstance(policy, Marking) else ()
    return Replay(recording, name or type(policy).__name__, tuple(requests), marks)


class _Player:
    def __init__(self, policy: Policy, reader: Reader) -> None:
        self.answered: set[str] = set()
        self._policy = policy
        self._reader = reader
        self._before: tuple[bytes, ...] = ()

    def request(self, messages: tuple[bytes, ...], output: int) -> Request:
        started = perf_counter()
        view = tuple(self._policy.view(messages))
        took = (perf_counter() - started) * 1000
        said = [self._reader.read(payload) for payload in view]
        orphans, unanswered = unpaired(said, self.answered)
        shared = common(self._before, view)
        self._before = view
        return Request(
            at=len(messages),
            view=view,
            sent=sum(one.tokens for one in said),
            cached=sum(one.tokens for one in said[:shared]),
            output=output,
            orphans=orphans,
            unanswered=unanswered,
            milliseconds=took,
            spent=self._policy.spent() if isinstance(self._policy, Spending) else Spent(),
        )


def common(left: Sequence[bytes], right: Sequence[bytes]) -> int:
    for at, (one, two) in enumerate(zip(left, right, strict=False)):
        if one != two:
            return at
    return min(len(left), len(right))


def unpaired(view: Sequence[Said], answered: set[str]) -> tuple[int, int]:
    """The broken pairs of a view, and the calls that nothing had answered.

    `answered` are the calls that had their return in the recording by then.
    """
    waiting = Counter[str]()
    orphans = 0
    for said in view:
        for answered_id, _ in said.returns:
            if waiting[answered_id]:
                waiting[answered_id] -= 1
            else:
                orphans += 1
        for call in said.calls:
            waiting[call.id] += 1
    left = list(waiting.elements())
    lost = sum(call in answered for call in left)
    return orphans + lost, len(left) - lost
