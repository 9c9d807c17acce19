"""The `refold` command in milliseconds, for tests that run it often.

What the command imports takes a second. So one small process without threads imports it, once, and
forks for each command. A small program named `refold` stands first on the path: it hands over its
arguments, its folder, its environment and its streams, and ends as the command ended. All else is
as ever: another process, which begins at `refold.cli.main` and ends as Python ends.
"""

import gc
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

_LONGEST = 1 << 20
_LATER = (
    *("refold.cli.chat.assembly", "refold.cli.chat.chat", "refold.cli.chat.plain"),
    *("refold.fold.acceptance", "refold.settings.environment"),
    *("genai_prices.data", "openai.resources.chat.completions", "pydantic_ai.models.openai"),
)
"""What a chat imports once it has begun: most of its time, where it answers a prompt or two."""
_HAND_OVER = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = [sys.argv[1:], os.getcwd(), dict(os.environ)]
    message = json.dumps(asked).encode() + b"\\n"
    socket.send_fds(server, [message[:1]], [0, 1, 2])
    server.sendall(message[1:])
    told = server.recv(64)
ended = int(told) if told else 1
if ended < 0:
    os.kill(os.getpid(), -ended)
sys.exit(ended)
"""


class _Asked(NamedTuple):
    arguments: list[str]
    folder: str
    environment: dict[str, str]


@contextmanager
def forked_commands(environment: Mapping[str, str]) -> Iterator[Path]:
    """A folder for the path, with a quick `refold` in it.

    Args:
        environment: What modules see while they are imported; each command has its own after that.
    """
    with TemporaryDirectory(prefix="refold-") as made:
        folder = Path(made)
        address = str(folder / "socket")
        command = folder / "refold"
        command.write_text(_HAND_OVER.format(python=sys.executable, address=address), "utf-8")
        command.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, "-P", __file__, address],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield folder


def _command(address: str) -> _Asked:
    """In the server, until its input ends: never returns. In a fork: what it is to do."""
    from refold.cli import app  # noqa: PLC0415 - in this process only, before it forks

    for name in app.COMMANDS:
        with suppress(ModuleNotFoundError):  # an extra that is not installed
            app.import_command(name)
    for name in _LATER:
        with suppress(ModuleNotFoundError):
            import_module(name)
    gc.freeze()  # a fork's end would else look at, and so copy, all of it

    with socket.socket(socket.AF_UNIX) as requests:
        requests.bind(address)
        requests.listen()
        print("ready", flush=True)  # noqa: T201 - what the test waits for
        while requests in select.select([requests, sys.stdin], [], [])[0]:
            asking, _ = requests.accept()
            if os.fork() == 0:
                requests.close()
                return _waited_for(asking)
            asking.close()
            _reap()
    sys.exit()  # whoever started it is gone


def _waited_for(asking: socket.socket) -> _Asked:
    """Fork the command; stay behind to tell how it ended."""
    first, streams, _, _ = socket.recv_fds(asking, 1, 3)
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)  # who reads the command's output waits for its end
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        asking.send(str(ended).encode())
        os._exit(0)
    with asking, asking.makefile("rb") as rest:
        asked = _Asked(*json.loads(first + rest.readline(_LONGEST)))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return asked


def _reap() -> None:
    """Let go of those that told how their command ended."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                return
        except ChildProcessError:
            return


def _become(asked: _Asked) -> None:
    os.chdir(asked.folder)
    os.environ.clear()
    os.environ.update(asked.environment)
    sys.argv = ["refold", *asked.arguments]
    streams: dict[str, Any] = {"encoding": "utf-8", "closefd": False}
    sys.stdin = open(0, **streams)  # noqa: SIM115 - a number, open to the end
    sys.stdout = open(1, "w", **streams)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", **streams)  # noqa: SIM115


if __name__ == "__main__":
    _become(_command(sys.argv[1]))
    from refold.cli import main

    main()
