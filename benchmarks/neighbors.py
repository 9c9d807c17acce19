"""One tenant's requests while another tenant sends the largest that are served.

A real `refold serve` with two keys of two tenants. One asks small questions one after another, and
somebody asks for the service's health; both are timed. Meanwhile the other tenant sends one large
request at a time: a message of 60 MB, one as large as is served, 10,000 calls and results, 20,000
blocks with cache marks, and requests whose answers are 200 KB of nested JSON. The upstream answers
at once: what is timed is the service.

For each kind, rounds without it and with it take turns, and the worst delay with it is compared
with the 99th percentile without it. The large bodies are sent by a process of their own, made
beforehand. Everything shares the machine's processors, so the ratios are what counts.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final, NamedTuple

from benchmarks.figures import Figure
from benchmarks.gateway import running
from refold.engine.dbos import prepare
from refold.service.keys import keyring_of
from refold.stores import open_store
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs

MAX_RATIO: Final = 5.0
MODEL: Final = "bench-model"
CHAT: Final = "/v1/chat/completions"
MESSAGES: Final = "/v1/messages"
_NO_LIMITS: Final = {
    f"REFOLD_SERVE__LIMITS__{name}": "0" for name in ("KEY_REQUESTS", "TENANT_REQUESTS")
}
_ROLE: Final = "app"
_MEGABYTE: Final = 1 << 20
_PATIENCE: Final = 120.0
_ROUND: Final = "ROUND-000000"
"""Another text in each request: the store keeps what it has."""
_PAUSE: Final = 0.005
"""Seconds between two requests of the small tenant."""
_NESTED: Final = 200_000
"""Bytes of a nested answer."""
_LEVELS: Final = 150
"""As deep as JSON may be that is looked into."""


Sender = subprocess.Popen[str]
"""A process that sends large requests."""


class Attack(NamedTuple):
    """One kind of large request."""

    path: str
    body: Callable[[], bytes]
    answer: str = ""
    """Which of the upstream's large answers it gets."""


@dataclass
class Delays:
    """Seconds that each request took, of the small tenant and for the service's health."""

    chat: list[float] = field(default_factory=list[float])
    health: list[float] = field(default_factory=list[float])
    refused: int = 0


@dataclass
class Outcome:
    """All rounds of one kind of large request, and those without it right before."""

    quiet: Delays = field(default_factory=Delays)
    worst_chat: list[float] = field(default_factory=list[float])
    worst_health: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    statuses: list[int] = field(default_factory=list[int])
    refused: int = 0


def figures(*, quick: bool) -> list[Figure]:
    rounds, seconds = (2, 0.5) if quick else (5, 4.0)
    attacks = {name: ATTACKS[name] for name in ATTACKS if not quick or name in _QUICK}
    found: list[Figure] = []
    for label, serving in _stores(quick=quick):
        with serving as service:
            outcomes = asyncio.run(_measured(service, attacks, rounds, seconds))
        for name, outcome in outcomes.items():
            found += _compared(f"{name}, {label}", outcome)
    return found


def _compared(name: str, outcome: Outcome) -> list[Figure]:
    quiet = outcome.quiet
    bars = (
        ("chat", quiet.chat, outcome.worst_chat),
        ("health", quiet.health, outcome.worst_health),
    )
    found: list[Figure] = []
    for what, calm, worst in bars:
        p99 = _percentile(calm, 0.99)
        # The median over rounds: a machine that stops for a moment is no finding.
        ratio = median(worst) / p99
        found.append(Figure(f"{what}: worst ÷ p99 without, {name}", ratio, MAX_RATIO, "at most"))
        found.append(Figure(f"{what}: worst of all rounds in ms, {name}", 1e3 * max(worst)))
        found.append(Figure(f"{what}: p99 without in ms, {name}", 1e3 * p99))
    refused = outcome.refused + quiet.refused
    found.append(Figure(f"requests of the other refused, {name}", refused, 0, "at most"))
    found.append(Figure(f"seconds that it took itself, {name}", median(outcome.seconds)))
    found.append(Figure(f"its status, {name}", max(outcome.statuses)))
    return found


def _percentile(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# What is sent


def _message(megabytes: int) -> bytes:
    text = _ROUND + " All work and no play makes a dull day. " * (megabytes * _MEGABYTE // 39 - 100)
    return _chat([{"role": "user", "content": text}])


def _calls() -> bytes:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Read all of it. {_ROUND}"}]
    for index in range(9_999):
        function = {"name": "read", "arguments": json.dumps({"path": f"src/{index}.py"})}
        calls = [{"id": f"call_{index}", "type": "function", "function": function}]
        content = f"What is in file {index} is not what the tests say of it."
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"call_{index}", "content": content},
        ]
    return _chat(messages)


