"""Figures, the bars they must reach, and how they are shown."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """A measured value, and the bar it must reach, if there is one."""

    name: str
    value: float
    bar: float | None = None
    reaches: Literal["at least", "at most"] = "at least"

    @property
    def holds(self) -> bool:
        if self.bar is None:
            return True
        return self.value >= self.bar if self.reaches == "at least" else self.value <= self.bar


def as_json(figures: Sequence[Figure]) -> str:
    rows = [
        {"name": one.name, "value": one.value, "bar": one.bar, "holds": one.holds}
        for one in figures
    ]
    return json.dumps({"figures": rows})


def as_table(figures: Sequence[Figure]) -> str:
    width = max((len(one.name) for one in figures), default=0)
    lines = [f"{'figure':{width}}  {'value':>9}  {'bar':>13}  holds"]
    for one in figures:
        bar = "" if one.bar is None else f"{one.reaches} {one.bar:g}"
        holds = "" if one.bar is None else "yes" if one.holds else "NO"
        lines.append(f"{one.name:{width}}  {one.value:9.3g}  {bar:>13}  {holds}")
    return "\n".join(lines)
