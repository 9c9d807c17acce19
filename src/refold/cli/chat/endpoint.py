"""The model that answers in a session, and the address it answers at: kept with the session.

A session is resumed with the model that answered in it. So each chat leaves a note in the log that
says which one that is; the note is printed and exported like everything else, and holds no key.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from refold.cli.chat.models.local_servers import public
from refold.cli.chat.models.providers import LOCAL, is_foreign
from refold.errors import RefoldError, SessionNotFound
from refold.fold.secrets import without_secrets
from refold.log import CODEC, Author, Log, Note, Requested, Span

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_KEY: Final = "answered_by"
"""The key of a note's data that holds the endpoint."""
_PAGE: Final = 500
_SEARCHED: Final = 5_000
"""Entries that are searched for the newest note. A chat repeats the note long before that."""
_REPEATED: Final = 2_000
"""Entries after which a note is repeated, so that no long session has to be searched."""
_POLL: Final = 0.05


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model, and where it answers."""

    model: str
    """With its provider: "local:qwen3"."""
    address: str | None = None
    """Without a password or a key; None where nobody knows it."""
    noted: bool = True
    """Whether a chat noted it; else only the model of the newest request is known."""

    def __str__(self) -> str:
        return f"{self.model} at {self.address}" if self.is_server else self.model

    @property
    def is_server(self) -> bool:
        """Whether the address is not the provider's own, as far as can be known."""
        provider = self.model.partition(":")[0]
        if provider == LOCAL:
            return self.address is not None
        return provider == "openai" and is_foreign(self.address)

    @property
    def base_url(self) -> str | None:
        """What `--base-url` would be."""
        return self.address if self.is_server else None

    def same(self, other: "Endpoint") -> bool:
        """Whether it is the same, as far as both are known."""
        unknown = None in (self.address, other.address)
        return self.model == other.model and (unknown or self.address == other.address)


def endpoint_of(model: "Model") -> Endpoint:
    """Where a model answers."""
    url = model.base_url
    # A key may stand anywhere in an address: before the host, behind a question mark, in the path.
    address = without_secrets(public(url)).rstrip("/") if url else None
    return Endpoint(model.model_id, address)


def server_of(model: "Model") -> str | None:
    """The address of a model's server as it was given, where it is not the provider's own."""
    return model.base_url.rstrip("/") if endpoint_of(model).is_server and model.base_url else None


async def stored_endpoint(log: Log, session: str) -> Endpoint | None:
    """What answered in a session last; None where nothing did."""
    try:
        head = await log.head(session)
    except SessionNotFound:
        return None
    lowest = max(0, head - _SEARCHED)
    for last in range(head, lowest, -_PAGE):
        span = Span(max(1, last - _PAGE + 1), last)
        for entry in reversed(await log.read(session, span, whole=False)):
            if entry.kind == Note.KIND and not entry.forgotten:
                match CODEC.decode(entry):
                    case Note(data={"answered_by": {"model": str(model), "address": address}}):
                        return Endpoint(model, address if isinstance(address, str) else None)
                    case _:
                        pass
    return await _of_newest_request(log, session)


async def _of_newest_request(log: Log, session: str) -> Endpoint | None:
    seq = (await log.outlined(session)).outline.record
    for entry in await log.read(session, Span(seq, seq)) if seq else ():
        match CODEC.decode(entry):
            case Requested(model=model) if model:
                return Endpoint(model, noted=False)
            case _:
                pass
    return None


class EndpointNotes:
    """Notes in each session which model answers there: when it begins, and when that changes."""

    def __init__(self) -> None:
        self._noted: dict[str, tuple[Endpoint, int]] = {}

    async def note(self, log: Log, session: str, endpoint: Endpoint) -> bool:
        """Note it, unless the session says so already; whether there is such a session."""
        try:
            head = await log.head(session)
        except SessionNotFound:
            return False
        if session not in self._noted:
            stored = await stored_endpoint(log, session)
            if stored is not None and stored.noted:
                self._noted[session] = stored, head
        known, at = self._noted.get(session, (None, 0))
        if known != endpoint or head - at > _REPEATED:
            data: JsonValue = {_KEY: {"model": endpoint.model, "address": endpoint.address}}
            draft = Author().draft(Note(f"Answered by {endpoint}.", data))
            done = await log.append(session, [draft], expected=None)
            self._noted[session] = endpoint, done.last
        return True

    @asynccontextmanager
    async def during_turn(self, log: Log, session: str, endpoint: Endpoint) -> AsyncGenerator[None]:
        """Note it while a turn goes on, as soon as there is such a session: a turn may begin it.

        Not after the turn, because a turn may end with the process.
        """
        over = asyncio.Event()
        noting = asyncio.create_task(self._note_soon(log, session, endpoint, over))
        try:
            yield
        finally:
            over.set()
            await noting

    async def _note_soon(
        self, log: Log, session: str, endpoint: Endpoint, over: asyncio.Event
    ) -> None:
        with suppress(RefoldError):  # the turn says what is wrong with the store
            while not await self.note(log, session, endpoint) and not over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), _POLL)
