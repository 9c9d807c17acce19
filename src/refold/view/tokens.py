"""Counting tokens: counters, their calibration by usage, and an estimate without a tokenizer."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Final, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from refold.errors import InvalidInput
from refold.wire import Kind, Shape


class Counter(Protocol):
    """Counts the tokens of parts for one model."""

    @property
    def name(self) -> str:
        """What counts: the tokenizer, or the estimate. The same name counts the same."""
        ...

    @property
    def spread(self) -> float:
        """How far the truth may lie above a count, as a share of it: the headroom."""
        ...

    def text(self, text: str, kind: Kind = "text") -> int:
        """The tokens of a text that stands in a part of this kind."""
        ...

    def part(self, shape: Shape) -> int:
        """The tokens of a whole part, with its names, marks and media."""
        ...


class Marks(NamedTuple):
    """What a family of models makes of a text, and adds around it, in tokens.

    Providers publish some of it. The rest are assumptions, until reported usage corrects them.
    """

    factor: float = 1.0
    """Tokens of this family for each one counted."""
    return_factor: float | None = None
    """The same for what tools return, where it differs from prose."""
    message: int = 4
    """Around a prompt or a text: whose it is, and where it ends."""
    call: int = 12
    """Around a call: its id, and how it is written."""
    returned: int = 8
    """Around what a tool returned."""
    tool: int = 8
    """Around the definition of a tool."""
    tools: int = 16
    """Said once, if there are any tools."""
    image: int = 1_105
    """An image of full size."""

    def weighed(self, counted: int, kind: Kind) -> int:
        own = self.return_factor if kind == "return" else None
        return round(counted * (own or self.factor))


_OPAQUE: Final = 4
"""Characters of sealed content for a token; base64 alone makes more of them."""
PLAIN: Final = Marks()
"""What chat formats add as a rule."""
SOUND: Final = 1_920
"""A sound of unknown length: a minute of it, at 32 tokens a second."""
FILM: Final = 15_780
"""A film of unknown length: a minute of it, at 263 tokens a second."""
DOCUMENT: Final = 6_000
"""A document of unknown length: a few pages, each with its text and its image."""


def part_tokens(counter: Counter, shape: Shape, marks: Marks) -> int:
    """The tokens of a part: its text, the marks around it, the tool's name, and its media."""
    around = {"call": marks.call, "return": marks.returned}.get(shape.kind, marks.message)
    name = counter.text(shape.tool, "other") if shape.tool else 0
    media_tokens = sum(_media_tokens(media, marks) for media in shape.media)
    sealed = ceil(shape.opaque / _OPAQUE)
    return counter.text(shape.text, shape.kind) + around + name + media_tokens + sealed


def _media_tokens(media_type: str, marks: Marks) -> int:
    """The tokens of something that nobody here looks into; its type says what it is."""
    sort = media_type.partition("/")[0].removesuffix("-url")
    return {"image": marks.image, "audio": SOUND, "video": FILM}.get(sort, DOCUMENT)


def tools_tokens(counter: Counter, definitions: Iterable[str], marks: Marks = PLAIN) -> int:
    """The tokens of tool definitions, each the JSON of its name, description and schema."""
    tokens = [counter.text(tool, "other") + marks.tool for tool in definitions]
    return sum(tokens) + marks.tools if tokens else 0


LAST = 100
"""How many pairs are remembered."""
ENOUGH = 8
"""How many pairs it takes until the measured spread stands alone."""
PRIOR = 2
"""How many pairs every calibration starts with: they say that `start` is right."""
COVERED = 0.99
"""Share of the pairs that the spread covers."""
SMALLEST = 0.01
"""The spread is never less."""
ABSURD = 4.0
"""A ratio above this, or below its inverse, is a mistake: another request, another unit."""


class Calibration(BaseModel):
    """How a counter's counts relate to what a provider reports.

    It remembers the last pairs of what was counted and what was reported for the same request.
    Their median ratio corrects the counter; how far they lie above it is the headroom.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prior: float = Field(default=0.1, gt=0, le=ABSURD)
    """The spread while little was observed: the counter's own."""
    start: float = Field(default=1.0, ge=1 / ABSURD, le=ABSURD)
    """The factor while little was observed."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Counted and reported, the oldest first."""

    def observed(self, estimated: int, reported: int) -> "Calibration":
        """After one more request: its tokens by the counter as it is, and by the provider."""
        if estimated <= 0 or not 1 / ABSURD <= reported / estimated <= ABSURD:
            return self
        pairs = (*self.pairs, (estimated, reported))[-LAST:]
        return self.model_copy(update={"pairs": pairs})

    @property
    def factor(self) -> float:
        """Reported tokens for each one counted, in hundredths, so that it seldom moves."""
        return max(0.01, round(median([*self._ratios, *[self.start] * PRIOR]), 2))

    @property
    def spread(self) -> float:
        """How far reports may lie above corrected counts, as a share of them."""
        ratios = sorted(self._ratios)
        doubt = self.prior * max(0, ENOUGH - len(ratios)) / ENOUGH
        if not ratios:
            return max(doubt, SMALLEST)
        highest = ratios[ceil(COVERED * len(ratios)) - 1]
        return max(highest / self.factor - 1, doubt, SMALLEST)

    @property
    def _ratios(self) -> list[float]:
        return [reported / estimated for estimated, reported in self.pairs]

    def to_json(self) -> str:
        """The calibration as JSON, for `from_json`."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Calibration":
        """The calibration that `to_json` wrote. Raises InvalidInput."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InvalidInput(
                f"This is not a calibration: {error.errors()[0]['msg']}.",
                "Start with Calibration().",
            ) from error


