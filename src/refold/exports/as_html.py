"""A session as a page to look at: one file, without scripts and without the network."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from html import escape
from importlib.resources import files
from typing import Final

from refold.exports.moments import (
    COMPACTED,
    Aside,
    Closes,
    Compacted,
    Marked,
    Moment,
    Opens,
    Said,
    Tools,
    counted,
    day_and_time,
    given,
    moments,
)
from refold.log import Log, SessionInfo
from refold.wire import Shape

_LONGEST: Final = 100_000
"""A longer text is shown as it is: nobody reads it, and Markdown would take long."""
_LINE = 160  # characters
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_Render = Callable[[str], str]


async def html(log: Log, session: str) -> AsyncIterator[str]:
    """The page: a timeline; what a fold stands for, and what tools said, can be opened."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only this form needs it

    info = await log.info(session)
    yield _top(info)
    # Without raw HTML and without images, which would be fetched; links that run code are no links.
    render: _Render = MarkdownIt("js-default", {"breaks": True}).disable("image").render
    tools = Tools()
    async for one in moments(log, session):
        yield "".join(_shown(one, tools, render))
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


def _shown(one: Moment, tools: Tools, render: _Render) -> Iterator[str]:
    match one:
        case Said():
            yield from _said(one, tools, render)
        case Marked(text=text):
            yield f'<p class="mark">{escape(text)}</p>\n'
        case Opens(group):
            yield from _opened(group, render)
        case Closes():
            yield "</div>\n</details>\n"
        case Compacted() as fold:
            yield f'<details class="compacted gone" id="e{fold.seq}">\n'
            yield from _compacted(fold, render)
            yield '<p class="mark">It was taken back later.</p>\n</details>\n'


def _opened(group: Compacted | Aside, render: _Render) -> Iterator[str]:
    if isinstance(group, Compacted):
        yield f'<details class="compacted" id="e{group.seq}">\n'
        yield from _compacted(group, render)
    else:
        yield f'<details class="aside">\n<summary>{escape(group.sentence)}</summary>\n'
    yield '<div class="beneath">\n'


def _compacted(fold: Compacted, render: _Render) -> Iterator[str]:
    removed = f"{counted(fold.messages, 'message')} and {counted(fold.removed, 'token')} removed"
    yield f"<summary><strong>{COMPACTED}</strong> <span>{removed}</span> "
    yield f"{_time(fold.at)}</summary>\n"
    if fold.text:
        yield f'<div class="summary">{_text(fold.text, render)}</div>\n'


def _said(said: Said, tools: Tools, render: _Render) -> Iterator[str]:
    yield f'<article class="{escape(said.role)}" id="e{said.seq}">\n'
    where = f" in {escape(said.scope)}" if said.scope != "/" else ""
    yield f"<h2>{escape(said.role)}{where} {_time(said.at)} "
    yield f'<a href="#e{said.seq}">{said.seq}</a></h2>\n'
    if said.forgotten:
        yield '<p class="mark">Forgotten.</p>\n'
    for shape in said.shapes:
        tools.note(shape)
        yield from _part(shape, tools, render)
    yield "</article>\n"


def _part(shape: Shape, tools: Tools, render: _Render) -> Iterator[str]:
    if shape.kind == "call":
        line = _clipped(given(shape.text))
        title = f"<b>{escape(shape.tool or 'tool')}</b> <code>{escape(line)}</code>"
        yield _details("call", title, _indented(shape.text))
    elif shape.kind == "return":
        size = counted(len(shape.text), "character")
        title = f"<b>{escape(tools.of(shape))}</b> answered: {size}"
        yield _details("return", title, shape.text)
    elif shape.kind == "thought":
        yield _details("thought", "Thought", shape.text)
    elif shape.kind == "system" and shape.text.strip():
        yield _details("system", escape(_clipped(" ".join(shape.text.split()))), shape.text)
    elif shape.text.strip():
        yield f'<div class="text">{_text(shape.text, render)}</div>\n'
    for media in shape.media:
        yield f'<p class="mark">[{escape(media)}]</p>\n'


def _details(name: str, title: str, text: str) -> str:
    return f'<details class="{name}"><summary>{title}</summary>{_as_it_is(text)}</details>\n'


def _text(text: str, render: _Render) -> str:
    return _as_it_is(text) if len(text) > _LONGEST else render(text)


def _as_it_is(text: str) -> str:
    # A line feed right after the tag would be left out by browsers.
    return f"<pre>\n{escape(text)}</pre>"


def _indented(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return arguments


def _clipped(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"


def _time(at: int) -> str:
    exact = day_and_time(at)
    return f'<time datetime="{exact}">{exact[:10]} {exact[11:16]}</time>'
