"""The status line: which model, how full its window is and of what, what it cost, what is folded.

An unknown figure is shown as unknown, and every figure is current.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refold.terminal_text import Piece, Tone, clipped, first_words

if TYPE_CHECKING:  # a terminal is there before it is imported
    from refold.session import Filled

GETTING_READY = "Getting ready"
COMPACTING = "Compacting conversation history"
UNKNOWN = "unknown"

_CELLS = 10
_K = 1_000
_MIN_SHOWN, _IN_CENTS = 0.001, 0.095
_MIN_SAVED = 0.005  # dollars worth mentioning
_SHORT_MODEL = 24  # columns
_MAX_DOING = 30
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Status:
    session: str
    model: str
    window: int | None = None  # None: unknown
    assumed: int = 0  # the window that is assumed where it is unknown
    filled: "Filled | None" = None  # None: nothing was sent or read yet
    exact: bool = False  # whether tokens are counted as the model counts them
    cost: float | None = None  # dollars so far; None: a price is unknown
    saved: float | None = None  # dollars less than if everything had been sent each time
    folding: float | None = None  # seconds spent waiting for the running fold
    doing: str = ""  # `thinking`, `writing`, `read_file`, `waiting for another terminal`
    seconds: float | None = None  # of the running turn
    tokens: int = 0  # that the model has written in it, about

    @property
    def share(self) -> float | None:
        room = self.window or self.assumed
        return self.filled.total / room if self.filled and room else None


def line(status: Status, width: int) -> list[Piece]:
    """The status in one line of at most `width` columns; the least important parts go first."""
    for groups in _shorter_and_shorter(status):
        shown = [piece for group in groups if group for piece in (Piece("  ", ""), *group)][1:]
        if sum(len(piece.text) for piece in shown) <= width:
            return shown
    return []


def _shorter_and_shorter(status: Status) -> Iterator[list[list[Piece]]]:
    """Names go before figures: what fills the window and what it costs is shown as long as it fits.

    While a turn runs, its progress comes first.
    """
    model, cost = [Piece(status.model, "strong")], _cost(status)
    short_model = [Piece(clipped(status.model.partition(":")[2], _SHORT_MODEL), "strong")]
    share, short_share = _share(status), _share(status, short=True)
    progress = [*_progress(status)]
    for doing in progress[:1]:
        if status.folding is None:
            for kinds in (4, 2):
                yield [doing, model, share, _largest_kinds(status, kinds), cost]
        yield [doing, model, share, cost]
        yield [doing, model, short_share, cost]
        yield [doing, short_model, short_share, cost]
        yield [doing, share, cost]
        yield [doing, short_share, cost]
    for doing in progress:
        yield [doing, short_share]
        if doing:
            yield [doing, _percent(status)]
    yield from ([doing] for doing in progress if doing)
    yield [short_share]


def _progress(status: Status) -> Iterator[list[Piece]]:
    """What goes on, in fewer and fewer words; one empty list where nothing does."""
    if status.folding is not None:
        compacting = Piece(f"{COMPACTING} {status.folding:.0f} s", "folded")
        yield [compacting, Piece(" (Esc cancels)", "faint")]
        yield [compacting]
    elif status.doing and status.seconds is not None:
        doing = Piece(first_words(status.doing, _MAX_DOING), "strong")
        seconds = Piece(f" {_lasted(status.seconds)}", "")
        written = f" · {_tokens(status.tokens)} {'token' if status.tokens == 1 else 'tokens'}"
        tokens = Piece(written if status.tokens else "", "faint")
        yield [doing, seconds, tokens, Piece(" · esc to interrupt", "faint")]
        yield [doing, seconds, Piece(" · esc to interrupt", "faint")]
        yield [doing, seconds]
        yield [doing]
    else:
        yield [Piece(status.doing, "strong")] if status.doing else []


def _lasted(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), _MINUTE)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _share(status: Status, *, short: bool = False) -> list[Piece]:
    filled, share = status.filled, status.share
    window = _tokens(status.window) if status.window else UNKNOWN
    if filled is None or share is None:
        return [Piece(f"nothing said yet, window {window}", "faint")]
    about = "" if status.exact else "~"
    text = f" {about}{share:.0%} of {window}"
    if not status.window:
        assumed = _tokens(status.assumed)
        text = f" {about}{_tokens(filled.total)}, window {UNKNOWN} (assuming {assumed})"
        if short:
            text = f" {about}{share:.0%} of {assumed} (assumed)"
    return [*_bar(filled, status.window or status.assumed), Piece(text, "")]


def _percent(status: Status) -> list[Piece]:
    filled, share = status.filled, status.share
    if filled is None or share is None:
        return []
    about = "" if status.exact else "~"
    return [*_bar(filled, status.window or status.assumed), Piece(f" {about}{share:.0%}", "")]


def _kinds(filled: "Filled") -> tuple[tuple[str, int, Tone], ...]:
    return (
        ("system", filled.system, "system"),
        ("tools", filled.tools, "tools"),
        ("folds", filled.folds, "folded"),
        ("talk", filled.conversation - filled.folds, "conversation"),
    )


def _bar(filled: "Filled", room: int) -> list[Piece]:
    """Ten cells, each kind of content in its color."""
    pieces: list[Piece] = []
    total = drawn = 0
    for _, tokens, tone in _kinds(filled):
        total += tokens
        end = min(_CELLS, round(total * _CELLS / room))
        pieces += [Piece("█" * (end - drawn), tone)] if end > drawn else []
        drawn = max(drawn, end)
    if total and not drawn:  # less than a cell
        pieces, drawn = [Piece("▏", "conversation")], 1
    return [*pieces, Piece("░" * (_CELLS - drawn), "free")]


def _largest_kinds(status: Status, max_kinds: int) -> list[Piece]:
    if status.filled is None:
        return []
    kinds = _kinds(status.filled)
    threshold = sorted((count for _, count, _ in kinds), reverse=True)[max_kinds - 1]
    shown = [
        Piece(f"{name} {_tokens(count)}", tone)
        for name, count, tone in kinds
        if count and count >= threshold
    ]
    return [piece for kind in shown for piece in (Piece(" ", ""), kind)][1:]


def _cost(status: Status) -> list[Piece]:
    if status.cost is None:
        return [Piece(f"cost {UNKNOWN}", "faint")]
    pieces = [Piece(_dollars(status.cost), "")]
    if status.saved is not None and abs(status.saved) >= _MIN_SAVED:
        word, tone = ("saved", "kept") if status.saved > 0 else ("more than without", "cut")
        pieces.append(Piece(f" ({_dollars(abs(status.saved))} {word})", tone))
    return pieces


def _dollars(amount: float) -> str:
    if 0 < amount < _MIN_SHOWN:
        return f"<${_MIN_SHOWN:.3f}"
    return f"${amount:.2f}" if amount >= _IN_CENTS or amount == 0 else f"${amount:.3f}"


def _tokens(count: int) -> str:
    if count < _K:
        return str(count)
    if count < 10 * _K:
        return f"{count / _K:.1f}k"
    return f"{count / _K:.0f}k" if count < _K * _K else f"{count / _K / _K:.3g}M"
