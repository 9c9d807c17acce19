"""`/compact`: fold now, after a look at what that would do. `/unfold`: what lies beneath a fold."""

from collections.abc import AsyncIterator, Iterator
from typing import Final, Literal, NamedTuple
from uuid import UUID

from pydantic_ai.messages import ModelRequest
from rich.console import RenderableType
from rich.text import Text

from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    ago,
    clean,
    counted,
    dollars,
    faint,
    number_in,
    quoted,
    say,
    shortened,
    strong,
    table,
    words,
)
from refold.cli.chat.commands.parts import PREVIEW, Seen, Shown, parts_shown, seen
from refold.cli.chat.surface import Row
from refold.errors import FoldCancelled, FoldError, FoldUnderWay, NothingToFold
from refold.fold.checkpoints import EMPTY, Checkpoint, checkpoints
from refold.fold.compactor import Preview
from refold.integrations.pydantic_ai.history import payload_of
from refold.log import (
    CODEC,
    Author,
    Cleared,
    Entry,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Log,
    Message,
    Note,
    PartRef,
    Rewound,
    Span,
)
from refold.recall.text import label
from refold.recall.unfold import Cursor, Page, Piece, spans_of_fold
from refold.recall.unfold import unfold as page_of
from refold.session import Compacted, Forecast, Session
from refold.wire import Shape

# What was done to a session last, so that it can be taken back, and brought back again.
#
# Taking back, bringing back and unfolding are marked with a note in front of the entries that do
# it.
# Who looks for the newest act looks past what was taken back, at what the session was gone back to.

Kind = Literal["turn", "fold", "clear", "rewind", "unfold"]
Mark = Literal["undo", "redo", "unfold"]

_KEY: Final = "chat"
"""The key of a note's data that says what the entry after it does."""
_AT_ONCE: Final = 100
_WRITING: Final = frozenset(
    one.KIND for one in (Message, Cleared, Rewound, FoldCompleted, FoldUndone)
)
_UNFOLDING: Final = frozenset(one.KIND for one in (FoldCompleted, FoldUndone, FoldStarted))


class Act(NamedTuple):
    """Something that was done."""

    kind: Kind
    seq: int
    """Its first entry."""
    fold: UUID | None = None


async def newest_act(log: Log, session: str, standing: frozenset[UUID]) -> Act | None:
    """The newest act that still has an effect; `standing` are the folds that stand now."""
    at = await log.head(session)
    while at and (entry := await _newest(log, session, at)):
        at = entry.seq - 1
        match CODEC.decode(entry):
            case Message():
                return Act("turn", entry.seq)
            case Cleared():
                return Act("clear", entry.seq)
            case FoldCompleted(fold) if fold in standing and not _goes_on(entry):
                return Act("fold", entry.seq, fold)
            case Rewound(to):
                if not await marked(log, session, entry.seq):
                    return Act("rewind", entry.seq)
                at = to
            case FoldUndone() if await marked(log, session, entry.seq) != "undo":
                return Act("unfold", await _begin(log, session, entry.seq))
            case _:
                pass
    return None


async def newest_undo(log: Log, session: str) -> int | None:
    """The entry that took something back, if nothing was done since."""
    at = await log.head(session)
    while at and (entry := await _newest(log, session, at)):
        mark = await marked(log, session, entry.seq)
        if mark == "undo":
            return entry.seq
        match CODEC.decode(entry):
            case Rewound(to) if mark == "redo":
                at = to
            case _:
                return None
    return None


async def mark(log: Log, session: str, what: Mark, words: str) -> None:
    """Say what the next entries do; a mark also parts them from those before."""
    note = Note(words, {_KEY: what})
    await log.append(session, [Author().draft(note)], expected=None)


async def marked(log: Log, session: str, seq: int) -> Mark | None:
    """What the note in front of an entry says."""
    for entry in await log.read(session, Span(seq - 1, seq - 1)) if seq > 1 else []:
        match CODEC.decode(entry):
            case Note(data={"chat": "undo" | "redo" | "unfold" as what}):
                return what
            case _:
                pass
    return None


async def _newest(log: Log, session: str, at: int) -> Entry | None:
    async for entry in backwards(log, session, at):
        if entry.kind in _WRITING:
            return entry
    return None


