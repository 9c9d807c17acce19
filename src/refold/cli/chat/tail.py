"""The last words of a session that one comes back to."""

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast
from uuid import uuid4

from rich.console import Group, RenderableType
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.conversation import Conversation
from refold.cli.chat.events import Elsewhere, Heard
from refold.cli.chat.surface import Surface
from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.log import CODEC, MAIN_SCOPE, Entry, Log, Message, Span
from refold.wire import wire_for

_LOOKED_AT = 60
"""Entries that are looked through."""
_SHOWN = 4
"""Things said."""
_LINES = 8
"""Of each; of a longer one, the end."""

_WHO = {"prompt": "› ", "text": ""}  # noqa: RUF001 - the mark of the input


async def tail(log: Log, session: str) -> RenderableType | None:
    """What was said last there, to go on from; None where nothing was."""
    info = await log.info(session)
    wire = wire_for(info.format)
    span = Span(max(1, info.entries - _LOOKED_AT + 1), info.entries)
    said: list[tuple[str, str]] = []
    for entry in await log.read(session, span):
        if entry.kind == Message.KIND and entry.scope == MAIN_SCOPE and not entry.forgotten:
            match CODEC.decode(entry):
                case Message(payload):
                    shapes = wire.describe(payload).shapes
                    said += [(one.kind, one.text) for one in shapes if one.kind in _WHO]
                case _:
                    pass
    lines = [_told(_WHO[kind], text) for kind, text in said[-_SHOWN:] if text.strip()]
    if not lines:
        return None
    return Group(*lines)


def _told(mark: str, text: str) -> Text:
    lines = cleaned(text).strip().splitlines()
    cut = ["…"] if len(lines) > _LINES else []
    return Text(mark + "\n".join([*cut, *lines[-_LINES:]]), style="dim")


# What others say in the session that is open here: another terminal, another program.
#
# Everything is shown in the order of the log. A turn of our own waits for its place: while another
# terminal is answered, what is said there is shown here, labeled, and our own answer comes after
# it.

OWN_ANSWER = "Answer to your message:"
"""Stands above an answer of our own, after others spoke between the message and the answer."""
_MOST = 50
"""Things told of at once; of more, the newest."""


class Newsboy:
    """Looks at the log now and then, and tells of what was not said here."""

    def __init__(self, conversation: Conversation, surface: Surface) -> None:
        self._conversation = conversation
        self._surface = surface
        self._session = ""
        self._seen = 0
        self._busy = False
        self._own: set[str] = set()
        """The runs of turns of our own; messages name the run that they are of."""
        self._latest_run: str | None = None
        self.total = 0
        """How much was told in all."""
        self._looking = asyncio.Lock()

    @contextmanager
    def quiet(self) -> Generator[None]:
        """While turns of our own go on, whose runs nobody names; then begin anew from there."""
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before
            self._session = ""

    def own_turn(self) -> "OwnTurn":
        """A turn of our own, which is about to begin."""
        turn = OwnTurn(self, self._surface)
        self._own.add(turn.run_id)
        return turn

    def hold(self, *, busy: bool) -> None:
        """Tell nothing while an answer of our own is shown as it comes."""
        self._busy = busy

    async def look(self) -> bool:
        """Tell what is new; whether there is anything new in the log."""
        return not self._busy and await self.tell()

    async def tell(self) -> bool:
        """Tell what others said since the last time; whether there is anything new in the log."""
        async with self._looking:  # whoever looks later shows nothing earlier
            name, log = self._conversation.name, self._conversation.log
            if not name:
                return False
            try:
                head = await log.head(name)
            except (SessionNotFound, SessionForgotten):
                return False
            if name != self._session:
                self._session, self._seen, self._latest_run = name, head, None
                return False
            if head <= self._seen:
                return False
            span, self._seen = Span(self._seen + 1, head), head
            others = self._others(await log.read(name, span))
            for who, text in others[-_MOST:]:
                self._surface.hear(Elsewhere(who, text))
            self.total += len(others)
            return True

    def _others(self, entries: Sequence[Entry]) -> list[tuple[str, str]]:
        """What was not said here."""
        others: list[tuple[str, str]] = []
        for entry in entries:
            if entry.kind == Message.KIND and entry.scope == MAIN_SCOPE:
                match CODEC.decode(entry):
                    case Message(payload):
                        self._latest_run = _run_of(payload) or self._latest_run
                        others += [] if self._latest_run in self._own else _spoken(payload)
                    case _:
                        pass
        return others


class OwnTurn:
    """A turn of our own: what is heard of it waits until all that came before is shown."""

    def __init__(self, news: Newsboy, surface: Surface) -> None:
        self.run_id = str(uuid4())
        self._news = news
        self._surface = surface
        self._told_before = news.total
        self._waiting: list[Heard] = []
        self._begun: asyncio.Task[None] | None = None
        self._open = False

    def hear(self, heard: Heard) -> None:
        """Show it, in its place."""
        if self._open:
            self._surface.hear(heard)
            return
        self._waiting.append(heard)
        if self._begun is None:
            self._begun = asyncio.create_task(self._begin())

    async def end(self) -> None:
        """The turn is over, however it ended."""
        if self._begun is None:
            self._begun = asyncio.create_task(self._begin())
        await self._begun
        self._surface.settle()
        self._news.hold(busy=False)

    async def _begin(self) -> None:
        # Our prompt is in the log by now, and nobody else speaks until we are answered: all that
        # others said before us can be read.
        with suppress(RefoldError):
            await self._news.tell()
        self._news.hold(busy=True)
        if self._news.total > self._told_before and self._waiting:
            self._surface.show(Text(OWN_ANSWER, style="dim"))
        self._open = True
        for heard in self._waiting:
            self._surface.hear(heard)
        self._waiting.clear()


def _run_of(payload: bytes) -> str | None:
    """The run of an agent that a message is of, where it says so."""
    try:
        message: object = json.loads(payload)
    except ValueError:
        return None
    run = cast("dict[str, Any]", message).get("run_id") if isinstance(message, dict) else None
    return run if isinstance(run, str) else None


def _spoken(payload: bytes) -> list[tuple[str, str]]:
    """What people read of a message: prompts and answers."""
    kinds = {"prompt": "you", "text": "model"}
    shapes = wire_for("pydantic-ai").describe(payload).shapes
    return [(kinds[one.kind], one.text) for one in shapes if one.kind in kinds]
