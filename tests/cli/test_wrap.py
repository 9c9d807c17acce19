"""`refold wrap` with a scripted agent: a real process, real requests, a gateway of its own."""

import asyncio
import ctypes
import json
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from gateway_world import served
from serve_process import parents
from wrapped_agent import stage

from refold.log import CODEC, Message
from refold.stores import open_store
from refold.testing.upstream import Reply, RequestChecker, ScriptedUpstream

NAMES = ["claude", "codex"]
STATE = {"state/refold/wrap.json", "state/refold/owner-key"}


def pids():
    return {pid for pid, _ in parents()}


def children_of(pid):
    return [child for child, parent in parents() if parent == pid]


def become_reaper(*, on):
    """Adopt what the children of this process leave behind."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, int(on), 0, 0, 0)


async def until(holds, seconds=30):
    """Wait until it holds; whether it does."""
    for _ in range(int(seconds / 0.05)):
        if holds():
            return True
        await asyncio.sleep(0.05)
    return holds()


class Wrapped:
    """`refold wrap`, its agent, and what a provider got."""

    def __init__(self, folder, theater, upstream, address):
        self.folder, self.theater, self.upstream = folder, theater, upstream
        self.home = folder / "home"
        self.out, self.err = folder / "out", folder / "err"
        (folder / "project").mkdir(exist_ok=True)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("REFOLD_")},
            "PATH": f"{theater.programs}{os.pathsep}{os.environ['PATH']}",
            "AGENT_CONTROL": str(theater.control),
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "CODEX_HOME": str(self.home / "codex"),
            "REFOLD_SERVE__TIMES__STORE": "30",
            "ANTHROPIC_BASE_URL": address,
            "OPENAI_BASE_URL": f"{address}/v1",
        }
        (self.home / "codex").mkdir(parents=True, exist_ok=True)
        (self.home / "codex" / "config.toml").write_text(f'openai_base_url = "{address}/v1"\n')
        self.started = []

    async def start(self, *arguments, **environment):
        # No pipes: an agent that outlives `refold wrap` would hold them open.
        with self.out.open("wb") as out, self.err.open("wb") as err:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "refold.cli", "wrap", *arguments),
                cwd=self.folder / "project",
                env={**self.environment, **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    async def ended(self, process, agent, code=0):
        """Let the agent end; the exit code of `refold wrap`, and what it said."""
        await agent.tell(exit=code)
        return await self.wait(process)

    async def wait(self, process):
        """Wait for the end of `refold wrap`; its exit code, and what it said."""
        code = await asyncio.wait_for(process.wait(), 60)
        assert self.out.read_text() == ""
        return code, self.err.read_text()

    async def run(self, *arguments, **environment):
        """Start it; the process and its agent."""
        process = await self.start(*arguments, **environment)
        coming = asyncio.create_task(self.theater.agent())
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            coming.cancel()
            raise AssertionError(self.err.read_text())
        ended.cancel()
        return process, coming.result()

    def gateway(self, process, agent):
        [gateway] = [pid for pid in children_of(process.pid) if pid != agent.pid]
        return gateway

    def files(self):
        """All files in the home, but the store's own."""
        every = (path for path in self.home.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.home))
            for path in every
            if not path.name.startswith("refold.db")
        }

    def store(self):
        address = f"sqlite:///{self.home / 'data' / 'refold' / 'refold.db'}"
        return open_store(address, create=False)

    async def origin(self, name):
        """The session of which this one is a fork."""
        async with self.store() as store:
            return (await store.log().info(name)).forked_from

    async def log(self, name):
        """The messages of a session, as text."""
        async with self.store() as store:
            entries = await store.log().read(name)
        values = map(CODEC.decode, entries)
        return [value.payload.decode() for value in values if isinstance(value, Message)]


@asynccontextmanager
async def wrapping(folder, reply):
    upstream = ScriptedUpstream(reply, checker=RequestChecker())
    async with stage(folder) as theater, served(upstream) as address:
        wrapped = Wrapped(folder, theater, upstream, address)
        try:
            yield wrapped
        finally:
            for process in wrapped.started:
                if process.returncode is None:
                    for pid in [*children_of(process.pid), process.pid]:
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    await process.wait()
            assert upstream.checker.faults == []


