"""Looking for terms where there is no index: in every entry."""

from collections.abc import Sequence

from refold.log.kinds import Message
from refold.log.protocol import Match, Matches
from refold.log.text import Searched, Term, gather


def matching(
    entries: Sequence[tuple[Match, Searched]], terms: Sequence[Term], sessions: int, most: int
) -> Matches:
    """The matches among these entries, which come oldest first and hold no terms yet."""
    newest_first = range(len(entries) - 1, -1, -1)
    places = [[at for at in newest_first if entries[at][1].holds(term)] for term in terms]
    return Matches(
        tuple(entries[at][0]._replace(terms=held) for at, held in gather(places, most).items()),
        tuple(map(len, places)),
        sum(match.kind == Message.KIND for match, _ in entries),
        sessions,
    )
