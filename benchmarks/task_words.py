"""The words of scripted tasks: names, and the lines of files, logs, orders and papers."""

from collections.abc import Callable
from random import Random
from typing import Final


def _words(text: str) -> list[str]:
    return text.split(" ")


TENANTS: Final = _words(
    "Brightwater Calloway Dunmore Eastlake Farrow Greystone Hollins Ironbridge Juniper Kestrel "
    "Larkspur Merriden Northgate Oakhurst Pemberton Quarry Ravenna Silverton Tamarack Underhill "
    "Vantage Westbrook Yarrow Zephyr"
)
_NOUNS: Final = _words(
    "batch buffer cache claim client cursor digest export field filter group handle import index "
    "invoice job label ledger limit lock margin mirror notice order packet page parcel payment "
    "policy pool quota record region report retry route sample schema shard signal stage stock "
    "survey table tariff token trace upload window worker"
)
_VERBS: Final = _words(
    "apply assign build check clear close collect compare count drain enqueue fetch flush group "
    "hold join load merge move open pack parse prune publish read release render reset resolve "
    "scan seal select send sort split start store sum sync trim update verify"
)
_LINES = 250  # that are made of each kind; results are drawn from them

Line = Callable[["Vocabulary"], str]


class Vocabulary:
    """Names of one task; what is about a fact is used for nothing else."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._tenants = rng.sample(TENANTS, len(TENANTS))
        self.others = [self._tenants.pop() for _ in range(8)]
        """Names for near misses and for everything else."""
        self._lines: dict[Line, list[str]] = {}
        self._rules: list[int] = []

    def tenant(self) -> str:
        return self._tenants.pop()

    def other(self) -> str:
        return self.rng.choice(self.others)

    def rule(self, count: int) -> int:
        """The index of a rule that the task doesn't have yet."""
        if not self._rules:
            self._rules = self.rng.sample(range(count), count)
        return self._rules.pop()

    def noun(self) -> str:
        return self.rng.choice(_NOUNS)

    def verb(self) -> str:
        return self.rng.choice(_VERBS)

    def identifier(self) -> str:
        return f"{self.verb()}_{self.noun()}_{self.noun()}"

    def number(self) -> int:
        return self.rng.randrange(12, 9_800)

    def path(self) -> str:
        return f"src/{self.noun()}/{self.noun()}_{self.noun()}.py"

    def code(self) -> str:
        letters = self.rng.choices("ABCDEFGHKLMNPRSTUVW", k=3)
        return f"{''.join(letters)}-{self.rng.randrange(1_000, 9_999)}"

    def lines(self, make: Line, count: int) -> str:
        if make not in self._lines:
            self._lines[make] = [make(self) for _ in range(_LINES)]
        return "\n".join(self.rng.choices(self._lines[make], k=count))


def code_line(w: Vocabulary) -> str:
    noun, other, number = w.noun(), w.noun(), w.number()
    match w.rng.randrange(5):
        case 0:
            return f"def {w.identifier()}({noun}, {other}={number}):"
        case 1:
            return f"    wait = min({number}, {noun} * attempt)  # {w.other()}"
        case 2:
            return f"    {noun} = {w.identifier()}({other}, {w.noun()})"
        case 3:
            return f"    return {noun}.{w.verb()}({other}={number})"
        case _:
            return f"    if {noun} > {number}: raise {other.title()}Error({noun})"


def log_line(w: Vocabulary) -> str:
    noun, name, at = w.noun(), w.other(), f"[{w.number():06}]"
    match w.rng.randrange(3):
        case 0:
            return f"{at} {name}: {noun} {w.verb()} took {w.number()} us"
        case 1:
            return f"{at} {w.identifier()} ok, {w.number()} in {noun}"
        case _:
            return f"{at} {name}: {noun} waits for the {w.noun()}"


def order_line(w: Vocabulary) -> str:
    noun, name, number = w.noun(), w.other(), w.number()
    match w.rng.randrange(3):
        case 0:
            return f"order {number:05}-{w.number()}: {name}, {noun}, shipped"
        case 1:
            return f"{name}: asked about the {noun}, answered within {number} minutes"
        case _:
            return f"note: the {noun} of {name} is in {w.noun()}, see order {number:05}"


def paper_line(w: Vocabulary) -> str:
    noun, name, number = w.noun(), w.other(), w.number()
    match w.rng.randrange(3):
        case 0:
            return f"{name} et al. ({w.rng.randrange(1990, 2025)}): the {noun} and the {w.noun()}"
        case 1:
            return f"of {number} in the {noun} group, {w.number()} had a {w.noun()}"
        case _:
            return f"table {w.rng.randrange(1, 9)}: {noun} by {w.noun()}, {name}, {number}"


def prompt(w: Vocabulary) -> str:
    """What a user says in passing."""
    openings = [
        f"Look at the {w.noun()} of {w.other()} next.",
        f"Something is off with the {w.noun()} {w.noun()}, have a look.",
        f"Why does the {w.noun()} {w.verb()} the {w.noun()} twice?",
        f"We should {w.verb()} the {w.noun()} before the {w.noun()}.",
    ]
    more = [
        f"The {w.noun()} of {w.other()} had {w.number()} in {w.noun()}.",
        f"Compare it with the {w.noun()} of last week, it was plausible then.",
        f"If the {w.noun()} does not {w.verb()}, leave it and say so.",
    ]
    return " ".join([w.rng.choice(openings), *w.rng.sample(more, w.rng.randrange(4))])


def closing(w: Vocabulary) -> str:
    """What a model says at the end of a turn."""
    return (
        f"The {w.noun()} can {w.verb()} the {w.noun()} of {w.other()}. "
        f"It {w.rng.choice(['failed', 'was slow', 'was wrong'])} because {w.identifier()} does "
        f"not {w.verb()} {w.number()} of them. What I looked at is in {w.path()}."
    )
