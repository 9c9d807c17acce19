"""A store in PostgreSQL: any number of machines, and tenants that cannot see each other."""

from refold.stores.postgres.connection import Pool
from refold.stores.postgres.migrate import migrate
from refold.stores.postgres.store import PostgresStore

__all__ = ["Pool", "PostgresStore", "migrate"]
