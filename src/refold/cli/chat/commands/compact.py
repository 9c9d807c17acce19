"""`/compact`: fold now, after a preview. `/unfold`: read a fold's messages. `/pin`: keep a part."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    ago,
    clean,
    dollars,
    faint,
    number_in,
    preview,
    quoted,
    say,
    strong,
    table,
    words,
)
from refold.cli.chat.commands.parts import (
    A_PROMPT,
    ContextSnapshot,
    context_snapshot,
    forecast_lines,
    sent_parts,
)
from refold.cli.chat.commands.undo import mark
from refold.cli.chat.surface import Row
from refold.cli.output import STYLES
from refold.errors import FoldCancelled, FoldError, FoldUnderWay, NothingToFold
from refold.fold.checkpoints import Checkpoint, checkpoints
from refold.fold.compactor import Preview
from refold.fold.summary import Offer
from refold.log import CODEC, Message, PartRef, Span
from refold.recall.text import label
from refold.recall.unfold import Cursor, Piece, spans_of_fold
from refold.recall.unfold import unfold as page_of
from refold.session import Compacted, Session
from refold.session.explain import Needed
from refold.terminal_text import counted
from refold.wire import Shape

_PAGE: Final = 4_000  # characters of a fold's messages that are shown at once
_MAX_NAMES: Final = 8
_WIDTH: Final = 60
_READ_ON: Final = (
    "It stays folded. You can read it here, and the model can with its recall tools; /pin keeps "
    "single messages in view."
)
_NEEDED: Final = {
    "spans": "tokens for these messages",
    "others": "for all else that is sent",
    "reserve": "kept for the answer",
    "margin": "in case we count too low",
    "above": "above your limit",
}
_NO_FOLD: Final = "A fold is made when the window fills up, or by /compact."
_SPEAKERS: Final = {"user": "you", "assistant": "the model"}


async def compact(chat: Chat, typed: str) -> None:
    """Preview, ask, fold, report. If anything fails, the conversation is unchanged."""
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("There is nothing to compact."))
        return
    try:
        if not await _confirm(chat, session):
            return
        result = await chat.conversation.compact(typed or None)
    except FoldError as error:
        _show_failure(chat, error)
        return
    await _show_result(chat, result)


async def _confirm(chat: Chat, session: Session) -> bool:
    if session.folding:
        raise FoldUnderWay("A fold of this session is being made.")
    while True:
        fold = await session.preview()
        _show_preview(chat, fold)
        head = session.head
        if fold.freed > 0:
            answer = await chat.surface.ask("Fold now?", ("yes", "no"))
        else:
            answer = await chat.surface.ask("Fold anyway?", ("no", "yes"))
        if answer != "yes":
            say(chat, "Nothing was folded; the conversation is as it was.")
            return False
        await session.catch_up()
        if session.head == head:
            return True
        say(chat, "The conversation changed while you were asked, in another terminal. Look again:")


def _show_preview(chat: Chat, fold: Preview) -> None:
    tokens = f"{fold.request_before:,} now → about {fold.request_after:,} then"
    rows = [
        ("goes", f"{_messages(fold.messages, fold.folded)}, into one summary"),
        ("stays", f"{counted(fold.kept, 'message')} as they are"),
        ("tokens", f"{tokens}, in the next request"),
        ("a request costs", _cost(fold)),
    ]
    rows += [("folding costs", fold.price_text)] if fold.price_text else []
    rows += [("written by", writer)] if (writer := _writer(chat, fold)) else []
    if fold.lost:
        names = ", ".join(words(name, 40) for name in fold.names[:_MAX_NAMES])
        more = fold.lost - min(len(fold.names), _MAX_NAMES)
        rest = f" and {more:,} more" if more else ""
        rows.append(("in the log only", f"{counted(fold.lost, 'name')}: {names}{rest}"))
    say(
        chat,
        strong("This fold would do the following:"),
        table(rows),
        *([] if fold.freed > 0 else [_no_gain(fold)]),
        faint("Nothing is deleted: the log keeps every word, and /undo takes the fold back."),
    )


def _messages(total: int, folded: int) -> str:
    earlier = f" ({folded:,} of them folded before)" if folded else ""
    return f"{counted(total, 'message')}{earlier}"


def _no_gain(fold: Preview) -> Text:
    why = f"the summary takes {counted(-fold.freed, 'token')} more than what it replaces"
    why = why if fold.freed else "the summary is as long as what it replaces"
    return Text(f"This fold does not make the request smaller: {why}.", STYLES["cut"])


def _writer(chat: Chat, fold: Preview) -> str:
    """Who writes the summary, how, and for how much; empty if another process decides that."""
    if fold.by_log:
        return "the log, without a model"
    if not fold.offers:
        return ""
    first, *others = fold.offers
    own = chat.conversation.model.model_id
    text = f"{first.model} {_way(first, own)}, {_price(first)}"
    if not others:
        return text
    second = others[0]
    model = "" if second.model == first.model else f"{second.model} "
    price = "" if first.dollars is second.dollars is None else f", {_price(second)}"
    return f"{text}; if that fails, {model}{_way(second, own)}{price}"


def _way(offer: Offer, own: str) -> str:
    cheaper = offer.how == "transcript" and offer.model != own
    return f"(a cheaper model) {offer.way}" if cheaper else offer.way


def _price(offer: Offer) -> str:
    return "price unknown" if offer.dollars is None else f"about {dollars(offer.dollars)}"


def _cost(fold: Preview) -> str:
    if fold.cost_before is None or fold.cost_after is None:
        return "unknown: no price is known for this model"
    once = f" (the first one {dollars(fold.cost_once)})" if fold.cost_once is not None else ""
    return f"{dollars(fold.cost_before)} now → {dollars(fold.cost_after)} then{once}"


def _show_failure(chat: Chat, error: FoldError) -> None:
    details: list[Text] = []
    match error:
        case NothingToFold():
            what = "There is nothing to compact yet."
            details.append(faint(clean(error.what)))
        case FoldUnderWay():
            what = "A fold is being made already. Wait for it, or cancel it with Esc."
        case FoldCancelled():
            what = "The fold was canceled."
        case _:
            what = "The fold could not be made."
            details.append(faint(clean(error.what)))
    say(chat, what, *details, faint("The conversation is unchanged."))


async def _show_result(chat: Chat, result: Compacted) -> None:
    """What the fold removed; the surface has announced already that it was made."""
    talk = chat.conversation
    all_checkpoints = await checkpoints(talk.log, talk.name)
    numbers = (one.number for one in all_checkpoints if one.fold == result.fold)
    number = next(numbers, result.checkpoint)
    messages = _messages(result.messages_removed, result.folded)
    tokens, less = result.tokens_removed, "less" if result.tokens_removed >= 0 else "more"
    name = f" as fold {number}" if number is not None else ""
    size = f"{counted(abs(tokens), 'token')} {less}"
    what = f"Folded {messages}{name}. The next request has {size}."
    path = result.checkpoint_path
    say(chat, what, *([faint(f"Kept in {clean(path)}.")] if path else []))


async def unfold(chat: Chat, typed: str) -> None:
    session = await chat.conversation.session()
    log = chat.conversation.log
    all_checkpoints = await checkpoints(log, session.name) if session else []
    if session is None or not all_checkpoints:
        say(chat, "There is no fold to look beneath.", faint(_NO_FOLD))
        return
    checkpoint = await _choose_checkpoint(chat, all_checkpoints, typed)
    if checkpoint is not None:
        spans = await spans_of_fold(log, session.name, checkpoint.seq)
        title = f"Beneath fold {checkpoint.number}: {words(checkpoint.title, _WIDTH)}"
        say(chat, strong(title), faint(facts(checkpoint)))
        await _read_fold(chat, session, checkpoint, spans)


async def _choose_checkpoint(
    chat: Chat, all_checkpoints: list[Checkpoint], typed: str
) -> Checkpoint | None:
    if not typed:
        newest_first = all_checkpoints[::-1]
        rows = [
            Row(f"fold {one.number}: {words(one.title, _WIDTH)}", facts(one), preview(one.text))
            for one in newest_first
        ]
        index = await chat.surface.pick("Look beneath a fold", rows)
        return None if index is None else newest_first[index]
    number = number_in(typed)
    checkpoint = next((one for one in all_checkpoints if one.number == number), None)
    if checkpoint is None:
        total = len(all_checkpoints)
        say(chat, f"There is no fold {typed!r}: they are numbered 1 to {total}.")
    return checkpoint


def facts(checkpoint: Checkpoint) -> str:
    size = f"{counted(checkpoint.messages, 'message')} · {counted(checkpoint.tokens, 'token')}"
    return f"{ago(checkpoint.at)} · {size} in full"


async def _read_fold(
    chat: Chat, session: Session, checkpoint: Checkpoint, spans: tuple[Span, ...]
) -> None:
    """Show a page at a time, until the person has read enough or unfolds it."""
    start: Cursor | None = None
    forecast = await session.forecast(spans, A_PROMPT, unfold=True)
    log = chat.conversation.log
    while True:
        page = await page_of(log, session.name, spans, chars=_PAGE, start=start)
        say(chat, *(line for piece in page.pieces for line in _message_lines(piece)))
        start = page.next
        more = ("more",) if start else ()
        if not forecast.fits:
            say(chat, _too_large(chat, forecast.needed), faint(_READ_ON))
            if not more or await chat.surface.ask("Read on?", ("no", *more)) != "more":
                return
            continue
        question = f"Show the model these {counted(checkpoint.tokens, 'token')} again?"
        if forecast.changes:
            say(chat, "Not all of it would be sent as it was said.", *forecast_lines(forecast))
            question = "Show the model this again, shortened so?"
        answer = await chat.surface.ask(question, ("no", *more, "yes"))
        if answer == "yes":
            await _open_fold(chat, session, spans)
        if answer != "more":
            return


def _too_large(chat: Chat, needed: Needed) -> str:
    """The whole sum, so that it can be added up."""
    sizes = needed._asdict()
    window = sizes.pop("window")
    whole = sum(sizes.values())
    if whole <= window:  # what must stay leaves no place for it
        return "It does not fit beside what must stay."
    first, *others = (f"{sizes[name]:,} {what}" for name, what in _NEEDED.items() if sizes[name])
    parts = " and ".join([", ".join([first, *others[:-1]]), *others[-1:]])
    assumed = "" if chat.conversation.status.window else " (assumed)"
    return f"It does not fit: {parts} make {whole:,}, in a window of {window:,}{assumed}."


def _message_lines(piece: Piece) -> Iterator[RenderableType]:
    message = piece.entry
    speaker = _SPEAKERS.get(message.role, message.role)
    who = f"result of {words(piece.tool, 40)}" if piece.tool else speaker
    cut = piece.start or piece.end < piece.chars
    of = f", characters {piece.start + 1:,} to {piece.end:,} of {piece.chars:,}" if cut else ""
    yield faint(f"entry {message.seq}, {clean(who)}{of}")
    yield quoted(message.text, 2 * _PAGE)


async def _open_fold(chat: Chat, session: Session, spans: tuple[Span, ...]) -> None:
    await mark(chat.conversation.log, session.name, "unfold", "A fold was opened.")
    for span in spans:
        await session.unfold(span)
    # The report describes the plan of the next request.
    forecast = await session.forecast(spans, A_PROMPT)
    say(chat, "The fold is open.", *forecast_lines(forecast), faint("/undo folds it again."))


async def pin(chat: Chat, typed: str) -> None:
    """Pick or name a part to keep in the context, or one to let go of."""
    session = await chat.conversation.session()
    snapshot = await context_snapshot(chat.conversation)
    if session is None or snapshot is None:
        say(chat, NOTHING_SAID, faint("There is nothing to pin."))
        return
    pins = snapshot.inputs.outline.pins
    if typed:
        number = number_in(typed)
        refs = [part.ref for part in sent_parts(snapshot) if part.ref and part.seq == number]
        refs = refs or [ref for ref in pins if ref.seq == number]
        if not refs:
            say(chat, f"No entry {typed!r} is in the view.", faint("/pin alone shows a list."))
            return
    else:
        ref = await _pick_part(chat, snapshot)
        if ref is None:
            return
        refs = [ref]
    entry = f"Entry {refs[0].seq}"
    if all(ref in pins for ref in refs):
        await session.unpin(*refs)
        say(chat, f"{entry} is pinned no longer.", faint("It may be folded now."))
        return
    await session.pin(*refs)
    stays = "It stays in the view whatever is folded; /pin again lets it go."
    say(chat, f"{entry} is pinned.", faint(stays))


async def _pick_part(chat: Chat, snapshot: ContextSnapshot) -> PartRef | None:
    """Pinned parts first, then the others, the newest first."""
    choices = {ref: _pinned_row(snapshot, ref) for ref in snapshot.inputs.outline.pins}
    count = len(choices)
    for part in reversed(sent_parts(snapshot)):
        if part.ref:
            choices.setdefault(part.ref, part.row(snapshot.explanation.window))
    title = f"Pin a part; {counted(count, 'is pinned', 'are pinned')}" if count else "Pin"
    index = await chat.surface.pick(title, [*choices.values()])
    return None if index is None else [*choices][index]


def _pinned_row(snapshot: ContextSnapshot, ref: PartRef) -> Row:
    shape = _shape(snapshot, ref)
    text = shape.text if shape else ""
    by = "pinned by itself" if ref in snapshot.inputs.outline.watched else "pinned"
    who = f"{label(shape)}: " if shape else ""
    detail = f"{by} · entry {ref.seq} · Enter lets it go"
    return Row(f"{who}{words(text, _WIDTH)}", detail, preview(text))


def _shape(snapshot: ContextSnapshot, ref: PartRef) -> Shape | None:
    for entry in snapshot.entries:
        if entry.seq == ref.seq and not entry.forgotten:
            match CODEC.decode(entry):
                case Message(payload):
                    shapes = snapshot.inputs.wire.describe(payload).shapes
                    return shapes[ref.index] if ref.index < len(shapes) else None
                case _:
                    pass
    return None
