"""What a model says, as Rich prints it: nothing of it left out, no boxes around it."""

from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text

from refold.cli.chat.terminal.markdown_stream import fenced
from refold.cli.chat.terminal.theme import CODE, WIDEST

_PARSER = (
    MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
)


def block(text: str) -> RenderableType:
    """One block of Markdown, or some together."""
    code = fenced(text)
    return Code(code[1], code[0]) if code else Prose(text)


class _Heading(Heading):
    """At the left, where one begins to read."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _CodeBlock(CodeBlock):
    """Code within a list or a quotation."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=CODE, word_wrap=True, background_color="default")


class Prose(Markdown):
    """Markdown where a line ends where it ended, and HTML is shown as it was written."""

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
                token.children = _whole(token.children)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = any(token.type == "table_open" for token in self.parsed)
        width = options.max_width if wide else min(options.max_width, WIDEST)
        yield from super().__rich_console__(console, options.update(width=width))


class Code:
    """Code in its colours; long lines are the terminal's to wrap, so that they are copied whole."""

    def __init__(self, code: str, language: str = "") -> None:
        self._code = code.expandtabs(4)
        self._language = language

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Syntax(self._code, self._language or "text", theme=CODE).highlight(self._code)
        text.rstrip()
        text.no_wrap, text.overflow = True, "ignore"
        if self._language:
            yield Text(self._language, style="dim")
        yield from console.render(text, options)


def _whole(tokens: list[Token]) -> list[Token]:
    """Lines end where they ended; an address that is its own text is shown once."""
    bare: set[int] = set()
    for at, (opens, text) in enumerate(pairwise(tokens)):
        if opens.type == "link_open" and text.content == opens.attrs.get("href"):
            bare |= {at, at + 2}
    for token in tokens:
        if token.type == "softbreak":
            token.type = "hardbreak"
    return [token for at, token in enumerate(tokens) if at not in bare]
