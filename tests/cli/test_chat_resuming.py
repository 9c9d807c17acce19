"""Which session a chat goes on with, and which it leaves to others."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")

from chatting import chat_with

from refold.cli.chat.assembly import (
    resume_command,
    session_from_options,
    session_to_resume,
    show_command,
)
from refold.cli.chat.commands.sessions import session_names
from refold.cli.chat.endpoint import Endpoint, EndpointNotes, endpoint_of, stored_endpoint
from refold.cli.chat.models.providers import Choice, model_of
from refold.cli.chat.surface import ChatOptions, Prompt, TextDelta, ToolCall, ToolResult
from refold.cli.chat.tail import recent_past, show_past
from refold.cli.options import chosen, where_is
from refold.errors import InvalidInput, SessionNotFound
from refold.log import Author, Opened, Titled
from refold.memory import Branch, is_internal
from refold.memory.board import conversations
from refold.stores import open_store

FOREIGN = ["openai-chat", "anthropic-messages"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own, and no settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def chat_options(session=None, *, resume=True, store=None, tenant="default"):
    return ChatOptions(where_is("") if store is None else store, tenant, session, resume)


async def with_others(*names, format="openai-chat"):  # noqa: A002 - the glossary's word
    """A chat with one session of its own, `talk`, and these of another program, used later."""
    chat = chat_with()
    await chat.say("one")
    await keep(chat, *names, format=format)
    return chat


async def keep(chat, *names, format):  # noqa: A002 - the glossary's word
    for name in names:
        draft = Author().draft(Opened(format, "balanced"))
        await chat.conversation.log.append(name, [draft], expected=0)


@pytest.mark.parametrize("format", FOREIGN)
@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("typed", ["their own", "their"])
async def test_a_session_of_another_format_is_refused_at_the_door(format, resume, typed):  # noqa: A002
    chat = await with_others("their own", format=format)
    if typed == "their" and not resume:
        assert (
            await session_from_options(chat.conversation.log, chat_options(typed, resume=False))
            == typed
        )
        return
    with pytest.raises(InvalidInput) as refused:
        await session_to_resume(
            chat.conversation.log, chat_options(typed, resume=resume), chat.surface
        )
    assert refused.value.what == (
        f"Session 'their own' holds {format} messages: a chat cannot continue it."
    )
    assert "`refold show 'their own'`" in refused.value.fix
    assert "`refold export 'their own'`" in refused.value.fix
    assert chat.conversation.name == "talk"


async def test_the_way_on_leads_to_the_same_store():
    chat = await with_others("theirs")
    there = chat_options("theirs", store="sqlite:///o ne.db", tenant="acme")
    with pytest.raises(InvalidInput) as refused:
        await session_from_options(chat.conversation.log, there)
    assert "`refold show theirs --store 'sqlite:///o ne.db' --tenant acme`" in refused.value.fix


async def test_the_newest_session_is_the_newest_that_can_be_gone_on_with():
    chat = await with_others(*(f"s{nth}" for nth in range(120)))
    log = chat.conversation.log
    assert await session_from_options(log, chat_options()) == "talk"
    assert await session_from_options(log, chat_options("ta")) == "talk"
    await keep(chat, "table", format="openai-chat")
    assert await session_from_options(log, chat_options("ta")) == "talk"
    assert await session_from_options(log, chat_options("new one", resume=False)) == "new one"
    with pytest.raises(SessionNotFound):
        await session_from_options(log, chat_options("new one"))
    other = chat_with()
    await keep(other, "theirs", format="openai-chat")
    with pytest.raises(SessionNotFound, match="Start one: refold chat"):
        await session_from_options(other.conversation.log, chat_options())


async def test_what_answered_is_known_by_the_note_else_by_the_newest_request():
    chat = chat_with()
    log, notes = chat.conversation.log, EndpointNotes()
    assert await stored_endpoint(log, "talk") is None
    await chat.say("one")
    assert await stored_endpoint(log, "talk") == Endpoint("function:large", noted=False)
    here, there = Endpoint("local:a", "http://h/v1"), Endpoint("local:a", "http://other/v1")
    for endpoint in (here, here, there, here):
        assert await notes.note(log, "talk", endpoint)
        assert await stored_endpoint(log, "talk") == endpoint
    entries = await log.read("talk")
    assert [one.kind for one in entries].count("note") == 3
    await log.fork("talk", "fork")
    assert await stored_endpoint(log, "fork") == here
    assert not await notes.note(log, "nowhere", here)


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("talk", {}, "refold chat --resume talk"),
        (
            "my talk",
            {"store": "sqlite:///o ne.db"},
            "--resume 'my talk' --store 'sqlite:///o ne.db'",
        ),
        ("-talk", {}, "refold chat --resume -- -talk"),
        ("talk", {"tenant": "acme"}, "--resume talk --tenant acme"),
    ],
)
def test_the_line_to_come_back_with_leads_to_the_same_session(name, options, line):
    assert resume_command(name, chat_options(**options)).endswith(line)


def test_the_line_to_come_back_with_brings_the_tools():
    given = ChatOptions(
        where_is(""), "default", agent="m:a", files=Path("src"), mcp=Path("m.json"), board=False
    )
    options = "--agent m:a --mcp m.json --files src --no-board"
    assert resume_command("talk", given) == f"refold chat --resume talk {options}"


@pytest.mark.parametrize(
    ("model", "url", "shown"),
    [
        ("local:m", "http://u:hunter2pass@h:1/v1", "local:m at http://h:1/v1"),
        ("local:m", "http://h/v1?key=hunter2", "local:m at http://h/v1"),
        ("local:m", f"http://h/sk-{'a1' * 20}/v1", "local:m at http://h/…/v1"),
    ],
)
def test_an_endpoint_holds_no_key(model, url, shown):
    made = model_of(Choice(model, "", url), {})
    assert str(endpoint_of(made)) == shown


@pytest.mark.parametrize("others", [1, 120])
async def test_only_sessions_that_can_be_gone_on_with_are_offered(others):
    chat = await with_others(*(f"s{nth}" for nth in range(others)))
    chat.surface.picks = [0]
    assert await session_to_resume(chat.conversation.log, chat_options(), chat.surface) == "talk"
    assert [row.label for row in chat.surface.rows] == ["one"]
    assert f"cannot go on with them: {others})" in chat.surface.titles[0]
    chat.known_sessions = (await chat.conversation.log.sessions(limit=200)).sessions
    assert [name for name, _ in session_names(chat, "")] == ["talk"]


async def test_sessions_names_why_one_cannot_be_gone_to():
    chat = await with_others("theirs")
    shown = " ".join((await chat.type("/sessions theirs")).split())
    assert "holds openai-chat messages" in shown
    assert "refold show theirs" in shown
    assert chat.conversation.name == "talk"


async def test_where_all_sessions_are_of_other_programs_it_is_said():
    chat = chat_with()
    await keep(chat, "theirs", format="openai-chat")
    shown = " ".join((await chat.type("/sessions")).split())
    assert "only 1 session of other programs" in shown
    assert "`refold sessions` lists them" in shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("mysql://user:hunter2secret@host:5432/db", "'mysql://…@host:5432/db'"),
        ("mysql://hunter2secret@host/db", "'mysql://…@host/db'"),
        ("mysql://user:hunter2secret/a@b?c@host/db", "'mysql://…@host/db'"),
        ("user:hunter2secret@host/db", "'…@host/db'"),
        ("mysql://host/db?password=hunter2secret", "'mysql://host/db?…'"),
        ("mysql://host/db", "'mysql://host/db'"),
        ("refold.db", "'refold.db'"),
    ],
)
def test_an_address_is_shown_without_its_password(address, shown):
    with pytest.raises(InvalidInput) as refused:
        open_store(address)
    assert refused.value.what == f"{shown} is no store's address."
    assert "hunter2" not in str(refused.value)


async def resumed(chat):
    """What is shown of its session when it is resumed."""
    chat.surface.shown, chat.surface.events = [], []
    past = await recent_past(chat.conversation.log, chat.conversation.name)
    show_past(past, chat.surface, "refold show talk")
    return [event.text if isinstance(event, Prompt) else event for event in chat.surface.events]


async def test_a_resumed_session_shows_its_last_exchanges_whole():
    chat = chat_with()
    await chat.say(*(f"prompt {nth}" for nth in range(40)))
    await chat.say("read a.txt", "and then?")
    events = await resumed(chat)
    assert [event for event in events if isinstance(event, str)] == [
        "prompt 39",
        "read a.txt",
        "and then?",
    ]
    call, result, answer = events[3:6]
    assert (call.tool, call.arguments) == ("read_file", "path=a.txt")
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert result.call == call.call
    assert "the content of a.txt" in result.text
    assert isinstance(answer, TextDelta)
    assert "I heard: read a.txt" in answer.text
    assert chat.surface.shown == ["… 78 earlier messages (refold show talk)\n"]


async def test_of_long_exchanges_only_the_last_is_shown():
    chat = chat_with()
    long = "\n".join(f"line {nth}" for nth in range(500))
    await chat.say("short", long, long)
    events = await resumed(chat)
    assert events[0] == long
    assert len(events) == 2
    assert "… 4 earlier messages" in chat.surface.text


async def test_what_was_taken_back_is_not_shown_again():
    chat = chat_with()
    await chat.say("one", "two")
    await chat.type("/undo")
    assert [event for event in await resumed(chat) if isinstance(event, str)] == ["one"]
    one = chat_with()
    await one.say("one")
    assert len(await resumed(one)) == 2
    assert one.surface.shown == []


async def test_the_command_that_shows_the_rest_names_the_store():
    there = chat_options(store="sqlite:///o ne.db", tenant="acme")
    where = "--store 'sqlite:///o ne.db' --tenant acme"
    assert show_command("talk", there) == f"refold show talk --all {where}"
    assert show_command("-x", there) == f"refold show --all {where} -- -x"
    assert show_command("talk", chat_options()) == "refold show talk --all"


async def test_the_picker_names_sessions_and_tells_the_same_titles_apart():
    chat = chat_with()
    for name, first in (("a", "the red kettle"), ("b", "the blue kettle"), ("c", "a pan")):
        await chat.conversation.go_to(name)
        await chat.say(first)
        title = "Pans" if name == "c" else "Kettles"
        draft = Author().draft(Titled(title))
        await chat.conversation.log.append(name, [draft], expected=await chat.head())
    await chat.type("/sessions")
    assert [row.label for row in chat.surface.rows] == [
        "Pans",
        "Kettles: the blue kettle",
        "Kettles: the red kettle",
    ]
    assert [row.detail for row in chat.surface.rows] == [
        "c · you are here · 2 messages",
        "b · just now · 2 messages",
        "a · just now · 2 messages",
    ]


async def test_boards_are_not_listed():
    branch = Branch("key", "project, main")
    chat = chat_with(board=branch)
    await chat.say("one")
    board = chat.conversation.board
    await board.add("The deploy needs a VPN.")
    sessions = (await chat.conversation.log.sessions()).sessions
    assert len(sessions) == 2
    assert is_internal(sessions[0])
    await chat.type("/sessions")
    assert [row.label for row in chat.surface.rows] == ["one"]
    assert "not listed" not in chat.surface.titles[0]
    page = await conversations(chat.conversation.log, limit=1)
    assert [info.session for info in page.sessions] == ["talk"]
    assert page.next is None
    assert await chosen(chat.conversation.log, None) == "talk"
