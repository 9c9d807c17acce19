"""Fixed limits on messages, turns and tokens, for when nothing summarises.

Each is a rule of its own, off when its value is 0. Cuts fall between steps, so that no call loses
its result, and the latest prompt always stays. Limits on what came before leave the current turn
alone, however long it is.
"""

from collections.abc import Iterable, Iterator

from refold.log import PartRef
from refold.view.board import Board, Proposal, Withdraw
from refold.view.cut import cut
from refold.view.policy_values import Keep, Window
from refold.view.responses import with_row
from refold.view.row import Row
from refold.view.sheet import Sheet
from refold.wire import Drop, Insert, Part


def window(board: Board, values: Window, marker: str) -> Iterator[Proposal]:
    """Propose what the limits take out, beyond what they took out before."""
    if values.max_messages:
        yield from middle(board, values.max_messages, marker)
    if values.max_turns or values.max_tokens:
        yield from turns(board, values)
    if values.rolling:
        yield from recent(board, values)


def middle(board: Board, limit: int, marker: str) -> Iterator[Proposal]:
    """Over the limit, keep the first run and the newest messages, with a marker between."""
    sheet = board.sheet
    rows = sheet.rows
    gone = [at for at, row in enumerate(rows) if board.lost(row, "window")]
    kept = sum(1 for _ in board.shown_rows()) + bool(gone)
    if kept > limit:
        where = cut(sheet, Keep(head="first run", unit="messages", amount=limit // 2, least=4))
        yield from _dropped(board, (rows[at] for at in where.rows))
        if where.rows:
            yield from _untold(board, where.tail)
        gone = [at for at, row in enumerate(rows) if board.lost(row, "window")]
    if gone:
        text = marker.replace("{count}", str(len(gone)))
        yield Insert(rows[gone[0]].seq, "prompt", text, "window")


def turns(board: Board, values: Window) -> Iterator[Proposal]:
    """Too many turns: the older half goes. Too many tokens: again, or few turns become text."""
    if values.max_turns and len(there := _there(board)) > values.max_turns:
        yield from _halved(board, there)
    if values.max_tokens and board.total > values.max_tokens:
        there = _there(board)
        if len(there) < values.text_below:
            yield from _texts(board, there)
        elif values.halve:
            yield from _halved(board, there)


def _there(board: Board) -> list[int]:
    """The turns of which the prompt is shown; of some others, system content may be left."""
    rows, starts = board.sheet.rows, board.sheet.turns
    return [
        nth
        for nth, at in enumerate(starts)
        if any(part.kind == "prompt" for part in board.shown(rows[at]))
    ]


def _halved(board: Board, there: list[int]) -> Iterator[Proposal]:
    """The older half of the turns goes; of an odd number, the smaller half."""
    newer = board.sheet.turns[there[len(there) // 2]]
    yield from _dropped(board, board.sheet.rows[:newer])
    yield from _untold(board, newer)


def recent(board: Board, values: Window) -> Iterator[Proposal]:
    """Of what came before the current turn, the newest messages within both limits."""
    sheet = board.sheet
    first = sheet.turn() if sheet.turns else 0
    messages = len(sheet.rows) - first + len(_told(board, first, len(sheet.rows)))
    tokens = 0
    while first > 0:
        start = sheet.steps[first - 1]
        here = _told(board, start, first)
        messages += first - start + len(here)
        tokens += sum(map(board.weight, sheet.rows[start:first])) + sum(map(board.cost, here))
        if values.recent_messages and messages > values.recent_messages:
            break
        if values.recent_tokens and tokens > values.recent_tokens:
            break
        first = start
    yield from _dropped(board, sheet.rows[:first])
    yield from _untold(board, first)


def _texts(board: Board, there: list[int]) -> Iterator[Proposal]:
    """Complete turns keep their first prompt and their last reply."""
    rows, starts = board.sheet.rows, board.sheet.turns
    for nth in there:
        if nth + 1 == len(starts):  # the turn that is under way
            yield from _untold(board, starts[nth])
            return
        turn = range(starts[nth], starts[nth + 1])
        replies = [at for at in turn if rows[at].role == "assistant" and rows[at].has("text")]
        reply = set(_reply(board.sheet, replies[-1])) if replies else set[PartRef]()
        for part in _parts(rows[at] for at in turn[1:]):
            said = part.ref in reply
            if not (said or board.held(part) or isinstance(board.change(part), Drop)):
                yield part, Drop("text only")


def _reply(sheet: Sheet, at: int) -> Iterator[PartRef]:
    """The parts of a reply: its words, and the thoughts that its provider signed with them."""
    rows = with_row(sheet, at)
    for part in _parts(rows):
        if len(rows) > 1 or part.kind == "text" or (part.kind == "thought" and part.sealed):
            yield part.ref


def _dropped(board: Board, rows: Iterable[Row]) -> Iterator[tuple[Part, Drop]]:
    for part in _parts(rows):
        if not board.held(part) and not isinstance(board.change(part), Drop):
            yield part, Drop("window")


def _untold(board: Board, end: int) -> Iterator[Withdraw]:
    """What was delegated before row `end` is no longer told, as it would be no longer shown."""
    return (Withdraw(insert) for insert in _told(board, 0, end) if end)


def _told(board: Board, start: int, end: int) -> list[Insert]:
    """What is told of delegated work from one row on, up to another."""
    rows = board.sheet.rows
    first = rows[start].seq if 0 < start < len(rows) else 0
    last = rows[end].seq if end < len(rows) else board.sheet.head + 1
    told = (one for one in board.inserts if one.reason == "delegated")
    return [one for one in told if first <= one.before < last]


def _parts(rows: Iterable[Row]) -> Iterator[Part]:
    return (part for row in rows for part in row.parts)
