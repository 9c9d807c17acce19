"""A store that can be away: calls hang, as with a server that does not answer."""

import asyncio

from refold.stores import MemoryStore

BOUNDED = ("append", "marked", "head", "info", "read", "visible", "outlined", "fork")


class AbsentStore(MemoryStore):
    """A store in memory whose calls hang while it is away."""

    def __init__(self):
        super().__init__()
        self._back = asyncio.Event()
        self._back.set()
        self.calls = 0
        self.away_at = lambda _name, _session: False
        """From which call on it is away, by the call's name and session."""

    @property
    def is_away(self):
        return not self._back.is_set()

    def leave(self):
        self._back.clear()

    def come_back(self):
        self.away_at = lambda _name, _session: False
        self._back.set()

    def log(self, tenant="default"):
        return AbsentLog(super().log(tenant), self)

    async def answers(self, name, session):
        self.calls += 1
        if self.away_at(name, session):
            self.leave()
        await self._back.wait()


class AbsentLog:
    def __init__(self, log, store):
        self._log, self._store = log, store

    def __getattr__(self, name):
        found = getattr(self._log, name)
        if name not in BOUNDED:
            return found

        async def call(*args, **more):
            await self._store.answers(name, args[0])
            return await found(*args, **more)

        return call
