"""Going back in a session: `/clear`, `/undo`, `/redo`, `/rewind`. The log keeps everything.

Undoing, redoing and unfolding are marked with a note in front of the entries that do it. A search
for the newest act skips whatever was undone, and continues at the entry that was rewound to.
"""

from collections.abc import AsyncIterator
from typing import Final, Literal, NamedTuple
from uuid import UUID

from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    DraftSurface,
    Values,
    ago,
    faint,
    number_in,
    preview,
    quoted,
    say,
    words,
)
from refold.cli.chat.commands.parts import A_PROMPT, forecast_lines
from refold.cli.chat.surface import Row
from refold.fold.compactor import MANUAL
from refold.fold.summary import Summary, parse
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Author,
    Cleared,
    Entry,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Log,
    Message,
    Note,
    Outline,
    Rewound,
    Span,
)
from refold.recall.text import shapes_of, wire_of
from refold.recall.unfold import spans_of_fold
from refold.session import Session
from refold.terminal_text import counted

Mark = Literal["undo", "redo", "unfold"]

_KEY: Final = "chat"  # the key of a note's data that says what the entry after it does
_PAGE: Final = 100  # entries read at once
_ACTS: Final = frozenset(
    event.KIND for event in (Message, Cleared, Rewound, FoldCompleted, FoldUndone)
)
_UNFOLDING: Final = frozenset(event.KIND for event in (FoldCompleted, FoldUndone, FoldStarted))
_ASKED_FOR: Final = (MANUAL, "model switch")  # why folds are made that a command asks for
_MAX_PROMPTS: Final = 200  # listed to go back to
_WIDTH: Final = 48
_MAX_VALUES: Final = 5
_NOTHING_LEFT: Final = "There is nothing left to take back in this session."


class Act(NamedTuple):
    kind: Literal["turn", "fold", "clear", "rewind", "unfold"]
    seq: int  # its first entry
    fold: UUID | None = None


class Prompt(NamedTuple):
    seq: int
    time: int
    text: str


