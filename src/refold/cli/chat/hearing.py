"""The events of an agent's run, in the words of the chat."""

import json
from time import monotonic
from typing import Any, cast

from pydantic_ai import AgentRunResultEvent
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolReturnPart,
)
from pydantic_core import to_json

from refold.cli.chat.events import Called, Heard, Returned, Said, Thought

WAITING = "waiting for another terminal"
_PATIENCE = 1.0
"""Seconds after which a turn that has asked no model is waiting for somebody."""


class Hearing:
    """Follows one run; knows which calls are open and since when."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}
        self._open: dict[str, str] = {}
        self._since = monotonic()
        self.asked = False
        """Whether a model was asked."""
        self.text = ""
        """The answer so far: what was said since the last call."""

    @property
    def doing(self) -> str:
        """The tools at work, or that the model is, or that it is another's turn."""
        if not self.asked and monotonic() - self._since > _PATIENCE:
            return WAITING
        return ", ".join(self._open.values()) or "thinking"

    def heard(self, event: object) -> Heard | None:  # noqa: PLR0911 - one case a kind
        """What there is to hear of an event, if anything."""
        self.asked = True
        match event:
            case PartStartEvent(part=TextPart(content=text)) if text:
                return self._said(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                return self._said(text)
            case PartStartEvent(part=ThinkingPart(content=text)):
                return Thought(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                return Thought(text)
            case FunctionToolCallEvent(part=call):
                return self._called(call.tool_call_id, call.tool_name, call.args)
            case FunctionToolResultEvent(part=result):
                return self._returned(result)
            case AgentRunResultEvent():
                return self._ended(cast("AgentRunResultEvent[object]", event).result.output)
            case _:
                return None

    def _ended(self, output: object) -> Said | None:
        """The answer of an agent that gives a value, or none that was said."""
        if output is None or (isinstance(output, str) and (not output or self.text.strip())):
            return None
        if isinstance(output, str):
            return self._said(output)
        told = _pretty(output)
        if _is_said(told, self.text):
            return None
        gap = "\n\n" if self.text.strip() else ""
        return self._said(f"{gap}```json\n{told}\n```")

    def _said(self, text: str) -> Said:
        self.text += text
        return Said(text)

    def _called(self, call: str, tool: str, arguments: object) -> Called:
        self._begun[call] = monotonic()
        self._open[call] = tool
        self.text = ""
        return Called(call, tool, _on_one_line(arguments))

    def _returned(self, result: ToolReturnPart | object) -> Returned:
        call = str(getattr(result, "tool_call_id", ""))
        tool = self._open.pop(call, "")
        seconds = monotonic() - self._begun.pop(call, monotonic())
        if isinstance(result, ToolReturnPart):
            failed = result.outcome != "success"
            return Returned(call, tool, result.model_response_str(), seconds, failed)
        return Returned(call, tool, str(getattr(result, "content", "")), seconds, failed=True)


def _pretty(output: object) -> str:
    return to_json(output, indent=2, bytes_mode="base64", fallback=str).decode()


def _is_said(told: str, text: str) -> bool:
    """Whether the model has said the same value in the text of its answer."""
    try:
        return json.loads(text) == json.loads(told)
    except ValueError:
        return False


def _on_one_line(arguments: object) -> str:
    """`path=src/app.py lines=20`; JSON where there is more to it."""
    given: Any = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments)
        except ValueError:
            given = arguments
    if not isinstance(given, dict):
        return "" if given in (None, "") else str(given)
    return " ".join(f"{name}={_value(value)}" for name, value in given.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON


def _value(value: object) -> str:
    if isinstance(value, str) and value and " " not in value and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
