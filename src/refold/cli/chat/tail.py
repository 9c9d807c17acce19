"""The end of a session: its last messages, and new ones from other terminals.

Everything is shown in the order of the log. A turn of our own waits for its place: while another
terminal is answered, its messages are shown here, labeled, and our own answer comes after them.
"""

import asyncio
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast
from uuid import uuid4

from rich.console import Group, RenderableType
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.conversation import Conversation
from refold.cli.chat.surface import RemoteMessage, Surface, TurnEvent
from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.log import CODEC, MAIN_SCOPE, Entry, Log, Message, Span
from refold.wire import wire_for

OWN_ANSWER = "Answer to your message:"  # if others spoke between the message and the answer
_MAX_REMOTE = 50  # messages of others shown at once; of more, the newest
_TAIL_ENTRIES = 60  # searched for the last messages
_TAIL_MESSAGES = 4
_TAIL_LINES = 8  # of each message; of a longer one, the end
_MARKS = {"prompt": "› ", "text": ""}  # noqa: RUF001 - the mark of the input
_SPEAKERS = {"prompt": "you", "text": "model"}


async def last_messages(log: Log, session: str) -> RenderableType | None:
    """The last messages of a session; None if it has none."""
    info = await log.info(session)
    wire = wire_for(info.format)
    span = Span(max(1, info.entries - _TAIL_ENTRIES + 1), info.entries)
    shapes = [
        shape
        for payload in _payloads(
            [one for one in await log.read(session, span) if not one.forgotten]
        )
        for shape in wire.describe(payload).shapes
        if shape.kind in _MARKS
    ]
    texts: list[Text] = []
    for shape in shapes[-_TAIL_MESSAGES:]:
        if shape.text.strip():
            lines = cleaned(shape.text).strip().splitlines()
            cut = ["…"] if len(lines) > _TAIL_LINES else []
            text = "\n".join([*cut, *lines[-_TAIL_LINES:]])
            texts.append(Text(_MARKS[shape.kind] + text, style="dim"))
    return Group(*texts) if texts else None


def _payloads(entries: Sequence[Entry]) -> Iterator[bytes]:
    for entry in entries:
        if entry.kind == Message.KIND and entry.scope == MAIN_SCOPE:
            match CODEC.decode(entry):
                case Message(payload):
                    yield payload
                case _:
                    pass


class SessionTail:
    """Polls the log, and shows messages that were not typed or answered here."""

    def __init__(self, conversation: Conversation, surface: Surface) -> None:
        self._conversation = conversation
        self._surface = surface
        self._session = ""
        self._last_seq = 0
        self._busy = False
        self._own_runs: set[str] = set()  # messages name the run that they belong to
        self._latest_run: str | None = None
        self.total = 0  # messages shown so far
        self._lock = asyncio.Lock()

    @contextmanager
    def quiet(self) -> Generator[None]:
        """For own turns whose runs are not registered; afterwards, start again from the head."""
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before
            self._session = ""

    def own_turn(self) -> "OwnTurn":
        """Register a turn of our own, which is about to begin."""
        turn = OwnTurn(self, self._surface)
        self._own_runs.add(turn.run_id)
        return turn

    def hold(self, *, busy: bool) -> None:
        """Show nothing while an answer of our own streams in."""
        self._busy = busy

    async def look(self) -> bool:
        """Show new messages unless held; whether there is anything new in the log."""
        return not self._busy and await self.show_new()

    async def show_new(self) -> bool:
        """Show others' messages since the last time; whether there is anything new in the log."""
        async with self._lock:  # a later look must not print earlier messages
            name, log = self._conversation.name, self._conversation.log
            if not name:
                return False
            try:
                head = await log.head(name)
            except (SessionNotFound, SessionForgotten):
                return False
            if name != self._session:
                self._session, self._last_seq, self._latest_run = name, head, None
                return False
            if head <= self._last_seq:
                return False
            span, self._last_seq = Span(self._last_seq + 1, head), head
            messages: list[RemoteMessage] = []
            for payload in _payloads(await log.read(name, span)):
                self._latest_run = _run_id(payload) or self._latest_run
                if self._latest_run not in self._own_runs:
                    shapes = wire_for("pydantic-ai").describe(payload).shapes
                    messages += [
                        RemoteMessage(_SPEAKERS[shape.kind], shape.text)
                        for shape in shapes
                        if shape.kind in _SPEAKERS
                    ]
            for message in messages[-_MAX_REMOTE:]:
                self._surface.on_event(message)
            self.total += len(messages)
            return True


class OwnTurn:
    """A turn of our own: its events wait until all earlier messages are shown."""

    def __init__(self, tail: SessionTail, surface: Surface) -> None:
        self.run_id = str(uuid4())
        self._tail = tail
        self._surface = surface
        self._total_before = tail.total
        self._waiting: list[TurnEvent] = []
        self._start: asyncio.Task[None] | None = None
        self._open = False

    def on_event(self, event: TurnEvent) -> None:
        if self._open:
            self._surface.on_event(event)
            return
        self._waiting.append(event)
        if self._start is None:
            self._start = asyncio.create_task(self._begin())

    async def end(self) -> None:
        """The turn is over, however it ended."""
        if self._start is None:
            self._start = asyncio.create_task(self._begin())
        await self._start
        self._surface.settle()
        self._tail.hold(busy=False)

    async def _begin(self) -> None:
        # Our prompt is in the log by now, and nobody else speaks until we are answered: all that
        # others said before us can be read.
        with suppress(RefoldError):
            await self._tail.show_new()
        self._tail.hold(busy=True)
        if self._tail.total > self._total_before and self._waiting:
            self._surface.show(Text(OWN_ANSWER, style="dim"))
        self._open = True
        for event in self._waiting:
            self._surface.on_event(event)
        self._waiting.clear()


def _run_id(payload: bytes) -> str | None:
    try:
        message: object = json.loads(payload)
    except ValueError:
        return None
    run = cast("dict[str, Any]", message).get("run_id") if isinstance(message, dict) else None
    return run if isinstance(run, str) else None
