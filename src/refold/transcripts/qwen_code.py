"""Sessions of Qwen Code: files `~/.qwen/projects/…/chats/*.jsonl`, one record on a line.

A record names its parent, and its message has the parts of Gemini's API. Decisions:

- The line that ends at the last record is read: where the user went back, the rest was dropped.
  Records with one id are pieces of one message.
- A compaction (`chat_compression`) is left out: what it stands for is in the file.
- A command that Qwen Code answered by itself was never sent, so its prompt is left out.
- What was said by voice (`realtime_message`) did not reach this model.
- A sub-agent has a file of its own, with `agentId`.
"""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from refold.models import Usage
from refold.transcripts import messages as make
from refold.transcripts.builder import (
    TranscriptBuilder,
    child,
    content,
    items,
    moment,
    name_of,
    string,
    tokens,
)
from refold.transcripts.gemini_cli import part_contents, result_text
from refold.transcripts.messages import Json
from refold.transcripts.recording import Recording

NAME = "Qwen Code"
PROGRAM = "qwen"

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})


def knows(record: Json) -> bool:
    if string(record, "type") not in _TYPES or not string(record, "uuid"):
        return False
    return "systemPayload" in record or "parts" in child(record, "message")


def parse_qwen_code(records: Iterable[Json], name: str) -> Recording:
    """The session that the records of a file hold."""
    records = list(records)
    builder = TranscriptBuilder(PROGRAM)
    branch = _branch(records)
    if left := len(records) - len(branch):
        builder.skipped["taken back"] += left
    for record in branch:
        _take(record, builder)
    return builder.recording(name)


def _branch(records: Sequence[Json]) -> list[Json]:
    """The records from the first to the last, by their parents."""
    pieces: dict[str, list[Json]] = {}
    for record in records:
        if uuid := string(record, "uuid"):
            pieces.setdefault(uuid, []).append(record)
    branch: list[Json] = []
    uuid = next((string(record, "uuid") for record in reversed(records) if "uuid" in record), "")
    while found := pieces.pop(uuid, None):
        branch += reversed(found)
        uuid = string(found[0], "parentUuid")
    return branch[::-1]


def _take(record: Json, builder: TranscriptBuilder) -> None:
    _note_session(record, builder)
    message, at = child(record, "message"), moment(record.get("timestamp"))
    parts = [part for part in items(message, "parts") if isinstance(part, dict)]
    match string(record, "type"):
        case "user" if string(record, "subtype") != "realtime_message":
            builder.prompt(content(part_contents([*parts])), at)
        case "assistant" if string(record, "subtype") != "realtime_message":
            answer = builder.answer([*map(_answer_part, parts)], at, name_of(record, "model"))
            if answer is not None:
                answer.usage = _usage(child(record, "usageMetadata"))
        case "tool_result":
            failed = string(child(record, "toolCallResult"), "status") == "error"
            for response in (child(part, "functionResponse") for part in parts):
                if response:
                    text = result_text(response)
                    builder.tool_return(string(response, "id"), text, at, failed=failed)
        case kind:
            _system(record, builder)
            builder.skipped[name_of(record, "subtype") or kind or "unknown"] += 1


def _note_session(record: Json, builder: TranscriptBuilder) -> None:
    session, agent = string(record, "sessionId"), string(record, "agentId")
    folder, branch = string(record, "cwd"), string(record, "gitBranch")
    if agent and record.get("isSidechain") is True:
        builder.note_origin(id=agent, folder=folder, branch=branch, parent=session)
    else:
        builder.note_origin(id=session, folder=folder, branch=branch)


def _system(record: Json, builder: TranscriptBuilder) -> None:
    payload = child(record, "systemPayload")
    match string(record, "subtype"):
        case "custom_title":
            builder.title = string(payload, "customTitle")
        case "parent_session":
            builder.note_origin(parent=string(payload, "parentSessionId"))
        case "slash_command" if builder.messages and builder.messages[-1].prompt:
            [*_, last] = builder.messages[-1].parts
            answered = payload.get("phase") == "result" and payload.get("sentToModel") is not True
            if answered and last.get("content") == payload.get("rawCommand"):
                builder.take_back(len(builder.messages) - 1)
        case _:
            pass


def _answer_part(part: Json) -> Json:
    call = child(part, "functionCall")
    if tool := string(call, "name"):
        return make.tool_call(tool, string(call, "id"), child(call, "args"))
    text = string(part, "text")
    return make.thinking(text) if part.get("thought") is True else make.text(text)


def _usage(counts: JsonValue) -> Usage | None:
    sent = tokens(counts, "promptTokenCount")
    output = tokens(counts, "candidatesTokenCount")
    return Usage(sent, output, tokens(counts, "cachedContentTokenCount")) if sent else None
