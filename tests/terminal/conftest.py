"""Terminals, and who answers in them: a scripted provider, or the real local model."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from local_model.conftest import local_model
from terminal.chatting_in import talk, talks
from terminal.provider import Provider
from terminal.tmux import Terminal

__all__ = ["local_model", "talk", "talks"]


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    """`terminals()`: one more terminal of the same person."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Terminal(tmp_path)))


@pytest.fixture
def terminal(terminals: Callable[[], Terminal]) -> Terminal:
    """A terminal."""
    return terminals()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider that has not begun: `provider.script += […]`, then `provider.start()`."""
    made = Provider()
    yield made
    made.stop()
