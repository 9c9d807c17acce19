"""A store in memory: nothing outlives the process, everything else is as in the others."""

from refold.stores.memory.log import MemoryStore

__all__ = ["MemoryStore"]
