"""What a summarizer is shown: all of the material, as quoted data, in chunks that fit its window.

Every quoted line starts with a bar, so that nothing in it can pass for a line of the prompt.
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
from refold.wire.fingerprint import users_words

BAR: Final = "| "
"""The start of every quoted line."""

_MAX_CHARS: Final[dict[Kind, int]] = {"call": 2_000, "thought": 600, "other": 600}
_MAX_TEXT = 8_000  # characters of what the assistant says
_MAX_READ = 100_000  # characters of a part, from both ends
_PROMPT_SHARE = 4  # a user's message is whole up to this fraction of the room
_MIN_ROOM = 40  # tokens; with less, a line of each entry is shown all the same
_MIN_CLIP = 40  # characters; less is too little to be cut in the middle
_MAX_NAME = 60
_MAX_MEDIA = 40
_OTHERS = "; other calls see the other parts, so speak of this one only"


class Chunk(NamedTuple):
    """The material of one call to the summarizer."""

    number: int
    """From 1."""
    entries: tuple[int, ...]
    text: str
    """Quoted data for a prompt."""
    tokens: int


class _Block(NamedTuple):
    seq: int
    text: str
    tokens: int


def chunks(material: Material, counter: Counter, room: int) -> Iterator[Chunk]:
    """All of the material in order, each chunk within `room` tokens, made one at a time.

    System content is not shown. Long parts are cut in the middle. An entry of many parts may
    continue in the next chunk.
    """
    room = max(room, _MIN_ROOM)
    number = 1
    for run in _pack(_blocks(material, counter, room), room):
        for blocks, tokens in _split(run, counter, room):
            entries = tuple(dict.fromkeys(block.seq for block in blocks))
            yield Chunk(number, entries, _join(blocks), tokens)
            number += 1


def _pack(blocks: Iterable[_Block], room: int) -> Iterator[list[_Block]]:
    """Runs of blocks that fit together by the sum of their tokens."""
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


def _split(blocks: list[_Block], counter: Counter, room: int) -> Iterator[tuple[list[_Block], int]]:
    """The run, or halves of it: a joined text may have more tokens than its pieces."""
    tokens = counter.text(_join(blocks), "prompt")
    if tokens <= room or len(blocks) == 1:
        yield blocks, tokens
        return
    half = len(blocks) // 2
    yield from _split(blocks[:half], counter, room)
    yield from _split(blocks[half:], counter, room)


def _join(blocks: Iterable[_Block]) -> str:
    return "\n".join(block.text for block in blocks)


def _blocks(material: Material, counter: Counter, room: int) -> Iterator[_Block]:
    for passage in material.passages:
        if passage.role == "system":
            continue
        for shape in passage.shapes or (Shape("other", ""),):
            if shape.kind == "system":
                continue
            # Without what an agent's harness added to the user's message.
            words = users_words(shape.text) if shape.kind == "prompt" else ""
            if words and words != shape.text.strip():
                shape = shape._replace(text=words)  # noqa: PLW2901 - what is shown of it
            yield _block(passage, shape, counter, room, material.result_chars)


def _block(
    passage: Passage, shape: Shape, counter: Counter, room: int, result_chars: int
) -> _Block:
    """The part under its heading, cut until it fits."""
    head = f"[entry {passage.seq}] {_speaker(passage, shape)}"
    text = redact(clipped(shape.text, _MAX_READ))
    if shape.kind == "return":
        text = clipped(text, result_chars)
    else:
        text = _shorten(text, shape.kind, counter, room)
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


def _shorten(text: str, kind: Kind, counter: Counter, room: int) -> str:
    if kind != "prompt":
        return clipped(text, _MAX_CHARS.get(kind, _MAX_TEXT))
    share = room // _PROMPT_SHARE
    text = text.strip()
    while len(text) > share and (tokens := counter.text(text, "prompt")) > share:
        text = _cut(text, len(text) * share * 19 // (tokens * 20))
    return text


def _cut(text: str, room: int) -> str:
    """Shorten the text by at least a character: to both ends, or to its start."""
    room = min(room, len(text) - 1)
    return clipped(text, room) if room >= _MIN_CLIP else text[:room]


def _speaker(passage: Passage, shape: Shape) -> str:
    # Names of tools and media come from outside: they must not start a new line.
    name = one_line(redact(shape.tool or ""), _MAX_NAME) or "a tool"
    match shape.kind:
        case "prompt":
            users = users_words(shape.text) or shape.media or not shape.text.strip()
            speaker = "user" if users else "the agent's harness, not the user"
        case "text":
            speaker = "assistant"
        case "thought":
            speaker = "assistant, thinking"
        case "call":
            speaker = f"assistant calls {name}"
        case "return":
            speaker = f"tool {name} returns"
        case _:
            speaker = f"{passage.role}, other"
    if passage.delegated:  # its prompts are not the user's
        speaker = f"delegated work: {'instructions to it' if speaker == 'user' else speaker}"
    if shape.media:
        speaker += f", with {one_line(', '.join(dict.fromkeys(shape.media)), _MAX_MEDIA)}"
    return speaker if shape.text.strip() else f"{speaker} (empty)"


def quoted(text: str) -> str:
    """Put a bar before each line, wherever a reader may see a line start."""
    return "\n".join(f"{BAR}{line}".rstrip() for line in lines_of(text))


def build_prompt(  # noqa: PLR0913 - each is a slot of the prompt
    chunk: Chunk,
    *,
    of: int,
    known: Sequence[DraftClaim] = (),
    earlier: str | None = None,
    focus: str = "",
    system: str = "",
    words: int = 800,
    structured: bool,
) -> str:
    """The prompt of one call to the summarizer.

    It adds to the points that are `known`, or rewrites the `earlier` summary.
    """
    return _prompt("ask").substitute(
        number=chunk.number,
        of=of,
        others=_OTHERS if of > 1 and earlier is None else "",
        system=_prompt("system").substitute(text=quoted(redact(system))) if system else "",
        transcript=chunk.text,
        known=_known(known) or _earlier(earlier or ""),
        focus=_focus(focus),
        words=words,
        form=_prompt("form_structured" if structured else "form_text").template,
    )


def warm_prompt(known: Sequence[DraftClaim], focus: str, words: int) -> str:
    """The prompt to the session's own model, below the conversation that it sees anyway."""
    return _prompt("warm").substitute(known=_known(known), focus=_focus(focus), words=words)


def conversation_prompt(focus: str = "") -> str:
    """The prompt to a summarizer that reads the messages as a conversation of its own."""
    return CONVERSATION + _focus(focus)


def _known(claims: Sequence[DraftClaim]) -> str:
    points = "\n".join(
        f"{BAR}{number}. ({claim.subject}) {' '.join((claim.text or claim.quote).split())}"
        for number, claim in enumerate(claims, 1)
    )
    return _prompt("known").substitute(points=points) if claims else ""


def _earlier(text: str) -> str:
    return _prompt("earlier").substitute(text=quoted(redact(text))) if text else ""


def _focus(text: str) -> str:
    text = redact(text.strip())
    return _prompt("focus").substitute(text=quoted(text)) if text else ""


@cache
def _prompt(name: str) -> Template:
    return Template((files("refold.fold.write") / "prompts" / f"{name}.md").read_text("utf-8"))


CONVERSATION: Final = _prompt("conversation").template.strip()
"""The summarizer's prompt after a conversation."""
CONVERSATION_GUARD: Final = _prompt("conversation_guard").template.strip()
"""Its instructions there; a system prompt would not be sent along with a history."""
GUARD: Final = _prompt("guard").template
"""The summarizer's instructions: what it is, that quotes are data, and how to write."""
