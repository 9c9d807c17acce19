"""How clients send a conversation again without changing it."""

import json
from random import Random
from typing import Final

from pydantic import JsonValue

from refold.testing.gateway.conversations import Object, chance, mark, name, shuffled, spelled, text


def sent_again(format_name: str, random: Random, messages: list[Object]) -> list[Object]:
    return [_again(format_name, random, message) for message in messages]


def _again(format_name: str, random: Random, message: Object) -> Object:
    again = _copy(message)
    for key in ("content", "output"):
        if key in again:
            again[key] = _content(format_name, random, again[key], again.get("role"))
    for call in _objects(again.get("tool_calls")):
        _called(random, call.get("function"))
        call["index"] = random.randrange(9)
    _called(random, again)
    if format_name == "openai-chat" and again.get("role") == "assistant":
        _chat_answer(random, again)
    if format_name == "openai-responses" and "id" in again:
        _responses_item(random, again)
    if chance(random, 0.3):
        again["x_null"] = None
    if _ignores_extras(format_name, again) and chance(random, 0.3):
        again["x_added"] = text(random)
    return _dict(shuffled(random, again))


def _ignores_extras(format_name: str, message: Object) -> bool:
    return format_name != "openai-responses" or message.get("type", "message") in _KNOWN_ITEMS


def _content(format_name: str, random: Random, content: JsonValue, role: JsonValue) -> JsonValue:
    if content in (None, "", []):
        return random.choice((None, "", [])) if role == "assistant" else content
    kind = _text_kind(format_name, role)
    if isinstance(content, str):
        if chance(random, 0.4):
            return [_marked(random, {"type": kind, "text": content})]
        return content
    blocks = [_block(format_name, random, block) for block in _objects(content)]
    kept = [block for block in blocks if block.get("type") not in _THOUGHTS]
    if role == "assistant" and format_name == "anthropic-messages" and chance(random, 0.5):
        thought: Object = {"type": "thinking", "thinking": text(random), "signature": "bmV3"}
        kept = [thought, *kept]
    if len(kept) == 1 and kept[0].get("type") == kind and chance(random, 0.3):
        return kept[0]["text"]
    return [*kept]


def _text_kind(format_name: str, role: JsonValue) -> str:
    if format_name != "openai-responses":
        return "text"
    return "output_text" if role == "assistant" else "input_text"


def _block(format_name: str, random: Random, block: Object) -> Object:
    block.pop("cache_control", None)
    known = block.get("type") != "hologram"
    if known and not str(block.get("type")).startswith("web_search"):
        for field in _ANSWERS_ONLY:
            block.pop(field, None)
        if chance(random, 0.2):
            block["citations"] = None
    if block.get("type") == "tool_result":
        block["content"] = _content(format_name, random, block.get("content"), None)
        if not block.get("is_error"):
            block["is_error"] = False
    return _marked(random, block)


def _marked(random: Random, block: Object) -> Object:
    return {**block, "cache_control": mark(random)} if chance(random, 0.3) else block


def _called(random: Random, call: JsonValue) -> None:
    if isinstance(call, dict) and isinstance(given := call.get("arguments"), str):
        value = json.loads(given, parse_float=_number)
        call["arguments"] = spelled(random, shuffled(random, value))


def _number(digits: str) -> int | float:
    value = float(digits)
    return int(value) if value.is_integer() else value


def _chat_answer(random: Random, answer: Object) -> None:
    for field in ("reasoning_content", "annotations", "audio"):
        answer.pop(field, None)
    if chance(random, 0.3):
        answer["reasoning_content"] = text(random)
    if not answer.get("refusal"):
        answer["refusal"] = random.choice((None, ""))
    if answer.get("content") is None and chance(random, 0.5):
        answer.pop("content", None)


def _responses_item(random: Random, item: Object) -> None:
    item.pop("status", None)
    if chance(random, 0.5):
        item["id"] = name(random, "new")
    elif item.get("role"):
        del item["id"]


def _objects(value: JsonValue) -> list[Object]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _copy(message: Object) -> Object:
    return _dict(json.loads(json.dumps(message)))


def _dict(value: JsonValue) -> Object:
    assert isinstance(value, dict)
    return value


_THOUGHTS: Final = ("thinking", "redacted_thinking")
_ANSWERS_ONLY: Final = ("annotations", "logprobs", "citations")
_KNOWN_ITEMS: Final = ("message", "function_call", "function_call_output")
