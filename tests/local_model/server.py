"""A real model server for tests: its own process, on a free port of this machine."""

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from needed import need

PYTHON = Path(sys.prefix) / "local-model" / "bin" / "python"
"""`make local-model` installs it; its environment is not ours."""
_SERVE = Path(__file__).with_name("serve.py")
_START_S = 120


def require_local_model() -> None:
    """Skip the test where the model is not installed, unless it must be."""
    missing = "the local model is not installed: run `make local-model`"
    need(PYTHON.exists(), missing, "REFOLD_LOCAL_MODEL")


@contextmanager
def serving(n_ctx: int, template: str = "chat_template.jinja") -> Iterator[str]:
    """A server whose model sees so many tokens; the address that clients are given."""
    process = subprocess.Popen(
        [PYTHON, _SERVE, str(n_ctx), template],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _START_S)
        assert ready, f"the server did not start within {_START_S} s"
        address = process.stdout.readline().strip()
        assert address.startswith("http"), f"the server ended with {process.poll()}"
        yield f"{address}/v1"
    finally:
        process.kill()
        process.communicate()
