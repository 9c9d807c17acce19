"""What may change a board: the tool of whoever consolidates, which takes only what was said.

A fact goes through the same check as a summary. What names something that the record does not have
is refused, and so is an order that the user never gave: words of a web page that an assistant read
do not become the advice of every later session.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from refold.fold.material import Material, Passage
from refold.fold.summary import Claim
from refold.fold.write.written import Said, Written
from refold.memory.board import Change, Fact, New, as_fact

MOST_ADDED: Final = 8
"""Facts of one record; who reads it was asked for fewer."""

_HEARD = ("user", "assistant")
_NUMBERED = re.compile(r"^(The user) \(entry \d+\)")


class ContextBoard:
    """Adds to a board and prunes it, by what a record says; nothing is written yet."""

    def __init__(self, facts: Sequence[Fact], material: Material) -> None:
        self._facts = {fact.number: fact for fact in facts}
        self._passages = {one.seq: one for one in material.passages}
        self._change = Change()

    @property
    def change(self) -> Change:
        """What is to become of the board."""
        return self._change

    def add(self, text: str, entries: Sequence[int]) -> str:
        """Put a fact there; what came of it, in words."""
        if len(self._change.add) >= MOST_ADDED:
            return f"Not added: {MOST_ADDED} facts of one record are enough."
        cited = [self._passages[one] for one in dict.fromkeys(entries) if one in self._passages]
        if not any(map(_somebody_said, cited)):
            return (
                "Not added: name the entries of the record that it rests on, "
                "at least one of the user's or the assistant's."
            )
        claims, why = _borne_out(as_fact(text), cited)
        if not claims:
            return f"Not added: {why}."
        new = tuple(New(_alone(one.text), _entries(one, cited)) for one in claims)
        self._change = replace(self._change, add=(*self._change.add, *new))
        return "Added."

    def prune(self, number: int) -> str:
        """Take a fact away; what came of it, in words."""
        fact = self._facts.get(number)
        if fact is None:
            return f"Not pruned: there is no fact {number} on the board."
        if fact.session is None:
            return "Not pruned: a person put it there."
        if number not in self._change.prune:
            self._change = replace(self._change, prune=(*self._change.prune, number))
        return "Pruned."


def _somebody_said(passage: Passage) -> bool:
    """Whether these are words of the user or the assistant, and not of a program or a page."""
    return passage.role in _HEARD and any(
        one.kind in ("prompt", "text", "call") for one in passage.shapes
    )


def _borne_out(text: str, cited: Sequence[Passage]) -> tuple[tuple[Claim, ...], str]:
    """What stands of a fact, and why nothing does: half a fact is none."""
    # Its rules take a while to import, and only who consolidates needs them.
    from refold.fold.ground import ground  # noqa: PLC0415

    said = Said("notes", text, tuple(one.seq for one in cited))
    grounded = ground(Written(said=(said,)), Material(tuple(cited)))
    for verdict in ("left out", "masked", "marked"):
        for one in grounded.report.findings:
            if one.verdict == verdict:
                return (), one.why.rstrip(".") or "the entries do not say so"
    claims = tuple(claim for part in grounded.sections for claim in part.claims)
    return claims, "the entries do not say so"


def _alone(text: str) -> str:
    """The words without the number of an entry, which says nothing in another session."""
    return as_fact(_NUMBERED.sub(r"\1", text))


def _entries(claim: Claim, cited: Sequence[Passage]) -> tuple[int, ...]:
    sources = sorted({one.seq for one in claim.sources})
    return tuple(sources) or tuple(one.seq for one in cited)