async def backwards(log: Log, session: str, at: int) -> AsyncIterator[Entry]:
    """The entries up to `at`, the newest first, read a little at a time."""
    while at >= 1:
        first = max(1, at - _AT_ONCE + 1)
        for entry in reversed(await log.read(session, Span(first, at))):
            yield entry
        at = first - 1


async def _begin(log: Log, session: str, seq: int) -> int:
    """The first of the entries that opened a fold: they stand side by side, after a mark."""
    async for entry in backwards(log, session, seq):
        if entry.kind not in _UNFOLDING or (
            entry.kind == FoldCompleted.KIND and not _goes_on(entry)
        ):
            break
        seq = entry.seq
    return seq


def _goes_on(entry: Entry) -> bool:
    """Whether a fold goes on in the place of one that was opened in part."""
    match CODEC.decode(entry):
        case FoldCompleted(summary={"continues": int()}):
            return True
        case _:
            return False


_PAGE: Final = 4_000
"""Characters of what lies beneath a fold that are shown at once."""
_NAMES: Final = 8
_TITLE: Final = 60
A_PROMPT: Final = payload_of(ModelRequest.user_text_prompt("Go on."))
"""What a request is planned with that nobody has made yet."""
_READ_ON: Final = (
    "It stays folded. You can read it here, and the model can with its recall tools; /pin keeps "
    "single messages in view."
)
_WHO: Final = {"user": "you", "assistant": "the model"}


async def compact(chat: Chat, typed: str) -> None:
    """Preview, ask, fold, report. Whatever fails, the conversation is unchanged."""
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to compact."))
        return
    try:
        if not await _agreed(chat, session):
            return
        done = await chat.conversation.compact(typed or None)
    except FoldError as error:
        _not_made(chat, error)
        return
    await _made(chat, done)


async def _agreed(chat: Chat, session: Session) -> bool:
    if chat.conversation.status.folding is not None:
        raise FoldUnderWay("A fold of this session is being made.")
    while True:
        _show_preview(chat, await session.preview())
        seen = session.head
        if await chat.surface.ask("Fold now?", ("yes", "no")) != "yes":
            say(chat, "Nothing was folded; the conversation is as it was.")
            return False
        await session.catch_up()
        if session.head == seen:
            return True
        say(chat, "The conversation changed while you were asked, in another terminal. Look again:")


def _show_preview(chat: Chat, found: Preview) -> None:
    rows = [
        ("goes", f"{counted(found.messages, 'message')}, into one summary"),
        ("stays", f"{counted(found.kept, 'message')} as they are"),
        ("tokens", f"{found.before:,} now → about {found.after:,} then{_warning(found)}"),
        ("a request costs", _cost(found)),
    ]
    if found.lost:
        rows.append(("in the log only", _lost(found)))
    say(
        chat,
        strong("This fold would do the following:"),
        table(rows),
        faint("Nothing is deleted: the log keeps every word, and /undo takes the fold back."),
    )


def _warning(found: Preview) -> str:
    return "" if found.freed > 0 else ", so it frees nothing"


def _cost(found: Preview) -> str:
    if found.cost_before is None or found.cost_after is None:
        return "unknown: no price is known for this model"
    once = f" (the first one {dollars(found.cost_once)})" if found.cost_once is not None else ""
    return f"{dollars(found.cost_before)} now → {dollars(found.cost_after)} then{once}"


def _lost(found: Preview) -> str:
    named = ", ".join(words(one, 40) for one in found.names[:_NAMES])
    more = found.lost - min(len(found.names), _NAMES)
    return f"{counted(found.lost, 'name')}: {named}" + (f" and {more:,} more" if more else "")


def _not_made(chat: Chat, error: FoldError) -> None:
    why: list[Text] = []
    match error:
        case NothingToFold():
            told = "There is nothing to compact yet."
        case FoldUnderWay():
            told = "A fold is being made already. Wait for it, or cancel it with Esc."
        case FoldCancelled():
            told = "The fold was cancelled."
        case _:
            told = "The fold could not be made."
            why.append(faint(clean(error.what)))
    say(chat, told, *why, faint("The conversation is unchanged."))


