"""`refold mcp`: the official client, over both transports, with a real process."""

import asyncio
import json
import signal
import socket
import sys

from mcp import Client, StdioServerParameters
from refold_commands import Terminal, keep, quick, stored, terminal

from refold.log import Author, Message, Opened, Origin
from refold.stores import open_store

__all__ = ["quick", "terminal"]

COMMAND = ["-m", "refold.cli", "mcp"]


async def test_on_standard_input_and_output(terminal: Terminal):
    await keep(terminal.folder / "refold.db", "parcels")
    server = StdioServerParameters(
        command=sys.executable,
        args=[*COMMAND, "--session", "parcels"],
        env=terminal.environment,
        cwd=terminal.folder,
    )
    async with Client(server) as client:
        found = await client.call_tool("recall_search", {"query": "Wo"})
        assert "[2] user: Wo?ü" in found.content[0].text


async def test_at_a_port(terminal: Terminal):
    await keep(terminal.folder / "refold.db", "parcels")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *COMMAND, "--port", "0"),
        cwd=terminal.folder,
        env=terminal.environment,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        address = json.loads(await process.stdout.readline())["address"]
        async with Client(address) as client:
            # No call is in a log: it is about the conversation used last.
            found = await client.call_tool("recall_search", {"query": "Wo"})
            assert "[2] user: Wo?ü" in found.content[0].text
    finally:
        process.terminate()
        await process.wait()
    assert process.returncode == -signal.SIGTERM


async def kept_in(store, name, folder, text, own_id=""):
    """A session that an agent had in a folder."""
    origin = Origin("claude", own_id, str(folder))
    message = json.dumps({"role": "user", "content": text}).encode()
    author = Author()
    drafts = [author.draft(Opened("openai-chat", "balanced", origin=origin))]
    async with open_store(f"sqlite:///{store}") as opened:
        await opened.log().append(name, [*drafts, author.draft(Message(message))], expected=0)


def of_hooks(terminal, **more):
    """The server as `refold hooks install` has it started."""
    return StdioServerParameters(
        command=sys.executable,
        args=[*COMMAND, "--cwd", "."],
        env={**terminal.environment, **more},
        cwd=terminal.folder,
    )


async def test_of_a_folder_the_conversation_used_last(terminal: Terminal):
    store = terminal.folder / "refold.db"
    await kept_in(store, "here", terminal.folder / "below", "The lantern is green.")
    await kept_in(store, "elsewhere", "/elsewhere", "The lantern is red.")
    async with Client(of_hooks(terminal)) as client:
        found = await client.call_tool("recall_search", {"query": "lantern"})
    assert "green" in found.content[0].text
    assert "red" not in found.content[0].text


async def test_the_agents_own_id_says_which_conversation(terminal: Terminal):
    store = terminal.folder / "refold.db"
    await kept_in(store, "mine", terminal.folder, "The lantern is green.", "id-of-mine")
    await kept_in(store, "newer", terminal.folder, "The lantern is red.", "id-of-newer")
    async with Client(of_hooks(terminal)) as client:
        meta = {"turn": {"session_id": "id-of-mine"}}
        found = await client.call_tool("recall_search", {"query": "lantern"}, meta=meta)
    assert "green" in found.content[0].text


async def test_a_folder_without_any_conversation_yet(terminal: Terminal):
    async with Client(of_hooks(terminal)) as client:
        assert len((await client.list_tools()).tools) == 3
        found = await client.call_tool("recall_search", {"query": "lantern"})
    assert found.content[0].text == "Nothing of this conversation is kept yet."


async def test_under_wrap_the_server_of_hooks_has_no_tools(terminal: Terminal):
    async with Client(of_hooks(terminal, REFOLD_WRAPPED="1")) as client:
        assert client.server_capabilities.tools is None
    assert not (terminal.folder / "refold.db").exists()


def test_a_session_that_is_not_there(terminal: Terminal):
    stored(terminal, "parcels")
    what, fix = terminal.fails("mcp", "--session", "parcel")
    assert "no session 'parcel'" in what
    assert "'parcels'" in fix


def test_no_store(terminal: Terminal):
    what, _ = terminal.fails("mcp", "--store", "sqlite:///none.db")
    assert "error[store-not-found]" in what


def test_a_port_in_use(terminal: Terminal):
    stored(terminal, "parcels")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        what, fix = terminal.fails("mcp", "--port", str(sock.getsockname()[1]))
    assert "cannot be used: Address already in use." in what
    assert fix == "Choose another with --port."
