"""Sessions of Claude Code: files `~/.claude/projects/…/*.jsonl`, one JSON record on a line.

Decisions:

- One answer of the model is written as several lines, one for each block, with the same
  `message.id`; results may come between them. They are one message here.
- A side chain (`isSidechain`) is the work of a sub-agent, which the main model never saw: it is
  left out. A file that holds nothing else is the sub-agent's own session.
- The summary after a compaction (`isCompactSummary`) is left out where what it stands for is in
  the file too; the boundary itself always.
- What Claude Code says in the model's place (`isApiErrorMessage`, the model `<synthetic>`) is left
  out. Meta messages (`isMeta`), such as the text of a slash command, are sent to the model and
  stay, as reminders: the user did not write them.
- Where a prompt has the same parent as an earlier one that was answered, the user went back: the
  earlier one and all after it are left out.
- A prompt that was typed while the model worked (`queue-operation`) becomes a message where it was
  taken from the queue into the running turn (`remove`). One that waited for the turn's end
  (`dequeue`) has a record of its own; one that the user took back (`popAll`) was never sent.
- An `attachment` is what Claude Code adds to a request: rules of a folder, files, hooks' output. It
  becomes a reminder before the next answer, but for those that only the user or the program sees.
- A picture is a dot; the details of a result beside its text (`toolUseResult`) are not shown.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from refold.models import Usage
from refold.transcripts import messages as make
from refold.transcripts.builder import (
    DraftMessage,
    TranscriptBuilder,
    child,
    content,
    moment,
    name_of,
    picture,
    string,
    tokens,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import Recording

NAME = "Claude Code"
PROGRAM = "claude"

_FIELDS = ("uuid", "parentUuid", "sessionId", "isSidechain", "leafUuid")
_TYPES = frozenset(
    {"user", "assistant", "system", "summary", "file-history-snapshot", "progress"}
    | {"attachment", "queue-operation"}
)
_NOT_SHOWN = frozenset(
    {"auto_mode", "command_permissions", "compact_file_reference", "hook_system_message"}
)
"""Attachments that no model was shown."""
_SHOWN_HOOKS = frozenset({"SessionStart", "UserPromptSubmit"})
"""Whose output goes to the model even if the hook has nothing to complain about."""
_ADDED = ("filename", "path", "content", "snippet", "addedLines", "addedBlocks")


def knows(record: Json) -> bool:
    if string(record, "type") not in _TYPES or "systemPayload" in record:  # Qwen Code has those
        return False
    return any(name in record for name in _FIELDS) and "parts" not in child(record, "message")


def parse_claude_code(records: Iterable[Json], name: str) -> Recording:
    """The session that the records of a file hold."""
    main, everything = _Parser(), _Parser()
    answered, side_chain = False, 0
    for record in records:
        beside = bool(record.get("isSidechain"))
        answered = answered or (not beside and record.get("type") == "assistant")
        if not answered:
            everything.take(record)
        if beside:
            side_chain += 1
        else:
            main.take(record)
    if not answered:
        return everything.recording(name)
    if side_chain:
        main.builder.skipped["side chain"] = side_chain
    return main.recording(name)


class _Parser:
    def __init__(self) -> None:
        self.builder = TranscriptBuilder(PROGRAM)
        self._seen: set[str] = set()
        self._answers: dict[str, DraftMessage] = {}
        self._prompts: dict[str, DraftMessage] = {}
        self._queue: list[str] = []
        self._added: list[tuple[JsonValue, int | None]] = []
        """What the next request has beside results."""
        self._titles: dict[str, str] = {}
        """A summary by the last message that it is of: some are of other sessions."""

    def recording(self, name: str) -> Recording:
        for leaf, title in self._titles.items():
            if not self.builder.title and leaf in self._seen:
                self.builder.title = title
        return self.builder.recording(name)

    def take(self, record: Json) -> None:
        self._note_session(record)
        skipped = self.builder.skipped
        kind, uuid = name_of(record, "type"), string(record, "uuid")
        message = child(record, "message")
        if kind == "queue-operation":
            self._queue_operation(record)
        elif kind == "attachment" and not (uuid and uuid in self._seen):
            self._attachment(child(record, "attachment"), moment(record.get("timestamp")))
        elif kind not in ("user", "assistant"):
            skipped[name_of(record, "subtype") or kind or "unknown"] += 1
        elif not message:
            skipped["empty message"] += 1
        elif uuid and uuid in self._seen:
            skipped["line that was there already"] += 1
        elif record.get("isCompactSummary") is True and self.builder.messages:
            skipped["compact summary"] += 1
        elif kind == "user":
            self._user(record, message)
        elif record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            skipped["error of the program"] += 1
        else:
            self._assistant(record, message)
        self._seen.add(uuid)

    def _note_session(self, record: Json) -> None:
        session, agent = string(record, "sessionId"), string(record, "agentId")
        folder, branch = string(record, "cwd"), string(record, "gitBranch")
        if agent and record.get("isSidechain") is True:
            self.builder.note_origin(id=agent, folder=folder, branch=branch, parent=session)
        else:
            parent = string(child(record, "forkedFrom"), "sessionId")
            self.builder.note_origin(id=session, folder=folder, branch=branch, parent=parent)
        if title := string(record, "customTitle"):
            self.builder.title = title
        elif title := string(record, "summary") or string(record, "aiTitle"):
            self._titles[string(record, "leafUuid")] = title

    def _queue_operation(self, record: Json) -> None:
        text = string(record, "content")
        match string(record, "operation"):
            case "enqueue":
                self._queue.append(text)
            case "popAll":
                self._queue = [one for one in self._queue if _rank(one) != _PROMPT]
            case "remove" | "dequeue" as operation:
                if not text:
                    text = min(self._queue, key=_rank, default="")
                if text in self._queue:
                    self._queue.remove(text)
                if operation == "remove" and _rank(text) != _TASK and not text.startswith("/"):
                    self._add(text, moment(record.get("timestamp")))
            case _:
                self.builder.skipped["queue-operation"] += 1

    def _attachment(self, attachment: Json, at: int | None) -> None:
        kind = name_of(attachment, "type")
        if kind == "queued_command":
            self._add(content(_contents(attachment.get("prompt"))), at)
            return
        silent = kind == "hook_success" and string(attachment, "hookEvent") not in _SHOWN_HOOKS
        texts = (attachment.get(name) for name in _ADDED)
        text = "\n".join(piece for value in texts for piece in _added_texts(value))
        if silent or kind in _NOT_SHOWN or not text:
            self.builder.skipped[f"attachment: {kind}"] += 1
        else:
            self._add(_reminder(text), at)

    def _add(self, text: JsonValue, at: int | None) -> None:
        # A queued prompt is recorded by its removal from the queue, as an attachment, or both.
        if text and all(text != other for other, _ in self._added):
            self._added.append((text, at))

    def _flush(self) -> None:
        """Not sooner, for results of one answer may come between."""
        for text, at in self._added:
            self.builder.prompt(text, at)
        self._added.clear()

    def _user(self, record: Json, message: Json) -> None:
        at = moment(record.get("timestamp"))
        blocks = _blocks(message.get("content"))
        results = [block for block in blocks if isinstance(block, dict) and "tool_use_id" in block]
        for block in results:
            self.builder.tool_return(
                string(block, "tool_use_id"),
                content(_contents(block.get("content"))),
                at,
                failed=block.get("is_error") is True,
            )
        if len(results) < len(blocks):
            parent = string(record, "parentUuid")
            self._drop_abandoned_branch(parent)
            self._flush()
            before = len(self.builder.messages)
            rest = content(_contents([block for block in blocks if block not in results]))
            if record.get("isMeta") is True and rest and isinstance(rest, str):
                rest = _reminder(rest)
            self.builder.prompt(rest, at)
            if len(self.builder.messages) > before and not results:
                self._prompts[parent] = self.builder.messages[-1]

    def _drop_abandoned_branch(self, parent: str) -> None:
        earlier = self._prompts.get(parent) if parent else None
        if earlier is None:
            return
        messages = self.builder.messages
        places = (index for index, message in enumerate(messages) if message is earlier)
        first = next(places, len(messages))
        if any(message.answer for message in messages[first:]):
            self.builder.take_back(first)

    def _assistant(self, record: Json, message: Json) -> None:
        parts = [part for part in map(_answer_part, _blocks(message.get("content"))) if part]
        id_ = string(message, "id")
        answer = self._answers.get(id_)
        if answer is not None:
            self.builder.extend(answer, parts)
            answer.usage = _usage(message) or answer.usage
            return
        self._flush()
        model = name_of(message, "model")
        answer = self.builder.answer(parts, moment(record.get("timestamp")), model)
        if answer is not None:
            answer.usage = _usage(message)
            if id_:
                self._answers[id_] = answer


_PROMPT, _TASK, _NOTICE = range(3)


def _rank(queued: str) -> int:
    """Which of the queue is taken next; tasks are the program's own, and never shown."""
    if queued.startswith('{"task_id"'):
        return _TASK
    return _NOTICE if queued.startswith("<task-notification>") else _PROMPT


def _reminder(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


def _added_texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str(text):
            yield text
        case list():
            for item in value:
                yield from _added_texts(item)
        case dict():
            yield from _added_texts(value.get("file") or value.get("content"))
        case _:
            pass


def _blocks(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _answer_part(block: JsonValue) -> Json:
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return make.text(text)
        case {"type": "thinking", "thinking": str(text)}:
            return make.thinking(text)
        case {"type": "tool_use", "id": str(call), "name": str(tool)}:
            return make.tool_call(tool, call, child(block, "input"))
        case _:
            return {}


def _contents(blocks: JsonValue) -> Iterator[JsonValue]:
    for block in _blocks(blocks):
        match block:
            case str(text) | {"type": "text", "text": str(text)}:
                yield text
            case {"type": "image"}:
                yield picture()
            case dict():
                yield make.dump(block).decode() if not child(block, "source") else ""
            case _:
                pass


def _usage(message: Json) -> Usage | None:
    usage = child(message, "usage")
    read = tokens(usage, "cache_read_input_tokens")
    write = tokens(usage, "cache_creation_input_tokens")
    sent = tokens(usage, "input_tokens") + read + write
    return Usage(sent, tokens(usage, "output_tokens"), read, write) if sent else None
