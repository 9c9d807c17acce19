"""Requests as clients send them to the gateway, and the ways in which they send them again.

Everything is made from a number, so that thousands cost little and each can be made again.
"""

from random import Random

from hypothesis import strategies as st

from refold.testing.gateway.conversations import FORMATS, Object, conversation
from refold.testing.gateway.requests import body_with, changed, request
from refold.testing.gateway.resending import sent_again

__all__ = [
    "FORMATS",
    "body_with",
    "changed",
    "conversation",
    "conversations",
    "randoms",
    "request",
    "requests",
    "sent_again",
    "source",
]


def source(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - the same every time


def randoms() -> st.SearchStrategy[Random]:
    return st.integers(0, 2**32 - 1).map(source)


def requests(name: str) -> st.SearchStrategy[bytes]:
    return randoms().map(lambda random: request(name, random))


def conversations(name: str) -> st.SearchStrategy[list[Object]]:
    return randoms().map(lambda random: conversation(name, random))
