"""Calls of tools in a chat stream, whose pieces come one after the other."""

from collections.abc import Sequence

from pydantic import JsonValue

from refold.gateway.dialects.answered import joined, without_nulls
from refold.wire.splice import Object, is_object, written


class Call:
    """One call, as far as it came."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.id = ""
        self._name = ""
        self._custom = False
        self._pieces: list[str] = []
        self._inner: Object = {}
        self._outer: Object = {}

    @property
    def named(self) -> bool:
        """Whether it says which tool is called."""
        return bool(self._name)

    def add(self, piece: Object) -> None:
        """Take a piece of it in."""
        for key, value in piece.items():
            if value is None or key == "index":
                continue
            if key == "function" and isinstance(value, dict):
                self.add_function(value)
            elif key == "custom" and isinstance(value, dict):
                self._custom = True
                self.add_function(value)
            elif key == "id":
                self.id = str(value) or self.id
            else:
                self._outer[key] = value

    def add_function(self, piece: Object) -> None:
        """Take a piece of its function in: the name once, the arguments bit by bit."""
        for key, value in piece.items():
            if value is None:
                continue
            if key == ("input" if self._custom else "arguments"):
                self._pieces.append(value if isinstance(value, str) else written(value))
            elif key == "name" and isinstance(value, str):
                self._name += value if value != self._name else ""
            else:
                self._inner[key] = value

    def whole(self) -> bool:
        """Whether nothing more of its arguments can come."""
        return not self._custom and is_object(joined(self._pieces))

    def function(self) -> Object:
        """What is called, with what."""
        said = "input" if self._custom else "arguments"
        return {"name": self._name, said: joined(self._pieces), **self._inner}

    def item(self) -> Object:
        """The call, as a message has it."""
        kind = "custom" if self._custom else "function"
        named: Object = {"id": self.id} if self.id else {}
        outer = without_nulls(self._outer)
        return {**named, "type": kind, **outer, kind: self.function()}


class Calls:
    """The calls of one message."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._at: dict[int, Call] = {}

    def add(self, pieces: Sequence[Object]) -> None:
        """Take pieces in, each for the call that it belongs to."""
        for piece in pieces:
            index = piece.get("index")
            call = self._of(piece, index if type(index) is int else None)
            call.add(piece)

    def items(self, *, complete: bool) -> list[JsonValue]:
        """The calls in their order; of a message that was cut off, those that are whole."""
        calls = sorted(self._calls, key=lambda call: call.at)
        return [call.item() for call in calls if complete or call.whole()]

    def _of(self, piece: Object, index: int | None) -> Call:
        said = piece.get("id")
        if index is None:
            return self._unnumbered(piece, said)
        call = self._at.get(index)
        # With another id and a name, another call begins, whatever its number.
        if call is None or (said and call.id and said != call.id and _name(piece)):
            return self._begun(index)
        return call

    def _unnumbered(self, piece: Object, said: JsonValue) -> Call:
        last = self._calls[-1] if self._calls else None
        if said:
            known = [call for call in self._calls if call.id == said]
            return known[0] if known else self._begun(None)
        if last is None or (_name(piece) and last.named):
            return self._begun(None)
        return last

    def _begun(self, index: int | None) -> Call:
        call = Call(len(self._calls) if index is None else index)
        self._calls.append(call)
        if index is not None:
            self._at[index] = call
        return call


def _name(piece: Object) -> JsonValue:
    match piece:
        case {"function": {"name": str() as name}} | {"custom": {"name": str() as name}}:
            return name
        case _:
            return None
