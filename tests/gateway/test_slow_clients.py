"""Clients and upstreams that keep a running `refold serve` waiting, and odd framing.

Whoever waits holds no connection to the store, and nobody else waits for them.
"""

import asyncio
import json
import socket
import statistics
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from serve_processes import http_answer, raw_server, refold_serve

from refold.log import CODEC, Message, Span
from refold.service.keys import keyring_of
from refold.stores import open_store

CHAT = "/v1/chat/completions"
SLOW = 30
"""More than a pool of connections to the store has (10), and than a key needs."""
IDLE = 300
TIMES = "[serve.times]\nheaders = 60\npause = 60\nbody = 90\nreader = 4\nidle = 60\nstore = 30\n"
_PATIENCE = 60


def body_of(text, **more):
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def event(text):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return b"data: %b\n\n" % json.dumps({"id": "x", "choices": [choice]}).encode()


class Upstream:
    """Streams as slowly, or as much, as the request says."""

    def __init__(self):
        self.begun = 0
        self.streams = 0

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
                words = (await reader.readexactly(length)).decode()
                if '"stream"' in words:
                    await self._stream(writer, words)
                    return
                writer.write(http_answer())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _stream(self, writer, words):
        self.begun += 1
        self.streams += 1
        try:
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + event("The first words. "))
            await writer.drain()
            while True:
                if "dripping" in words:
                    writer.write(event("d"))
                    await asyncio.sleep(0.1)
                else:
                    writer.write(event("x" * 32_768))
                await writer.drain()
        finally:
            self.streams -= 1


@asynccontextmanager
async def slow_world(folder, store):
    """A service with two tenants before such an upstream: it, the upstream, their two keys."""
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with open_store(store) as opened:
        keys = [await keyring_of(opened).create(each, ["use"]) for each in ("acme", "beta")]
    try:
        one = {"name": "up", "base_url": address, "key": "UPSTREAM_KEY"}
        own = {"UPSTREAM_KEY": "sk-up"}
        async with refold_serve(folder, store, [one], settings=TIMES, environment=own) as serving:
            yield serving, upstream, *(f"Refold-Key: {key.secret}" for key in keys)
    finally:
        server.close()


class Slow:
    """Connections of one tenant that keep the service waiting, until the block ends."""

    def __init__(self, serving, key):
        self._serving, self._key = serving, key
        self._writers = []
        self._tasks = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    async def connect(self, count, sent, then=None, limit=1 << 16):
        """Connections that send this, and then do something or nothing."""
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
            sock.setblocking(False)  # noqa: FBT003 - its only parameter
            where = (self._serving.host, self._serving.port)
            await asyncio.get_running_loop().sock_connect(sock, where)
            reader, writer = await asyncio.open_connection(sock=sock, limit=limit)
            self._writers.append(writer)
            writer.write(sent)
            if then is not None:
                self._tasks.append(asyncio.create_task(then(reader, writer)))

    def post(self, text, **more):
        body = body_of(text, **more)
        return self.head(len(body)) + body

    def head(self, length):
        lines = [f"POST {CHAT} HTTP/1.1", "Host: localhost", self._key]
        return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


async def drip(_, writer):
    with suppress(ConnectionError):
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.2)


async def read_slowly(reader, _):
    with suppress(ConnectionError):
        while await reader.read(10):  # noqa: ASYNC110 - it is slow on purpose
            await asyncio.sleep(0.2)


async def latencies(serving, key, count=15):
    """Seconds that requests of a tenant take, one after another; each must be answered."""
    found = []
    for number in range(count):
        began = time.perf_counter()
        answer = await serving.ask(CHAT, key, method="POST", body=body_of(f"Question {number}"))
        found.append(time.perf_counter() - began)
        assert (answer.status, answer.header("refold-managed")) == (200, "yes"), answer
    return found


async def until(true, what):
    try:
        async with asyncio.timeout(_PATIENCE):
            while not true():  # noqa: ASYNC110 - another process sets no event here
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(what)


