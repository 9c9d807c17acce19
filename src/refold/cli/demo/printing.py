"""The demo as plain text, while it plays: for pipes, and for terminals that are no screen."""

import json
from collections.abc import Callable
from typing import Any

from pydantic_ai import AgentRunResultEvent, FunctionToolCallEvent
from pydantic_ai.messages import (
    AgentStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from refold.cli.demo.play import Asked
from refold.integrations.pydantic_ai import SessionEvent


class Printing:
    """Prints what it hears.

    Args:
        out: Where the text goes, piece by piece.
    """

    def __init__(self, out: Callable[[str], None]) -> None:
        self._out = out
        self._open = False
        """Whether a line is begun and not ended."""

    def __call__(self, event: Asked | AgentStreamEvent | AgentRunResultEvent[Any]) -> None:
        """Print what there is to see of it."""
        match event:
            case Asked(prompt=prompt):
                self._line(f"\n> {prompt}")
            case PartStartEvent(part=TextPart(content=text)):
                self._say(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._say(text)
            case FunctionToolCallEvent():
                called = event.part
                values = json.loads(called.args_as_json_str()).values()
                self._line("  " + " ".join([called.tool_name, *map(str, values)]))
            case SessionEvent(name="session.compaction_complete", details=details):
                before, after = details["preCompactionTokens"], details["postCompactionTokens"]
                removed = f"{details['messagesRemoved']} messages"
                self._line(f"  Conversation Compacted: {removed}, {before:,} → {after:,} tokens")
            case _:
                pass

    def end(self) -> None:
        """End the line that is begun."""
        if self._open:
            self._out("\n")
            self._open = False

    def _say(self, text: str) -> None:
        self._out(text)
        self._open = self._open or bool(text)

    def _line(self, text: str) -> None:
        self.end()
        self._out(f"{text}\n")
