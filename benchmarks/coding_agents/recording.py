"""What an agent sent in a run, shortened to what tests need.

The tests replay it: the same requests in the same order, before a model that gives the same
answers. So texts that were the same stay the same, and texts that differed differ still; but the
words of an agent's harness, the contents of files and the machine's paths are not kept.
"""

import json
import re
from hashlib import sha256
from typing import Any, Final

from benchmarks.coding_agents.model import SUBTASK, TASK, is_main
from benchmarks.coding_agents.run import Exchange, Run

_MAX_TEXT: Final = 120
_HARNESS: Final = re.compile(r"(?s)<([A-Za-z][\w-]*)>.{200,}?</\1>")
_ID: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\bses_\w{20,}|\b[0-9a-f]{32,}\b"
)
_KEPT: Final = ("model", "max_tokens", "stream", "store", "include", "thinking", "prompt_cache_key")
_NAMED: Final = frozenset(
    {"id", "call_id", "tool_use_id", "encrypted_content", "signature", "name", "type", "role"}
)
_SPOKEN: Final = (TASK, SUBTASK)


def shortened(run: Run) -> dict[str, Any]:
    """The run as a fixture: each request as what it adds to the one before, with its answer."""
    shorten = _Shortening(str(run.folder))
    exchanges = sorted((one for one in run.exchanges if one.answer), key=lambda one: one.number)
    before: dict[str, list[Any]] = {}
    requests: list[dict[str, Any]] = []
    bodies: list[dict[str, Any]] = []
    for exchange in exchanges:
        body = shorten.body(exchange.body)
        key = "input" if "input" in body else "messages"
        kind = "main" if is_main(exchange.body) else "beside"
        messages = body.pop(key)
        same = _same(before.get(kind, []), messages)
        before[kind] = messages
        if body not in bodies:
            bodies.append(body)
        requests.append(
            {
                "kind": kind,
                "path": exchange.path,
                "body": bodies.index(body),
                "messages": key,
                "same": same,
                "more": messages[same:],
                "answer": shorten.answer(exchange),
            }
        )
    return {
        "agent": run.client,
        "compacted": run.compacted,
        "bodies": bodies,
        "requests": requests,
    }


class _Shortening:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._ids: dict[str, str] = {}

    def body(self, body: dict[str, Any]) -> dict[str, Any]:
        made = {key: self._value(body[key]) for key in _KEPT if key in body}
        for key in ("system", "instructions"):
            if body.get(key):
                made[key] = self._stub("Instructions", json.dumps(body[key]))
        if "metadata" in body:
            made["metadata"] = {"user_id": self._named(json.dumps(body["metadata"]))}
        if body.get("tools"):
            made["tools"] = [self._tool(tool) for tool in body["tools"] if self._tool(tool)]
        key = "input" if "input" in body else "messages"
        made[key] = [self._value(message) for message in body[key]]
        return made

    def answer(self, exchange: Exchange) -> dict[str, Any]:
        answer = exchange.answer
        assert answer is not None
        calls = [
            {"id": one.id, "tool": one.tool, "arguments": self._value(one.arguments)}
            for one in answer.calls
        ]
        return {
            "number": exchange.number,
            "text": self._text(answer.text),
            "thought": answer.thought,
            "calls": calls,
        }

    def _tool(self, tool: dict[str, Any]) -> dict[str, Any] | None:
        schema = {"type": "object", "properties": {}}
        if "function" in tool:
            return {"type": "function", "function": {"name": tool["function"]["name"]}}
        if "input_schema" in tool:
            return {"name": tool["name"], "input_schema": schema}
        if tool.get("type") == "function":
            return {"type": "function", "name": tool["name"], "parameters": schema}
        return None

    def _value(self, value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON
        match value:
            case dict():
                return {name: self._value(one, name) for name, one in value.items()}
            case list():
                return [self._value(one, key) for one in value]
            case str() if key == "arguments":
                return json.dumps(self._value(json.loads(value)))
            case str() if key in _NAMED:
                return value
            case str():
                return self._text(value)
            case _:
                return value

    def _text(self, text: str) -> str:
        text = _HARNESS.sub(self._harness, text.replace(self._folder, "/folder"))
        text = _ID.sub(lambda found: self._named(found[0]), text)
        if len(text) <= _MAX_TEXT:
            return text
        lines = [line if len(line) <= _MAX_TEXT else self._clip(line) for line in text.split("\n")]
        if len(lines) > 4 and not any(words in text for words in ("<summary>", "Done so far")):
            first = "\n".join(lines[:2])
            return f"{first}\n{self._stub('More lines', text)}"
        return "\n".join(lines)

    def _clip(self, text: str) -> str:
        spoken = next((words for words in _SPOKEN if words in text), "")
        return f"{text[:40]} {spoken} {self._stub('and more', text)}"

    def _harness(self, found: re.Match[str]) -> str:
        return f"<{found[1]}>\n{self._stub('Harness text', found[0])}\n</{found[1]}>"

    def _named(self, name: str) -> str:
        return self._ids.setdefault(name, f"name-{len(self._ids) + 1}")

    @staticmethod
    def _stub(what: str, text: str) -> str:
        return f"{what} {sha256(text.encode()).hexdigest()[:8]}."


def _same(before: list[Any], now: list[Any]) -> int:
    count = 0
    for mine, other in zip(before, now, strict=False):
        if mine != other:
            break
        count += 1
    return count
