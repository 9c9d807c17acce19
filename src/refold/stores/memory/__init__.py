"""A store in memory: nothing outlives the process, everything else is as in the others."""

from refold.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
