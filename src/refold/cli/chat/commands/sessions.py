"""`/sessions`, `/session`, `/fork`: list sessions, switch between them, and describe this one."""

from collections import Counter
from itertools import count
from typing import Final

from rich.text import Text

from refold.cli.chat.commands.compact import facts
from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    PREVIEW,
    Chat,
    Values,
    ago,
    clean,
    faint,
    number_in,
    preview,
    quoted,
    say,
    shortened,
    show,
    strong,
    table,
    words,
)
from refold.cli.chat.endpoint import (
    MAX_LISTED,
    answers_here,
    endpoint_of,
    is_own,
    own_sessions,
    refusal,
    stored_endpoint,
)
from refold.cli.chat.surface import Row, Surface
from refold.errors import RefoldError, SessionNotFound
from refold.fold.checkpoints import EMPTY, Checkpoint, checkpoints
from refold.log import MAIN_SCOPE, Log, Message, SessionInfo, Span
from refold.recall.text import shapes_of, wire_of
from refold.terminal_text import counted

_FEW: Final = 12  # entries that are searched for the first words, and for the last
_WIDTH: Final = 60
_NAME_WIDTH: Final = 20


async def sessions(chat: Chat, typed: str) -> None:
    talk = chat.conversation
    name = await pick_session(talk.log, chat.surface, typed, talk.name)
    if name is not None:
        await _go(chat, name)


async def pick_session(log: Log, surface: Surface, search: str = "", here: str = "") -> str | None:
    """Let the person pick a session; one whose name is `search` is picked at once."""
    own, others = await own_sessions(log, search, MAX_LISTED)
    if any(info.session == search for info in own):
        return search
    for info in others:
        if info.session == search:
            raise refusal(info)
    if not own:
        _show_none(surface, search, others)
        return None
    titles = Counter(info.title or "" for info in own)
    rows = [await _row(log, info, here, unique=titles[info.title or ""] == 1) for info in own]
    title = "Sessions, last used first" + (f": {clean(search)}" if search else "")
    if others:
        title += f" (not listed, as a chat cannot go on with them: {len(others):,})"
    index = await surface.pick(title, rows)
    return None if index is None else own[index].session


