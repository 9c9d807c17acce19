"""The picture of what policies cost and keep: a point for each, with its intervals."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LEFT, _TOP, _WIDE, _HIGH = 76, 64, 760, 330
_SIZE = 16


class Point(NamedTuple):
    """A policy: its cost and the share of names that it keeps, each with its 95 % interval."""

    label: str
    ours: bool
    cost: tuple[float, float, float]
    kept: tuple[float, float, float]


def drawn(sessions: int, points: Sequence[Point]) -> str:
    """The picture as SVG, for light and dark pages."""
    right = -(-max(point.cost[0] for point in points) // 0.25) * 0.25
    floor = min(point.kept[1] for point in points) // 0.2 * 0.2

    def x(cost: float) -> float:
        return _LEFT + _WIDE * min(cost, right) / right

    def y(share: float) -> float:
        return _TOP + _HIGH * (1 - (share - floor) / (1 - floor))

    end, bottom = _LEFT + _WIDE, _TOP + _HIGH
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 470" role="img">',
        f"<title>Cost against names kept, on {sessions} recorded sessions</title>",
        _STYLE,
        '<rect class="card" x=".5" y=".5" width="879" height="469" rx="12"/>',
        _text("ink head", 24, 36, "Names kept"),
        _text("soft", end, 36, f"{sessions} recorded sessions; bars: 95% intervals", "end"),
        _text("ink head", end, 450, "Cost, of sending everything", "end"),
    ]
    for share in (1 - step / 10 for step in range(0, round((1 - floor) / 0.1) + 1, 2)):
        lines.append(f'<path class="grid" d="M{_LEFT} {y(share):.1f}H{end}"/>')
        lines.append(_text("soft", _LEFT - 10, y(share) + 5, f"{share:.0%}", "end"))
    quarters = [step / 4 for step in range(round(right * 4) + 1)]
    lines += [_text("soft", x(at), bottom + 24, f"{at:.0%}", "middle") for at in quarters]
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
        lines.append(f'<path class="{kind} bar" d="{across}{upright}"/>')
        lines.append(f'<circle class="{kind}" cx="{x(cost):.1f}" cy="{y(share):.1f}" r="7"/>')
        lines += _labeled(point.label, kind, x(cost), y(share), x(costs[1]) - x(cost), taken)
    return "\n".join([*lines, "</svg>", ""])


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


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
                yield _text(f"{kind} name", left, y + down + 5, label)
                return


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


_STYLE = """<style>
svg { font-family: system-ui, "Segoe UI", "DejaVu Sans", Helvetica, sans-serif; font-size: 16px }
.card { fill: #ffffff; stroke: #d5dae1 } .ink { fill: #1f2933 } .soft { fill: #5f6b7a }
.grid { stroke: #e3e7ed } .head { font-weight: 600 } .ours { fill: #c45f06; stroke: #c45f06 }
.theirs { fill: #56657a; stroke: #56657a } .bar { stroke-width: 2; opacity: .55; fill: none }
.lead { stroke-width: 1; opacity: .6; fill: none } .name { stroke: none }
.ours.name { font-weight: 600 }
@media (prefers-color-scheme: dark) {
.card { fill: #171b22; stroke: #323a46 } .ink { fill: #e6eaf0 } .soft { fill: #9aa6b5 }
.grid { stroke: #2a313c } .ours { fill: #f0973c; stroke: #f0973c }
.theirs { fill: #a7b4c5; stroke: #a7b4c5 }
.bar, .lead { fill: none } .name { stroke: none }
}
</style>"""
