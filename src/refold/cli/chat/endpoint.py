"""The model that answers in a session, and its address; and which sessions a chat can resume.

A session is resumed with the model that answered in it. So each chat writes a note into the log
with its endpoint; the note is printed and exported like everything else, and holds no key.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from refold.cli.chat.models.local_servers import public
from refold.cli.chat.models.providers import LOCAL, is_foreign
from refold.errors import InvalidInput, RefoldError, SessionNotFound
from refold.fold.secrets import without_secrets
from refold.integrations.pydantic_ai.sessions import FORMAT
from refold.log import CODEC, Author, Log, Note, Requested, SessionInfo, Span
from refold.memory import is_internal

if TYPE_CHECKING:
    from pydantic_ai.models import Model

MAX_LISTED: Final = 100  # sessions in a list; a search finds the others
_MAX_OTHERS: Final = 2_000  # sessions of other programs that are skipped on the way
_KEY: Final = "answered_by"  # the key of a note's data that holds the endpoint
_PAGE: Final = 500
_MAX_SEARCHED: Final = 5_000  # entries; a chat repeats its note long before that
_REPEAT_AFTER: Final = 2_000  # entries
_POLL: Final = 0.05


@dataclass(frozen=True, slots=True)
class Endpoint:
    model: str  # with its provider: "local:qwen3"
    address: str | None = None  # without a password or a key; None if unknown
    noted: bool = True  # else only the model of the newest request is known

    def __str__(self) -> str:
        return f"{self.model} at {self.address}" if self.is_server else self.model

    @property
    def is_server(self) -> bool:
        """Whether the address is not the provider's own, as far as is known."""
        provider = self.model.partition(":")[0]
        if provider == LOCAL:
            return self.address is not None
        return provider == "openai" and is_foreign(self.address)

    @property
    def base_url(self) -> str | None:
        return self.address if self.is_server else None

    def same(self, other: "Endpoint") -> bool:
        """Whether it is the same, as far as both are known."""
        unknown = None in (self.address, other.address)
        return self.model == other.model and (unknown or self.address == other.address)


def endpoint_of(model: "Model") -> Endpoint:
    url = model.base_url
    # A key may be anywhere in an address: before the host, in the path, in the query.
    address = without_secrets(public(url)).rstrip("/") if url else None
    return Endpoint(model.model_id, address)


def server_of(model: "Model") -> str | None:
    """The address of a model's server as it was given, unless it is the provider's own."""
    return model.base_url.rstrip("/") if endpoint_of(model).is_server and model.base_url else None


async def stored_endpoint(log: Log, session: str) -> Endpoint | None:
    """The endpoint that answered last in a session; None if none did."""
    try:
        head = await log.head(session)
    except SessionNotFound:
        return None
    lowest = max(0, head - _MAX_SEARCHED)
    for last in range(head, lowest, -_PAGE):
        span = Span(max(1, last - _PAGE + 1), last)
        for entry in reversed(await log.read(session, span, whole=False)):
            if entry.kind == Note.KIND and not entry.forgotten:
                match CODEC.decode(entry):
                    case Note(data={"answered_by": {"model": str(model), "address": address}}):
                        return Endpoint(model, address if isinstance(address, str) else None)
                    case _:
                        pass
    seq = (await log.outlined(session)).outline.record
    for entry in await log.read(session, Span(seq, seq)) if seq else ():
        match CODEC.decode(entry):
            case Requested(model=model) if model:
                return Endpoint(model, noted=False)
            case _:
                pass
    return None


class EndpointNotes:
    """Notes in each session which model answers: at its beginning, and when that changes."""

    def __init__(self) -> None:
        self._noted: dict[str, tuple[Endpoint, int]] = {}

    async def note(self, log: Log, session: str, endpoint: Endpoint) -> bool:
        """Note it, unless the session has that note already; whether there is such a session."""
        try:
            head = await log.head(session)
        except SessionNotFound:
            return False
        if session not in self._noted:
            stored = await stored_endpoint(log, session)
            if stored is not None and stored.noted:
                self._noted[session] = stored, head
        noted, seq = self._noted.get(session, (None, 0))
        if noted != endpoint or head - seq > _REPEAT_AFTER:
            data: JsonValue = {_KEY: {"model": endpoint.model, "address": endpoint.address}}
            draft = Author().draft(Note(f"Answered by {endpoint}.", data))
            appended = await log.append(session, [draft], expected=None)
            self._noted[session] = endpoint, appended.last
        return True

    @asynccontextmanager
    async def during_turn(self, log: Log, session: str, endpoint: Endpoint) -> AsyncGenerator[None]:
        """Note it during a turn, as soon as there is such a session: a turn may begin it.

        Not after the turn, because a turn may end with the process.
        """
        over = asyncio.Event()

        async def note_soon() -> None:
            with suppress(RefoldError):  # the turn reports what is wrong with the store
                while not await self.note(log, session, endpoint) and not over.is_set():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(over.wait(), _POLL)

        noting = asyncio.create_task(note_soon())
        try:
            yield
        finally:
            over.set()
            await noting


def answers_here(now: Endpoint, before: Endpoint) -> str:
    if now.same(before):
        return f"{now} answers here, as before."
    return f"{now} answers here from now on. Until now it was {before}."


async def own_sessions(
    log: Log, search: str, max_sessions: int
) -> tuple[list[SessionInfo], list[SessionInfo]]:
    """The newest sessions that a chat can resume, and the others met on the way."""
    own: list[SessionInfo] = []
    others: list[SessionInfo] = []
    cursor = None
    while len(own) < max_sessions and len(others) < _MAX_OTHERS:
        page = await log.sessions(search=search or None, limit=MAX_LISTED, page=cursor)
        for info in page.sessions:
            if not is_internal(info):
                (own if is_own(info) else others).append(info)
        cursor = page.next
        if cursor is None:
            break
    return own[:max_sessions], others


def is_own(info: SessionInfo) -> bool:
    """Whether a chat can resume a session: it must have the message format that a chat writes."""
    return info.format == FORMAT


def refusal(info: SessionInfo, where: str = "") -> InvalidInput:
    """Why a chat cannot resume a session, and what can be done with it.

    Args:
        info: The session.
        where: Options that select its store.
    """
    name = f"{quote(info.session)}{where}"
    return InvalidInput(
        f"Session {info.session!r} holds {info.format} messages: a chat cannot continue it.",
        f"Read it with `refold show {name}`, or write it to a file with `refold export {name}`.",
    )
