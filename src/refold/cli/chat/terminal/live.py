"""What is heard of a turn: what is finished, to be printed for good, and what is still coming."""

import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.heard import Called, Elsewhere, Happened, Heard, Returned, Said, Thought
from refold.cli.chat.terminal.markdown import block
from refold.cli.chat.terminal.markdown_stream import Blocks
from refold.cli.chat.terminal.theme import PROMPT, RETURN, SPINNER
from refold.cli.chat.tool_lines import call_line, event_lines, lasted, return_line
from refold.cli.colours import STYLES

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
