"""`/pin`: keep something in the view, folded or not."""

from typing import Final

from refold.cli.chat.commands.parts import PREVIEW, Shown, parts_shown
from refold.cli.chat.commands.saying import (
    NOTHING_SAID,
    clean,
    counted,
    faint,
    number_in,
    say,
    shortened,
    words,
)
from refold.cli.chat.commands.seeing import Seen, seen
from refold.cli.chat.commands.works_on import Chat
from refold.cli.chat.surface import Row
from refold.log import CODEC, Message, PartRef
from refold.recall.telling import label
from refold.wire import Shape

_WORDS: Final = 60
_Choice = tuple[PartRef, Row]


async def pin(chat: Chat, typed: str) -> None:
    """Pick a part to keep in the view, or one to let go of; or name an entry."""
    session = await chat.conversation.session()
    found = await seen(chat.conversation)
    if session is None or found is None:
        say(chat, NOTHING_SAID, faint("There is nothing to pin."))
        return
    pinned = found.sheet.outline.pins
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
    return shown or [one for one in found.sheet.outline.pins if one.seq == number]


async def _picked(chat: Chat, found: Seen) -> PartRef | None:
    pinned = [_pinned(found, one) for one in found.sheet.outline.pins]
    known = {ref for ref, _ in pinned}
    others = [_other(found, one) for one in reversed(parts_shown(found)) if one.ref]
    rows = [*pinned, *(one for one in others if one[0] not in known)]
    title = f"Pin a part; {counted(len(pinned), 'is pinned', 'are pinned')}" if pinned else "Pin"
    at = await chat.surface.pick(title, [row for _, row in rows])
    return None if at is None else rows[at][0]


def _pinned(found: Seen, ref: PartRef) -> _Choice:
    shape = _shape(found, ref)
    text = shape.text if shape else ""
    by = "pinned by itself" if ref in found.sheet.outline.watched else "pinned"
    who = f"{label(shape)}: " if shape else ""
    detail = f"{by} · entry {ref.seq} · Enter lets it go"
    return ref, Row(f"{who}{words(text, _WORDS)}", detail, clean(shortened(text, PREVIEW)))


def _shape(found: Seen, ref: PartRef) -> Shape | None:
    for entry in found.entries:
        if entry.seq == ref.seq and not entry.forgotten:
            match CODEC.decode(entry):
                case Message(payload):
                    shapes = found.sheet.wire.describe(payload).shapes
                    return shapes[ref.index] if ref.index < len(shapes) else None
                case _:
                    pass
    return None


def _other(found: Seen, one: Shown) -> _Choice:
    assert one.ref is not None  # noqa: S101 - it was chosen for having one
    return one.ref, one.row(found.explanation.window)
