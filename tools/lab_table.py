"""Writes what `refold lab` measures on recorded sessions into the README and the comparison.

python tools/lab_table.py FILE …

The recordings are not part of the project. Each column has one figure for each file.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reference import table

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": True, "docs/start/how-it-compares.md": False}
"""The pages, and whether they have only the rows that matter most."""
BEGIN, END = "<!-- measured by tools/lab_table.py -->\n", "<!-- end of measured -->"
NAMES = {
    "none": "everything",
    "sliding window, naive": "the newest messages that fit",
    "sliding window, pair-safe": "the newest that fit, calls kept with their results",
    "mask, rolling": "old tool results out, always",
    "mask, batched": "old tool results out, when the window is full",
    "head and tail only": "head and tail only",
    "head / ledger / tail": "first and newest messages, a list of names between",
    "balanced": "**Refold, as it comes** (`balanced`)",
    "copilot": "Refold, profile `copilot`",
    "co-cli": "Refold, profile `co-cli`",
    "inkeep": "Refold, profile `inkeep`",
    "cowagent": "Refold, profile `cowagent`",
}
SHORT = (
    "none",
    "sliding window, naive",
    "mask, batched",
    "head and tail only",
    "balanced",
)
_FIXED = "\N{NO-BREAK SPACE}"
"""So that a narrow screen breaks a cell between two figures only."""
HEAD = ("what is sent", "cost", "names kept", "from the cache", "refused", "largest request")


def rows(reports: Sequence[dict[str, Any]], *, short: bool) -> Iterator[tuple[str, ...]]:
    """One row for each policy."""
    each = [{one["policy"]: one for one in report["policies"]} for report in reports]
    for policy in SHORT if short else NAMES:
        found = [report[policy] for report in each]
        yield (
            NAMES[policy],
            _together(f"{one['cost_ratio']:.0%}" for one in found),
            _together(f"{one['retained']['rate']:.0%}" for one in found),
            _together(f"{one['cache_hits']:.1%}" for one in found),
            _together(str(one["refused"]) for one in found),
            _together(f"{one['largest']:,}" for one in found),
        )


def _together(figures: Iterator[str]) -> str:
    return f"{_FIXED}· ".join(figures).replace("%", f"{_FIXED}%")


def replaced(page: str, made: Sequence[str]) -> str:
    """The page with another table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(made) + f"\n{END}{after}"


def measured(path: Path) -> dict[str, Any]:
    """What the lab says of one file."""
    command = [sys.executable, "-m", "refold.cli", "lab", str(path), "--all", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own
    return json.loads(done.stdout)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    reports = [measured(path) for path in parser.parse_args().files]
    for name, short in PAGES.items():
        page = ROOT / name
        made = [*table(HEAD, rows(reports, short=short))]
        page.write_text(replaced(page.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
