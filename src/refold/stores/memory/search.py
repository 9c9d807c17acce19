"""Looking for words in what is held."""

from collections.abc import Sequence
from uuid import UUID

from refold.log.kinds import Message
from refold.log.protocol import Hit, Match, Matches
from refold.log.text import Searched, Term, excerpt, found, terms, text_of
from refold.stores.matching import matching
from refold.stores.memory.held import HeldSession, Tenant


def search(held: Tenant, query: str, session: str | None, limit: int) -> list[Hit]:
    """See `refold.log.Log.search`."""
    looked_for = terms(query)
    hits: dict[tuple[UUID, int], Hit] = {}
    for there in _among(held, session):
        for row in there.rows:
            text = text_of(held.whole(row.entry))
            place = row.entry.id, row.entry.seq
            if place not in hits and found(looked_for, text):
                hits[place] = Hit(there.name, held.whole(row.entry), excerpt(text, query))
    order = _by_seq if session else _by_time
    return sorted(hits.values(), key=order, reverse=True)[:limit]


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
    looked_for = terms(query)
    return there.name.startswith(query) or any(
        found(looked_for, text_of(held.whole(row.entry))) for row in there.rows
    )


def _among(held: Tenant, session: str | None) -> list[HeldSession]:
    return [held.session(session)] if session else held.oldest_first()


def _by_seq(hit: Hit) -> int:
    return hit.entry.seq


def _by_time(hit: Hit) -> tuple[int, int, UUID]:
    return hit.entry.at, hit.entry.seq, hit.entry.id
