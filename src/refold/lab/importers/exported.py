"""Our own sessions, as `refold export` writes them: one entry on a line.

Only messages are read: a replay makes folds of its own. What was taken back is left out.
"""

from collections import Counter
from collections.abc import Iterable

from refold.lab import messages as make
from refold.lab.importers.tolerant import child, moment, name_of, string
from refold.lab.messages import Json
from refold.lab.recording import FORMAT, Recorded, Recording

NAME = "Refold"


def knows(record: Json) -> bool:
    """Whether Refold wrote the record."""
    match record:
        case {"refold": int(), "session": str()}:
            return True
        case {"seq": int(), "kind": str(), "version": int()}:
            return True
        case _:
            return False


def parse_exported(records: Iterable[Json], name: str) -> Recording:
    """The session that the lines of an export hold."""
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