@pytest.fixture
async def wrapped(tmp_path):
    async with wrapping(tmp_path, lambda got: Reply(f"Answer {len(got.body)}.")) as made:
        yield made


@pytest.mark.parametrize("name", NAMES)
async def test_a_conversation_goes_through_and_is_kept(wrapped, name):
    process, agent = await wrapped.run(name)
    first, second = await agent.ask("Where is the parcel?"), await agent.ask("And now?")
    assert (first["status"], second["status"]) == (200, 200)
    assert first["session"] == second["session"]
    code, said = await wrapped.ended(process, agent)
    assert code == 0
    assert f"2 requests; session {first['session']}." in said
    assert len(await wrapped.log(first["session"])) == 4
    # It came with the agent's own login.
    assert {got.headers["authorization"] for got in wrapped.upstream.got} == {"Bearer own-login"}


async def test_another_command_gets_the_usual_variables(wrapped):
    process, agent = await wrapped.run("--", "another", "--fast")
    assert agent.arguments == ["--fast"]
    assert (await agent.ask("Where is the parcel?"))["status"] == 200
    assert (await wrapped.ended(process, agent, 3))[0] == 3


async def test_nothing_is_left_when_the_agent_ends(wrapped):
    before = wrapped.files()
    process, agent = await wrapped.run("claude")
    gateway = wrapped.gateway(process, agent)
    await agent.ask("Where is the parcel?")
    await wrapped.ended(process, agent)
    assert {gateway, agent.pid, process.pid}.isdisjoint(pids())
    assert wrapped.files() - before == STATE


async def test_what_is_kept_is_said_the_first_time(wrapped):
    process, agent = await wrapped.run("claude")
    _, said = await wrapped.ended(process, agent)
    assert f"is kept in sqlite:///{wrapped.home}/data/refold/refold.db\n" in said
    assert "refold config retention.days" in said
    assert "refold wrap --no-keep" in said
    process, agent = await wrapped.run("claude")
    _, again = await wrapped.ended(process, agent)
    assert "is kept in" not in again


async def test_nothing_is_kept(wrapped):
    process, agent = await wrapped.run("--no-keep", "claude")
    first, second = await agent.ask("Where is the parcel?"), await agent.ask("And now?")
    assert first["session"] == second["session"]
    _, said = await wrapped.ended(process, agent)
    assert "2 requests; nothing was kept." in said
    assert not (wrapped.home / "data").exists()
    assert not (wrapped.home / "state").exists()


async def test_it_ends_with_json(wrapped):
    process, agent = await wrapped.run("--json", "claude")
    done = await agent.ask("Where is the parcel?")
    _, said = await wrapped.ended(process, agent)
    receipt = json.loads(said.splitlines()[-1])
    assert (receipt["requests"], receipt["failed"]) == (1, 0)
    assert (receipt["sessions"], receipt["compactions"]) == ([done["session"]], 0)
    assert receipt["tokens"]["sent"] == 10
    assert 200 < receipt["tokens"]["recall_tools"] < 1_000
    assert receipt["cost"] > 0
    assert receipt["compared"]["paid"] == receipt["cost"]


async def test_only_who_knows_the_secret_gets_in(wrapped):
    process, agent = await wrapped.run("claude")
    address = agent.environment["ANTHROPIC_BASE_URL"]
    host, _, secret = address.removeprefix("http://").partition("/")
    assert len(secret) == 32
    for path in ("/v1/models", "/api/v1/sessions", "/healthz", "/", f"/{secret[:-1]}/healthz"):
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 404"), path
        writer.close()
    await wrapped.ended(process, agent)


async def test_no_request_came_through(wrapped):
    process, agent = await wrapped.run("claude")
    _, said = await wrapped.ended(process, agent)
    assert "No request came through the gateway" in said


