"""What requests cost by one price model: list prices, and a prefix cache of five minutes.

A request is what it is made of, in order: tools, instructions, messages. What a request has in
common with an earlier one of the last five minutes, from its beginning on, is read from the cache;
the rest is new, and written to it. Cache marks themselves are no part of a request. Tokens are
counted as four characters each.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from refold.models.catalog import facts_of

KEPT: Final = 300.0
"""Seconds that a prefix is kept after it was last used."""
_CHARS: Final = 4
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Priced:
    """One request: its tokens and dollars."""

    cached: int
    new: int
    output: int
    dollars: float


def priced(requests: Iterable[tuple[float, dict[str, Any], int]]) -> list[Priced]:
    """What each request cost; a request is its time in seconds, its body, and its output tokens."""
    seen: dict[str, list[tuple[float, list[str]]]] = {}
    result: list[Priced] = []
    for at, body, output in requests:
        model = str(body.get("model"))
        pieces = _pieces(body)
        earlier = [one for when, one in seen.get(model, []) if at - when <= KEPT]
        shared = max((_shared(pieces, one) for one in earlier), default=0)
        cached = sum(len(piece) for piece in pieces[:shared]) // _CHARS
        new = sum(len(piece) for piece in pieces[shared:]) // _CHARS
        seen.setdefault(model, []).append((at, pieces))
        result.append(Priced(cached, new, output, _dollars(model, cached, new, output)))
    return result


def _dollars(model: str, cached: int, new: int, output: int) -> float:
    prices = facts_of(model).prices
    each = prices.input or 0.0
    read = each if prices.cache_read is None else prices.cache_read
    write = each if prices.cache_write is None else prices.cache_write
    return (cached * read + new * write + output * (prices.output or 0.0)) / _MILLION


def _pieces(body: dict[str, Any]) -> list[str]:
    lead = [body.get("tools"), body.get("system") or body.get("instructions")]
    messages = body.get("messages") or body.get("input") or []
    return [json.dumps(_without_marks(one)) for one in (*lead, *messages)]


def _without_marks(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: _without_marks(one) for key, one in value.items() if key != "cache_control"}
    return [_without_marks(one) for one in value] if isinstance(value, list) else value


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
