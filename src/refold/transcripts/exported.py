"""Our own sessions, as `refold export` writes them: one entry on a line.

Only messages are read, because a replay folds by itself. Messages that were rewound are left out.
Sessions of the gateway hold messages in their clients' formats, which are read through their wires.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from refold.errors import InvalidMessage
from refold.log import Used
from refold.models.receipt import Basis
from refold.transcripts import messages as make
from refold.transcripts.builder import (
    DraftMessage,
    TranscriptBuilder,
    child,
    moment,
    name_of,
    string,
)
from refold.transcripts.messages import Json
from refold.transcripts.recording import FORMAT, RecordedMessage, Recording
from refold.wire import Shape, Wire, wire_for

NAME = "Refold"
PROGRAM = "refold"
_CLIENT_FORMATS = frozenset({"anthropic-messages", "openai-chat", "openai-responses"})


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
    records = list(records)
    opening = next((record for record in records if record.get("kind") == "session"), Json())
    if (format_ := string(child(opening, "body"), "format")) in _CLIENT_FORMATS:
        recording = _ClientFormatParser(wire_for(format_)).recording(records, name)
    else:
        recording = _parse_native(records, name)
    used = (record for record in reversed(records) if record.get("kind") == Used.KIND)
    for basis in (Basis.parse(child(record, "body").get("basis")) for record in used):
        if basis is not None:
            return replace(recording, prices=basis.prices, limit=basis.limit)
    return recording


def _parse_native(records: Iterable[Json], name: str) -> Recording:
    messages: dict[int, RecordedMessage] = {}
    skipped = Counter[str]()
    requested = ""
    for record in records:
        body, seq = child(record, "body"), record.get("seq")
        requested = _model_in(record) or requested
        match record.get("kind"):
            case _ if "scope" in record:
                skipped["delegated work"] += 1
            case "message" if body.get("kind") in ("request", "response") and isinstance(seq, int):
                answered = requested if body.get("kind") == "response" else ""
                model = name_of(body, "model_name") or answered or None
                at = moment(record.get("at"))
                messages[seq] = RecordedMessage(make.dump(body), at, model=model)
            case "rewind" if isinstance(to := body.get("to"), int):
                rewound = [seq for seq in messages if seq > to]
                skipped["taken back"] += len(rewound)
                for seq in rewound:
                    del messages[seq]
            case "session" if string(body, "format") not in (FORMAT, ""):
                skipped[f"format {string(body, 'format')}"] += 1
            case str():
                skipped[name_of(record, "kind")] += 1
            case _:
                skipped["frame"] += 1
    return Recording(name, tuple(messages.values()), dict(skipped))


def _model_in(record: Json) -> str:
    """The model that a request record names."""
    if record.get("kind") != "request" or "scope" in record:
        return ""
    return name_of(child(record, "body"), "model")


class _ClientFormatParser:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._builder = TranscriptBuilder(PROGRAM)
        self._answer: DraftMessage | None = None
        self._model = ""
        self._starts: list[tuple[int, int]] = []
        """The seq of each message that was read, and how many there were before it."""

    def recording(self, records: Iterable[Json], name: str) -> Recording:
        skipped = self._builder.skipped
        for record in records:
            body, seq = child(record, "body"), record.get("seq")
            self._model = _model_in(record) or self._model
            match record.get("kind"):
                case _ if "scope" in record:
                    skipped["delegated work"] += 1
                case "message" if isinstance(seq, int):
                    self._starts.append((seq, len(self._builder.messages)))
                    self._message(body, moment(record.get("at")))
                case "rewind" if isinstance(to := body.get("to"), int):
                    self._rewind(to)
                case str():
                    skipped[name_of(record, "kind")] += 1
                case _:
                    skipped["frame"] += 1
        return self._builder.recording(name)

    def _message(self, body: Json, at: int | None) -> None:
        try:
            described = self._wire.describe(make.dump(body))
        except InvalidMessage:
            self._builder.skipped["message that its format does not know"] += 1
            return
        if described.role == "assistant":
            parts = list(_answer_parts(described.shapes))
            # An answer of several items is one message.
            if self._answer is not None and self._wire.itemized:
                self._builder.extend(self._answer, parts)
            elif parts:
                self._answer = self._builder.answer(parts, at, self._model)
            return
        self._answer = None
        for shape in described.shapes:
            if shape.kind == "return" and shape.call:
                self._builder.tool_return(shape.call, shape.text, at)
            elif shape.text.strip():
                self._builder.prompt(shape.text, at, system=shape.kind == "system")

    def _rewind(self, to: int) -> None:
        rewound = [first for seq, first in self._starts if seq > to]
        self._starts = [(seq, first) for seq, first in self._starts if seq <= to]
        self._answer = None
        if rewound:
            self._builder.take_back(min(rewound))


def _answer_parts(shapes: Iterable[Shape]) -> Iterator[Json]:
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
