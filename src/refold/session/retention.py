"""Forgetting, by itself, the sessions that nobody has used for long.

A chat calls `retain` when it opens. A session that a run holds is in use, however long ago its
last entry was written, and stays. What living forks read of a session that goes stays for them.

A session's age is not measured by the clock alone. A clock that jumped forward by a year would make
everything old, and the sessions would be gone before anybody set it right. So time counts only as
far as something was written: up to a day after the newest entry that is at least a day old. Where
the store is in daily use, that is now. After a pause, or a jump, it takes a day of use until the
pause counts.
"""

from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Log, SessionInfo, Span
from refold.view import Profile

MAX_FORGOTTEN = 20
"""How many sessions go at once: who opens a chat does not wait for the rest."""
_PAGE = 500
_PROOF = timedelta(days=1)
"""Time that has passed is believed when something was written before and after so long."""
_MAX_SEARCHED = 20
"""Sessions that are read to find an old entry; those used last may all be older than a day."""


async def retain(
    log: Log, profile: Profile, *, now: datetime, keep: Collection[str] = ()
) -> list[str]:
    """Forget sessions of this profile not used for longer than it says, the oldest first.

    Sessions that were begun by another profile stay: trying one out costs nobody their past.

    Args:
        log: Where the sessions are.
        profile: Says for how many days.
        now: What time it is; it must know its time zone. Where it is far after the newest entries,
            the age of a session is measured up to these.
        keep: Sessions that are in use here.

    Returns:
        The names of the sessions that are forgotten now.
    """
    days = profile.retention.days
    if not days:
        return []
    sessions = await _sessions(log)
    before = await _expiry(log, sessions, now, timedelta(days=days))
    old = [one for one in sessions if one.updated_at < before and one.profile == profile.name]
    going: list[str] = []
    async with AsyncExitStack() as held:
        for one in sorted(old, key=lambda one: one.updated_at):
            if len(going) == MAX_FORGOTTEN:
                break
            if one.session not in keep and await _take(held, log, one.session):
                going.append(one.session)
        return await log.expire(before, only=going) if going else []


async def _sessions(log: Log) -> list[SessionInfo]:
    """All sessions, last used first."""
    found: list[SessionInfo] = []
    page = None
    while True:
        some = await log.sessions(limit=_PAGE, page=page)
        found += some.sessions
        if (page := some.next) is None:
            return found


async def _expiry(log: Log, sessions: Sequence[SessionInfo], now: datetime, age: timedelta) -> int:
    """Sessions not used since then are too old. Milliseconds since 1970."""
    proof = min(_PROOF, age / 2)
    settled = _milliseconds(now - proof)
    newest = max((one.updated_at for one in sessions if one.updated_at <= settled), default=0)
    recent = [one for one in sessions if one.updated_at > settled]
    for one in recent[:_MAX_SEARCHED]:
        newest = max(newest, await _newest_until(log, one, settled))
    return newest + _milliseconds(proof) - _milliseconds(age)


async def _newest_until(log: Log, info: SessionInfo, settled: int) -> int:
    """When the newest entry of a session was written that is not younger; 0 if there is none."""
    found, first, last = 0, 1, info.entries
    while first <= last:
        middle = (first + last) // 2
        try:
            [entry] = await log.read(info.session, Span(middle, middle), whole=False)
        except (SessionForgotten, SessionNotFound):  # by another, since it was listed
            return found
        if entry.at <= settled:
            found, first = max(found, entry.at), middle + 1
        else:
            last = middle - 1
    return found


def _milliseconds(time: datetime | timedelta) -> int:
    seconds = time.total_seconds() if isinstance(time, timedelta) else time.timestamp()
    return int(seconds * 1000)


async def _take(held: AsyncExitStack, log: Log, session: str) -> bool:
    """Whether no run has the session; none can have it then until all is done."""
    try:
        lock = await log.locks("turn").take(session)
    except (SessionForgotten, SessionNotFound):  # by another, since it was listed
        return True
    if lock is not None:
        held.callback(lock.release)
    return lock is not None
