"""Sessions of the coding agent pi: one JSON record on a line.

Each message of pi becomes one message here, with pi's time. What is decided:

- An assistant message without content (aborted or failed before its first word) is left out: no
  model ever saw it. With content it stays, also when it was cut off; its state is `interrupted`.
- A call that an abort left without a result stays as it is: repairing is the view's work.
- A command that the user ran in pi (`bashExecution`) becomes a user prompt with its output.
- A compaction is left out: it only says what pi stopped showing, and the messages are all there.
- Thinking keeps its signature, and the provider that can read it.
- The `details` of a tool result become metadata, which no model is shown; `isError` its outcome.
- Where records name their parents (newer files), the line that ends at the last record is read.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.errors import InvalidInput
from refold.lab import messages as make
from refold.lab.importers.base import moment, tokens
from refold.lab.messages import Json
from refold.lab.recording import Recorded, Recording, Usage

_RECORD = TypeAdapter(dict[str, JsonValue])
_FINISH = {"stop": "stop", "toolUse": "tool_call", "length": "length", "error": "error"}
_CUT_OFF = frozenset({"aborted", "error"})

NAME = "pi"


def knows(record: Json) -> bool:
    match record:
        case {"type": "message", "message": {"role": str()}}:
            return True
        case {"type": "session", "id": str(), "cwd": str()}:
            return True
        case _:
            return False


def read_pi(path: Path) -> Recording:
    """The session in a file of pi."""
    return parse_pi(path.read_bytes().splitlines(), path.stem)


def parse_pi(lines: Iterable[bytes], name: str) -> Recording:
    """The session that the lines of a file of pi hold."""
    records = [_record(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    recording = parse_pi_records(records, name)
    if not recording.messages:
        raise InvalidInput(f"{name} holds no message of pi.", "Give a session file of pi (JSONL).")
    return recording


def parse_pi_records(records: Sequence[Json], name: str) -> Recording:
    """The session that these records hold; what cannot be one of pi is left out."""
    kept: list[Recorded] = []
    skipped = Counter[str]()
    for record in _line(records):
        match record:
            case {"type": "message", "message": dict(message)}:
                recorded = _recorded(message, _time(message, record))
                if recorded is None:
                    skipped[f"{message.get('role')} without content"] += 1
                else:
                    kept.append(recorded)
            case _:
                skipped[str(record.get("type"))] += 1
    return Recording(name, tuple(kept), dict(skipped))


def _record(number: int, line: bytes) -> Json:
    try:
        return _RECORD.validate_json(line)
    except ValidationError as error:
        raise InvalidInput(
            f"Line {number} is no JSON object.", "Give a session file of pi (JSONL)."
        ) from error


def _line(records: Sequence[Json]) -> Sequence[Json]:
    """The records on the line to the last one; all of them in files without parents."""
    if not records or "parentId" not in records[-1]:
        return records
    by_id = {record["id"]: record for record in records if isinstance(record.get("id"), str)}
    line: list[Json] = []
    at: Json | None = records[-1]
    while at is not None:
        line.append(at)
        parent = at.get("parentId")
        at = by_id.pop(parent, None) if isinstance(parent, str) else None
    return line[::-1]


def _recorded(message: Json, at: int | None) -> Recorded | None:
    match message:
        case {"role": "assistant", "content": list(content)} if content:
            return _response(message, content, at)
        case {"role": "toolResult", "toolCallId": str(call), "toolName": str(tool)}:
            part = make.tool_return(
                tool,
                call,
                _content(message.get("content")),
                failed=message.get("isError") is True,
                metadata=message.get("details"),
            )
        case {"role": "bashExecution", "command": str(command), "output": str(output)}:
            part = make.user_prompt(f"$ {command}\n{output}")
        case {"role": "user" | "custom", "content": content} if content:
            part = make.user_prompt(_content(content))
        case _:
            return None
    return Recorded(make.request([part], at=at), at)


def _response(message: Json, content: Sequence[JsonValue], at: int | None) -> Recorded:
    provider, model = _string(message, "provider"), _string(message, "model")
    usage = _usage(message.get("usage"))
    reason = _string(message, "stopReason")
    more: Json = {
        "model_name": model,
        "provider_name": provider,
        "usage": None if usage is None else _usage_fields(usage),
        "finish_reason": _FINISH.get(reason or ""),
        "state": "interrupted" if reason in _CUT_OFF else None,
        "metadata": {"error": message["errorMessage"]} if "errorMessage" in message else None,
    }
    payload = make.response(
        [_said(block, provider) for block in content],
        at=at,
        more={name: value for name, value in more.items() if value is not None},
    )
    return Recorded(payload, at, usage, model)


def _said(block: JsonValue, provider: str | None) -> Json:
    match block:
        case {"type": "text", "text": str(text)}:
            return make.text(text)
        case {"type": "thinking", "thinking": str(text)}:
            signature = _string(block, "thinkingSignature")
            return make.thinking(text, signature=signature, provider=provider)
        case {"type": "toolCall", "id": str(call), "name": str(tool)}:
            return make.tool_call(tool, call, block.get("arguments", {}))
        case _:
            return make.text(make.dump(block).decode())


def _content(content: JsonValue) -> JsonValue:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    items = [_item(block) for block in content]
    texts = [item for item in items if isinstance(item, str)]
    return "\n".join(texts) if len(texts) == len(items) else items


def _item(block: JsonValue) -> JsonValue:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return make.image(data, kind)
        case _:
            return make.dump(block).decode()


def _usage(usage: JsonValue) -> Usage | None:
    match usage:
        case {"input": int(), "output": int()}:
            names = ("input", "output", "cacheRead", "cacheWrite")
            fresh, output, read, write = (tokens(usage, name) for name in names)
            return Usage(fresh + read + write, output, read, write, _cost(usage.get("cost")))
        case _:
            return None


def _usage_fields(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
    }


def _cost(cost: JsonValue) -> float | None:
    match cost:
        case {"total": int(total) | float(total)}:
            return float(total)
        case _:
            return None


def _string(of: Json, name: str) -> str | None:
    value = of.get(name)
    return value if isinstance(value, str) else None


def _time(message: Json, record: Json) -> int | None:
    at = moment(message.get("timestamp"))
    return moment(record.get("timestamp")) if at is None else at
