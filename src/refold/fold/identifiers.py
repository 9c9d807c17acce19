"""Identifiers: the words of a session that cannot be guessed, only remembered.

Which words count was chosen, out of many ways to say it, so that LR-UIR gives the shares that were
measured for the comparison policies before the lab was there. Use it to compare policies; its
absolute value depends on this choice.
"""

import re
from collections.abc import Callable, Iterator

from pydantic import JsonValue

Find = Callable[[str], list[str]]
"""The identifiers of a text, each as often as it occurs."""

_KINDS = tuple(
    re.compile(kind)
    for kind in (
        # src/app/main.ts: looked for where one can begin, or a long line would take forever
        r"(?<![\w.@~-])(?:(?<!/)[\w.@~-]+)?(?:/[\w.@~-]+)*/[\w.@~-]*\w",
        r"(?<![\w/.-])[\w-]+\.(?:[jt]sx?|jsonl?|md|py|sh|txt|html|css|ya?ml|toml)\b",  # main.ts
        r"\b[A-Za-z]*[a-z0-9][A-Z]\w*\b",  # renderFrame, TextEditor
        r"\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b",  # max_tokens
        r"\b\d{4,}\b",  # 2048
        r"\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,}\b",  # HAT045
        r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b",  # 603f272
    )
)
_SHORTEST = 4


def identifiers(text: str) -> list[str]:
    """Paths, file names, names in camel or snake case, long numbers, codes and hex ids."""
    return [found for kind in _KINDS for found in kind.findall(text) if len(found) >= _SHORTEST]


def strings(value: JsonValue, *, keys: bool = True) -> Iterator[str]:
    """The texts of a JSON value: where to look for names in a call's arguments."""
    if isinstance(value, list):
        for one in value:
            yield from strings(one, keys=keys)
    elif isinstance(value, dict):
        for key, one in value.items():
            if keys:
                yield key
            yield from strings(one, keys=keys)
    elif value is not None:
        yield str(value)
