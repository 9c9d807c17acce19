"""The newest answers that were given here, so that who goes on from one need not be looked for.

It is a guess: others may have gone on meanwhile, or the session may be gone. Who goes by it says
so to the log, by the mark that is the newest then, and looks when the log disagrees.
"""

from collections import OrderedDict
from typing import Final

from refold.gateway.finding import Chain, Continue, key_of

_MOST: Final = 10_000


class Newest:
    """Where each answer is that nobody has gone on from."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._places: OrderedDict[tuple[str, bytes], tuple[str, int] | None] = OrderedDict()

    def put(self, tenant: str, key: bytes, session: str, seq: int) -> None:
        """An answer was given there. Of two that are alike to the letter, neither is taken."""
        place = tenant, key
        self._places[place] = None if place in self._places else (session, seq)
        self._places.move_to_end(place)
        if len(self._places) > self._most:
            self._places.popitem(last=False)

    def take(self, tenant: str, chain: Chain) -> Continue | None:
        """Where a request goes on, if its newest answer is here; the next must look for it."""
        if not chain.answered:
            return None
        at = chain.answered[-1]
        place = tenant, key_of("answered", chain.links[at])
        if self._places.get(place) is None:
            return None
        session, seq = self._places.pop(place) or ("", 0)
        return Continue(session, seq, at + 1)
