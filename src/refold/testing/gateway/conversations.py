"""Conversations in each format, with all that clients and providers put into them."""

import json
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from pydantic import JsonValue

# Texts, numbers and fields of all kinds, from a source of random numbers.

Object = dict[str, JsonValue]

_WORDS: Final = (
    *("alpha", "beta", "read the file", "Zürich", "日本語", "\U0001f600", "e\u0301"),
    *('"quoted"', "back\\slash", "line\nline", "\t", "\u2028", "\x7f", "</script>", "null", "[1]"),
)
_NUMBERS: Final[tuple[JsonValue, ...]] = (
    *(0, -1, 7, 2**53 + 1, 10**30, -(2**63)),
    *(1.0, -0.0, 0.1, 1e22, 1e-7, 5e-324, 1.7976931348623157e308),
)


def chance(random: Random, of: float) -> bool:
    return random.random() < of


def text(random: Random) -> str:
    said = " ".join(random.choices(_WORDS, k=random.randint(1, 4)))
    return said + " \ud800" if chance(random, 0.01) else said


def name(random: Random, prefix: str) -> str:
    return f"{prefix}_{random.randrange(10**9)}"


def value(random: Random, depth: int = 2) -> JsonValue:
    kind = random.randrange(6 if depth else 4)
    if kind < 2:
        return text(random)
    if kind == 2:
        return random.choice(_NUMBERS)
    if kind == 3:
        return random.choice((None, True, False, "", {}, []))
    if kind == 4:
        return [value(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {text(random): value(random, depth - 1) for _ in range(random.randint(0, 3))}


def arguments(random: Random) -> Object:
    return {f"{key}{random.randrange(9)}": value(random) for key in random.choices("abcd", k=2)}


def with_extras(random: Random, given: Object) -> Object:
    if chance(random, 0.2):
        given = {**given, f"x_{random.randrange(9)}": value(random)}
    return given


def with_mark(random: Random, given: Object) -> Object:
    return {**given, "cache_control": mark(random)} if chance(random, 0.15) else given


def mark(random: Random) -> Object:
    return {"type": "ephemeral", **({"ttl": "1h"} if chance(random, 0.3) else {})}


def spelled(random: Random, given: JsonValue) -> str:
    """The value as JSON, in one of the ways in which clients write it."""
    style = random.randrange(3)
    if style == 0:
        return json.dumps(given)
    if style == 1:
        return json.dumps(given, separators=(",", ":"))
    return json.dumps(given, indent=2, sort_keys=True)


def as_body(random: Random, given: JsonValue) -> bytes:
    if chance(random, 0.5):
        try:
            return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            pass
    return spelled(random, given).encode()


def shuffled(random: Random, given: JsonValue) -> JsonValue:
    match given:
        case dict():
            keys = list(given)
            random.shuffle(keys)
            return {key: shuffled(random, given[key]) for key in keys}
        case list():
            return [shuffled(random, one) for one in given]
        case _:
            return given


class _Call(NamedTuple):
    id: str
    tool: str
    given: Object


def conversation(format_name: str, random: Random, turns: int = 4) -> list[Object]:
    spell = _SPELLINGS[format_name]
    messages: list[Object] = []
    for _ in range(random.randint(1, turns)):
        messages += spell(random)
    if chance(random, 0.1):
        random.shuffle(messages)
    return messages


def _calls(random: Random) -> list[_Call]:
    count = random.choice((0, 0, 1, 2))
    return [
        _Call(name(random, "call"), random.choice(("read", "write")), arguments(random))
        for _ in range(count)
    ]


def _content(random: Random, kinds: dict[str, str]) -> JsonValue:
    if chance(random, 0.5):
        return text(random)
    return [_item(random, kinds) for _ in range(random.randint(1, 3))]


def _item(random: Random, kinds: dict[str, str]) -> JsonValue:
    kind = random.choice(("text", "text", "image", "file", "hologram"))
    spelled_kind = kinds.get(kind, kind)
    item: Object = {"type": spelled_kind}
    match spelled_kind:
        case "text" | "input_text":
            item["text"] = text(random)
        case "image_url":
            item["image_url"] = {"url": _address(random), "detail": "low"}
        case "input_image":
            item |= {"image_url": _address(random), "detail": "auto"}
        case "file":
            item["file"] = {"file_id": name(random, "file")}
        case "input_file":
            item |= {"file_data": _address(random), "filename": "a.pdf"}
        case "image" | "document":
            item["source"] = {"type": "url", "url": _address(random)}
        case _:
            item |= {"depth": value(random), "what": text(random)}
    return with_mark(random, with_extras(random, item))


def _address(random: Random) -> str:
    if chance(random, 0.5):
        return f"data:image/png;base64,{random.randrange(10**20):020d}"
    return f"https://example.com/{random.randrange(10**9)}.png"


def _chat(random: Random) -> list[Object]:
    asked: Object = {"role": "user", "content": _content(random, _CHAT)}
    if chance(random, 0.1):
        asked["name"] = name(random, "person")
    calls = _calls(random)
    returns = [
        with_extras(
            random, {"role": "tool", "tool_call_id": call.id, "content": _result(random, "text")}
        )
        for call in calls
    ]
    late: list[Object] = [{"role": "developer", "content": text(random)}]
    return [
        with_extras(random, asked),
        _chat_answer(random, calls),
        *returns,
        *(late if chance(random, 0.1) else []),
    ]


def _chat_answer(random: Random, calls: list[_Call]) -> Object:
    answer: Object = {"role": "assistant", "content": text(random)}
    if calls and chance(random, 0.5):
        answer["content"] = None
    if chance(random, 0.3):
        answer["reasoning_content"] = text(random)
    if chance(random, 0.3):
        answer |= {"refusal": None, "audio": None, "annotations": []}
    if chance(random, 0.1):
        answer["refusal"] = text(random)
    if calls:
        answer["tool_calls"] = [_chat_call(random, call) for call in calls]
    return with_extras(random, answer)


def _chat_call(random: Random, call: _Call) -> JsonValue:
    if chance(random, 0.1):
        custom: Object = {"name": call.tool, "input": text(random)}
        return {"id": call.id, "type": "custom", "custom": custom}
    function: Object = {"name": call.tool, "arguments": spelled(random, call.given)}
    return with_extras(random, {"id": call.id, "type": "function", "function": function})


def _result(random: Random, kind: str) -> JsonValue:
    if chance(random, 0.6):
        return text(random)
    item: Object = {"type": kind, "text": text(random)}
    return [with_mark(random, item) for _ in range(random.randint(1, 2))]


def _anthropic(random: Random) -> list[Object]:
    calls = _calls(random)
    answer = {"role": "assistant", "content": _anthropic_answer(random, calls)}
    messages: list[Object] = [
        with_extras(random, {"role": "user", "content": _content(random, _ANTHROPIC)}),
        with_extras(random, answer),
    ]
    if calls:
        returns: list[JsonValue] = [_anthropic_return(random, call) for call in calls]
        messages.append({"role": "user", "content": returns})
    return messages


def _anthropic_answer(random: Random, calls: list[_Call]) -> JsonValue:
    if not calls and chance(random, 0.3):
        return text(random)
    blocks: list[JsonValue] = []
    if chance(random, 0.3):
        blocks.append({"type": "thinking", "thinking": text(random), "signature": "c2ln"})
    if chance(random, 0.1):
        blocks.append({"type": "redacted_thinking", "data": "c2VhbGVk"})
    blocks.append(with_mark(random, {"type": "text", "text": text(random), "citations": None}))
    for call in calls:
        block: Object = {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.given}
        blocks.append(with_mark(random, with_extras(random, block)))
    if chance(random, 0.1):
        blocks += _served(random)
    return blocks


def _served(random: Random) -> list[JsonValue]:
    call = name(random, "srvtoolu")
    return [
        {"type": "server_tool_use", "id": call, "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": call, "content": [value(random)]},
    ]


def _anthropic_return(random: Random, call: _Call) -> JsonValue:
    block: Object = {"type": "tool_result", "tool_use_id": call.id}
    block["content"] = _result(random, "text")
    if chance(random, 0.2):
        block["is_error"] = chance(random, 0.5)
    return with_mark(random, with_extras(random, block))


def _responses(random: Random) -> list[Object]:
    calls = _calls(random)
    items: list[Object] = [{"role": "user", "content": _content(random, _RESPONSES)}]
    if chance(random, 0.5):
        items[0]["type"] = "message"
    for call in calls:
        if chance(random, 0.4):
            items.append(_reasoning(random))
        items.append(with_extras(random, _responses_call(random, call)))
    for call in calls:
        result: Object = {"type": "function_call_output", "call_id": call.id}
        items.append(with_extras(random, {**result, "output": _result(random, "input_text")}))
    if chance(random, 0.1):
        action: Object = {"type": "search", "query": text(random)}
        items.append({"type": "web_search_call", "id": name(random, "ws"), "action": action})
    if chance(random, 0.3):
        items.append(_reasoning(random))
    return [*items, with_extras(random, _responses_answer(random))]


def _reasoning(random: Random) -> Object:
    summary: JsonValue = [{"type": "summary_text", "text": text(random)}]
    return {"type": "reasoning", "id": name(random, "rs"), "summary": summary}


def _responses_call(random: Random, call: _Call) -> Object:
    own: Object = {"id": name(random, "fc"), "status": "completed"}
    given = spelled(random, call.given)
    item: Object = {"type": "function_call", "call_id": call.id, "name": call.tool}
    return {**item, "arguments": given, **(own if chance(random, 0.5) else {})}


def _responses_answer(random: Random) -> Object:
    if chance(random, 0.3):
        return {"role": "assistant", "content": text(random)}
    said: Object = {"type": "output_text", "text": text(random), "annotations": [], "logprobs": []}
    answer: Object = {"type": "message", "role": "assistant", "content": [said]}
    return {**answer, "id": name(random, "msg"), "status": "completed"}


_CHAT: Final = {"image": "image_url", "file": "file"}
_ANTHROPIC: Final = {"file": "document"}
_RESPONSES: Final = {"text": "input_text", "image": "input_image", "file": "input_file"}
_SPELLINGS: Final[dict[str, Callable[[Random], list[Object]]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic-messages": _anthropic,
}
FORMATS: Final = tuple(_SPELLINGS)
"""The formats that requests are made in."""