def memory_of(serving):
    """Bytes that the process has in memory."""
    status = Path(f"/proc/{serving.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


async def waiting_transactions(owner):
    """The service's connections to the store: how many, and which are in a transaction and idle."""
    parsed_request = (
        "SELECT pid, state, xact_start FROM pg_stat_activity WHERE datname = current_database()"
    )
    rows = await (await owner.execute(f"{parsed_request} AND pid <> pg_backend_pid()")).fetchall()
    return len(rows), {(row[0], row[2]) for row in rows if row[1].startswith("idle in transaction")}


async def answers_in(store, tenant):
    """In how many of a tenant's sessions the model's first words are."""
    found = 0
    async with open_store(store) as opened:
        log = opened.log(tenant)
        for each in (await log.sessions(limit=200)).sessions:
            entries = await log.read(each.session, Span(1, await log.head(each.session)))
            values = [CODEC.decode(entry) for entry in entries]
            found += any(
                b"The first words." in value.payload
                for value in values
                if isinstance(value, Message)
            )
    return found


async def test_slow_clients_hold_nothing_and_keep_nobody_waiting(postgres_address, owner, tmp_path):
    async with slow_world(tmp_path, postgres_address) as (serving, upstream, acme, beta):
        await latencies(serving, beta, 5)  # the first ones open what all need
        alone = await latencies(serving, beta)
        before = memory_of(serving)
        async with Slow(serving, acme) as slow:
            await slow.connect(IDLE, b"")
            await slow.connect(SLOW, f"POST {CHAT} HTTP/1.1\r\nX-Slow: ".encode(), drip)
            await slow.connect(SLOW, slow.head(100_000), drip)
            await slow.connect(SLOW, slow.post("dripping", stream=True), read_slowly)
            await slow.connect(SLOW, slow.post("much", stream=True), None, limit=1 << 10)
            await until(lambda: upstream.begun == 2 * SLOW, "not all streams have begun")
            beside = await latencies(serving, beta)
            samples = [await waiting_transactions(owner) for _ in range(2)]
            stuck = set.intersection(*(idle for _, idle in samples))
            assert not stuck, "a transaction waits for somebody"
            assert max(count for count, _ in samples) < SLOW
            grown = memory_of(serving) - before
            # What waits in the system's buffers is kept, since it is part of the answer.
            assert grown < SLOW * (8 << 20), f"{grown >> 20} MB more"
            # Those who take nothing are dropped, and their upstreams with them.
            await until(lambda: upstream.streams <= SLOW, "who reads nothing is not dropped")
        await until(lambda: upstream.streams == 0, "a stream goes on for nobody")
        after = await latencies(serving, beta)
    ratio = statistics.median(beside) / statistics.median(alone)
    assert ratio < 6, (alone, beside)
    # Those who left, and those who were dropped, while the service was told to stop.
    assert await answers_in(postgres_address, "acme") == 2 * SLOW
    assert statistics.median(after) / statistics.median(alone) < 6, (alone, after)


async def test_what_a_model_said_to_a_client_that_left_is_in_the_log(postgres_address, tmp_path):
    async with slow_world(tmp_path, postgres_address) as (serving, upstream, acme, _):
        async with Slow(serving, acme) as slow:
            await slow.connect(3, slow.post("dripping", stream=True))
            await until(lambda: upstream.begun == 3, "not all streams have begun")
            await asyncio.sleep(0.5)
        await until(lambda: upstream.streams == 0, "a stream goes on for nobody")

        async with asyncio.timeout(_PATIENCE):
            while await answers_in(postgres_address, "acme") != 3:  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.2)


# Framing.

HI = body_of("hi")
LENGTH = len(HI)
SMUGGLED = b"GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"
REFUSED = {
    "two lengths": ([f"Content-Length: {LENGTH}", "Content-Length: 3"], HI),
    "a list of lengths": ([f"Content-Length: {LENGTH}, 3"], HI),
    "a negative length": (["Content-Length: -1"], HI),
    "a signed length": ([f"Content-Length: +{LENGTH}"], HI),
    "a length in hexadecimal": (["Content-Length: 0x5"], HI),
    "a length in other digits": (["Content-Length: \xb2"], HI),
    "an empty length": (["Content-Length: "], HI),
    "a space in a name": ([f"Content-Length : {LENGTH}"], HI),
    "a size that is none": ([CHUNKED], b"zz\r\n" + HI + b"\r\n0\r\n\r\n"),
    "a negative size": ([CHUNKED], b"-1\r\n" + HI),
    "a prefixed size": ([CHUNKED], b"0x%x\r\n%b\r\n0\r\n\r\n" % (LENGTH, HI)),
    "a chunk that goes on": ([CHUNKED], b"3\r\n%b\r\n0\r\n\r\n" % HI),
    "chunked twice": ([CHUNKED, CHUNKED], b"0\r\n\r\n"),
    "another coding": (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
    "a coding before": (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
    "a NUL": ([f"Content-Length: {LENGTH}", "X-A: a\x00b"], HI),
    "a bare return": ([f"Content-Length: {LENGTH}", "X-A: a\rX-B: c"], HI),
    "two hosts": ([f"Content-Length: {LENGTH}", "Host: other"], HI),
    "a large header": ([f"Content-Length: {LENGTH}", f"X-A: {'a' * 70_000}"], HI),
    "many headers": ([f"Content-Length: {LENGTH}", *["X-A: a"] * 10_000], HI),
    "a folded first line": (["Content-Length: 0\r\n X-A: a"], b""),
}


def raw_request(headers, body, line=f"POST {CHAT} HTTP/1.1"):
    head = "\r\n".join([line, "Host: localhost", *headers, "", ""])
    return head.encode("latin-1") + body


async def test_a_body_whose_end_is_not_certain_reaches_nobody(postgres_address, tmp_path):
    async with raw_server() as upstream:
        named = {"name": "up", "base_url": f"{upstream.address}/v1"}
        async with refold_serve(tmp_path, postgres_address, [named], settings=TIMES) as serving:
            for what, (headers, body) in REFUSED.items():
                raw = await serving.raw(raw_request(headers, body + SMUGGLED))
                assert raw[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431"), (what, raw[:200])
                assert raw.count(b"HTTP/1.1 ") == 1, (what, raw[:2_000])
                assert upstream.got == [], what
            # Requests one after another without waiting are answered in their order.
            parsed_request = [raw_request([f"Content-Length: {LENGTH}"], HI)] * 20
            parsed_request.append(raw_request(["Connection: close"], b"", "GET /healthz HTTP/1.1"))
            raw = await serving.raw(b"".join(parsed_request))
            statuses = [piece[:3] for piece in raw.split(b"HTTP/1.1 ")[1:]]
            assert statuses == [b"200"] * 21, raw
            assert raw.count(b"Hello there.") == len(upstream.got) == 20
            assert raw.rpartition(b"HTTP/1.1 200 ")[2].count(b"Hello there.") == 0
            # A folded header is one line, or refused.
            folded = [f"Content-Length: {LENGTH}", "X-A: a\r\n X-B: b", "Connection: close"]
            await serving.raw(raw_request(folded, HI))
            assert not [got for got in upstream.got if got.values("x-b")]