@dataclass(frozen=True, slots=True)
class Calibrated:
    counter: Counter
    factor: float
    spread: float

    @property
    def name(self) -> str:
        return f"{self.counter.name} * {self.factor:.2f}"

    def text(self, text: str, kind: Kind = "text") -> int:
        return ceil(self.counter.text(text, kind) * self.factor)

    def part(self, shape: Shape) -> int:
        return ceil(self.counter.part(shape) * self.factor)


def calibrated(counter: Counter, calibration: Calibration) -> Calibrated:
    """A counter whose counts are corrected by a calibration."""
    return Calibrated(counter, calibration.factor, calibration.spread)


class Correction(NamedTuple):
    """How the counter of a request was corrected, as its record says."""

    counter: str
    """The name of the corrected counter."""
    factor: float
    spread: float

    @classmethod
    def of(cls, counter: Counter) -> "Correction | None":
        if not isinstance(counter, Calibrated):
            return None
        return cls(counter.counter.name, counter.factor, counter.spread)


def corrected(counter: Counter, correction: Correction | None) -> Counter:
    """The counter with this correction instead of its own, if it is the one that was corrected.

    A log may come from anybody: a correction that no calibration arrives at is not believed.
    """
    plain = counter.counter if isinstance(counter, Calibrated) else counter
    if correction is None:
        return plain
    likely = 1 / ABSURD <= correction.factor <= ABSURD and 0 <= correction.spread <= ABSURD**2
    if correction.counter != plain.name or not likely:
        return counter
    return Calibrated(plain, correction.factor, correction.spread)


# An estimate of tokens that needs no tokenizer: pure, deterministic, tens of megabytes a second.
#
# A tokenizer cuts text where the class of its characters changes: at words, humps in names, groups
# of digits, runs of punctuation. So the estimate counts such changes, each with a weight. The
# weights were fitted to the o200k tokenizer, by non-negative least squares on relative errors, over
# recorded agent sessions, program code and pages in a dozen languages.

Content = Literal["prose", "json", "code", "cjk", "script", "encoded"]
"""What a text is made of. "script" is any other writing than Latin; "encoded" is base64 or hex."""


class Bound(NamedTuple):
    """How far an estimate may be off: this share of the true count, and a few tokens more."""

    share: float
    slack: int

    def holds(self, estimated: int, true: int) -> bool:
        return abs(estimated - true) <= self.share * true + self.slack


BOUNDS: Final[dict[Content, Bound]] = {
    "prose": Bound(0.10, 8),
    "json": Bound(0.12, 8),
    "code": Bound(0.18, 8),
    "cjk": Bound(0.20, 8),
    "script": Bound(0.25, 8),
    "encoded": Bound(0.10, 8),
}
"""The bound that 99 of 100 messages keep, by content, against the o200k tokenizer."""

REQUEST_SPREAD = 0.08
"""How far the truth may lie above the estimate of a whole request: single errors even out."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A counter that estimates, for models whose tokenizer is not at hand."""

    name: str = "estimate"
    spread: float = REQUEST_SPREAD
    marks: Marks = PLAIN

    def text(self, text: str, kind: Kind = "text") -> int:
        """The tokens of a text, times what the model's family makes of this kind of part."""
        return self.marks.weighed(estimate(text), kind)

    def part(self, shape: Shape) -> int:
        return part_tokens(self, shape, self.marks)


def estimate(text: str) -> int:
    """About how many o200k tokens the text has."""
    data = text.encode("utf-8", "replace")
    coarse, fine = b"." + data.translate(_COARSE), data.translate(_FINE)
    thousandths = _BYTE * len(data)
    thousandths += sum(weight * coarse.count(change) for change, weight in _RUNS)
    thousandths += sum(weight * fine.count(change) for change, weight in _CHANGES)
    if len(data) > len(text):
        thousandths += sum(weight * fine.count(lead) for lead, weight in _LEADS)
    return -(-thousandths // 1000)


def _fine(byte: int) -> str:
    """The class of a byte; the first byte of a character beyond ASCII tells its script."""
    character = chr(byte)
    if byte >= 0x80:  # noqa: PLR2004 - the ranges of UTF-8
        return next((name for first, name in _FIRST_BYTES if byte >= first), "c")
    if character.isalnum():
        return "d" if character.isdigit() else "U" if character.isupper() else "l"
    if character in " \t":
        return "s"
    return "n" if character in "\r\n" else "r" if character in "-=#*~" else "p"


_FIRST_BYTES: Final = (
    (0xF0, "z"),  # emoji, and what is rare
    (0xE3, "y"),  # Chinese, Japanese, Korean
    (0xE2, "e"),  # quotation marks, dashes, arrows, boxes
    (0xC4, "x"),  # other alphabets
)
_FINE: Final = "".join(map(_fine, range(256))).encode()
_COARSE: Final = bytes(ord("a" if c in b"lU" else "1" if c in b"d" else ".") for c in _FINE)

# Thousandths of a token: for each byte, and each time that one class follows another.
_BYTE: Final = 57
_RUNS: Final = ((b".a", 788), (b"1a", 1216), (b".1", 1600), (b"a1", 454))
_CHANGES: Final = (
    (b"U", 82),
    (b"d", 202),
    (b"p", 323),
    (b"r", 107),
    (b"n", 589),
    (b"lU", 785),
    (b"UUl", 2399),
    (b"sp", 773),
)
_LEADS: Final = ((b"e", 763), (b"x", 185), (b"y", 575), (b"z", 2999))
