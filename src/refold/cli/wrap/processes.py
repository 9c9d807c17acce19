"""The processes of `refold wrap`: the agent, which has the terminal, and its gateway."""

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from refold.cli.hooks.run import WRAPPED
from refold.cli.wrap.traffic import Traffic

_BACKLOG: Final = 128
_START: Final = 600.0
"""Seconds that a gateway may take to start; on a busy machine that takes long. One that ends is not
waited for, and one whose store does not answer ends."""
_END: Final = 15.0
"""Seconds that it may take to sum up and end."""
_SOON: Final = 5.0
"""A gateway that ended within so many seconds of its start is not started again without end."""
_MAX_EARLY_ENDS: Final = 3
_MAX_ERRORS: Final = 4_000
"""Bytes of what a gateway wrote last, to be shown."""
_SIGNALED: Final = 128
_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP)

MEMORY: Final = "memory:"
"""The address of a store that keeps nothing."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a gateway is to do: its first line of input."""

    socket: int
    """The file descriptor that it listens on."""
    pipe: int
    """The file descriptor whose other end the agent has."""
    secret: str
    """The first part of all paths: other programs on this machine do not know it."""
    store: str
    profile: str | None
    upstreams: list[dict[str, Any]]
    windows: dict[str, int]
    """Of models, in tokens."""
    since: int
    """When the agent was started: milliseconds since 1970, UTC."""
    program: str = ""
    """The agent's name."""
    sessions: list[str] = field(default_factory=list[str])
    """Those that it has used, where this gateway is not its first."""


class GatewayKeeper:
    """Runs an agent's gateway, and starts it again on its port if it dies."""

    def __init__(self, store: str, profile: str | None, folder: Path, program: str) -> None:
        self.traffic = Traffic()
        self.restarts = 0
        self.given_up = False
        self._store, self._profile = store, profile
        self._folder, self._program = folder, program
        self._secret = secrets.token_hex(16)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._ours, self.agents_end = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as this
        self._order: Order | None = None
        self._agent = 0
        self._ending = False
        self._process: subprocess.Popen[str] | None = None
        self._ready = threading.Event()
        self._error: tuple[str, str, str] | None = None
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    @property
    def address(self) -> str:
        """Where it answers, without `/v1`."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/{self._secret}"

    def start(self, upstreams: Sequence[Mapping[str, Any]], windows: Mapping[str, int]) -> None:
        """Start it; a failure is printed, and raised as the exit of this command."""
        self._order = Order(
            *(self._socket.fileno(), self._ours, self._secret, self._store, self._profile),
            upstreams=[dict(upstream) for upstream in upstreams],
            windows=dict(windows),
            program=self._program,
            since=time.time_ns() // 1_000_000,
        )
        self._thread.start()
        if not self._ready.wait(_START) or self.given_up:
            self.end()
            what = f"The gateway did not start.\n{self.last_errors()}".strip()
            from refold.cli.outcome import failed  # noqa: PLC0415 - slow, and the gateway has no use

            code, what, fix = self._error or ("gateway", what, "Correct that and try again.")
            raise failed(code, what, fix)

    def tell_agent(self, pid: int) -> None:
        """Say which process the agent is: the gateway is to end with it."""
        os.close(self.agents_end)
        self._agent = pid
        self._say({"agent": pid})

    def end(self) -> None:
        """Let the gateway sum up and end."""
        self._ending = True
        self._say({"end": list(self.traffic.sessions)})
        self._thread.join(_END)
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
            self._thread.join(_END)
        self._socket.close()
        os.close(self._ours)

    def close(self) -> None:
        """Let go of its errors, after its end."""
        self._errors.close()

    def last_errors(self) -> str:
        """The last of what gateways wrote to their standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _MAX_ERRORS))
        return self._errors.read().decode(errors="replace").strip()

    def _keep(self) -> None:
        early = 0
        while not self._ending and early < _MAX_EARLY_ENDS:
            began = time.monotonic()
            self._run()
            early = early + 1 if time.monotonic() - began < _SOON else 0
            if not self._ready.is_set():
                break  # it never answered: starting it again would not help
            self.restarts += not self._ending
        if not self._ending:
            self.given_up = True
            self._socket.close()  # else requests would wait in it without end
            self._ready.set()

    def _run(self) -> None:
        """One gateway, to its end."""
        assert self._order is not None  # noqa: S101 - set before the thread starts
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "refold.cli.wrap.gateway"],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=(self._order.socket, self._order.pipe),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl+C is for the agent
        ) as process:
            with self._lock:  # its orders are the first that it reads
                self._process = process
                used = [*self.traffic.sessions]
                self._say(asdict(replace(self._order, sessions=used)))
                if self._agent:
                    self._say({"agent": self._agent})
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            for line in process.stdout:
                with suppress(ValueError):  # it was killed within a line
                    self._take(json.loads(line))
            # The end of its output is its end, or it is about to end.
            with suppress(OSError, ValueError):
                assert process.stdin is not None  # noqa: S101 - it is a pipe
                process.stdin.close()

    def _say(self, words: Mapping[str, object]) -> None:
        with self._lock:
            process = self._process
            if process is not None and process.stdin is not None:
                with suppress(OSError, ValueError):  # it has died
                    process.stdin.write(json.dumps(words) + "\n")
                    process.stdin.flush()

    def _take(self, words: Mapping[str, Any]) -> None:
        if "ready" in words:
            self._ready.set()
        elif "error" in words:
            self._error = tuple(words["error"])
        elif "summary" in words:
            self.traffic.summary = words["summary"]
        else:
            self.traffic.add(words)


def run_agent(command: Sequence[str], environment: Mapping[str, str], keeper: GatewayKeeper) -> int:
    """Run the agent in the foreground, as a shell would; its exit code."""
    early: list[int] = []
    agent: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        if agent is None:  # it is being started
            early.append(number)
        else:
            _send(agent.pid, number)

    ignored = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCHLD)
    # Handlers, and not SIG_IGN, which the agent would inherit.
    handlers: dict[int, Any] = {
        **dict.fromkeys(ignored, _ignore),
        **dict.fromkeys(_FORWARDED, forward),
    }
    with _handling(handlers), _waking() as woken:
        agent = subprocess.Popen(  # noqa: S603 - the user's own command
            command,
            env={**os.environ, **environment, WRAPPED: "1"},
            pass_fds=(keeper.agents_end,),
        )
        for number in early:
            _send(agent.pid, number)
        keeper.tell_agent(agent.pid)
        code = _wait(agent.pid, woken)
        agent.returncode = code  # it has been waited for
    return code if code >= 0 else _SIGNALED - code


def _wait(pid: int, woken: int) -> int:
    """Wait for the agent; while it is suspended, this process is, so that the shell is back."""
    while True:
        # Not in `waitpid`: a signal that came just before it, or that another thread got, would not
        # end that call, and its handler would not run until the agent has ended.
        found, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
        if not found:
            select.select([woken], [], [])
            with suppress(BlockingIOError):
                os.read(woken, 1024)
        elif os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(pid, signal.SIGCONT)  # the shell continues the whole group; some do not
        else:
            return os.waitstatus_to_exitcode(status)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def _waking() -> Generator[int]:
    """A file descriptor that can be read once a signal came, in whichever thread."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass


@contextmanager
def _handling(handlers: Mapping[int, Any]) -> Generator[None]:
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
