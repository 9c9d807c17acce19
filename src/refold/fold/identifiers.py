"""The names in a text, and which of them are most likely to be needed again.

Names are what later messages refer to: paths, identifiers, ids, long numbers. They cost little, so
a fold stores many of them and shows as many as fit.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import sqrt

from pydantic import JsonValue
from pydantic_core import from_json

from refold.fold.material import Earlier, Passage
from refold.fold.summary import Name
from refold.view import Counter
from refold.wire.fingerprint import users_words

Find = Callable[[str], list[str]]
"""Finds the identifiers of a text, each as often as it occurs."""

MAX_NAMES = 2_000
"""How many names a fold stores; far fewer are shown."""
MAX_NAME = 120
"""Characters of a name. A tool could return a longer one that is a text without spaces."""
_MIN_NAME = 4
_HALF_LIFE = 300  # messages
_FADED = 10 * _HALF_LIFE
_SAID_WEIGHT, _RETURNED_WEIGHT, _OPAQUE_WEIGHT = 4.0, 1.0, 0.2

# Which words count as identifiers was chosen so that LR-UIR reproduces the shares that were
# measured earlier for the comparison policies. Use it to compare policies; its absolute value
# depends on this choice.
_IDENTIFIERS = tuple(
    re.compile(kind)
    for kind in (
        # src/app/main.ts, with a lookbehind that keeps long lines from taking forever
        r"(?<![\w.@~-])(?:(?<!/)[\w.@~-]+)?(?:/[\w.@~-]+)*/[\w.@~-]*\w",
        r"(?<![\w/.-])[\w-]+\.(?:[jt]sx?|jsonl?|md|py|sh|txt|html|css|ya?ml|toml)\b",  # main.ts
        r"\b[A-Za-z]*[a-z0-9][A-Z]\w*\b",  # renderFrame, TextEditor
        r"\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b",  # max_tokens
        # SP-20447, RF-60418-K, whole and not in pieces
        r"(?<![A-Z0-9_])(?<![A-Z0-9]-)(?=[A-Z][A-Z-]*\d)[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+(?!\w)",
        r"(?<![A-Z0-9]-)\b\d{4,}\b",  # 2048
        r"\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,}\b",  # HAT045
        r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b",  # 603f272
    )
)


def identifiers(text: str) -> list[str]:
    """Paths, file names, names in camel or snake case, long numbers, codes and hex ids."""
    return [name for kind in _IDENTIFIERS for name in kind.findall(text) if len(name) >= _MIN_NAME]


# What a person could not guess either, and would have to look up. Written down without regard to
# how the lab counts: see `refold.lab.content`.
_WIDER = (
    re.compile(r"(?<![\w-])--[A-Za-z][\w-]*\w"),  # --no-verify
    re.compile(r"(?<![\w.])v?\d+(?:\.\d+)+(?:[-+]\w[\w.]*)?"),  # 1.26.0-rc.1
    re.compile(r"(?<![\w@$.-])[@$]?[A-Za-z_]\w*(?:[.@+#~-]+\w+)+"),  # os.path, step-7, main.go
)
_COMPOUND = re.compile(r"[a-z]+-[a-z]+")
"""A word of prose, mostly: well-known."""
_OPAQUE = re.compile(r"v?\d+(?:\.\d+)*\S*|[0-9a-f]{7,40}|[\w.]+(?:-[\w.]+)+")
"""Numbers, versions, hashes and ids. Results are full of them, and few are ever named again."""

_CLOSING_TAG = re.compile(r"</[\w.-]+>")
"""Of a harness's elements: it looks like a path."""

_RECALL_TOOL = re.compile(
    r"(?:.*[^A-Za-z0-9])?recall_(?:search|read|history|everywhere|read_in)", re.DOTALL
)
"""Refold's own tools, with any prefix that a client gives them."""


def names(text: str) -> list[str]:
    """The identifiers, and flags, versions and words that a sign joins, each as often as it is."""
    wider = (name for kind in _WIDER for name in kind.findall(text))
    found = [x for x in wider if len(x) >= _MIN_NAME and not _COMPOUND.fullmatch(x)]
    return [*identifiers(text), *found]


