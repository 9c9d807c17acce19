"""Sessions of Gemini CLI: files `~/.gemini/tmp/…/chats/session-*`, and chats saved by name.

A session is one JSON object with `messages`, or in newer versions JSON lines: a line of metadata,
then the messages. A chat that was saved with `/chat save` is a list of contents with `role` and
`parts`, or an object that has it as `history`. Decisions:

- In JSON lines, a message that comes again under its id replaces the earlier one; `$rewindTo`
  takes back the message that it names and all after it; `$set` with `messages` replaces them all.
- A message of the model has its tool calls with their results; each result follows it here.
- What the program says (`info`, `error`, `warning`) is left out: no model saw it.
- Calls without an id get one; a result without one answers the oldest open call of its tool.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

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
    picture,
    string,
    tokens,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import Recording

NAME = "Gemini CLI"
PROGRAM = "gemini"

_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_ROLES = frozenset({"user", "model"})


def knows(record: Json) -> bool:
    """Whether Gemini CLI wrote the record, in JSON lines."""
    if "$set" in record or "$rewindTo" in record or "projectHash" in record:
        return True
    return string(record, "type") in _TYPES and "content" in record and "message" not in record


def messages_of(value: JsonValue) -> list[Json] | None:
    """The messages of a session that is one object; None where it is none of Gemini CLI."""
    messages = [message for message in items(value, "messages") if isinstance(message, dict)]
    return messages if any(map(knows, messages)) else None


def contents_of(value: JsonValue) -> list[Json] | None:
    """The contents of a saved chat; None where it is none."""
    history = value if isinstance(value, list) else items(value, "history")
    turns = [turn for turn in history if isinstance(turn, dict)]
    chat = any(
        string(turn, "role") in _ROLES and isinstance(turn.get("parts"), list) for turn in turns
    )
    return turns if chat else None


def parse_gemini(records: Iterable[Json], name: str) -> Recording:
    """The session that the records of a file hold."""
    builder = TranscriptBuilder(PROGRAM)
    for record in _latest(records, builder):
        _take(record, builder)
    return builder.recording(name)


def parse_gemini_chat(contents: Sequence[Json], name: str) -> Recording:
    """The session that a list of contents holds, as the API takes it and as older files have it."""
    builder = TranscriptBuilder(PROGRAM)
    calls = _OpenCalls()
    for turn in contents:
        parts = [part for part in items(turn, "parts") if isinstance(part, dict)]
        if turn.get("role") == "model":
            builder.answer([part for part in map(calls.answer_part, parts) if part], None)
            continue
        for part in parts:
            if response := child(part, "functionResponse"):
                builder.tool_return(calls.close(response), result_text(response), None)
        prompt = content(part_contents([part for part in parts if "functionResponse" not in part]))
        if prompt or not parts:
            builder.prompt(prompt, None)
    return builder.recording(name)


def _latest(records: Iterable[Json], builder: TranscriptBuilder) -> list[Json]:
    messages: dict[str, Json] = {}
    for number, record in enumerate(records):
        target, changed = string(record, "$rewindTo"), record.get("$set")
        if target:
            ids = [*messages]
            rewound = ids[ids.index(target) :] if target in messages else ids
            for id_ in rewound:
                del messages[id_]
            builder.skipped["taken back"] += len(rewound)
        elif isinstance(changed, dict):
            if "messages" in changed:
                messages = {
                    string(message, "id") or f"#{index}": message
                    for index, message in enumerate(items(changed, "messages"))
                    if isinstance(message, dict)
                }
        elif "type" in record:
            messages[string(record, "id") or f"#{number}"] = record
        else:
            builder.note_origin(id=string(record, "sessionId"))
            builder.skipped["metadata"] += 1
    return [*messages.values()]


def _take(record: Json, builder: TranscriptBuilder) -> None:
    at = moment(record.get("timestamp"))
    match record.get("type"):
        case "user":
            builder.prompt(content(part_contents(record.get("content"))), at)
        case "gemini":
            _answer(record, builder, at)
        case _:
            builder.skipped[name_of(record, "type") or "unknown"] += 1


def _answer(record: Json, builder: TranscriptBuilder, at: int | None) -> None:
    thoughts = (
        make.thinking(f"{string(thought, 'subject')}\n{string(thought, 'description')}".strip())
        for thought in items(record, "thoughts")
    )
    texts = (text for text in part_contents(record.get("content")) if isinstance(text, str))
    calls = [
        call
        for call in items(record, "toolCalls")
        if isinstance(call, dict) and string(call, "id") and string(call, "name")
    ]
    parts = [
        *thoughts,
        make.text("\n".join(texts)),
        *(make.tool_call(string(c, "name"), string(c, "id"), child(c, "args")) for c in calls),
    ]
    answer = builder.answer(parts, at, name_of(record, "model"))
    if answer is not None:
        answer.usage = _usage(child(record, "tokens"))
    for call in calls:
        if call.get("result") is not None:
            result = content(part_contents(call["result"]))
            failed = call.get("status") == "error"
            builder.tool_return(string(call, "id"), result, at, failed=failed)


class _OpenCalls:
    """Gives calls that have no id one, and results the call that they answer."""

    def __init__(self) -> None:
        self._open: defaultdict[str, list[str]] = defaultdict(list)
        self._calls = 0

    def answer_part(self, part: Json) -> Json:
        call = child(part, "functionCall")
        if tool := string(call, "name"):
            self._calls += 1
            id_ = string(call, "id") or f"call-{self._calls}"
            self._open[tool].append(id_)
            return make.tool_call(tool, id_, child(call, "args"))
        text = string(part, "text")
        return make.thinking(text) if part.get("thought") is True else make.text(text)

    def close(self, response: Json) -> str:
        waiting = self._open[string(response, "name")]
        id_ = string(response, "id") or (waiting[0] if waiting else "")
        if id_ in waiting:
            waiting.remove(id_)
        return id_


def part_contents(parts: JsonValue) -> Iterator[JsonValue]:
    for part in parts if isinstance(parts, list) else [parts]:
        match part:
            case str(text) | {"text": str(text)}:
                yield text
            case {"functionResponse": dict(response)}:
                yield result_text(response)
            case {"inlineData": dict()}:
                yield picture()
            case dict():
                yield make.dump(part).decode()
            case _:
                pass


def result_text(response: Json) -> str:
    body = child(response, "response")
    text = string(body, "output") or string(body, "error")
    return text or make.dump(body).decode()


def _usage(counts: Json) -> Usage | None:
    sent = tokens(counts, "input")
    output = tokens(counts, "output") + tokens(counts, "thoughts")
    return Usage(sent, output, tokens(counts, "cached")) if sent else None
