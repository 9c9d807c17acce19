"""A server like the providers', that answers as it is told: an ASGI application.

It speaks chat completions, responses and messages, in streams and whole. For tests of what lies
before it; nothing in it thinks.
"""

import json
from collections.abc import Awaitable, Callable
from itertools import count

from refold.testing.upstream_checks import RequestChecker
from refold.testing.upstream_replies import Rendered
from refold.testing.upstream_script import Call, Got, Json, Refusal, Reply

__all__ = [
    "Broken",
    "Call",
    "Got",
    "Refusal",
    "Reply",
    "Replying",
    "RequestChecker",
    "ScriptedUpstream",
]

Send = Callable[[Json], Awaitable[None]]


Replying = Callable[[Got], "Reply | Refusal | Awaitable[Reply | Refusal]"]


class ScriptedUpstream:
    """Answers each request by a function, and keeps what it got.

    With `checker` it refuses what the real API would refuse.
    """

    def __init__(
        self, reply: Replying, *, keep: bool = True, checker: RequestChecker | None = None
    ) -> None:
        self._reply = reply
        self.checker = checker
        self._keep = keep
        self._ids = count(1)
        self.got: list[Got] = []

    async def __call__(
        self, scope: Json, receive: Callable[[], Awaitable[Json]], send: Send
    ) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        got = Got(scope["path"], headers, await _body(receive))
        if self._keep:
            self.got.append(got)
        refused = self.checker.check(got) if self.checker else None
        reply = refused or self._reply(got)
        told = reply if isinstance(reply, Reply | Refusal) else await reply
        if isinstance(told, Refusal):
            await _whole(send, told.status, json.dumps(told.body).encode(), told.headers)
            return
        number = next(self._ids) if told.number is None else told.number
        made = Rendered(got, told, number)
        if self.checker:
            self.checker.answered(made.whole())
        if got.body.get("stream"):
            await _streamed(send, [*made.events()], told)
        else:
            await _whole(send, 200, json.dumps(made.whole()).encode())


class Broken(Exception):
    """The connection breaks, as it was told to."""


async def _body(receive: Callable[[], Awaitable[Json]]) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _whole(
    send: Send, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    more = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    kind = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": body})


async def _streamed(send: Send, events: list[bytes], reply: Reply) -> None:
    kind = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": kind})
    for nth, event in enumerate(events):
        if nth == reply.breaks_after:
            raise Broken
        if reply.pause is not None and nth == len(events) // 2:
            await reply.pause()
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
