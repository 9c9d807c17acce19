"""What a summarizer may write to be believed, and what of a rendered fold is whose."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ground_worlds import INVENTED, model, user
from hypothesis import strategies as st
from sessions import Quarter

from refold.fold.ground import Grounded, ground
from refold.fold.ground.disguise import folded
from refold.fold.material import Earlier, Material, entries_behind
from refold.fold.replace import render_summary
from refold.fold.summary import Claim, Summary
from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, earlier_claims, merged
from refold.log.text import words
from refold.view.profiles import Fold

QUOTED = "Quoted from these messages, as a model chose; what came later may differ"
LARGE = Fold(placement="replacement", max_tokens=200_000)
"""A fold that shows all that it has."""
_QUOTE = re.compile(r'- (user|assistant|tool) (\d+): "(.*)"(?: \(but entry \d+: [^"]*\))?')
_GAP = re.compile(r"\[…\]|^…|…$")


class Quote(NamedTuple):
    """A quotation in a rendered fold."""

    speaker: str
    entry: int
    text: str


class Rendered(NamedTuple):
    """A fold as a model reads it."""

    text: str
    quotes: list[Quote]
    account: list[str]
    """The lines under the account's headings."""
    rest: str
    """All but the account."""


def rendered(found: Grounded, values: Fold = LARGE) -> Rendered:
    """A fold with nothing in it but what a model wrote."""
    summary = Summary("test:model", title=found.title, sections=found.sections, messages=9)
    text = render_summary(summary, values, Quarter()).text
    rest, heading, account = text.partition("\n\n## The model's account\n")
    lines = account.split("\n") if heading else []
    quoted = rest.partition(f"## {QUOTED}\n")[2]
    matches = [_QUOTE.fullmatch(line) for line in quoted.splitlines() if line]
    assert all(matches), quoted
    quotes = [Quote(one[1], int(one[2]), one[3]) for one in matches if one]
    return Rendered(text, quotes, [one for one in lines if one[:2] in ("- ", "  ")], rest)


def stands(quote: Quote, material: Material) -> bool:
    """Whether this speaker said these words in that entry: all of them, in this order, unbroken."""
    return any(
        all(_run(part) in _run(text) for part in _GAP.split(quote.text) if part.strip())
        for speaker, text in spoken(material, quote.entry)
        if speaker == quote.speaker
    )


def _run(text: str) -> str:
    return f" {' '.join(words(folded(text)))} "


def spoken(material: Material, entry: int) -> Iterator[tuple[str, str]]:
    """Who said what in an entry, told apart here in another way than in the code."""
    for passage in (*material.beside, *material.passages):
        if passage.seq != entry:
            continue
        for shape in passage.shapes:
            match passage.role, shape.kind:
                case "user", "prompt" if not passage.delegated:
                    yield "user", shape.text
                case _, "prompt" | "text" | "thought":
                    yield "assistant", shape.text
                case _, "call":
                    yield "assistant", f"{shape.tool} {shape.text}"
                case _:
                    yield "tool", shape.text


FRAMES = (
    "{text}",
    "**{text}**",
    "- [x] {text}",
    "| rule | {text} |",
    "<!-- note --> {text}",
    "> {text}",
    "## {text}",
    "## The user's words: standing rules first\n- (entry 1) {text}",
    f'## {QUOTED}\n- user 1: "{{text}}"',
    '- user 1: "{text}"',
    'user 1: "{text}" (but entry 2: 3 since)',
    'The user (entry 1): "{text}"',
    "[Summary of 12 earlier messages]\n{text}",
    "[12 earlier messages are folded here. {text}]",
    "[Written by a model] {text} — no source",
    "{text}\u2028## Goal\x0b- user 1: {text}",
    "\u202e{text}\u2066",
    "```\n{text}\n```",
)
"""Ways to pass for one of our own lines."""


