"""Markdown from a model, cut into finished blocks while it streams in, and printed by Rich."""

from itertools import pairwise
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token as MarkdownToken
from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String, Token
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.theme import Theme

from refold.cli.chat.text import WIDEST

THEME: Final = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold dim",
        "markdown.h5": "bold dim",
        "markdown.h6": "dim",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.hr": "dim",
        "markdown.list": "none",
        "markdown.link": "none",
        "markdown.link_url": "blue",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "progress.percentage": "none",
    }
)

CODE: Final = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(dim=True),
        Keyword: Style(color="magenta"),
        Operator.Word: Style(color="magenta"),
        Name.Builtin: Style(color="cyan"),
        Name.Decorator: Style(color="yellow"),
        Name.Function: Style(color="blue"),
        Name.Class: Style(color="blue"),
        Name.Tag: Style(color="blue"),
        Name.Attribute: Style(color="cyan"),
        Literal: Style(color="green"),
        String: Style(color="green"),
        Number: Style(color="yellow"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Generic.Subheading: Style(color="cyan"),
        Generic.Emph: Style(italic=True),
        Generic.Strong: Style(bold=True),
    }
)
"""Readable on dark and on light backgrounds."""

_BLOCK_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")
"""Only blocks; their content is not parsed."""
_PARSER: Final = (
    MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
)
_ENDED_BY_EMPTY_LINE: Final = {"blockquote_open", "paragraph_open", "table_open"}
_ONE_LINE: Final = {"heading_open", "hr"}
_EFFORT: Final = 16
"""How often each character may be parsed, on average. An ordinary answer takes less than half of
it; in a list of hundreds of lines, not every line is parsed, and its end is seen a little later."""


class Blocks:
    """Takes a text in pieces and returns the blocks that cannot change any more."""

    def __init__(self) -> None:
        self._line = ""
        self._lines: list[str] = []  # whole lines of what is not finished
        self._size = 0
        self._effort = 0
        """Characters that may still be parsed, so that the time grows with the text and not with
        the square of its longest block."""
        self.in_fence = False  # whether what is not finished is code in a fence

    @property
    def rest(self) -> str:
        return "".join(self._lines) + self._line

    def feed(self, text: str) -> list[str]:
        finished: list[str] = []
        *lines, last = text.split("\n")
        for line in lines:
            whole, self._line = f"{self._line}{line}\n", ""
            finished += self._take(whole)
        self._line += last
        return finished

    def finish(self) -> list[str]:
        lines = [*self._lines, self._line] if self._line else self._lines
        self._lines, self._line, self._size, self.in_fence = [], "", 0, False
        starts = _starts(_top_level(lines)) if lines else []
        return ["".join(lines[start:end]) for start, end in pairwise([*starts, len(lines)])]

    def _take(self, line: str) -> list[str]:
        self._lines.append(line)
        self._size += len(line)
        self._effort += _EFFORT * len(line)
        may_end = not self.in_fence or line.lstrip().startswith(("```", "~~~"))
        if not may_end or self._effort < self._size:
            return []
        self._effort -= self._size
        tokens = _top_level(self._lines)
        if not tokens:
            return []  # empty lines, which belong to the block below them
        if _is_finished(tokens[-1], empty_line=not line.strip()):
            return self.finish()
        self.in_fence = tokens[-1].type == "fence"
        starts = _starts(tokens)
        finished = ["".join(self._lines[start:end]) for start, end in pairwise(starts)]
        self._lines = self._lines[starts[-1] :]
        self._size -= sum(map(len, finished))
        return finished


def fenced(block: str) -> tuple[str, str] | None:
    """The language and the code, where a block is a fence and nothing else."""
    tokens = _top_level([block])
    if len(tokens) != 1 or tokens[0].type != "fence":
        return None
    words = tokens[0].info.split()
    return words[0].strip("{}.") if words else "", tokens[0].content.removesuffix("\n")


def _top_level(lines: list[str]) -> list[MarkdownToken]:
    """The first token of each block. To markdown-it a carriage return ends a line; not here."""
    tokens = _BLOCK_PARSER.parse("".join(lines).replace("\r", " "))
    return [token for token in tokens if token.level == 0 and token.nesting >= 0]


def _starts(tokens: list[MarkdownToken]) -> list[int]:
    """The lines that the blocks begin in; lines above the first belong to it."""
    return [0, *(token.map[0] for token in tokens[1:] if token.map)]


def _is_finished(token: MarkdownToken, *, empty_line: bool) -> bool:
    if token.type == "fence" and token.map:
        first, end = token.map
        return end - first - token.content.count("\n") > 1  # the line that closes it
    return token.type in _ONE_LINE or (empty_line and token.type in _ENDED_BY_EMPTY_LINE)


def block(text: str) -> RenderableType:
    code = fenced(text)
    return Code(code[1], code[0]) if code else Prose(text)


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _CodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=CODE, word_wrap=True, background_color="default")


class Prose(Markdown):
    """Markdown with its own line breaks, and HTML shown as it was written."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = _PARSER.parse(text.expandtabs(4))
        for token in self.parsed:
            if token.children:
                token.children = _with_breaks(token.children)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = any(token.type == "table_open" for token in self.parsed)
        width = options.max_width if wide else min(options.max_width, WIDEST)
        yield from super().__rich_console__(console, options.update(width=width))


class Code:
    """Colored code; long lines are left to the terminal to wrap, so that they are copied whole."""

    def __init__(self, code: str, language: str = "") -> None:
        self._code = code.expandtabs(4)
        self._language = language

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Syntax(self._code, self._language or "text", theme=CODE).highlight(self._code)
        text.rstrip()
        text.no_wrap, text.overflow = True, "ignore"
        yield from console.render(text, options)


def _with_breaks(tokens: list[MarkdownToken]) -> list[MarkdownToken]:
    """Keep line breaks; show a link whose text is its address once."""
    bare: set[int] = set()
    for index, (opens, text) in enumerate(pairwise(tokens)):
        if opens.type == "link_open" and text.content == opens.attrs.get("href"):
            bare |= {index, index + 2}
    for token in tokens:
        if token.type == "softbreak":
            token.type = "hardbreak"
    return [token for index, token in enumerate(tokens) if index not in bare]