def _marked_blocks() -> bytes:
    mark = {"type": "ephemeral"}
    blocks = [
        {"type": "text", "text": f"Block {index} of {_ROUND}.", "cache_control": mark}
        for index in range(20_000)
    ]
    messages = [{"role": "user", "content": blocks}]
    return json.dumps({"model": MODEL, "max_tokens": 100, "messages": messages}).encode()


def _small() -> bytes:
    return _chat([{"role": "user", "content": f"Go on. {_ROUND}"}])


def _chat(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": MODEL, "messages": messages}).encode()


ATTACKS: Final[Mapping[str, Attack]] = {
    "60 MB in one message": Attack(CHAT, lambda: _message(60)),
    "31 MB in one message": Attack(CHAT, lambda: _message(31)),
    "10,000 calls and results": Attack(CHAT, _calls),
    "20,000 marked blocks": Attack(MESSAGES, _marked_blocks),
    "an answer nested in one place": Attack(CHAT, _small, "deep"),
    "an answer with many nested values": Attack(CHAT, _small, "wide"),
    "an answer with nested arguments": Attack(CHAT, _small, "arguments"),
}
_QUICK: Final = frozenset(
    {
        "31 MB in one message",
        "10,000 calls and results",
        "20,000 marked blocks",
        "an answer with many nested values",
    }
)
"""One of each kind."""


# What answers


def _answer(message: dict[str, Any], **more: object) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    return json.dumps({"id": "x", "choices": [choice], "usage": usage, **more}).encode()


def _nested(levels: int) -> str:
    return '{"a":[' * (levels // 2) + "1" + "]}" * (levels // 2)


def _answers() -> dict[bytes, bytes]:
    plain = _answer({"content": "Hello there."})
    deep = plain[:-1] + b',"extra":' + b"[" * (_NESTED // 2) + b"]" * (_NESTED // 2) + b"}"
    one = json.loads(_nested(_LEVELS))
    count = _NESTED // len(json.dumps(one))
    wide = _answer({"content": "Hello there.", "extra": [one] * count})
    function = {"name": "read", "arguments": "[" * (_NESTED // 2) + "]" * (_NESTED // 2)}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    arguments = _answer({"content": None, "tool_calls": calls})
    return {b"": plain, b"deep": deep, b"wide": wide, b"arguments": arguments}


class _Upstream(asyncio.Protocol):
    """One connection of the service's; requests come one at a time."""

    answers: Mapping[bytes, bytes]

    def __init__(self) -> None:
        self._taken = bytearray()
        self._missing = -1
        self._which = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            self._taken += data
            head = self._taken.find(b"\r\n\r\n")
            if head < 0:
                return
            lower = bytes(self._taken[:head]).lower()
            length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
            self._which = lower.partition(b"x-answer:")[2].partition(b"\r\n")[0].strip()
            self._messages = lower.startswith(b"post /v1/messages")
            self._missing = length - (len(self._taken) - head - 4)
            self._taken.clear()
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self._missing = -1
            body = _ANTHROPIC if self._messages else self.answers[self._which]
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            self._transport.write(head % len(body) + body)


_ANTHROPIC: Final = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": "Hello there."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }
).encode()


def upstream(ready: Connection) -> None:
    """Answer until killed."""

    async def live() -> None:
        _Upstream.answers = _answers()
        server = await asyncio.get_running_loop().create_server(_Upstream, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(live())


# The service


class Service(NamedTuple):
    """A service that runs, and a key of each tenant."""

    port: int
    small: str
    large: str


@contextmanager
def _serving(store: str, folder: str) -> Iterator[Service]:
    async def keys() -> list[str]:
        async with open_store(store) as opened:
            keyring = keyring_of(opened)
            return [(await keyring.create(one, ["use"])).secret for one in ("small", "large")]

    small, large = asyncio.run(keys())
    own = {name: value for name, value in os.environ.items() if not name.startswith("REFOLD_")}
    with running(upstream) as models, (Path(folder) / "serve.log").open("a") as log:
        address = f"http://127.0.0.1:{models.port}/v1"
        process = subprocess.Popen(  # noqa: S603 - our own command
            [
                *(sys.executable, "-m", "refold.cli", "serve", "--port", "0", "--json"),
                *("--no-worker", "--upstream", address, "--store", store),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env={**own, **_NO_LIMITS, "HOME": folder},
        )
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield Service(int(told["address"].rpartition(":")[2]), small, large)
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _stores(*, quick: bool) -> Iterator[tuple[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        yield "SQLite", _serving(f"sqlite:///{folder}/bench.db", folder)
    if quick or programs() is None:
        return
    with Cluster(durable=True) as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.execute(f"CREATE ROLE {_ROLE} LOGIN")

        async def prepared() -> None:
            await migrate(cluster.database("bench"), roles=[_ROLE])
            await prepare(cluster.address("bench"), roles=[_ROLE])

        asyncio.run(prepared())
        yield "PostgreSQL", _serving(cluster.address("bench", user=_ROLE), folder)


# The measurement


async def _measured(
    service: Service, attacks: Mapping[str, Attack], rounds: int, seconds: float
) -> dict[str, Outcome]:
    outcomes = {name: Outcome() for name in attacks}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        senders = {
            name: stack.enter_context(_sender(service, folder, attack))
            for name, attack in attacks.items()
        }
        await _round(service, seconds)  # what is imported and opened once
        for _ in range(rounds):
            for name, outcome in outcomes.items():
                quiet = await _round(service, seconds)
                outcome.quiet.chat += quiet.chat
                outcome.quiet.health += quiet.health
                loud = await _round(service, 0, senders[name])
                outcome.worst_chat.append(max(loud.chat))
                outcome.worst_health.append(max(loud.health))
                outcome.refused += loud.refused
                said = senders[name].stdout
                assert said is not None
                told = json.loads(await asyncio.to_thread(said.readline))
                outcome.seconds.append(told["seconds"])
                outcome.statuses.append(told["status"])
    return outcomes


@contextmanager
def _sender(service: Service, folder: str, attack: Attack) -> Iterator[Sender]:
    """A process that sends its request for each line that it is given."""
    body = Path(folder) / f"{attack.path.replace('/', '-')}-{id(attack)}.json"
    body.write_bytes(attack.body())
    process = subprocess.Popen(  # noqa: S603 - our own code
        [
            *(sys.executable, "-c", _SENDER, str(service.port), attack.path, str(body)),
            *(service.large, attack.answer),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


_SENDER: Final = """
import http.client, json, sys, time
port, path, file, key, answer = sys.argv[1:]
body = open(file, "rb").read()
for count, line in enumerate(sys.stdin):
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    if answer:
        headers["X-Answer"] = answer
    try:
        connection.request("POST", path, body.replace(b"ROUND-000000", b"%012d" % count), headers)
    except ConnectionError:
        pass
    try:
        response = connection.getresponse()
        status, managed = response.status, response.headers.get("refold-managed", "")
        response.read()
    except ConnectionError:
        status, managed = 0, ""
    connection.close()
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "status": status, "managed": managed}), flush=True)
"""


async def _round(service: Service, seconds: float, sender: Sender | None = None) -> Delays:
    """Ask for so long, or until the large request was answered and a moment after."""
    delays, over = Delays(), asyncio.Event()

    async def watch() -> None:
        if sender is None:
            await asyncio.sleep(seconds)
        else:
            await asyncio.sleep(0.05)
            assert sender.stdin is not None
            assert sender.stdout is not None
            sender.stdin.write("\n")
            sender.stdin.flush()
            loop, answered = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(sender.stdout, answered.set)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await answered.wait()
            finally:
                loop.remove_reader(sender.stdout)
            await asyncio.sleep(0.2)
        over.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        group.create_task(_ask(service, delays, over, chat=True))
        group.create_task(_ask(service, delays, over, chat=False))
    return delays


async def _ask(service: Service, delays: Delays, over: asyncio.Event, *, chat: bool) -> None:
    async with _connected(service.port) as (reader, writer):
        turn = 0
        while not over.is_set():
            turn += 1
            content = f"{perf_counter()}: what is the next step?"
            body = _chat([{"role": "user", "content": content}]) if chat else b""
            what = f"POST {CHAT}" if chat else "GET /healthz"
            head = (
                f"{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.small}\r\n"
            )
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            began = perf_counter()
            writer.write(head.encode() + body)
            async with asyncio.timeout(_PATIENCE):
                status = await _read_response(reader)
            (delays.chat if chat else delays.health).append(perf_counter() - began)
            delays.refused += status != b"200"
            await asyncio.sleep(_PAUSE)


@asynccontextmanager
async def _connected(
    port: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _read_response(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    if b"content-length:" in lower:
        length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
    else:
        await reader.readuntil(b"0\r\n\r\n")
    return head.split(b" ", 2)[1]
