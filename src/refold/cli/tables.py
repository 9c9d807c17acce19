"""Tables of plain text."""

import shutil
from collections.abc import Sequence

GAP = "  "
NOTHING = "–"  # noqa: RUF001 - a dash that is as wide as a digit


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """The rows as lines with columns; those named in `right` end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def clipped(text: str, width: int) -> str:
    """The text, or as much as fits."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def terminal_width() -> int:
    """How many columns there are; 80 where nobody says."""
    return shutil.get_terminal_size().columns