@pytest.mark.parametrize("name", NAMES)
async def test_a_killed_gateway_is_there_again_at_its_address(wrapped, name):
    process, agent = await wrapped.run(name)
    first = await agent.ask("Where is the parcel?")
    os.kill(wrapped.gateway(process, agent), signal.SIGKILL)
    # The request waits in the socket until the next gateway answers it.
    second = await agent.ask("And now?")
    assert (second["status"], second["session"]) == (200, first["session"])
    _, said = await wrapped.ended(process, agent)
    assert f"2 requests; session {first['session']}." in said
    assert len(await wrapped.log(first["session"])) == 4


async def test_a_gateway_that_is_killed_while_it_answers(tmp_path):
    came = asyncio.Event()

    async def reply(_got):
        if not came.is_set():
            came.set()
            await asyncio.sleep(60)
        return Reply("It is at the depot.")

    async with wrapping(tmp_path, reply) as wrapped:
        process, agent = await wrapped.run("claude")
        asking = asyncio.create_task(agent.ask("Where is the parcel?"))
        await came.wait()
        os.kill(wrapped.gateway(process, agent), signal.SIGKILL)
        assert (await asyncio.wait_for(asking, 30))["status"] == 0
        again = await agent.tell(again=True)
        assert (again["status"], again["text"]) == (200, "It is at the depot.")
        _, said = await wrapped.ended(process, agent)
        # What was asked first is in the log; asked again, it is the same request.
        assert f"1 request; session {again['session']}." in said
        assert len(await wrapped.log(again["session"])) == 2


async def test_a_gateway_that_dies_again_and_again_is_given_up(wrapped):
    process, agent = await wrapped.run("claude")
    first = await agent.ask("Where is the parcel?")
    for _ in range(4):
        gateways = [pid for pid in children_of(process.pid) if pid != agent.pid]
        for gateway in gateways:
            os.kill(gateway, signal.SIGKILL)
        await until(lambda old=gateways: not set(old) & set(children_of(process.pid)))
        await until(lambda: len(children_of(process.pid)) > 1, 2)
    # It fails at once, and does not wait for anybody.
    refused = await asyncio.wait_for(agent.ask("And now?"), 10)
    assert refused["status"] == 0
    _, said = await wrapped.ended(process, agent)
    assert "Continue with: refold wrap --resume claude" in said
    process, agent = await wrapped.run("--resume", "claude")
    assert agent.arguments[-1] == "--continue"
    again = await agent.ask("Where is the parcel?")
    assert again["status"] == 200
    assert first["session"]
    await wrapped.ended(process, agent)


async def test_the_gateway_outlives_wrap_and_ends_with_the_agent(wrapped):
    process, agent = await wrapped.run("claude")
    gateway = wrapped.gateway(process, agent)
    first = await agent.ask("Where is the parcel?")
    process.kill()
    await process.wait()
    await asyncio.sleep(1.5)  # a gateway that ended with `refold wrap` would be gone by now
    second = await agent.ask("And now?")
    assert (second["status"], second["session"]) == (200, first["session"])
    assert gateway in pids()
    await agent.tell(exit=0)
    assert await until(lambda: {gateway, agent.pid}.isdisjoint(pids()))


async def test_the_gateway_ends_with_the_agent_though_its_children_go_on(wrapped):
    process, agent = await wrapped.run("--", "another")
    gateway = wrapped.gateway(process, agent)
    await agent.ask("Where is the parcel?")
    child = await agent.tell(spawn=["sleep", "60"])
    process.kill()
    await process.wait()
    try:
        await agent.tell(exit=0)
        assert await until(lambda: gateway not in pids())
    finally:
        os.kill(child["pid"], signal.SIGKILL)


async def test_the_gateway_ends_with_an_agent_that_nobody_waits_for(wrapped):
    """In some containers nobody does, and a dead agent keeps its number."""
    become_reaper(on=True)
    try:
        process, agent = await wrapped.run("claude")
        gateway = wrapped.gateway(process, agent)
        process.kill()
        await process.wait()
        await agent.tell(exit=0)
        os.kill(agent.pid, 0)  # it is there still
        assert await until(lambda: gateway not in pids())
        for pid in (agent.pid, gateway):
            os.waitpid(pid, 0)  # noqa: ASYNC222 - they have ended
    finally:
        become_reaper(on=False)


