"""What the pages that are generated have in common."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def write_or_check(page: Path, render: Callable[[], str], script: str) -> int:
    """The command line of a generator: write the page, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=f"Make {page.name} anew.")
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    if not parser.parse_args().check:
        page.write_text(render(), encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != render():
        print(f"{page.name} is out of date: run `python tools/{script}`.", file=sys.stderr)
        return 1
    return 0
