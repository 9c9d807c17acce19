"""A process that answers large requests: the gateway without a port, keys and limits of its own.

It ends when its input does, which is when the main process ends, however that ends. A store or an
engine may wait for a database that is gone, so the process ends some seconds later at the latest.
"""

import asyncio
import json
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from starlette.applications import Starlette
from starlette.types import Message, Scope

from refold.gateway import gateway
from refold.gateway.large_requests import UnloggedAnswer
from refold.gateway.outcome import Outcome
from refold.gateway.upstream import BrokenOff
from refold.models.catalog import Usage
from refold.service.callers import Caller
from refold.service.offload import (
    CALLER,
    STOP,
    MainProcess,
    Start,
    read_frame,
    write_body,
    write_frame,
)
from refold.service.problem import log_error, refused_at
from refold.service.server import calm_garbage_collection, log_to_standard_error
from refold.service.service import Service
from refold.stores import open_store

_NICE: Final = 10
"""So that the main process goes first if processors are scarce."""


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._whole = False
        self._outcome = Outcome()
        self.started = False

    async def head(self) -> dict[str, Any]:
        return json.loads(await read_frame(self._reader))

    async def answer(self, head: dict[str, Any]) -> UnloggedAnswer:
        sizes, usage = head.pop("pieces"), head.pop("usage")
        link, asked, seed = map(bytes.fromhex, head.pop("chain"))
        frames: list[bytes] = []
        while frame := await read_frame(self._reader):
            frames.append(frame)
        whole, end = b"".join(frames), 0
        pieces: list[bytes] = []
        for size in sizes:
            pieces.append(whole[end : end + size])
            end += size
        used = usage and Usage(*usage)
        return UnloggedAnswer(**head, chain=(link, asked, seed), pieces=tuple(pieces), usage=used)

    async def send_json(self, value: object) -> None:
        await write_frame(self._writer, json.dumps(value).encode())

    def scope(self, app: Starlette, head: dict[str, Any]) -> Scope:
        tenant, key, roles, stale = head["caller"]
        headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]
        ]
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": head["method"],
            "path": head["path"],
            "raw_path": head["raw_path"].encode("latin-1"),
            "query_string": head["query"].encode("latin-1"),
            "root_path": "",
            "headers": headers,
            "client": None,
            "server": None,
            "app": app,
            "state": {},
            CALLER: Caller(tenant, key, frozenset(roles), stale),
        }
        self._outcome = Outcome.of(scope)
        return scope

    async def receive(self) -> Message:
        """The next piece of the body; after it, a disconnect once the client is gone."""
        if self._whole:
            with suppress(OSError):
                await self._reader.read(1)
            return {"type": "http.disconnect"}
        try:
            piece = await read_frame(self._reader)
        except (OSError, EOFError):
            self._whole = True
            return {"type": "http.disconnect"}
        self._whole = not piece
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = [
                [name.decode("latin-1"), value.decode("latin-1")]
                for name, value in message["headers"]
            ]
            outcome = self._outcome.as_json()
            await self.send_json(
                {"status": message["status"], "headers": headers, "outcome": outcome}
            )
            return
        await write_body(self._writer, message.get("body", b""))
        if not message.get("more_body", False):
            await write_frame(self._writer, b"")
            await self.send_json(self._outcome.as_json())


class OffloadServer:
    def __init__(self, service: Service) -> None:
        self._gateway = service.gateway
        self._app = Starlette(routes=gateway.routes(service.gateway))
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is one
        self._tasks.add(task)
        try:
            await self._answer(_Connection(reader, writer))
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the main process broke it off, or this process ends
        except Exception as error:  # noqa: BLE001 - the connection closes, and the log says why
            log_error(error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _answer(self, connection: _Connection) -> None:
        head = await connection.head()
        if "answer" in head:
            logged = await self._gateway.log_answer(await connection.answer(head["answer"]))
            await connection.send_json(logged._asdict())
            return
        scope = connection.scope(self._app, head)
        try:
            await self._app(scope, connection.receive, connection.send)
        except BrokenOff:
            return  # the connection closes without an end
        except (OSError, EOFError):
            raise
        except Exception as error:
            if connection.started:
                raise
            refusal = refused_at(scope, error, self._gateway.prefixes)
            await refusal(scope, connection.receive, connection.send)


async def _live(
    start: Start, main_process: MainProcess, input_ended: Callable[[], Awaitable[None]]
) -> None:
    service = Service(
        start.settings,
        open_store(start.store, forget_journal=start.settings.profile.store.forget_journal),
        start.store,
        worker=start.worker,
        offloaded=main_process,
    )
    async with service:
        server = OffloadServer(service)
        listening = await asyncio.start_unix_server(server, start.socket, limit=1 << 20)
        async with listening:
            calm_garbage_collection()
            main_process.report("ready")
            await input_ended()
            listening.close()
            await server.close()


async def _main() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    # Only the main process holds the other end of this pipe.
    start: Start = pickle.loads(await read_frame(reader))  # noqa: S301

    async def input_ended() -> None:
        await reader.read()

    def write(data: bytes) -> None:
        with suppress(OSError):  # then the main process is gone, and this one ends in a moment
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    await _live(start, MainProcess(write), input_ended)


def _end_soon_after_input() -> None:
    """End this process some seconds after its input at the latest, whatever it waits for."""
    input_closed = select.poll()
    input_closed.register(sys.stdin.fileno(), 0)  # a pipe's other end is reported unasked
    input_closed.poll()
    time.sleep(STOP)
    os._exit(1)


def main() -> None:
    # A thread: the loop may be held up, and threads that others left may keep the interpreter.
    threading.Thread(target=_end_soon_after_input, daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    log_to_standard_error()
    asyncio.run(_main())


if __name__ == "__main__":
    main()
