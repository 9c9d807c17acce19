"""Put the figures on the page on scale, from `python -m benchmarks scale --json` on standard input.

With `--again`, what follows from the figures on the page is put there, and nothing is read.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.scale_facts import ASSUMED, MEASURED, Fact
from benchmarks.scale_model import SECTIONS, Values

PAGE = Path(__file__).parents[1] / "docs" / "gateway" / "scale.md"
_ROW = re.compile(r"^\| (?P<name>[^|]+) \| (?P<text>[^|]+) \| (?P<value>[^|]+) \|$", re.MULTILINE)


def rendered(page: str, measured: Mapping[str, float] | None = None) -> str:
    """The page with what follows from its figures; with these measured ones, if they are given."""
    if measured is not None:
        page = put(page, "measured", _facts(MEASURED, measured))
    values = {**facts_in(page, "measured", MEASURED), **facts_in(page, "assumed", ASSUMED)}
    for name in SECTIONS:
        page = put(page, name, _lines(name, values))
    return page


def facts_in(page: str, section: str, facts: Iterable[Fact]) -> Values:
    """The values that a table of the page gives; all of them must be there."""
    text = page[slice(*_between(page, section))]
    found = {row["name"]: row["value"] for row in _ROW.finditer(text)}
    return {one.name: float(found[one.name].replace(",", "")) for one in facts}


def put(page: str, section: str, table: str) -> str:
    begin, end = _between(page, section)
    return page[:begin] + "\n" + table + page[end:]


def _between(page: str, section: str) -> tuple[int, int]:
    begin = f"<!-- {section} -->\n"
    return page.index(begin) + len(begin), page.index(f"\n<!-- end of {section} -->")


def _facts(facts: Iterable[Fact], values: Mapping[str, float]) -> str:
    rows = [f"| {one.name} | {one.text} | {_plain(values[one.name])} |\n" for one in facts]
    return "| name | what it is | value |\n|---|---|---|\n" + "".join(rows)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"


def _lines(section: str, values: Values) -> str:
    rows = [
        f"| {one.text} | {one.formula} | {shown(one.value(values), one.unit)} |\n"
        for one in SECTIONS[section]
    ]
    return "| what | from | figure |\n|---|---|---|\n" + "".join(rows)


def shown(value: float, unit: str) -> str:
    """A figure for people: three digits, and a size that can be said."""
    if unit == "B":
        for factor, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if value >= factor:
                return f"{_digits(value / factor)} {name}"
        return f"{value:.0f} B"
    return f"{_digits(value)}{' ' + unit if unit else ''}"


def _digits(value: float) -> str:
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def main() -> None:
    measured: dict[str, float] | None = None
    if "--again" not in sys.argv:
        rows = json.load(sys.stdin)["figures"]
        measured = {one["name"]: one["value"] for one in rows}
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), measured), "utf-8")


if __name__ == "__main__":
    main()
