"""A file for a SQLite store, and what is said in it."""

import json

import pytest

from refold.log import Message


@pytest.fixture
def path(tmp_path):
    return tmp_path / "refold.db"


def say(text: str) -> Message:
    return Message(json.dumps({"role": "user", "content": text}).encode())
