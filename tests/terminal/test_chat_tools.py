"""Tools in a chat: of a folder, of an MCP server, of an agent; each call is a line."""

import json
import re
import sys

import pytest
from terminal.chatting_in import PROMPT, whole
from terminal.pieces import Call, Gate

AGENT = '''
import asyncio
from pydantic_ai import Agent, ModelRetry

agent = Agent(instructions="You know the weather.")

@agent.tool_plain
def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: snow"

@agent.tool_plain
async def slow(times: int) -> str:
    """Takes for ever."""
    await asyncio.sleep(3600)
    return "done"

@agent.tool_plain
def hostile() -> str:
    """Says what nobody should."""
    return "fine \\x1b]0;TITLE TAKEN\\x07\\x1b[2J\\x1b[H really"

@agent.tool_plain
def retries() -> str:
    """Asks for something else."""
    raise ModelRetry("try another city")

@agent.tool_plain
def fails() -> str:
    """Never works."""
    raise ValueError("no such city")
'''
SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("sums")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

server.run()
'''


@pytest.fixture(scope="module")
def chatting(talks):
    """A chat with an agent of somebody's own."""
    made = talks()
    (made.terminal.home / "mine.py").write_text(AGENT)
    return made


@pytest.fixture
def with_agent(chatting):
    """It, at rest, whatever the test before did."""
    chatting.provider.script.clear()
    if not chatting.rests():
        chatting.start("--agent", "mine:agent")
    return chatting


def test_files_and_mcp_servers_are_read_and_every_call_is_seen(talk, snapshot):
    folder = talk.terminal.home / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("port 4711\nname Ada\n")
    (folder / "secret.log").write_text("ignored\n")
    (folder / ".gitignore").write_text("*.log\n")
    (talk.terminal.home / "sums.py").write_text(SERVER)
    servers = {"sums": {"command": sys.executable, "args": [str(talk.terminal.home / "sums.py")]}}
    (talk.terminal.home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    talk.start("--files", "project", "--mcp", "mcp.json")
    talk.provider.script += [
        ["Let me look.", Call("list_files", {"path": "."})],
        [Call("read_file", {"path": "notes.txt"})],
        [Call("search_files", {"pattern": "Ada"})],
        [Call("read_file", {"path": "../refold.db"})],
        [Call("sums_add", {"a": 2, "b": 3})],
        "The port is 4711, the name is Ada, and the sum is 5.",
    ]
    talk.say("What is in there?", "the sum is 5.")
    talk.shows(snapshot)
    sent = talk.provider.asked[-1].messages
    assert whole(sent)
    results = [one["content"] for one in sent if one["role"] == "tool"]
    assert "notes.txt" in results[0]
    assert "secret.log" not in results[0]
    assert "4711" in results[1]
    assert "notes.txt" in results[2]
    assert "SQLite" not in results[3]
    assert results[4] == "5"


def test_an_agent_of_ones_own(with_agent, snapshot):
    chat = with_agent
    chat.provider.script += [
        ["I look.", Call("weather", {"city": "Bern"})],
        [Call("retries")],
        "It **snows** in Bern.",
    ]
    chat.run("The weather?", "It snows in Bern.")
    chat.shows(snapshot)
    assert "You know the weather." in str(chat.provider.asked[-1].messages)


def test_a_tool_that_raises_ends_the_turn_and_nothing_else(with_agent):
    chat = with_agent
    chat.provider.script += [[Call("fails")]]
    chat.run("Try that", "ValueError: no such city")
    chat.say("and now?", "You said: and now?")
    assert whole(chat.provider.asked[-1].messages)


@pytest.mark.req("R048")
def test_a_call_is_interrupted_and_the_next_turn_works(with_agent, snapshot):
    chat = with_agent
    chat.provider.script += [[Call("weather", {"city": "Graz"}), Call("slow", {"times": 3})]]
    chat.empty()
    chat.type("Try the slow one")
    chat.terminal.wait_for("slow times=3")
    chat.terminal.press("C-c")
    chat.terminal.wait_for("Interrupted.")
    chat.idle()
    chat.shows(snapshot)
    chat.say("and now?", "You said: and now?")
    sent = chat.provider.asked[-1].messages
    assert whole(sent)
    results = [one["content"] for one in sent if one["role"] == "tool"]
    assert "Graz: snow" in results
    assert any("Interrupted by user." in one for one in results)


def test_escape_closes_the_menu_and_then_interrupts_the_call(with_agent):
    chat = with_agent
    chat.provider.script += [[Call("slow", {"times": 4})]]
    chat.empty()
    chat.type("Try it again")
    progress = re.compile(r"slow [1-9]\d* s · ([\d.]+k? tokens · )?esc to interrupt")
    chat.terminal.wait_for(progress)
    chat.terminal.type("/se")
    chat.terminal.wait_for("go to another session")
    chat.terminal.press("Escape")
    chat.terminal.wait_until_gone("go to another session")
    assert "Interrupted." not in chat.settled()
    assert progress.search(chat.terminal.screen())
    chat.terminal.press("Escape")
    chat.terminal.wait_for("Interrupted.")
    assert f"{PROMPT}/se" in chat.idle()
    chat.terminal.press("C-u")
    chat.terminal.wait_until_gone(f"{PROMPT}/se")
    chat.say("and now?", "You said: and now?")
    assert whole(chat.provider.asked[-1].messages)


def test_a_call_is_interrupted_while_its_arguments_come(with_agent):
    chat = with_agent
    chat.provider.script += [[Call("weather", {"city": "Linz"}), Gate("half"), "never"]]
    chat.type("Half a call")
    chat.provider.wait_for_gate("half")
    chat.terminal.press("C-c")
    chat.terminal.wait_for("Interrupted.")
    chat.say("whole again?", "You said: whole again?")
    assert whole(chat.provider.asked[-1].messages)


def test_a_hostile_result_does_not_reach_the_terminal(with_agent):
    chat = with_agent
    chat.provider.script += [[Call("hostile")], "That was all."]
    shown = chat.run("Attack me", "That was all.")
    assert "Attack me" in shown
    assert "fine" in shown
    assert "TITLE TAKEN" not in chat.terminal.title()
