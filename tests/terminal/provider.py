"""A provider that is a script: a real HTTP server on loopback that speaks chat completions.

    provider = Provider([["Let me look.", Call("read_file", {"path": "a.txt"})], "It is empty."])
    url = provider.start()

Each request takes the next turn of the script; after the last, `otherwise` answers. Requests for a
fold's summary take none: `summary` answers them. Run by itself (`python provider.py`) it prints its
address and serves until its input ends.
"""

import asyncio
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from terminal.chunks import chunk, deltas, finish_of, prompt_of, usage_chunk, used, whole
from terminal.pieces import (
    Asked,
    Call,
    Cut,
    Gate,
    Pause,
    Piece,
    Raw,
    Refuse,
    Turn,
    echo,
    own_words,
)

MODEL = "scripted"
_PATIENCE = 120.0


class _Lost(Exception):
    """The connection is cut: whoever serves it gives up."""


class Provider:
    """Answers as its script says. All of it may be used while it runs.

    Args:
        script: What is answered, request by request.
        otherwise: The answer where the script has run out.
        summary: The answer to those who ask for a fold's summary.
        window: How many tokens the model sees, where the server is to tell.
        model: The name of the model.
        pace: Seconds between the words of an answer; for pictures.
        keep: How many requests are remembered; None: all.
    """

    def __init__(  # noqa: PLR0913 - all of them have a default
        self,
        script: Iterable[Turn] = (),
        *,
        otherwise: Turn = echo,
        summary: Turn = own_words,
        window: int | None = None,
        model: str = MODEL,
        pace: float = 0.0,
        keep: int | None = None,
    ) -> None:
        self.script = list(script)
        self.otherwise = otherwise
        self.summary = summary
        self.window = window
        self.model = model
        self.others: tuple[str, ...] = ()  # more models that it has
        self.pace = pace
        self.received: deque[Asked] = deque(maxlen=keep)
        self.url = ""
        self._before = ""
        self._lock = threading.Lock()
        self._released: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> str:
        """Serve; the address that a client is given."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app(),
                lifespan="off",
                log_level="critical",
                timeout_graceful_shutdown=0,
                timeout_keep_alive=3_600,  # it is the client who closes a connection
                ws="none",
            )
        )
        serve = self._server.serve(sockets=[listening])
        self._thread = threading.Thread(target=asyncio.run, args=(serve,), daemon=True)
        self._thread.start()
        _until(lambda: self._server is not None and self._server.started, "serve")
        return self.url

    def stop(self) -> None:
        """Serve no longer; whoever waits is cut off."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(_PATIENCE)
        self._server = self._thread = None

    @property
    def asked(self) -> list[Asked]:
        """The requests that are no fold's."""
        return [one for one in list(self.received) if not one.for_fold]

    @property
    def folds(self) -> list[Asked]:
        """The requests for summaries."""
        return [one for one in list(self.received) if one.for_fold]

    @property
    def connections(self) -> int:
        """How many connections of clients are open."""
        return len(self._server.server_state.connections) if self._server else 0

    def environment(self) -> dict[str, str]:
        """The variables by which a program finds this server as its OpenAI."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "none"}

    def release(self, name: str = "", times: int = 1) -> None:
        """Let so many through the gate of that name, now or when they come to it."""
        with self._lock:
            self._released[name] += times

    def wait_for_gate(self, name: str = "", timeout: float = _PATIENCE) -> None:
        """Wait until somebody is held at the gate."""
        _until(lambda: self._waiting[name], f"hold anybody at the gate {name!r}", timeout)

    def wait_for_requests(self, count: int, timeout: float = _PATIENCE) -> None:
        """Wait until so many requests came, folds' included."""
        _until(lambda: len(self.received) >= count, f"receive {count} requests", timeout)

    def wait_until(self, true: Callable[[], object], timeout: float = _PATIENCE) -> None:
        """Wait until it is true."""
        _until(true, "come to that", timeout)

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/props", self._props),
                Route("/v1/chat/completions", self._answer, methods=["POST"]),
            ]
        )

    async def _models(self, request: Request) -> Response:  # noqa: ARG002 - as Starlette asks
        about: dict[str, Any] = {"object": "model", "owned_by": "a script"}
        if self.window is not None:
            about["meta"] = {"n_ctx": self.window}
        data = [{"id": name, **about} for name in (self.model, *self.others)]
        return JSONResponse({"object": "list", "data": data})

    async def _props(self, request: Request) -> Response:  # noqa: ARG002 - see above
        """The window, where llama.cpp tells it."""
        if self.window is None:
            return Response(status_code=404)
        return JSONResponse({"default_generation_settings": {"n_ctx": self.window}})

    async def _answer(self, request: Request) -> Response:
        asked = Asked(await request.json(), dict(request.headers))
        self.received.append(asked)
        pieces = self._pieces(asked)
        refused = next((piece for piece in pieces if not isinstance(piece, Gate | Pause)), None)
        if isinstance(refused, Refuse):
            await self._hold_all(request, asked, pieces)
            return Response(refused.body, refused.status, media_type="application/json")
        if asked.body.get("stream"):
            streamed = self._streamed(asked, pieces)
            return StreamingResponse(streamed, media_type="text/event-stream")
        await self._hold_all(request, asked, pieces)
        if Cut() in pieces:
            return StreamingResponse(_begun(), media_type="application/json")
        return JSONResponse(whole(self.model, pieces, self._usage(asked, pieces)))

    def _pieces(self, asked: Asked) -> list[Piece]:
        if asked.for_fold:
            turn = self.summary
        else:
            turn = self.script.pop(0) if self.script else self.otherwise
        found = turn(asked) if callable(turn) else turn
        return [found] if isinstance(found, str) else list(found)

    async def _hold_all(self, request: Request, asked: Asked, pieces: list[Piece]) -> None:
        """Wait before an answer that comes at once, as long as anybody waits for it."""
        held = asyncio.ensure_future(self._held_at(pieces))
        while not held.done():
            await asyncio.wait({held}, timeout=0.02)
            if not held.done() and await request.is_disconnected():
                held.cancel()
                asked.left = True
                raise _Lost
        asked.answered = True

    async def _held_at(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Gate | Pause):
                await self._held(piece)

    async def _streamed(self, asked: Asked, pieces: list[Piece]) -> AsyncIterator[str]:
        try:
            yield chunk(self.model, {"role": "assistant", "content": ""})
            calls = 0
            for piece in pieces:
                await self._held(piece)
                if isinstance(piece, Refuse):
                    yield f"data: {piece.body}\n\n"
                    return
                if isinstance(piece, Raw):
                    yield piece.text
                for delta in deltas(piece, calls):
                    yield chunk(self.model, delta)
                    await asyncio.sleep(self.pace)
                calls += isinstance(piece, Call)
            yield chunk(self.model, {}, finish_of(pieces))
            yield usage_chunk(self.model, self._usage(asked, pieces))
            yield "data: [DONE]\n\n"
            asked.answered = True
        finally:
            asked.left = not asked.answered

    async def _held(self, piece: Piece) -> None:
        """Wait, where the piece says so."""
        match piece:
            case Gate(name):
                self._waiting[name] += 1
                try:
                    while not self._passes(name):  # noqa: ASYNC110 - a thread lets it through
                        await asyncio.sleep(0.01)
                finally:
                    self._waiting[name] -= 1
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Cut():
                raise _Lost
            case _:
                return

    def _passes(self, name: str) -> bool:
        with self._lock:
            passes = self._released[name] > 0
            self._released[name] -= passes
        return passes

    def _usage(self, asked: Asked, pieces: list[Piece]) -> Any:
        usage = used(asked, self._before, pieces)
        if not asked.for_fold:
            self._before = prompt_of(asked)
        return usage


async def _begun() -> AsyncIterator[str]:
    yield '{"id":'
    raise _Lost


def _until(true: Any, what: str, timeout: float = _PATIENCE) -> None:
    ends = time.monotonic() + timeout
    while not true():
        if time.monotonic() > ends:
            pytest.fail(f"The provider did not {what} within {timeout:.0f} s")
        time.sleep(0.01)


if __name__ == "__main__":
    provider = Provider(pace=0.03)
    print(provider.start(), flush=True)  # noqa: T201 - how it is found
    sys.stdin.read()
    provider.stop()
