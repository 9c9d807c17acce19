"""Sessions of Claude Code: files `~/.claude/projects/…/*.jsonl`, one JSON record on a line.

What is decided:

- One answer of the model is written as several lines, one for each block, with the same
  `message.id`; results may come between them. They are one message here.
- A side chain (`isSidechain`) is the work of a sub-agent, which the main model never saw: it is
  left out. A file that holds nothing else is the sub-agent's own session.
- The summary after a compaction (`isCompactSummary`) is left out where what it stands for is in
  the file too; the boundary itself always.
- What Claude Code says in the model's place (`isApiErrorMessage`, the model `<synthetic>`) is left
  out. Meta messages (`isMeta`) are sent to the model and stay.
- Where a prompt has the same parent as an earlier one that was answered, the user went back: the
  earlier one and all after it are left out.
- A picture is a dot; the details of a result beside its text (`toolUseResult`) are not shown.
"""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from refold.lab import messages as make
from refold.lab.importers.base import (
    Gathered,
    Gathering,
    child,
    content,
    moment,
    name_of,
    picture,
    string,
    tokens,
)
from refold.lab.messages import Json
from refold.lab.recording import Recording, Usage

NAME = "Claude Code"

_OF_THEIRS = ("uuid", "parentUuid", "sessionId", "isSidechain", "leafUuid")
_TYPES = frozenset({"user", "assistant", "system", "summary", "file-history-snapshot", "progress"})


def knows(record: Json) -> bool:
    return string(record, "type") in _TYPES and any(name in record for name in _OF_THEIRS)


def parse_claude_code(records: Iterable[Json], name: str) -> Recording:
    """The session that the records of a file hold."""
    every = list(records)
    shown = [one for one in every if not one.get("isSidechain")]
    reading = _Reading()
    if any(one.get("type") == "assistant" for one in shown):
        reading.gathering.skipped["side chain"] = len(every) - len(shown)
        every = shown
    for record in every:
        reading.take(record)
    found = reading.gathering.recording(name)
    return Recording(name, found.messages, {why: n for why, n in found.skipped.items() if n})


class _Reading:
    def __init__(self) -> None:
        self.gathering = Gathering()
        self._seen: set[str] = set()
        self._answers: dict[str, Gathered] = {}
        self._prompts: dict[str, Gathered] = {}

    def take(self, record: Json) -> None:
        skipped = self.gathering.skipped
        kind, uuid = name_of(record, "type"), string(record, "uuid")
        message = child(record, "message")
        if kind not in ("user", "assistant"):
            skipped[name_of(record, "subtype") or kind or "unknown"] += 1
        elif not message:
            skipped["empty message"] += 1
        elif uuid and uuid in self._seen:
            skipped["line that was there already"] += 1
        elif record.get("isCompactSummary") is True and self.gathering.messages:
            skipped["compact summary"] += 1
        elif kind == "user":
            self._user(record, message)
        elif record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            skipped["error of the program"] += 1
        else:
            self._assistant(record, message)
        self._seen.add(uuid)

    def _user(self, record: Json, message: Json) -> None:
        at = moment(record.get("timestamp"))
        said = message.get("content")
        blocks: Sequence[JsonValue] = said if isinstance(said, list) else [said]
        results = [one for one in blocks if isinstance(one, dict) and "tool_use_id" in one]
        for block in results:
            self.gathering.returned(
                string(block, "tool_use_id"),
                content(_shown(block.get("content"))),
                at,
                failed=block.get("is_error") is True,
            )
        if len(results) < len(blocks):
            self._went_back(string(record, "parentUuid"))
            before = len(self.gathering.messages)
            rest = [one for one in blocks if one not in results]
            self.gathering.prompt(content(_shown(rest)), at)
            if len(self.gathering.messages) > before and not results:
                self._prompts[string(record, "parentUuid")] = self.gathering.messages[-1]

    def _went_back(self, parent: str) -> None:
        earlier = self._prompts.get(parent) if parent else None
        if earlier is None:
            return
        messages = self.gathering.messages
        first = next((at for at, one in enumerate(messages) if one is earlier), len(messages))
        if any(one.said for one in messages[first:]):
            self.gathering.take_back(first)

    def _assistant(self, record: Json, message: Json) -> None:
        said = message.get("content")
        blocks = said if isinstance(said, list) else [said]
        parts = [part for part in map(_said, blocks) if part]
        known = self._answers.get(string(message, "id"))
        if known is not None:
            self.gathering.more(known, parts)
            known.usage = _usage(message) or known.usage
            return
        model = name_of(message, "model")
        found = self.gathering.answer(parts, moment(record.get("timestamp")), model)
        if found is not None:
            found.usage = _usage(message)
            if one := string(message, "id"):
                self._answers[one] = found


def _said(block: JsonValue) -> Json:
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return make.text(text)
        case {"type": "thinking", "thinking": str(text)}:
            return make.thinking(text)
        case {"type": "tool_use", "id": str(call), "name": str(tool)}:
            return make.tool_call(tool, call, child(block, "input"))
        case _:
            return {}


def _shown(blocks: JsonValue) -> Iterator[JsonValue]:
    for block in blocks if isinstance(blocks, list) else [blocks]:
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
