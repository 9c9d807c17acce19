"""Streams through the gateway over real sockets: what is passed on when, and who leaves."""

import asyncio
import json
from contextlib import aclosing

import httpx2
import pytest
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, World, body_of, served

from refold.log import Note
from refold.testing.upstream import Reply, ScriptedUpstream

LONG = Reply("One two three four five six.", pieces=8)


class Streams:
    """A gateway and its upstream, each behind a socket."""

    def __init__(self, world, address):
        self.world, self.address = world, address

    async def stream(self, path, body, until=None):
        """What a client reads: all of it, or until it has seen something."""
        got = b""
        async with (
            httpx2.AsyncClient() as client,
            client.stream("POST", self.address + path, json=body) as response,
        ):
            async for chunk in response.aiter_raw():
                got += chunk
                if until is not None and until in got:
                    break
        return response, got


@pytest.fixture
async def streams():
    closing = []

    async def make(reply):
        upstream = served(ScriptedUpstream(reply))
        address = await upstream.__aenter__()
        closing.append(upstream)
        world = World(reply, address=address)
        gateway = served(world.app)
        closing.extend([aclosing(world), gateway])
        return Streams(world, await gateway.__aenter__())

    yield make
    for one in reversed(closing):
        await one.__aexit__(None, None, None)


@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_passes_byte_for_byte(streams, path):
    s = await streams(lambda _: LONG)
    body = body_of(path, "hi", stream=True)
    response, got = await s.stream(path, body)
    async with served(ScriptedUpstream(lambda _: LONG)) as direct, httpx2.AsyncClient() as client:
        expected = (await client.post(direct + path, json=body)).content
    assert got == expected
    (line,) = [await s.world.said(name) for name in await s.world.sessions()]
    assert "four five six." in json.dumps(line[1])
    assert response.headers["refold-session"] in await s.world.sessions()


@pytest.mark.parametrize("path", PATHS)
async def test_the_end_is_sent_when_the_log_has_the_answer(streams, path, monkeypatch):
    s = await streams(lambda _: LONG)
    logged, let_go = asyncio.Event(), asyncio.Event()
    log = s.world.log
    append = type(log).append

    async def slow(self, session, drafts, **more):
        if any(b"four five six." in one.body for one in drafts):
            logged.set()
            await let_go.wait()
        return await append(self, session, drafts, **more)

    monkeypatch.setattr(type(log), "append", slow)
    ends = {CHAT: b"[DONE]", RESPONSES: b"response.completed", MESSAGES: b"message_stop"}
    got = bytearray()

    async def read():
        async with (
            httpx2.AsyncClient() as client,
            client.stream("POST", s.address + path, json=body_of(path, "hi", stream=True)) as one,
        ):
            async for chunk in one.aiter_raw():
                got.extend(chunk)

    reading = asyncio.create_task(read())
    await logged.wait()
    await asyncio.sleep(0.05)
    assert b"six." in got
    assert ends[path] not in got
    let_go.set()
    await reading
    assert ends[path] in got


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_leaves_leaves_an_entry_marked_interrupted(streams, path):
    goes_on = asyncio.Event()

    async def slow(_):
        return Reply("One two three four.", pieces=4, pause=goes_on.wait)

    s = await streams(slow)
    body = body_of(path, "hi", stream=True)
    await s.stream(path, body, until=b"One")
    async with asyncio.timeout(20):
        while not (await noted(s)):  # noqa: ASYNC110 - it is written in its own time
            await asyncio.sleep(0.02)
    goes_on.set()
    (session,) = await s.world.sessions()
    assert "One" in json.dumps((await s.world.said(session))[1])
    response, got = await s.stream(path, body)
    assert b"our." in got
    assert response.headers["refold-session"]


@pytest.mark.parametrize("path", PATHS)
async def test_an_upstream_that_breaks_off_leaves_one_too(streams, path):
    s = await streams(lambda _: Reply("One two three four.", breaks_after=5, pieces=6))
    with pytest.raises(httpx2.TransportError):
        await s.stream(path, body_of(path, "hi", stream=True))
    await s.world.quiet()
    assert await noted(s)


async def noted(s):
    """Whether an interruption is in the log."""
    values = [one for name in await s.world.sessions() for one in await s.world.values(name)]
    return any(isinstance(one, Note) and "interrupted" in one.text for one in values)
