"""The end of a session: its last exchanges, and new messages from other terminals.

Everything is shown in the order of the log. A turn of our own waits for its place: while another
terminal is answered, its messages are shown here, labeled, and our own answer comes after them.
"""

import asyncio
import ctypes
import json
import os
import struct
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import uuid4

from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.conversation import Conversation, call_arguments
from refold.cli.chat.surface import (
    Prompt,
    RemoteMessage,
    Surface,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnEvent,
)
from refold.cli.chat.text import line_count
from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Cleared,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Forgot,
    Log,
    Message,
    Note,
    Pinned,
    Rewound,
    SessionInfo,
    Span,
    Unpinned,
)
from refold.terminal_text import counted, first_words
from refold.wire import Shape, wire_for

OWN_ANSWER = "Answer to your message:"  # if others spoke between the message and the answer
_MAX_REMOTE = 50  # messages of others shown at once; of more, the newest
_PAGE = 60  # entries read at once, from the end
_MAX_ENTRIES = 1_200  # searched for the last exchanges
_MAX_EXCHANGES = 3
_MAX_LINES = 40  # that more than one exchange may take
_MAX_CALLS = 20  # shown of one exchange, the newest
_MAX_ACT = 300  # columns of a line about something that was done
_ELSEWHERE = "In another terminal: "
_FOLDING = {FoldStarted.KIND, FoldCompleted.KIND, FoldFailed.KIND}
_MARKED = {
    "undo": "the last step was taken back (/undo).",
    "redo": "what was taken back was brought back (/redo).",
    "unfold": "a fold was opened (/unfold).",
}
_SPEAKERS = {"prompt": "you", "text": "model"}
_POLL = 0.5  # seconds between two looks at a store that reports no changes
_WRITES_TOGETHER = 0.1  # seconds: one look for many writes
_LATER_LOOKS = (0.4, 1.5, 6.0)  # seconds from one to the next, after a write
_IN_MODIFY = 2  # of Linux's inotify
_INOTIFY_EVENT = struct.Struct("iIII")


class Exchange(NamedTuple):
    """A prompt and everything up to the next one, as events of a turn."""

    seq: int
    events: list[TurnEvent]


class RecentPast(NamedTuple):
    exchanges: Sequence[Exchange]
    earlier: int  # messages before them


async def recent_past(log: Log, session: str) -> RecentPast:
    """The last exchanges of a session, whole: several short ones, or one of any length.

    What was rewound or cleared is left out.
    """
    visible = await log.visible(session, last=0)
    info = visible.info
    on_line = visible.outline.on_line(info.entries)
    entries: list[Entry] = []
    exchanges: list[Exchange] = []
    first = info.entries + 1
    while first > 1 and len(entries) < _MAX_ENTRIES and len(exchanges) <= _MAX_EXCHANGES:
        span = Span(max(1, first - _PAGE), first - 1)
        entries = [*await log.read(session, span), *entries]
        first = span.first
        exchanges = _exchanges([entry for entry in entries if _is_in(entry.seq, on_line)], info)
    if first > 1 and len(exchanges) > 1:  # its prompt may be further up
        del exchanges[0]
    recent = exchanges[-_MAX_EXCHANGES:]
    while len(recent) > 1 and sum(map(_line_count, recent)) > _MAX_LINES:
        del recent[0]
    start = recent[0].seq if recent else first
    shown = sum(entry.kind == Message.KIND and entry.seq >= start for entry in entries)
    return RecentPast(recent, max(0, info.messages - shown) if recent else 0)


def _is_in(seq: int, spans: Sequence[Span]) -> bool:
    return any(span.first <= seq <= span.last for span in spans)


def _exchanges(entries: Sequence[Entry], info: SessionInfo) -> list[Exchange]:
    wire = wire_for(info.format)
    exchanges: list[Exchange] = []
    tools: dict[str, str] = {}
    for entry in entries:
        if entry.forgotten:
            continue
        for payload in _payloads([entry]):
            shapes = wire.describe(payload).shapes
            if not exchanges or any(shape.kind == "prompt" for shape in shapes):
                exchanges.append(Exchange(entry.seq, []))
            events = (_event(shape, tools) for shape in shapes)
            exchanges[-1].events.extend(event for event in events if event is not None)
    return [exchange for exchange in exchanges if exchange.events]


def _event(shape: Shape, tools: dict[str, str]) -> TurnEvent | None:
    call = shape.call or ""
    match shape.kind:
        case "prompt" if shape.text.strip():
            return Prompt(shape.text.strip("\n"))
        case "text" if shape.text.strip():
            return TextDelta(f"{shape.text.strip()}\n\n")
        case "call":
            tools[call] = shape.tool or "tool"
            return ToolCall(call, tools[call], call_arguments(shape.text))
        case "return":
            return ToolResult(call, shape.tool or tools.get(call, "tool"), shape.text)
        case _:
            return None


def _line_count(exchange: Exchange) -> int:
    return sum(
        line_count(event.text) if isinstance(event, Prompt | TextDelta) else 1
        for event in exchange.events
    )


