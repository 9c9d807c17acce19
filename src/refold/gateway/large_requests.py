"""Large bodies: recognized before anything is parsed, and handled in threads or other processes.

To read, plan and render a request holds the event loop, and a parser holds the interpreter's lock
as well. What a request costs depends on how many values it holds more than on its bytes: 256 KB
can be one text or ten thousand messages. Both are known before anything is parsed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from refold.models.catalog import Usage

LARGE: Final = 256 * 1024
"""Bytes up to which reading takes less than others would notice; a thread costs more than that."""
MAX_BYTES: Final = 128 * 1024
"""Of a body that is read in this process, where there is another for large ones."""
MAX_VALUES: Final = 1_000
"""Objects and arrays in such a body, or in an answer. Each costs some 20 microseconds in a
conversation that was not seen before."""
_THREADS: Final = 2
"""More would only take turns with each other and the loop."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


class ThreadOffload:
    """Runs work on large inputs in threads, and on small ones at once.

    The work must be pure, or safe in threads: it runs while the loop does.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "refold-gateway")

    async def __call__(
        self, size: int, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """The result of the work, whose input has so many bytes."""
        if size <= LARGE:
            return work(*args, **kwargs)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Start nothing more; running work ends by itself."""
        self._threads.shutdown(wait=False)


class UnloggedAnswer(NamedTuple):
    """An answer that is not in the log yet, and where it belongs."""

    tenant: str
    path: str
    """The path of its dialect."""
    session: str
    chain: tuple[bytes, bytes, bytes]
    """The tip of the request's chain."""
    tip: int | None
    """The session's newest mark."""
    pieces: tuple[bytes, ...]
    """Its messages, or the whole response."""
    is_response: bool
    usage: Usage | None = None
    note: str = ""
    owner: str = ""
    """Whose it is, as a hexadecimal number."""
    is_kept: bool = False
    """Whether its provider keeps it."""
    id: str = ""
    """The provider's name of it, where it is not a whole response."""
    edits: Sequence[str] = ()
    """What the provider has cleared from the context, likewise."""
    root: str = ""
    """What the provider alone has of the conversation."""
    is_shortened: bool = False
    """Whether its model was sent less than the log has."""
    signal: str = ""
    """What the stream said of a compaction by the provider."""
    notes: Sequence[tuple[str, JsonValue]] = ()
    """What else is noted with it: words and data."""
    key: str = ""
    """The id of the key that the request came with."""


class LoggedAnswer(NamedTuple):
    """Where an answer is in the log."""

    session: str
    """Another one, where others continued the first meanwhile; empty if there was no answer."""
    usage: Usage | None
    size: int
    """Bytes of its messages."""


class PartialBody(NamedTuple):
    """A body of which a part has come."""

    begun: bytes
    rest: AsyncGenerator[bytes] | None
    """None where that is all of it."""

    @property
    def is_large(self) -> bool:
        """Whether reading it would keep others waiting."""
        return self.rest is not None or is_large(self.begun)

    @property
    def is_growing(self) -> bool:
        """Whether a later request of the conversation will probably be large."""
        return len(self.begun) > MAX_BYTES // 4


class LargeRequests(Protocol):
    """Answers requests, and logs answers, in another process."""

    def warm_up(self, tenant: str) -> None:
        """Be ready for a large request of this tenant."""
        ...

    async def log_answer(self, answer: UnloggedAnswer) -> LoggedAnswer:
        """Log a large answer to a small request."""
        ...

    async def answer(self, request: Request, caller: Any, body: PartialBody) -> Response: ...  # noqa: ANN401 - whoever the service knows


def is_large(raw: bytes) -> bool:
    """Whether reading this JSON would keep others waiting."""
    # Brackets within texts count too: that is quick, and errs on the safe side.
    return len(raw) > MAX_BYTES or raw.count(b"{") + raw.count(b"[") > MAX_VALUES


async def partial_body(request: Request) -> PartialBody:
    """A request's body, read up to its end or until it is too large."""
    pieces: list[bytes] = []
    size = 0
    stream = request.stream()
    async for piece in stream:
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BYTES:
            return PartialBody(b"".join(pieces), stream)
    return PartialBody(b"".join(pieces), None)
