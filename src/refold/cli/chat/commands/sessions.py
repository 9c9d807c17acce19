"""`/sessions`, `/session`, `/fork`: from one session to another, and what this one has."""

from itertools import count
from shlex import quote
from typing import Final

from rich.text import Text

from refold.cli.chat.commands.compact import facts
from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    Values,
    ago,
    clean,
    counted,
    faint,
    number_in,
    quoted,
    say,
    shortened,
    show,
    strong,
    table,
    words,
)
from refold.cli.chat.commands.parts import PREVIEW
from refold.cli.chat.endpoint import Endpoint, endpoint_of, stored_endpoint
from refold.cli.chat.surface import Row, Surface
from refold.errors import InvalidInput, RefoldError, SessionNotFound
from refold.fold.checkpoints import EMPTY, Checkpoint, checkpoints
from refold.integrations.pydantic_ai.sessions import FORMAT
from refold.log import MAIN_SCOPE, Entry, Log, Message, SessionInfo, Span
from refold.recall.text import shapes_of, wire_of

_MOST: Final = 100
"""Sessions in a list; a search finds the others."""
_LOOKED: Final = 2_000
"""Sessions of other programs among which those are looked for."""
_FEW: Final = 12
"""Entries that are looked through for the first words, and for the last."""
_WORDS: Final = 60


async def sessions(chat: Chat, typed: str) -> None:
    """Pick a session and go there."""
    talk = chat.conversation
    chosen = await picked_session(talk.log, chat.surface, typed, talk.name)
    if chosen is not None:
        await _go(chat, chosen)


async def picked_session(
    log: Log, surface: Surface, search: str = "", here: str = ""
) -> str | None:
    """A session that the person picks among those with these words; one of that name is picked."""
    found, others = await own_sessions(log, search, _MOST)
    if any(one.session == search for one in found):
        return search
    for one in others:
        if one.session == search:
            raise refusal(one)
    if not found:
        _none(surface, search, others)
        return None
    rows = [await _row(log, one, here) for one in found]
    title = "Sessions, last used first" + (f": {clean(search)}" if search else "")
    if others:
        title += f" (not listed, as a chat cannot go on with them: {len(others):,})"
    chosen = await surface.pick(title, rows)
    return None if chosen is None else found[chosen].session


async def own_sessions(
    log: Log, search: str, most: int
) -> tuple[list[SessionInfo], list[SessionInfo]]:
    """The newest sessions that a chat can go on with, and the others met on the way."""
    found: list[SessionInfo] = []
    others: list[SessionInfo] = []
    page = None
    while len(found) < most and len(others) < _LOOKED:
        some = await log.sessions(search=search or None, limit=_MOST, page=page)
        for one in some.sessions:
            (found if is_own(one) else others).append(one)
        page = some.next
        if page is None:
            break
    return found[:most], others


def is_own(info: SessionInfo) -> bool:
    """Whether a chat can go on with a session: its messages are in the form that a chat writes."""
    return info.format == FORMAT


def refusal(info: SessionInfo, where: str = "") -> InvalidInput:
    """Why a chat cannot go on with a session, and what can be done with it.

    Args:
        info: The session.
        where: Options that say where it is kept.
    """
    name = f"{quote(info.session)}{where}"
    return InvalidInput(
        f"Session {info.session!r} holds {info.format} messages: a chat cannot go on with it.",
        f"Read it with `refold show {name}`, or write it to a file with `refold export {name}`.",
    )


