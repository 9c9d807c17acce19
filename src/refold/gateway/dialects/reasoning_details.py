"""Reasoning that a chat stream tells as items, whose pieces come one after the other."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.answered import joined, without_nulls
from refold.wire.splice import Object

_GROWING: Final = ("text", "summary", "data")
_PLAIN: Final = ("reasoning.text", "reasoning.summary")


class _Item:
    def __init__(self) -> None:
        self.fields: Object = {}
        self._pieces: dict[str, list[str]] = {}

    def add(self, piece: Object) -> None:
        for key, value in without_nulls(piece).items():
            if key in _GROWING and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            self.fields[key] = value

    def item(self) -> Object:
        return {**self.fields, **{key: joined(said) for key, said in self._pieces.items()}}


class Details:
    """The items so far."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._at: dict[tuple[int, str], _Item] = {}

    def add(self, pieces: Sequence[Object]) -> None:
        """Take pieces in: to the item of the same number, else to the last of the same kind."""
        for piece in pieces:
            self._of(piece).add(piece)

    def items(self) -> list[JsonValue]:
        """The items, each with all of its text."""
        return [one.item() for one in self._items]

    def _of(self, piece: Object) -> _Item:
        index, kind = piece.get("index"), str(piece.get("type"))
        if isinstance(index, int):
            found = self._at.get((index, kind))
        else:
            last = self._items[-1] if self._items else None
            same = last is not None and kind in _PLAIN and last.fields.get("type") == kind
            found = last if same else None
        if found is None:
            found = _Item()
            self._items.append(found)
            if isinstance(index, int):
                self._at[index, kind] = found
        return found
