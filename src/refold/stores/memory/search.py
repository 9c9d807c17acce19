"""Looking for words in what is held."""

from collections.abc import Sequence
from uuid import UUID

from refold.log.entry import Entry
from refold.log.excerpt import excerpt
from refold.log.kinds import Message
from refold.log.protocol import Hit, Match, Matches
from refold.log.text import Searched, Term, terms, text_of
from refold.stores.matching import matching
from refold.stores.memory.held import HeldSession, Row, Tenant


def search(held: Tenant, query: str, session: str | None, limit: int) -> list[Hit]:
    """See `refold.log.Log.search`."""
    looked_for: list[Term] = [(tuple(run),) for run in terms(query)]
    hits: dict[tuple[UUID, int], tuple[str, Row]] = {}
    for there in _among(held, session) if looked_for else ():
        for row in there.rows:
            place = row.entry.id, row.entry.seq
            if place not in hits and all(map(held.searched(row).holds, looked_for)):
                hits[place] = there.name, row
    order = _by_seq if session else _by_time
    newest = sorted(hits.values(), key=lambda hit: order(hit[1].entry), reverse=True)[:limit]
    return [_hit(name, held.whole(row.entry), query) for name, row in newest]


def _hit(name: str, entry: Entry, query: str) -> Hit:
    return Hit(name, entry, excerpt(text_of(entry), query))


def matches(held: Tenant, looked_for: Sequence[Term], session: str | None, most: int) -> Matches:
    """See `refold.log.Log.matches`."""
    among = _among(held, session)
    entries: dict[tuple[UUID, int], tuple[Match, Searched]] = {}
    for there in among:
        messages = 0
        for row in there.rows:
            entry = row.entry
            messages += entry.kind == Message.KIND
            if (place := (entry.id, entry.seq)) not in entries:
                words = held.searched(row)
                place_of = there.name, entry.seq, entry.at, entry.kind, entry.scope
                entries[place] = Match(*place_of, messages, words.length, ()), words
    return matching(list(entries.values()), looked_for, len(among), most)


def holds(held: Tenant, there: HeldSession, query: str) -> bool:
    """Whether the session's name begins with the query, or an entry holds all its words."""
    looked_for: list[Term] = [(tuple(run),) for run in terms(query)]
    return there.name.startswith(query) or (
        bool(looked_for)
        and any(all(map(held.searched(row).holds, looked_for)) for row in there.rows)
    )


def _among(held: Tenant, session: str | None) -> list[HeldSession]:
    return [held.session(session)] if session else held.oldest_first()


def _by_seq(entry: Entry) -> tuple[int]:
    return (entry.seq,)


def _by_time(entry: Entry) -> tuple[int, int, UUID]:
    return entry.at, entry.seq, entry.id
