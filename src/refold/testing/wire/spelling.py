"""How a script is written in a format, and in which spelling of JSON."""

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from hypothesis import strategies as st
from pydantic import JsonValue

from refold.testing.wire.script import Said

Object = dict[str, JsonValue]
Json = Callable[[JsonValue], bytes]


class Spelling(Protocol):
    """Writes what is said as native messages of one format."""

    def spell(self, said: Said) -> Sequence[Object]:
        """The messages; none where the format keeps such things elsewhere."""
        ...


def _json(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _spaced(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _escaped(value: JsonValue) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


_styles: st.SearchStrategy[Json] = st.sampled_from([_json, _spaced, _escaped])


def as_text(content: JsonValue) -> str:
    """Content as a format without JSON results carries it."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


@st.composite
def payloads(
    draw: st.DrawFn, scripts: st.SearchStrategy[list[Said]], spelling: Spelling
) -> list[bytes]:
    """Conversations as payloads, in one of the ways in which clients write JSON."""
    style = draw(_styles)
    return [style(message) for one in draw(scripts) for message in spelling.spell(one)]
