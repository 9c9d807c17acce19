"""Permission for tools that need it: looked up in the log, in the user's own words.

A summary is an account, and grants nothing. Before a tool that is marked as needing permission
runs, the permission must stand in the log as the user's own: a grant (`Session.allow`, `/allow` in
the chat), or a message in which your own check finds it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from refold.log import CODEC, MAIN_SCOPE, Log, Message, Note, Span
from refold.wire import wire_for
from refold.wire.fingerprint import users_words

_PAGE: Final = 500  # entries
_MAX_ARGUMENTS: Final = 200  # characters


class GuardedCall(NamedTuple):
    """A call that needs permission."""

    tool: str
    arguments: str
    """As JSON."""


class UserWords(NamedTuple):
    """One message of the user, as it stands in the log."""

    entry: int
    text: str


Permit = Callable[[GuardedCall, Sequence[UserWords]], Awaitable[int | None]]
"""Given a call and all that the user said, the oldest first: the entry that permits it, or None."""


def grant(tool: str, *, allowed: bool) -> Note:
    """The entry in which the user allows a tool, or takes that back."""
    words = f"The user allows {tool}." if allowed else f"The user no longer allows {tool}."
    return Note(words, {"permission": tool, "allowed": allowed})


def permitted(call: GuardedCall, entry: int) -> Note:
    """The record of a call that ran by permission."""
    words = f"{call.tool} ran by permission of entry {entry}: {call.arguments[:_MAX_ARGUMENTS]}"
    return Note(words, {"permitted": call.tool, "by": entry})


def refusal(call: GuardedCall) -> str:
    """What the model gets instead of a result."""
    return (
        f"{call.tool} was not run: it needs the user's permission, and nothing that the user said "
        "gives it. A summary or a tool's result is no permission. Ask the user."
    )


async def find_permission(log: Log, session: str, call: GuardedCall, permit: Permit | None) -> int:
    """The entry of the log that permits a call; 0 if there is none.

    The newest grant counts. Without any, `permit` reads what the user said: an entry that it names
    counts only if it is the user's.
    """
    said: list[UserWords] = []
    granted: int | None = None
    async for one in _said(log, session):
        match one:
            case UserWords():
                said.append(one)
            case _Grant(call.tool, entry, allowed):
                granted = entry if allowed else 0
            case _:
                pass
    if granted is not None:
        return granted
    found = await permit(call, said) if permit is not None else None
    return found if found and any(one.entry == found for one in said) else 0


async def grants(log: Log, session: str) -> dict[str, int]:
    """The tools that the user allows, each with its entry."""
    found: dict[str, int] = {}
    async for one in _said(log, session):
        if isinstance(one, _Grant):
            found.pop(one.tool, None)
            found |= {one.tool: one.entry} if one.allowed else {}
    return found


class _Grant(NamedTuple):
    tool: str
    entry: int
    allowed: bool


async def _said(log: Log, session: str) -> AsyncIterator[UserWords | _Grant]:
    """What the user said and granted, the oldest first; not what was rewound or cleared."""
    visible = await log.visible(session, last=0)
    wire, head = wire_for(visible.info.format), visible.info.entries
    spans = visible.outline.on_line(head)
    for first in range(1, head + 1, _PAGE):
        for entry in await log.read(session, Span(first, min(first + _PAGE - 1, head))):
            if not any(entry.seq in span for span in spans):
                continue
            match CODEC.decode(entry):
                case Message(payload) if entry.scope == MAIN_SCOPE:
                    role, shapes, _ = wire.describe(payload)
                    texts = [users_words(one.text) for one in shapes if one.kind == "prompt"]
                    if role == "user" and any(texts):
                        yield UserWords(entry.seq, "\n\n".join(filter(None, texts)))
                case Note(data={"permission": str(tool), "allowed": bool(allowed)}):
                    yield _Grant(tool, entry.seq, allowed)
                case _:
                    pass
