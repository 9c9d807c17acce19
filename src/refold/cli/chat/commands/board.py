"""`/board` and `/subconscious`: what later sessions on this branch will be told."""

from refold.cli.board import told
from refold.cli.chat.commands.saying import (
    NOTHING_SAID,
    clean,
    faint,
    number_in,
    say,
    table,
)
from refold.cli.chat.commands.works_on import Chat, Values
from refold.memory import Board, Fact

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
    say(chat, *map(clean, told(done)), *([faint(_LATER)] if done.added or done.pruned else []))


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