def session_names(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """The newest sessions."""
    return [
        (one.session, words(one.title or counted(one.messages, "message"), _WORDS))
        for one in chat.known_sessions
        if is_own(one)
    ]


def _none(surface: Surface, typed: str, others: list[SessionInfo]) -> None:
    if others:
        only = counted(len(others), "session")
        show(
            surface,
            f"There is no session that a chat can go on with, only {only} of other programs.",
            faint("`refold sessions` lists them, and `refold show` reads them."),
        )
    elif typed:
        show(surface, f"No session holds {typed!r}.", faint("/sessions alone lists them all."))
    else:
        kept = "This one is kept once you say something."
        show(surface, "There are no sessions yet.", faint(kept))


async def _go(chat: Chat, name: str) -> None:
    """Go to another session, with the model that answers there."""
    talk = chat.conversation
    if name == talk.name:
        say(chat, f"You are in session {name} already.")
        return
    here = endpoint_of(talk.model)
    stored = await stored_endpoint(talk.log, name)
    there = None
    if stored is not None and not stored.same(here):
        try:
            there = talk.model_at(stored)
        except RefoldError as error:
            if not await _agreed_to_another(chat, name, stored, error):
                say(chat, "You stay where you are; nothing changed.")
                return
    await talk.go_to(name, there)
    info = await talk.log.info(name)
    told = f"{counted(info.messages, 'message')}, last used {ago(info.updated_at)}"
    lines = [faint("/sessions goes elsewhere.")]
    if stored is not None and not stored.same(here):
        lines.insert(0, Text(answers_here(endpoint_of(talk.model), stored)))
    say(chat, f"Now in session {words(name, _WORDS)}: {told}.", *lines)
    await chat.show_tail()


async def _agreed_to_another(chat: Chat, name: str, stored: Endpoint, error: RefoldError) -> bool:
    """Whether the session is to be resumed with the model of this one: its own cannot be had."""
    say(
        chat,
        f"Session {words(name, _WORDS)} was answered by {stored}, which cannot be used now.",
        clean(error.what),
        faint(clean(error.fix)),
    )
    now = endpoint_of(chat.conversation.model)
    return await chat.surface.ask(f"Let {now} answer there?", ("no", "yes")) == "yes"


def answers_here(now: Endpoint, before: Endpoint) -> str:
    """Which model answers in a session that is resumed, in one line."""
    if now.same(before):
        return f"{now} answers here, as before."
    return f"{now} answers here from now on. Until now it was {before}."


async def _row(log: Log, info: SessionInfo, here: str) -> Row:
    first = await _spoken(log, info, Span(1, min(_FEW, info.entries)))
    last = await _spoken(log, info, Span(max(1, info.entries - _FEW + 1), info.entries))
    label = words(info.title or (first[0] if first else info.session), _WORDS)
    detail = f"{ago(info.updated_at)} · {counted(info.messages, 'message')}"
    if info.session == here:
        detail += " · you are here"
    preview = [f"Session {info.session}", f"begun {ago(info.created_at)}, profile {info.profile}"]
    preview += [f"\nIt began:\n{first[0]}"] if first else []
    preview += [f"\nLast words:\n{last[-1]}"] if last else []
    return Row(label, detail, clean(shortened("\n".join(preview), PREVIEW)))


async def _spoken(log: Log, info: SessionInfo, span: Span) -> list[str]:
    """What was said there by the person and the model, in words."""
    entries = await log.read(info.session, span)
    wire = wire_of(info.format)
    spoken = [one for one in entries if _is_message(one)]
    return [
        shortened(shape.text, PREVIEW // 3)
        for entry in spoken
        for shape in shapes_of(wire, entry)[1]
        if shape.kind in {"prompt", "text"} and shape.text.strip()
    ]


def _is_message(entry: Entry) -> bool:
    return entry.kind == Message.KIND and not entry.forgotten and entry.scope == MAIN_SCOPE


async def session(chat: Chat, typed: str) -> None:
    """What this session is, and its checkpoints."""
    what, _, rest = typed.partition(" ")
    if what == "checkpoints":
        await _checkpoints(chat, rest.strip())
    elif what:
        say(chat, f"/session takes checkpoints, not {what!r}.")
    else:
        await _facts(chat)


def session_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """What /session takes."""
    return (("checkpoints", "the folds of this session, numbered"),)


async def _facts(chat: Chat) -> None:
    talk = chat.conversation
    if await talk.session() is None:
        say(chat, NOTHING_SAID, faint(f"{talk.status.model} answers, profile {talk.profile.name}."))
        return
    info = await talk.log.info(talk.name)
    rows = [
        ("session", words(info.session, _WORDS)),
        ("title", words(info.title or "none", _WORDS)),
        ("begun", ago(info.created_at)),
        ("last used", ago(info.updated_at)),
        ("the log keeps", f"{counted(info.messages, 'message')}, {info.entries:,} entries"),
        ("profile", talk.profile.name),
        ("model", str(endpoint_of(talk.model))),
    ]
    if info.forked_from:
        rows.append(("fork of", f"{words(info.forked_from, _WORDS)}, entry {info.forked_at}"))
    say(chat, table(rows), faint("/session checkpoints lists its folds."))


async def _checkpoints(chat: Chat, typed: str) -> None:
    talk = chat.conversation
    found = await checkpoints(talk.log, talk.name) if await talk.session() else []
    if not found:
        say(chat, EMPTY)
    elif typed:
        _one(chat, found, typed)
    else:
        head = [strong(name) for name in ("", "title", "when", "messages", "tokens")]
        rows = [head, *([*_cells(one)] for one in found)]
        shown = table(rows, right=(0, 3, 4))
        say(chat, shown, faint("/session checkpoints 1 reads one; /unfold 1 what lies beneath it."))


def _cells(one: Checkpoint) -> tuple[str, str, str, str, str]:
    title = words(one.title, 40)
    return f"{one.number}", title, ago(one.at), f"{one.messages:,}", f"{one.tokens:,}"


def _one(chat: Chat, found: list[Checkpoint], typed: str) -> None:
    number = number_in(typed)
    one = next((one for one in found if one.number == number), None)
    if one is None:
        say(chat, f"There is no checkpoint {typed!r}: they are numbered 1 to {len(found)}.")
        return
    title = f"{one.number}. {words(one.title, _WORDS)}"
    say(chat, strong(title), faint(facts(one)), quoted(one.text, 8_000))


async def fork(chat: Chat, typed: str) -> None:
    """Another session that begins as this one is; go there."""
    here = await chat.conversation.session()
    if here is None:
        say(chat, NOTHING_SAID, faint("There is nothing to fork."))
        return
    name = typed or await _free_name(chat.conversation.log, here.name)
    await here.fork(name)
    await chat.conversation.go_to(name)
    say(
        chat,
        f"Now in session {words(name, _WORDS)}, which begins as {words(here.name, _WORDS)} is.",
        faint("That one stays as it is; /sessions goes back to it."),
    )


async def _free_name(log: Log, name: str) -> str:
    for nth in count(2):
        free = f"{name}-{nth}"
        try:
            await log.head(free)
        except SessionNotFound:
            return free
    raise AssertionError
