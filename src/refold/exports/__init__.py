"""Sessions written for people and programs: Markdown, one JSON object, a web page."""

from collections.abc import AsyncIterator, Callable
from typing import Final, Literal

from refold.errors import InvalidInput as _InvalidInput
from refold.exports.as_html import html as _html
from refold.exports.as_json import json_object as _json_object
from refold.exports.as_markdown import markdown as _markdown
from refold.log import Log as _Log

__all__ = ["ENDINGS", "FORMS", "Form", "exported"]

Form = Literal["markdown", "json", "html"]
_WRITERS: Final[dict[str, Callable[[_Log, str], AsyncIterator[str]]]] = {
    "markdown": _markdown,
    "json": _json_object,
    "html": _html,
}
FORMS: Final = tuple(_WRITERS)
"""The forms besides the JSON lines that can be imported again."""
ENDINGS: Final = {"jsonl": ".jsonl", "markdown": ".md", "json": ".json", "html": ".html"}
"""How the name of a file of each form ends."""


async def exported(log: _Log, session: str, form: str) -> AsyncIterator[str]:
    """The session in that form, in pieces, so that memory stays small however long it is."""
    if form not in _WRITERS:
        raise _InvalidInput(f"There is no form {form!r}.", f"Use one of {', '.join(FORMS)}.")
    async for piece in _WRITERS[form](log, session):
        yield piece
