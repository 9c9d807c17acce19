"""REREAD: files that the assistant read again, and whether it was still shown what it had read."""

from dataclasses import dataclass

from refold.lab.metrics import Share
from refold.lab.reading import Call, Reader
from refold.lab.recording import Recording
from refold.lab.replay import Replay

_TOOLS = frozenset({"read", "read_file", "view", "view_file", "cat", "open_file"})
_PATHS = ("path", "file_path", "filename", "file")


@dataclass(frozen=True, slots=True)
class Reread:
    """A request in which a file is read that was read before, and what was returned then."""

    at: int
    path: str
    earlier: tuple[tuple[str, str], ...]


def rereads(recording: Recording, reader: Reader) -> list[Reread]:
    """The reads of files that an earlier call had read."""
    calls: dict[str, list[str]] = {}
    answers: dict[str, str] = {}
    found: list[Reread] = []
    for at, payload in enumerate(recording.payloads):
        said = reader.read(payload)
        answers.update(said.returns)
        read = [(path, call.id) for call in said.calls if (path := _read_path(call))]
        for path in dict.fromkeys(path for path, _ in read):
            earlier = [(call, answers[call]) for call in calls.get(path, ()) if call in answers]
            if earlier:
                found.append(Reread(at, path, tuple(earlier)))
        for path, call in read:
            calls.setdefault(path, []).append(call)
    return found


def rereads_lost(replay: Replay, reader: Reader) -> Share:
    """Of the files that were read again, those of which no earlier read was in the view."""
    views = {request.at: request.view for request in replay.requests}
    every = rereads(replay.recording, reader)
    gone = 0
    for reread in every:
        shown = {pair for payload in views[reread.at] for pair in reader.read(payload).returns}
        gone += shown.isdisjoint(reread.earlier)
    return Share(gone, len(every))


def _read_path(call: Call) -> str | None:
    """The file that a call reads."""
    if call.tool.lower() not in _TOOLS or not isinstance(call.arguments, dict):
        return None
    for name in _PATHS:
        value = call.arguments.get(name)
        if isinstance(value, str):
            return value
    return None
