"""What another process does in the session of a chat: shown there, in order, with a label."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import asyncio
import re
import sys
from contextlib import asynccontextmanager

import pytest
from chatting import (
    FakeSurface,
    chat_with,
    place,  # noqa: F401 - for every test
)

from refold.cli.chat import tail
from refold.cli.chat.chat import Chat
from refold.cli.chat.surface import ContextEvent, RemoteMessage
from refold.cli.chat.tail import StoreChanges
from refold.cli.chat.text import event_lines
from refold.stores import SqliteStore

BIG = "word " * 800


class Waiting(FakeSurface):
    """Types nothing until a test does; keeps everything that it shows, in one list."""

    def __init__(self):
        super().__init__()
        self.lines = asyncio.Queue()

    def begin(self, listening): ...

    async def read(self):
        return await self.lines.get()

    def on_event(self, event):
        match event:
            case RemoteMessage(who, text):
                self.shown.append(f"{who}: {text[:20]}")
            case ContextEvent(change):
                self.shown += [piece.text for piece in event_lines(change)]
            case _:
                pass

    async def until(self, text):
        async with asyncio.timeout(60):
            while not any(text in one for one in self.shown):  # noqa: ASYNC110 - it is a list
                await asyncio.sleep(0.02)


@asynccontextmanager
async def two_terminals(path, *said):
    """A chat that waits at its prompt, and another terminal of the same session."""
    there = chat_with(store=SqliteStore(path))
    await there.say(*said)
    here = chat_with(store=SqliteStore(path), surface=Waiting())
    surface = here.surface
    chat = Chat(here.conversation, surface)
    running = asyncio.create_task(chat.run())
    try:
        async with asyncio.timeout(60):
            while not chat._tail._last_seq:  # noqa: ASYNC110 - it is looked at by the chat
                await asyncio.sleep(0.02)
        yield there, surface
    finally:
        surface.lines.put_nowait(None)
        await running
        await here.conversation.close()
        await there.conversation.close()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/undo", "the last step was taken back (/undo)."),
        ("/rewind 1", "(/rewind)."),
        ("/clear", "the context was cleared (/clear)."),
        ("/pin 2", "entry 2 was pinned (/pin)."),
        ("/allow drop_table", "the user allows drop_table."),
    ],
)
async def test_a_command_of_another_terminal_is_shown_here(tmp_path, command, shown):
    async with two_terminals(tmp_path / "s.db", "one", "two") as (there, surface):
        await there.type(command)
        await surface.until(shown)
    [line] = [one for one in surface.shown if shown in one]
    assert line.startswith("In another terminal: ")


async def test_what_is_done_here_has_no_label(tmp_path):
    async with two_terminals(tmp_path / "s.db", "one", "two") as (there, surface):
        for line in ("/pin 2", "/undo", "/allow drop_table", "hello", "/clear"):
            surface.lines.put_nowait(line)
        await surface.until("begins anew")
        await there.say("and there")
        await surface.until("you: and there")
    assert not [one for one in surface.shown if "another terminal" in one]


async def test_a_fold_of_another_process_is_shown_in_its_place(tmp_path):
    said = [f"{nth} {BIG}" for nth in range(3)]
    async with two_terminals(tmp_path / "s.db", *said, "read a.txt") as (there, surface):
        await there.say("before")
        await there.conversation.compact()
        await there.say("after")
        await surface.until("model: I heard: after")
    text = "\n".join(surface.shown)
    places = [
        text.index(each)
        for each in (
            "you: before",
            "model: I heard: before",
            "In another process: the conversation is being folded.",
            "In another process: conversation folded: ",
            "you: after",
        )
    ]
    assert places == sorted(places)
    [(before, after)] = re.findall(r"folded: \d+ messages, ([\d,]+) → ([\d,]+) tokens", text)
    assert int(before.replace(",", "")) > int(after.replace(",", ""))


async def test_a_fold_that_is_seen_only_when_it_stands_has_both_sizes(tmp_path):
    store = tmp_path / "s.db"
    there = chat_with(store=SqliteStore(store))
    await there.say(*(f"{nth} {BIG}" for nth in range(3)), "read a.txt")
    here = chat_with(store=SqliteStore(store))
    await here.conversation.look()
    before = here.conversation.status.filled.total
    await there.conversation.compact()
    await here.conversation.look()
    started, done = (one.event for one in here.surface.events)
    assert started.elsewhere
    assert done.elsewhere
    assert done.pre_tokens + done.besides == pytest.approx(before, rel=0.1)
    assert done.post_tokens + done.besides == here.conversation.status.filled.total < before
    for chat in (here, there):
        await chat.conversation.close()


async def test_the_tools_of_another_terminal_are_named(tmp_path):
    async with two_terminals(tmp_path / "s.db", "one") as (there, surface):
        await there.say("read a.txt")
        await surface.until("model: I heard")
    text = "\n".join(surface.shown)
    assert text.index("you: read a.txt") < text.index("the model calls read_file.")


async def test_what_comes_while_a_turn_begins_is_shown_before_it(tmp_path):
    async with two_terminals(tmp_path / "s.db", "one") as (there, surface):
        await there.type("/pin 2")
        surface.lines.put_nowait("hello")  # at once, before the next look
        await surface.until("entry 2 was pinned")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the store is looked at regularly")
async def test_a_write_is_looked_for_several_times_and_then_nothing_runs(tmp_path, monkeypatch):
    """A commit can be seen only after its last write, and nothing reports when."""
    monkeypatch.setattr(tail, "_LATER_LOOKS", (0.01, 0.01, 0.01))
    store = tmp_path / "s.db"
    changes = StoreChanges(store)
    try:
        for _ in range(2):
            (tmp_path / "s.db-wal").write_bytes(b"written")
            for _ in range(1 + 3):
                await asyncio.wait_for(changes.wait(), 60)
            waiting = asyncio.ensure_future(changes.wait())
            await asyncio.sleep(0.3)  # far more than a pause between two looks
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    finally:
        changes.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the store is looked at regularly")
@pytest.mark.parametrize("steps", range(6))
async def test_waiting_for_a_write_can_be_canceled_at_the_moment_of_one(
    tmp_path, monkeypatch, steps
):
    monkeypatch.setattr(tail, "_WRITES_TOGETHER", 60)
    changes = StoreChanges(tmp_path / "s.db")
    changes._pauses = iter((60.0,))  # as after an earlier write
    try:
        waiting = asyncio.ensure_future(changes.wait())
        await asyncio.sleep(0)
        changes.notify()
        for _ in range(steps):  # of the loop, from the event to whoever waits for it
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting}, timeout=10)
        assert waiting.cancelled()
    finally:
        waiting.cancel()
        changes.close()
