"""The bodies of `overflow_bodies.toml`, for tests that take one each."""

import json
import tomllib
from pathlib import Path

import pytest

from refold.models.overflow import Overflow

SEEN = tomllib.loads((Path(__file__).parent / "overflow_bodies.toml").read_text(encoding="utf-8"))
OVERFLOWS, NEAR_MISSES = SEEN["overflow"], SEEN["near_miss"]


def named(rows):
    """Parametrise a test with these, as `row`."""
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def row_of(name):
    return next(row for row in [*OVERFLOWS, *NEAR_MISSES] if row["name"] == name)


def said_in(row):
    """What the body says of the limit."""
    return Overflow(row.get("limit"), row.get("asked"), row.get("output"))


def parsed(row):
    """The body as JSON, if it is that."""
    try:
        return json.loads(row["body"])
    except ValueError:
        return row["body"]
