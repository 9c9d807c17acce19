"""The pictures of replays, as SVG: what policies cost and keep, and how large requests would be.

A picture that stands alone brings its style; one in a page has the page's. Whatever names it shows
are escaped. Nothing in it is a script, and nothing is loaded.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from refold.lab.findings import Findings, SessionFindings, percent, tokens

_LEFT, _TOP, _WIDE, _HIGH = 76, 64, 760, 330
_SIZE = 16
_STEPS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
_MAX_TICKS: Final = 8
_MAX_SHARE: Final = 2.0
"""Where the axis of costs ends: what costs more stands at its end, with its figure."""
_MAX_LABEL: Final = 34
SERIES: Final = 5
"""Policies that have a line and a color in the picture of a session."""
_LINES_HIGH, _LINES_TOP, _LINES_BOTTOM = 150, 14, 28


class Point(NamedTuple):
    """A policy: its cost and the share of names that it keeps, each with its 95 % interval."""

    label: str
    ours: bool
    cost: tuple[float, float, float]
    kept: tuple[float, float, float]


def scatter_of(found: Findings) -> str:
    """The picture of what was found, for a page that has the style; empty if there is no point."""
    points = [
        Point(each.name, each.ours, each.share, each.kept) for each in found.points if each.kept
    ]
    if not points:
        return ""
    count = len(found.sessions)
    sessions = "1 session" if count == 1 else f"{count:,} sessions; bars: 95% intervals"
    return scatter(points, sessions, title="Cost against names kept; the table has the figures")


def scatter(points: Sequence[Point], note: str, *, title: str, style: str = "") -> str:
    """A point for each policy with its intervals, as SVG; with a style it stands alone."""
    right = min(_MAX_SHARE, max(1.0, *(point.cost[0] for point in points)))
    step = next(step for step in _STEPS if right / step <= _MAX_TICKS)
    right = -(-right // step) * step
    floor = min(0.8, min(point.kept[1] for point in points) // 0.2 * 0.2)

    def x(cost: float) -> float:
        return _LEFT + _WIDE * min(cost, right) / right

    def y(share: float) -> float:
        return _TOP + _HIGH * (1 - (share - floor) / (1 - floor))

    end, bottom = _LEFT + _WIDE, _TOP + _HIGH
    lines = [
        _opening(470),
        f"<title>{escape(title)}</title>",
        *([style] if style else []),
        '<rect class="paper" x=".5" y=".5" width="879" height="469" rx="12"/>',
        _text("ink head", 24, 36, "Names kept"),
        _text("soft", end, 36, note, "end"),
        _text("ink head", end, 450, "Cost, of sending everything", "end"),
    ]
    for share in (1 - step / 10 for step in range(0, round((1 - floor) / 0.1) + 1, 2)):
        lines.append(f'<path class="grid" d="M{_LEFT} {y(share):.1f}H{end}"/>')
        lines.append(_text("soft", _LEFT - 10, y(share) + 5, f"{share:.0%}", "end"))
    marks = [nth * step for nth in range(round(right / step) + 1)]
    lines += [_text("soft", x(at), bottom + 24, f"{at:.0%}", "middle") for at in marks]
    taken: list[_Box] = []
    for (cost, low, high), (share, least, most) in (point[2:] for point in points):
        taken.append(_around(x(cost), y(share), 9))
        taken.append((x(low), y(share) - 3, x(high), y(share) + 3))
        taken.append((x(cost) - 3, y(most), x(cost) + 3, y(least)))
    for point in sorted(points, key=lambda point: (-point.ours, -point.kept[0])):
        (cost, *costs), (share, *shares) = point.cost, point.kept
        kind = "ours" if point.ours else "theirs"
        across = f"M{x(costs[0]):.1f} {y(share):.1f}H{x(costs[1]):.1f}"
        upright = f"M{x(cost):.1f} {y(shares[0]):.1f}V{y(shares[1]):.1f}"
        about = escape(f"{point.label}: {cost:.0%} of the cost, {percent(share)} of the names")
        label = f"{point.label} ({cost:.0%})" if cost > right else point.label
        lines.append(f'<path class="{kind} bar" d="{across}{upright}"/>')
        lines.append(
            f'<circle class="{kind}" cx="{x(cost):.1f}" cy="{y(share):.1f}" r="7">'
            f"<title>{about}</title></circle>"
        )
        lines += _labeled(_clipped(label), kind, x(cost), y(share), x(costs[1]) - x(cost), taken)
    return "\n".join([*lines, "</svg>", ""])


def window_of(session: SessionFindings) -> str:
    """How large the requests of a session would have been: a line for each policy, as SVG."""
    sizes = session.sizes
    top = max((max(each) for each in sizes.values()), default=0) or 1
    bottom = _LINES_TOP + _LINES_HIGH
    lines = [
        _opening(bottom + _LINES_BOTTOM),
        f"<title>{escape(_spoken(sizes))}</title>",
    ]
    for part in (0, 0.5, 1):
        at = bottom - part * _LINES_HIGH
        lines.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_LEFT + _WIDE}"/>')
        lines.append(_text("soft", _LEFT - 10, at + 5, tokens(round(part * top)), "end"))
    lines.append(_text("soft", _LEFT, bottom + 20, "request 1"))
    last = f"request {session.requests:,}"
    lines.append(_text("soft", _LEFT + _WIDE, bottom + 20, last, "end"))
    for nth, series in reversed([*enumerate([*sizes.values()][:SERIES])]):
        wide = _WIDE / max(1, len(series) - 1)
        places = (
            f"{_LEFT + at * wide:.1f} {bottom - _LINES_HIGH * size / top:.1f}"
            for at, size in enumerate(series)
        )
        lines.append(f'<path class="line s{nth}" d="M{"L".join(places)}"/>')
    return "\n".join([*lines, "</svg>", ""])


def _opening(height: int) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {height}" role="img">'


def _spoken(sizes: Mapping[str, Sequence[int]]) -> str:
    largest = (f"{name} {tokens(max(each))}" for name, each in sizes.items())
    return f"Tokens of each request. At most: {', '.join(largest)}."


def _clipped(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    words = escape(text)
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


_Box = tuple[float, float, float, float]


def _around(x: float, y: float, reach: float) -> _Box:
    return x - reach, y - reach, x + reach, y + reach


def _labeled(  # noqa: PLR0913, PLR0917 - a place, what is drawn there, and what is there already
    label: str, kind: str, x: float, y: float, reach: float, taken: list[_Box]
) -> Iterator[str]:
    """A point's name where nothing else is, with a line to it if that is not beside it."""
    width, away = len(label) * _SIZE * (0.6 if kind == "ours" else 0.53), max(14.0, reach + 6)
    for down in sorted(range(-300, 301, 6), key=abs):
        for left in (x + away, x + 14, x - away - width, x - 14 - width):
            box = (left, y + down - 11, left + width, y + down + 9)
            inside = box[0] > _LEFT and box[2] < _LEFT + _WIDE + 30
            inside = inside and box[1] > _TOP - 14 and box[3] < _TOP + _HIGH
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                if abs(down) > _SIZE:
                    end = left - 3 if left > x else left + width + 3
                    line = f"M{x:.1f} {y:.1f}L{end:.1f} {y + down:.1f}"
                    yield f'<path class="{kind} lead" d="{line}"/>'
                yield _text(f"{kind} label", left, y + down + 5, label)
                return


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


STYLE: Final = """<style>
svg { font-family: system-ui, "Segoe UI", "DejaVu Sans", Helvetica, sans-serif; font-size: 16px }
.paper { fill: #ffffff; stroke: #d5dae1 } .ink { fill: #1f2933 } .soft { fill: #5f6b7a }
.grid { stroke: #e3e7ed } .head { font-weight: 600 } .ours { fill: #c45f06; stroke: #c45f06 }
.theirs { fill: #56657a; stroke: #56657a } .bar { stroke-width: 2; opacity: .55; fill: none }
.lead { stroke-width: 1; opacity: .6; fill: none } .label { stroke: none }
.ours.label { font-weight: 600 }
@media (prefers-color-scheme: dark) {
.paper { fill: #171b22; stroke: #323a46 } .ink { fill: #e6eaf0 } .soft { fill: #9aa6b5 }
.grid { stroke: #2a313c } .ours { fill: #f0973c; stroke: #f0973c }
.theirs { fill: #a7b4c5; stroke: #a7b4c5 }
.bar, .lead { fill: none } .label { stroke: none }
}
</style>"""
"""Of a picture that stands alone."""
