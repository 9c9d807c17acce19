"""Forget sessions that have not been used for a long time.

A chat calls `retain` when it opens, a service when it starts and every hour. A session that a run
holds is in use, however old its last entry is, and stays. Living forks keep what they read of a
forgotten session.

A session's age is not measured by the clock alone. If a clock jumped forward by a year, everything
would be old, and the sessions would be gone before anybody set it right. So time counts only up to
a day after the newest entry that is at least a day old. Where the store is in daily use, that is
now. After a pause, or a jump, it takes a day of use until the pause counts.
"""

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.checkpoints import forget_files
from refold.log import Log, SessionInfo, Span
from refold.user_files import state_folder, write_whole
from refold.view import Profile

MAX_FORGOTTEN = 20
"""How many sessions are forgotten at once, so that opening a chat does not take long."""
_PAGE = 500
_MAX_ANNOUNCED = 200
_PROOF = timedelta(days=1)
"""Passed time is believed if something was written before and after so long."""
_MAX_SEARCHED = 20
"""Sessions that are read to find an old entry; those used last may all be older than a day."""


def announce(log: Log, profile: Profile, say: Callable[[str], None]) -> None:
    """Say that unused sessions will be deleted, once for each store, profile and number of days.

    The announcement is recorded in the user's state folder; if that cannot be written, it is
    repeated each time.
    """
    place, days = log.locks().place, profile.retention.days
    if not days or place is None:  # what is in memory is gone sooner
        return
    path = state_folder() / "retention.json"
    subject = [str(place), log.tenant, profile.name, days]
    earlier = _announced(path)
    if subject in earlier:
        return
    say(
        f"Sessions of the profile {profile.name} that nobody uses for {days} days are deleted for "
        "good, with every word of them. To keep them: refold config retention.days 0"
    )
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps([*earlier, subject][-_MAX_ANNOUNCED:], indent=2).encode())


def _announced(path: Path) -> list[object]:
    try:
        stored: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return []
    return cast("list[object]", stored) if isinstance(stored, list) else []


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
        forgotten = await log.expire(before, only=expired) if expired else []
        for session in forgotten:
            await forget_files(profile.workspace, log, session)
        return forgotten


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
