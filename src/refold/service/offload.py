"""Large requests are answered by processes of their own, so that nobody else waits for them.

An offload process is the same gateway over the same store. The main process checks the key and the
limits, and then only moves bytes: it forwards the body as it arrives, and the answer back. Sessions
may be open in any number of processes, so a conversation may move from one to the other. Each
tenant has its process, so a tenant's large requests wait for those of few others.

Requests go through a Unix socket in a folder that only this user can enter, a connection each, in
frames: a length, then that many bytes. A JSON head comes first, then pieces of the body, then an
empty frame as the end; the answer comes back in the same way, and after its end what the access
log says of it. A connection that closes without that end was broken off.
"""

import asyncio
import json
import logging
import pickle
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast
from zlib import crc32

from starlette.requests import Request
from starlette.responses import Response

from refold.errors import LimitReached, OffloadLost
from refold.gateway.large_requests import LoggedAnswer, PartialBody, UnloggedAnswer
from refold.gateway.outcome import Outcome
from refold.gateway.upstream import BrokenOff, ProxiedStream
from refold.models.catalog import Usage
from refold.service.callers import Caller
from refold.service.engines import on_server
from refold.settings import Settings

_LOGGER: Final = logging.getLogger("refold.service")
CALLER: Final = "refold.caller"
_LENGTH: Final = 4
_MAX_FRAME: Final = 1 << 24
_PIECE: Final = 256 * 1024
"""Bytes of a body in one frame: copying more would keep others waiting."""
_START: Final = 120.0
"""Seconds that a request waits for its process to start; on a busy machine that takes long."""
STOP: Final = 10.0
"""Seconds for a process to end by itself after its input."""
_MIN_PAUSE, _MAX_PAUSE = 0.1, 5.0
"""Seconds before a process that ended is started again."""
_MAX_BODIES: Final = 256 << 20
"""Bytes of bodies under way in one process; parsed, they take several times as much."""
_MAX_TENANT_BODIES: Final = _MAX_BODIES // 2
_RETRY_AFTER: Final = 1.0
_SOCKET: Final = "requests.sock"

Report = Callable[[str, list[Any]], None]
"""Takes a report of an offload process: a method of `MainProcess`, and its arguments."""


class Start(NamedTuple):
    settings: Settings
    store: str
    socket: str
    worker: bool
    """Whether it makes folds if the store is on a server."""


class MainProcess:
    """Reports from an offload process to the main process, which counts and limits."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def report(self, name: str, *args: object) -> None:
        self._write(_frame(json.dumps([name, *args]).encode()))

    async def caller_of(self, request: Request) -> Caller:
        """The caller, as the main process has checked it."""
        return cast("Caller", request.scope[CALLER])

    def charge(self, caller: Caller, used: Usage, cost: float | None) -> None:
        self.report("charge", caller.tenant, caller.key, list(used), cost)

    def answer_given(self, shared: list[Any]) -> None:
        self.report("answer_given", shared)

    def passed_unmanaged(self, reason: str) -> None:
        self.report("passed_unmanaged", reason)

    def answer_not_logged(self) -> None:
        self.report("answer_not_logged")

    def unmanaged_lost(self, turns: int) -> None:
        self.report("unmanaged_lost", turns)


def _frame(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH, "big") + data


async def write_frame(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one frame; an empty one is the end."""
    writer.write(_frame(data))
    await writer.drain()


