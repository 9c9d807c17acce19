"""Recomputes `refold receipt` from an export, with the standard library alone.

    refold export SESSION | python tools/receipt.py [SECONDS]

SECONDS is how long the provider's cache lives after its last use: 300 if none are given. It knows
nothing of Refold but the entries `request`, `usage`, `fold.step`, `fold.complete`, `fold.failed`,
`findings`, `rewind` and `clear` of its JSON lines, and prints dollars as JSON.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any


def account(lines: Iterable[str], lifetime: float = 300.0) -> dict[str, float]:  # noqa: C901, PLR0915 - one pass
    sums: Any = defaultdict(float)
    sent: dict[int, int] = {}
    steps: set[str] = set()
    pending, over = 0.0, False
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
        elif kind in ("fold.complete", "findings") and isinstance(body.get("summary"), dict):
            if body.get("fold") not in steps and body["summary"].get("usage"):
                pending += body["summary"].get("cost") or 0
        elif kind == "usage":
            chain, used, basis, cost = (
                chains[scope],
                body["usage"],
                body.get("basis"),
                body.get("cost"),
            )
            if not basis or cost is None:
                sums["older"] += cost or 0
                chain.update(model=None, at=line["at"], last=None)
                continue
            if chain["model"] not in (None, basis["model"]):
                chain.update(at=0, new=0, caches=False)
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
            pause = sent.get(body["request"], line["at"]) - chain["at"]
            warm = chain["caches"] and chain["at"] and pause <= lifetime * 1000
            kept = min(size, max(0, before - chain["new"])) if warm else 0
            scale = used["input"] / basis["counted"] if basis["counted"] else 1
            tokens = scale * (kept * read + (size - kept) * write)
            whole = (tokens + used["output"] * (prices["output"] or 0)) / 1_000_000
            over = size > basis["limit"]
            sums["over_window" if over else "paid"] += cost + pending
            sums["whole"] += 0 if over else whole
            new = chain["new"] + max(0, size - before)
            chain["last"] = (0 if over else whole, chain["at"], new)
            chain.update(at=line["at"], new=0)
            pending = 0.0
    sums["over_window" if over else "paid"] += pending
    return {name: sums[name] for name in ("paid", "whole", "over_window", "older")}


if __name__ == "__main__":
    print(json.dumps(account(sys.stdin, *map(float, sys.argv[1:2]))))
