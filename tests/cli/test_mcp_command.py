"""`refold mcp`: the official client, over both transports, with a real process."""

import asyncio
import json
import signal
import socket
import sys

from mcp import Client, StdioServerParameters
from refold_commands import Terminal, keep, quick, stored, terminal

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
