"""Our own sessions, as `refold export` writes them: one entry on a line.

Only messages are read: a replay makes folds of its own. What was taken back is left out. Sessions
of the gateway hold messages in their clients' own formats, which are read by what their wires say.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from refold.errors import InvalidMessage
from refold.lab import messages as make
from refold.lab.importers.base import Gathered, Gathering, child, moment, name_of, string
from refold.lab.messages import Json
from refold.lab.recording import FORMAT, Recorded, Recording
from refold.wire import Shape, Wire, wire_for

NAME = "Refold"
_OF_CLIENTS = frozenset({"anthropic-messages", "openai-chat", "openai-responses"})


def knows(record: Json) -> bool:
    match record:
        case {"refold": int(), "session": str()}:
            return True
        case {"seq": int(), "kind": str(), "version": int()}:
            return True
        case _:
            return False


def parse_exported(records: Iterable[Json], name: str) -> Recording:
    """The session that the lines of an export hold."""
    every = list(records)
    begun = next((one for one in every if one.get("kind") == "session"), Json())
    if (format_ := string(child(begun, "body"), "format")) in _OF_CLIENTS:
        return _ClientsOwn(wire_for(format_)).recording(every, name)
    return _parsed(every, name)


def _parsed(records: Iterable[Json], name: str) -> Recording:
    kept: dict[int, Recorded] = {}
    skipped = Counter[str]()
    for record in records:
        body, seq = child(record, "body"), record.get("seq")
        match record.get("kind"):
            case _ if "scope" in record:
                skipped["delegated work"] += 1
            case "message" if body.get("kind") in ("request", "response") and isinstance(seq, int):
                kept[seq] = _recorded(body, moment(record.get("at")))
            case "rewind" if isinstance(to := body.get("to"), int):
                gone = [one for one in kept if one > to]
                skipped["taken back"] += len(gone)
                for one in gone:
                    del kept[one]
            case "session" if string(body, "format") not in (FORMAT, ""):
                skipped[f"format {string(body, 'format')}"] += 1
            case str():
                skipped[name_of(record, "kind")] += 1
            case _:
                skipped["frame"] += 1
    return Recording(name, tuple(kept.values()), dict(skipped))


def _recorded(body: Json, at: int | None) -> Recorded:
    return Recorded(make.dump(body), at, None, name_of(body, "model_name") or None)


class _ClientsOwn:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._gathering = Gathering()
        self._answer: Gathered | None = None
        self._begun: list[tuple[int, int]] = []
        """The seq of each message that was read, and how many there were before it."""

    def recording(self, records: Iterable[Json], name: str) -> Recording:
        skipped = self._gathering.skipped
        for record in records:
            body, seq = child(record, "body"), record.get("seq")
            match record.get("kind"):
                case _ if "scope" in record:
                    skipped["delegated work"] += 1
                case "message" if isinstance(seq, int):
                    self._begun.append((seq, len(self._gathering.messages)))
                    self._message(body, moment(record.get("at")))
                case "rewind" if isinstance(to := body.get("to"), int):
                    self._rewind(to)
                case str():
                    skipped[name_of(record, "kind")] += 1
                case _:
                    skipped["frame"] += 1
        return self._gathering.recording(name)

    def _message(self, body: Json, at: int | None) -> None:
        try:
            described = self._wire.describe(make.dump(body))
        except InvalidMessage:
            self._gathering.skipped["message that its format does not know"] += 1
            return
        if described.role == "assistant":
            self._says(list(_said(described.shapes)), at)
            return
        self._answer = None
        for shape in described.shapes:
            if shape.kind == "return" and shape.call:
                self._gathering.returned(shape.call, shape.text, at)
            elif shape.text.strip():
                self._gathering.prompt(shape.text, at, system=shape.kind == "system")

    def _says(self, parts: Sequence[Json], at: int | None) -> None:
        if self._answer is not None and self._wire.itemized:
            self._gathering.more(self._answer, parts)
        elif parts:
            self._answer = self._gathering.answer(parts, at)

    def _rewind(self, to: int) -> None:
        gone = [first for seq, first in self._begun if seq > to]
        self._begun = [one for one in self._begun if one[0] <= to]
        self._answer = None
        if gone:
            self._gathering.take_back(min(gone))


def _said(shapes: Iterable[Shape]) -> Iterator[Json]:
    for shape in shapes:
        match shape.kind:
            case "text" if shape.text.strip():
                yield make.text(shape.text)
            case "thought" if shape.text:
                yield make.thinking(shape.text)
            case "call" if shape.call and shape.tool:
                yield make.tool_call(shape.tool, shape.call, shape.text)
            case _:
                pass