def session_names(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - the signature of all
    return [
        (info.session, words(info.title or counted(info.messages, "message"), _WIDTH))
        for info in chat.known_sessions
        if is_own(info)
    ]


def _show_none(surface: Surface, search: str, others: list[SessionInfo]) -> None:
    if others:
        only = counted(len(others), "session")
        show(
            surface,
            f"There is no session that a chat can go on with, only {only} of other programs.",
            faint("`refold sessions` lists them, and `refold show` reads them."),
        )
    elif search:
        show(surface, f"No session holds {search!r}.", faint("/sessions alone lists them all."))
    else:
        hint = "This one is kept once you say something."
        show(surface, "There are no sessions yet.", faint(hint))


async def _row(log: Log, info: SessionInfo, here: str, *, unique: bool) -> Row:
    """A session to pick; where another one has its title, its first words follow the title."""
    first = await _texts(log, info, Span(1, min(_FEW, info.entries)))
    last = await _texts(log, info, Span(max(1, info.entries - _FEW + 1), info.entries))
    opening = first[0] if first else ""
    label = words(info.title or opening or info.session, _WIDTH)
    if info.title and opening and not unique:
        label = words(f"{words(info.title, _WIDTH // 2)}: {opening}", _WIDTH)
    time = "you are here" if info.session == here else ago(info.updated_at)
    name = words(info.session, _NAME_WIDTH)
    detail = f"{name} · {time} · {counted(info.messages, 'message')}"
    lines = [f"Session {info.session}", f"begun {ago(info.created_at)}, profile {info.profile}"]
    lines += [f"\nIt began:\n{first[0]}"] if first else []
    lines += [f"\nLast words:\n{last[-1]}"] if last else []
    return Row(label, detail, preview("\n".join(lines)))


async def _texts(log: Log, info: SessionInfo, span: Span) -> list[str]:
    wire = wire_of(info.format)
    return [
        shortened(shape.text, PREVIEW // 3)
        for entry in await log.read(info.session, span)
        if entry.kind == Message.KIND and not entry.forgotten and entry.scope == MAIN_SCOPE
        for shape in shapes_of(wire, entry)[1]
        if shape.kind in {"prompt", "text"} and shape.text.strip()
    ]


async def _go(chat: Chat, name: str) -> None:
    """Go to another session, with the model that answers there."""
    talk = chat.conversation
    if name == talk.name:
        say(chat, f"You are in session {name} already.")
        return
    here = endpoint_of(talk.model)
    stored = await stored_endpoint(talk.log, name)
    model = None
    if stored is not None and not stored.same(here):
        try:
            model = talk.model_at(stored)
        except RefoldError as error:
            say(
                chat,
                f"Session {words(name, _WIDTH)} was answered by {stored}, which cannot be used "
                "now.",
                clean(error.what),
                faint(clean(error.fix)),
            )
            if await chat.surface.ask(f"Let {here} answer there?", ("no", "yes")) != "yes":
                say(chat, "You stay where you are; nothing changed.")
                return
    await talk.go_to(name, model)
    info = await talk.log.info(name)
    size = f"{counted(info.messages, 'message')}, last used {ago(info.updated_at)}"
    lines = [faint("/sessions goes elsewhere.")]
    if stored is not None and not stored.same(here):
        lines.insert(0, Text(answers_here(endpoint_of(talk.model), stored)))
    say(chat, f"Now in session {words(name, _WIDTH)}: {size}.", *lines)
    await chat.show_tail()


async def session(chat: Chat, typed: str) -> None:
    what, _, rest = typed.partition(" ")
    if what == "checkpoints":
        await _show_checkpoints(chat, rest.strip())
    elif what:
        say(chat, f"/session takes checkpoints, not {what!r}.")
    else:
        await _show_session(chat)


async def _show_session(chat: Chat) -> None:
    talk = chat.conversation
    session = await talk.session()
    if session is None:
        say(chat, NOTHING_SAID, faint(f"{talk.status.model} answers, profile {talk.profile.name}."))
        return
    info = await talk.log.info(talk.name)
    entries = counted(info.entries, "entry", "entries")
    rows = [
        ("session", words(info.session, _WIDTH)),
        ("title", words(info.title or "none", _WIDTH)),
        ("begun", ago(info.created_at)),
        ("last used", ago(info.updated_at)),
        ("the log keeps", f"{counted(info.messages, 'message')}, {entries}"),
        ("profile", talk.profile.name),
        ("model", str(endpoint_of(talk.model))),
    ]
    if session.workspace is not None:
        rows.append(("workspace", clean(str(session.workspace.folder))))
    if info.forked_from:
        rows.append(("fork of", f"{words(info.forked_from, _WIDTH)}, entry {info.forked_at}"))
    say(chat, table(rows), faint("/session checkpoints lists its folds."))


async def _show_checkpoints(chat: Chat, typed: str) -> None:
    talk = chat.conversation
    all_checkpoints = await checkpoints(talk.log, talk.name) if await talk.session() else []
    if not all_checkpoints:
        say(chat, EMPTY)
    elif typed:
        _show_checkpoint(chat, all_checkpoints, typed)
    else:
        head = [strong(name) for name in ("", "title", "when", "messages", "tokens in full")]
        rows = [
            (
                f"{one.number}",
                words(one.title, 40),
                ago(one.at),
                f"{one.messages:,}",
                f"{one.tokens:,}",
            )
            for one in all_checkpoints
        ]
        hint = "/session checkpoints 1 reads one; /unfold 1 what lies beneath it."
        say(chat, table([head, *rows], right=(0, 3, 4)), faint(hint))


def _show_checkpoint(chat: Chat, all_checkpoints: list[Checkpoint], typed: str) -> None:
    number = number_in(typed)
    checkpoint = next((one for one in all_checkpoints if one.number == number), None)
    if checkpoint is None:
        total = len(all_checkpoints)
        say(chat, f"There is no fold {typed!r}: they are numbered 1 to {total}.")
        return
    title = f"{checkpoint.number}. {words(checkpoint.title, _WIDTH)}"
    say(chat, strong(title), faint(facts(checkpoint)), quoted(checkpoint.text, 8_000))


async def fork(chat: Chat, typed: str) -> None:
    here = await chat.conversation.session()
    if here is None:
        say(chat, NOTHING_SAID, faint("There is nothing to fork."))
        return
    name = typed or await _free_name(chat.conversation.log, here.name)
    await here.fork(name)
    await chat.conversation.go_to(name)
    say(
        chat,
        f"Now in session {words(name, _WIDTH)}, which begins as {words(here.name, _WIDTH)} is.",
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
