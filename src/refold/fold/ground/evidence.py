"""What was said before a fold, part by part, with who said it.

Only the words that a summary uses are indexed, so the index stays small however long the log is,
and is made in one pass.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from pydantic_core import from_json

from refold.fold.ground.disguise import folded
from refold.fold.ground.names import GROUPS, in_other_ways
from refold.fold.identifiers import strings
from refold.fold.material import Material, Passage
from refold.fold.summary import Summary
from refold.log import PartRef
from refold.log.text import words
from refold.wire import Shape
from refold.wire.fingerprint import users_words

Speaker = Literal["user", "assistant", "tool"]
LEAST_TRUSTED_FIRST: Final[tuple[Speaker, ...]] = ("tool", "assistant", "user")

SENTENCE_END: Final = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)[\"'”»)*`]*\s+|(?<=[。！？；])|\n+"  # noqa: RUF001 - signs of other scripts
)
"""What stands between two sentences, or two lines."""
_MAX_SENTENCE = 600  # characters; a longer one is a pasted text without punctuation
_MAX_PIECES = 400  # the newest ones that are searched for one name


class Piece(NamedTuple):
    """One part of a message."""

    ref: PartRef
    speaker: Speaker
    text: str
    """As it was said."""
    folded: str
    """As it is compared."""
    names_only: bool = False
    """Whether it only says which names occur, and nothing about them."""


class Sentence(NamedTuple):
    """One sentence of a part, or one line of it."""

    piece: Piece
    text: str
    """As it is compared."""


class Evidence:
    """The words of the log, indexed for the words of one summary.

    What an earlier summary claims is not among them: only what it quotes, by its speaker.
    """

    def __init__(self, material: Material, texts: Sequence[str]) -> None:
        self.pieces: list[Piece] = []
        self.seqs = frozenset(
            one.seq for one in (*material.passages, *material.beside, *material.earlier)
        )
        self.counts = _counts(material)
        self._at: dict[str, set[int]] = defaultdict(set)
        self._entries: dict[int, list[int]] = defaultdict(list)
        self._wanted = {
            word for text in texts for word in (*words(folded(text)), *in_other_ways(text))
        }
        self._sentences: dict[int, list[Sentence]] = {}
        for fold in material.earlier:
            for directive in fold.summary.directives:
                self._add(directive.source, "user", directive.text)
            self._add(PartRef(fold.seq, 0), "tool", _names(fold.summary), names_only=True)
        for passage in (*material.beside, *material.passages):
            for index, shape in enumerate(passage.shapes):
                for speaker, text in _spoken(passage, shape):
                    self._add(passage.ref(index), speaker, text)

    def holding(self, run: Iterable[str]) -> list[int]:
        """The parts that have all of these words, in any order, the oldest first."""
        found: set[int] | None = None
        for word in sorted(set(run), key=lambda one: len(self._at.get(one, ()))):
            there = self._at.get(word, set())
            found = there if found is None else found & there
            if not found:
                return []
        return sorted(found or ())

    def of_entry(self, seq: int) -> list[int]:
        """The parts of an entry."""
        return self._entries.get(seq, [])

    def sentences(self, run: Sequence[str]) -> Iterator[Sentence]:
        """The sentences with all of these words, the newest first."""
        for at in self.holding(run)[: -_MAX_PIECES - 1 : -1]:
            if at not in self._sentences:
                piece = self.pieces[at]
                self._sentences[at] = [Sentence(piece, one) for one in split(piece.folded)]
            wanted = set(run)
            if self.pieces[at].names_only:
                continue
            for sentence in reversed(self._sentences[at]):
                if wanted <= {*words(sentence.text)}:
                    yield sentence

    def _add(self, ref: PartRef, speaker: Speaker, text: str, *, names_only: bool = False) -> None:
        if not text.strip():
            return
        piece, at = Piece(ref, speaker, text, folded(text), names_only), len(self.pieces)
        self.pieces.append(piece)
        self._entries[ref.seq].append(at)
        for word in {*words(piece.folded), *words(GROUPS.sub("", piece.folded))} & self._wanted:
            self._at[word].add(at)


def split(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [one[:_MAX_SENTENCE] for one in map(str.strip, SENTENCE_END.split(text)) if one]


def _spoken(passage: Passage, shape: Shape) -> Iterator[tuple[Speaker, str]]:
    """What a part says, by who says it; what a delegate is asked, the assistant asks."""
    match shape.kind:
        case "prompt" if passage.role == "user" and not passage.delegated:
            own = users_words(shape.text)
            yield "user", own
            if own != shape.text.strip():  # what an agent's harness added is not the user's
                yield "tool", shape.text
        case "call":
            try:
                told = "\n\n".join(strings(from_json(shape.text)))
            except ValueError:
                told = shape.text
            yield "assistant", f"{shape.tool or ''}\n\n{told}"
        case "text" | "thought" | "prompt":
            yield "assistant", shape.text
        case _:
            yield "tool", shape.text


def _names(summary: Summary) -> str:
    """The names of an earlier fold: of its ledger, and of its points, which were looked up then."""
    told = (claim.text for section in summary.sections for claim in section.claims)
    return "\n".join((*(name.name for name in summary.ledger), *told))


def _counts(material: Material) -> frozenset[int]:
    """What can be counted in it: its messages, prompts, calls, and the calls of each tool."""
    kinds: dict[str, int] = defaultdict(int)
    for passage in material.passages:
        for shape in passage.shapes:
            kinds[shape.kind] += 1
            if shape.kind == "call" and shape.tool:
                kinds[f"call of {shape.tool}"] += 1
    return frozenset({material.messages, *kinds.values()})
