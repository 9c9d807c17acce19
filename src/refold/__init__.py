"""Refold keeps an agent's conversations in a log and derives from it what the model sees.

The log is only appended to. Everything else is a view of it: see `refold.log` for what happened
and `refold.stores` for where it is kept. `Refold` is the memory of a Pydantic AI agent.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refold.integrations.pydantic_ai import Refold

    __version__: str

__all__ = ["Refold", "__version__"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - it takes long to import

        return version("refold")
    if name != "Refold":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from refold.integrations.pydantic_ai import Refold  # noqa: PLC0415 - it needs an extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("refold"):
            raise
        raise ImportError("Refold for agents needs: pip install 'refold[pydantic-ai]'") from error
    return Refold