async def clear(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to clear."))
        return
    async with chat.conversation.alone():
        await session.clear()
    info = await chat.conversation.log.info(session.name)
    say(
        chat,
        "The conversation begins anew: the model sees nothing of what was said before.",
        faint(f"The log keeps all {counted(info.messages, 'message')}: /undo brings them back."),
    )


async def undo(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to undo."))
        return
    log, name = chat.conversation.log, session.name
    outline = (await log.visible(name, last=0)).outline
    act = await _newest_act(log, name, frozenset(fold.fold for fold in outline.folds))
    match act:
        case None:
            say(chat, _NOTHING_LEFT)
        case Act("turn"):
            await _undo_turn(chat, session, outline)
        case Act("fold") if await _was_for_prompt(chat, act):
            await _undo_turn(chat, session, outline, ask=False)
        case Act("fold"):
            await _undo_fold(chat, session, act)
        case _:
            await _undo_by_rewind(chat, session, act)


async def _was_for_prompt(chat: Chat, fold: Act) -> bool:
    """Whether a fold was made, unasked, for a prompt that got no answer all the same."""
    talk = chat.conversation
    if await talk.unanswered() is None:
        return False
    async for entry in _backwards(talk.log, talk.name, fold.seq):
        if entry.kind == FoldStarted.KIND:
            match CODEC.decode(entry):
                case FoldStarted(fold.fold, trigger=trigger):
                    return trigger not in _ASKED_FOR
                case _:
                    pass
    return False


async def _undo_turn(chat: Chat, session: Session, outline: Outline, *, ask: bool = True) -> None:
    """Undo the last turn; if a fold was made in it, the person says which of the two."""
    log = chat.conversation.log
    prompts = await _prompts(log, session.name, outline, 1)
    if not prompts:
        say(chat, _NOTHING_LEFT)
        return
    [turn] = prompts
    folds = [fold for fold in outline.folds if fold.seq > turn.seq]
    if folds and ask:
        question = "A fold was made in your last turn. Take back the turn, or only the fold?"
        answer = await chat.surface.ask(question, ("turn", "fold", "nothing"))
        if answer == "fold":
            await _undo_fold(chat, session, Act("fold", folds[-1].seq, folds[-1].fold))
        if answer != "turn":
            return
    async with chat.conversation.alone():
        await mark(log, session.name, "undo", "The last turn was taken back.")
        await session.rewind(turn.seq - 1)
    say(
        chat,
        f'Took back your last turn: "{words(turn.text, _WIDTH)}"',
        faint("The model no longer sees it; the log keeps it. /redo brings it back."),
    )


async def _undo_fold(chat: Chat, session: Session, act: Act) -> None:
    log = chat.conversation.log
    summary = await _summary(log, session.name, act.seq)
    spans = await spans_of_fold(log, session.name, act.seq)
    async with chat.conversation.alone():
        await mark(log, session.name, "undo", "A fold was taken back.")
        await session.take_back(act.fold)
    forecast = await session.forecast(spans, A_PROMPT)
    beneath = counted(len(summary.over), "fold")
    stands = "stands" if len(summary.over) == 1 else "stand"
    older = [faint(f"{beneath} beneath it {stands} again for the others.")] if summary.over else []
    size = f"{counted(summary.messages, 'message')}, {counted(summary.tokens, 'token')} in full"
    say(
        chat,
        f"Took back the newest fold ({size}).",
        *forecast_lines(forecast),
        *older,
        faint("The log keeps the summary. /redo folds it again as it was."),
    )


async def _summary(log: Log, name: str, seq: int) -> Summary:
    for entry in await log.read(name, Span(seq, seq)):
        match CODEC.decode(entry):
            case FoldCompleted(summary=summary):
                return parse(summary)
            case _:
                pass
    return parse("")


async def _undo_by_rewind(chat: Chat, session: Session, act: Act) -> None:
    what = {
        "clear": "Took back the clearing: the model sees again what it saw before.",
        "rewind": "Took back the rewind: the model sees again what came after that place.",
        "unfold": "Took back the unfolding: the fold stands again as it was.",
    }[act.kind]
    async with chat.conversation.alone():
        await mark(chat.conversation.log, session.name, "undo", what)
        await session.rewind(act.seq - 1)
    say(chat, what, faint("/redo does it again."))


async def redo(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    session = await chat.conversation.session()
    log = chat.conversation.log
    seq = await _newest_undo(log, session.name) if session else None
    if session is None or seq is None:
        say(chat, "There is nothing to bring back: nothing was taken back since you last spoke.")
        return
    async with chat.conversation.alone():
        await mark(log, session.name, "redo", "What was taken back was brought back.")
        await session.rewind(seq - 1)
    say(chat, "Brought back what /undo took back last.", faint("/undo takes it back again."))


async def rewind(chat: Chat, typed: str) -> None:
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to go back to."))
        return
    log = chat.conversation.log
    outline = (await log.visible(session.name, last=0)).outline
    prompts = await _prompts(log, session.name, outline, _MAX_PROMPTS)
    prompt = await _choose_prompt(chat, prompts, typed)
    if prompt is None:
        return
    async with chat.conversation.alone():
        await session.rewind(prompt.seq - 1)
    kept = faint("Nothing is deleted: the log keeps what came after, and /undo brings it back.")
    say(chat, f'Back to just before "{words(prompt.text, _WIDTH)}".', kept)
    if isinstance(chat.surface, DraftSurface):
        chat.surface.offer(prompt.text)
    else:
        say(chat, faint("You had said:"), quoted(prompt.text))


def rewind_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - the signature of all
    first = ("1", "before your last message")
    more = ((f"{nth}", f"before your last {nth} messages") for nth in range(2, _MAX_VALUES + 1))
    return (first, *more)


async def _choose_prompt(chat: Chat, prompts: list[Prompt], typed: str) -> Prompt | None:
    if not prompts:
        say(chat, "There is no message of yours to go back to.")
        return None
    if not typed:
        rows = [Row(words(one.text, _WIDTH), ago(one.time), preview(one.text)) for one in prompts]
        index = await chat.surface.pick("Go back to just before one of your messages", rows)
        return None if index is None else prompts[index]
    number = number_in(typed)
    if number is None or not 1 <= number <= len(prompts):
        range_ = f"a number from 1 (your last message) to {len(prompts)}"
        say(chat, f"/rewind takes {range_}, not {typed!r}.", faint("/rewind alone shows a list."))
        return None
    return prompts[number - 1]


async def _prompts(log: Log, name: str, outline: Outline, max_prompts: int) -> list[Prompt]:
    """The person's messages on the session's current line, the newest first."""
    head = await log.head(name)
    wire = wire_of((await log.info(name)).format)
    prompts: list[Prompt] = []
    for span in reversed(outline.on_line(head)):
        async for entry in _backwards(log, name, span.last):
            if entry.seq < span.first or len(prompts) == max_prompts:
                break
            if entry.kind != Message.KIND or entry.forgotten or entry.scope != MAIN_SCOPE:
                continue
            shapes = shapes_of(wire, entry)[1]
            if texts := [shape.text for shape in shapes if shape.kind == "prompt"]:
                prompts.append(Prompt(entry.seq, entry.at, "\n\n".join(texts)))
    return prompts


async def mark(log: Log, session: str, what: Mark, words: str) -> None:
    """Note what the next entries do; a mark also separates them from those before."""
    note = Note(words, {_KEY: what})
    await log.append(session, [Author().draft(note)], expected=None)


async def _marked(log: Log, session: str, seq: int) -> Mark | None:
    for entry in await log.read(session, Span(seq - 1, seq - 1)) if seq > 1 else []:
        match CODEC.decode(entry):
            case Note(data={"chat": "undo" | "redo" | "unfold" as what}):
                return what
            case _:
                pass
    return None


async def _newest_act(log: Log, session: str, folds: frozenset[UUID]) -> Act | None:
    """The newest act that still has an effect; `folds` are the folds in effect now."""
    last = await log.head(session)
    while last and (entry := await _last_act_entry(log, session, last)):
        last = entry.seq - 1
        match CODEC.decode(entry):
            case Message():
                return Act("turn", entry.seq)
            case Cleared():
                return Act("clear", entry.seq)
            case FoldCompleted(fold) if fold in folds and not _continues(entry):
                return Act("fold", entry.seq, fold)
            case Rewound(to):
                if not await _marked(log, session, entry.seq):
                    return Act("rewind", entry.seq)
                last = to
            case FoldUndone() if await _marked(log, session, entry.seq) != "undo":
                return Act("unfold", await _first_of_unfolding(log, session, entry.seq))
            case _:
                pass
    return None


async def _newest_undo(log: Log, session: str) -> int | None:
    """The entry that undid something, if nothing was done since."""
    last = await log.head(session)
    while last and (entry := await _last_act_entry(log, session, last)):
        mark = await _marked(log, session, entry.seq)
        if mark == "undo":
            return entry.seq
        match CODEC.decode(entry):
            case Rewound(to) if mark == "redo":
                last = to
            case _:
                return None
    return None


async def _last_act_entry(log: Log, session: str, last: int) -> Entry | None:
    async for entry in _backwards(log, session, last):
        if entry.kind in _ACTS:
            return entry
    return None


async def _first_of_unfolding(log: Log, session: str, seq: int) -> int:
    """The first of the entries that opened a fold: they are consecutive, after a mark."""
    async for entry in _backwards(log, session, seq):
        whole_fold = entry.kind == FoldCompleted.KIND and not _continues(entry)
        if entry.kind not in _UNFOLDING or whole_fold:
            break
        seq = entry.seq
    return seq


def _continues(entry: Entry) -> bool:
    """Whether a fold takes the place of one that was opened in part."""
    match CODEC.decode(entry):
        case FoldCompleted(summary={"continues": int()}):
            return True
        case _:
            return False


async def _backwards(log: Log, session: str, last: int) -> AsyncIterator[Entry]:
    """The entries up to `last`, the newest first, read a page at a time."""
    while last >= 1:
        first = max(1, last - _PAGE + 1)
        for entry in reversed(await log.read(session, Span(first, last))):
            yield entry
        last = first - 1
