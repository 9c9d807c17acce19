"""A summary as data: what it says, what that rests on, and what a model is shown of it.

A fold keeps it whole, so that it can be printed, checked against the log, merged into the next one
and shown in another way.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.log import PartRef

SUMMARY_VERSION = 1
HAND = "hand"
"""Who wrote a summary that is a text and no more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, and the parts it rests on."""

    text: str
    sources: tuple[PartRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Claims on one subject."""

    heading: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Directive:
    """What the user said, in the user's own words, whole or clipped in the middle."""

    text: str
    source: PartRef
    chars: int
    """How long it is in the log."""


class Name(NamedTuple):
    """A name that the folded messages hold: a path, an identifier, a number."""

    name: str
    weight: float
    """How likely it is to be needed again, against the others."""
    last: int
    """The newest entry that holds it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One message that stands for the folded ones."""

    kind: Literal["prompt", "reply"]
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a fold says of the entries it stands for."""

    by: str
    """Who wrote it: `breadcrumb`, or a model."""
    title: str = ""
    words: str = ""
    """What a model wrote, where one did."""
    sections: tuple[Section, ...] = ()
    directives: tuple[Directive, ...] = ()
    omitted: int = 0
    """How many older messages of the user it does not quote."""
    ledger: tuple[Name, ...] = ()
    """More names than are shown: the next fold chooses anew among them."""
    messages: int = 0
    """How many messages it stands for."""
    tokens: int = 0
    """What they would cost in a request."""
    over: tuple[int, ...] = ()
    """The entries of the folds that it stands for in their turn."""
    continues: int = 0
    """The entry of the fold of which it is what was left when a part was opened; 0: of none."""
    shown: tuple[Shown, ...] = ()
    placement: Literal["own", "merge"] = "own"
    """Whether what is shown are messages of its own, or the beginning of the next prompt."""
    version: int = SUMMARY_VERSION

    @property
    def text(self) -> str:
        """What is shown, as one text."""
        return "\n\n".join(one.text for one in self.shown if one.kind == "prompt")

    def as_json(self) -> JsonValue:
        """The summary as a fold keeps it."""
        return _ADAPTER.dump_python(self, mode="json", exclude_defaults=True)

    def section(self, heading: str) -> tuple[Claim, ...]:
        """The claims under a heading."""
        return next((one.claims for one in self.sections if one.heading == heading), ())

    def showing(self, *shown: Shown, merge: bool = False) -> "Summary":
        """The same summary, shown in this way."""
        return replace(self, shown=shown, placement="merge" if merge else "own")


def parse(value: JsonValue) -> Summary:
    """The summary that a fold keeps; one that somebody wrote by hand is a text and no more."""
    try:
        return _ADAPTER.validate_python(value)
    except ValidationError:
        pass
    match value:
        case str() as text:
            return Summary(HAND, shown=(Shown("prompt", text),))
        case {"text": str() as text}:
            since = value.get("continues")
            left_of = since if isinstance(since, int) else 0
            return Summary(HAND, shown=(Shown("prompt", text),), continues=left_of)
        case _:
            return Summary(HAND)


_ADAPTER = TypeAdapter(Summary)
