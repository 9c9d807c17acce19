"""Which words of a user message are the user's, and which an agent's harness put there.

Coding agents send reminders, environments, file lists and the output of hooks in the user's place.
All that were looked at put such text into elements of their own, with names that HTML does not have
(`<system-reminder>`, `<environment_context>`, `<current_datetime>`), and change it from request to
request. The user's words are what is left. Some agents wrap the user's words instead (`<task>`,
`<user_query>`); those are unwrapped.
"""

import re
from itertools import islice
from typing import Final

_MAX_LOOKED_AT: Final = 200_000
"""Longer texts are taken as they are: nobody types them, and looking would take long."""
_MAX_ELEMENTS: Final = 200
_OPEN: Final = re.compile(r"(?m)^[ \t]*<([A-Za-z][\w.-]*)(?:\s[^<>\n]*)?>")
_WRAPPERS: Final = frozenset(
    {
        *("answer", "feedback", "prompt", "query", "question", "request", "task", "userrequest"),
        *("user_input", "user_message", "user_prompt", "user_query", "user_request", "user_task"),
    }
)
"""Elements around the user's own words, in lower case and with underscores."""
_NAMED: Final = frozenset(
    {"attachments", "context", "environment", "env", "instructions", "reminder", "skills", "tools"}
)
"""Harness elements with one word for a name, which somebody may also write by hand."""
_HEADINGS: Final = re.compile(r"\A#+ AGENTS\.md instructions[^\n]*\n\s*\Z")
"""What Codex puts before the element with a project's instructions."""


def users_words(text: str) -> str:
    """The text without what a harness put into it; empty if nothing of it is the user's."""
    if "<" not in text or len(text) > _MAX_LOOKED_AT:
        return text.strip()
    pieces: list[str] = []
    begun = 0
    for _ in range(_MAX_ELEMENTS):
        if (found := _OPEN.search(text, begun)) is None:
            break
        name = found[1].lower().replace("-", "_")
        end = text.find(f"</{found[1]}>", found.end())
        if end < 0 or not _is_harness(found[1], name):
            pieces.append(text[begun : found.end()])
            begun = found.end()
            continue
        pieces.append(text[begun : found.start()])
        if name in _WRAPPERS:
            pieces.append(text[found.end() : end])
        begun = end + len(found[1]) + 3
    pieces.append(text[begun:])
    words = "".join(pieces).strip()
    return "" if begun and _HEADINGS.match(f"{words}\n") else words


def harness_elements(text: str) -> tuple[str, ...]:
    """The names of the elements at the beginnings of lines that a harness may have put there."""
    if "<" not in text or len(text) > _MAX_LOOKED_AT:
        return ()
    tags = dict.fromkeys(found[1] for found in islice(_OPEN.finditer(text), _MAX_ELEMENTS))
    return tuple(tag for tag in tags if _is_harness(tag, tag.lower().replace("-", "_")))


def _is_harness(tag: str, name: str) -> bool:
    camel = tag not in {tag.lower(), tag.upper(), tag.capitalize()}
    return "_" in name or name in _WRAPPERS or name in _NAMED or camel
