"""Where logs are kept. Nothing else in Refold imports a store; who opens one, imports it here."""

from refold.stores.memory import MemoryStore
from refold.stores.opening import open_store
from refold.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore", "open_store"]
