"""A server like the providers', that answers as it is told: an ASGI application.

It speaks chat completions, responses and messages, in streams and whole. For tests of what lies
before it; nothing in it thinks.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from itertools import count
from typing import Any, cast

from refold.testing.upstream_checks import (
    Call,
    Got,
    Json,
    Refusal,
    Reply,
    RequestChecker,
    signature_of,
)

__all__ = [
    "Broken",
    "Call",
    "Got",
    "Refusal",
    "Rendered",
    "Reply",
    "Replying",
    "RequestChecker",
    "ScriptedUpstream",
]


# The answers of a scripted upstream in each provider's form: whole, and as events of a stream.


def _event(data: Json, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _pieces(text: str, pieces: int) -> Iterator[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    for at in range(0, len(text), size):
        yield text[at : at + size]


class Rendered:
    def __init__(self, got: Got, reply: Reply, nth: int) -> None:
        self._reply = reply
        self._model = str(got.body.get("model", "scripted"))
        self._id = f"{nth:08d}"
        include = got.body.get("include")
        self._encrypted = isinstance(include, list) and "reasoning.encrypted_content" in include
        kinds = {"/v1/chat/completions": "chat", "/v1/responses": "responses"}
        self._kind = kinds.get(got.path, "messages")

    def whole(self) -> Json:
        return cast("Json", getattr(self, f"_{self._kind}")())

    def events(self) -> Iterator[bytes]:
        return cast("Iterator[bytes]", getattr(self, f"_{self._kind}_events")())

    # Chat completions.

    def _chat(self) -> Json:
        message: Json = {"role": "assistant", "content": self._reply.text or None, "refusal": None}
        if self._reply.thought:
            message["reasoning_content"] = self._reply.thought
        if self._reply.calls:
            message["tool_calls"] = [self._chat_call(one) for one in self._reply.calls]
        finish = "tool_calls" if self._reply.calls else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return self._chat_frame("chat.completion", [choice], usage=True)

    def _chat_events(self) -> Iterator[bytes]:
        yield self._delta({"role": "assistant", "content": ""})
        for piece in _pieces(self._reply.thought, self._reply.pieces):
            yield self._delta({"reasoning_content": piece})
        for piece in _pieces(self._reply.text, self._reply.pieces):
            yield self._delta({"content": piece})
        for nth, call in enumerate(self._reply.calls):
            whole = self._chat_call(call)
            arguments = whole["function"]["arguments"]
            begun = {**whole, "index": nth, "function": {"name": call.tool, "arguments": ""}}
            yield self._delta({"tool_calls": [begun]})
            for piece in _pieces(arguments, 2):
                yield self._delta(
                    {"tool_calls": [{"index": nth, "function": {"arguments": piece}}]}
                )
        finish = "tool_calls" if self._reply.calls else "stop"
        yield self._delta({}, finish)
        if self._reply.usage:
            yield _event(self._chat_frame("chat.completion.chunk", [], usage=True))
        yield b"data: [DONE]\n\n"

    def _delta(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event(self._chat_frame("chat.completion.chunk", [choice]))

    def _chat_frame(self, kind: str, choices: list[Json], *, usage: bool = False) -> Json:
        frame: Json = {
            "id": f"chatcmpl-{self._id}",
            "object": kind,
            "created": 0,
            "model": self._model,
            "choices": choices,
        }
        if usage and self._reply.usage:
            sent, made = self._reply.usage
            frame["usage"] = {
                "prompt_tokens": sent,
                "completion_tokens": made,
                "total_tokens": sent + made,
            }
        return frame

    def _chat_call(self, call: Call) -> Json:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        return {"id": call.id, "type": "function", "function": function}

    # Responses.

    def _items(self) -> list[Json]:
        items: list[Json] = []
        if self._reply.thought:
            summary = [{"type": "summary_text", "text": self._reply.thought}]
            thought: Json = {"type": "reasoning", "id": f"rs_{self._id}", "summary": summary}
            if self._encrypted:
                thought["encrypted_content"] = signature_of(self._id, self._reply.thought)
            items.append(thought)
        if self._reply.text:
            content: list[Json] = [
                {"type": "output_text", "text": self._reply.text, "annotations": []}
            ]
            items.append(
                {
                    "type": "message",
                    "id": f"msg_{self._id}",
                    "role": "assistant",
                    "status": "completed",
                    "content": content,
                }
            )
        items += [
            {
                "type": "function_call",
                "id": f"fc_{self._id}_{nth}",
                "call_id": call.id,
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
            for nth, call in enumerate(self._reply.calls)
        ]
        return items

    def _responses(self, status: str = "completed", output: list[Json] | None = None) -> Json:
        frame: Json = {
            "id": f"resp_{self._id}",
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": self._model,
            "output": self._items() if output is None else output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
        }
        if self._reply.usage and status == "completed":
            sent, made = self._reply.usage
            frame["usage"] = {
                "input_tokens": sent,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": made,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": sent + made,
            }
        return frame

    def _responses_events(self) -> Iterator[bytes]:
        numbers = count()

        def event(kind: str, **fields: Any) -> bytes:  # noqa: ANN401 - whatever the event has
            return _event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

        yield event("response.created", response=self._responses("in_progress", []))
        for nth, item in enumerate(self._items()):
            empty = {**item, "status": "in_progress"}
            empty |= {"content": []} if item["type"] == "message" else {}
            empty |= {"arguments": ""} if item["type"] == "function_call" else {}
            yield event("response.output_item.added", output_index=nth, item=empty)
            if item["type"] == "message":
                yield from self._responses_text(event, nth, item)
            elif item["type"] == "function_call":
                where = {"item_id": item["id"], "output_index": nth}
                for piece in _pieces(item["arguments"], 2):
                    yield event("response.function_call_arguments.delta", **where, delta=piece)
                yield event(
                    "response.function_call_arguments.done",
                    **where,
                    name=item["name"],
                    arguments=item["arguments"],
                )
            yield event("response.output_item.done", output_index=nth, item=item)
        yield event("response.completed", response=self._responses())

    def _responses_text(self, event: Callable[..., bytes], nth: int, item: Json) -> Iterator[bytes]:
        where = {"item_id": item["id"], "output_index": nth, "content_index": 0}
        part: Json = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **where, part=part)
        for piece in _pieces(self._reply.text, self._reply.pieces):
            yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
        yield event("response.output_text.done", **where, text=self._reply.text, logprobs=[])
        yield event("response.content_part.done", **where, part=item["content"][0])

    # Messages.

    def _blocks(self) -> list[Json]:
        thinking = self._reply.thought
        signature = signature_of(self._id, thinking)
        thought = {"type": "thinking", "thinking": thinking, "signature": signature}
        blocks: list[Json] = [thought] if thinking else []
        blocks += [{"type": "text", "text": self._reply.text}] if self._reply.text else []
        blocks += [
            {"type": "tool_use", "id": one.id, "name": one.tool, "input": one.arguments}
            for one in self._reply.calls
        ]
        return blocks

    def _messages(self) -> Json:
        sent, made = self._reply.usage or (0, 0)
        return {
            "id": f"msg_{self._id}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": self._blocks(),
            "stop_reason": "tool_use" if self._reply.calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": sent, "output_tokens": made},
        }

    def _messages_events(self) -> Iterator[bytes]:
        whole = self._messages()
        begun: Json = {**whole, "content": [], "stop_reason": None}
        yield _event({"type": "message_start", "message": begun}, "message_start")
        for nth, block in enumerate(self._blocks()):
            yield from self._block_events(nth, block)
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": whole["usage"]["output_tokens"]}
        yield _event({"type": "message_delta", "delta": delta, "usage": usage}, "message_delta")
        yield _event({"type": "message_stop"}, "message_stop")

    def _block_events(self, nth: int, block: Json) -> Iterator[bytes]:
        kind = block["type"]
        empty: Json = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
        start: Json = {**block, **empty.get(kind, {"input": {}})}
        deltas: list[Json] = []
        match kind:
            case "text":
                pieces = _pieces(block["text"], self._reply.pieces)
                deltas = [{"type": "text_delta", "text": one} for one in pieces]
            case "thinking":
                deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case _:
                pieces = _pieces(json.dumps(block["input"]), 2)
                deltas = [{"type": "input_json_delta", "partial_json": one} for one in pieces]
        frame: Json = {"type": "content_block_start", "index": nth, "content_block": start}
        yield _event(frame, "content_block_start")
        for delta in deltas:
            frame = {"type": "content_block_delta", "index": nth, "delta": delta}
            yield _event(frame, "content_block_delta")
        yield _event({"type": "content_block_stop", "index": nth}, "content_block_stop")


Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


Replying = Callable[[Got], "Reply | Refusal | Awaitable[Reply | Refusal]"]


class ScriptedUpstream:
    """Answers each request by a function, and keeps what it got.

    With `checker` it refuses what the real API would refuse.
    """

    def __init__(
        self, reply: Replying, *, keep: bool = True, checker: RequestChecker | None = None
    ) -> None:
        self._reply = reply
        self.checker = checker
        self._keep = keep
        self._ids = count(1)
        self.got: list[Got] = []

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Send,
    ) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        got = Got(scope["path"], headers, await _body(receive))
        if self._keep:
            self.got.append(got)
        refused = self.checker.check(got) if self.checker else None
        reply = refused or self._reply(got)
        told = reply if isinstance(reply, Reply | Refusal) else await reply
        if isinstance(told, Refusal):
            await _whole(send, told.status, json.dumps(told.body).encode(), told.headers)
            return
        number = next(self._ids) if told.number is None else told.number
        made = Rendered(got, told, number)
        if self.checker:
            self.checker.answered(made.whole())
        if got.body.get("stream"):
            await _streamed(send, [*made.events()], told)
        else:
            await _whole(send, 200, json.dumps(made.whole()).encode())


class Broken(Exception):
    """The connection breaks, as it was told to."""


async def _body(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _whole(
    send: Send, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    more = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    kind = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": body})


async def _streamed(send: Send, events: list[bytes], reply: Reply) -> None:
    kind = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": kind})
    for nth, event in enumerate(events):
        if nth == reply.breaks_after:
            raise Broken
        if reply.pause is not None and nth == len(events) // 2:
            await reply.pause()
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
