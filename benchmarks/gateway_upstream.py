"""A model's server that costs next to nothing: its answer is ready, and sent event by event."""

import asyncio
import json
import socket
from multiprocessing.connection import Connection
from typing import Final

EVENTS: Final = 40
PAUSE: Final = 0.005
"""Seconds between two events, as a quick model takes for a token."""
ANSWER: Final = [f"word {at:02d} of the answer. " for at in range(EVENTS)]
TEXT: Final = "".join(ANSWER)
DONE: Final = b"data: [DONE]\n\n"
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_0123456789\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
_AT_ONCE: Final = b"x-at-once: 1"
_FOR_A_SUMMARY: Final = b"x-interaction-type:"
SUMMARY_SECONDS: Final = 3.0
"""How long a summary takes to be written."""
SUMMARY: Final = {
    "title": "Files read and tested",
    "state": [
        {
            "text": "Files were read again where the tests disagree with them.",
            "quote": "is not what the tests say of it",
        }
    ],
}


def _event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _data({"choices": [choice], "usage": None})


def _data(more: dict[str, object]) -> bytes:
    common = {
        "id": "chatcmpl-0123456789abcdefghijklmnopqrs",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "bench-model",
        "system_fingerprint": "fp_0123456789",
    }
    return f"data: {json.dumps({**common, **more})}\n\n".encode()


def _usage(asked: int, bytes_per_token: float) -> bytes:
    """What an answer to so many bytes used: as long as its text is, as models count it."""
    given, made = int(asked / bytes_per_token), int(len(TEXT) / bytes_per_token)
    used = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    return _data({"choices": [], "usage": used})


def _summary(asked: int, bytes_per_token: float) -> bytes:
    """A summary, as a model writes one into a form."""
    text = json.dumps(SUMMARY)
    given, made = int(asked / bytes_per_token), int(len(text) / bytes_per_token)
    message = {"role": "assistant", "content": text}
    body = json.dumps(
        {
            "id": "chatcmpl-summary",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "bench-model",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": given,
                "completion_tokens": made,
                "total_tokens": given + made,
            },
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


_FIRST: Final = _HEAD + _chunk(_event({"role": "assistant", "content": ""}))
_BETWEEN: Final = [_chunk(_event({"content": word})) for word in ANSWER]
_STOP: Final = _chunk(_event({}, "stop"))
_END: Final = _chunk(DONE) + b"0\r\n\r\n"
COUNT: Final = EVENTS + 4
"""Events of one answer."""


class Answering(asyncio.Protocol):
    """One connection of a client that waits for each answer before it asks again."""

    def __init__(self, bytes_per_token: float = 4, speed: float = 1.0) -> None:
        self._bytes_per_token = bytes_per_token
        self._speed = speed
        self._taken = bytearray()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport
        self._pause = PAUSE
        self._asked = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._taken += data
        head = self._taken.find(b"\r\n\r\n")
        if head < 0:
            return
        lower = bytes(self._taken[:head]).lower()
        length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self._taken) >= head + 4 + length:
            self._taken.clear()
            self._asked = length
            if _FOR_A_SUMMARY in lower:
                self._loop.call_later(SUMMARY_SECONDS / self._speed, self._write_summary)
                return
            self._pause = 0.0 if _AT_ONCE in lower else PAUSE
            self._transport.write(_FIRST)
            self._later(0)

    def _write_summary(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_summary(self._asked, self._bytes_per_token))

    def _later(self, at: int) -> None:
        if self._pause:
            self._loop.call_later(self._pause, self._next, at)
        else:
            self._loop.call_soon(self._next, at)

    def _next(self, at: int) -> None:
        if self._transport.is_closing():
            return
        if at == len(_BETWEEN):
            self._transport.write(_STOP + _chunk(_usage(self._asked, self._bytes_per_token)) + _END)
        else:
            self._transport.write(_BETWEEN[at])
            self._later(at + 1)


def serve(ready: Connection) -> None:
    """Answer until killed."""
    serve_counting(4, 1.0, ready)


def serve_counting(bytes_per_token: float, speed: float, ready: Connection) -> None:
    """The same, reporting a token for so many bytes; summaries are so much faster."""

    async def live() -> None:
        sock = socket.create_server(("127.0.0.1", 0), backlog=2_048)
        server = await asyncio.get_running_loop().create_server(
            lambda: Answering(bytes_per_token, speed), sock=sock
        )
        ready.send(sock.getsockname()[1])
        await server.serve_forever()

    asyncio.run(live())