async def test_a_killed_agent(wrapped):
    process, agent = await wrapped.run("claude")
    await agent.ask("Where is the parcel?")
    os.kill(agent.pid, signal.SIGKILL)
    code, said = await wrapped.wait(process)
    assert code == 128 + signal.SIGKILL
    assert "1 request; session" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_wrap_is_for_the_agent(wrapped, number):
    process, agent = await wrapped.run("claude")
    gateway = wrapped.gateway(process, agent)
    process.send_signal(number)
    code, _ = await wrapped.wait(process)
    assert code == 128 + number
    assert {gateway, agent.pid}.isdisjoint(pids())


async def test_ctrl_c_is_for_the_agent_alone(wrapped):
    process, agent = await wrapped.run("claude")
    gateway = wrapped.gateway(process, agent)
    os.killpg(os.getpgid(process.pid), signal.SIGINT)
    code, _ = await wrapped.wait(process)
    assert code == 128 + signal.SIGINT  # this agent does not catch it
    assert gateway not in pids()


async def test_a_suspended_agent_suspends_wrap(wrapped):
    process, agent = await wrapped.run("claude")

    def state(pid):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    os.kill(agent.pid, signal.SIGSTOP)
    assert await until(lambda: state(process.pid) == "T")
    os.killpg(os.getpgid(process.pid), signal.SIGCONT)
    assert (await agent.ask("Where is the parcel?"))["status"] == 200
    assert (await wrapped.ended(process, agent))[0] == 0


async def test_the_agent_has_nothing_of_refold_but_what_it_is_given(wrapped):
    process, agent = await wrapped.run("claude")
    given = {**wrapped.environment}
    more = {key: value for key, value in agent.environment.items() if given.get(key) != value}
    assert sorted(more) == [
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE",
        "DISABLE_AUTO_COMPACT",
        "REFOLD_WRAPPED",  # for hooks, which would keep it all a second time
    ]
    await wrapped.ended(process, agent)


class TestBeforeItStarts:
    async def said(self, wrapped, *arguments, **environment):
        process = await wrapped.start(*arguments, **environment)
        code = await asyncio.wait_for(process.wait(), 60)
        return code, wrapped.out.read_text(), wrapped.err.read_text()

    async def test_print_shows_what_the_agent_would_get_and_starts_nothing(self, wrapped):
        code, out, err = await self.said(wrapped, "--print", "claude", "-p", "fix it")
        assert (code, err) == (0, "")
        assert "export ANTHROPIC_BASE_URL=http://127.0.0.1:PORT/SECRET" in out
        assert out.splitlines()[3].startswith("claude '--mcp-config=")
        assert f"go on to {wrapped.environment['ANTHROPIC_BASE_URL']}," in out
        assert wrapped.files() == {"codex/config.toml"}

    async def test_print_as_json(self, wrapped):
        code, out, _ = await self.said(wrapped, "--print", "--json", "--no-keep", "codex", "exec")
        printed = json.loads(out)
        assert (code, printed["command"][0], printed["command"][-1]) == (0, "codex", "exec")
        assert printed["upstreams"] == [f"{wrapped.environment['ANTHROPIC_BASE_URL']}/v1"]
        assert printed["store"] is None

    async def test_an_agent_that_is_not_installed(self, wrapped):
        path = str(Path(sys.executable).parent)
        code, _, err = await self.said(wrapped, "claude", PATH=path)
        assert code == 127
        assert "npm install -g @anthropic-ai/claude-code" in err

    async def test_an_agent_whose_requests_cannot_pass(self, wrapped):
        code, _, err = await self.said(wrapped, "claude", CLAUDE_CODE_USE_BEDROCK="1")
        assert code == 1
        assert "Amazon Bedrock" in err

    async def test_a_gateway_that_cannot_start(self, wrapped):
        store = f"sqlite:///{wrapped.home}/codex/config.toml"
        code, _, err = await self.said(wrapped, "--store", store, "claude")
        assert code == 1
        assert "config.toml" in err
        assert json.dumps(err).count("Traceback") == 0