async def _made(chat: Chat, done: Compacted) -> None:
    """What the fold came to; the surface has said already that it was made."""
    talk = chat.conversation
    found = await checkpoints(talk.log, talk.name)
    number = next((one.number for one in found if one.fold == done.fold), done.checkpoint)
    removed = f"{counted(done.messages_removed, 'message')} and {done.tokens_removed:,} tokens"
    told = f"Removed from the view: {removed}."
    if number is not None:
        told += f" It is checkpoint {number}."
    path = done.checkpoint_path
    say(chat, told, *([faint(f"Kept in {clean(path)}.")] if path else []))


async def unfold(chat: Chat, typed: str) -> None:
    """Read what lies beneath a fold, and have it seen again if wanted."""
    session = await chat.conversation.session()
    log = chat.conversation.log
    found = await checkpoints(log, session.name) if session else []
    if session is None or not found:
        say(chat, "There is no fold to look beneath.", faint(EMPTY))
        return
    chosen = await _chosen(chat, found, typed)
    if chosen is not None:
        spans = await spans_of_fold(log, session.name, chosen.seq)
        title = f"Beneath fold {chosen.number}: {words(chosen.title, _TITLE)}"
        say(chat, strong(title), faint(facts(chosen)))
        await _read(chat, session, chosen, spans)


async def _chosen(chat: Chat, found: list[Checkpoint], typed: str) -> Checkpoint | None:
    if not typed:
        newest_first = found[::-1]
        rows = [row(one) for one in newest_first]
        at = await chat.surface.pick("Look beneath a fold", rows)
        return None if at is None else newest_first[at]
    number = number_in(typed)
    chosen = next((one for one in found if one.number == number), None)
    if chosen is None:
        say(chat, f"There is no fold {typed!r}: they are numbered 1 to {len(found)}.")
    return chosen


async def _read(chat: Chat, session: Session, chosen: Checkpoint, spans: tuple[Span, ...]) -> None:
    """A page at a time, until the person has seen enough or wants it in the view."""
    start: Cursor | None = None
    outlook = await session.forecast(spans, A_PROMPT, unfold=True)
    while True:
        page = await _page(chat.conversation.log, session.name, spans, start)
        say(chat, *(line for piece in page.pieces for line in _told(piece)))
        start = page.next
        more = ("more",) if start else ()
        if not outlook.fits:
            say(chat, _too_large(chat, chosen), faint(_READ_ON))
            if not more or await chat.surface.ask("Read on?", ("no", *more)) != "more":
                return
            continue
        if outlook.changes:
            say(chat, "Not all of it would be sent as it was said.", *described(outlook))
        question = f"Show the model these {counted(chosen.tokens, 'token')} again?"
        if outlook.changes:
            question = "Show the model this again, shortened so?"
        answer = await chat.surface.ask(question, ("no", *more, "yes"))
        if answer == "yes":
            await _open(chat, session, spans)
        if answer != "more":
            return


def _too_large(chat: Chat, chosen: Checkpoint) -> str:
    status = chat.conversation.status
    window = status.window or status.assumed
    filled = status.filled.total if status.filled else 0
    return (
        f"It does not fit: these {counted(chosen.tokens, 'token')}, beside about {filled:,} that a "
        f"request has now, in a window of {window:,}."
    )


def described(outlook: Forecast) -> list[RenderableType]:
    """What the next request sends of some messages, line by line."""
    sent, everything = outlook.verbatim, len(outlook.messages)
    if not outlook.changes:
        whole = "it" if everything == 1 else f"all {everything:,} messages"
        return [Text(f"The next request sends {whole} as said, word for word.")]
    told: list[RenderableType] = [
        Text(f"The next request sends {sent:,} of {counted(everything, 'message')} as said.")
    ]
    for one in outlook.changes:
        what = counted(one.parts, "part")
        size = f"{one.before:,} → {counted(one.after, 'token')}"
        told.append(faint(f"{what}: {one.disposition.sentence}, {size}"))
    return told


def _told(piece: Piece) -> Iterator[RenderableType]:
    """One message beneath a fold, or as much of it as the page holds."""
    told = piece.entry
    who = f"result of {words(piece.tool, 40)}" if piece.tool else _WHO.get(told.role, told.role)
    cut = piece.start or piece.end < piece.chars
    of = f", characters {piece.start + 1:,} to {piece.end:,} of {piece.chars:,}" if cut else ""
    yield faint(f"entry {told.seq}, {clean(who)}{of}")
    yield quoted(told.text, 2 * _PAGE)


