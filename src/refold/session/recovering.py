"""Folds whose process died: finished or closed when a session is opened, and while it is open."""

import asyncio
from typing import TypeAlias
from uuid import UUID

from refold.engine import Ended, Engine
from refold.session.follow import Following

_PATIENCE = 1.0
"""Seconds that who opens a session waits for it."""
_LOOK = 15.0
"""Seconds after which it is looked whether a fold that is still under way has a process."""
_Recovery: TypeAlias = "asyncio.Future[tuple[Ended, ...]]"


class Recovering:
    """Has the folds of one session brought to an end that nobody makes any more."""

    def __init__(self, following: Following, engine: Engine) -> None:
        self._following = following
        self._engine = engine
        self._seen: tuple[UUID | None, float] = (None, 0.0)
        """The fold that was under way at the last look, and when that was."""
        self._under_way: set[_Recovery] = set()
        """So that none is collected as garbage before it has ended."""

    async def recover(self) -> None:
        """Have them finished or closed; who opens a session waits for no model.

        What takes longer goes on while the session is used.
        """
        recovery = self._begun()
        await asyncio.wait({recovery}, timeout=_PATIENCE)
        if recovery.done():
            recovery.result()

    def look(self, running: UUID | None) -> None:
        """Now and then, for a fold of another process may lose it while the session stays open."""
        now = asyncio.get_running_loop().time()
        fold, since = self._seen
        if running != fold:
            self._seen = (running, now)
        elif fold is not None and now - since >= _LOOK:
            self._seen = (fold, now)
            self._begun()

    def _begun(self) -> _Recovery:
        recovery = asyncio.ensure_future(self._engine.recover(self._following.name))
        recovery.add_done_callback(self._let_go)
        self._under_way.add(recovery)
        return recovery

    def _let_go(self, recovery: _Recovery) -> None:
        self._under_way.discard(recovery)
        if not recovery.cancelled():
            recovery.exception()  # the log says how each fold ended, or that it has not
