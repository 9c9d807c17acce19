"""What may change a board: the tool of whoever consolidates, which takes only what was said.

A fact goes through the same check as a summary, against what the user and the assistant said. What
names something that they did not is refused, and so is an order that the user never gave: words of
a web page that an assistant read do not become the advice of every later session.
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

_SPOKEN = ("prompt", "text", "call")
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
        found = (self._passages[one] for one in dict.fromkeys(entries) if one in self._passages)
        cited = [one for one in map(_spoken, found) if one.shapes]
        if not cited:
            return (
                "Not added: name the entries of the record that it rests on, in which the user or "
                "the assistant says so."
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


def _spoken(passage: Passage) -> Passage:
    """What the user or the assistant said in it, and nothing that a program or a page did."""
    shapes = tuple(one for one in passage.shapes if one.kind in _SPOKEN)
    return passage._replace(shapes=shapes)


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
