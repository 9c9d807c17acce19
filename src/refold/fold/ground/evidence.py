"""What the material says, indexed for the words of a summary that is checked against it.

Only the words that the summary uses are indexed, so the index stays small however long the material
is, and is made in one pass. A window is what is looked at together: a sentence of the user, or a
few lines of anything else.
"""

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from pydantic_core import from_json

from refold.fold.extractive import ERRORS, RESULTS, strings
from refold.fold.ground.disguise import folded
from refold.fold.ground.words import GROUPS, STOP, in_other_ways, sentences, stem
from refold.fold.material import Earlier, Material, Passage
from refold.log import PartRef
from refold.log.text import words
from refold.wire import Shape

# How something came out: what a claim says of it, and what the material says near its names.

Outcome = Literal["good", "bad"]

_NOT = (
    r"(?:not|no|never|without|\w+n't|cannot|can't|0|zero|nicht|kein\w*|ne|pas|sans|sin|nao|sem|non"
    r"|geen"
    r"|niet)"
)
_GOOD = re.compile(
    r"\b(?:pass(?:ed|es|ing)?|succe(?:ed|eds|eded|eding|ss|sses|ssful|ssfully)|fixed|fixes"
    r"|works?|worked|working"
    r"|green|resolved|solved|completed|compiles?|compiled|exists?|existed|found|available"
    r"|healthy|ok|okay"
    r"|exit(?:ed)? (?:with )?(?:code|status) 0|0 (?:errors?|failures?|failed)|no (?:errors?"
    r"|failures?)"
    r"|applied|merged|deployed|installed|builds|built|works?|repaired|recovered|bestanden"
    r"|erfolgreich|behoben)\b"
    r"|✅|✓|✔"
)
_BAD = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|exception|traceback|fatal|panic(?:ked)?|crash(?:ed"
    r"|es)?|broken|breaks"
    r"|broke|missing|not found|no such file|does(?:n't| not) exist|do(?:n't| not) exist"
    r"|did(?:n't| not) (?:work|pass)"
    r"|exit(?:ed)? (?:with )?(?:code|status) [1-9]\d*|command not found|permission denied|denied"
    r"|refused|timed out"
    r"|timeout|red|rejected|unresolved|unavailable|unhealthy|aborted|undefined|cannot|could not"
    r"|couldn't|unable"
    r"|fehlgeschlagen|fehler|gescheitert)\b|\w+(?:error|exception)\b|❌|✗|✘"
)
_PRESENT = re.compile(
    r"\b(?:still|now|currently|again|remains?|at present|no longer|noch|immer noch|toujours"
    r"|todavia|aun"
    r"|ainda|ancora|nog)\b"
)
_NOT_BEFORE = re.compile(rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}$")
_HARMLESS = re.compile(
    r"\b(?:0|no|zero|without(?: any)?)\s+(?:\w+\s+)?(?:errors?|failures?|failed|failing|issues)\b"
    r"|\berror (?:handling|message|code|type|class|path|case|log)s?\b|\bif\b[^.]*\bfails?\b"
)


def outcomes(text: str) -> frozenset[Outcome]:
    """The ways in which a text says that something came out."""
    text = folded(text).replace("’", "'")  # noqa: RUF001 - an apostrophe
    harmless = bool(_HARMLESS.search(text))
    text = _HARMLESS.sub(" ", text)
    bad = [(match, "bad") for match in _BAD.finditer(text)]
    taken = [match.span() for match, _ in bad]
    good = [
        (match, "good")
        for match in _GOOD.finditer(text)
        if not any(start < match.end() and match.start() < end for start, end in taken)
    ]
    found: set[Outcome] = {"good"} if harmless else set()
    for match, sort in (*bad, *good):
        turned = bool(_NOT_BEFORE.search(text[max(0, match.start() - 40) : match.start()]))
        found.add("good" if (sort == "good") != turned else "bad")
    return frozenset(found)


def refuted(claim: str, material: Sequence[str]) -> bool:
    """Whether a claim says one thing, and all that the material says of it is the other.

    Of what a claim says of the present, only the newest counts. The material is oldest first.
    """
    said = outcomes(claim)
    told = [one for one in map(outcomes, material) if one]
    if _PRESENT.search(folded(claim)):
        told = told[-1:]
    every = frozenset[Outcome]().union(*told)
    return len(said) == 1 and len(every) == 1 and every != said


def unheard(claim: str, material: Sequence[str]) -> bool:
    """Whether a claim says that something went wrong, and the material nowhere near says so."""
    return outcomes(claim) == frozenset[Outcome]({"bad"}) and not any(
        "bad" in outcomes(one) for one in material
    )


# A text cut into what is looked at together: a sentence of the user, a few lines of others.

_WINDOW = 480
_LONGEST_WORD = 200


