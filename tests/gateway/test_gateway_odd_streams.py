"""Streams that are not as usual: packed, cut, too large, or with a refusal in them."""

import gzip
import json

import httpx2
import pytest
from gateway_edges import ENDS, TOO_LONG, asgi, raw, released
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, body_of, worlds

from refold.errors import StoreFailed
from refold.gateway.dialects import DIALECTS
from refold.gateway.upstream_stream import Events, UpstreamStream
from refold.testing.upstream import Rendered, Reply
from refold.testing.upstream_checks import Got


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


def events(path, reply):
    got = Got(path, {}, b"{}")
    return [*Rendered(got, reply, 1).events()]


async def logged(w):
    """All messages that the log has, as JSON text."""
    lines = [json.dumps(await w.said(name)) for name in await w.sessions()]
    return "\n".join(lines)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_an_upstream_that_packs_what_it_sends_is_understood(world, path, stream):
    w = world()
    reply = Reply("Hello there.")
    if stream:
        plain, kind = b"".join(events(path, reply)), b"text/event-stream"
    else:
        made = Rendered(Got(path, {}, b"{}"), reply, 1).whole()
        plain, kind = json.dumps(made).encode(), b"application/json"
    raw(w, gzip.compress(plain), kind=kind, headers=[(b"content-encoding", b"gzip")])
    answer = await w.ask(path, body_of(path, "hi", stream=stream))
    assert answer.content == plain
    assert "Hello there." in await logged(w)


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("path", PATHS)
async def test_a_last_event_without_its_blank_line_stays_the_last(world, path, cut, monkeypatch):
    w = world()
    told = events(path, Reply("Hello there."))
    plain = b"".join(told)[:-cut]
    raw(w, plain)
    answer = await w.ask(path, body_of(path, "hi", stream=True))
    assert answer.content == plain
    if path != RESPONSES:  # there the last event has the whole answer
        assert "Hello there." in await logged(w)

    w = world()
    raw(w, plain)
    append = type(w.log).append
    sent, before = [], []

    async def checked(self, session, drafts, **more):
        if any(b"Hello there." in one.body for one in drafts):
            before.extend(sent)
            raise StoreFailed("The store is away.", "Wait.")
        return await append(self, session, drafts, **more)

    monkeypatch.setattr(type(w.log), "append", checked)

    async def send(message):
        sent.append(message.get("body", b""))

    body = json.dumps(body_of(path, "hi", stream=True)).encode()
    await asgi(w.app, path, body, send)
    if path != RESPONSES:
        assert b"data: " in b"".join(before)
        assert ENDS[path] not in b"".join(before)  # the end waits until the log was tried
    comment = b": refold-managed: yes; answer=not-logged\n\n"
    whole = b"".join(sent)
    assert whole.replace(comment, b"") == plain
    assert ENDS[path] not in whole.partition(comment)[0]


async def test_an_event_that_is_too_large_to_read_passes(world, monkeypatch):
    monkeypatch.setattr(Events.__init__, "__defaults__", (1000,))
    for told in ([b"data: " + b"x" * 3000 + b"\n\n"], [b"data: {}\n\n", b"data: " + b"x" * 3000]):
        w = world()
        raw(w, *told)
        answer = await w.ask(CHAT, body_of(CHAT, "hi", stream=True))
        assert answer.status_code == 200
        assert answer.content == b"".join(told)
        await w.quiet()
        released(w)


def created(status="in_progress", error=None):
    return {"id": "resp_1", "object": "response", "status": status, "error": error, "output": []}


def named(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


REFUSED = {
    CHAT: [b"data: " + json.dumps(TOO_LONG).encode() + b"\n\n", b"data: [DONE]\n\n"],
    RESPONSES: [
        named("response.created", response=created()),
        named("response.in_progress", response=created()),
        named("response.failed", response=created("failed", TOO_LONG["error"])),
    ],
    MESSAGES: [
        named(
            "error",
            error={
                "type": "invalid_request_error",
                "message": "prompt is too long: 9000 tokens > 3000 maximum",
            },
        )
    ],
}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_within_a_stream_is_one(world, path, together):
    w = world()
    chunks = [b"".join(REFUSED[path])] if together else REFUSED[path]
    upstream, parsed_request = w.upstream, []

    async def app(scope, receive, send):
        if parsed_request:
            return await upstream(scope, receive, send)
        parsed_request.append(1)
        await receive()
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        return await send({"type": "http.response.body", "body": b""})

    w._upstream._transport = httpx2.ASGITransport(app)
    said = [f"{n}: " + "something to say " * 60 for n in range(31)]
    answer = await w.ask(path, body_of(path, *said, stream=True))
    assert ENDS[path] in answer.content
    assert len(w.upstream.got) == 1
    assert len(w.upstream.got[0].raw) < 14_000


@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_within_a_stream_that_nothing_helps_passes_whole(world, path):
    w = world()
    raw(w, *REFUSED[path])
    answer = await w.ask(path, body_of(path, "hi", stream=True))
    assert answer.content == b"".join(REFUSED[path])
    assert answer.headers["content-type"].startswith("text/event-stream")
    await w.quiet()
    released(w)


class Chunks:
    """A response that comes in these chunks; how many were read."""

    def __init__(self, *chunks):
        self.chunks, self.read = chunks, 0

    async def aiter_raw(self):
        for chunk in self.chunks:
            self.read += 1
            yield chunk


@pytest.mark.parametrize("path", PATHS)
async def test_the_first_event_is_the_first_that_says_something(path):
    response = Chunks(b": wait\n\n", *REFUSED[path])
    listening = UpstreamStream(DIALECTS[path], response)
    await listening.begin()
    assert listening.error is not None
    assert await listening.read_refusal() == b"".join(response.chunks)
    told = events(path, Reply("Hello there."))
    response = Chunks(b": wait\n\n", *told)
    listening = UpstreamStream(DIALECTS[path], response)
    await listening.begin()
    assert (listening.error, listening.silent) == (None, False)
    assert response.read < 4
    passed = [chunk async for chunk in listening.chunks()]
    assert b"".join(passed) + listening.ending == b"".join(response.chunks)
    assert ENDS[path] not in b"".join(passed)


@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_of_nothing_passes_as_it_is_and_may_be_retried(world, path):
    w = world()
    through = w._upstream._transport
    raw(w)
    empty = await w.ask(path, body_of(path, "hi", stream=True))
    assert (empty.status_code, empty.content) == (200, b"")
    w._upstream._transport = through
    again = await w.ask(path, body_of(path, "hi", stream=True))
    assert again.headers["refold-session"] == empty.headers["refold-session"]
    assert ENDS[path] in again.content
    await w.quiet()
    released(w)
