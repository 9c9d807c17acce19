"""Draws docs/pictures/demo-folding.svg: the log and the view while `refold demo` plays.

python tools/demo_picture.py [--check]

Every bar and figure is of a real run. The picture moves where pictures may move, and is the end
of the run where they may not.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from xml.sax.saxutils import escape

from demo_frames import Cell, Frame, frames
from reference import write_or_check

from refold.cli.demo.play import Played
from refold.cli.demo.script import PROMPTS, WINDOW

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "demo-folding.svg"

WIDTH, HEIGHT, LEFT, RIGHT = 880, 400, 30, 850
LOG, VIEW, TALL = 132, 232, 44
"""Where the two rows of bars begin, and how tall they are."""
ROWS = {"log": "The log keeps every word", "view": "The model is sent what fits"}
TICK, LOOK, LAST, MOVE, BLINK = 0.6, 2.8, 6.0, 0.45, 0.05
"""Seconds: for a request, one that shows something new, the end, a movement, another text."""
_STYLE = """
svg { font-family: system-ui, "Segoe UI", "DejaVu Sans", Helvetica, sans-serif }
.card { fill: #ffffff; stroke: #d5dae1 } .ink { fill: #1f2933 } .soft { fill: #5f6b7a }
.track { fill: #eef1f5 } .prompt { fill: #2f6fde } .answer { fill: #79a7ee }
.result { fill: #b9c3d0 } .fixed { fill: #8592a3 } .fold { fill: #e07b1a }
.window { stroke: #c62f3b } .over { fill: #c62f3b }
.beam { stroke: #0f8a5f; fill: none } .found { fill: none; stroke: #0f8a5f } .good { fill: #0b7650 }
@media (prefers-color-scheme: dark) {
.card { fill: #171b22; stroke: #323a46 } .ink { fill: #e6eaf0 } .soft { fill: #9aa6b5 }
.track { fill: #222934 } .prompt { fill: #5d95f5 } .answer { fill: #3f6cb8 }
.result { fill: #56616f } .fixed { fill: #77849a } .fold { fill: #f0973c }
.window { stroke: #f0707a } .over { fill: #f0707a }
.beam { stroke: #35c08d } .found { stroke: #35c08d } .good { fill: #4fd3a2 }
}
.head { font-size: 22px; font-weight: 600 } .line { font-size: 17px } .small { font-size: 15px }
.u { transform-origin: 0 0 }
@media (prefers-reduced-motion: reduce) { * { animation: none !important } }
"""
State = tuple[float, float, float]
"""Of a bar: where it begins, how wide it is, whether it is seen."""


class Drawing:
    """The picture of a run, and the times at which it changes."""

    def __init__(self, played: Played, run: Sequence[Frame]) -> None:
        self.played = played
        self.run = run
        last = run[-1]
        said = sum(cell.tokens for cell in last.log)
        # The counter of an explanation estimates; what was used is known. One factor suits all.
        self._true = (last.unmanaged - last.view[0].tokens) / said
        self._scale = (RIGHT - LEFT) / last.unmanaged
        self.folding = [at for at in range(1, len(run)) if run[at].fold != run[at - 1].fold]
        self.recalled = next(at for at in range(len(run)) if self._reads(run[at]))
        self.refused = next(at for at in range(len(run)) if run[at].unmanaged > WINDOW)
        self.starts = [*self._starts()]
        self.length = self.starts[-1] + LAST
        self.rules: list[str] = []

    def _reads(self, frame: Frame) -> bool:
        """Whether what was folded away is in what this request sends."""
        asked = self.played.detail.asked_in_turn
        return frame.turn == asked and frame is [one for one in self.run if one.turn == asked][-1]

    def _starts(self) -> Iterator[float]:
        at = 0.3
        for nth in range(len(self.run)):
            yield at
            shows = nth in self.folding or nth in (self.recalled, self.refused)
            at += LOOK if shows else TICK

    def states(self, row: str, name: str) -> list[State]:
        """Of one bar, at each request: it grows where it belongs, and goes into a fold."""
        places = [self._place(frame, row, name) for frame in self.run]
        first = next(place for place in places if place)
        found: list[State] = []
        for frame, place in zip(self.run, places, strict=True):
            if place is not None:
                found.append((*place, 1.0))
            elif found and found[-1][2]:
                found.append((self._fold_at(frame, row), 0.0, 0.0))
            else:
                found.append(found[-1] if found else (first[0], 0.0, 0.0))
        return found

    def _place(self, frame: Frame, row: str, name: str) -> tuple[float, float] | None:
        x = float(LEFT)
        for cell in self._cells(frame, row):
            wide = self._wide(cell)
            if cell.name == name:
                return round(x, 1), max(0.6, round(wide - 0.8, 1))
            x += wide
        return None

    def _fold_at(self, frame: Frame, row: str) -> float:
        fold = frame.fold
        place = self._place(frame, row, fold.name) if fold else None
        return place[0] if place else float(LEFT)

    def _cells(self, frame: Frame, row: str) -> Sequence[Cell]:
        return (frame.view[0], *frame.log) if row == "log" else frame.view

    def _wide(self, cell: Cell) -> float:
        return cell.tokens * self._scale * (1 if cell.kind == "fixed" else self._true)

    def percent(self, seconds: float) -> str:
        """A time, as keyframes have it."""
        return f"{100 * min(seconds, self.length) / self.length:.2f}%"

    def animated(
        self, name: str, states: Sequence[object], css: Sequence[str], takes: float = MOVE
    ) -> str:
        """The attribute that moves an element; nothing where it never changes."""
        if all(state == states[0] for state in states):
            return ""
        steps = [f"0%{{{css[0]}}}"]
        for at in range(1, len(states)):
            if states[at] != states[at - 1]:
                steps.append(f"{self.percent(self.starts[at])}{{{css[at - 1]}}}")
                steps.append(f"{self.percent(self.starts[at] + takes)}{{{css[at]}}}")
        steps.append(f"100%{{{css[-1]}}}")
        self.rules.append(f"@keyframes {name}{{{''.join(steps)}}}")
        return f' style="animation:{name} {self.length:.1f}s linear infinite"'

    def bars(self, row: str, top: int) -> Iterator[str]:
        """All bars of a row."""
        seen: dict[str, Cell] = {}
        for frame in self.run:
            seen |= {cell.name: cell for cell in self._cells(frame, row)}
        for cell in seen.values():
            states = self.states(row, cell.name)
            css = [
                f"transform:translate({x}px,{top}px) scale({wide},1);opacity:{shown:.0f}"
                for x, wide, shown in states
            ]
            moves = self.animated(f"{row[0]}{cell.name}", states, css)
            x, wide, shown = states[-1]
            yield (
                f'<rect class="u {cell.kind}" width="1" height="{TALL}" opacity="{shown:.0f}" '
                f'transform="translate({x} {top}) scale({wide} 1)"{moves}/>'
            )

    def text(self, name: str, lines: Sequence[str], where: str) -> Iterator[str]:
        """A line of text that says something else at each request; the last stays."""
        for line in dict.fromkeys(lines):
            states = [line == one for one in lines]
            css = [f"opacity:{state:d}" for state in states]
            nth = len(self.rules)
            moves = self.animated(f"{name}{nth}", states, css, BLINK)
            yield f'<text {where} opacity="{states[-1]:d}"{moves}>{escape(line)}</text>'

    def shown_from(self, at: int, element: str, name: str) -> str:
        """An element that appears at a request, and stays."""
        states = [nth >= at for nth in range(len(self.run))]
        moves = self.animated(name, states, [f"opacity:{state:d}" for state in states])
        return f"<g{moves}>{element}</g>"

    def captions(self) -> list[str]:
        """What happens, in words."""
        folds = dict(zip(self.folding, self.played.folds, strict=True))
        detail, said = self.played.detail, ""
        found: list[str] = []
        for at, frame in enumerate(self.run):
            if at in folds:
                one = folds[at]
                said = (
                    f"Turn {one.turn}: {one.messages} messages folded, {one.tokens_before:,} → "
                    f"{one.tokens_after:,} tokens. No model was asked."
                )
            elif at == self.refused:
                said = f"Turn {frame.turn}: without folds, requests would be too long from here on."
            elif at == self.recalled:
                said = (
                    f"Turn {frame.turn}: asked for a detail of turn {detail.said_in_turn}. The "
                    f"model reads entry {detail.entry} again: {detail.found}."
                )
            found.append(said)
        found[-1] = (
            f"Largest request: {self.played.with_refold.largest_request:,} tokens, not "
            f"{self.played.without.largest_request:,}. Kept: "
            f"{self.played.kept} of {self.played.said}. Found again: {detail.found}."
        )
        return found

    def body(self) -> Iterator[str]:
        """All that is drawn."""
        run, edge = self.run, round(LEFT + WINDOW * self._scale, 1)
        size = f'width="{WIDTH - 1}" height="{HEIGHT - 1}"'
        yield f'<rect class="card" x=".5" y=".5" {size} rx="10"/>'
        yield f'<text class="ink head" x="{LEFT}" y="40">refold demo</text>'
        turns = [f"turn {frame.turn} of {self.played.turns}" for frame in run]
        yield from self.text("t", turns, f'class="soft line" x="{RIGHT}" y="40" text-anchor="end"')
        asked = [f"“{shorten(PROMPTS[frame.turn - 1], 88, placeholder='…')}”" for frame in run]
        yield from self.text("q", asked, f'class="ink line" x="{LEFT}" y="74"')
        yield from self._row("log", LOG, -12, [one.unmanaged for one in run])
        yield from self._row("view", VIEW, TALL + 24, [one.sent for one in run])
        dashes = 'class="window" stroke-width="1.6" stroke-dasharray="5 4"'
        yield f'<path {dashes} d="M{edge} {LOG - 8}V{VIEW + TALL + 6}"/>'
        note = f'class="over small" x="{edge + 7}" y="{LOG + TALL + 32}"'
        yield f"<text {note}>the window ends here: {WINDOW:,} tokens</text>"
        yield from self._beam()
        yield from self.text("c", self.captions(), f'class="ink line" x="{LEFT}" y="340"')
        yield from self._legend()

    def _row(self, row: str, top: int, label: int, sizes: Sequence[int]) -> Iterator[str]:
        yield f'<text class="ink line" x="{LEFT}" y="{top + label}">{ROWS[row]}</text>'
        yield f'<rect class="track" x="{LEFT}" y="{top}" width="{RIGHT - LEFT}" height="{TALL}"/>'
        where = f'class="soft line" x="{RIGHT}" y="{top + label}" text-anchor="end"'
        yield from self.text(row[0], [f"{size:,} tokens" for size in sizes], where)
        yield from self.bars(row, top)

    def _beam(self) -> Iterator[str]:
        """From where a detail is in the log to where the model reads it again."""
        entry = f"m{self.played.detail.entry}"
        x, wide, _ = self.states("log", entry)[-1]
        results = [cell for cell in self.run[self.recalled].view if cell.kind == "result"]
        at, across, _ = self.states("view", results[-1].name)[-1]
        start, end = x + wide / 2, at + across / 2
        middle = (LOG + TALL + VIEW) / 2
        path = f"M{start:.1f} {LOG + TALL}C{start:.1f} {middle},{end:.1f} {middle},{end:.1f} {VIEW}"
        line = 'stroke-width="2.2"'
        drawn = (
            f'<rect class="found" {line} x="{x}" y="{LOG}" width="{wide}" height="{TALL}"/>'
            f'<rect class="found" {line} x="{at}" y="{VIEW}" width="{across}" height="{TALL}"/>'
            f'<path class="beam" {line} d="{path}"/>'
            f'<text class="good small" x="{end + 10:.1f}" y="{VIEW - 12}">read again</text>'
        )
        yield self.shown_from(self.recalled, drawn, "beam")

    def _legend(self) -> Iterator[str]:
        names = {
            "fixed": "instructions, tools",
            "prompt": "prompts",
            "answer": "answers, calls",
            "result": "tool results",
            "fold": "a fold",
        }
        x = LEFT
        for kind, name in names.items():
            yield f'<rect class="{kind}" x="{x}" y="364" width="12" height="12"/>'
            yield f'<text class="soft small" x="{x + 18}" y="376">{name}</text>'
            x += 46 + 8 * len(name)


def render() -> str:
    """The picture."""
    drawing = Drawing(*frames())
    body = "\n".join(drawing.body())
    title = "A conversation that outgrows its window is folded, and read again"
    told = (
        f"{drawing.played.turns} turns in a window of {WINDOW:,} tokens. {drawing.captions()[-1]}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-labelledby="t d">\n'
        f'<title id="t">{title}</title>\n<desc id="d">{escape(told)}</desc>\n'
        f"<style>{_STYLE}{chr(10).join(drawing.rules)}\n</style>\n{body}\n</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(write_or_check(PICTURE, render, "demo_picture.py"))
