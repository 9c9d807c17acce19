"""The status line: which model, how full its window is and of what, what it cost, what is folded.

What is not known is shown as unknown, and every figure is of now.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from refold.session import Filled
from refold.view.explanation import Piece, Tone

COMPACTING = "Compacting conversation history"
"""While a fold is under way."""
UNKNOWN = "unknown"

_CELLS = 10
_K = 1_000
_GAP = Piece("  ", "")
_LEAST_SHOWN, _IN_CENTS = 0.001, 0.095
_WORTH_SAYING = 0.005
"""Dollars that are saved: half a cent."""


@dataclass(frozen=True, slots=True)
class Status:
    """What there is to say about a session now."""

    session: str
    model: str
    window: int | None = None
    """None: nobody knows it."""
    assumed: int = 0
    """What is reckoned with where it is unknown."""
    filled: Filled | None = None
    """None: nothing was sent or read yet."""
    exact: bool = False
    """Whether tokens are counted as the model counts them."""
    cost: float | None = None
    """Dollars so far; None: a price is unknown."""
    saved: float | None = None
    """Dollars less than if everything had been sent each time."""
    folding: float | None = None
    """Seconds since the fold began that is under way."""
    doing: str = ""
    """What the turn is at: `thinking`, `read_file`, `waiting for another terminal`."""

    def now(self, *, folding: float | None, doing: str) -> "Status":
        """The same, with what is under way."""
        return replace(self, folding=folding, doing=doing)

    @property
    def share(self) -> float | None:
        """Of the window, how much the next request fills."""
        room = self.window or self.assumed
        return self.filled.total / room if self.filled and room else None


def line(status: Status, width: int) -> list[Piece]:
    """The status in one line of at most so many columns; where it is narrow, less is said."""
    for groups in _shorter_and_shorter(status):
        told = [group for group in groups if group]
        shown = [piece for group in told for piece in (_GAP, *group)][1:]
        if _length(shown) <= width:
            return shown
    return []


def _shorter_and_shorter(status: Status) -> Iterator[list[list[Piece]]]:
    """What there is to say, then less and less of it: what matters least goes first."""
    doing = _doing(status)
    model, share, cost = _model(status), _share(status), _cost(status)
    if status.folding is None:
        for kinds in (4, 2):
            yield [doing, model, share, _made_of(status, kinds), cost]
    yield [doing, model, share, cost]
    yield [doing, model, share]
    yield [doing, share]
    yield [doing or share]


def _doing(status: Status) -> list[Piece]:
    if status.folding is not None:
        return _folding(status.folding)
    return [Piece(status.doing, "strong")] if status.doing else []


def _folding(seconds: float) -> list[Piece]:
    return [
        Piece(f"{COMPACTING} {seconds:.0f} s", "folded"),
        Piece(" (Esc cancels)", "faint"),
    ]


def _model(status: Status) -> list[Piece]:
    return [Piece(status.model, "strong")]


def _share(status: Status) -> list[Piece]:
    filled, share = status.filled, status.share
    window = f"{_tokens(status.window)}" if status.window else UNKNOWN
    if filled is None or share is None:
        return [Piece(f"nothing said yet, window {window}", "faint")]
    about = "" if status.exact else "~"
    said = f" {about}{share:.0%} of {window}"
    if not status.window:
        assumed = _tokens(status.assumed)
        said = f" {about}{_tokens(filled.total)}, window {UNKNOWN} (assuming {assumed})"
    return [*_bar(filled, status.window or status.assumed), Piece(said, "")]


def _bar(filled: Filled, room: int) -> list[Piece]:
    """Ten cells: what the window is filled with, each kind in its colour."""
    kinds: list[tuple[int, Tone]] = [
        (filled.system, "system"),
        (filled.tools, "tools"),
        (filled.folds, "folded"),
        (filled.conversation - filled.folds, "conversation"),
    ]
    pieces: list[Piece] = []
    told = drawn = 0
    for tokens, tone in kinds:
        told += tokens
        upto = min(_CELLS, round(told * _CELLS / room))
        pieces += [Piece("█" * (upto - drawn), tone)] if upto > drawn else []
        drawn = max(drawn, upto)
    if told and not drawn:  # something is there, if little
        pieces, drawn = [Piece("▏", "conversation")], 1
    return [*pieces, Piece("░" * (_CELLS - drawn), "free")]


def _made_of(status: Status, most: int) -> list[Piece]:
    """What the window is filled with: so many kinds, the largest."""
    filled = status.filled
    if filled is None:
        return []
    kinds: tuple[tuple[str, int, Tone], ...] = (
        ("system", filled.system, "system"),
        ("tools", filled.tools, "tools"),
        ("folds", filled.folds, "folded"),
        ("talk", filled.conversation - filled.folds, "conversation"),
    )
    least = sorted((count for _, count, _ in kinds), reverse=True)[most - 1]
    told = [
        Piece(f"{name} {_tokens(count)}", tone)
        for name, count, tone in kinds
        if count and count >= least
    ]
    return [piece for one in told for piece in (Piece(" ", ""), one)][1:]


def _cost(status: Status) -> list[Piece]:
    if status.cost is None:
        return [Piece(f"cost {UNKNOWN}", "faint")]
    said = [Piece(_dollars(status.cost), "")]
    if status.saved is not None and abs(status.saved) >= _WORTH_SAYING:
        less = status.saved > 0
        word, tone = ("saved", "kept") if less else ("more than without", "cut")
        said.append(Piece(f" ({_dollars(abs(status.saved))} {word})", tone))
    return said


def _dollars(amount: float) -> str:
    if 0 < amount < _LEAST_SHOWN:
        return f"<${_LEAST_SHOWN:.3f}"
    return f"${amount:.2f}" if amount >= _IN_CENTS or amount == 0 else f"${amount:.3f}"


def _tokens(count: int) -> str:
    if count < _K:
        return str(count)
    if count < 10 * _K:
        return f"{count / _K:.1f}k"
    return f"{count / _K:.0f}k" if count < _K * _K else f"{count / _K / _K:.3g}M"


def _length(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.text) for piece in pieces)
