"""Counters for models: exact where a tokenizer is published and at hand, else estimates."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final, Protocol, cast

from refold.models.families import Encoding, family_of
from refold.view.estimate import Estimate
from refold.view.tokens import PLAIN, Counter, Marks, part_tokens
from refold.wire import Kind, Shape

EXACT_SPREAD: Final = 0.02
"""Texts are counted exactly; how the provider joins them is not published in full."""


class Tokenizer(Protocol):
    """What is needed of a tokenizer."""

    def count(self, text: str) -> int:
        """How many tokens the text has; what looks like a special token is text."""
        ...


@dataclass(frozen=True, slots=True)
class Exact:
    """A counter with the model's own tokenizer."""

    name: str
    tokenizer: Tokenizer
    marks: Marks = PLAIN
    spread: float = EXACT_SPREAD

    def text(self, text: str, kind: Kind = "text") -> int:
        """The tokens of a text; a lone surrogate, which no provider takes, counts as `?`."""
        try:
            counted = self.tokenizer.count(text)
        except UnicodeEncodeError:
            counted = self.tokenizer.count(text.encode("utf-8", "replace").decode())
        return self.marks.weighed(counted, kind)

    def part(self, shape: Shape) -> int:
        """The tokens of a whole part."""
        return part_tokens(self, shape, self.marks)


def counter_for(model: str) -> Counter:
    """The best counter there is for a model, named with or without its provider.

    Without the extra `refold[models]`, every model gets an estimate.
    """
    family = family_of(model)
    found = tokenizer(family.encoding) if family.encoding else None
    if found is not None:
        return Exact(f"{family.encoding} for {family.name}", found, family.marks)
    return Estimate(f"estimate for {family.name}", family.spread, family.marks)


@cache
def tokenizer(encoding: Encoding) -> Tokenizer | None:
    """The tokenizer, if its package is installed. It brings its ranks and needs no network."""
    try:
        package = import_module("rs_bpe.bpe")
    except ImportError:
        return None
    return cast("Tokenizer", getattr(package.openai, f"{encoding}_base")())
