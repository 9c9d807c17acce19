"""What came through an agent's gateway, for the lines that `refold wrap` ends with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_K: Final = 1_000
_IN_CENTS: Final = 0.1
"""Dollars from which on cents say enough."""


@dataclass
class Traffic:
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


def closing_lines(traffic: Traffic, *, keep: bool) -> Iterator[str]:
    """What came through the gateway, in three lines."""
    if not traffic.requests:
        yield "No request came through the gateway, so nothing was kept or compacted."
        return
    summary, names = traffic.summary, traffic.by_use
    more = f", and {len(names) - 1} more for its side requests" if len(names) > 1 else ""
    where = f"session {names[0]}{more}" if names and keep else "nothing was kept"
    failures = f" ({traffic.failed} failed)" if traffic.failed else ""
    yield f"{_counted(traffic.requests, 'request')}{failures}; {where}."
    share = traffic.cached / traffic.sent if traffic.sent else 0.0
    folds = _counted(int(summary["folds"]), "compaction") if summary else "compactions unknown"
    tools = summary.get("recall_tokens")
    recall = f", {_tokens(tools)} per request for the recall tools" if tools else ""
    yield (
        f"{folds}; {_tokens(traffic.sent)} tokens sent ({share:.0%} from the provider's cache"
        f"{recall}), {_tokens(traffic.answered)} answered."
    )
    yield _cost(traffic)


def traffic_json(traffic: Traffic) -> dict[str, Any]:
    """The same as values; what is unknown is null."""
    return {
        "requests": traffic.requests,
        "failed": traffic.failed,
        "sessions": traffic.by_use,
        "compactions": traffic.summary.get("folds"),
        "tokens": {
            "sent": traffic.sent,
            "cached": traffic.cached,
            "answered": traffic.answered,
            "recall_tools": traffic.summary.get("recall_tokens"),
        },
        "cost": traffic.summary.get("billed", traffic.cost),
        "compared": {name: traffic.summary.get(name) for name in ("compared", "paid", "whole")},
    }


def _cost(traffic: Traffic) -> str:
    summary = traffic.summary
    cost = summary.get("billed", traffic.cost)
    if cost is None or summary.get("unpriced"):
        return "What it cost is unknown: the model has no list price here."
    line = f"{_dollars(cost)} at list prices"
    if not summary.get("folds"):
        return f"{line}; a subscription may bill otherwise."
    if not summary["compared"]:
        return f"{line}; the full history would not have fit in any request."
    whole = f"{_dollars(summary['whole'])} with the full history in each request"
    if summary["compared"] == summary["requests"]:
        return f"{line}, against {whole}. The account: refold receipt"
    some = f"the {_counted(summary['compared'], 'request')} whose full history would fit"
    return f"{line}. For {some}: {_dollars(summary['paid'])}, against {whole}."


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= _IN_CENTS or not amount else f"${amount:.4f}"


def _counted(count: int, thing: str) -> str:
    return f"1 {thing}" if count == 1 else f"{count:,} {thing}s"


def _tokens(count: int) -> str:
    if count < _K:
        return str(count)
    return f"{count / _K:.1f}k" if count < _K * _K else f"{count / _K / _K:.2f}M"
