"""What is left of an entry when it is forgotten, and what goes with it."""

import json
from collections.abc import Iterable

from pydantic import JsonValue

from refold.log.codec import CODEC
from refold.log.entry import Entry
from refold.log.span import Span, intersect, union

NOTHING = b"{}"


def tombstone(entry: Entry) -> Entry:
    """What stays of an entry (given whole): its id, time and place, and what its kind keeps."""
    return entry._replace(body=_kept(entry), holes=(), attached=(), scope="/", forgotten=True)


def fallen(forgotten: Iterable[Span], derived: Iterable[Entry]) -> list[Entry]:
    """The derived entries that rest, directly or through one another, on forgotten ones."""
    gone = union(forgotten)
    taken: list[Entry] = []
    for entry in sorted(derived, key=lambda entry: entry.seq):
        # An entry rests on earlier ones, so one pass in order is enough. Only the opening may rest
        # on a later one, and nothing rests on the opening.
        if intersect(entry.rests_on, gone) and not intersect([Span(entry.seq, entry.seq)], gone):
            gone = union((*gone, Span(entry.seq, entry.seq)))
            taken.append(entry)
    return taken


def _kept(entry: Entry) -> bytes:
    kind = CODEC.kind(entry.kind)
    if kind is None or not kind.KEPT or entry.version > kind.VERSION:
        return NOTHING
    body: dict[str, JsonValue] = json.loads(entry.body)
    kept = {key: body[key] for key in sorted(kind.KEPT & body.keys())}
    return json.dumps(kept, separators=(",", ":")).encode()
