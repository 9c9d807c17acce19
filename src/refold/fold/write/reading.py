"""Reading a summary in whatever form a model wrote it.

Markdown, JSON or prose, with or without thinking before it and courtesies around it.
"""

import re

from refold.fold.write.courtesies import without_courtesies
from refold.fold.write.reading_json import read_json
from refold.fold.write.reading_markdown import Found, MarkdownReader, known_heading

_THINKING = ("think", "thinking", "thought", "analysis", "reasoning", "scratchpad", "reflection")
_OPENING = re.compile(rf"^[ \t]*<({'|'.join(_THINKING)})>", re.IGNORECASE | re.MULTILINE)
_ONLY_CLOSING = re.compile(r"</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```+|~~~+)[ \t]*(\w*)[ \t]*$")
_WRAPPING = ("", "markdown", "md", "text", "txt", "json", "plaintext")
_PREAMBLE_LINES = 3  # before a fence around everything


def read(text: str) -> Found:
    """What the text says, claim by claim."""
    text = _without_thinking(text.replace("\x00", " "))
    lines = without_courtesies(_unwrapped(text.splitlines()))
    found = Found()
    at = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[at].lstrip().startswith(("{", "[")):
        found, rest = read_json("\n".join(lines[at:]).lstrip()) or (found, None)
        lines = lines if rest is None else without_courtesies(rest.splitlines())
    MarkdownReader(found).read(lines)
    return found


def _without_thinking(text: str) -> str:
    """The text without the parts that a model wrote for itself."""
    opening = _OPENING.search(text)
    closing = _ONLY_CLOSING.search(text, 0, opening.start() if opening else len(text))
    if closing and "<think" not in text[: closing.start()].lower():
        text = text[closing.end() :]  # its opening was part of the prompt
        opening = _OPENING.search(text)
    kept: list[str] = []
    at = 0
    while opening:
        kept.append(text[at : opening.start()])
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:  # it was cut off, or never ended: what looks like a summary still is
            at = _first_heading(text, opening.end())
            break
        at = closing.end()
        opening = _OPENING.search(text, at)
    return "".join((*kept, text[at:]))


def _first_heading(text: str, start: int) -> int:
    for line in re.finditer(r"^#{1,6} .*$", text[start:], re.MULTILINE):
        if known_heading(line.group()):
            return start + line.start()
    return len(text)


def _unwrapped(lines: list[str]) -> list[str]:
    """The lines without a fence around all of them."""
    said = [n for n, line in enumerate(lines) if line.strip()][: _PREAMBLE_LINES + 1]
    first = next((n for n in said if _FENCE.match(lines[n])), None)
    fence = _FENCE.match(lines[first]) if first is not None else None
    if first is None or fence is None or fence[1].lower() not in _WRAPPING:
        return lines
    fences = [n for n, line in enumerate(lines) if n > first and _FENCE.match(line)]
    if not fence[1] and len(fences) != 1:  # which fence ends it, nobody can tell
        return lines
    last = fences[-1] if len(fences) % 2 else None
    return [line for n, line in enumerate(lines) if n not in {first, last}]
