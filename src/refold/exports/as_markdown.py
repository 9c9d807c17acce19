"""A session as Markdown, to read, to keep or to paste."""

import re
from collections.abc import AsyncIterator, Iterator
from html import escape
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
    call_line,
    clip,
    day_and_time,
    moments,
)
from refold.log import Log
from refold.terminal_text import counted
from refold.wire import Shape

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|])")
_OURS: Final = re.compile(
    r"<(?=[!?]|/?(?:details|pre|script|style|summary|textarea)\b)", re.IGNORECASE
)
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_CODE: Final = re.compile(r"(?<!`)(`+(?!`).*?(?<!`)`+(?!`))")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NESTED: Final = re.compile(r"^[ \t]*(?:[-*+>]|[0-9]+[.)]).*(?:```|~~~)", re.MULTILINE)
"""Code within a list or a quotation, whose end is hard to find."""
_MAX_LINE = 120  # characters


async def markdown(log: Log, session: str) -> AsyncIterator[str]:
    """The session: a heading for each message; folded messages can be opened."""
    info = await log.info(session)
    yield f"# {_plain(info.title or session)}\n\n"
    facts = [f"Session {_code(session)}", counted(info.messages, "message")]
    facts += [f"{day_and_time(info.created_at)} to {day_and_time(info.updated_at)}"]
    yield f"{' · '.join(facts)}\n"
    tools = Tools()
    async for moment in moments(log, session):
        yield "".join(f"\n{block}\n" for block in _blocks(moment, tools))


def _blocks(moment: Moment, tools: Tools) -> Iterator[str]:
    match moment:
        case MessageMoment():
            yield from _message(moment, tools)
        case Marked(text=text):
            yield f"*{_plain(text)}*"
        case Opens(Compacted() as fold):
            yield from _compacted(fold)
            yield "<details>\n<summary>What lies beneath</summary>"
        case Opens(group):
            yield f"<details>\n<summary>{escape(group.sentence)}</summary>"
        case Closes():
            yield "</details>"
        case Compacted() as fold:
            yield from _compacted(fold)
            yield "*It was taken back later.*"


def _compacted(fold: Compacted) -> Iterator[str]:
    yield f"---\n\n### {COMPACTED}"
    yield f"{day_and_time(fold.at)} · {fold.effect}"
    if fold.text:
        yield "\n".join(f"> {line}".rstrip() for line in _safe(fold.text).splitlines())


def _message(message: MessageMoment, tools: Tools) -> Iterator[str]:
    if message.role != "tool":
        where = f" in {_code(message.scope)}" if message.scope != "/" else ""
        yield f"### {message.role.capitalize()}{where}"
    if message.forgotten:
        yield "*Forgotten.*"
    for shape in message.shapes:
        tools.note(shape)
        yield from _part(shape, tools)


def _part(shape: Shape, tools: Tools) -> Iterator[str]:
    if shape.kind == "call":
        yield f"→ {_code(clip(call_line(shape), _MAX_LINE))}"
    elif shape.kind == "return":
        yield _details(f"← {tools.of(shape)}: {counted(len(shape.text), 'character')}", shape.text)
    elif shape.kind == "thought":
        yield _details("Thought", shape.text)
    elif shape.text.strip():
        yield _safe(shape.text.strip("\n"))
    for media in shape.media:
        yield f"*[{_plain(media)}]*"


def _details(title: str, text: str) -> str:
    summary = f"<summary>{escape(title)}</summary>"
    return f"<details>\n{summary}\n\n{_verbatim(text)}\n\n</details>"


def _verbatim(text: str) -> str:
    fence = "`" * max(3, _longest_backticks(text) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _safe(text: str) -> str:
    """A message, which is Markdown already, made unable to break out of its surroundings.

    Tags are shown as they were written. Code stays unchanged where it is certainly code.
    """
    if _NESTED.search(text):
        return _verbatim(text)
    lines: list[str] = []
    opened = ""
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if not opened and fence and not (fence[1][0] == "`" and "`" in fence[2]):
            opened = fence[1]
        elif not opened:
            line = _without_tags(line)  # noqa: PLW2901 - the same line, as text
        elif fence and fence[1].startswith(opened) and not fence[2].strip():
            opened = ""
        lines.append(line)
    return "\n".join((*lines, opened) if opened else lines)


def _without_tags(line: str) -> str:
    """The line with every tag escaped; in code, only the tags that this export uses itself."""
    return "".join(
        (_OURS if index % 2 else _TAG).sub("&lt;", piece)
        for index, piece in enumerate(_CODE.split(line))
    )


def _plain(text: str) -> str:
    """The text on one line, with Markdown's special characters escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    longest = _longest_backticks(text)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"


def _longest_backticks(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)
