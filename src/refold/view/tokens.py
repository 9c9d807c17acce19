"""Counting tokens: what a counter is, and what stands around the text of a part."""

from collections.abc import Iterable
from math import ceil
from typing import Final, NamedTuple, Protocol

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
        """The tokens of this family for as many counted."""
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
    media = sum(_media_tokens(one, marks) for one in shape.media)
    sealed = ceil(shape.opaque / _OPAQUE)
    return counter.text(shape.text, shape.kind) + around + name + media + sealed


def _media_tokens(media_type: str, marks: Marks) -> int:
    """The tokens of something that nobody here looks into; its type says what it is."""
    sort = media_type.partition("/")[0].removesuffix("-url")
    return {"image": marks.image, "audio": SOUND, "video": FILM}.get(sort, DOCUMENT)


def tools_tokens(counter: Counter, definitions: Iterable[str], marks: Marks = PLAIN) -> int:
    """The tokens of tool definitions, each the JSON of its name, description and schema."""
    each = [counter.text(one, "other") + marks.tool for one in definitions]
    return sum(each) + marks.tools if each else 0
