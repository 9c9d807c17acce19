"""Providers whose HTTP is a script: real clients, real models of Pydantic AI, no network.

    script = Script(Refused(400, body), Said("Good."))
    model = provider_model("openai", script)

Each request takes the next answer of the script, streamed where the request asks for it, and what
was received is in `script.received`.
"""

import json
from collections.abc import Iterable
from typing import Literal, NamedTuple

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

Kind = Literal["openai", "responses", "anthropic"]


class Refused(NamedTuple):
    """An answer with a status and a body as it came."""

    status: int
    body: str


class Broken(NamedTuple):
    """A stream of status 200 in which an error comes instead of an answer."""

    body: str


class Empty(NamedTuple):
    """A stream of status 200 in which nothing comes."""


class Said(NamedTuple):
    """A good answer; `finish` in the words of the provider."""

    text: str
    input_tokens: int = 10
    output_tokens: int = 5
    finish: str | None = None
    cut: Literal["", "ended", "lost"] = ""
    """The stream ends before the reason for its end comes, or the connection is lost there."""


class _Body(httpx2.AsyncByteStream):
    def __init__(self, text: str, *, lost: bool):
        self._text = text
        self._lost = lost

    async def __aiter__(self):
        yield self._text.encode()
        if self._lost:
            raise httpx2.ReadError("Connection reset by peer")


Answer = Refused | Broken | Empty | Said


class Script:
    """What a provider answers, one after the other, and what it was asked."""

    def __init__(self, *answers: Answer):
        self.answers = list(answers)
        self.received = []


def provider_model(kind: Kind, script: Script, name: str | None = None) -> Model:
    """A model of Pydantic AI that talks to the script."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        script.received.append(body)
        assert script.answers, "the script has no more answers"
        return _response(kind, script.answers.pop(0), streamed=body.get("stream", False))

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    if kind == "anthropic":
        client = AsyncAnthropic(api_key="none", http_client=http, max_retries=0)
        model = name or "claude-scripted"  # a real one is deprecated some day, with a warning
        return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    client = AsyncOpenAI(api_key="none", http_client=http, max_retries=0)
    provider = OpenAIProvider(openai_client=client)
    made = OpenAIChatModel if kind == "openai" else OpenAIResponsesModel
    return made(name or "gpt-4o", provider=provider)


def _response(kind: Kind, answer: Answer, *, streamed: bool) -> httpx2.Response:
    match answer:
        case Refused(status, body):
            json_type = {"content-type": "application/json"}
            return httpx2.Response(status, text=body, headers=json_type)
        case Broken(body):
            return _stream([("error", body)])
        case Empty():
            return _stream([])
        case Said():
            pieces = {"openai": _openai, "responses": _responses, "anthropic": _anthropic}[kind]
            whole, events = pieces(answer)
            if answer.cut:
                cut = events[: {"openai": 1, "responses": 3, "anthropic": 4}[kind]]
                return _stream(_as_text(cut), lost=answer.cut == "lost")
            if streamed:
                return _stream(_as_text(events))
            return httpx2.Response(200, json=whole)


def _as_text(events: Iterable[tuple[str, object]]) -> Iterable[tuple[str, str]]:
    return ((name, json.dumps(data)) for name, data in events)


def _stream(events: Iterable[tuple[str, str]], *, lost: bool = False) -> httpx2.Response:
    lines = "".join(
        (f"event: {name}\n" if name else "")
        + "".join(f"data: {line}\n" for line in data.split("\n"))
        + "\n"
        for name, data in events
    )
    kind = {"content-type": "text/event-stream"}
    return httpx2.Response(200, stream=_Body(lines, lost=lost), headers=kind)


def _openai(said: Said):
    usage = {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
    }
    finish = said.finish or "stop"
    message = {"role": "assistant", "content": said.text}
    about = {"id": "1", "created": 1, "model": "gpt-4o"}
    whole = {
        **about,
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": usage,
    }
    chunk = {**about, "object": "chat.completion.chunk"}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**chunk, "choices": [], "usage": usage},
    ]
    return whole, [("", event) for event in events]


def _responses(said: Said):
    text = {"type": "output_text", "text": said.text, "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    whole = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o",
        "status": "completed",
        "output": [{**item, "content": [text]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": said.input_tokens,
            "output_tokens": said.output_tokens,
            "total_tokens": said.input_tokens + said.output_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": "m", "output_index": 0, "content_index": 0}
    parts = [
        ("response.created", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
        ("response.output_text.delta", {**at, "delta": said.text, "logprobs": []}),
        ("response.completed", {"response": whole}),
    ]
    return whole, [
        (name, {"type": name, "sequence_number": number, **data})
        for number, (name, data) in enumerate(parts)
    ]


def _anthropic(said: Said):
    stop = {"stop_reason": said.finish or "end_turn", "stop_sequence": None}
    whole = {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "claude-scripted",
        "content": [{"type": "text", "text": said.text}],
        **stop,
        "usage": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
    }
    begun = {**whole, "content": [], "stop_reason": None}
    parts = [
        ("message_start", {"message": begun}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": said.text}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": stop, "usage": {"output_tokens": said.output_tokens}}),
        ("message_stop", {}),
    ]
    return whole, [(name, {"type": name, **data}) for name, data in parts]
