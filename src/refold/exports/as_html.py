"""A session as a web page: one file, without scripts and without network access."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from html import escape
from importlib.resources import files
from typing import Final

from refold.exports.moments import (
    COMPACTED,
    Closes,
    Compacted,
    Marked,
    MessageMoment,
    Moment,
    Opens,
    Tools,
    arguments_line,
    clip,
    day_and_time,
    moments,
)
from refold.log import Log, SessionInfo
from refold.terminal_text import counted
from refold.wire import Shape

_MAX_MARKDOWN: Final = 100_000
"""A longer text is shown verbatim: nobody reads it, and Markdown would take long."""
_MAX_HIGHLIGHTED: Final = 50_000
"""Characters of one block of code; a longer one has no colors."""
_MAX_LINE = 160  # characters
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_Render = Callable[[str], str]


async def html(log: Log, session: str) -> AsyncIterator[str]:
    """The page: a timeline in which folds and tool results can be opened."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only this form needs it

    info = await log.info(session)
    yield _top(info)
    # Without raw HTML and without images, which would be fetched; links that run code are no links.
    options = {"breaks": True, "highlight": _highlighted}
    render: _Render = MarkdownIt("js-default", options).disable("image").render
    tools = Tools()
    async for moment in moments(log, session):
        yield "".join(_render_moment(moment, tools, render))
    yield "</main>\n</body>\n</html>\n"


def _top(info: SessionInfo) -> str:
    name = escape(info.title or info.session)
    style = files(__package__ or "").joinpath("page.css").read_text(encoding="utf-8")
    facts = [escape(info.session), counted(info.messages, "message"), f"profile {info.profile}"]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{name}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{name}</h1>\n"
        f"<p>{' · '.join(facts)} · {_time(info.created_at)} to {_time(info.updated_at)}</p>\n"
        "</header>\n<main>\n"
    )


def _render_moment(moment: Moment, tools: Tools, render: _Render) -> Iterator[str]:
    match moment:
        case MessageMoment():
            yield from _message(moment, tools, render)
        case Marked(text=text):
            yield f'<p class="mark">{escape(text)}</p>\n'
        case Opens(Compacted() as fold):
            yield f'<details class="compacted" id="e{fold.seq}">\n'
            yield from _compacted(fold, render)
            yield '<div class="beneath">\n'
        case Opens(group):
            yield f'<details class="aside">\n<summary>{escape(group.sentence)}</summary>\n'
            yield '<div class="beneath">\n'
        case Closes():
            yield "</div>\n</details>\n"
        case Compacted() as fold:
            yield f'<details class="compacted gone" id="e{fold.seq}">\n'
            yield from _compacted(fold, render)
            yield '<p class="mark">It was taken back later.</p>\n</details>\n'


def _compacted(fold: Compacted, render: _Render) -> Iterator[str]:
    yield f"<summary><strong>{COMPACTED}</strong> <span>{fold.effect}</span> "
    yield f"{_time(fold.at)}</summary>\n"
    if fold.text:
        yield f'<div class="summary">{_text(fold.text, render)}</div>\n'


def _message(message: MessageMoment, tools: Tools, render: _Render) -> Iterator[str]:
    yield f'<article class="{escape(message.role)}" id="e{message.seq}">\n'
    where = f" in {escape(message.scope)}" if message.scope != "/" else ""
    yield f"<h2>{escape(message.role)}{where} {_time(message.at)} "
    yield f'<a href="#e{message.seq}">{message.seq}</a></h2>\n'
    if message.forgotten:
        yield '<p class="mark">Forgotten.</p>\n'
    for shape in message.shapes:
        tools.note(shape)
        yield from _part(shape, tools, render)
    yield "</article>\n"


def _part(shape: Shape, tools: Tools, render: _Render) -> Iterator[str]:
    if shape.kind == "call":
        line = clip(arguments_line(shape.text), _MAX_LINE)
        title = f"<b>{escape(shape.tool or 'tool')}</b> <code>{escape(line)}</code>"
        yield _details("call", title, _indented(shape.text))
    elif shape.kind == "return":
        size = counted(len(shape.text), "character")
        title = f"<b>{escape(tools.of(shape))}</b> answered: {size}"
        yield _details("return", title, shape.text)
    elif shape.kind == "thought":
        yield _details("thought", "Thought", shape.text)
    elif shape.kind == "system" and shape.text.strip():
        title = escape(clip(" ".join(shape.text.split()), _MAX_LINE))
        yield _details("system", title, shape.text)
    elif shape.text.strip():
        yield f'<div class="text">{_text(shape.text, render)}</div>\n'
    for media in shape.media:
        yield f'<p class="mark">[{escape(media)}]</p>\n'


def _details(name: str, title: str, text: str) -> str:
    return f'<details class="{name}"><summary>{title}</summary>{_verbatim(text)}</details>\n'


def _text(text: str, render: _Render) -> str:
    return _verbatim(text) if len(text) > _MAX_MARKDOWN else render(text)


def _highlighted(code: str, language: str, _: str) -> str:
    """Code with a class for each token; empty leaves it to Markdown."""
    from pygments import highlight  # noqa: PLC0415 - slow, and few sessions have code
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415 - see above
    from pygments.lexers import (  # noqa: PLC0415 - see above
        get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType] - of its options
    )
    from pygments.util import ClassNotFound  # noqa: PLC0415 - see above

    if not language or len(code) > _MAX_HIGHLIGHTED:
        return ""
    try:
        lexer = get_lexer_by_name(language.strip("{}."), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return highlight(code, lexer, HtmlFormatter[str](nowrap=True))


def _verbatim(text: str) -> str:
    # Browsers drop a line feed right after the tag, so there is one more.
    return f"<pre>\n{escape(text)}</pre>"


def _indented(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return arguments


def _time(at: int) -> str:
    exact = day_and_time(at)
    return f'<time datetime="{exact}">{exact[:10]} {exact[11:16]}</time>'
