"""`refold serve` in milliseconds, for tests that start it often.

What it imports takes a second or more. So a process without threads imports it, once for each
process that runs tests, and forks for each service. All else is as ever: a process of its own,
which begins at `refold.cli.main` and ends as Python ends.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd

from requirement_report import ran

_PRELOADED = [
    *("refold.cli.app", "refold.cli.serve", "refold.service.app", "refold.service.app"),
    *("refold.engine.dbos", "refold.stores.postgres", "refold.stores.sqlite", "uvicorn"),
]


class ForkedProcess:
    """A process, with what tests use of `asyncio.subprocess.Process`."""

    def __init__(self, process, stdout):
        self._process = process
        self.stdout = stdout
        self.pid = process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    async def wait(self):
        await asyncio.to_thread(self._process.join)
        return self.returncode


async def start_serve(*arguments, cwd, env, stderr=None):
    """Start `refold serve`; its standard output can be read."""
    ran("service")
    ours, theirs = os.pipe()
    try:
        errors = stderr.fileno() if stderr is not None else 2
        streams = (DupFd(theirs), DupFd(errors))
        process = _forks().Process(
            target=_serve, args=(arguments, str(cwd), dict(env), *streams), daemon=True
        )
        await asyncio.to_thread(process.start)
    finally:
        os.close(theirs)
    stdout = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(ours, "rb", 0)
    )
    return ForkedProcess(process, stdout)


@cache
def _forks() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def _serve(arguments, folder, environment, stdout, stderr):
    os.dup2(stdout.detach(), 1)
    os.dup2(stderr.detach(), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    sys.stderr = open(2, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # As in a process that a shell starts; a server of forks ignores some of them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.argv = ["refold", "serve", *arguments]
    from refold.cli import main  # noqa: PLC0415 - in the fork only

    main()
