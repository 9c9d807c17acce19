"""A PostgreSQL server of one's own, for tests: made in a moment, gone with the process.

    with Cluster() as cluster:
        address = cluster.database("mine")

It needs PostgreSQL's programs (Debian: `postgresql`), no server that runs, and no rights: where the
process is root, the server runs as the user `postgres` or `nobody`, for it refuses to be root.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import SystemRandom
from time import monotonic, sleep
from typing import Final, Self

import psycopg

from refold.errors import InvalidInput, StoreFailed

SUPERUSER: Final = "refold_owner"
"""The role that a cluster begins with; it may do everything."""
_QUICK: Final = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "log_min_messages": "warning",
    "logging_collector": "off",
}
_PORTS: Final = range(20_000, 30_000)  # below those that the system hands out by itself
_PATIENCE: Final = 60.0
# When our end of the pipe closes, however we died, the shell ends the server.
_WITH_US: Final = (
    'trap "" INT TERM; "$@" </dev/null & read -r _; kill -QUIT $! 2>/dev/null; wait $!'
)


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest where there are more; None without any."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=_version)
    there = shutil.which("postgres") or shutil.which("initdb")
    if there is not None:
        found.append(Path(there).resolve())
    return found[-1].parent if found else None


class Cluster:
    """A server with its own data folder and port.

    `durable` is whether it flushes to the disk as a real one does; without, it is quicker, and
    still loses nothing but with the whole machine. `settings` are any others of the server.
    """

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        folder = programs()
        if folder is None:
            raise InvalidInput(
                "PostgreSQL is not installed.", "Install it (Debian: apt-get install postgresql)."
            )
        self.programs = folder
        self.port = _free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="refold-postgres-"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self._settings = {**_SETTINGS, **({} if durable else _QUICK), **(settings or {})}
        self._user = _other_user()
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        if not self.data.exists():
            self._make()
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        command = [str(self.programs / "postgres"), "-D", str(self.data), f"-p{self.port}"]
        with self.log.open("ab") as log:
            self._server = subprocess.Popen(  # noqa: S603 - our own command
                ["/bin/sh", "-c", _WITH_US, "sh", *command, *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user,
                start_new_session=True,
            )
        self._wait()

    def stop(self, mode: str = "immediate") -> None:
        if self._server is None:
            return
        if mode != "immediate":
            self.run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")
        server, self._server = self._server, None
        assert server.stdin is not None
        server.stdin.close()
        server.wait()

    def restart(self, mode: str = "immediate") -> None:
        self.stop(mode)
        self.start()

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own command
            [str(self.programs / program), *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            user=self._user,
        )
        if done.returncode:
            raise StoreFailed(f"{program} failed: {done.stderr.strip()}")
        return done.stdout

    def address(self, database: str = "postgres", *, user: str = SUPERUSER) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def database(self, name: str, *, like: str | None = None) -> str:
        """Make a database, as a copy of another where one is named; its address."""
        template = f' TEMPLATE "{like}"' if like else ""
        self.execute(f'CREATE DATABASE "{name}"{template}')
        return self.address(name)

    def drop(self, name: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.address(database), autocommit=True) as db:
            db.execute(statement.encode())

    def _make(self) -> None:
        if self._user is not None:
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)
        self.run(
            "initdb",
            *("-D", str(self.data), "-U", SUPERUSER, "-A", "trust"),
            *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
        )

    def _wait(self) -> None:
        until = monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.address(), connect_timeout=5).close()
            except psycopg.OperationalError as error:
                if self._server is None or self._server.poll() is not None or monotonic() > until:
                    said = self.log.read_text(errors="replace")[-2_000:]
                    raise StoreFailed(f"PostgreSQL does not start: {said}") from error
                sleep(0.02)
            else:
                return


def _version(program: Path) -> tuple[int, ...]:
    name = program.parent.parent.name
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _other_user() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _free_port() -> int:
    for port in SystemRandom().sample(_PORTS, 50):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StoreFailed("No port is free for PostgreSQL.")
