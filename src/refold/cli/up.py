"""`refold up` and `refold down`: a gateway of this user's, which goes on without a terminal.

Where systemd or launchd looks after this user's programs, it looks after the gateway too: it starts
with the session and again after a crash. Elsewhere it is a process in the background. That process
holds a lock, so a number that the system has given to another process is never taken for it.
"""

import json
import os
import plistlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol

import typer

from refold.cli.options import STORE, StoreOption, own_store
from refold.cli.outcome import exit_on_error, require_extra
from refold.errors import InvalidInput
from refold.user_files import config_folder, state_folder, write_whole

_MAX_PORT: Final = 65_535
_PATIENCE: Final = 120.0
"""Seconds for the start; on a busy machine that takes long."""
_END: Final = 30.0
"""Seconds for what is under way when it ends."""
_MAX_ERRORS: Final = 2_000
_LABEL: Final = "dev.refold.gateway"
_UNIT: Final = "refold.service"

Manager = Literal["systemd", "launchd", "process"]


@dataclass(frozen=True, slots=True)
class Started:
    """What `refold up` started last."""

    manager: Manager
    address: str
    command: list[str]
    pid: int = 0
    """Of a process in the background."""


def up(
    *,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=1,
            max=_MAX_PORT,
            help="Listen on this port.",
            show_default="serve.port",
        ),
    ] = None,
    store: StoreOption = STORE,
    service: Annotated[
        bool,
        typer.Option(
            "--service/--no-service",
            help="Let systemd or launchd run it, where there is one, so that it starts by itself.",
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print where it is as JSON.")] = False,
) -> None:
    """Run a gateway for your programs in the background, on this machine alone.

    If it already runs with these options, nothing changes. `refold env` prints what to set in a
    program, and `refold down` stops the gateway.

    Example: refold up
    """
    with exit_on_error(), require_extra("serve"):
        import_module("uvicorn")  # the gateway needs it, and what comes with it
        port = port or _port()
        address = f"http://127.0.0.1:{port}"
        command = _command(port, store or f"sqlite:///{own_store()}")
        manager = _manager() if service else "process"
        before = started()
        same = before is not None and (before.command, before.manager) == (command, manager)
        again = same and before is not None and is_running(before)
        if not again:
            if before is not None:
                _stop(before)
            if answers(address):
                raise InvalidInput(
                    f"Another gateway answers at {address}.", "End that one, or add --port."
                )
            _start(manager, command, address)
        if as_json:
            typer.echo(json.dumps({"address": address, "manager": manager, "started": not again}))
            return
        typer.echo(f"{'Runs already' if again else 'Runs'} at {address}, by {_NAMES[manager]}.")
        typer.echo("What to set in a program: refold env PROGRAM. To end it: refold down.")


def down() -> None:
    """Stop the gateway that `refold up` started. Its log stays.

    Example: refold down
    """
    with exit_on_error():
        before = started()
        ran = before is not None and is_running(before)
        if before is not None:
            _stop(before)
        typer.echo("Ended." if ran else "No gateway of refold up runs.")


_NAMES: Final = {"systemd": "systemd", "launchd": "launchd", "process": "a process of its own"}


def started() -> Started | None:
    """What was started last and not ended, whether or not it lives."""
    with suppress(OSError, ValueError, TypeError):
        return Started(**json.loads(_memory().read_bytes()))
    return None


def is_running(gateway: Started) -> bool:
    return _runner(gateway.manager).is_running(gateway)


def address_in_use() -> str:
    """The address of the gateway that runs, else the one that it would have."""
    gateway = started()
    if gateway is not None and is_running(gateway):
        return gateway.address
    return f"http://127.0.0.1:{_port()}"


def answers(address: str) -> bool:
    """Whether a gateway answers there."""
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:  # noqa: S310 - HTTP
            return answer.status == 200  # noqa: PLR2004 - OK
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False


def _port() -> int:
    from refold.settings import load_settings  # noqa: PLC0415 - slow

    return load_settings().serve.port or 8790


def _command(port: int, store: str) -> list[str]:
    serve = ["serve", "--port", str(port), "--store", store]
    return [sys.executable, "-P", "-m", "refold.cli", *serve]


def _memory() -> Path:
    return state_folder() / "up.json"


def _log() -> Path:
    return state_folder() / "up.log"


def _start(manager: Manager, command: Sequence[str], address: str) -> None:
    state_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    runner = _runner(manager)
    pid = runner.start(command)
    gateway = Started(manager, address, [*command], pid)
    write_whole(_memory(), json.dumps(asdict(gateway)).encode())
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and runner.is_running(gateway):
        if answers(address):
            return
        time.sleep(0.1)
    _stop(gateway)
    raise InvalidInput(f"The gateway did not start.\n{runner.errors()}".strip(), "Correct that.")


def _stop(gateway: Started) -> None:
    _runner(gateway.manager).stop(gateway)
    _memory().unlink(missing_ok=True)


class _Runner(Protocol):
    """What looks after the gateway."""

    def start(self, command: Sequence[str]) -> int: ...
    def stop(self, gateway: Started) -> None: ...
    def is_running(self, gateway: Started) -> bool: ...
    def errors(self) -> str: ...


def _manager() -> Manager:
    if sys.platform == "darwin" and shutil.which("launchctl"):
        return "launchd"
    if shutil.which("systemctl") and _run("systemctl", "--user", "show-environment")[0] == 0:
        return "systemd"
    return "process"


def _runner(manager: Manager) -> _Runner:
    return {"systemd": _Systemd, "launchd": _Launchd, "process": _Process}[manager]()


def _run(*command: str) -> tuple[int, str]:
    try:
        done = subprocess.run(  # noqa: S603 - the system's own
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _must(*command: str) -> None:
    code, output = _run(*command)
    if code:
        raise InvalidInput(
            f"{shlex.join(command[:3])} failed: {output.strip()[-_MAX_ERRORS:]}",
            "Correct that, or add --no-service.",
        )


class _Systemd:
    @property
    def _path(self) -> Path:
        return config_folder().parent / "systemd" / "user" / _UNIT

    def start(self, command: Sequence[str]) -> int:
        words = " ".join(map(_systemd_quoted, command))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = (
            "# Made by `refold up`; `refold down` removes it.\n"
            "[Unit]\nDescription=Refold gateway\n\n"
            f"[Service]\nExecStart={words}\nWorkingDirectory=%h\nRestart=on-failure\n\n"
            "[Install]\nWantedBy=default.target\n"
        )
        write_whole(self._path, text.encode())
        _must("systemctl", "--user", "daemon-reload")
        _must("systemctl", "--user", "enable", "--now", _UNIT)
        return 0

    def stop(self, gateway: Started) -> None:  # noqa: ARG002 - there is one only
        _run("systemctl", "--user", "disable", "--now", _UNIT)
        self._path.unlink(missing_ok=True)
        _run("systemctl", "--user", "daemon-reload")

    def is_running(self, gateway: Started) -> bool:  # noqa: ARG002 - there is one only
        return _run("systemctl", "--user", "is-active", "--quiet", _UNIT)[0] == 0

    def errors(self) -> str:
        return "Its log: journalctl --user -u refold"


def _systemd_quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


class _Launchd:
    @property
    def _path(self) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"{_LABEL}.plist"

    @property
    def _target(self) -> str:
        return f"gui/{os.getuid()}"

    def start(self, command: Sequence[str]) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        value = {
            "Label": _LABEL,
            "ProgramArguments": [*command],
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "WorkingDirectory": str(Path.home()),
            "StandardErrorPath": str(_log()),
        }
        write_whole(self._path, plistlib.dumps(value))
        _must("launchctl", "bootstrap", self._target, str(self._path))
        return 0

    def stop(self, gateway: Started) -> None:  # noqa: ARG002 - there is one only
        _run("launchctl", "bootout", f"{self._target}/{_LABEL}")
        self._path.unlink(missing_ok=True)

    def is_running(self, gateway: Started) -> bool:  # noqa: ARG002 - there is one only
        code, output = _run("launchctl", "print", f"{self._target}/{_LABEL}")
        return code == 0 and "state = running" in output

    def errors(self) -> str:
        return _last_errors()


class _Process:
    @property
    def _lock(self) -> Path:
        return state_folder() / "up.lock"

    def start(self, command: Sequence[str]) -> int:
        import fcntl  # noqa: PLC0415 - not on Windows

        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with _log().open("wb") as log:
                process = subprocess.Popen(  # noqa: S603 - this program
                    command,
                    cwd="/",  # so that no project's files count
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=(lock,),  # it holds the lock for as long as it lives
                    start_new_session=True,
                )
        except BlockingIOError as error:
            raise InvalidInput("A gateway of refold up is there still.", "refold down") from error
        else:
            process.returncode = 0  # nobody waits for it: it outlives this process
            return process.pid
        finally:
            os.close(lock)

    def stop(self, gateway: Started) -> None:
        end = time.monotonic() + _END
        number = signal.SIGTERM
        while gateway.pid and self.is_running(gateway):
            with suppress(ProcessLookupError):
                os.kill(gateway.pid, number)
            number = signal.SIGTERM if time.monotonic() < end else signal.SIGKILL
            for _ in range(20):
                if not self.is_running(gateway):
                    return
                time.sleep(0.1)

    def is_running(self, gateway: Started) -> bool:  # noqa: ARG002 - there is one only
        try:
            import fcntl  # noqa: PLC0415 - not on Windows

            with self._lock.open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def errors(self) -> str:
        return _last_errors()


def _last_errors() -> str:
    with suppress(OSError):
        return _log().read_text(encoding="utf-8", errors="replace")[-_MAX_ERRORS:].strip()
    return ""
