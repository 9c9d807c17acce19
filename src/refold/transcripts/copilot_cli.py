"""Sessions of Copilot CLI: files `~/.copilot/session-state/…/events.jsonl`, one event on a line.

An event is an envelope: `type`, `id`, `timestamp`, `parentId`, `data`. Decisions:

- A prompt is what the model was sent (`transformedContent`), where the file has it.
- An answer is its text and the tools that it asks for (`toolRequests`); several with one
  `messageId` are one message. `tool.execution_start` repeats the call and is left out.
- A result is what the model was shown (`result.content`), not what the screen was
  (`detailedContent`); a failed call has the error's message.
- What a sub-agent did (`parentToolCallId`, `agentId`) the main model never saw: it is left out.
- A skill's text is shown to the model when it is invoked, and stays. A compaction is left out:
  what it stands for is in the file.
- The usage of a request is often not in the file; its answer then has none.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from refold.models import Usage
from refold.transcripts import messages as make
from refold.transcripts.builder import (
    DraftMessage,
    TranscriptBuilder,
    child,
    items,
    moment,
    name_of,
    string,
    tokens,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import Recording

NAME = "Copilot CLI"
PROGRAM = "copilot"

_KINDS = (
    "session.",
    "user.message",
    "system.message",
    "assistant.",
    "tool.",
    "subagent.",
    "hook.",
    "skill.",
    "abort",
)
_SUB_AGENT = ("parentToolCallId", "agentId")


def knows(record: Json) -> bool:
    return string(record, "type").startswith(_KINDS) and isinstance(record.get("data"), dict)


def parse_copilot_cli(records: Iterable[Json], name: str) -> Recording:
    """The session that the events of a file hold."""
    parser = _Parser()
    for record in records:
        parser.take(record)
    return parser.builder.recording(name)


class _Parser:
    def __init__(self) -> None:
        self.builder = TranscriptBuilder(PROGRAM)
        self._model = ""
        self._answers: dict[str, DraftMessage] = {}
        self._last: DraftMessage | None = None
        self._seen: set[str] = set()

    def take(self, record: Json) -> None:
        data, kind, one = child(record, "data"), name_of(record, "type"), string(record, "id")
        at = moment(record.get("timestamp"))
        if one and one in self._seen:
            self.builder.skipped["line that was there already"] += 1
            return
        self._seen.add(one)
        if any(string(data, name) or string(record, name) for name in _SUB_AGENT):
            self.builder.skipped["sub-agent"] += 1
            return
        match kind:
            case "session.start" | "session.model_change" | "session.resume":
                self._session(data)
            case "user.message":
                self.builder.prompt(
                    string(data, "transformedContent") or string(data, "content"), at
                )
            case "system.message":
                self.builder.prompt(string(data, "content"), at, system=True)
            case "skill.invoked":
                self.builder.prompt(string(data, "content"), at)
            case "assistant.message":
                self._answer(data, at)
            case "assistant.usage":
                self._usage(data)
            case "tool.execution_complete":
                self._result(data, at)
            case _:
                self.builder.skipped[kind or "unknown"] += 1

    def _session(self, data: Json) -> None:
        named = (name_of(data, name) for name in ("newModel", "selectedModel"))
        self._model = next(filter(None, named), self._model)
        context = child(data, "context")
        self.builder.note_origin(
            id=string(data, "sessionId"),
            folder=string(context, "cwd"),
            branch=string(context, "branch"),
        )

    def _answer(self, data: Json, at: int | None) -> None:
        parts = list(_answer_parts(data))
        one = string(data, "messageId")
        if one and one in self._answers:
            self.builder.extend(self._answers[one], parts)
            return
        answer = self.builder.answer(parts, at, name_of(data, "model") or self._model)
        if answer is not None:
            self._last = answer
            if one:
                self._answers[one] = answer

    def _usage(self, data: Json) -> None:
        sent, output = tokens(data, "inputTokens"), tokens(data, "outputTokens")
        read, write = tokens(data, "cacheReadTokens"), tokens(data, "cacheWriteTokens")
        if self._last is not None and sent:
            self._last.usage = Usage(sent, output, read, write)

    def _result(self, data: Json, at: int | None) -> None:
        failed = data.get("success") is False
        shown = string(child(data, "result"), "content")
        shown = shown or string(child(data, "error"), "message") or string(data, "result")
        self.builder.tool_return(string(data, "toolCallId"), shown, at, failed=failed)


def _answer_parts(data: Json) -> Iterator[Json]:
    if thought := string(data, "reasoningText"):
        yield make.thinking(thought)
    if text := string(data, "content"):
        yield make.text(text)
    for request in items(data, "toolRequests"):
        arguments: JsonValue = child(request, "arguments") or string(request, "arguments") or {}
        yield make.tool_call(name_of(request, "name"), string(request, "toolCallId"), arguments)
