"""What some tests need of the machine: where it is missing they are skipped, unless it is required.

`REFOLD_POSTGRES=required` and its like say so, and `make check` sets them: a test that is always
skipped shows nothing.
"""

import os

import pytest


def need(there: object, missing: str, variable: str) -> None:
    """Skip the test, or fail it where the variable says that it must run."""
    if there:
        return
    if os.environ.get(variable) == "required":
        pytest.fail(missing)
    pytest.skip(missing)


def need_postgres() -> None:
    """Skip the test where PostgreSQL's programs are not installed, unless they must be."""
    pytest.importorskip("psycopg", reason="the driver for PostgreSQL is not installed")
    from refold.testing.postgres import programs  # noqa: PLC0415 - it imports the driver

    need(programs(), "PostgreSQL is not installed", "REFOLD_POSTGRES")


EMPTY_STORE = "refold_empty"
"""The database that tests copy: a store with nothing in it."""
APP_ROLE = "refold_app"
"""The role that may use a store and no more."""
