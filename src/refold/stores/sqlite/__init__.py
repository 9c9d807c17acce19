"""A store in one SQLite file: no server to run, any number of processes."""

from refold.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
