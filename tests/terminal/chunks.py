"""Answers in the form of OpenAI's chat completions, streamed and whole."""

import json
import re
from collections.abc import Iterator
from typing import Any

from terminal.pieces import Asked, Call, Piece, Thought, Used

_ABOUT = {"id": "chatcmpl-1", "created": 1}
_WORDS = re.compile(r"\S+\s*|\s+")
_BLOCK = 128  # tokens: what caches hold is counted in such blocks
_LEAST_CACHED = 1024


def counted(text: str) -> int:
    """About so many tokens."""
    return len(text) // 4


def prompt_of(asked: Asked) -> str:
    """All that the model is shown, as one text that begins alike for requests that do."""
    return json.dumps([asked.body.get("tools"), *asked.messages])


def used(asked: Asked, before: str, pieces: list[Piece]) -> Used:
    """What an answer uses; the provider has cached what this request has in common with another."""
    told = [piece for piece in pieces if isinstance(piece, Used)]
    if told:
        return told[-1]
    now = prompt_of(asked)
    common = counted(now[: _common(now, before)])
    cached = common // _BLOCK * _BLOCK if common >= _LEAST_CACHED else 0
    answer = "".join(map(_text, pieces))
    return Used(counted(now), max(1, counted(answer)), cached)


def _common(one: str, other: str) -> int:
    """How many characters they begin alike with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def deltas(piece: Piece, index: int) -> Iterator[dict[str, Any]]:
    """The changes by which a piece is streamed; `index` is how many calls came before."""
    match piece:
        case str():
            yield from ({"content": word} for word in _WORDS.findall(piece))
        case Thought():
            yield from ({"reasoning_content": word} for word in _WORDS.findall(piece.text))
        case Call():
            first = {"name": piece.tool, "arguments": ""}
            begun = {"index": index, "id": _id(index, piece), "type": "function"}
            yield {"tool_calls": [{**begun, "function": first}]}
            for at in range(0, len(piece.json), 12):
                some = {"arguments": piece.json[at : at + 12]}
                yield {"tool_calls": [{"index": index, "function": some}]}
        case _:
            return


def chunk(model: str, delta: dict[str, Any], finish: str | None = None) -> str:
    """An event of the stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    about = {**_ABOUT, "model": model, "object": "chat.completion.chunk"}
    return event({**about, "choices": [choice]})


def usage_chunk(model: str, usage: Used) -> str:
    """The event that says what was used."""
    about = {**_ABOUT, "model": model, "object": "chat.completion.chunk"}
    return event({**about, "choices": [], "usage": figures(usage)})


def event(data: object) -> str:
    """Data as a server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


def whole(model: str, pieces: list[Piece], usage: Used) -> dict[str, Any]:
    """The answer to who did not ask for a stream."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(piece for piece in pieces if isinstance(piece, str)) or None,
    }
    calls = [piece for piece in pieces if isinstance(piece, Call)]
    if calls:
        message["tool_calls"] = [
            {
                "id": _id(index, call),
                "type": "function",
                "function": {"name": call.tool, "arguments": call.json},
            }
            for index, call in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish_of(pieces)}
    about = {**_ABOUT, "model": model, "object": "chat.completion"}
    return {**about, "choices": [choice], "usage": figures(usage)}


def finish_of(pieces: list[Piece]) -> str:
    """Why the answer ends."""
    return "tool_calls" if any(isinstance(piece, Call) for piece in pieces) else "stop"


def figures(usage: Used) -> dict[str, Any]:
    """What was used, as OpenAI tells it."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.answer,
        "total_tokens": usage.prompt + usage.answer,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _text(piece: Piece) -> str:
    match piece:
        case str():
            return piece
        case Thought():
            return piece.text
        case Call():
            return piece.tool + piece.json
        case _:
            return ""


def _id(index: int, call: Call) -> str:
    return f"call_{index}_{call.tool}"
