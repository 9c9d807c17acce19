"""The server, one for each context size that the tests of a run ask for."""

from contextlib import ExitStack

import pytest
from local_model.server import require_local_model, serving


@pytest.fixture(scope="session")
def local_model():
    """`local_model(n_ctx)`: the address of a server with this context size."""
    with ExitStack() as stack:
        running: dict[int, str] = {}

        def start(n_ctx: int) -> str:
            require_local_model()
            if n_ctx not in running:
                running[n_ctx] = stack.enter_context(serving(n_ctx))
            return running[n_ctx]

        yield start
