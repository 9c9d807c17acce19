"""Child processes that start in milliseconds.

The tests' own process has threads and may not fork. So one small process without threads imports
what the children need, once, and forks whenever it is asked to.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import children

_REQUEST = 1 << 16
_WARNINGS = {True: ("-W", "error"), False: ()}


class Child:
    """A running child, and what it reports: one JSON value on each line."""

    def __init__(self, nursery: "Nursery", pid: int, reports: int):
        self.pid = pid
        self.reports = os.fdopen(reports, "rb", buffering=0)
        self._nursery = nursery
        self._rest = b""
        self.ended: int | None = None

    def next(self) -> Any:
        """The next report, waited for."""
        while b"\n" not in self._rest:
            more = self.reports.read(_REQUEST)
            if not more:
                raise EOFError(f"the child ended with {self.wait()}")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def available(self) -> list[Any]:
        """The reports that one read yields; a line cut short by a kill is no report."""
        self._rest += self.reports.read(_REQUEST) or b""
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def all(self) -> list[Any]:
        """Every report up to the child's end."""
        while more := self.reports.read(_REQUEST):
            self._rest += more
        return self.available()

    def kill(self) -> int:
        """End it by `kill -9`."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """How it ended: its exit code, or minus the signal."""
        if self.ended is None:
            self.ended = self._nursery.ask({"wait": self.pid})
        return self.ended

    def close(self) -> None:
        """Leave nothing running or open."""
        if self.ended is None:
            self.kill()
        self.reports.close()


class Nursery:
    """Starts children, that have imported what a script needs before they begin."""

    def __init__(self, script: str = __file__, *, strict: bool = True):
        self._socket, theirs = socket.socketpair()
        # Children never run the tests' own exit handlers, and see the same modules.
        self._process = subprocess.Popen(
            [sys.executable, *_WARNINGS[strict], script, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_paths())},
        )
        theirs.close()
        self._started: list[Child] = []

    def start(self, job: str, **values: Any) -> Child:
        """Run a function of the script in a new process."""
        ours, theirs = os.pipe()
        try:
            pid = self.ask({"job": job, "values": values}, theirs)
        finally:
            os.close(theirs)
        child = Child(self, pid, ours)
        self._started.append(child)
        return child

    def run(self, job: str, **values: Any) -> list[Any]:
        """Run a function of the script to its end: what it reported."""
        child = self.start(job, **values)
        reports = child.all()
        assert child.wait() == 0, reports
        return reports

    def ask(self, request: dict[str, Any], *fds: int) -> int:
        message = json.dumps(request, default=str).encode()
        socket.send_fds(self._socket, [message], fds)
        return int(self._socket.recv(64))

    def close(self) -> None:
        for child in self._started:
            child.close()
        self._socket.close()
        self._process.wait()


def _paths() -> list[str]:
    """Where what lies beside the tests is found too."""
    given = os.environ.get("PYTHONPATH")
    return [str(Path(__file__).parents[1]), *([given] if given else [])]


def serve_tests(children: ModuleType) -> None:
    """What a script does, in the nursery's process: fork, whenever the tests ask for it."""
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        _serve(requests, children)


def _serve(requests: socket.socket, children: ModuleType) -> None:
    for request, fds in _received(requests):
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                requests.close()
                _live(getattr(children, request["job"]), request["values"], fds[0])
            os.close(fds[0])
        requests.send(str(answer).encode())


def _received(requests: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    while True:
        message, fds, _, _ = socket.recv_fds(requests, _REQUEST, 1)
        if not message:
            return
        yield json.loads(message), fds


def _live(job: Callable[..., None], values: dict[str, Any], reports: int) -> None:
    """A child's whole life: it reports, and never returns."""

    def report(value: object) -> None:
        os.write(reports, json.dumps(value, default=str).encode() + b"\n")

    code = 1
    try:
        job(report, **values)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the test is told
        report({"failed": traceback.format_exc()})
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve_tests(children)
