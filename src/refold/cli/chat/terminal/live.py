"""What is heard of a turn: what is finished, to be printed for good, and what is still coming."""

import time
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import Literal, NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from refold.cli.chat.clean import Cleaned, Cleaner, cleaned
from refold.cli.chat.events import Called, Elsewhere, Happened, Heard, Returned, Said, Thought
from refold.cli.chat.terminal.markdown import Blocks, block
from refold.cli.chat.text import (
    LOOKS,
    PROMPT,
    RETURN,
    SPINNER,
    call_line,
    event_lines,
    lasted,
    return_line,
)
from refold.cli.output import STYLES

Sort = Literal["text", "work", "event"]

_UNFINISHED = 6_000
"""Characters of an unfinished block that are drawn, the newest."""
_SPINS = 8
"""Pictures of the spinner in a second."""
_SHOWN_THOUGHT = 1.0
"""Seconds of thinking that are worth a line."""


class Printed(NamedTuple):
    """Something that stays. Works (calls, thoughts) stand together, without empty lines."""

    what: RenderableType
    sort: Sort
    gap: bool = True


class Running(NamedTuple):
    """A call that has not returned."""

    called: Called
    since: float


class Live:
    """Takes what is heard and gives what is finished, in the order it was heard."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._blocks = Blocks()
        self._cleaner = Cleaner()
        self._calls: dict[str, Running] = {}
        self._thinks: float | None = None

    @property
    def busy(self) -> bool:
        """Whether something is shown whose time goes on."""
        return bool(self._calls) or self._thinks is not None

    def hear(self, heard: Heard) -> list[Printed]:
        """What is finished now."""
        match heard:
            case Said(text):
                return [*self._thought(), *map(_block, self._blocks.feed(self._cleaner.feed(text)))]
            case Thought():
                done = [] if self._thinks is not None else self._said()
                self._thinks = self._clock() if self._thinks is None else self._thinks
                return done
            case Called():
                self._calls[heard.call] = Running(heard, self._clock())
                return [*self._thought(), *self._said()]
            case Returned():
                running = self._calls.pop(heard.call, None)
                called = running.called if running else Called(heard.call, heard.tool, "")
                return [*self._thought(), *self._said(), Printed(_Work(called, heard), "work")]
            case Happened(event):
                lines = event_lines(event)
                text = Text("\n").join(Text(cleaned(line), STYLES[tone]) for line, tone in lines)
                return [Printed(text, "event")] if lines else []
            case Elsewhere(who, text):
                return [_elsewhere(who, cleaned(text))]

    def settle(self) -> list[Printed]:
        """The turn is over: all the rest."""
        stopped = [Printed(_Work(one.called, None), "work") for one in self._calls.values()]
        self._calls.clear()
        return [*self._thought(), *self._said(), *stopped]

    def coming(self, width: int) -> RenderableType | None:
        """What is not finished, as it looks now."""
        parts = [*self._coming(width)]
        return Group(*parts) if parts else None

    def _coming(self, width: int) -> Iterator[RenderableType]:
        if rest := self._blocks.rest.strip("\n"):
            yield block(_newest(rest, fence=self._blocks.in_fence))
            if self._calls:
                yield ""
        now = self._clock()
        if self._thinks is not None:
            yield Text.assemble(
                (f"{spinner()} ", "cyan"), (f"Thinking {lasted(now - self._thinks)}", "dim")
            )
        for called, since in self._calls.values():
            yield call_line(called, width, spinner(), lasted(now - since))

    def _said(self) -> list[Printed]:
        return [*map(_block, self._blocks.finish())]

    def _thought(self) -> list[Printed]:
        if self._thinks is None:
            return []
        took = self._clock() - self._thinks
        self._thinks = None
        line = Text(f"Thought for {lasted(took)}", "dim")
        return [Printed(line, "work")] if took >= _SHOWN_THOUGHT else []


def spinner() -> str:
    """The picture of now."""
    return SPINNER[int(time.monotonic() * _SPINS) % len(SPINNER)]


def typed(text: str, *, faint: bool = False) -> Printed:
    """What a person typed, as it stays above."""
    lines = f"\n{' ' * len(PROMPT)}".join(cleaned(text).split("\n"))
    style = "dim" if faint else "bold"
    return Printed(Text.assemble((PROMPT, "cyan"), (lines, style)), "text")


class _Work:
    """A call and what came of it."""

    def __init__(self, called: Called, returned: Returned | None) -> None:
        self._called = called
        self._returned = returned

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield call_line(self._called, options.max_width)
        if self._returned:
            yield return_line(self._returned, options.max_width)
        else:
            yield Text.assemble((RETURN, "dim"), ("interrupted", "yellow"))


def _block(text: str) -> Printed:
    return Printed(block(text), "text")


def _elsewhere(who: str, text: str) -> Printed:
    if who == "you":
        note = Text("From another terminal:", "dim")
        return Printed(Group(note, typed(text, faint=True).what), "event")
    note = Text("Answer in another terminal:", "dim")
    return Printed(Group(note, block(text)), "event")


def _newest(rest: str, *, fence: bool) -> str:
    """The end of a long block, which is all there is room for."""
    if len(rest) <= _UNFINISHED:
        return rest
    end = rest[-_UNFINISHED:]
    end = end[end.find("\n") + 1 :]
    return f"{rest.partition(chr(10))[0]}\n{end}" if fence else end


# What is printed for good: as wide as the terminal is now, with room between what is apart.


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
