"""`refold wrap` with a process killed: what is left, and whether the conversation continues."""

import asyncio
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp import Client, MCPError, StdioServerParameters
from test_wrap import STATE, children_of, pids, until, wrapping

from refold.cli.wrap import processes
from refold.testing.upstream import Reply

SEARCH = ["mcp__refold__recall_search", {"query": "parcel"}]
VICTIMS = ["agent", "gateway", "wrap"]


class Provider:
    """Answers at once; or only when it may, and says that it was asked."""

    def __init__(self):
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked = asyncio.Event()

    async def __call__(self, _got):
        self.asked.set()
        await self.may_answer.wait()
        return Reply("It is at the depot.")

    def hold(self):
        self.may_answer.clear()
        self.asked.clear()


@pytest.fixture
def provider():
    return Provider()


@pytest.fixture
async def wrapped(tmp_path, provider):
    async with wrapping(tmp_path, provider) as made:
        yield made
        provider.may_answer.set()


def working_in(folder):
    """The processes that work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cwd").readlink().is_relative_to(folder):
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found


def refuses(address):
    """Whether nobody listens at its port."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname, parts.port)).close()
    except ConnectionRefusedError:
        return True
    return False


async def nothing_is_left(wrapped, agent=None):
    """No process, no port, and no file but the log and what `refold wrap` notes for itself."""
    assert await until(lambda: not working_in(wrapped.folder)), working_in(wrapped.folder)
    assert wrapped.files() <= {"codex/config.toml", *STATE}
    if agent is not None:
        assert await until(lambda: refuses(agent.environment["ANTHROPIC_BASE_URL"]))


async def conversation_continues(wrapped, history, session, *, forked=False):
    """It is the same session, or a fork of it, with what was said before."""
    process, agent = await wrapped.run("--resume", "claude")
    await agent.tell(history=history)
    done = await agent.ask("And now?")
    assert done["status"] == 200
    assert (await wrapped.origin(done["session"]) if forked else done["session"]) == session
    await wrapped.ended(process, agent)
    await nothing_is_left(wrapped, agent)
    assert "It is at the depot." in (await wrapped.log(done["session"]))[-1]


async def kill(victim, wrapped, process, agent):
    pid = {"agent": agent.pid, "wrap": process.pid}.get(victim)
    os.kill(pid or wrapped.gateway(process, agent), signal.SIGKILL)


@pytest.mark.parametrize("victim", VICTIMS)
async def test_killed_at_rest(wrapped, victim):
    process, agent = await wrapped.run("claude")
    first = await agent.ask("Where is the parcel?")
    history = await agent.history()
    await kill(victim, wrapped, process, agent)
    if victim != "agent":
        second = await agent.ask("Are you sure?")
        assert (second["status"], second["session"]) == (200, first["session"])
        history = await agent.history()
        await agent.tell(exit=0)
    await process.wait()
    await nothing_is_left(wrapped, agent)
    await conversation_continues(wrapped, history, first["session"])


@pytest.mark.parametrize("victim", VICTIMS)
async def test_killed_while_the_model_answers(wrapped, provider, victim):
    process, agent = await wrapped.run("claude")
    first = await agent.ask("Where is the parcel?")
    history = await agent.history()
    provider.hold()
    asking = asyncio.create_task(agent.ask("Are you sure?"))
    await provider.asked.wait()
    await kill(victim, wrapped, process, agent)
    if victim == "gateway":
        assert (await asking)["status"] == 0
        provider.may_answer.set()
        again = await agent.tell(again=True)
        assert (again["status"], again["session"]) == (200, first["session"])
        history = await agent.history()
    elif victim == "wrap":
        provider.may_answer.set()
        assert (await asking)["session"] == first["session"]
        history = await agent.history()
    else:
        with suppress(ConnectionError):
            assert await asking is None
        provider.may_answer.set()
        # Agents note the words of the user before they ask.
        history = [*history, {"role": "user", "content": "Are you sure?"}]
    if victim != "agent":
        await agent.tell(exit=0)
    await process.wait()
    await nothing_is_left(wrapped, agent)
    # An answer that the killed agent never got is in the log: without it, this is a fork.
    await conversation_continues(wrapped, history, first["session"], forked=victim == "agent")


@pytest.mark.parametrize("victim", VICTIMS)
async def test_killed_while_the_model_reads_back(wrapped, victim):
    """The MCP server is in the gateway. For a call that is in no log, it waits a moment."""
    process, agent = await wrapped.run("claude")
    first = await agent.ask("Where is the parcel?")
    history = await agent.history()
    calling = asyncio.create_task(agent.tell(call=SEARCH))
    await asyncio.sleep(0.2)
    await kill(victim, wrapped, process, agent)
    with suppress(ConnectionError):
        await calling
    if victim != "agent":
        found = await agent.tell(call=SEARCH)
        assert "Where is the parcel?" in found["result"]
        await agent.tell(exit=0)
    await process.wait()
    await nothing_is_left(wrapped, agent)
    await conversation_continues(wrapped, history, first["session"])


async def test_wrap_is_killed_before_the_agent_is_started(wrapped):
    process = await wrapped.start("claude")
    assert await until(lambda: children_of(process.pid))
    process.kill()
    await process.wait()
    await nothing_is_left(wrapped)


async def test_a_gateway_that_is_killed_before_it_answers(wrapped):
    process = await wrapped.start("claude")
    assert await until(lambda: children_of(process.pid))
    [gateway] = children_of(process.pid)
    os.kill(gateway, signal.SIGKILL)
    code, said = await wrapped.wait(process)
    assert code == 1
    assert "The gateway did not start." in said
    await nothing_is_left(wrapped)


async def test_all_killed_at_once(wrapped):
    process, agent = await wrapped.run("claude")
    first = await agent.ask("Where is the parcel?")
    history = await agent.history()
    for pid in (wrapped.gateway(process, agent), process.pid, agent.pid):
        os.kill(pid, signal.SIGKILL)
    await process.wait()
    await nothing_is_left(wrapped, agent)
    await conversation_continues(wrapped, history, first["session"])


async def killed_and_called(server, before):
    async with Client(server) as client:
        [pid] = {*children_of(os.getpid())} - before
        os.kill(pid, signal.SIGKILL)
        await client.call_tool("recall_search", {"query": "parcel"})


async def test_a_killed_mcp_server_leaves_the_log_as_it_was(wrapped):
    process, agent = await wrapped.run("claude")
    first = await agent.ask("Where is the parcel?")
    await wrapped.ended(process, agent)
    kept = await wrapped.log(first["session"])
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "refold.cli", "mcp"], env=wrapped.environment
    )
    before = pids()
    with pytest.raises((MCPError, ExceptionGroup)):
        await killed_and_called(server, before)
    async with Client(server) as client:
        found = await client.call_tool("recall_search", {"query": "parcel"})
    assert "Where is the parcel?" in found.content[0].text
    assert await wrapped.log(first["session"]) == kept


def test_a_signal_that_another_thread_gets_is_not_lost():
    """The system may give a signal to any thread; handlers run in the first one alone."""
    child = processes.subprocess.Popen(["sleep", "60"])
    ready, done = threading.Event(), threading.Event()

    def other():
        ready.set()
        done.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    handlers = {
        signal.SIGUSR1: lambda _number, _frame: child.kill(),
        signal.SIGCHLD: lambda _number, _frame: None,
    }
    with processes._handling(handlers), processes._waking() as woken:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert processes._wait(child.pid, woken) == -signal.SIGKILL
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
            done.set()
            thread.join()
    child.returncode = 0
