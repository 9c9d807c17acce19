"""Sessions of Gemini CLI: files `~/.gemini/tmp/…/chats/session-*`, and chats saved by name.

A session is one JSON object with `messages`, or in newer versions JSON lines: a line of metadata,
then the messages. A chat that was saved with `/chat save` is a list of contents with `role` and
`parts`, or an object that has it as `history`. What is decided:

- In JSON lines, a message that comes again under its id replaces the earlier one; `$rewindTo`
  takes back the message that it names and all after it; `$set` with `messages` replaces them all.
- A message of the model has its tool calls with their results; each result follows it here.
- What the program says (`info`, `error`, `warning`) is left out: no model saw it.
- Calls without an id get one; a result without one answers the oldest open call of its tool.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from refold.lab import messages as make
from refold.lab.importers.base import (
    Gathering,
    child,
    content,
    items,
    moment,
    name_of,
    picture,
    string,
    tokens,
)
from refold.lab.messages import Json
from refold.lab.recording import Recording, Usage

NAME = "Gemini CLI"

_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_ROLES = frozenset({"user", "model"})


def knows(record: Json) -> bool:
    """Whether Gemini CLI wrote the record, in JSON lines."""
    if "$set" in record or "$rewindTo" in record or "projectHash" in record:
        return True
    return string(record, "type") in _TYPES and "content" in record and "message" not in record


def messages_of(value: JsonValue) -> list[Json] | None:
    """The messages of a session that is one object; None where it is none of Gemini CLI."""
    found = [one for one in items(value, "messages") if isinstance(one, dict)]
    return found if any(map(knows, found)) else None


def contents_of(value: JsonValue) -> list[Json] | None:
    """The contents of a saved chat; None where it is none."""
    every = value if isinstance(value, list) else items(value, "history")
    found = [one for one in every if isinstance(one, dict)]
    chat = any(
        string(one, "role") in _ROLES and isinstance(one.get("parts"), list) for one in found
    )
    return found if chat else None


def parse_gemini(records: Iterable[Json], name: str) -> Recording:
    """The session that the records of a file hold."""
    gathering = Gathering()
    for record in _latest(records, gathering):
        _take(record, gathering)
    return gathering.recording(name)


def parse_gemini_chat(contents: Sequence[Json], name: str) -> Recording:
    gathering = Gathering()
    names = _Names()
    for one in contents:
        parts = [part for part in items(one, "parts") if isinstance(part, dict)]
        if one.get("role") == "model":
            gathering.answer([part for part in map(names.said, parts) if part], None)
            continue
        for part in parts:
            if answer := child(part, "functionResponse"):
                gathering.returned(names.answered(answer), _result(answer), None)
        said = content(_shown([part for part in parts if "functionResponse" not in part]))
        if said or not parts:
            gathering.prompt(said, None)
    return gathering.recording(name)


def _latest(records: Iterable[Json], gathering: Gathering) -> list[Json]:
    found: dict[str, Json] = {}
    for number, record in enumerate(records):
        back, changed = string(record, "$rewindTo"), record.get("$set")
        if back:
            gone = [*found][[*found].index(back) :] if back in found else [*found]
            for one in gone:
                del found[one]
            gathering.skipped["taken back"] += len(gone)
        elif isinstance(changed, dict):
            if "messages" in changed:
                found = {string(one, "id") or f"#{at}": one for at, one in _numbered(changed)}
        elif "type" in record:
            found[string(record, "id") or f"#{number}"] = record
        else:
            gathering.skipped["metadata"] += 1
    return [*found.values()]


def _numbered(changed: Json) -> Iterator[tuple[int, Json]]:
    return ((at, one) for at, one in enumerate(items(changed, "messages")) if isinstance(one, dict))


def _take(record: Json, gathering: Gathering) -> None:
    at = moment(record.get("timestamp"))
    match record.get("type"):
        case "user":
            gathering.prompt(content(_shown(record.get("content"))), at)
        case "gemini":
            _answer(record, gathering, at)
        case _:
            gathering.skipped[name_of(record, "type") or "unknown"] += 1


def _answer(record: Json, gathering: Gathering, at: int | None) -> None:
    thoughts = (
        make.thinking(f"{string(one, 'subject')}\n{string(one, 'description')}".strip())
        for one in items(record, "thoughts")
    )
    texts = (one for one in _shown(record.get("content")) if isinstance(one, str))
    calls = [
        one
        for one in items(record, "toolCalls")
        if isinstance(one, dict) and string(one, "id") and string(one, "name")
    ]
    parts = [
        *thoughts,
        make.text("\n".join(texts)),
        *(make.tool_call(string(c, "name"), string(c, "id"), child(c, "args")) for c in calls),
    ]
    found = gathering.answer(parts, at, name_of(record, "model"))
    if found is not None:
        found.usage = _usage(child(record, "tokens"))
    for call in calls:
        if call.get("result") is not None:
            shown = content(_shown(call["result"]))
            failed = call.get("status") == "error"
            gathering.returned(string(call, "id"), shown, at, failed=failed)


class _Names:
    def __init__(self) -> None:
        self._open: defaultdict[str, list[str]] = defaultdict(list)
        self._calls = 0

    def said(self, part: Json) -> Json:
        call = child(part, "functionCall")
        if tool := string(call, "name"):
            self._calls += 1
            one = string(call, "id") or f"call-{self._calls}"
            self._open[tool].append(one)
            return make.tool_call(tool, one, child(call, "args"))
        text = string(part, "text")
        return make.thinking(text) if part.get("thought") is True else make.text(text)

    def answered(self, answer: Json) -> str:
        waiting = self._open[string(answer, "name")]
        one = string(answer, "id") or (waiting[0] if waiting else "")
        if one in waiting:
            waiting.remove(one)
        return one


def _shown(parts: JsonValue) -> Iterator[JsonValue]:
    for part in parts if isinstance(parts, list) else [parts]:
        match part:
            case str(text) | {"text": str(text)}:
                yield text
            case {"functionResponse": dict(answer)}:
                yield _result(answer)
            case {"inlineData": dict()}:
                yield picture()
            case dict():
                yield make.dump(part).decode()
            case _:
                pass


def _result(answer: Json) -> str:
    response = child(answer, "response")
    text = string(response, "output") or string(response, "error")
    return text or make.dump(response).decode()


def _usage(of: Json) -> Usage | None:
    sent = tokens(of, "input")
    output = tokens(of, "output") + tokens(of, "thoughts")
    return Usage(sent, output, tokens(of, "cached")) if sent else None
