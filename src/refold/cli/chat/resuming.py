"""Going on with an earlier session."""

from refold.cli.chat.chat import Chat
from refold.cli.chat.commands.sessions import picked_session
from refold.cli.chat.wanted import Wanted
from refold.errors import SessionNotFound
from refold.log import Log, SessionInfo

_SHOWN = 5


async def gone_on_with(chat: Chat, wanted: Wanted) -> None:
    """Go on as the command line says: with a session, with one to pick, or with a new one."""
    if wanted.session is None and wanted.resume:
        name = await picked_session(chat)
    else:
        name = await session_wanted(chat.conversation.log, wanted)
    if name:
        await chat.conversation.go_to(name)
        await chat.show_tail()


async def session_wanted(log: Log, wanted: Wanted) -> str | None:
    """The session that the command line names; the newest where it only says to resume.

    A name may be shortened as long as it is clear. Without `--resume` it may be new.
    """
    if wanted.session is None:
        if not wanted.resume:
            return None
        newest = (await log.sessions(limit=1)).sessions
        if not newest:
            raise SessionNotFound("There is no session to go on with yet.", "Begin: refold chat.")
        return newest[0].session
    return await _named(log, wanted.session, new=not wanted.resume)


async def _named(log: Log, name: str, *, new: bool) -> str:
    try:
        return (await log.info(name)).session
    except SessionNotFound:
        found = [one for one in await _alike(log, name) if one.session.startswith(name)]
    if len(found) == 1 and not new:
        return found[0].session
    if new:
        return name
    names = ", ".join(one.session for one in found[:_SHOWN])
    hint = f"These begin so: {names}." if found else "`refold sessions` lists them."
    raise SessionNotFound(f"There is no session {name!r}.", hint)


async def _alike(log: Log, name: str) -> tuple[SessionInfo, ...]:
    return (await log.sessions(search=name, limit=_SHOWN + 1)).sessions
