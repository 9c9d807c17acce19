"""Where the agents of tests keep their conversations."""

import pytest

from refold import Refold


@pytest.fixture
async def memory():
    """A capability whose store is in memory."""
    async with Refold() as made:
        yield made


@pytest.fixture
def path(tmp_path):
    """The address of a store that several processes may open, one after the other."""
    return f"sqlite:///{tmp_path / 'refold.db'}"
