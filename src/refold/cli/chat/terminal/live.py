"""A turn while it streams in: finished items, to be printed for good, and the rest, still drawn."""

import time
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import Literal, NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.text import Text

from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.surface import (
    ContextEvent,
    Prompt,
    RemoteMessage,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    TurnEvent,
)
from refold.cli.chat.terminal.markdown import THEME, Blocks, block
from refold.cli.chat.text import (
    PROMPT,
    RETURN,
    call_line,
    duration,
    event_lines,
    return_line,
    spinner,
)
from refold.cli.output import STYLES
from refold.terminal_text import counted

Sort = Literal["text", "work", "event"]

_MAX_UNFINISHED = 6_000  # characters of an unfinished block that are drawn, the newest
_MAX_PROMPT_LINES, _PROMPT_LINES = 40, 8  # of a prompt that was not typed here
_MIN_THINKING = 1.0  # seconds of thinking that are worth a line


class ScrollbackItem(NamedTuple):
    """Something that stays. Works (calls, thoughts) stand together, without empty lines."""

    what: RenderableType
    sort: Sort
    gap: bool = True


class Live:
    """Takes the events of a turn and returns the finished items, in the order of the events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._blocks = Blocks()
        self._cleaner = Cleaner()
        self._calls: dict[str, tuple[ToolCall, float]] = {}  # without a result, and their start
        self._thinking_since: float | None = None

    @property
    def busy(self) -> bool:
        return bool(self._calls) or self._thinking_since is not None

    def on_event(self, event: TurnEvent) -> list[ScrollbackItem]:  # noqa: PLR0911 - one a kind
        match event:
            case Prompt(text):
                return [*self._end_thinking(), *self._end_text(), typed(_beginning(text))]
            case TextDelta(text):
                blocks = self._blocks.feed(self._cleaner.feed(text))
                return [*self._end_thinking(), *map(_text_block, blocks)]
            case ThinkingDelta():
                if self._thinking_since is not None:
                    return []
                self._thinking_since = self._clock()
                return self._end_text()
            case ToolCall():
                self._calls[event.call] = event, self._clock()
                return [*self._end_thinking(), *self._end_text()]
            case ToolResult():
                call, _ = self._calls.pop(event.call, (ToolCall(event.call, event.tool, ""), 0.0))
                work = ScrollbackItem(_Work(call, event), "work")
                return [*self._end_thinking(), *self._end_text(), work]
            case ContextEvent(change):
                lines = event_lines(change)
                text = Text("\n").join(Text(cleaned(line), STYLES[tone]) for line, tone in lines)
                return [ScrollbackItem(text, "event")] if lines else []
            case RemoteMessage(who, text):
                note, what = "Answer in another terminal:", block(cleaned(text))
                if who == "you":
                    note, what = "From another terminal:", typed(_beginning(text), faint=True).what
                return [ScrollbackItem(Group(Text(note, "dim"), what), "event")]

    def settle(self) -> list[ScrollbackItem]:
        """The turn is over: the remaining items."""
        stopped = [ScrollbackItem(_Work(call, None), "work") for call, _ in self._calls.values()]
        self._calls.clear()
        return [*self._end_thinking(), *self._end_text(), *stopped]

    def unfinished(self, width: int) -> RenderableType | None:
        parts = [*self._unfinished(width)]
        return Group(*parts) if parts else None

    def _unfinished(self, width: int) -> Iterator[RenderableType]:
        if rest := self._blocks.rest.strip("\n"):
            yield block(_end_of(rest, fence=self._blocks.in_fence))
            if self._calls:
                yield ""
        now = self._clock()
        if self._thinking_since is not None:
            seconds = duration(now - self._thinking_since)
            yield Text.assemble((f"{spinner()} ", "cyan"), (f"Thinking {seconds}", "dim"))
        for call, since in self._calls.values():
            yield call_line(call, width, spinner(), duration(now - since))

    def _end_text(self) -> list[ScrollbackItem]:
        return [*map(_text_block, self._blocks.finish())]

    def _end_thinking(self) -> list[ScrollbackItem]:
        if self._thinking_since is None:
            return []
        seconds = self._clock() - self._thinking_since
        self._thinking_since = None
        line = Text(f"Thought for {duration(seconds)}", "dim")
        return [ScrollbackItem(line, "work")] if seconds >= _MIN_THINKING else []


def typed(text: str, *, faint: bool = False) -> ScrollbackItem:
    lines = f"\n{' ' * len(PROMPT)}".join(cleaned(text).split("\n"))
    style = "dim" if faint else "bold"
    return ScrollbackItem(Text.assemble((PROMPT, "cyan"), (lines, style)), "text")


def _beginning(text: str) -> str:
    """A prompt that was not typed here; of a long one, which may have been pasted, a few lines."""
    lines = text.split("\n")
    if len(lines) <= _MAX_PROMPT_LINES:
        return text
    more = len(lines) - _PROMPT_LINES
    return "\n".join([*lines[:_PROMPT_LINES], f"… {counted(more, 'more line')}"])


class _Work:
    """A tool call and its result, at the width of the terminal."""

    def __init__(self, call: ToolCall, result: ToolResult | None) -> None:
        self._call = call
        self._result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield call_line(self._call, options.max_width)
        if self._result:
            yield return_line(self._result, options.max_width)
        else:
            yield Text.assemble((RETURN, "dim"), ("interrupted", "yellow"))


def _text_block(text: str) -> ScrollbackItem:
    return ScrollbackItem(block(text), "text")


def _end_of(rest: str, *, fence: bool) -> str:
    """The end of a long block, which is all there is room for."""
    if len(rest) <= _MAX_UNFINISHED:
        return rest
    end = rest[-_MAX_UNFINISHED:]
    end = end[end.find("\n") + 1 :]
    return f"{rest.partition(chr(10))[0]}\n{end}" if fence else end


class Scrollback:
    """Renders what is printed for good, with empty lines between unrelated items."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._last: Sort | None = None

    def rendered(self, items: Iterable[ScrollbackItem], width: int) -> str:
        text = ""
        for item in items:
            if not (lines := self.lines(item.what, width)):
                continue
            together = item.sort == "work" == self._last
            gap = [""] if item.gap and self._last is not None and not together else []
            self._last = item.sort
            text += "".join(f"{line}\n" for line in (*gap, *lines))
        return text

    def lines(self, what: RenderableType, width: int) -> list[str]:
        """Something as lines, without empty ones at its edges.

        No line ends in spaces, so that a narrower window does not break it.
        """
        file = StringIO()
        console = Console(
            file=file,
            force_terminal=True,
            color_system="standard",
            no_color=not self._color,
            width=max(1, width),
            theme=THEME,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        segments = _clean(console.render(what, console.options))
        lines = [_stripped(line) for line in Segment.split_lines(segments)]
        filled = [index for index, line in enumerate(lines) if line]
        lines = lines[filled[0] : filled[-1] + 1] if filled else []
        printed = [segment for line in lines for segment in (*line, Segment.line())]
        console.print(Segments(printed), crop=False, end="")
        return file.getvalue().split("\n")[:-1]


def _clean(segments: Iterable[Segment]) -> Iterator[Segment]:
    for text, style, control in segments:
        if not control:
            yield Segment(cleaned(text), style.update_link(None) if style else None)


def _stripped(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip() and not _has_visible_spaces(line[-1]):
        line = line[:-1]
    if line and not line[-1].text[-1:].strip() and not _has_visible_spaces(line[-1]):
        text, style, _ = line[-1]
        line = [*line[:-1], Segment(text.rstrip(), style)]
    return line


def _has_visible_spaces(segment: Segment) -> bool:
    style = segment.style
    return bool(style and (style.bgcolor or style.reverse or style.underline))
