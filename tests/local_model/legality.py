"""Whether what a server got was a legal request."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from local_model.journal import Exchange

from refold.wire import wire_for

_ROLES = {"system", "user", "assistant", "tool"}
_TOO_LONG = "exceed_context_size_error"


def too_long(one: Exchange) -> bool:
    """Whether the server refused it for its length."""
    return (one.error or {}).get("type") == _TOO_LONG


def faults_of(one: Exchange, prompt: str) -> Iterator[str]:
    """What is wrong with a request of the agent; `prompt` is what the user said last."""
    messages = one.body["messages"]
    for problem in wire_for("openai-chat").problems([json.dumps(m).encode() for m in messages]):
        yield f"{problem.at}: {problem.what}"
    if strange := {message["role"] for message in messages} - _ROLES:
        yield f"Roles that nobody has: {strange}."
    if one.body.get("tools") and not _said(messages, prompt):
        yield f"The user's prompt is not there: {prompt!r}."
    if messages and messages[-1]["role"] not in {"user", "tool"}:
        yield f"It ends with the {messages[-1]['role']}."
    if one.status not in {None, 200} and not too_long(one):
        yield f"The server answered {one.status}: {one.error}."


def _said(messages: list[dict], prompt: str) -> bool:
    asked = [json.dumps(one["content"]) for one in messages if one["role"] == "user"]
    return any(json.dumps(prompt)[1:-1] in text for text in asked)


def figures_of(exchanges: Iterable[Exchange]) -> Counter[str]:
    """How many there were of what, and how much the server had in its cache."""
    figures = Counter[str]()
    for one in exchanges:
        figures["requests"] += 1
        figures["refused for length"] += too_long(one)
        figures["cut by a kill"] += one.status is None
        if one.usage:
            cached = (one.usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
            figures["tokens"] += one.usage["prompt_tokens"]
            figures["tokens cached"] += cached
            figures["largest"] = max(figures["largest"], one.usage["prompt_tokens"])
    return figures
