"""The ledger: the names that folded messages hold, the most likely to be needed again first.

A name weighs more the more messages hold it, the newer they are, and when people or the model wrote
it rather than a tool. The weights of an earlier fold fade as messages go by, so merging it is the
same as reading its messages again.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic_core import from_json

from refold.fold.identifiers import identifiers, strings
from refold.fold.material import Earlier, Passage
from refold.fold.summary import Name
from refold.view import Counter
from refold.wire import Shape
from refold.wire.harness import users_words

MOST = 1_000
"""How many names a fold keeps; far fewer are shown."""
MAX_NAME = 120
"""Characters of a name. A tool could return a longer one that is a text without spaces."""
_HALF_LIFE = 300  # messages
_FADED = 10 * _HALF_LIFE
_SAID, _RETURNED = 4.0, 1.0


def ledger(passages: Sequence[Passage], earlier: Sequence[Earlier] = ()) -> tuple[Name, ...]:
    """The names of these messages and of earlier folds, the weightiest first."""
    found: dict[str, _Found] = {}
    for one in earlier:
        newer = sum(passage.seq > one.last for passage in passages)
        fade = _fading(newer + _told_since(one.last, earlier))
        for name, weight, last, by_tools in one.summary.ledger:
            _add(found, name, _Found(weight * fade, last, by_tools))
    for newer, passage in enumerate(reversed(passages)):
        if newer >= _FADED and len(found) >= MOST:
            break  # what is older weighs next to nothing, and need not be read
        fade = _fading(newer + _told_since(passage.seq, earlier))
        for name, weight in _weights(passage).items():
            _add(found, name, _Found(weight * fade, passage.seq, weight == _RETURNED))
    names = (
        Name(name, round(one.weight, 4), one.last, one.by_tools) for name, one in found.items()
    )
    return tuple(sorted(names, key=lambda one: (-one.weight, one.name))[:MOST])


def fitting(names: Iterable[Name], counter: Counter, tokens: int, said: str = "") -> list[Name]:
    """As many of the names as fit, without those that are said already."""
    there = {*identifiers(said)}
    chosen: list[Name] = []
    for one in names:
        if one.name in there:
            continue
        tokens -= counter.text(f"{one.name}\n")
        if tokens < 0:
            break
        chosen.append(one)
    return chosen


def _told_since(seq: int, earlier: Iterable[Earlier]) -> int:
    """How many messages after this entry are beneath earlier folds."""
    return sum(one.summary.messages for one in earlier if one.last > seq)


def _fading(messages: int) -> float:
    return 0.5 ** (messages / _HALF_LIFE)


def _weights(passage: Passage) -> dict[str, float]:
    weights: dict[str, float] = {}
    for shape in passage.shapes:
        said = shape.kind in ("prompt", "text", "call", "thought") and not passage.delegated
        weight = _SAID if said else _RETURNED
        names = (name for name in identifiers(_said(shape)) if len(name) <= MAX_NAME)
        for name in names:
            weights[name] = max(weight, weights.get(name, 0))
    return weights


def _said(shape: Shape) -> str:
    """The text of a part; of a call, its arguments' values: their names are the tool's."""
    if shape.kind == "prompt":
        return users_words(shape.text)
    if shape.kind != "call":
        return shape.text
    try:
        return "\n".join(strings(from_json(shape.text), keys=False))
    except ValueError:
        return shape.text


class _Found(NamedTuple):
    """What is known of a name so far."""

    weight: float = 0.0
    last: int = 0
    by_tools: bool = True


def _add(found: dict[str, _Found], name: str, more: _Found) -> None:
    before = found.get(name, _Found())
    found[name] = _Found(
        before.weight + more.weight,
        max(before.last, more.last),
        before.by_tools and more.by_tools,
    )
