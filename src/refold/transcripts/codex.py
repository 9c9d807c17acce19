"""Sessions of Codex: files `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, one record on a line.

A record is an envelope: `type`, `timestamp`, `payload`. Older files hold the items bare, and the
oldest are one JSON object with `items`. Decisions:

- `response_item` is what the model was shown or said; those it said one after another are one
  message. `event_msg` repeats them for the screen and is left out, but for the usage
  (`token_count`) and for turns that the user took back (`thread_rolled_back`).
- The model is the one of the newest `turn_context`.
- A compaction (`compacted`) is left out: what it stands for is in the file.
- A search for tools (`tool_search`) that the program answered is a call with its result. Searches
  that the provider did by itself are left out, and so is what only it can read.
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
    items,
    moment,
    name_of,
    picture,
    string,
    tokens,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import Recording

NAME = "Codex"
PROGRAM = "codex"

_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ITEMS = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
    | {"local_shell_call", "reasoning", "tool_search_call", "tool_search_output"}
)
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})


def knows(record: Json) -> bool:
    match record:
        case {"type": str(kind), "payload": dict()}:
            return kind in _ENVELOPES
        case {"type": "message", "role": str(), "content": list()}:
            return True
        case {"type": str(kind)}:
            return kind in _ITEMS
        case _:
            return "record_type" in record or {"id", "timestamp", "instructions"} <= record.keys()


def items_of(value: JsonValue) -> list[Json] | None:
    """The items of a file that is one object; None where it is none of Codex."""
    records = [item for item in items(value, "items") if isinstance(item, dict)]
    return records if any(map(knows, records)) else None


def parse_codex(records: Iterable[Json], name: str) -> Recording:
    """The session that the records of a file hold."""
    parser = _Parser()
    for record in records:
        parser.take(record)
    return parser.builder.recording(name)


class _Parser:
    def __init__(self) -> None:
        self.builder = TranscriptBuilder(PROGRAM)
        self._model = ""
        self._answer: DraftMessage | None = None
        self._last: DraftMessage | None = None

    def take(self, record: Json) -> None:
        payload = child(record, "payload")
        at = moment(record.get("timestamp"))
        match string(record, "type"):
            case "response_item":
                self._item(payload, at)
            case "event_msg":
                self._event(payload)
            case "turn_context":
                self._model = name_of(payload, "model") or self._model
                self.builder.note_origin(folder=string(payload, "cwd"))
            case kind if kind in _ENVELOPES or not kind:
                self.builder.skipped[kind or "unknown"] += 1
                if kind != "compacted":
                    self._note_session(payload or record)  # older files begin with it bare
            case _:
                self._item(record, at)

    def _note_session(self, meta: Json) -> None:
        spawn = child(child(child(meta, "source"), "subagent"), "thread_spawn")
        self.builder.note_origin(
            id=string(meta, "id"),
            folder=string(meta, "cwd"),
            branch=string(child(meta, "git"), "branch"),
            parent=string(spawn, "parent_thread_id") or string(meta, "forked_from_id"),
        )

    def _item(self, item: Json, at: int | None) -> None:
        kind = name_of(item, "type")
        parts = list(_answer_parts(item))
        if parts and self._answer is not None:
            self.builder.extend(self._answer, parts)
        elif parts:
            self._answer = self.builder.answer(parts, at, self._model)
            self._last = self._answer or self._last
        elif kind == "message" and string(item, "role") != "assistant":
            self._answer = None
            system = string(item, "role") in ("system", "developer")
            self.builder.prompt(content(_contents(item.get("content"))), at, system=system)
        elif kind.endswith("_output"):
            self._answer = None
            output = item.get("tools" if kind == "tool_search_output" else "output")
            failed = isinstance(output, dict) and output.get("success") is False
            blocks = output.get("content") if isinstance(output, dict) else output
            result = content(_contents(blocks))
            self.builder.tool_return(string(item, "call_id"), result, at, failed=failed)
        else:
            self.builder.skipped[kind or "unknown"] += 1

    def _event(self, payload: Json) -> None:
        match string(payload, "type"):
            case "token_count":
                usage = child(child(payload, "info"), "last_token_usage")
                sent, out = tokens(usage, "input_tokens"), tokens(usage, "output_tokens")
                if self._last is not None and sent:
                    self._last.usage = Usage(sent, out, tokens(usage, "cached_input_tokens"))
            case "thread_name_updated":
                self.builder.title = string(payload, "thread_name")
            case "thread_rolled_back":
                self._take_back(tokens(payload, "num_turns"))
            case kind:
                self.builder.skipped[f"event: {kind[:40]}"] += 1

    def _take_back(self, turns: int) -> None:
        prompts = [
            index
            for index, message in enumerate(self.builder.messages)
            if message.prompt and not str(message.parts[0].get("content")).startswith("<")
        ]
        if turns:
            self.builder.take_back(prompts[-min(turns, len(prompts))] if prompts else 0)
        self._answer = self._last = None


def _answer_parts(item: Json) -> Iterator[Json]:
    """What the model said with the item, if it is the model's."""
    match item:
        case {"type": "message", "role": "assistant"}:
            yield make.text("\n".join(_texts(item.get("content"))))
        case {"type": "reasoning"}:
            thought = "\n".join((*_texts(item.get("summary")), *_texts(item.get("content"))))
            if thought:
                yield make.thinking(thought)
        case {"type": "function_call", "call_id": str(call), "name": str(tool)}:
            yield make.tool_call(tool, call, string(item, "arguments") or {})
        case {"type": "custom_tool_call", "call_id": str(call), "name": str(tool)}:
            yield make.tool_call(tool, call, {"input": string(item, "input")})
        case {"type": "tool_search_call", "call_id": str(call)}:
            yield make.tool_call("tool_search", call, child(item, "arguments"))
        case {"type": "local_shell_call", "call_id": str(call), "action": dict(action)}:
            yield make.tool_call("local_shell", call, {"command": action.get("command")})
        case _:
            pass


def _texts(blocks: JsonValue) -> Iterator[str]:
    return (text for text in _contents(blocks) if isinstance(text, str))


def _contents(blocks: JsonValue) -> Iterator[JsonValue]:
    for block in blocks if isinstance(blocks, list) else [blocks]:
        match block:
            case str(text):
                yield text
            case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
                yield text
            case {"type": "input_image"}:
                yield picture()
            case dict():
                yield make.dump(block).decode()
            case _:
                pass
