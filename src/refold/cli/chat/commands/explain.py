"""`/explain`: what would be sent, and why. `/export`: the session as a file."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from refold.cli.board import consolidation_lines
from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    Values,
    clean,
    counted,
    faint,
    number_in,
    say,
    table,
    words,
)
from refold.cli.chat.commands.parts import seen
from refold.cli.output import colored
from refold.cli.transfer import writing
from refold.errors import InvalidInput
from refold.log import Log, export_session
from refold.memory import Board, Fact
from refold.view.explain import pieces

_ENDINGS: Final = {"markdown": "md", "html": "html", "json": "json", "jsonl": "jsonl"}
_ABOUT: Final = {
    "markdown": "to read, or paste somewhere",
    "html": "one page for a browser, folds can be opened",
    "json": "one object, for programs",
    "jsonl": "every entry byte for byte; `refold import` reads it",
}
_FORMS: Final = {"md": "markdown", "htm": "html"} | {end: one for one, end in _ENDINGS.items()}
_UNSAFE: Final = re.compile(r"[^\w.-]+")
_NAME: Final = 80


async def explain(chat: Chat, typed: str) -> None:
    """What the next request would send, and why each part is in it or not."""
    if typed not in {"", "all"}:
        say(chat, f"/explain takes all, not {typed!r}.")
        return
    found = await seen(chat.conversation, every=True)
    if found is None:
        say(chat, NOTHING_SAID, faint("Your first message will be sent as it is."))
        return
    lines = pieces(found.explanation, chat.surface.width, every=typed == "all")
    say(chat, *map(colored, lines))


def explain_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """What /explain takes."""
    return (("all", "every part on a line of its own"),)


async def export(chat: Chat, typed: str) -> None:
    """Write the session to a file; one that is there is not replaced unasked."""
    talk = chat.conversation
    if await talk.session() is None:
        say(chat, NOTHING_SAID, faint("There is nothing to export."))
        return
    form, path = _wanted(typed, talk.name)
    replaced = path.exists()
    if replaced and not await _agreed(chat, path):
        say(chat, f"{path} is as it was; nothing was written.")
        return
    with writing(str(path), force=replaced) as file:
        async for text in _written(talk.log, talk.name, form):
            file.write(text.encode(errors="replace"))
    size = path.stat().st_size
    say(chat, f"Wrote the session as {form} to {path}: {counted(size, 'byte')}.")


def export_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """The forms of a session."""
    return [*_ABOUT.items()]


def _wanted(typed: str, session: str) -> tuple[str, Path]:
    """The form and the file; either tells the other."""
    first, _, rest = typed.partition(" ")
    form = _FORMS.get(first.lower(), first.lower())
    if form in _ENDINGS:
        name = rest.strip()
    else:
        name, form = typed, _FORMS.get(Path(typed).suffix[1:].lower(), "markdown")
    own = f"{_UNSAFE.sub('-', session).strip('-.')[:_NAME] or 'session'}.{_ENDINGS[form]}"
    path = _path(name) if name else Path(own)
    return form, path / own if path.is_dir() else path


def _path(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # nobody has such a home
        who = words(name.partition("/")[0], 40)
        raise InvalidInput(f"There is no home folder {who}.", "Write the path in full.") from None


async def _agreed(chat: Chat, path: Path) -> bool:
    question = f"There is a file {words(str(path), 50)} already. Replace it?"
    return await chat.surface.ask(question, ("no", "yes")) == "yes"


def _written(log: Log, session: str, form: str) -> AsyncIterator[str]:
    if form == "jsonl":
        return export_session(log, session)
    from refold.exports import exported  # noqa: PLC0415 - only who exports needs it

    return exported(log, session, form)


# `/board` and `/subconscious`: what later sessions on this branch will be told.

_NO_BOARD = "This chat has no board."
_HOW = "Begin it without --no-board; an agent of your own has one with Refold(board=…)."
_LATER = "Sessions that begin from now on are told; /board shows it all."


async def board(chat: Chat, typed: str) -> None:
    """Show the board, put a fact on it, or take one away."""
    found = chat.conversation.board
    if found is None:
        say(chat, _NO_BOARD, faint(_HOW))
        return
    what, _, rest = typed.partition(" ")
    match what:
        case "":
            await _show(chat, found)
        case "add":
            fact = await found.add(rest)
            say(chat, f"On the board: {clean(fact.text)}", faint(_LATER))
        case "prune":
            await _prune(chat, found, rest)
        case _:
            say(chat, f"/board takes add or prune, not {clean(what)!r}.")


def board_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """What can be done with it."""
    return (("add", "put a fact there"), ("prune", "take one away, by its number"))


async def subconscious(chat: Chat, typed: str) -> None:
    """Have the model read what is new in this session, and put what is worth it on the board."""
    if typed not in {"", "run"}:
        say(chat, f"/subconscious takes run, not {clean(typed)!r}.")
        return
    if chat.conversation.board is None:
        say(chat, _NO_BOARD, faint(_HOW))
        return
    if await chat.conversation.session() is None:
        say(chat, NOTHING_SAID, faint("There is nothing to consolidate."))
        return
    done = await chat.conversation.consolidate()
    say(
        chat,
        *map(clean, consolidation_lines(done)),
        *([faint(_LATER)] if done.added or done.pruned else []),
    )


async def _show(chat: Chat, found: Board) -> None:
    facts = (await found.stand()).facts
    if not facts:
        said = "/subconscious run fills it from this session, /board add by hand."
        say(chat, f"Nothing is on the board of {clean(found.branch.title)}.", faint(said))
        return
    say(
        chat,
        f"The board of {clean(found.branch.title)}; sessions that begin here are told:",
        table((str(one.number), f"{clean(one.text)}{_whose(one)}") for one in facts),
    )


def _whose(fact: Fact) -> str:
    return f"  ({clean(fact.session)})" if fact.session is not None else ""


async def _prune(chat: Chat, found: Board, typed: str) -> None:
    number = number_in(typed)
    if number is None:
        say(chat, "Which one?", faint("/board shows their numbers: /board prune 2."))
        return
    fact = await found.prune(number)
    say(chat, f"No longer on the board: {clean(fact.text)}", faint("The log keeps it."))
