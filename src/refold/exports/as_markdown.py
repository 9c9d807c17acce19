"""A session as Markdown, to read, to keep or to paste."""

import re
from collections.abc import AsyncIterator, Iterator
from html import escape
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
    call_line,
    counted,
    day_and_time,
    moments,
)
from refold.log import Log
from refold.wire import Shape

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|])")
_OURS: Final = re.compile(
    r"<(?=[!?]|/?(?:details|pre|script|style|summary|textarea)\b)", re.IGNORECASE
)
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_CODE: Final = re.compile(r"(?<!`)(`+(?!`).*?(?<!`)`+(?!`))")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NESTED: Final = re.compile(r"^[ \t]*(?:[-*+>]|[0-9]+[.)]).*(?:```|~~~)", re.MULTILINE)
"""Code within a list or a quotation: where that ends is not easily said."""
_LINE = 120  # characters


async def markdown(log: Log, session: str) -> AsyncIterator[str]:
    """The session: a heading for each message; what a fold stands for can be opened below it."""
    info = await log.info(session)
    yield f"# {_plain(info.title or session)}\n\n"
    facts = [f"Session {_code(session)}", counted(info.messages, "message")]
    facts += [f"{day_and_time(info.created_at)} to {day_and_time(info.updated_at)}"]
    yield f"{' · '.join(facts)}\n"
    tools = Tools()
    async for one in moments(log, session):
        yield "".join(f"\n{block}\n" for block in _blocks(one, tools))


def _blocks(one: Moment, tools: Tools) -> Iterator[str]:
    match one:
        case Said():
            yield from _said(one, tools)
        case Marked(text=text):
            yield f"*{_plain(text)}*"
        case Opens(group):
            yield from _opened(group)
        case Closes():
            yield "</details>"
        case Compacted() as fold:
            yield from _compacted(fold)
            yield "*It was taken back later.*"


def _opened(group: Compacted | Aside) -> Iterator[str]:
    title = "What lies beneath"
    if isinstance(group, Compacted):
        yield from _compacted(group)
    else:
        title = escape(group.sentence)
    yield f"<details>\n<summary>{title}</summary>"


def _compacted(fold: Compacted) -> Iterator[str]:
    yield f"---\n\n### {COMPACTED}"
    removed = f"{counted(fold.messages, 'message')} and {counted(fold.removed, 'token')} removed"
    yield f"{day_and_time(fold.at)} · {removed}"
    if fold.text:
        yield "\n".join(f"> {line}".rstrip() for line in _safe(fold.text).splitlines())


def _said(said: Said, tools: Tools) -> Iterator[str]:
    if said.role != "tool":
        where = f" in {_code(said.scope)}" if said.scope != "/" else ""
        yield f"### {said.role.capitalize()}{where}"
    if said.forgotten:
        yield "*Forgotten.*"
    for shape in said.shapes:
        tools.note(shape)
        yield from _part(shape, tools)


def _part(shape: Shape, tools: Tools) -> Iterator[str]:
    if shape.kind == "call":
        yield f"→ {_code(_clipped(call_line(shape)))}"
    elif shape.kind == "return":
        yield _folded(f"← {tools.of(shape)}: {counted(len(shape.text), 'character')}", shape.text)
    elif shape.kind == "thought":
        yield _folded("Thought", shape.text)
    elif shape.text.strip():
        yield _safe(shape.text.strip("\n"))
    for media in shape.media:
        yield f"*[{_plain(media)}]*"


def _folded(title: str, text: str) -> str:
    summary = f"<summary>{escape(title)}</summary>"
    return f"<details>\n{summary}\n\n{_as_it_is(text)}\n\n</details>"


def _as_it_is(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _safe(text: str) -> str:
    """What was said, which is Markdown by itself; it cannot end or swallow what it stands in.

    Tags are shown as they were written. Code stays as it is, where it is sure to be code.
    """
    if _NESTED.search(text):
        return _as_it_is(text)
    lines: list[str] = []
    opened = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if not opened and found and not (found[1][0] == "`" and "`" in found[2]):
            opened = found[1]
        elif not opened:
            line = _without_tags(line)  # noqa: PLW2901 - the same line, as text
        elif found and _closes(found, opened):
            opened = ""
        lines.append(line)
    return "\n".join((*lines, opened) if opened else lines)


def _closes(found: re.Match[str], opened: str) -> bool:
    same = found[1][0] == opened[0] and len(found[1]) >= len(opened)
    return same and not found[2].strip()


def _without_tags(line: str) -> str:
    """The line with every tag as text; in code, only those that this file is made with."""
    pieces = _CODE.split(line)
    return "".join((_OURS if at % 2 else _TAG).sub("&lt;", one) for at, one in enumerate(pieces))


def _plain(text: str) -> str:
    """A text as Markdown shows it: as it was written, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def _clipped(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
