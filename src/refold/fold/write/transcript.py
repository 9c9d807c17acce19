"""What a summarizer is shown: all of the material, as quoted data, in chunks that fit its window.

Every line that somebody else wrote begins with a bar, so nothing in it can pass for a line of ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final, NamedTuple

from refold.fold.material import Material, Passage
from refold.fold.secrets import redact
from refold.fold.summary import clipped, one_line
from refold.fold.write.draft import DraftClaim
from refold.view import Counter
from refold.view.framing import lines_of
from refold.wire import Kind, Shape
from refold.wire.harness import users_words

BAR: Final = "| "
"""What each line begins with that somebody else wrote."""

_MOST: Final[dict[Kind, int]] = {"return": 2_500, "call": 2_000, "thought": 600, "other": 600}
_MOST_ELSE = 8_000  # characters of what the assistant says
_READ_CHARS = 100_000  # of a part, both ends: more is not even looked at
_PROMPT_SHARE = 4  # a user's message is whole up to this part of the room
_LEAST_ROOM = 40  # tokens: where a smaller one is given, a line of each entry is shown all the same
_BOTH_ENDS = 40  # characters: less is too little to be cut in the middle
_NAME = 60
_MEDIA = 40


class Chunk(NamedTuple):
    """As much of the material as one call of the summarizer is shown."""

    number: int
    """From 1."""
    entries: tuple[int, ...]
    """The entries that are shown in it."""
    text: str
    """Quoted data, ready to be put in a prompt."""
    tokens: int


class _Block(NamedTuple):
    """One part, quoted under its heading."""

    seq: int
    text: str
    tokens: int


def chunks(material: Material, counter: Counter, room: int) -> Iterator[Chunk]:
    """All of the material in order, each chunk within `room` tokens; one is made at a time.

    System content is not shown. Long parts are cut in the middle. An entry of many parts may go on
    in the next chunk.
    """
    room = max(room, _LEAST_ROOM)
    number = 1
    for blocks in _packed(_blocks(material, counter, room), room):
        for some, tokens in _fitting(blocks, counter, room):
            entries = tuple(dict.fromkeys(block.seq for block in some))
            yield Chunk(number, entries, _joined(some), tokens)
            number += 1


def _packed(blocks: Iterable[_Block], room: int) -> Iterator[list[_Block]]:
    """Runs of blocks that fit together, as far as the sum of their tokens can tell."""
    run: list[_Block] = []
    tokens = 0
    for block in blocks:
        if run and tokens + block.tokens > room:
            yield run
            run, tokens = [], 0
        run.append(block)
        tokens += block.tokens
    if run:
        yield run


def _fitting(
    blocks: list[_Block], counter: Counter, room: int
) -> Iterator[tuple[list[_Block], int]]:
    """The run, or halves of it: a joined text may count for more than its pieces."""
    tokens = counter.text(_joined(blocks), "prompt")
    if tokens <= room or len(blocks) == 1:
        yield blocks, tokens
        return
    half = len(blocks) // 2
    yield from _fitting(blocks[:half], counter, room)
    yield from _fitting(blocks[half:], counter, room)


def _joined(blocks: Iterable[_Block]) -> str:
    return "\n".join(block.text for block in blocks)


def _blocks(material: Material, counter: Counter, room: int) -> Iterator[_Block]:
    for passage in material.passages:
        if passage.role == "system":
            continue
        shapes = [one for one in passage.shapes if one.kind != "system"]
        if not passage.shapes:
            shapes = [Shape("other", "")]
        for shape in shapes:
            words = users_words(shape.text) if shape.kind == "prompt" else ""
            if words and words != shape.text.strip():  # the rest is an agent's harness's
                yield _block(passage, shape._replace(text=words), counter, room)
            else:
                yield _block(passage, shape, counter, room)


def _block(passage: Passage, shape: Shape, counter: Counter, room: int) -> _Block:
    """The part under its heading, cut until it fits."""
    head = f"[entry {passage.seq}] {_whose(passage, shape)}"
    text = _shortened(redact(clipped(shape.text, _READ_CHARS)), shape.kind, counter, room)
    while True:
        block = f"{head}\n{quoted(text)}" if text else head
        tokens = counter.text(block, "prompt") + 1  # the line's end
        if tokens <= room:
            return _Block(passage.seq, block, tokens)
        if not text:
            break
        text = _cut(text, len(text) * room * 9 // (tokens * 10))
    bare = f"[entry {passage.seq}] {passage.role}"
    return _Block(passage.seq, bare, counter.text(bare, "prompt") + 1)


def _shortened(text: str, kind: Kind, counter: Counter, room: int) -> str:
    if kind != "prompt":
        return clipped(text, _MOST.get(kind, _MOST_ELSE))
    share = room // _PROMPT_SHARE
    text = text.strip()
    while len(text) > share and (tokens := counter.text(text, "prompt")) > share:
        text = _cut(text, len(text) * share * 19 // (tokens * 20))
    return text


def _cut(text: str, room: int) -> str:
    """Less of the text, whatever the room: where there is none for both ends, its beginning."""
    room = min(room, len(text) - 1)
    return clipped(text, room) if room >= _BOTH_ENDS else text[:room]


def _whose(passage: Passage, shape: Shape) -> str:
    """Whose words these are; names come from outside, and stay on the line."""
    name = one_line(redact(shape.tool or ""), _NAME) or "a tool"
    match shape.kind:
        case "prompt":
            users = users_words(shape.text) or shape.media or not shape.text.strip()
            said = "user" if users else "the agent's harness, not the user"
        case "text":
            said = "assistant"
        case "thought":
            said = "assistant, thinking"
        case "call":
            said = f"assistant calls {name}"
        case "return":
            said = f"tool {name} returns"
        case _:
            said = f"{passage.role}, other"
    if passage.delegated:  # its prompts are not the user's
        said = f"delegated work: {'instructions to it' if said == 'user' else said}"
    if shape.media:
        said += f", with {one_line(', '.join(dict.fromkeys(shape.media)), _MEDIA)}"
    return said if shape.text.strip() else f"{said} (empty)"


def quoted(text: str) -> str:
    """The text with a bar before each line, wherever any reader may see a line begin."""
    return "\n".join(f"{BAR}{line}".rstrip() for line in lines_of(text))


def build_prompt(  # noqa: PLR0913 - each is a slot of the prompt
    chunk: Chunk,
    *,
    of: int,
    known: Sequence[DraftClaim] = (),
    focus: str = "",
    words: int = 800,
    structured: bool,
) -> str:
    """What the summarizer is asked: the whole prompt of one call."""
    focus = redact(focus.strip())
    return _prompt("ask").substitute(
        number=chunk.number,
        of=of,
        others="" if of == 1 else "; other calls see the other parts, so speak of this one only",
        transcript=chunk.text,
        known=_prompt("known").substitute(points=_numbered(known)) if known else "",
        focus=_prompt("focus").substitute(text=quoted(focus)) if focus else "",
        words=words,
        form=_prompt("form_structured" if structured else "form_text").template,
    )


def _numbered(known: Sequence[DraftClaim]) -> str:
    return "\n".join(
        f"{BAR}{number}. ({one.subject}) {' '.join(one.text.split())}"
        for number, one in enumerate(known, 1)
    )


@cache
def _prompt(name: str) -> Template:
    return Template((files("refold.fold.write") / "prompts" / f"{name}.md").read_text("utf-8"))


GUARD: Final = _prompt("guard").template
"""The summarizer's instructions: what it is, that everything quoted is data, and how it writes."""
