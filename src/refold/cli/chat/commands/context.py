"""`/context`: how full the window is, and of what. `/history`: how long the conversation is."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    Values,
    counted,
    faint,
    is_plain,
    number_in,
    quoted,
    say,
    share,
    strong,
)
from refold.cli.chat.commands.parts import Seen, Shown, parts_shown, seen
from refold.cli.chat.commands.undo import clear
from refold.cli.output import STYLES, colored
from refold.view import Explanation
from refold.view.explanation import Piece, Told, Tone
from refold.wire import Described

# The window as a grid: each cell a share of it, by what fills it.

ROWS: Final = 10
COLUMNS: Final = 20

_YOURS, _ANSWERS, _THOUGHTS, _TOOLS, _ADDED = "yours", "answers", "thoughts", "tools", "added"
_OF_KIND: Final = {
    "prompt": _YOURS,
    "text": _ANSWERS,
    "thought": _THOUGHTS,
    "call": _TOOLS,
    "return": _TOOLS,
}


class Share(NamedTuple):
    """Something that takes up tokens of the window."""

    name: str
    tokens: int
    mark: str
    """One column wide, and another for each kind: colours alone are not for everybody."""
    tone: Tone
    always: bool = False
    """Whether it is told even when there is none of it."""


def shares_of(found: Explanation) -> list[Share]:
    """What fills the window, and what is left; together they are the window, or what exceeds it."""
    account, talk = found.account, _talk(found)
    folds = _folds(found)
    above = found.window - account.reserve - account.limit
    free = found.window - account.sent - account.headroom - account.reserve - max(0, above)
    wanted = [
        Share("system instructions", account.system, "▓", "system", always=True),
        Share("tool definitions", account.tools, "▒", "tools", always=True),
        Share("folds (summaries)", folds, "≡", "folded", always=True),
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
    return [one for one in wanted if one.tokens or one.always]


def cells_of(tokens: Sequence[int], count: int) -> list[int]:
    """So many cells shared out by tokens; what is there at all has one at least."""
    whole = sum(tokens)
    if not whole:
        return [0] * len(tokens)
    cells = [max(1, one * count // whole) if one else 0 for one in tokens]
    while sum(cells) < count:
        missing = [one * count / whole - has for one, has in zip(tokens, cells, strict=True)]
        cells[missing.index(max(missing))] += 1
    while sum(cells) > count:
        cells[cells.index(max(cells))] -= 1
    return cells


def grid(shares: Sequence[Share], rows: int = ROWS, columns: int = COLUMNS) -> list[list[Piece]]:
    """The rows of the grid, each cell two columns wide."""
    counts = cells_of([one.tokens for one in shares], rows * columns)
    cells = [one for one, count in zip(shares, counts, strict=True) for _ in range(count)]
    lines = (cells[first : first + columns] for first in range(0, len(cells), columns))
    return [[Piece(f"{one.mark} ", one.tone) for one in line] for line in lines]


def _talk(found: Explanation) -> dict[str, int]:
    """The tokens of the conversation beside its folds, by who said it."""
    talk: dict[str, int] = dict.fromkeys((_YOURS, _ANSWERS, _THOUGHTS, _TOOLS, _ADDED), 0)
    for part in _sent(found):
        if part.kind != "system":
            talk[_OF_KIND.get(part.kind, _ANSWERS)] += part.after - _merged(part)
    for one in found.inserts:
        if one.reason != "summary":
            talk[_TOOLS if one.kind == "return" else _ADDED] += one.tokens
    # What a message costs beside its parts may be counted with system content.
    left = found.account.conversation - sum(talk.values()) - _folds(found)
    talk[_YOURS] = max(0, talk[_YOURS] + left)
    return talk


def _folds(found: Explanation) -> int:
    own = sum(one.tokens for one in found.inserts if one.reason == "summary")
    return own + sum(map(_merged, _sent(found)))


def _merged(part: Told) -> int:
    """What a summary takes up that stands in front of this prompt."""
    return max(0, part.after - part.before) if part.disposition.reason == "summary" else 0


def _sent(found: Explanation) -> Iterator[Told]:
    return (part for line in found.lines for part in line.parts if part.after)


_BESIDE: Final = 78
"""Columns that grid and legend need beside each other."""
_MOST: Final = 4_000
"""Characters that are shown of a part that is opened."""


async def context(chat: Chat, typed: str) -> None:
    """The window as a grid, one part of it, or all of it anew."""
    if typed == "clear":
        await clear(chat, "")
        return
    found = await seen(chat.conversation)
    if found is None:
        _before_anything(chat)
    elif not typed:
        _overview(chat, found)
    elif typed == "open":
        await _pick(chat, found)
    elif (number := number_in(typed)) is not None:
        _open(chat, found, number)
    else:
        say(chat, f"/context takes open, a number or clear, not {typed!r}.")


def context_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """What /context takes."""
    return (
        ("open", "pick a part of it and read it"),
        ("1", "read the largest part"),
        ("clear", "begin anew; the log keeps everything"),
    )


def _before_anything(chat: Chat) -> None:
    status = chat.conversation.status
    window = f"{status.window:,} tokens" if status.window else "unknown"
    say(chat, NOTHING_SAID, faint(f"The window of {status.model}: {window}."))


def _overview(chat: Chat, found: Seen) -> None:
    shares = shares_of(found.explanation)
    legend = _legend(found, shares)
    say(
        chat,
        _headline(found),
        Text(""),
        *_beside(chat, shares, legend),
        Text(""),
        roles(found.messages, _summaries(found)),
        *_folded(found),
        faint(_log_totals(found)),
        faint("/context open reads one part of it; /explain says why each is there."),
    )


def _headline(found: Seen) -> Text:
    told, account = found.explanation, found.explanation.account
    about = "about " if told.spread else ""
    full = f"{about}{counted(account.sent, 'token')}"
    if told.budget.window is None:
        return strong(f"The next request has {full}; window {told.budget.shown_window}.")
    of = f"{share(account.sent, told.window)} of {told.window:,}"
    return strong(f"The next request has {full}: {of}.")


def _beside(chat: Chat, shares: Sequence[Share], legend: RenderableType) -> list[RenderableType]:
    """Grid and legend side by side, or below each other; in words where nothing is drawn."""
    if is_plain(chat):
        return [f"{one.name}: {counted(one.tokens, 'token')}" for one in shares]
    cells = Text("\n").join(map(colored, grid(shares, ROWS, COLUMNS)))
    if chat.surface.width < _BESIDE:
        return [cells, Text(""), legend]
    both = Table.grid(padding=(0, 2, 0, 0))
    both.add_row(cells, legend)
    return [both]


def _legend(found: Seen, shares: Sequence[Share]) -> RenderableType:
    window = found.explanation.window
    made = Table.grid(padding=(0, 1, 0, 0))
    for side in ("left", "left", "right", "right"):
        made.add_column(justify=side, no_wrap=True)
    for one in shares:
        mark = Text(one.mark, STYLES[one.tone])
        made.add_row(mark, one.name, f"{one.tokens:,}", share(one.tokens, window))
    return made


def roles(messages: Sequence[Described], summaries: int = 0) -> str:
    """How many messages there are, whose, and how long; summaries stand in your place."""
    whose: dict[str, int] = dict.fromkeys(("you", "model", "tools", "system"), 0)
    for one in messages:
        whose[_whose(one)] += 1
    told = [
        f"{whose['you'] - summaries:,} from you",
        f"{whose['model']:,} from the model",
        counted(whose["tools"], "tool result"),
    ]
    if summaries:
        told.append(counted(summaries, "summary", "summaries"))
    if whose["system"]:
        told.append(f"{whose['system']:,} of the system")
    chars = sum(len(shape.text) for one in messages for shape in one.shapes)
    return f"{counted(len(messages), 'message')} ({', '.join(told)}), {counted(chars, 'character')}"


def _summaries(found: Seen) -> int:
    inserts = found.plan.layout.inserts
    return sum(one.reason == "summary" and one.kind == "prompt" for one in inserts)


def _whose(message: Described) -> str:
    if message.role == "assistant":
        return "model"
    kinds = {shape.kind for shape in message.shapes}
    if "prompt" in kinds:
        return "you"
    return "tools" if "return" in kinds else "system"


def _folded(found: Seen) -> list[Text]:
    folds = len(found.inputs.foldings)
    if not folds:
        return []
    gone = sum(one.tokens for one in found.inputs.foldings)
    stand = "stands" if folds == 1 else "stand"
    told = f"{counted(folds, 'fold')} {stand} for {counted(gone, 'token')}; /unfold reads them."
    return [Text(told, STYLES["folded"])]


def _log_totals(found: Seen) -> str:
    info = found.info
    said = f"{counted(info.messages, 'message')} in {counted(info.entries, 'entry', 'entries')}"
    return f"The log keeps everything: {said}."


async def _pick(chat: Chat, found: Seen) -> None:
    parts = _largest_first(found)
    window = found.explanation.window
    rows = [one.row(window) for one in parts]
    chosen = await chat.surface.pick("What the model is sent, largest first", rows)
    if chosen is not None:
        _show_part(chat, found, parts[chosen])


def _open(chat: Chat, found: Seen, number: int) -> None:
    parts = _largest_first(found)
    if not 1 <= number <= len(parts):
        say(chat, f"There is no part {number}: the view has {counted(len(parts), 'part')}.")
        return
    _show_part(chat, found, parts[number - 1])


def _largest_first(found: Seen) -> list[Shown]:
    return sorted(parts_shown(found), key=lambda one: -one.tokens)


def _show_part(chat: Chat, found: Seen, part: Shown) -> None:
    of = share(part.tokens, found.explanation.window)
    facts = f"{part.where} · {counted(part.tokens, 'token')}, {of} of the window · {part.why}"
    more = []
    if part.ref and part.chars > len(part.text):
        more = [faint(f"The log has all {part.chars:,} characters of it.")]
    say(chat, strong(part.who), faint(facts), quoted(part.text, _MOST), *more)


async def history(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    """How long the conversation is, as the model sees it and as the log has it."""
    found = await seen(chat.conversation)
    if found is None:
        say(chat, "0 turns, 0 messages", faint(NOTHING_SAID))
        return
    messages = found.messages
    requests = sum(one.role != "assistant" for one in messages)
    yours = sum(line.opens and not line.reason for line in found.explanation.lines)
    say(
        chat,
        strong(f"{counted(requests, 'turn')}, {counted(len(messages), 'message')}"),
        "in what the model sees; each request message counts as a turn, "
        f"and {counted(yours, 'turn was', 'turns were')} begun by you.",
        faint(_log_totals(found)),
    )
