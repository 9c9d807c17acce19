"""A process that answers large requests: the gateway without a port, keys and limits of its own.

It ends when its input does, which is when the main process ends, however that ends.
"""

import asyncio
import json
import os
import pickle
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Message, Scope

from refold.gateway import gateway
from refold.gateway.incoming import UnloggedAnswer
from refold.gateway.upstream import BrokenOff
from refold.models.catalog import Usage
from refold.service.app import calm_garbage_collection, log_to_standard_error
from refold.service.callers import Caller
from refold.service.offload import Start, read_frame, write_body, write_frame
from refold.service.problem import refused_at, tell
from refold.service.service import Service
from refold.stores import open_store

_CALLER: Final = "refold.caller"
_LENGTH: Final = 4
_NICE: Final = 10
"""By how much the main process goes first where processors are scarce."""


class ToMainProcess:
    """Tells the main process what it counts and limits."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def tell(self, name: str, *given: object) -> None:
        """Call the method of that name there."""
        data = json.dumps([name, *given]).encode()
        self._write(len(data).to_bytes(_LENGTH, "big") + data)

    async def caller_of(self, request: Request) -> Caller:
        """Who asks: the main process has checked the key."""
        return cast("Caller", request.scope[_CALLER])

    def charge(self, caller: Caller, used: Usage, cost: float | None) -> None:
        """Tell what an answer used."""
        self.tell("charge", caller.tenant, caller.key, list(used), cost)

    def answer_given(self, shared: list[Any]) -> None:
        """Tell what an answer is known by."""
        self.tell("answer_given", shared)

    def passed_unmanaged(self, reason: str) -> None:
        """Tell of a request that was passed on unmanaged."""
        self.tell("passed_unmanaged", reason)

    def answer_not_logged(self) -> None:
        """Tell of an answer that the store could not take."""
        self.tell("answer_not_logged")

    def unmanaged_lost(self, turns: int) -> None:
        """Tell of turns that no client sent again."""
        self.tell("unmanaged_lost", turns)


class _Connection:
    """One request, as ASGI has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._whole = False
        self.started = False

    async def head(self) -> dict[str, Any]:
        """What comes first."""
        return json.loads(await read_frame(self._reader))

    async def answer(self, head: dict[str, Any]) -> UnloggedAnswer:
        """An answer that is to be logged."""
        sizes, link = head.pop("pieces"), bytes.fromhex(head.pop("link"))
        usage = head.pop("usage")
        frames = [frame async for frame in self._frames()]
        whole, end = b"".join(frames), 0
        pieces: list[bytes] = []
        for size in sizes:
            pieces.append(whole[end : end + size])
            end += size
        used = usage and Usage(*usage)
        return UnloggedAnswer(**head, link=link, pieces=tuple(pieces), usage=used)

    async def tell(self, told: object) -> None:
        """Send what came of it."""
        await write_frame(self._writer, json.dumps(told).encode())

    async def _frames(self) -> AsyncGenerator[bytes]:
        while frame := await read_frame(self._reader):
            yield frame

    def scope(self, app: Starlette, head: dict[str, Any]) -> Scope:
        """What is asked."""
        tenant, key, roles, stale = head["caller"]
        headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]
        ]
        return {
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
            _CALLER: Caller(tenant, key, frozenset(roles), stale),
        }

    async def receive(self) -> Message:
        """The next piece of the body; after it, that the client is gone."""
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
        """Send a piece of the answer."""
        if message["type"] == "http.response.start":
            self.started = True
            headers = [
                [name.decode("latin-1"), value.decode("latin-1")]
                for name, value in message["headers"]
            ]
            head = {"status": message["status"], "headers": headers}
            await write_frame(self._writer, json.dumps(head).encode())
            return
        await write_body(self._writer, message.get("body", b""))
        if not message.get("more_body", False):
            await write_frame(self._writer, b"")


class OffloadServer:
    """Answers the requests that come through the socket."""

    def __init__(self, service: Service) -> None:
        self._gateway = service.gateway
        self._app = Starlette(routes=gateway.routes(service.gateway))
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is one
        self._tasks.add(task)
        try:
            await self._answer(_Connection(reader, writer))
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # whoever asked is gone, or this process ends
        except Exception as error:  # noqa: BLE001 - the connection closes, and the log says why
            tell(error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def close(self) -> None:
        """Break off what is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _answer(self, connection: _Connection) -> None:
        head = await connection.head()
        if "answer" in head:
            logged = await self._gateway.log_answer(await connection.answer(head["answer"]))
            await connection.tell(logged._asdict())
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
            refusal = refused_at(scope["path"], error, self._gateway.prefixes)
            await refusal(scope, connection.receive, connection.send)


async def _live(
    start: Start, reporter: ToMainProcess, input_ended: Callable[[], Awaitable[None]]
) -> None:
    service = Service(
        start.settings,
        open_store(start.store),
        start.store,
        worker=start.worker,
        offloaded=reporter,
    )
    async with service:
        server = OffloadServer(service)
        listening = await asyncio.start_unix_server(server, start.socket, limit=1 << 20)
        async with listening:
            calm_garbage_collection()
            reporter.tell("ready")
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
        with suppress(OSError):  # then the main process is gone, and so are we in a moment
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    await _live(start, ToMainProcess(write), input_ended)


def main() -> None:
    """Run until the input ends."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    os.nice(_NICE)
    log_to_standard_error()
    asyncio.run(_main())


if __name__ == "__main__":
    main()
