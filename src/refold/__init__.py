"""Refold keeps every word of an agent's conversation and derives from it what the model sees.

The log is only appended to. Everything else is a view of it: see `refold.log` for what happened
and `refold.stores` for where it is kept.
"""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("refold")
