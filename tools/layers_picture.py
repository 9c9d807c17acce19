"""Draws docs/pictures/layers.svg: the layers of pyproject.toml, and who imports whom in the code.

With --check it writes nothing and exits with 1 if the picture is out of date.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
from reference import write_or_check

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "layers.svg"

NAME = 120
"""The width of the column of names."""
CELL = 26
GAP = 8
"""Between layers."""
TOP = 104
MARGIN = 12
SLANT = 32
"""How far the last name at the top leans out."""
FONT = "font-family='ui-sans-serif, system-ui, sans-serif' font-size='13'"


def layers() -> list[list[str]]:
    """The packages of each layer, the highest first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (found,) = (one["layers"] for one in contracts if one["id"] == "layers")
    return [layer.split(" | ") for layer in found]


def imports() -> dict[str, set[str]]:
    """Which packages each package imports, lazily too."""
    graph = grimp.build_graph("refold", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        package = _package(module)
        imported = map(_package, graph.find_modules_directly_imported_by(module))
        found.setdefault(package, set()).update(set(imported) - {package, ""})
    return found


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def render() -> str:
    """The whole picture: a row for each package, and a dot under each that it imports."""
    return "\n".join(_lines(layers(), imports())) + "\n"


def _lines(listed: list[list[str]], imported: dict[str, set[str]]) -> Iterator[str]:
    places = _places(listed)
    size = max(places.values()) + CELL + MARGIN
    wide, high = NAME + size + SLANT, TOP + size
    yield (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {wide} {high}' "
        f"width='{wide}' height='{high}' {FONT} role='img'>"
    )
    yield "<title>Which package imports which: each only those further down</title>"
    yield f"<rect width='{wide}' height='{high}' fill='#ffffff'/>"
    for layer in listed:
        yield from _band([places[name] for name in layer], size)
    for name, at in places.items():
        yield from _row(name, at, sorted(imported.get(name, ()), key=places.__getitem__), places)
    yield "</svg>"


def _places(listed: list[list[str]]) -> dict[str, int]:
    """How far each package lies from the first, down and to the right alike."""
    places: dict[str, int] = {}
    at = MARGIN
    for layer in listed:
        for name in layer:
            places[name] = at
            at += CELL
        at += GAP
    return places


def _band(ats: list[int], size: int) -> Iterator[str]:
    """One layer: as a row, and as a column."""
    first, length = ats[0], len(ats) * CELL
    wide = NAME + size - 2 * MARGIN
    yield (
        f"<rect x='{MARGIN}' y='{TOP + first}' width='{wide}' height='{length}' rx='5' "
        "fill='#eef2f7'/>"
    )
    yield (
        f"<rect x='{NAME + first}' y='{TOP}' width='{length}' height='{size - MARGIN}' rx='5' "
        "fill='#5b7fa6' fill-opacity='0.07'/>"
    )


def _row(name: str, at: int, below: list[str], places: dict[str, int]) -> Iterator[str]:
    middle = TOP + at + CELL // 2
    column = NAME + at + CELL // 2
    yield f"<text x='{MARGIN + 10}' y='{middle + 5}' fill='#1d2733'>{name}</text>"
    yield (
        f"<text x='{column}' y='{TOP - 6}' fill='#1d2733' "
        f"transform='rotate(-60 {column} {TOP - 6})'>{name}</text>"
    )
    yield (
        f"<rect x='{column - 6}' y='{middle - 6}' width='12' height='12' rx='3' fill='#c4cfdb'/>"
    )
    for other in below:
        x = NAME + places[other] + CELL // 2
        yield (
            f"<circle cx='{x}' cy='{middle}' r='5' fill='#22578f'>"
            f"<title>{name} imports {other}</title></circle>"
        )


if __name__ == "__main__":
    sys.exit(write_or_check(PICTURE, render, "layers_picture.py"))
