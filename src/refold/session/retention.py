"""Forget sessions that have not been used for a long time.

A chat calls `retain` when it opens. A session that a run holds is in use, however old its last
entry is, and stays. Living forks keep what they read of a forgotten session.

A session's age is not measured by the clock alone. If a clock jumped forward by a year, everything
would be old, and the sessions would be gone before anybody set it right. So time counts only up to
a day after the newest entry that is at least a day old. Where the store is in daily use, that is
now. After a pause, or a jump, it takes a day of use until the pause counts.
"""

from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Log, SessionInfo, Span
from refold.view import Profile

MAX_FORGOTTEN = 20
"""How many sessions are forgotten at once, so that opening a chat does not take long."""
_PAGE = 500
_PROOF = timedelta(days=1)
"""Passed time is believed if something was written before and after so long."""
_MAX_SEARCHED = 20
"""Sessions that are read to find an old entry; those used last may all be older than a day."""


async def retain(
    log: Log, profile: Profile, *, now: datetime, keep: Collection[str] = ()
) -> list[str]:
    """Forget sessions of this profile that were not used for longer than it says, oldest first.

    Sessions that were begun with another profile stay: trying one out costs nobody their past.

    Args:
        log: The log that holds the sessions.
        profile: Says for how many days unused sessions are kept.
        now: The time, with its time zone. If it is far after the newest entries, the age of a
            session is measured up to these.
        keep: Sessions that are in use here.

    Returns:
        The names of the forgotten sessions.
    """
    days = profile.retention.days
    if not days:
        return []
    sessions: list[SessionInfo] = []
    page = None
    while True:
        listed = await log.sessions(limit=_PAGE, page=page)
        sessions += listed.sessions
        if (page := listed.next) is None:
            break
    before = await _expiry(log, sessions, now, timedelta(days=days))
    old = [x for x in sessions if x.updated_at < before and x.profile == profile.name]
    expired: list[str] = []
    async with AsyncExitStack() as locks:
        for info in sorted(old, key=lambda info: info.updated_at):
            if len(expired) == MAX_FORGOTTEN:
                break
            if info.session not in keep and await _lock(locks, log, info.session):
                expired.append(info.session)
        return await log.expire(before, only=expired) if expired else []


async def _expiry(log: Log, sessions: Sequence[SessionInfo], now: datetime, age: timedelta) -> int:
    """The time before which a session's last use is too old, in milliseconds since 1970."""
    proof = min(_PROOF, age / 2)
    settled = int((now - proof).timestamp() * 1000)
    newest = max((x.updated_at for x in sessions if x.updated_at <= settled), default=0)
    recent = [info for info in sessions if info.updated_at > settled]
    for info in recent[:_MAX_SEARCHED]:
        newest = max(newest, await _newest_until(log, info, settled))
    milliseconds = timedelta(milliseconds=1)
    return newest + proof // milliseconds - age // milliseconds


async def _newest_until(log: Log, info: SessionInfo, settled: int) -> int:
    """When the newest entry up to a time was written; 0 if there is none."""
    newest, first, last = 0, 1, info.entries
    while first <= last:
        middle = (first + last) // 2
        try:
            [entry] = await log.read(info.session, Span(middle, middle), whole=False)
        except (SessionForgotten, SessionNotFound):  # by another process, since it was listed
            return newest
        if entry.at <= settled:
            newest, first = max(newest, entry.at), middle + 1
        else:
            last = middle - 1
    return newest


async def _lock(locks: AsyncExitStack, log: Log, session: str) -> bool:
    """Keep runs from taking the session until all is done; False if one has it."""
    try:
        lock = await log.locks("turn").take(session)
    except (SessionForgotten, SessionNotFound):  # by another process, since it was listed
        return True
    if lock is not None:
        locks.callback(lock.release)
    return lock is not None
