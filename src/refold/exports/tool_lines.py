"""Calls of tools as one line each."""

import json
from typing import Any, cast

from refold.wire import Shape


def call_line(shape: Shape) -> str:
    """A call as one line: the tool, and what it was given."""
    return f"{shape.tool or 'tool'} {given(shape.text)}".rstrip()


def given(arguments: str) -> str:
    """Arguments as a person would write them: path=src/app.py, lines=40."""
    try:
        values: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return " ".join(arguments.split())
    if not isinstance(values, dict):
        return " ".join(arguments.split())
    pairs = cast("dict[str, object]", values).items()
    return ", ".join(f"{name}={_value(value)}" for name, value in pairs)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


class Tools:
    """Which tool each call was of, because a result may not say."""

    def __init__(self) -> None:
        self._of: dict[str | None, str] = {}

    def note(self, shape: Shape) -> None:
        """Keep what a call says."""
        if shape.kind == "call" and shape.tool:
            self._of[shape.call] = shape.tool

    def of(self, shape: Shape) -> str:
        """The tool of a result."""
        return shape.tool or self._of.get(shape.call) or "tool"
