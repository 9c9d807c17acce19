"""OpenAI's chat completions, and servers that speak the same."""

from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects import chat_answers
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.dialects.likeness import (
    Told,
    alike,
    arguments,
    contents,
    item,
    named,
    other,
    refused,
)
from refold.gateway.dialects.reading import Form
from refold.gateway.dialects.refusing import openai_refusal
from refold.gateway.dialects.seen_before import Seen
from refold.wire import wire_for
from refold.wire.splice import Object, objects


def openai_identifiers(body: Object) -> tuple[JsonValue, ...]:
    """Whom an OpenAI client says it speaks for."""
    return body.get("user"), body.get("safety_identifier")


def _elsewhere(body: Object) -> str:
    return "" if body.get("n") in (None, 1) else "it asks for more than one answer"


def _looked(message: Object) -> tuple[bytes, bool]:
    role = message.get("role")
    answers = role == "assistant"
    told = _said(message)
    if answers and not told:
        return b"", True
    whose = "" if answers else named(message.get("name"))
    call = named(message.get("tool_call_id"))
    return alike((named(role), whose, call, told)), answers


def _said(message: Object) -> list[Told]:
    if named(message.get("role")) not in _ROLES:
        return [other(message)]
    told: list[Told | None] = [
        *contents(message.get("content"), item),
        refused(message.get("refusal")),
        _audio(message.get("audio")),
        _function("", message.get("function_call")),
        *map(_call, objects(message.get("tool_calls"))),
    ]
    return [one for one in told if one is not None]


def _audio(audio: JsonValue) -> Told | None:
    return ("audio", named(audio.get("id"))) if isinstance(audio, dict) else None


def _call(call: Object) -> Told | None:
    id_ = named(call.get("id"))
    if function := _function(id_, call.get("function")):
        return function
    custom = call.get("custom")
    if isinstance(custom, dict):
        return ("custom", id_, named(custom.get("name")), named(custom.get("input")))
    return other({key: value for key, value in call.items() if key != "index"})


def _function(id_: str, function: JsonValue) -> Told | None:
    if not isinstance(function, dict):
        return None
    return ("call", id_, named(function.get("name")), arguments(function.get("arguments")))


_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

_NAME: Final = "openai-chat"
OPENAI_CHAT: Final = Dialect(
    _NAME,
    "/v1/chat/completions",
    Form(
        conversation="messages",
        instructions=None,  # the system messages in front
        tools=("tools", "functions"),
        elsewhere=_elsewhere,
        identifiers=openai_identifiers,
        seen=Seen(wire_for(_NAME), _looked),
    ),
    answer=chat_answers.answer,
    assembling=chat_answers.AssemblingChat,
    refusal=openai_refusal,
)
"""The dialect of chat completions."""
