"""Requests that were passed on unmanaged, and whether their turns reached the log later.

Clients send their whole history each time. So a turn that the gateway could not log, because its
store was unavailable, is logged with the conversation's next request. Until then the gateway
remembers a fingerprint of it, and nothing of its content. A turn that no client sends again in time
is counted as lost. All of this is in memory: a restart begins with nothing.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, get_args

from refold.errors import RefoldError
from refold.gateway.incoming import Chain, key_of
from refold.log import Marked

Reason = Literal[
    "not-a-conversation",
    "over-bounds",
    "provider-compaction",
    "store-unavailable",
    "unreadable-body",
    "unsupported-request",
]
"""Why a request was passed on unmanaged, as the header `Refold-Managed` and the metrics name it."""
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
MANAGED: Final = "yes"
NOT_LOGGED: Final = "yes; answer=not-logged"
"""The request was managed, but the store could not take its answer."""
MAX_TURNS: Final = 10_000
"""Conversations with turns that are not logged, of which the gateway remembers fingerprints."""
MAX_AGE: Final = 3_600.0
"""Seconds after the turn, or after the store is back, until it counts as lost."""
_MAX_DETAIL: Final = 1_200
"""Characters of a header: clients that got a longer one would refuse the answer."""
_SWEEPS: Final = 8
"""How often, within the maximum age, overdue turns are looked for."""
_LOG_PAUSE: Final = 10.0
"""Seconds between two log lines about requests that were passed on unmanaged."""
_LOGGER: Final = logging.getLogger("refold.gateway")

Find = Callable[[str, Sequence[bytes]], Awaitable[Sequence[Marked]]]
"""The marks with any of some keys in a tenant's log."""


def not_managed(reason: Reason, detail: str = "") -> str:
    """The value of `Refold-Managed`, a structured field (RFC 9651): a token with parameters."""
    if not detail:
        return f"no; reason={reason}"
    return f"no; reason={reason}; detail={_quoted(detail)}"


def managed(by: str = "", *, logged: bool = True) -> str:
    """The value of `Refold-Managed` for a request that was managed.

    `by` says why the provider has the last word on what the model sees, if it has.
    """
    value = MANAGED if logged else NOT_LOGGED
    return f"{value}; context=provider; detail={_quoted(by)}" if by else value


def _quoted(text: str) -> str:
    escaped = text[:_MAX_DETAIL].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Count(Protocol):
    """Counts what happens to requests; the metrics of the service do."""

    def passed_unmanaged(self, reason: Reason) -> None: ...

    def answer_not_logged(self) -> None: ...

    def unmanaged_lost(self, turns: int) -> None: ...


class NoCount(Count):
    """What counts where nobody asked for metrics: nothing is kept."""


@dataclass(frozen=True)
class OutagePolicy:
    """What the gateway does while its store is unavailable."""

    fail_open: bool = False
    """Whether requests are passed on unmanaged; else they are refused."""
    max_age: float = MAX_AGE
    """Seconds that a client has to send its history again."""
    count: Count = field(default_factory=NoCount)
    available: Callable[[], bool] = lambda: True
    """Whether the store is asked at the moment."""
    available_since: Callable[[], float] = lambda: float("-inf")
    """When the last outage ended, by the monotonic clock."""
    recovered: Callable[[], Awaitable[None]] | None = None
    """Waits until the store is back; without it nothing is put off until then."""


class _Turn(NamedTuple):
    """The newest turn of a conversation that is not logged, and those before it."""

    time: float
    turns: int
    key: bytes
    """The mark that the log has once the turn is there, whichever gateway wrote it."""


class UnmanagedTurns:
    """Turns that are not in the log, by the conversation's fingerprint."""

    def __init__(
        self,
        policy: OutagePolicy,
        find: Find,
        *,
        max_turns: int = MAX_TURNS,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy
        self._find = find
        self._max_turns = max_turns
        self._tick = tick
        self._turns: OrderedDict[tuple[str, bytes], _Turn] = OrderedDict()
        self._sweeping: asyncio.Task[None] | None = None
        self._logged_at = float("-inf")
        self._not_in_log_line = 0

    def __len__(self) -> int:
        """How many turns are known not to be in the log yet."""
        return sum(turn.turns for turn in self._turns.values())

    def passed(self, tenant: str, chain: Chain) -> None:
        """A request was answered unmanaged, because the store was unavailable."""
        self._add(tenant, chain, key_of("asked", chain.end))
        self._log_line()

    def not_logged(self, tenant: str, chain: Chain, key: bytes) -> None:
        """An answer was given, and the store could not take it; `key` is its mark."""
        self._policy.count.answer_not_logged()
        self._add(tenant, chain, key)
        self._log_line()

    def logged(self, tenant: str, chain: Chain) -> None:
        """A request is in the log, with all of the history that its client sent."""
        if self._turns:
            self._remove(tenant, chain.content)

    async def sweep(self) -> None:
        """Count the turns as lost whose time is over, unless another gateway logged them."""
        if not self._policy.available():
            return  # no client can have them logged now
        back = self._policy.available_since()
        late = self._tick() - self._policy.max_age
        overdue = [
            (place, turn) for place, turn in self._turns.items() if max(turn.time, back) <= late
        ]
        for place, turn in overdue:
            try:
                logged = await self._find(place[0], [turn.key])
            except RefoldError:
                return  # the next sweep looks for it again
            if self._turns.get(place) is turn:
                del self._turns[place]
                if not logged:
                    self._lost(turn.turns, f"were not sent again within {self._policy.max_age:g} s")

    async def close(self) -> None:
        """Stop; turns that are not logged by now are forgotten."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeping
        if self._turns:
            _LOGGER.warning(
                "The gateway stops with unmanaged turns that their clients have not sent again: "
                "%d. Another gateway logs them when they do; nobody counts them any more.",
                len(self),
            )

    def _add(self, tenant: str, chain: Chain, key: bytes) -> None:
        before = self._remove(tenant, chain.content[:-1])
        self._turns.pop((tenant, chain.end), None)  # the same request again is the same turn
        self._turns[tenant, chain.end] = _Turn(self._tick(), before + 1, key)
        if len(self._turns) > self._max_turns:
            _, oldest = self._turns.popitem(last=False)
            self._lost(oldest.turns, f"are more than {self._max_turns:,} conversations back")
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep_until_empty())

    def _remove(self, tenant: str, links: Iterable[bytes]) -> int:
        removed = (self._turns.pop((tenant, link), None) for link in links)
        return sum(turn.turns for turn in removed if turn is not None)

    async def _sweep_until_empty(self) -> None:
        while self._turns:
            await asyncio.sleep(self._policy.max_age / _SWEEPS)
            await self.sweep()

    def _lost(self, turns: int, why: str) -> None:
        self._policy.count.unmanaged_lost(turns)
        _LOGGER.warning("Unmanaged turns that %s, and so count as lost: %d.", why, turns)

    def _log_line(self) -> None:
        self._not_in_log_line += 1
        now = self._tick()
        if now - self._logged_at >= _LOG_PAUSE:
            _LOGGER.warning(
                "The store is unavailable. Requests passed on or answered without being logged "
                "since the last such line: %d. Each is logged when its client next sends its "
                "history. Turns not logged yet: %d.",
                self._not_in_log_line,
                len(self),
            )
            self._logged_at, self._not_in_log_line = now, 0