def cut(text: str) -> Iterator[str]:
    """The text in windows, between lines where that can be."""
    at = 0
    while at < len(text):
        end = at + _WINDOW
        if end < len(text):
            line, space = text.rfind("\n", at + 1, end), text.rfind(" ", at + 1, end)
            if max(line, space) > at:
                end = (line if line > at else space) + 1
            else:
                gap = re.compile(r"\W").search(text, end, end + _LONGEST_WORD)
                end = gap.end() if gap else end
        yield text[at:end]
        at = end


def sentence_windows(text: str) -> Iterator[tuple[str, str]]:
    """What the user said, sentence by sentence, with the line that a list stands under."""
    lead = ""
    for line in text.splitlines():
        bare = " ".join(line.split())
        listed = re.match(r"[-*+•]\s|\d+[.)]\s|\[", bare)
        if not bare:
            continue
        if not listed and not line.startswith((" ", "\t")):
            lead = ""
        for sentence in sentences(bare):
            for window in cut(sentence.strip()):
                yield window, lead
        if bare.endswith(":") and not listed:
            lead = bare


Voice = Literal["user", "model", "tool", "earlier"]
"""Whose words they are: an earlier fold's own are nobody's."""
VOICES: Final[tuple[Voice, ...]] = ("user", "model", "tool", "earlier")

QUOTE = re.compile(r'^The user \(entry (\d+)\): "(.*)"$', re.DOTALL)
"""How the user's words stand in a checked summary."""
_COMMON = 2_000
_RANKED = 48
_OF_TOOLS = (ERRORS, RESULTS)
"""What the log's own summary quotes from what tools returned."""


class Piece(NamedTuple):
    """One part of the material."""

    ref: PartRef
    voice: Voice
    text: str
    """As it is compared."""


class Window(NamedTuple):
    """A few lines of a piece."""

    piece: int
    voice: Voice
    first: int = 0
    last: int = 0
    """Where it is in the piece: a copy of every window would be a copy of everything."""
    said: str = ""
    """Of the user, as it was said."""
    lead: str = ""
    """The line that the user's list stands under."""


