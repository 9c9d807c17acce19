"""Counting tokens: exact for the models of OpenAI, a fair measure of the others."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from refold.errors import InvalidInput

Count = Callable[[str], int]
"""How many tokens a text is."""


class _Tokenizer(Protocol):
    def count(self, text: str, /) -> int: ...


@cache
def o200k() -> Count:
    """The count of OpenAI's `o200k_base`, which the lab's figures are given in."""
    try:
        package = import_module("rs_bpe.bpe")
    except ImportError as error:
        raise InvalidInput("No tokenizer is installed.", "Install refold[models].") from error
    return cast("_Tokenizer", package.openai.o200k_base()).count
