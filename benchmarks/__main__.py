"""Run a benchmark: `python -m benchmarks NAME [--quick] [--json]`."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import (
    agent,
    chat,
    console,
    economics,
    engine,
    fold,
    gateway,
    ground,
    log,
    neighbors,
    outage,
    pace,
    recall,
    replay,
    scale,
    start,
    summaries,
    tasks,
    totals,
    view,
    warm,
    windows,
)
from benchmarks.figures import Figure, as_json, as_table

BENCHMARKS = {
    "agent": agent.figures,
    "chat": chat.figures,
    "console": console.figures,
    "economics": economics.figures,
    "engine": engine.figures,
    "fold": fold.figures,
    "gateway": gateway.figures,
    "ground": ground.figures,
    "log": log.figures,
    "neighbors": neighbors.figures,
    "pace": pace.figures,
    "outage": outage.figures,
    "recall": recall.figures,
    "replay": replay.figures,
    "scale": scale.figures,
    "start": start.figures,
    "summaries": summaries.figures,
    "tasks": tasks.figures,
    "totals": totals.figures,
    "view": view.figures,
    "warm": warm.figures,
    "windows": windows.figures,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="smaller, in under a minute")
    parser.add_argument(
        "--tries",
        type=int,
        default=1,
        help="measure again, so often at most, while a figure falls short: machines are noisy",
    )
    parser.add_argument(
        "--only-show",
        metavar="TEXT",
        action="append",
        default=[],
        help="figures with TEXT in their names may fall short of their bars; repeatable",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args()
    for _ in range(options.tries):
        figures = BENCHMARKS[options.name](quick=options.quick)
        print(as_json(figures) if options.json else as_table(figures))
        if all(figure.holds or _only_shown(figure, options.only_show) for figure in figures):
            return 0
    return 1


def _only_shown(figure: Figure, texts: Sequence[str]) -> bool:
    return any(text in figure.name for text in texts)


if __name__ == "__main__":
    sys.exit(main())
