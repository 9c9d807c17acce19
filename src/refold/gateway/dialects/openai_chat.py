"""OpenAI's chat completions, and servers that speak the same."""

from collections.abc import Sequence
from typing import ClassVar, Final

from pydantic import JsonValue

from refold.gateway.dialects import chat_answers
from refold.gateway.dialects.answered import Answer, Assembling
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.bounded_json import Object
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
from refold.gateway.dialects.reading import Form, asked_of, body_of
from refold.gateway.dialects.refusing import openai_refusal
from refold.gateway.dialects.seen_before import Seen
from refold.wire import wire_for
from refold.wire.splice import objects


class OpenAIChat:
    """The dialect of `/v1/chat/completions`."""

    name: ClassVar[str] = "openai-chat"
    path: ClassVar[str] = "/v1/chat/completions"

    def __init__(self) -> None:
        self._seen = Seen(wire_for(self.name), _looked)
        self._form = Form(
            "messages", None, ("tools", "functions"), _elsewhere, openai_user, self._seen
        )

    def read(self, raw: bytes) -> Asked:
        """The request; the system messages in front are its instructions."""
        return asked_of(raw, self._form)

    def likeness(self, payload: bytes) -> bytes:
        """What identifies the message; empty if the model says nothing in it."""
        return self._seen(payload).likeness

    def answers(self, payload: bytes) -> bool:
        """Whether the model said it."""
        return self._seen(payload).answers

    def body(self, asked: Asked, messages: Sequence[bytes]) -> bytes:
        """The request with these messages after the instructions."""
        return body_of(asked, self._form, messages)

    def answer(self, body: bytes) -> Answer | None:
        """The answer in a whole response."""
        return chat_answers.answer(body)

    def assembling(self) -> Assembling:
        """What makes the answer of a stream's chunks."""
        return chat_answers.AssemblingChat()

    def refusal(self, status: int, code: str, words: str) -> bytes:
        """An error in OpenAI's shape."""
        return openai_refusal(status, code, words)


def openai_user(body: Object) -> JsonValue:
    """Whom an OpenAI client says it speaks for."""
    return body.get("user") or body.get("safety_identifier")


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
