"""`/explain`: what would be sent, and why. `/export`: the session as a file. `/board`: facts."""

import re
from pathlib import Path
from typing import Final

from refold.cli.board import consolidation_lines
from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    clean,
    faint,
    fixed,
    number_in,
    say,
    table,
    words,
)
from refold.cli.chat.commands.parts import context_snapshot
from refold.cli.output import colored
from refold.cli.transfer import writing
from refold.errors import InvalidInput
from refold.log import export_session
from refold.memory import Board
from refold.terminal_text import counted
from refold.view.explain import pieces

export_values: Final = fixed(
    ("markdown", "to read, or paste somewhere"),
    ("html", "one page for a browser, folds can be opened"),
    ("json", "one object, for programs"),
    ("jsonl", "every entry byte for byte; `refold import` reads it"),
)
_ENDINGS: Final = {"markdown": "md", "html": "html", "json": "json", "jsonl": "jsonl"}
_FORM_OF: Final = {"md": "markdown", "htm": "html"} | {end: form for form, end in _ENDINGS.items()}
_UNSAFE: Final = re.compile(r"[^\w.-]+")
_MAX_NAME: Final = 80
_NO_BOARD = "This chat has no board."
_HOW = "Begin it without --no-board; an agent of your own has one with Refold(board=…)."
_LATER = "Sessions that begin from now on are told; /board shows it all."


async def explain(chat: Chat, typed: str) -> None:
    if typed not in {"", "all"}:
        say(chat, f"/explain takes all, not {typed!r}.")
        return
    snapshot = await context_snapshot(chat.conversation, every=True)
    if snapshot is None:
        say(chat, NOTHING_SAID, faint("Your first message will be sent as it is."))
        return
    lines = pieces(snapshot.explanation, chat.surface.width, every=typed == "all")
    say(chat, *map(colored, lines))


async def export(chat: Chat, typed: str) -> None:
    """Write the session to a file; an existing one is replaced only after a question."""
    talk = chat.conversation
    if await talk.session() is None:
        say(chat, NOTHING_SAID, faint("There is nothing to export."))
        return
    form, path = _target(typed, talk.name)
    exists = path.exists()
    if exists:
        question = f"There is a file {words(str(path), 50)} already. Replace it?"
        if await chat.surface.ask(question, ("no", "yes")) != "yes":
            say(chat, f"{path} is as it was; nothing was written.")
            return
    if form == "jsonl":
        texts = export_session(talk.log, talk.name)
    else:
        from refold.exports import exported  # noqa: PLC0415 - only exports need it

        texts = exported(talk.log, talk.name, form)
    with writing(str(path), force=exists) as file:
        async for text in texts:
            file.write(text.encode(errors="replace"))
    size = path.stat().st_size
    say(chat, f"Wrote the session as {form} to {path}: {counted(size, 'byte')}.")


def _target(typed: str, session: str) -> tuple[str, Path]:
    """The form and the file; each can be derived from the other."""
    first, _, rest = typed.partition(" ")
    form = _FORM_OF.get(first.lower(), first.lower())
    if form in _ENDINGS:
        name = rest.strip()
    else:
        name, form = typed, _FORM_OF.get(Path(typed).suffix[1:].lower(), "markdown")
    default = f"{_UNSAFE.sub('-', session).strip('-.')[:_MAX_NAME] or 'session'}.{_ENDINGS[form]}"
    try:
        path = Path(name).expanduser() if name else Path(default)
    except RuntimeError:  # nobody has such a home
        who = words(name.partition("/")[0], 40)
        raise InvalidInput(f"There is no home folder {who}.", "Write the path in full.") from None
    return form, path / default if path.is_dir() else path


async def board(chat: Chat, typed: str) -> None:
    board = chat.conversation.board
    if board is None:
        say(chat, _NO_BOARD, faint(_HOW))
        return
    what, _, rest = typed.partition(" ")
    match what:
        case "":
            await _show_board(chat, board)
        case "add":
            fact = await board.add(rest)
            say(chat, f"On the board: {clean(fact.text)}", faint(_LATER))
        case "prune":
            number = number_in(rest)
            if number is None:
                say(chat, "Which one?", faint("/board shows their numbers: /board prune 2."))
                return
            fact = await board.prune(number)
            say(chat, f"No longer on the board: {clean(fact.text)}", faint("The log keeps it."))
        case _:
            say(chat, f"/board takes add or prune, not {clean(what)!r}.")


async def _show_board(chat: Chat, board: Board) -> None:
    facts = (await board.state()).facts
    if not facts:
        how = "/subconscious run fills it from this session, /board add by hand."
        say(chat, f"Nothing is on the board of {clean(board.branch.title)}.", faint(how))
        return
    rows: list[tuple[str, str]] = []
    for fact in facts:
        source = f"  ({clean(fact.session)})" if fact.session is not None else ""
        rows.append((str(fact.number), f"{clean(fact.text)}{source}"))
    title = f"The board of {clean(board.branch.title)}; sessions that begin here are told:"
    say(chat, title, table(rows))


async def subconscious(chat: Chat, typed: str) -> None:
    """Let the model put what is new in this session and worth keeping on the board."""
    if typed not in {"", "run"}:
        say(chat, f"/subconscious takes run, not {clean(typed)!r}.")
        return
    if chat.conversation.board is None:
        say(chat, _NO_BOARD, faint(_HOW))
        return
    if await chat.conversation.session() is None:
        say(chat, NOTHING_SAID, faint("There is nothing to consolidate."))
        return
    result = await chat.conversation.consolidate()
    later = [faint(_LATER)] if result.added or result.pruned else []
    say(chat, *map(clean, consolidation_lines(result)), *later)
