"""Forgetting, by itself, the sessions that nobody has used for long.

A chat calls `retain` when it opens. A session that a run holds is in use, however long ago its
last entry was written, and stays. What living forks read of a session that goes stays for them.
"""

from collections.abc import Collection
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Log, SessionInfo
from refold.view import Profile

MOST = 20
"""How many sessions go at once: who opens a chat does not wait for the rest."""
_PAGE = 500


async def retain(
    log: Log, profile: Profile, *, now: datetime, keep: Collection[str] = ()
) -> list[str]:
    """Forget sessions of this profile not used for longer than it says, the oldest first.

    Sessions that were begun by another profile stay: trying one out costs nobody their past.

    Args:
        log: Where the sessions are.
        profile: Says for how many days.
        now: What time it is; it must know its time zone.
        keep: Sessions that are in use here.

    Returns:
        The names of the sessions that are forgotten now.
    """
    days = profile.retention.days
    if not days:
        return []
    before = int((now - timedelta(days=days)).timestamp() * 1000)
    old = [one for one in await _unused(log, before) if one.profile == profile.name]
    going: list[str] = []
    async with AsyncExitStack() as held:
        for one in sorted(old, key=lambda one: one.updated_at):
            if len(going) == MOST:
                break
            if one.session not in keep and await _take(held, log, one.session):
                going.append(one.session)
        return await log.expire(before, only=going) if going else []


async def _unused(log: Log, before: int) -> list[SessionInfo]:
    found: list[SessionInfo] = []
    page = None
    while True:
        some = await log.sessions(limit=_PAGE, page=page)
        found += [one for one in some.sessions if one.updated_at < before]
        if (page := some.next) is None:
            return found


async def _take(held: AsyncExitStack, log: Log, session: str) -> bool:
    """Whether no run has the session; none can have it then until all is done."""
    try:
        lock = await log.locks("turn").take(session)
    except (SessionForgotten, SessionNotFound):  # by another, since it was listed
        return True
    if lock is not None:
        held.callback(lock.release)
    return lock is not None
