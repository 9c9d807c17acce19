"""What came through an agent's gateway, for the lines that `refold wrap` ends with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_K: Final = 1_000
_IN_CENTS: Final = 0.1
"""Dollars from which on cents say enough."""


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

    @property
    def by_use(self) -> list[str]:
        """The sessions, the one with the most requests first."""
        return sorted(self.sessions, key=lambda name: -self.sessions[name])


def closing_lines(receipt: Receipt, *, keep: bool) -> Iterator[str]:
    """What came through the gateway, in three lines."""
    if not receipt.requests:
        yield "No request came through the gateway, so nothing was kept or compacted."
        return
    summary, names = receipt.summary, receipt.by_use
    more = f", and {len(names) - 1} more for its side requests" if len(names) > 1 else ""
    where = f"session {names[0]}{more}" if names and keep else "nothing was kept"
    failures = f" ({receipt.failed} failed)" if receipt.failed else ""
    yield f"{_counted(receipt.requests, 'request')}{failures}; {where}."
    share = receipt.cached / receipt.sent if receipt.sent else 0.0
    folds = _counted(int(summary["folds"]), "compaction") if summary else "compactions unknown"
    tools = summary.get("recall_tokens")
    recall = f", {_tokens(tools)} per request for the recall tools" if tools else ""
    yield (
        f"{folds}; {_tokens(receipt.sent)} tokens sent ({share:.0%} from the provider's cache"
        f"{recall}), {_tokens(receipt.answered)} answered."
    )
    yield _cost(receipt)


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """The same as values; what is unknown is null."""
    return {
        "requests": receipt.requests,
        "failed": receipt.failed,
        "sessions": receipt.by_use,
        "compactions": receipt.summary.get("folds"),
        "tokens": {
            "sent": receipt.sent,
            "cached": receipt.cached,
            "answered": receipt.answered,
            "recall_tools": receipt.summary.get("recall_tokens"),
        },
        "cost": receipt.summary.get("cost", receipt.cost),
        "cost_of_everything": receipt.summary.get("unmanaged"),
    }


def _cost(receipt: Receipt) -> str:
    cost = receipt.summary.get("cost", receipt.cost)
    instead = receipt.summary.get("unmanaged")
    if cost is None:
        return "What it cost is unknown: the model has no list price here."
    if instead is None or not receipt.summary["folds"]:
        return f"{_dollars(cost)} at list prices; a subscription may bill otherwise."
    return f"{_dollars(cost)} at list prices; sending everything each time: {_dollars(instead)}."


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= _IN_CENTS or not amount else f"${amount:.4f}"


def _counted(count: int, thing: str) -> str:
    return f"1 {thing}" if count == 1 else f"{count:,} {thing}s"


def _tokens(count: int) -> str:
    if count < _K:
        return str(count)
    return f"{count / _K:.1f}k" if count < _K * _K else f"{count / _K / _K:.2f}M"
