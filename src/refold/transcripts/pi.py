"""Sessions of the coding agent pi: one JSON record on a line.

Each message of pi becomes one message here, with pi's time. Decisions:

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
from refold.log import Origin
from refold.models import Usage
from refold.transcripts import messages as make
from refold.transcripts.builder import (
    TranscriptBuilder,
    child,
    moment,
    string,
    tokens,
    usage_fields,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import RecordedMessage, Recording

_RECORD = TypeAdapter(dict[str, JsonValue])
_FINISH = {"stop": "stop", "toolUse": "tool_call", "length": "length", "error": "error"}
_CUT_OFF = frozenset({"aborted", "error"})
_FIX = "Give a session file of pi (JSONL)."

NAME = "pi"
PROGRAM = "pi"


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
    records: list[Json] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                records.append(_RECORD.validate_json(line))
            except ValidationError as error:
                raise InvalidInput(f"Line {number} is not a JSON object.", _FIX) from error
    recording = parse_pi_records(records, name)
    if not recording.messages:
        raise InvalidInput(f"{name} holds no message of pi.", _FIX)
    return recording


def parse_pi_records(records: Iterable[Json], name: str) -> Recording:
    """The session that these records hold; what cannot be one of pi is left out."""
    records = list(records)
    messages: list[RecordedMessage] = []
    skipped = Counter[str]()
    for record in _branch(records):
        match record:
            case {"type": "message", "message": dict(message)}:
                at = moment(message.get("timestamp"))
                at = moment(record.get("timestamp")) if at is None else at
                recorded = _recorded(message, at)
                if recorded is None:
                    skipped[f"{message.get('role')} without content"] += 1
                else:
                    messages.append(recorded)
            case _:
                skipped[str(record.get("type"))] += 1
    origin, title = _origin(records)
    return Recording(name, tuple(messages), dict(skipped), origin, title)


def _origin(records: Sequence[Json]) -> tuple[Origin, str]:
    """The session's origin, and what the user named it."""
    draft = TranscriptBuilder(PROGRAM)
    for record in records:
        match record.get("type"):
            case "session":
                # A fork names the file of its parent, which ends with the parent's id.
                parent = string(record, "parentSession") or string(record, "branchedFrom")
                draft.note_origin(
                    id=string(record, "id"),
                    folder=string(record, "cwd"),
                    parent=parent.rpartition("_")[2].removesuffix(".jsonl"),
                )
            case "session_info":
                draft.title = string(record, "name")
            case _:
                pass
    recording = draft.recording("")
    return recording.origin or Origin(PROGRAM), recording.title


def _branch(records: Sequence[Json]) -> Sequence[Json]:
    """The records on the branch of the last one; all of them in files without parents."""
    if not records or "parentId" not in records[-1]:
        return records
    by_id = {record["id"]: record for record in records if isinstance(record.get("id"), str)}
    branch: list[Json] = []
    record: Json | None = records[-1]
    while record is not None:
        branch.append(record)
        parent = record.get("parentId")
        record = by_id.pop(parent, None) if isinstance(parent, str) else None
    return branch[::-1]


def _recorded(message: Json, at: int | None) -> RecordedMessage | None:
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
    return RecordedMessage(make.request([part], at=at), at)


def _response(message: Json, content: Sequence[JsonValue], at: int | None) -> RecordedMessage:
    provider, model = message.get("provider"), message.get("model")
    provider = provider if isinstance(provider, str) else None
    model = model if isinstance(model, str) else None
    usage = _usage(message.get("usage"))
    reason = string(message, "stopReason")
    more: Json = {
        "model_name": model,
        "provider_name": provider,
        "usage": None if usage is None else usage_fields(usage),
        "finish_reason": _FINISH.get(reason),
        "state": "interrupted" if reason in _CUT_OFF else None,
        "metadata": {"error": message["errorMessage"]} if "errorMessage" in message else None,
    }
    payload = make.response(
        [_answer_part(block, provider) for block in content],
        at=at,
        more={name: value for name, value in more.items() if value is not None},
    )
    cost = None if usage is None else child(message, "usage").get("cost")
    return RecordedMessage(payload, at, usage, model, _total(cost))


def _answer_part(block: JsonValue, provider: str | None) -> Json:
    match block:
        case {"type": "text", "text": str(text)}:
            return make.text(text)
        case {"type": "thinking", "thinking": str(text)}:
            signature = block.get("thinkingSignature")
            signature = signature if isinstance(signature, str) else None
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
            return Usage(fresh + read + write, output, read, write)
        case _:
            return None


def _total(cost: JsonValue) -> float | None:
    match cost:
        case {"total": int(total) | float(total)}:
            return float(total)
        case _:
            return None