def show_past(past: RecentPast, surface: Surface, command: str) -> None:
    """Show it as it looked when it happened; the command reads what came before."""
    if past.earlier:
        earlier = f"… {counted(past.earlier, 'earlier message')} ({command})"
        surface.show(Text(earlier, "dim", no_wrap=True, overflow="ignore"))
    for exchange in past.exchanges:
        prompt = [event for event in exchange.events if isinstance(event, Prompt)]
        rest = [event for event in exchange.events if not isinstance(event, Prompt)]
        calls = [event.call for event in rest if isinstance(event, ToolCall)]
        older = set(calls[:-_MAX_CALLS])
        for event in prompt:
            surface.on_event(event)
        if older:
            surface.show(Text(f"… {counted(len(older), 'earlier tool call')}", "dim"))
        for event in rest:
            if not (isinstance(event, ToolCall | ToolResult) and event.call in older):
                surface.on_event(event)
        surface.settle()


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
        self.acting = False
        """Whether a turn or a command of our own runs: what it does is not another's."""
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
            entries = await log.read(name, Span(self._last_seq + 1, head))
            self._last_seq = head
            news: list[RemoteMessage | str] = []
            mark = ""
            for entry in entries:
                if entry.kind in _FOLDING:
                    # The session reports folds; what came before this one is shown first.
                    self._show(news)
                    news = []
                    await self._conversation.look()
                elif payloads := [*_payloads([entry])]:
                    news += self._messages(payloads[0])
                elif not self.acting:
                    act = _act(entry, mark)
                    news += [act] if act and act not in news[-1:] else []
                mark = _mark(entry)
            self._show(news)
            return True

    def _messages(self, payload: bytes) -> Iterator[RemoteMessage | str]:
        self._latest_run = _run_id(payload) or self._latest_run
        if self._latest_run in self._own_runs:
            return
        for shape in wire_for("pydantic-ai").describe(payload).shapes:
            if shape.kind in _SPEAKERS:
                yield RemoteMessage(_SPEAKERS[shape.kind], shape.text)
            elif shape.kind == "call":
                yield f"the model calls {shape.tool}."

    def _show(self, news: Sequence[RemoteMessage | str]) -> None:
        for what in news[-_MAX_REMOTE:]:
            if isinstance(what, str):
                text = first_words(cleaned(f"{_ELSEWHERE}{what}"), _MAX_ACT)
                self._surface.show(Text(text, style="dim"))
            else:
                self._surface.on_event(what)
        self.total += len(news)


def _act(entry: Entry, mark: str) -> str:  # noqa: PLR0911 - one case a kind
    """What somebody did in another terminal, in a sentence; empty for what changes nothing.

    Args:
        entry: The entry that it wrote.
        mark: What the entry before says of the command.
    """
    match CODEC.decode(entry):
        case Rewound() | FoldUndone() if mark in _MARKED:
            return _MARKED[mark]
        case Rewound(to):
            return f"the conversation went back to entry {to} (/rewind)."
        case FoldUndone():
            return "a fold was taken back."
        case Cleared():
            return "the context was cleared (/clear)."
        case Pinned(parts, watched=False):
            return f"entry {parts[0].seq} was pinned (/pin)."
        case Unpinned(parts):
            return f"entry {parts[0].seq} is pinned no longer (/pin)."
        case Forgot(span):
            if len(span) == 1:
                return f"entry {span.first} was forgotten for good."
            return f"entries {span.first} to {span.last} were forgotten for good."
        case Note(text, {"permission": str()}):
            return f"{text[:1].lower()}{text[1:]}"
        case _:
            return ""


def _mark(entry: Entry) -> str:
    match CODEC.decode(entry) if entry.kind == Note.KIND else None:
        case Note(data={"chat": str(mark)}):
            return mark
        case _:
            return ""


class StoreChanges:
    """Notices that a store may have changed, by whichever process.

    Linux reports each write to the files of an SQLite store, so nothing runs until then. Other
    stores, and other systems, are looked at twice a second.
    """

    def __init__(self, file: Path | None) -> None:
        self._name = os.fsencode(file.name) if file else b""
        self._changed = asyncio.Event()
        # A commit can be seen only after its last write has reached the disk, and nothing reports
        # that. On a busy machine one look would come too early.
        self._pauses: Iterator[float] = iter(())
        self._descriptor = _watch_folder(file.parent) if file else None
        if self._descriptor is not None:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def notify(self) -> None:
        self._changed.set()

    async def wait(self) -> None:
        if self._descriptor is None:
            await asyncio.sleep(_POLL)
            return
        try:
            # Not wait_for: in Python 3.11 it loses a cancellation that comes with the event.
            async with asyncio.timeout(next(self._pauses, None)):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_WRITES_TOGETHER)
        self._changed.clear()
        self._pauses = iter(_LATER_LOOKS)

    def close(self) -> None:
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _read(self) -> None:
        if self._descriptor is None:
            return
        with suppress(BlockingIOError):
            events, start = os.read(self._descriptor, 65_536), 0
            while start < len(events):
                *_, length = _INOTIFY_EVENT.unpack_from(events, start)
                start += _INOTIFY_EVENT.size + length
                name = events[start - length : start].rstrip(b"\0")
                if name.startswith(self._name):  # the store, or its write-ahead log
                    self._changed.set()


def _watch_folder(folder: Path) -> int | None:
    """A descriptor that can be read once a file in the folder is written; None if there is none."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    descriptor = int(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if descriptor < 0:
        return None
    if library.inotify_add_watch(descriptor, os.fsencode(folder), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor


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