def strings(value: JsonValue, *, keys: bool = True) -> Iterator[str]:
    """The texts of a JSON value, such as a call's arguments."""
    if isinstance(value, list):
        for item in value:
            yield from strings(item, keys=keys)
    elif isinstance(value, dict):
        for key, item in value.items():
            if keys:
                yield key
            yield from strings(item, keys=keys)
    elif value is not None:
        yield str(value)


def ledger(passages: Sequence[Passage], earlier: Sequence[Earlier] = ()) -> tuple[Name, ...]:
    """The names of these messages and of earlier folds, the most likely to be needed again first.

    A name weighs more the more messages it is in, the newer they are, and if the user or the model
    wrote it rather than a tool. The weights of earlier folds fade as messages go by, so merging a
    fold is the same as reading its messages again.
    """
    found: dict[str, Name] = {}

    def add(name: str, weight: float, last: int, *, by_tools: bool) -> None:
        before = found.get(name)
        if before is not None:
            weight += before.weight
            last = max(last, before.last)
            by_tools = by_tools and before.by_tools
        found[name] = Name(name, weight, last, by_tools)

    def fade(newer: int, seq: int) -> float:
        folded = sum(fold.summary.messages for fold in earlier if fold.last > seq)
        return 0.5 ** ((newer + folded) / _HALF_LIFE)

    for fold in earlier:
        factor = fade(sum(passage.seq > fold.last for passage in passages), fold.last)
        for name, weight, last, by_tools in fold.summary.ledger:
            add(name, weight * factor, last, by_tools=by_tools)
    for newer, passage in enumerate(reversed(passages)):
        if newer >= _FADED and len(found) >= MAX_NAMES:
            break  # older names weigh next to nothing
        factor = fade(newer, passage.seq)
        for name, weight in _weights(passage).items():
            add(name, weight * factor, passage.seq, by_tools=weight < _SAID_WEIGHT)
    rounded = (name._replace(weight=round(name.weight, 4)) for name in found.values())
    return tuple(sorted(rounded, key=lambda name: (-name.weight, name.name))[:MAX_NAMES])


def _weights(passage: Passage) -> dict[str, float]:
    weights: dict[str, float] = {}

    def add(text: str, *, said: bool) -> None:
        own = said and not passage.delegated
        for name in names(text):
            if len(name) <= MAX_NAME and not _RECALL_TOOL.fullmatch(name):
                returned = _OPAQUE_WEIGHT if _OPAQUE.fullmatch(name) else _RETURNED_WEIGHT
                weight = _SAID_WEIGHT if own else returned
                weights[name] = max(weight, weights.get(name, 0))

    for shape in passage.shapes:
        text = shape.text
        match shape.kind:
            case "prompt":
                own = users_words(text)
                add(own, said=True)
                if own != text.strip():  # reminders and files, which a harness put there
                    add(_CLOSING_TAG.sub(" ", text), said=False)
            case "call":
                add(f"{shape.tool}\n{_call_text(text)}", said=True)
            case "text" | "thought":
                add(text, said=True)
            case "other" if shape.fixed:
                pass  # a framework's own record, such as which tools there are
            case _:
                add(text, said=False)
    return weights


def all_names(passages: Iterable[Passage]) -> frozenset[str]:
    """Every name that these messages show."""
    return frozenset(name for passage in passages for name in _weights(passage))


def _call_text(arguments: str) -> str:
    """The values of a call's arguments, with the names of the arguments themselves.

    Those deeper down are left out: a tool chose them, and there may be thousands.
    """
    try:
        value: JsonValue = from_json(arguments)
    except ValueError:
        return arguments
    keys = [*value] if isinstance(value, dict) else []
    return "\n".join((*keys, *strings(value, keys=False)))


def fitting(ledger: Iterable[Name], counter: Counter, tokens: int, text: str = "") -> list[Name]:
    """As many names of the ledger as fit, without those that are in the text already.

    Of two names that are as likely to be needed, the shorter one leaves more room for others.
    """
    present = {*names(text)}
    costs = {name: counter.text(f" {name.name}") for name in ledger if name.name not in present}
    chosen: set[Name] = set()
    for name in sorted(costs, key=lambda name: -name.weight / sqrt(costs[name])):
        if costs[name] <= tokens:
            chosen.add(name)
            tokens -= costs[name]
    return [name for name in costs if name in chosen]
