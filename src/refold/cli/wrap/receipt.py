"""What came through an agent's gateway, for the lines that `refold wrap` ends with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_K: Final = 1_000


@dataclass
class Receipt:
    """What an agent's gateways have reported."""

    requests: int = 0
    sessions: dict[str, int] = field(default_factory=dict[str, int])
    """Each session with its requests, the one used last at the end."""
    sent: int = 0
    """Tokens, cached or not."""
    cached: int = 0
    answered: int = 0
    """Tokens that models wrote."""
    cost: float | None = 0.0
    failed: int = 0
    summary: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the log says of these sessions; empty if the gateway could not say it."""

    def add(self, request: Mapping[str, Any]) -> None:
        self.requests += 1
        self.failed += bool(request["failed"])
        if session := request["session"]:
            self.sessions[session] = self.sessions.pop(session, 0) + 1
        if request["usage"]:
            sent, answered, cached, _ = request["usage"]
            self.sent, self.cached = self.sent + sent, self.cached + cached
            self.answered += answered
        cost = request["cost"]
        self.cost = None if self.cost is None or cost is None else self.cost + cost


def closing_lines(receipt: Receipt, *, keep: bool) -> Iterator[str]:
    """What came through the gateway, in three lines."""
    if not receipt.requests:
        yield "No request came through the gateway, so nothing was kept or compacted."
        return
    summary = receipt.summary
    names = sorted(receipt.sessions, key=lambda name: -receipt.sessions[name])
    others = len(names) - 1
    more = f", and {others} more for its side requests" if others > 0 else ""
    where = f"session {names[0]}{more}" if names and keep else "nothing was kept"
    failed_ = f" ({receipt.failed} failed)" if receipt.failed else ""
    yield f"{_counted(receipt.requests, 'request')}{failed_}; {where}."
    share = receipt.cached / receipt.sent if receipt.sent else 0.0
    folds = _counted(int(summary["folds"]), "compaction") if summary else "compactions unknown"
    yield (
        f"{folds}; {_tokens(receipt.sent)} tokens sent, {share:.0%} of them from the provider's "
        f"cache, and {_tokens(receipt.answered)} answered."
    )
    yield _dollars(receipt.cost, summary)


def _dollars(cost: float | None, summary: Mapping[str, Any]) -> str:
    cost = summary.get("cost", cost) if summary else cost
    if cost is None:
        return "What it cost is unknown: the model has no list price here."
    line = f"${cost:.2f} at list prices"
    instead = summary.get("unmanaged") if summary else None
    if not summary.get("folds") or instead is None:
        return f"{line}; a subscription may bill otherwise."
    return f"{line}; sending everything each time: about ${instead:.2f}."


def _counted(count: int, thing: str) -> str:
    return f"1 {thing}" if count == 1 else f"{count:,} {thing}s"


def _tokens(count: int) -> str:
    if count < _K:
        return str(count)
    return f"{count / _K:.1f}k" if count < _K * _K else f"{count / _K / _K:.2f}M"
