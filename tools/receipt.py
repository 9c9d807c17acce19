"""Recomputes `refold receipt` from an export, with the standard library alone.

    refold export SESSION | python tools/receipt.py [SECONDS]

SECONDS is how long the provider's cache lives after its last use: 300 if none are given. It knows
nothing of Refold but the entries `request`, `usage`, `fold.step`, `fold.complete`, `fold.failed`,
`findings`, `rewind` and `clear` of its JSON lines, and prints dollars as JSON; `broken` is how
often the debt exceeded what was promised.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any


class Rule:
    """The rule of one open fold: what debt is not to exceed, from the moves that were recorded."""

    def __init__(self) -> None:
        self.debt = self.price = self.rereads = self.undoing = self.reread = self.outside = 0.0
        self.unfolded = False
        self.before: dict[str, Any] | None = None
        self.spent = self.paid = self.q = 0.0

    @property
    def promise(self) -> float:
        extra = 2 * self.undoing + self.reread if self.rereads else 0.0
        return self.price + self.outside + extra

    def spend(self, cost: float, *, outside: bool) -> None:
        self.debt, self.spent = self.debt + cost, self.spent + cost
        self.outside += max(0.0, cost) if outside else 0.0

    def request(
        self, moves: dict[str, Any], paid: float, whole: float, reread: float, cut: float
    ) -> None:
        self.price = max(self.price, moves["stated"])
        unpaid = max(0.0, moves["stated"]) + max(0.0, moves["outside"] + cut)
        self.outside += max(0.0, moves["outside"] + cut)
        if moves["undone"]:
            self.unfolded, self.undoing = True, max(self.undoing, moves["unfolding"])
        if moves["reopened"] and self.unfolded:
            self.outside = max(self.outside, self.debt + unpaid - self.price)
            self.unfolded = False
            self.rereads = self.undoing = self.reread = 0.0
        self.before, self.spent = {**vars(self), "spent": 0.0}, 0.0
        self.paid, self.q = paid, moves["unfolding"]
        self._after(paid - whole, reread)

    def retract(self) -> None:
        """The newest request only asked for what is folded: the whole account has none of it."""
        if self.before and not self.unfolded and not self.before["unfolded"]:
            paid, q, spent = self.paid, self.q, self.spent
            vars(self).update(self.before, q=q)
            self._after(paid, max(0.0, paid))
            self.debt, self.spent = self.debt + spent, spent
        self.before = None

    def _after(self, more: float, reread: float) -> None:
        self.debt += more
        self.rereads += reread
        self.undoing, self.reread = max(self.undoing, self.q), max(self.reread, reread)
        if self.debt <= 0:
            self.price = self.rereads = self.undoing = self.reread = self.outside = 0.0
            self.unfolded = False


def account(lines: Iterable[str], lifetime: float = 300.0) -> dict[str, float]:  # noqa: C901, PLR0912, PLR0915 - one pass
    sums: Any = defaultdict(float)
    sent: dict[int, int] = {}
    steps: set[str] = set()
    pending, over = 0.0, False
    rule, doubt = Rule(), 0.0
    chains: Any = defaultdict(
        lambda: {"model": None, "at": 0, "back": [(0, 0)], "new": 0, "last": None}
    )
    for line in map(json.loads, lines):
        kind, seq, scope = line.get("kind"), line.get("seq"), line.get("scope", "/")
        body = json.loads(line["text"]) if "text" in line else line.get("body")
        if kind == "request":
            sent[seq] = line["at"]
        elif kind == "clear":
            chains["/"]["back"].append((seq, 0))
        elif kind == "rewind":
            back = chains["/"]["back"]
            back.append((seq, [total for at, total in back if at <= body["to"]][-1]))
        elif kind == "fold.step" and body.get("spent"):
            steps.add(body["fold"])
            pending += body["spent"].get("cost") or 0
            rule.spend(body["spent"].get("cost") or 0, outside=False)
        elif kind in ("fold.complete", "findings") and isinstance(body.get("summary"), dict):
            if body.get("fold") not in steps and body["summary"].get("usage"):
                pending += body["summary"].get("cost") or 0
                rule.spend(body["summary"].get("cost") or 0, outside=kind == "findings")
        elif kind == "usage":
            chain, used, basis, cost = (
                chains[scope],
                body["usage"],
                body.get("basis"),
                body.get("cost"),
            )
            if not basis or cost is None:
                sums["older"] += cost or 0
                chain.update(model=None, at=line["at"], last=None, asked=line["at"], sent=0)
                continue
            if chain["model"] not in (None, basis["model"]):
                chain.update(at=0, new=0, caches=False, asked=0, scale=0)
            chain["model"] = basis["model"]
            chain["caches"] = chain.get("caches") or used["cache_read"] or used["cache_write"]
            if basis["extra"] and chain["last"]:
                was_whole, chain["at"], chain["new"] = chain["last"]
                sums["whole"] -= was_whole
            prices, back = basis["prices"], chain["back"][-1][1]
            plain = prices["input"] or 0
            read = plain if prices["cache_read"] is None else prices["cache_read"]
            writes = used["cache_write"] and prices["cache_write"] is not None
            write = prices["cache_write"] if writes else plain
            chain["back"].append((seq, back + basis["read_back"]))
            size = max(0, basis["whole"] - basis["added"] - back - basis["read_back"])
            before = max(0, basis["before"] - basis["added"] - back)
            start = sent.get(body["request"], line["at"])
            warm = chain["caches"] and chain["at"] and start - chain["at"] <= lifetime * 1000
            kept = min(size, max(0, before - chain["new"])) if warm else 0
            scale = used["input"] / basis["counted"] if basis["counted"] else 1
            tokens = scale * (kept * read + (size - kept) * write)
            whole = (tokens + used["output"] * (prices["output"] or 0)) / 1_000_000
            over = size > basis["limit"]
            sums["over_window" if over else "paid"] += cost + pending
            sums["whole"] += 0 if over else whole
            if scope == "/" and (moves := basis.get("rule")):
                if basis["extra"]:
                    rule.retract()
                asked, lost = chain.get("asked", 0), 0.0
                if chain["caches"] and asked and start - asked <= lifetime * 1000:
                    missed = max(0, chain.get("sent", 0) - used["cache_read"])
                    lost = missed * (write - read) / 1_000_000
                prefix, dollars = (read if used["cache_read"] else write), scale / 1_000_000
                apart = dollars * basis["added"] * prefix + (0.0 if moves["moved_by"] else lost)
                fresh = min(basis["read_back"], moves["carried"])
                older = (moves["carried"] - fresh) * (write if moves["moved_by"] else prefix)
                reread = dollars * (fresh * write + older)
                if (moves["undone"] or rule.unfolded) and not moves["reopened"]:
                    apart, reread = apart + reread, 0.0
                if over:
                    rule.before, rule.spent = None, 0.0
                else:
                    moves |= {k: moves[k] * scale for k in ("stated", "outside", "unfolding")}
                    if not (moves["unfolding"] or moves["moved_by"]):
                        rule.request(moves, whole, whole, 0.0, 0.0)
                    else:
                        cut = lost if moves["moved_by"] == "cut" else 0.0
                        rule.request(moves, cost - apart, whole, reread, cut)
                        if chain.get("scale") and used.get("estimated") is not True:
                            off = abs(used["input"] - chain["scale"] * basis["counted"])
                            doubt += off * write / 1_000_000
                        doubt = doubt if rule.debt > 0 else 0.0
                    sums["promised"] = max(sums["promised"], rule.promise)
                    sums["broken"] += rule.debt > rule.promise + doubt + 1e-9
                    sums["outside_cost"] = max(sums["outside_cost"], rule.outside)
            new = chain["new"] + max(0, size - before)
            chain["last"] = (0 if over else whole, chain["at"], new)
            counted = 0 if used.get("estimated") is True else used["input"]
            chain.update(
                at=line["at"], new=0, asked=line["at"], sent=counted, scale=counted and scale
            )
            pending = 0.0
    sums["over_window" if over else "paid"] += pending
    names = ("paid", "whole", "over_window", "older", "promised", "broken", "outside_cost")
    return {name: sums[name] for name in names}


if __name__ == "__main__":
    print(json.dumps(account(sys.stdin, *map(float, sys.argv[1:2]))))