class Evidence:
    """The material, indexed for the words of one summary."""

    def __init__(self, material: Material, claims: Sequence[str]) -> None:
        self.seqs = frozenset(one.seq for one in (*material.passages, *material.earlier))
        self.counts = _counts(material)
        self.pieces: list[Piece] = []
        self.windows: list[Window] = []
        self.held: list[frozenset[str]] = []
        self._at: dict[str, list[int]] = defaultdict(list)
        self._by: dict[tuple[Voice, str], list[int]] = defaultdict(list)
        self._ranked: dict[tuple[Voice, tuple[str, ...]], list[tuple[float, int]]] = {}
        self._entries: dict[int, range] = {}
        self._weights: dict[str, float] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        looked_for = {word for claim in claims for word in (*words(claim), *words(folded(claim)))}
        looked_for |= {word for claim in claims for word in in_other_ways(claim)}
        self._wanted = looked_for | {f"~{stem(one)}" for one in looked_for if one not in STOP}
        for one in material.earlier:
            self._earlier(one)
        for passage in material.passages:
            for nth, shape in enumerate(passage.shapes):
                self._add(passage.ref(nth), _voice(passage, shape), _text(shape))

    def weight(self, key: str) -> float:
        """How much it says that a word is there: the rarer, the more."""
        weight = self._weights.get(key)
        if weight is None:
            weight = math.log(1 + len(self.windows) / (2 + len(self._at.get(key, ()))))
            self._weights[key] = weight
        return weight

    def has_key(self, key: str) -> bool:
        """Whether a stem occurs at all."""
        return key in self._at

    def share(self, keys: Collection[str], held: Collection[str]) -> float:
        """How much of the words is there, from 0 to 1."""
        whole = sum(map(self.weight, keys))
        return sum(self.weight(key) for key in keys if key in held) / whole if whole else 0.0

    def best(self, keys: Sequence[str], voices: Collection[Voice], most: int) -> list[int]:
        """The windows that hold the most of the words; of equals the newest first."""
        ranked = (one for voice in voices for one in self._best(tuple(keys), voice))
        return [-at for _, at in heapq.nsmallest(most, ranked)]

    def _best(self, keys: tuple[str, ...], voice: Voice) -> list[tuple[float, int]]:
        """What each window holds, and which it is, negated: the best and newest first."""
        if (voice, keys) not in self._ranked:
            scored = ((-round(held, 6), -at) for at, held in self._sums(keys, voice).items())
            self._ranked[voice, keys] = heapq.nsmallest(_RANKED, scored)
        return self._ranked[voice, keys]

    def _sums(self, keys: tuple[str, ...], voice: Voice) -> dict[int, float]:
        """What windows hold of the words; a common word is only looked for where a rare one is."""
        sums: dict[int, float] = defaultdict(float)
        for key in sorted(keys, key=lambda one: (len(self._by.get((voice, one), ())), one)):
            there, weight = self._by.get((voice, key), ()), self.weight(key)
            if len(there) > _COMMON and sums:
                there = [at for at in sums if key in self.held[at]]
            for at in there[-_COMMON:]:
                sums[at] += weight
        return sums

    def sum(self, keys: Iterable[str], at: int) -> float:
        """The weight of the words that a window holds."""
        held = self.held[at]
        return math.fsum(self.weight(key) for key in keys if key in held)

    def around(self, at: int, reach: int) -> frozenset[str]:
        """The words of a window and of its neighbors in the same voice."""
        voice = self.windows[at].voice
        near = range(max(0, at - reach), min(len(self.windows), at + reach + 1))
        return frozenset[str]().union(
            *(self.held[one] for one in near if self.windows[one].voice == voice)
        )

    def text(self, at: int) -> str:
        """The text of a window: of the user, as it was said; of others, as it is compared."""
        window = self.windows[at]
        return window.said or self.pieces[window.piece].text[window.first : window.last]

    def ref(self, at: int) -> PartRef:
        """The part that a window is of."""
        return self.pieces[self.windows[at].piece].ref

    def of_entry(self, seq: int) -> range:
        """The windows of an entry."""
        return self._entries.get(seq, range(0))

    def holding(self, run: Sequence[str]) -> list[int]:
        """The pieces that hold all of these words, in any order."""
        found: set[int] | None = None
        for word in sorted(set(run), key=lambda one: len(self._at.get(one, ()))):
            there = {self.windows[at].piece for at in self._at.get(word, ())}
            found = there if found is None else found & there
            if not found:
                return []
        return sorted(found or ())

    def _earlier(self, one: Earlier) -> None:
        summary, here = one.summary, PartRef(one.seq, 0)
        for directive in summary.directives:
            self._add(directive.source, "user", directive.text)
        checked = summary.report is not None and not summary.report.only
        claims = ((one.heading, claim) for one in summary.sections for claim in one.claims)
        for heading, claim in claims:
            quote = QUOTE.match(claim.text) if checked else None
            if quote and claim.sources:
                self._add(claim.sources[0], "user", quote.group(2))
            else:
                self._add(here, "tool" if heading in _OF_TOOLS else "earlier", claim.text)
        shown = summary.text if not summary.sections else ""
        for text in (summary.title, summary.words, shown):
            self._add(here, "earlier", text)
        # A name may come from anywhere, also from a page that told the model what to do.
        self._add(here, "tool", "\n".join(name.name for name in summary.ledger))

    def _add(self, ref: PartRef, voice: Voice, text: str) -> None:
        if not text.strip():
            return
        piece, first = Piece(ref, voice, folded(text)), len(self.windows)
        number = len(self.pieces)
        self.pieces.append(piece)
        if voice == "user":
            for sentence, lead in sentence_windows(text):
                self._open(Window(number, voice, said=sentence, lead=lead), sentence)
        else:
            at = 0
            for one in cut(piece.text):
                self._open(Window(number, voice, at, at + len(one)), one)
                at += len(one)
        before = self._entries.get(ref.seq, range(first, first))
        self._entries[ref.seq] = range(before.start, len(self.windows))

    def _open(self, window: Window, text: str) -> None:
        there = {*words(text)}
        if GROUPS.search(text):
            there |= {*words(GROUPS.sub("", text))}
        keys = frozenset(key for word in there for key in self._keys(word))
        for key in keys:
            self._at[key].append(len(self.windows))
            self._by[window.voice, key].append(len(self.windows))
        self.held.append(self._sets.setdefault(keys, keys))
        self.windows.append(window)

    def _keys(self, word: str) -> tuple[str, ...]:
        keys = self._known.get(word)
        if keys is None:
            keys = tuple(key for key in (word, f"~{stem(word)}") if key in self._wanted)
            self._known[word] = keys
        return keys


def _voice(passage: Passage, shape: Shape) -> Voice:
    match shape.kind:
        case "prompt" if passage.role == "user" and not passage.delegated:
            return "user"
        case "prompt" if passage.delegated:
            return "model"  # what a delegation is asked, the model asks
        case "text" | "thought" | "call":
            return "model"
        case _:
            return "tool"


def _text(shape: Shape) -> str:
    if shape.kind != "call":
        return shape.text
    try:
        told = "\n".join(strings(from_json(shape.text)))
    except ValueError:
        told = shape.text
    return f"{shape.tool or ''}\n{told}"


def _counts(material: Material) -> frozenset[int]:
    """What can be counted in the material: its messages, prompts, calls, and calls of each tool."""
    kinds: dict[str, int] = defaultdict(int)
    for passage in material.passages:
        for shape in passage.shapes:
            kinds[shape.kind] += 1
            if shape.kind == "call" and shape.tool:
                kinds[f"call of {shape.tool}"] += 1
    return frozenset({material.messages, *kinds.values()})