async def write_body(writer: asyncio.StreamWriter, data: bytes) -> None:
    for start in range(0, len(data), _PIECE):
        await write_frame(writer, data[start : start + _PIECE])


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame. Raises EOFError where the connection was broken off."""
    length = int.from_bytes(await reader.readexactly(_LENGTH), "big")
    if length > _MAX_FRAME:
        raise EOFError("A frame is too long.")
    return await reader.readexactly(length) if length else b""


class OffloadProcess:
    """One process, started again whenever it ends."""

    def __init__(self, start: Start, report: Report) -> None:
        self._start = start
        self._report = report
        self._ready = asyncio.Event()
        self._process: Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._bodies: Counter[str] = Counter()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it, unless that was done; nobody has to wait for it."""
        if self._supervisor is None:
            self._supervisor = asyncio.create_task(self._supervise())

    async def close(self) -> None:
        if self._supervisor is not None:
            self._supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervisor
        if self._process is not None:
            await _stop(self._process)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the process, as soon as it runs. Raises OffloadLost after `_START`."""
        self.start()
        try:
            async with asyncio.timeout(_START):
                while True:
                    await self._ready.wait()
                    # It may have ended a moment ago: the next one is about to start.
                    with suppress(OSError):
                        return await asyncio.open_unix_connection(self._start.socket)
                    await asyncio.sleep(_MIN_PAUSE)
        except TimeoutError as error:
            raise OffloadLost("The process for large requests is not there.") from error

    def admit(self, tenant: str, size: int) -> None:
        """Count a body. Raises LimitReached where there are too many."""
        if self._bodies.total() + size > _MAX_BODIES:
            raise LimitReached("Too many large requests are under way.", _RETRY_AFTER)
        if self._bodies[tenant] + size > _MAX_TENANT_BODIES:
            raise LimitReached(
                "Too many large requests of this tenant are under way.", _RETRY_AFTER
            )
        self._bodies[tenant] += size

    def release(self, tenant: str, size: int) -> None:
        self._bodies[tenant] -= size
        if self._bodies[tenant] <= 0:
            del self._bodies[tenant]

    async def _supervise(self) -> None:
        pause = _MIN_PAUSE
        while True:
            try:
                await self._run()
                pause = _MIN_PAUSE
            except (OSError, EOFError) as error:
                _LOGGER.warning("The process for large requests ended: %s", error)
            finally:
                self._ready.clear()
            if self._process is not None:
                await _stop(self._process)
            await asyncio.sleep(pause)
            pause = min(_MAX_PAUSE, 2 * pause)

    async def _run(self) -> None:
        """Start the process, and take its reports until it ends."""
        # -P: never import from the folder that the service was started in.
        process = self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "refold.service.offload_process"),
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl+C is for the main process, which then closes its input
        )
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        await write_frame(process.stdin, pickle.dumps(self._start))
        while True:
            name, *args = json.loads(await read_frame(process.stdout))
            if name == "ready":
                self._ready.set()
            else:
                self._report(name, args)


class Offload:
    """All offload processes, and which tenant's requests go where."""

    def __init__(
        self, settings: Settings, store: str, report: Report, *, worker: bool, max_body: int
    ) -> None:
        self._settings = settings
        self._store = store
        self._report = report
        self._worker = worker
        self._max_body = max_body
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.processes: list[OffloadProcess] = []

    def open(self) -> None:
        """Start the process that makes folds; the others start with their first request."""
        self._folder = tempfile.TemporaryDirectory(prefix="refold-", ignore_cleanup_errors=True)
        for index in range(self._settings.serve.offload_processes):
            socket = f"{self._folder.name}/{index}-{_SOCKET}"
            start = Start(self._settings, self._store, socket, self._worker and not index)
            self.processes.append(OffloadProcess(start, self._report))
        if self._worker and on_server(self._store):
            self.processes[0].start()

    async def close(self) -> None:
        """Stop them; requests under way are broken off, and the log says so."""
        await asyncio.gather(*(process.close() for process in self.processes))
        if self._folder is not None:
            self._folder.cleanup()

    def warm_up(self, tenant: str) -> None:
        self._process_of(tenant).start()

    async def answer(self, request: Request, caller: Caller, body: PartialBody) -> Response:
        process = self._process_of(caller.tenant)
        size = len(body.begun)
        if body.rest is not None:
            length = request.headers.get("content-length", "")
            size = int(length[:20]) if length.isdigit() else self._max_body
        process.admit(caller.tenant, size)
        try:
            exchange = _Exchange(*await process.connect())
        except BaseException:
            process.release(caller.tenant, size)
            raise

        def end() -> None:
            exchange.close()
            process.release(caller.tenant, size)

        try:
            await exchange.send(_head_of(request, caller), body)
            head = await exchange.head()
        except BaseException:
            end()
            raise
        outcome = Outcome.of(request.scope)
        outcome.update(head["outcome"])
        response = ProxiedStream(exchange.body(outcome), head["status"])
        response.raw_headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]
        ]
        response.on_close = end
        return response

    async def log_answer(self, answer: UnloggedAnswer) -> LoggedAnswer:
        exchange = _Exchange(*await self._process_of(answer.tenant).connect())
        try:
            head = {
                **answer._asdict(),
                "chain": [link.hex() for link in answer.chain],
                "pieces": [len(piece) for piece in answer.pieces],
            }
            body = PartialBody(b"".join(answer.pieces), None)
            await exchange.send({"answer": head}, body)
            logged = await exchange.head()
        finally:
            exchange.close()
        if "session" not in logged:
            raise _lost()
        usage = logged["usage"] and Usage(*logged["usage"])
        return LoggedAnswer(logged["session"], usage, logged["size"])

    def _process_of(self, tenant: str) -> OffloadProcess:
        return self.processes[crc32(tenant.encode()) % len(self.processes)]


class _Exchange:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, head: Mapping[str, Any], body: PartialBody) -> None:
        try:
            await write_frame(self._writer, json.dumps(head).encode())
            await write_body(self._writer, body.begun)
            if body.rest is not None:
                async for piece in body.rest:
                    await write_body(self._writer, piece)
            await write_frame(self._writer, b"")
        except OSError as error:
            raise _lost() from error

    async def head(self) -> dict[str, Any]:
        try:
            return json.loads(await read_frame(self._reader))
        except (OSError, EOFError) as error:
            raise _lost() from error

    async def body(self, outcome: Outcome) -> AsyncGenerator[bytes]:
        try:
            while piece := await read_frame(self._reader):
                yield piece
            outcome.update(json.loads(await read_frame(self._reader)))
        except (OSError, EOFError) as error:
            raise BrokenOff("the process for large requests broke it off") from error

    def close(self) -> None:
        self._writer.close()


def _head_of(request: Request, caller: Caller) -> dict[str, Any]:
    scope = request.scope
    return {
        "method": scope["method"],
        "path": scope["path"],
        "raw_path": (scope.get("raw_path") or b"").decode("latin-1"),
        "query": scope["query_string"].decode("latin-1"),
        "headers": [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]
        ],
        "caller": [caller.tenant, caller.key, sorted(caller.roles), caller.stale],
    }


def _lost() -> OffloadLost:
    return OffloadLost("The process that answers large requests stopped while it had this one.")


async def _stop(process: Process) -> None:
    """Close its input, which ends it; kill it if that does not."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
