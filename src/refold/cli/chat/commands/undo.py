"""Going back in a session: `/clear`, `/undo`, `/redo`, `/rewind`. The log keeps everything."""

from typing import Final, NamedTuple

from refold.cli.chat.commands.compact import (
    A_PROMPT,
    Act,
    backwards,
    described,
    mark,
    newest_act,
    newest_undo,
)
from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    Offering,
    Values,
    ago,
    clean,
    counted,
    faint,
    number_in,
    quoted,
    say,
    shortened,
    words,
)
from refold.cli.chat.commands.parts import PREVIEW
from refold.cli.chat.surface import Row
from refold.fold.summary import Summary, parse
from refold.log import CODEC, MAIN_SCOPE, Entry, FoldCompleted, Log, Message, Outline, Span
from refold.recall.text import shapes_of, wire_of
from refold.recall.unfold import spans_of_fold
from refold.session import Session
from refold.wire import Wire

_MOST: Final = 200
"""Messages of one's own that can be gone back to from a list."""
_WORDS: Final = 48
_FEW: Final = 5


class Prompt(NamedTuple):
    """Something that the person said."""

    seq: int
    at: int
    text: str


async def clear(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    """Begin the view anew."""
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
    """Take back what was done last."""
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to take back."))
        return
    log, name = chat.conversation.log, session.name
    outline = (await log.visible(name, last=0)).outline
    act = await newest_act(log, name, frozenset(one.fold for one in outline.folds))
    match act:
        case None:
            say(chat, "There is nothing left to take back in this session.")
        case Act("turn"):
            await _undo_turn(chat, session, outline)
        case Act("fold"):
            await _undo_fold(chat, session, act)
        case _:
            await _undo_by_rewind(chat, session, act)


async def _undo_turn(chat: Chat, session: Session, outline: Outline) -> None:
    """The last turn; where a fold was made in it, the person says which of the two."""
    log = chat.conversation.log
    last = await _prompts(log, session.name, outline, 1)
    if not last:
        say(chat, "There is nothing left to take back in this session.")
        return
    [turn] = last
    within = [one for one in outline.folds if one.seq > turn.seq]
    if within:
        question = "A fold was made in your last turn. Take back the turn, or only the fold?"
        chosen = await chat.surface.ask(question, ("turn", "fold", "nothing"))
        if chosen == "fold":
            await _undo_fold(chat, session, Act("fold", within[-1].seq, within[-1].fold))
        if chosen != "turn":
            return
    async with chat.conversation.alone():
        await mark(log, session.name, "undo", "The last turn was taken back.")
        await session.rewind(turn.seq - 1)
    say(
        chat,
        f'Took back your last turn: "{words(turn.text, _WORDS)}"',
        faint("The model no longer sees it; the log keeps it. /redo brings it back."),
    )


async def _undo_fold(chat: Chat, session: Session, act: Act) -> None:
    log = chat.conversation.log
    summary = await _summary(log, session.name, act.seq)
    spans = await spans_of_fold(log, session.name, act.seq)
    async with chat.conversation.alone():
        await mark(log, session.name, "undo", "A fold was taken back.")
        await session.take_back(act.fold)
    outlook = await session.forecast(spans, A_PROMPT)
    said = f"{counted(summary.messages, 'message')}, {counted(summary.tokens, 'token')}"
    say(
        chat,
        f"Took back the newest fold ({said}).",
        *described(outlook),
        faint("The log keeps the summary. /redo folds it again as it was."),
    )


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
    """Bring back what was taken back last."""
    session = await chat.conversation.session()
    log = chat.conversation.log
    seq = await newest_undo(log, session.name) if session else None
    if session is None or seq is None:
        say(chat, "There is nothing to bring back: nothing was taken back since you last spoke.")
        return
    async with chat.conversation.alone():
        await mark(log, session.name, "redo", "What was taken back was brought back.")
        await session.rewind(seq - 1)
    say(chat, "Brought back what /undo took back last.", faint("/undo takes it back again."))


async def rewind(chat: Chat, typed: str) -> None:
    """Go back to just before something that the person said."""
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to go back to."))
        return
    log = chat.conversation.log
    outline = (await log.visible(session.name, last=0)).outline
    found = await _prompts(log, session.name, outline, _MOST)
    chosen = await _chosen(chat, found, typed)
    if chosen is None:
        return
    async with chat.conversation.alone():
        await session.rewind(chosen.seq - 1)
    told = faint("Nothing is deleted: the log keeps what came after, and /undo brings it back.")
    say(chat, f'Back to just before "{words(chosen.text, _WORDS)}".', told)
    if isinstance(chat.surface, Offering):
        chat.surface.offer(chosen.text)
    else:
        say(chat, faint("You had said:"), quoted(chosen.text))


def rewind_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """How far one can go back without looking."""
    first = ("1", "before your last message")
    return (first, *((f"{nth}", f"before your last {nth} messages") for nth in range(2, _FEW + 1)))


async def _chosen(chat: Chat, found: list[Prompt], typed: str) -> Prompt | None:
    if not found:
        say(chat, "There is no message of yours to go back to.")
        return None
    if not typed:
        rows = [_row(one) for one in found]
        at = await chat.surface.pick("Go back to just before one of your messages", rows)
        return None if at is None else found[at]
    number = number_in(typed)
    if number is None or not 1 <= number <= len(found):
        most = f"a number from 1 (your last message) to {len(found)}"
        say(chat, f"/rewind takes {most}, not {typed!r}.", faint("/rewind alone shows a list."))
        return None
    return found[number - 1]


def _row(one: Prompt) -> Row:
    return Row(words(one.text, _WORDS), ago(one.at), clean(shortened(one.text, PREVIEW)))


async def _prompts(log: Log, name: str, outline: Outline, most: int) -> list[Prompt]:
    """What the person said, as far as it is on the session's line, the newest first."""
    head = await log.head(name)
    wire = wire_of((await log.info(name)).format)
    found: list[Prompt] = []
    for span in reversed(outline.on_line(head)):
        async for entry in backwards(log, name, span.last):
            if entry.seq < span.first or len(found) == most:
                break
            text = _prompt(wire, entry)
            if text is not None:
                found.append(Prompt(entry.seq, entry.at, text))
    return found


def _prompt(wire: Wire | None, entry: Entry) -> str | None:
    if entry.kind != Message.KIND or entry.forgotten or entry.scope != MAIN_SCOPE:
        return None
    asked = [shape.text for shape in shapes_of(wire, entry)[1] if shape.kind == "prompt"]
    return "\n\n".join(asked) if asked else None


async def _summary(log: Log, name: str, seq: int) -> Summary:
    for entry in await log.read(name, Span(seq, seq)):
        match CODEC.decode(entry):
            case FoldCompleted(summary=summary):
                return parse(summary)
            case _:
                pass
    return parse("")
