"""Clients of a model's server, as many as are wanted at once, for next to nothing each."""

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from time import perf_counter
from typing import Final, NamedTuple

from benchmarks.gateway_upstream import COUNT, DONE, TEXT

TURNS: Final = 10
_SYSTEM: Final = "You are a careful engineer. Read before you write, say what you changed. " * 25
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Use this to {name} what the user speaks of, wherever it is kept. " * 4,
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["path"],
            },
        },
    }
    for name in ("read", "search", "list", "write")
]
_REST: Final = {"stream_options": {"include_usage": True}, "temperature": 0, "tools": _TOOLS}
_BEFORE: Final = (
    b'{"model": "bench-model", "stream": true, "messages": ['
    + json.dumps({"role": "system", "content": _SYSTEM}).encode()
)
_AFTER: Final = f"], {json.dumps(_REST)[1:]}".encode()
_ANSWERED: Final = b", " + json.dumps({"role": "assistant", "content": TEXT}).encode()
_END: Final = b"0\r\n\r\n"
_NAMES: Final = count()


class Took(NamedTuple):
    """One request: when it ended, and how many seconds it took to its first event and in all."""

    end: float
    first: float
    whole: float


class Loaded(NamedTuple):
    """What came of a load."""

    took: list[Took]
    errors: list[str]
    seconds: float

    @property
    def pace(self) -> float:
        """Requests a second."""
        return len(self.took) / self.seconds

    def late(self, share: float) -> float:
        """The time, in ms, that this share of the requests took no longer than."""
        times = sorted(one.whole for one in self.took)
        return 1e3 * times[min(len(times) - 1, int(share * len(times)))]


class Talk:
    """A conversation: each turn sends all of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said = _BEFORE
        self._turn = 0

    def body(self) -> bytes:
        """The next turn's."""
        answered = _ANSWERED if self._turn else b""
        words = f"{self._name}, turn {self._turn}: look at the next file, and go on. " * 5
        said = json.dumps({"role": "user", "content": words}).encode()
        self._said += answered + b", " + said
        self._turn += 1
        return self._said + _AFTER


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, port: int, *headers: str) -> None:
        lines = ["POST /v1/chat/completions HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers]
        self._head = "\r\n".join([*lines, "Content-Type: application/json"]).encode()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._taken: list[bytes] = []
        self._done: asyncio.Future[None]
        self._first = 0.0
        self._port = port

    async def connect(self) -> None:
        await self._loop.create_connection(lambda: self, "127.0.0.1", self._port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._first and b"data: " in data:
            self._first = perf_counter()
        self._taken.append(data)
        whole = data if len(data) >= len(_END) else b"".join(self._taken[-6:])
        if whole.endswith(_END) or (len(self._taken) == 1 and not data.startswith(b"HTTP/1.1 200")):
            self._end()

    def connection_lost(self, _: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if hasattr(self, "_done") and not self._done.done():
            self._done.set_result(None)

    async def ask(self, body: bytes) -> Took | str:
        """Ask and take the whole answer; what was wrong with it, if anything was."""
        self._taken.clear()
        self._first = 0.0
        self._done = self._loop.create_future()
        began = perf_counter()
        self._transport.write(b"%b\r\nContent-Length: %d\r\n\r\n%b" % (self._head, len(body), body))
        await self._done
        end = perf_counter()
        got = b"".join(self._taken)
        if not got.startswith(b"HTTP/1.1 200") or got.count(b"data: ") != COUNT or DONE not in got:
            return got[:500].decode(errors="replace") or "The connection was closed."
        return Took(end, self._first - began, end - began)

    def close(self) -> None:
        self._transport.close()


def _lengths() -> Iterator[int]:
    """Conversations of one to ten turns, mixed."""
    while True:
        yield from (7, 2, 10, 5, 1, 8, 3, 9, 6, 4)


async def load(port: int, streams: int, seconds: float, *headers: str) -> Loaded:
    """Ask from so many connections for so long; what began in that time is waited for."""
    took: list[Took] = []
    errors: list[str] = []
    lengths = _lengths()
    clients = [Client(port, *headers) for _ in range(streams)]
    await asyncio.gather(*(one.connect() for one in clients))
    began = perf_counter()
    until = began + seconds

    async def talk(client: Client) -> None:
        while perf_counter() < until and not errors:
            talk = Talk(f"conversation {next(_NAMES)}")
            for _ in range(next(lengths)):
                done = await client.ask(talk.body())
                if isinstance(done, str):
                    errors.append(done)
                    return
                took.append(done)
                if done.end >= until:
                    return

    await asyncio.gather(*map(talk, clients))
    for one in clients:
        one.close()
    return Loaded(took, errors, perf_counter() - began)


async def sessions(port: int, talks: list[Talk], at_once: int) -> list[str]:
    """One more turn of each conversation; what went wrong."""
    errors: list[str] = []
    waiting = iter(talks)

    async def work() -> None:
        client = Client(port, "X-At-Once: 1")
        await client.connect()
        for talk in waiting:
            done = await client.ask(talk.body())
            if isinstance(done, str):
                errors.append(done)
        client.close()

    await asyncio.gather(*(work() for _ in range(at_once)))
    return errors
