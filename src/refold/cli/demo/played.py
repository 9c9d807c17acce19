"""What came of playing the demo: figures that were measured while it played."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Folded:
    """One fold that made itself while the conversation went on."""

    turn: int
    """The turn during which it was made, from 1."""
    messages: int
    """How many messages it stands for."""
    tokens_before: int
    """What the conversation took up."""
    tokens_after: int
    written_by: str
    """Who wrote the summary: a model, or the log itself."""
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Detail:
    """Something that was folded away, asked for, and found again."""

    asked: str
    answer: str
    found: str
    """The detail, letter for letter; empty where it was not found."""
    entry: int
    """The entry of the log that it stands in."""
    said_in_turn: int
    asked_in_turn: int
    shown_when_asked: bool
    """Whether the model could still see it when it was asked."""
    read_with: tuple[str, ...]
    """The tools by which the model found it."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What all requests together came to."""

    tokens_sent: int
    largest_request: int
    dollars: float | None
    """None where no price is known."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of it."""

    session: str
    window: int
    turns: int
    requests: int
    folds: tuple[Folded, ...]
    with_refold: Spent
    without: Spent
    """The same requests, if each had sent everything."""
    refused_from_turn: int | None
    """Without Refold: the turn from which on requests are larger than the window."""
    priced_as: str
    """The model whose published prices are used."""
    detail: Detail
    said: int
    """Prompts, answers and results that the conversation had."""
    kept: int
    """How many of them the log holds, word for word."""
    seconds: float

    @property
    def good(self) -> bool:
        """Whether it showed what it is to show: folds, and nothing lost."""
        return bool(self.folds and self.detail.found) and self.kept == self.said

    def as_json(self) -> dict[str, Any]:
        """All of it, as `refold demo --json` prints it."""
        return asdict(self)

    def as_text(self) -> str:
        """All of it in a few lines, for people."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        with_, without = self.with_refold, self.without
        yield f"{self.turns} turns, {self.requests} requests, in a window of {self.window:,} tokens"
        if self.refused_from_turn is not None:
            turn = self.refused_from_turn
            yield f"  without Refold   too long for the model from turn {turn} on"
        for fold in self.folds:
            yield (
                f"  turn {fold.turn:<11} {fold.messages} messages folded, "
                f"{fold.tokens_before:,} → {fold.tokens_after:,} tokens, {_writer(fold)}"
            )
        largest = f"{with_.largest_request:,} tokens, not {without.largest_request:,}"
        yield f"  largest request  {largest}"
        yield f"  sent in all      {with_.tokens_sent:,} tokens, not {without.tokens_sent:,}"
        yield f"  cost             {self._cost()}"
        yield from self._found()
        kept = f"{self.kept} of {self.said} prompts, answers and results, each word"
        yield f"  kept             {kept}"

    def _cost(self) -> str:
        paid, instead = self.with_refold.dollars, self.without.dollars
        if paid is None or instead is None:
            return f"unknown: no prices of {self.priced_as} are at hand"
        return f"${paid:.3f}; for everything ${instead:.3f} ({self.priced_as}, cache counted)"

    def _found(self) -> Iterator[str]:
        one = self.detail
        yield f"  found again      {one.found or 'nothing'}"
        if one.found:
            seen = "still in view" if one.shown_when_asked else "out of view by then"
            yield f"                   read in turn {one.said_in_turn}, {seen}: entry {one.entry}"


def _writer(fold: Folded) -> str:
    return "no model asked" if not fold.written_by else f"written by {fold.written_by}"
