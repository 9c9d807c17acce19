"""Going on with an earlier session."""

from shlex import quote

from refold.cli.chat.commands.sessions import is_own, own_sessions, picked_session, refusal
from refold.cli.chat.surface import Surface
from refold.cli.chat.wanted import Wanted
from refold.cli.options import where_is
from refold.errors import SessionNotFound
from refold.log import DEFAULT_TENANT, Log, SessionInfo

_SHOWN = 5


async def session_to_resume(log: Log, wanted: Wanted, surface: Surface) -> str | None:
    """The session that the command line asks for: one named, one to pick, or None for a new one."""
    if wanted.session is None and wanted.resume:
        return await picked_session(log, surface)
    return await session_wanted(log, wanted)


async def session_wanted(log: Log, wanted: Wanted) -> str | None:
    """The session that the command line names; the newest where it only says to resume.

    A name may be shortened as long as it is clear. Without `--resume` it may be new. A session
    that another program keeps is refused here, rather than at every message.
    """
    if wanted.session is None:
        if not wanted.resume:
            return None
        newest, _ = await own_sessions(log, "", 1)
        if not newest:
            raise SessionNotFound("There is no session to go on with yet.", "Begin: refold chat.")
        return newest[0].session
    found = await _named(log, wanted.session, new=not wanted.resume)
    if found is None:
        return wanted.session
    if not is_own(found):
        raise refusal(found, _where(wanted))
    return found.session


async def _named(log: Log, name: str, *, new: bool) -> SessionInfo | None:
    """The session of that name; None where it may be new."""
    try:
        return await log.info(name)
    except SessionNotFound:
        if new:
            return None
        alike = [one for one in await _alike(log, name) if one.session.startswith(name)]
    found = [one for one in alike if is_own(one)] or alike
    if len(found) == 1:
        return found[0]
    names = ", ".join(one.session for one in found[:_SHOWN])
    hint = f"These begin so: {names}." if found else "`refold sessions` lists them."
    raise SessionNotFound(f"There is no session {name!r}.", hint)


def come_back(name: str, wanted: Wanted) -> str:
    """The command that resumes a session as it was left; its model is kept with the session."""
    options = [
        *(("--agent", wanted.agent) if wanted.agent else ()),
        *(("--mcp", str(wanted.mcp)) if wanted.mcp else ()),
        *(("--files", str(wanted.files)) if wanted.files else ()),
        *(("--profile", wanted.profile) if wanted.profile else ()),
        *(() if wanted.board else ("--no-board",)),
    ]
    given = _where(wanted) + "".join(f" {quote(one)}" for one in options)
    if name.startswith("-"):  # it would be read as an option
        return f"refold chat --resume{given} -- {quote(name)}"
    return f"refold chat --resume {quote(name)}{given}"


def _where(wanted: Wanted) -> str:
    """The options that lead another command to the same sessions."""
    store = "" if wanted.store == where_is("") else f" --store {quote(wanted.store)}"
    return store + ("" if wanted.tenant == DEFAULT_TENANT else f" --tenant {quote(wanted.tenant)}")


async def _alike(log: Log, name: str) -> tuple[SessionInfo, ...]:
    return (await log.sessions(search=name, limit=_SHOWN + 1)).sessions
