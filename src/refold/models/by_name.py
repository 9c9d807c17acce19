"""Models by their names. Needs the extra `refold[pydantic-ai]`."""

from functools import lru_cache
from typing import Final

from pydantic_ai.models import Model, infer_model

_MOST: Final = 256


@lru_cache(_MOST)
def inferred(name: str) -> Model:
    """The model of a name, as Pydantic AI makes it; made once."""
    return infer_model(name)
