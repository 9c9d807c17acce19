"""One nursery for all tests of a run."""

import pytest
from nursery import Nursery


@pytest.fixture(scope="session")
def nursery():
    started = Nursery()
    yield started
    started.close()
