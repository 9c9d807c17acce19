"""Named points in the stores' work, where a test can make the process die."""

from collections.abc import Callable

Reach = Callable[[str], None]
"""Called with the name of each point that is reached."""


def onwards(point: str) -> None:
    """Reach a point and go on: what happens outside tests."""
