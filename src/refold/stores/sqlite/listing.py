"""The list of sessions."""

from refold.log.pages import last_shown, page_after
from refold.log.protocol import SessionInfo, SessionPage
from refold.stores.sql import statements
from refold.stores.sqlite.read import info, the_session
from refold.stores.sqlite.rows import MINUTE
from refold.stores.sqlite.search import sessions_with
from refold.stores.sqlite.transaction import Reading

SQL = statements("refold.stores.sqlite", "sql/list.sql")


def sessions(tx: Reading, search: str | None, limit: int, page: str | None) -> SessionPage:
    """A page of the sessions, last used first."""
    updated_at, key = last_shown(page)
    matching = set[int]() if search is None else sessions_with(tx, search)
    rows = tx.db.execute(
        SQL["newest"],
        {"tenant": tx.tenant, "used": updated_at // MINUTE, "updated_at": updated_at, "key": key},
    )
    shown: list[SessionInfo] = []
    last = ""
    for row_key, name, updated in rows:
        if search is None or row_key in matching or name.startswith(search):
            if len(shown) >= limit:
                return SessionPage(tuple(shown), last or None)
            shown.append(info(the_session(tx, name), name))
            last = page_after(updated, row_key)
    return SessionPage(tuple(shown))