async def _page(log: Log, name: str, spans: tuple[Span, ...], start: Cursor | None) -> Page:
    return await page_of(log, name, spans, chars=_PAGE, start=start)


async def _open(chat: Chat, session: Session, spans: tuple[Span, ...]) -> None:
    await mark(chat.conversation.log, session.name, "unfold", "A fold was opened.")
    for span in spans:
        await session.unfold(span)
    # What is said of it is read from the plan of the request that comes next.
    outlook = await session.forecast(spans, A_PROMPT)
    say(chat, "The fold is open.", *described(outlook), faint("/undo folds it again."))


def row(one: Checkpoint) -> Row:
    """A checkpoint, to be picked."""
    label = f"{one.number}. {words(one.title, _TITLE)}"
    return Row(label, facts(one), clean(shortened(one.text, PREVIEW)))


def facts(one: Checkpoint) -> str:
    """When a checkpoint was made, and what it stands for."""
    said = f"{counted(one.messages, 'message')} · {counted(one.tokens, 'token')}"
    return f"{ago(one.at)} · {said}"


# `/pin`: keep something in the view, folded or not.

_WORDS: Final = 60
_Choice = tuple[PartRef, Row]


async def pin(chat: Chat, typed: str) -> None:
    """Pick a part to keep in the view, or one to let go of; or name an entry."""
    session = await chat.conversation.session()
    found = await seen(chat.conversation)
    if session is None or found is None:
        say(chat, NOTHING_SAID, faint("There is nothing to pin."))
        return
    pinned = found.inputs.outline.pins
    if typed:
        wanted = _of_entry(found, typed)
        if not wanted:
            say(chat, f"No entry {typed!r} is in the view.", faint("/pin alone shows a list."))
            return
    else:
        chosen = await _picked(chat, found)
        if chosen is None:
            return
        wanted = [chosen]
    if all(one in pinned for one in wanted):
        await session.unpin(*wanted)
        say(chat, f"{_named(wanted)} is pinned no longer.", faint("It may be folded now."))
        return
    await session.pin(*wanted)
    told = "It stays in the view whatever is folded; /pin again lets it go."
    say(chat, f"{_named(wanted)} is pinned.", faint(told))


def _named(wanted: list[PartRef]) -> str:
    return f"Entry {wanted[0].seq}"


def _of_entry(found: Seen, typed: str) -> list[PartRef]:
    """The parts of an entry that can be pinned."""
    number = number_in(typed)
    shown = [one.ref for one in parts_shown(found) if one.ref and one.seq == number]
    return shown or [one for one in found.inputs.outline.pins if one.seq == number]


async def _picked(chat: Chat, found: Seen) -> PartRef | None:
    pinned = [_pinned(found, one) for one in found.inputs.outline.pins]
    known = {ref for ref, _ in pinned}
    others = [_other(found, one) for one in reversed(parts_shown(found)) if one.ref]
    rows = [*pinned, *(one for one in others if one[0] not in known)]
    title = f"Pin a part; {counted(len(pinned), 'is pinned', 'are pinned')}" if pinned else "Pin"
    at = await chat.surface.pick(title, [row for _, row in rows])
    return None if at is None else rows[at][0]


def _pinned(found: Seen, ref: PartRef) -> _Choice:
    shape = _shape(found, ref)
    text = shape.text if shape else ""
    by = "pinned by itself" if ref in found.inputs.outline.watched else "pinned"
    who = f"{label(shape)}: " if shape else ""
    detail = f"{by} · entry {ref.seq} · Enter lets it go"
    return ref, Row(f"{who}{words(text, _WORDS)}", detail, clean(shortened(text, PREVIEW)))


def _shape(found: Seen, ref: PartRef) -> Shape | None:
    for entry in found.entries:
        if entry.seq == ref.seq and not entry.forgotten:
            match CODEC.decode(entry):
                case Message(payload):
                    shapes = found.inputs.wire.describe(payload).shapes
                    return shapes[ref.index] if ref.index < len(shapes) else None
                case _:
                    pass
    return None


def _other(found: Seen, one: Shown) -> _Choice:
    assert one.ref is not None  # noqa: S101 - it was chosen for having one
    return one.ref, one.row(found.explanation.window)
