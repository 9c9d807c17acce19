"""`/context`: how full the window is, and of what. `/history`: how long the conversation is."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    draws_nothing,
    faint,
    number_in,
    quoted,
    say,
    share,
    strong,
)
from refold.cli.chat.commands.parts import ContextSnapshot, SentPart, context_snapshot, sent_parts
from refold.cli.chat.commands.undo import clear
from refold.cli.output import STYLES, colored
from refold.fold.checkpoints import checkpoints
from refold.terminal_text import Piece, Tone, counted
from refold.view import Explanation
from refold.view.explanation import PartLine
from refold.wire import Described

ROWS: Final = 10
COLUMNS: Final = 20

_SIDE_BY_SIDE: Final = 78  # columns that grid and legend need beside each other
_MAX_CHARS: Final = 4_000  # shown of a part that is opened
_YOURS, _ANSWERS, _THOUGHTS, _TOOLS, _ADDED = "yours", "answers", "thoughts", "tools", "added"
_OF_KIND: Final = {
    "prompt": _YOURS,
    "text": _ANSWERS,
    "thought": _THOUGHTS,
    "call": _TOOLS,
    "return": _TOOLS,
}


async def context(chat: Chat, typed: str) -> None:
    if typed == "clear":
        await clear(chat, "")
        return
    snapshot = await context_snapshot(chat.conversation)
    if snapshot is None:
        status = chat.conversation.status
        window = f"{status.window:,} tokens" if status.window else "unknown"
        say(chat, NOTHING_SAID, faint(f"The window of {status.model}: {window}."))
    elif not typed:
        await _show_overview(chat, snapshot)
    elif typed == "open":
        parts = _largest_first(snapshot)
        rows = [part.row(snapshot.explanation.window) for part in parts]
        index = await chat.surface.pick("What the model is sent, largest first", rows)
        if index is not None:
            _show_part(chat, snapshot, parts[index])
    elif (number := number_in(typed)) is not None:
        parts = _largest_first(snapshot)
        if 1 <= number <= len(parts):
            _show_part(chat, snapshot, parts[number - 1])
        else:
            say(chat, f"There is no part {number}: the view has {counted(len(parts), 'part')}.")
    else:
        say(chat, f"/context takes open, a number or clear, not {typed!r}.")


async def history(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    """How long the conversation is, as the model sees it and as the log has it."""
    snapshot = await context_snapshot(chat.conversation)
    if snapshot is None:
        say(chat, "0 turns, 0 messages", faint(NOTHING_SAID))
        return
    messages = snapshot.messages
    requests = sum(message.role != "assistant" for message in messages)
    yours = sum(line.opens and not line.reason for line in snapshot.explanation.lines)
    say(
        chat,
        strong(f"{counted(requests, 'turn')}, {counted(len(messages), 'message')}"),
        "in what the model sees; each request message counts as a turn, "
        f"and {counted(yours, 'turn was', 'turns were')} begun by you.",
        faint(_log_totals(snapshot)),
    )


async def _show_overview(chat: Chat, snapshot: ContextSnapshot) -> None:
    folds = await checkpoints(chat.conversation.log, snapshot.info.session)
    say(
        chat,
        _headline(snapshot),
        Text(""),
        *_grid_and_legend(chat, snapshot),
        Text(""),
        _roles(snapshot),
        *_folded(snapshot, len(folds)),
        *await _when_folded(chat),
        faint(_log_totals(snapshot)),
        faint("/context open reads one part of it; /explain says why each is there."),
    )


async def _when_folded(chat: Chat) -> Iterator[RenderableType]:
    """What a compaction would cost and save, where the profile weighs that."""
    session = await chat.conversation.session()
    worth = session.decide().worth if session else None
    return iter([faint(str(worth))] if worth else [])


def _headline(snapshot: ContextSnapshot) -> Text:
    explanation, account = snapshot.explanation, snapshot.explanation.account
    about = "about " if explanation.spread else ""
    full = f"{about}{counted(account.sent, 'token')}"
    if explanation.budget.window is None:
        return strong(f"The next request has {full}; window {explanation.budget.shown_window}.")
    of = f"{share(account.sent, explanation.window)} of {explanation.window:,}"
    return strong(f"The next request has {full}: {of}.")


def _grid_and_legend(chat: Chat, snapshot: ContextSnapshot) -> list[RenderableType]:
    """Grid and legend side by side, or below each other; in words where nothing is drawn."""
    shares = shares_of(snapshot.explanation)
    if draws_nothing(chat):
        return [f"{one.name}: {counted(one.tokens, 'token')}" for one in shares]
    cells = Text("\n").join(map(colored, grid(shares)))
    legend = Table.grid(padding=(0, 1, 0, 0))
    for side in ("left", "left", "right", "right"):
        legend.add_column(justify=side, no_wrap=True)
    for one in shares:
        percent = share(one.tokens, snapshot.explanation.window)
        legend.add_row(Text(one.mark, STYLES[one.tone]), one.name, f"{one.tokens:,}", percent)
    if chat.surface.width < _SIDE_BY_SIDE:
        return [cells, Text(""), legend]
    both = Table.grid(padding=(0, 2, 0, 0))
    both.add_row(cells, legend)
    return [both]


def _roles(snapshot: ContextSnapshot) -> str:
    """How many messages there are, whose, and how long; summaries are sent in your name."""
    messages, inserts = snapshot.messages, snapshot.plan.layout.inserts
    summaries = sum(one.reason == "summary" and one.kind == "prompt" for one in inserts)
    counts: dict[str, int] = dict.fromkeys(("you", "model", "tools", "system"), 0)
    for message in messages:
        counts[_author(message)] += 1
    roles = [
        f"{counts['you'] - summaries:,} from you",
        f"{counts['model']:,} from the model",
        counted(counts["tools"], "tool result"),
    ]
    if summaries:
        roles.append(counted(summaries, "summary", "summaries"))
    if counts["system"]:
        roles.append(f"{counts['system']:,} of the system")
    chars = sum(len(shape.text) for message in messages for shape in message.shapes)
    total = counted(len(messages), "message")
    return f"{total} ({', '.join(roles)}), {counted(chars, 'character')}"


def _author(message: Described) -> str:
    if message.role == "assistant":
        return "model"
    kinds = {shape.kind for shape in message.shapes}
    if "prompt" in kinds:
        return "you"
    return "tools" if "return" in kinds else "system"


def _folded(snapshot: ContextSnapshot, folds: int) -> list[Text]:
    if not folds:
        return []
    tokens = counted(sum(fold.tokens for fold in snapshot.inputs.foldings), "token")
    stand = "stands" if folds == 1 else "stand"
    text = f"{counted(folds, 'fold')} {stand} for {tokens} in full; /unfold reads them."
    return [Text(text, STYLES["folded"])]


def _log_totals(snapshot: ContextSnapshot) -> str:
    info = snapshot.info
    entries = counted(info.entries, "entry", "entries")
    return f"The log keeps everything: {counted(info.messages, 'message')} in {entries}."


def _largest_first(snapshot: ContextSnapshot) -> list[SentPart]:
    return sorted(sent_parts(snapshot), key=lambda part: -part.tokens)


def _show_part(chat: Chat, snapshot: ContextSnapshot, part: SentPart) -> None:
    of = share(part.tokens, snapshot.explanation.window)
    facts = f"{part.where} · {counted(part.tokens, 'token')}, {of} of the window · {part.why}"
    more = []
    if part.ref and part.chars > len(part.text):
        more = [faint(f"The log has all {part.chars:,} characters of it.")]
    say(chat, strong(part.who), faint(facts), quoted(part.text, _MAX_CHARS), *more)


class Share(NamedTuple):
    name: str
    tokens: int
    mark: str
    """One column wide, and another for each kind: colors alone are not for everybody."""
    tone: Tone
    always: bool = False  # whether it is listed even when there is none of it


def shares_of(explanation: Explanation) -> list[Share]:
    """What fills the window, and what is free; together they are the window, or exceed it."""
    account, talk = explanation.account, _talk(explanation)
    window = explanation.window
    above = window - account.reserve - account.limit
    free = window - account.sent - account.headroom - account.reserve - max(0, above)
    shares = [
        Share("system instructions", account.system, "▓", "system", always=True),
        Share("tool definitions", account.tools, "▒", "tools", always=True),
        Share("folds (summaries)", _folds(explanation), "≡", "folded", always=True),
        Share("your messages", talk[_YOURS], "█", "conversation", always=True),
        Share("answers", talk[_ANSWERS], "▆", "kept", always=True),
        Share("thoughts", talk[_THOUGHTS], "▂", "faint"),
        Share("tool calls and results", talk[_TOOLS], "▞", "archived", always=True),
        Share("added by Refold", talk[_ADDED], "+", "inserted"),
        Share("if we count too low", account.headroom, "░", "headroom"),
        Share("free", max(0, free), "·", "free", always=True),
        Share("kept for the answer", account.reserve, "▚", "reserve"),
        Share("above your limit", max(0, above), "-", "faint"),
    ]
    return [share for share in shares if share.tokens or share.always]


def cells_of(tokens: Sequence[int], count: int) -> list[int]:
    """So many cells divided by tokens; everything that has tokens has at least one."""
    whole = sum(tokens)
    if not whole:
        return [0] * len(tokens)
    cells = [max(1, size * count // whole) if size else 0 for size in tokens]
    while sum(cells) < count:
        missing = [size * count / whole - has for size, has in zip(tokens, cells, strict=True)]
        cells[missing.index(max(missing))] += 1
    while sum(cells) > count:
        cells[cells.index(max(cells))] -= 1
    return cells


def grid(shares: Sequence[Share], rows: int = ROWS, columns: int = COLUMNS) -> list[list[Piece]]:
    counts = cells_of([one.tokens for one in shares], rows * columns)
    cells = [one for one, count in zip(shares, counts, strict=True) for _ in range(count)]
    lines = (cells[first : first + columns] for first in range(0, len(cells), columns))
    return [[Piece(f"{one.mark} ", one.tone) for one in line] for line in lines]


def _talk(explanation: Explanation) -> dict[str, int]:
    talk: dict[str, int] = dict.fromkeys((_YOURS, _ANSWERS, _THOUGHTS, _TOOLS, _ADDED), 0)
    for part in _sent(explanation):
        if part.kind != "system":
            talk[_OF_KIND.get(part.kind, _ANSWERS)] += part.after - _merged_summary(part)
    for insert in explanation.inserts:
        if insert.reason != "summary":
            talk[_TOOLS if insert.kind == "return" else _ADDED] += insert.tokens
    # A message's overhead beyond its parts may be counted with system content.
    left = explanation.account.conversation - sum(talk.values()) - _folds(explanation)
    talk[_YOURS] = max(0, talk[_YOURS] + left)
    return talk


def _folds(explanation: Explanation) -> int:
    own = sum(insert.tokens for insert in explanation.inserts if insert.reason == "summary")
    return own + sum(map(_merged_summary, _sent(explanation)))


def _merged_summary(part: PartLine) -> int:
    """The tokens of a summary that is sent in front of this prompt, in the same part."""
    return max(0, part.after - part.before) if part.disposition.reason == "summary" else 0


def _sent(explanation: Explanation) -> Iterator[PartLine]:
    return (part for line in explanation.lines for part in line.parts if part.after)
