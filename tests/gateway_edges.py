"""What tests of the gateway's edges need: answers byte by byte, and clients that leave."""

import asyncio

import httpx2
from gateway_world import CHAT, MESSAGES, RESPONSES

KEYS = {CHAT: "messages", RESPONSES: "input", MESSAGES: "messages"}
ENDS = {CHAT: b"[DONE]", RESPONSES: b"response.completed", MESSAGES: b"message_stop"}
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 3000 tokens. However, "
        "your messages resulted in 9000 tokens.",
        "code": "context_length_exceeded",
    }
}


def raw(w, *chunks, kind=b"text/event-stream", status=200, headers=(), after=None):
    """Have the upstream answer with these bytes."""

    async def app(_scope, receive, send):
        await receive()
        start = {"type": "http.response.start", "status": status}
        await send({**start, "headers": [(b"content-type", kind), *headers]})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if after is not None:
            raise after
        await send({"type": "http.response.body", "body": b""})

    w._upstream._transport = httpx2.ASGITransport(app)


async def asgi(app, path, body, send, gone=None, version="2.3"):  # noqa: PLR0913, PLR0917
    """Ask over ASGI itself; the client leaves when it is told to."""
    came = iter([{"type": "http.request", "body": body, "more_body": False}])
    gone = gone or asyncio.Event()

    async def receive():
        for one in came:
            return one
        await gone.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": version},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"gateway")],
        "scheme": "http",
        "server": ("gateway", 80),
        "client": ("client", 1),
    }
    await app(scope, receive, send)


async def until(done):
    """Wait until something is so."""
    while not done():  # noqa: ASYNC110 - it says so nowhere else
        await asyncio.sleep(0)


def released(w):
    """Nobody holds a place, and nothing is left to be written."""
    pool = w.gateway.sessions.pool
    assert not w.gateway._tasks
    assert pool.counts.leased == 0
    live = [slot.session for shard in pool._shards.values() for slot in shard.live]
    assert all(one is not None and not one.turn.locked() for one in live)
