"""Which calls have their return, as the strictest provider wants it.

After a message with calls come the messages that answer them, and nothing else comes between. Each
call is answered once, and each return answers a call.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from refold.wire.part import Shape
from refold.wire.protocol import Problem


class Turn(NamedTuple):
    """One message, as pairing sees it."""

    at: int
    calls: bool
    """It is the model's, so its calls want answers."""
    shapes: tuple[Shape, ...]
    patient: bool = False
    """Answers may still come after it: the format puts it together with the next message."""


def unpaired(turns: Iterable[Turn]) -> Iterator[Problem]:
    """Calls without their return, and returns without their call."""
    waiting: dict[str | None, int] = {}
    for turn in turns:
        returns = [shape for shape in turn.shapes if shape.kind == "return"]
        if waiting and (turn.calls or not (returns or turn.patient)):
            yield from _unanswered(waiting)
            waiting = {}
        for shape in returns:
            if waiting.pop(shape.call, None) is None:
                yield Problem(turn.at, f"A return for {shape.call!r} has no call before it.")
        if turn.calls:
            yield from _called(turn, waiting)
    yield from _unanswered(waiting)


def repeated(turns: Iterable[Turn]) -> Iterator[Problem]:
    """Calls with the id of an earlier message's call, which only some providers take."""
    seen: dict[str | None, int] = {}
    for turn in turns:
        calls = [shape.call for shape in turn.shapes if turn.calls and shape.kind == "call"]
        for call in calls:
            if seen.setdefault(call, turn.at) != turn.at:
                yield Problem(turn.at, f"An earlier call has the id {call!r} already.")


def _called(turn: Turn, waiting: dict[str | None, int]) -> Iterator[Problem]:
    for shape in turn.shapes:
        if shape.kind == "call":
            if shape.call in waiting:
                yield Problem(turn.at, f"Two calls have the id {shape.call!r}.")
            waiting[shape.call] = turn.at


def _unanswered(waiting: dict[str | None, int]) -> Iterator[Problem]:
    for call, at in waiting.items():
        yield Problem(at, f"The call {call!r} has no return after it.")
