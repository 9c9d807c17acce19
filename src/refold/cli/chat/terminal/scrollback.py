"""What is printed for good: as wide as the terminal is now, with room between what is apart."""

from collections.abc import Iterable, Iterator
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from refold.cli.chat.clean import Cleaned
from refold.cli.chat.terminal.live import Printed, Sort
from refold.cli.chat.terminal.theme import LOOKS


class Scrollback:
    """Makes text with colours of what is to be printed, and knows what was printed last."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._last: Sort | None = None

    def rendered(self, things: Iterable[Printed], width: int) -> str:
        """All these, one after the other."""
        return "".join(self._after_gap(one, width) for one in things)

    def lines(self, what: RenderableType, width: int) -> list[str]:
        """Something as lines, without those that are empty at its edges."""
        console = _console(width, colour=self._colour)
        console.print(_Trimmed(Cleaned(what)), crop=False, end="")
        file = console.file
        return file.getvalue().split("\n")[:-1] if isinstance(file, StringIO) else []

    def _after_gap(self, one: Printed, width: int) -> str:
        lines = self.lines(one.what, width)
        if not lines:
            return ""
        together = one.sort == "work" == self._last
        gap = [""] if one.gap and self._last is not None and not together else []
        self._last = one.sort
        return "".join(f"{line}\n" for line in (*gap, *lines))


class _Trimmed:
    """Without the spaces that end a line, so that a narrower window does not break it."""

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [
            _stripped(line) for line in Segment.split_lines(console.render(self._what, options))
        ]
        for line in _without_edges(lines):
            yield from line
            yield Segment.line()


def _stripped(line: list[Segment]) -> list[Segment]:
    while line and _blank(line[-1]):
        line = line[:-1]
    if line and not line[-1].text[-1:].strip():
        text, style, _ = line[-1]
        if not _seen(line[-1]):
            line = [*line[:-1], Segment(text.rstrip(), style)]
    return line


def _blank(segment: Segment) -> bool:
    return not segment.text.strip() and not _seen(segment)


def _seen(segment: Segment) -> bool:
    """Whether even its spaces are seen."""
    style = segment.style
    return bool(style and (style.bgcolor or style.reverse or style.underline))


def _without_edges(lines: list[list[Segment]]) -> Iterator[list[Segment]]:
    filled = [at for at, line in enumerate(lines) if line]
    return iter(lines[filled[0] : filled[-1] + 1] if filled else [])


def _console(width: int, *, colour: bool) -> Console:
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system="standard",
        no_color=not colour,
        width=max(1, width),
        theme=LOOKS,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
