"""The three formats as a client sees them: what it sends, and what it makes of an answer."""

import json
from collections.abc import Iterator
from typing import Any

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PATHS = (CHAT, RESPONSES, MESSAGES)
Json = dict[str, Any]

_SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}


def body_of(path: str, model: str, history: list[Json], *, stream: bool) -> Json:
    """A request."""
    match path:
        case "/v1/chat/completions":
            system = {"role": "system", "content": "You look after things."}
            function = {"name": "look", "description": "Look.", "parameters": _SCHEMA}
            tools: list[Json] = [{"type": "function", "function": function}]
            more: Json = {"messages": [system, *history]}
        case "/v1/responses":
            tools = [{"type": "function", "name": "look", "parameters": _SCHEMA}]
            more = {"input": history, "instructions": "You look after things.", "store": False}
        case _:
            tools = [{"name": "look", "description": "Look.", "input_schema": _SCHEMA}]
            more = {"messages": history, "system": "You look after things.", "max_tokens": 300}
    return {"model": model, "tools": tools, **more, **({"stream": True} if stream else {})}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def said_in(path: str, answer: Json) -> list[Json]:
    """What a client keeps of a whole answer."""
    match path:
        case "/v1/chat/completions":
            message = answer["choices"][0]["message"]
            return [{key: one for key, one in message.items() if key in _KEPT and one is not None}]
        case "/v1/responses":
            return answer["output"]
        case _:
            return [{"role": "assistant", "content": answer["content"]}]


_KEPT = {"role", "content", "tool_calls"}


def calls_in(path: str, said: list[Json]) -> list[str]:
    """The ids of the calls that an answer makes."""
    match path:
        case "/v1/chat/completions":
            return [one["id"] for one in said[0].get("tool_calls", [])]
        case "/v1/responses":
            return [one["call_id"] for one in said if one.get("type") == "function_call"]
        case _:
            return [one["id"] for one in said[0]["content"] if one["type"] == "tool_use"]


def returns(path: str, calls: list[tuple[str, str]]) -> list[Json]:
    """What the tools returned: for each call its id, and the text."""
    match path:
        case "/v1/chat/completions":
            return [{"role": "tool", "tool_call_id": one, "content": text} for one, text in calls]
        case "/v1/responses":
            return [
                {"type": "function_call_output", "call_id": one, "output": text}
                for one, text in calls
            ]
        case _:
            blocks = [
                {"type": "tool_result", "tool_use_id": one, "content": text} for one, text in calls
            ]
            return [{"role": "user", "content": blocks}] if blocks else []


class Stream:
    """A stream as it comes."""

    def __init__(self, path: str):
        self._path = path
        self._rest = b""
        self._said: list[Json] = []
        self._message: Json = {"role": "assistant", "content": ""}
        self._blocks: list[Json] = []
        self.text = ""
        """What was said so far."""
        self.done = False
        """Whether the final event came."""
        self.failed = False
        self.is_logged = True
        """Unless a comment says that the store could not take the answer."""

    def feed(self, chunk: bytes) -> None:
        *events, self._rest = (self._rest + chunk).split(b"\n\n")
        if b": refold-managed: yes; answer=not-logged" in events:
            self.is_logged = False
        for data in _data(events):
            if data == b"[DONE]":
                self.done = True
                continue
            event = json.loads(data)
            if "error" in event or event.get("type") in {"error", "response.failed"}:
                self.failed = True
            elif self._path == CHAT:
                self._chat(event)
            elif self._path == RESPONSES:
                self._responses(event)
            else:
                self._messages(event)

    @property
    def said(self) -> list[Json]:
        """What a client keeps of it, when it is done."""
        match self._path:
            case "/v1/chat/completions":
                return [{key: one for key, one in self._message.items() if one}]
            case "/v1/responses":
                return self._said
            case _:
                return [{"role": "assistant", "content": self._blocks}]

    def _chat(self, event: Json) -> None:
        for choice in event["choices"]:
            delta = choice["delta"]
            self.text += delta.get("content") or ""
            self._message["content"] = self.text
            for part in delta.get("tool_calls", []):
                calls = self._message.setdefault("tool_calls", [])
                if part["index"] == len(calls):
                    function = {"name": part["function"]["name"], "arguments": ""}
                    calls.append({"id": part["id"], "type": "function", "function": function})
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]

    def _responses(self, event: Json) -> None:
        match event["type"]:
            case "response.output_text.delta":
                self.text += event["delta"]
            case "response.completed":
                self._said = event["response"]["output"]
                self.done = True
            case _:
                pass

    def _messages(self, event: Json) -> None:
        match event["type"]:
            case "content_block_start":
                self._blocks.append(event["content_block"])
                self._partial = ""
            case "content_block_delta":
                block, delta = self._blocks[-1], event["delta"]
                self._partial += delta.get("partial_json", "")
                for key in ("text", "thinking", "signature"):
                    if key in delta:
                        block[key] = block.get(key, "") + delta[key]
                self.text += delta.get("text", "")
            case "content_block_stop" if self._blocks[-1]["type"] == "tool_use":
                self._blocks[-1]["input"] = json.loads(self._partial)
            case "message_stop":
                self.done = True
            case _:
                pass


def _data(events: list[bytes]) -> Iterator[bytes]:
    for event in events:
        for line in event.splitlines():
            if line.startswith(b"data: "):
                yield line.removeprefix(b"data: ")
