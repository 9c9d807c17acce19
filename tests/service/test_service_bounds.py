"""What is bounded: sizes of what comes, and how long it may take."""

import asyncio
from urllib.parse import urlsplit

import pytest
from service_routes import ROUTES, head
from serving import asking, running, service_with
from starlette.responses import StreamingResponse
from starlette.routing import Route

from refold.service.middleware import is_too_deep


async def raw(address, sent, *, seconds=20.0):
    """What the service says to these bytes until it closes the connection."""
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(sent)
        await writer.drain()
        async with asyncio.timeout(seconds):
            return await reader.read()
    finally:
        writer.transport.abort()


async def test_a_body_that_says_to_be_too_large_is_refused_before_it_comes():
    async with running(service_with(sizes={"gateway": 5_000, "api": 2_000}), ROUTES) as address:
        answer = await raw(address, head("/modelled", "Content-Length: 99999999999"))
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()
        assert b"request-too-large" in answer
        waiting = head("/modelled", "Content-Length: 2001", "Expect: 100-continue")
        answer = await raw(address, waiting)
        assert answer.startswith(b"HTTP/1.1 413 ")
        answer = await raw(address, head("/v1/messages", "Content-Length: 5001"))
        assert b"request_too_large" in answer


async def test_a_body_that_grows_too_large_is_not_read_to_its_end():
    async def pieces():
        for _ in range(1_000):
            yield b"x" * 1_000

    async with asking(service_with(sizes={"api": 10_000}), ROUTES) as client:
        answer = await client.post("/modelled", content=pieces())
        assert answer.status_code == 413
        answer = await client.post("/modelled", content=b"x" * 10_000)
        assert answer.text == "10000"
        # FastAPI would tell of any failure of a body as a 400.
        answer = await client.post("/api/v1/keys", content=b" " * 10_001)
        assert (answer.status_code, answer.json()["code"]) == (413, "request-too-large")


async def test_slow_clients_are_not_waited_for():
    times = {"headers": 0.2, "pause": 0.2, "body": 0.5, "idle": 1}
    async with running(service_with(times=times), ROUTES) as address:
        assert await raw(address, b"") == b""
        assert await raw(address, b"POST /modelled HTTP/1.1\r\nHost: loc") == b""
        answer = await raw(address, head("/modelled", "Content-Length: 10") + b"abc")
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"request-too-slow" in answer
        dripped = asyncio.create_task(drip(address))
        async with asyncio.timeout(20):
            assert await dripped in (b"HTTP/1.1 408 ", b"")
        # Who was answered and then begins slowly is not waited for either.
        whole = head("/modelled", "Content-Length: 1") + b"a"
        answer = await raw(address, whole + b"POST /mod")
        assert answer.startswith(b"HTTP/1.1 200 ")


async def drip(address):
    """Send a byte of a body now and then, each in time, the whole never."""
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(head("/modelled", "Content-Length: 100000"))
    answer = asyncio.create_task(reader.read())
    try:
        while not answer.done():
            writer.write(b"x")
            await asyncio.wait({answer}, timeout=0.05)
        return answer.result()[:13]
    except ConnectionError:  # who still writes when it is closed may not get to read why
        return b""
    finally:
        answer.cancel()
        writer.transport.abort()


async def test_a_client_that_reads_nothing_is_dropped():
    ended = asyncio.Event()

    async def endless():
        try:
            while True:
                yield b"x" * 65_536
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def stream(_):
        return StreamingResponse(endless())

    service = service_with(times={"reader": 0.2})
    async with running(service, [Route("/endless", stream)]) as address:
        where = urlsplit(address)
        _, writer = await asyncio.open_connection(where.hostname, where.port, limit=1_024)
        writer.write(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(20):
            await ended.wait()
        writer.transport.abort()


async def test_headers_without_end_are_refused():
    async with running(service_with(sizes={"headers": 8_192}), ROUTES) as address:
        try:
            answer = await raw(address, b"GET / HTTP/1.1\r\nX-Much: " + b"x" * 100_000)
        except ConnectionError:
            answer = b""
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
        assert (await raw(address, b"\x00\xff nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
async def test_nesting_beyond_measure_is_refused(opening):
    async with asking(service_with(), ROUTES) as client:
        deep = opening * 100_000
        answer = await client.post("/api/v1/keys", content=deep)
        assert (answer.status_code, answer.json()["code"]) == (400, "request-too-deep")
    assert not is_too_deep(b"[" * 50 + b"]" * 50)
    assert not is_too_deep(b'{"a": "' + b"[" * 5_000 + b'"}')
    assert not is_too_deep(b"no JSON")