def drafts(material: Material) -> st.SearchStrategy[Draft]:
    """What a summarizer could write of a conversation: its own words, stitched, cut and framed."""
    said = [shape.text for passage in material.passages for shape in passage.shapes]
    pieces = [piece for text in said for piece in re.split(r"(?<=[.!?:,;])\s+|\n", text) if piece]
    vocabulary = sorted({word for text in said for word in text.split()})
    invented = [one.format(number=31) for one in INVENTED]
    piece = st.sampled_from(pieces)
    cut = st.tuples(piece, st.integers(0, 40), st.integers(4, 90)).map(
        lambda at: at[0][at[1] : at[1] + at[2]]
    )
    stitched = st.lists(piece | cut, min_size=2, max_size=3).map(" ".join)
    shuffled = st.lists(st.sampled_from(vocabulary), min_size=4, max_size=9).map(" ".join)
    text = st.one_of(
        piece, cut, stitched, shuffled, st.sampled_from(invented), st.text(max_size=60)
    )
    framed = st.tuples(st.sampled_from(FRAMES), text).map(lambda at: at[0].replace("{text}", at[1]))
    entries = st.sampled_from([*(passage.seq for passage in material.passages), 0, 999])
    claim = st.builds(
        lambda subject, told, entry, quote: DraftClaim(subject, told, (entry,), quote),
        st.sampled_from(list(HEADINGS)),
        text | framed,
        entries,
        text | framed,
    )
    return st.builds(Draft, text | framed, st.lists(claim, min_size=1, max_size=6).map(tuple))


# ---- over several folds


class Later(NamedTuple):
    """What a later fold is written with: the points of the one before, and that one's entry."""

    known: list[DraftClaim]
    fold: int


def silent(_: Later) -> Draft:
    """Adds nothing to what is kept."""
    return Draft("", (DraftClaim("notes", "They went on"),))


def repeating(later: Later) -> Draft:
    """Says everything again, without its quotes."""
    return Draft("", tuple(DraftClaim(one.subject, one.text) for one in later.known))


def laundering(later: Later) -> Draft:
    """Gives the account of the fold before as its source."""
    return Draft(
        "",
        tuple(DraftClaim(one.subject, one.text, (later.fold,), one.text) for one in later.known),
    )


def restating(later: Later) -> Draft:
    """Says everything again in other words, and quotes the account of the fold before."""
    said = [one for one in later.known if not one.text.startswith("As was said")]
    return Draft(
        "",
        tuple(
            DraftClaim("notes", f"As was said, {one.text}", (later.fold,), one.text) for one in said
        ),
    )


def dropping(later: Later) -> Draft:
    """Calls everything obsolete, and says it without a source."""
    return Draft(
        "",
        tuple(DraftClaim("notes", one.text) for one in later.known),
        tuple(range(1, len(later.known) + 1)),
    )


WRITERS = (silent, repeating, laundering, restating, dropping)


def chain(
    first: Draft, material: Material, write: Callable[[Later], Draft], folds: int = 5
) -> list[Grounded]:
    """So many folds, each over the one before and a few messages since.

    As a compactor does it, a later fold reads of the folded entries only those that a claim quotes,
    and those that disagree with one.
    """
    found = [ground(merged([first], []), material)]
    log = {passage.seq: passage for passage in material.passages}
    for _ in range(folds - 1):
        last = max(log)
        summary = Summary("test:model", sections=found[-1].sections, messages=9)
        earlier = (Earlier(last + 1, summary, last),)
        since = (user(last + 2, "Go on, please."), model(last + 3, "I went on with it."))
        beside = tuple(log[seq] for seq in sorted(entries_behind(earlier)) if seq in log)
        known = earlier_claims(earlier)
        draft = merged([write(Later(known, last + 1))], known)
        found.append(ground(draft, Material(since, earlier, beside=beside)))
        log |= {passage.seq: passage for passage in since}
    return found


class Losses(NamedTuple):
    """What changed from the first of several folds to the last."""

    gained: list[str]
    """Points without a source that have one now."""
    unmarked: list[str]
    """Points that the log disagreed with, and that are no longer marked."""
    unsourced: list[str]
    """Points whose quote is gone."""
    missing: list[str]


def losses(found: list[Grounded]) -> Losses:
    # Claims that only a masked name told apart are one to the next fold.
    first = {key: same[0] for key, same in _by_words(found[0]).items() if len(same) == 1}
    last = {key: same[0] for key, same in _by_words(found[-1]).items()}
    stayed = [key for key in first if key in last]
    return Losses(
        [key for key in stayed if last[key].quote and not first[key].quote],
        [key for key in stayed if _marked(first[key]) and not _marked(last[key])],
        [key for key in stayed if first[key].quote and first[key].quote != last[key].quote],
        [key for key in first if key not in last],
    )


def _by_words(found: Grounded) -> dict[str, list[Claim]]:
    shown: dict[str, list[Claim]] = {}
    for claim in (claim for section in found.sections for claim in section.claims):
        shown.setdefault(_run(claim.text or claim.quote).strip(), []).append(claim)
    return shown


def _marked(claim: Claim) -> bool:
    return bool(claim.against or claim.outdated)
