"""The log that a command reads a session of, and what it says when it cannot."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from refold.cli.options import store_at, where_to_look
from refold.errors import SessionForgotten, SessionNotFound, StoreNotFound
from refold.log import Log

_SHOWN = 5


@asynccontextmanager
async def log_to_read(address: str, tenant: str, *, gone: str) -> AsyncGenerator[Log]:
    """The tenant's log; `gone` is what there is to say of a session that was forgotten."""
    try:
        async with store_at(address, create=False) as store:
            log = store.log(tenant)
            try:
                yield log
            except SessionNotFound as error:
                raise SessionNotFound(error.what, await _what_there_is(log)) from error
            except SessionForgotten as error:
                raise SessionForgotten(error.what, gone) from error
    except StoreNotFound as error:
        raise where_to_look(error) from error


async def _what_there_is(log: Log) -> str:
    page = await log.sessions(limit=_SHOWN)
    if not page.sessions:
        return f"Tenant {log.tenant!r} has no sessions here: check --store and --tenant."
    names = ", ".join(repr(info.session) for info in page.sessions)
    return f"Last used here: {names}." if page.next else f"The sessions here: {names}."
