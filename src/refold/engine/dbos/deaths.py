"""Which executors are dead: those whose lock has been free for a while."""

from time import monotonic


class Deaths:
    """Remembers since when each executor's lock is seen free.

    After a restart of the server all locks are free, until their workers take them again. So a lock
    must be seen free for `grace` seconds, by one who looks again and again, and the server must
    have been up that long.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._free: dict[str, float] = {}

    def dead(self, executor: str, *, held: bool, up: float) -> bool:
        """Whether an executor is dead, as it is seen now."""
        if held:
            self._free.pop(executor, None)
            return False
        since = self._free.setdefault(executor, monotonic())
        return min(monotonic() - since, up) >= self._grace

    def forget(self, executor: str) -> None:
        """Its folds were handed over."""
        self._free.pop(executor, None)
