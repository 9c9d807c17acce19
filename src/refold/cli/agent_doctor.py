"""`refold doctor --agent`: whether a coding agent works with Refold, and what to do where not."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Final

from refold.cli.hooks.agents import AGENTS as HOOKED
from refold.cli.hooks.command import state_of
from refold.cli.options import store_at
from refold.cli.outcome import Failure, require_extra, wrong_usage
from refold.cli.output import Row, ok, problem, warning
from refold.cli.wrap.agents import AGENTS, Agent, Endpoint, Host, Launch, at, launch
from refold.cli.wrap.command import host_of
from refold.cli.wrap.processes import MEMORY, GatewayKeeper
from refold.errors import InvalidInput, RefoldError, StoreNotFound
from refold.log import CODEC, Log, Message
from refold.recall.search import search
from refold.recall.text import wire_of
from refold.terminal_text import counted

_PATIENCE: Final = 120.0
"""Seconds that an agent may take to send a request."""
_MAX_SESSIONS: Final = 5
_MAX_LISTED: Final = 200
_PROMPT: Final = "Say hello."
_PROBES: Final = {
    "claude": ["-p", _PROMPT, "--no-session-persistence"],
    "codex": ["exec", "--skip-git-repo-check", "--ephemeral", _PROMPT],
    "opencode": ["run", _PROMPT],
    "copilot": ["-p", _PROMPT],
    "qwen": ["-p", _PROMPT],
    "pi": ["-p", _PROMPT],
}
_KEYS: Final = {
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "codex": ("CODEX_API_KEY", "OPENAI_API_KEY"),
    "opencode": ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
    "copilot": ("COPILOT_PROVIDER_API_KEY", "GH_TOKEN", "GITHUB_TOKEN"),
    "qwen": ("OPENAI_API_KEY",),
    "pi": ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
}
_LOGGED_OUT: Final = re.compile(
    r"not (logged|signed) in|(log|sign) ?in\b|/login\b|unauthenticated|no api key|api[ _]key .*"
    r"(missing|not set|required|invalid)|(missing|invalid|set) .*api[ _]key|no auth type",
    re.IGNORECASE,
)
"""How agents say that they have no login."""
_MODEL_PATHS: Final = ("/messages", "/responses", "/chat/completions")
_REFUSAL: Final = {"type": "invalid_request_error", "message": "This is a check by refold doctor."}


def checked(name: str, store: str, tenant: str) -> Iterator[Row]:
    """What is found of an agent, each with its fix."""
    with wrong_usage():
        if name not in AGENTS:
            raise InvalidInput(f"Refold knows no agent {name!r}.", f"Name {', '.join(AGENTS)}.")
    agent, program = AGENTS[name], shutil.which(name)
    if program is None:
        yield problem("installed", f"there is no command {name!r}", agent.install)
        return
    yield ok("installed", program)
    host = host_of(program)
    yield _version(agent, host)
    login = _login(agent, host)
    yield from _arrival(agent, host, program, login)
    if name in HOOKED:
        yield _hooks(name)
    yield from asyncio.run(_sessions(agent, store, tenant))


def _version(agent: Agent, host: Host) -> Row:
    lines = host.run(("--version",)).strip().splitlines()
    if lines:  # beside the version there may be advice
        return ok("version", next((line for line in lines if re.search(r"\d", line)), lines[0]))
    return problem("version", f"{agent.name} --version fails", f"Install it again: {agent.install}")


def _login(agent: Agent, host: Host) -> Row:
    """Which login it has; of keys only the names."""
    keys = [name for name in _KEYS[agent.name] if host.variable(name)]
    own = _LOGINS.get(agent.name)
    kinds = [*keys, *(own(host) if own else ())]
    if kinds:
        return ok("login", ", ".join(kinds))
    return warning(
        "login",
        f"none was found; {agent.title} may have one where only it looks",
        _to_log_in(agent, host),
    )


def _to_log_in(agent: Agent, host: Host) -> str:
    key = _KEYS[agent.name][0]
    return f"Start {agent.name} and sign in{'' if host.variable(key) else f', or set {key}'}."


def _claude_login(host: Host) -> Iterator[str]:
    own = host.variable("CLAUDE_CONFIG_DIR")
    folder = Path(own) if own else host.home / ".claude"
    if at(host.json(folder / ".credentials.json"), "claudeAiOauth"):
        yield "a Claude subscription"
    if host.json(folder / "settings.json").get("apiKeyHelper"):
        yield "apiKeyHelper in its settings"


def _codex_login(host: Host) -> Iterator[str]:
    own = host.variable("CODEX_HOME")
    login = host.json((Path(own) if own else host.home / ".codex") / "auth.json")
    if login.get("tokens"):
        yield "ChatGPT"
    if login.get("OPENAI_API_KEY"):
        yield "a key in auth.json"


def _opencode_login(host: Host) -> Iterator[str]:
    own = host.variable("XDG_DATA_HOME")
    folder = Path(own) if own else host.home / ".local" / "share"
    yield from sorted(host.json(folder / "opencode" / "auth.json"))


_LOGINS: Final[dict[str, Callable[[Host], Iterator[str]]]] = {
    "claude": _claude_login,
    "codex": _codex_login,
    "opencode": _opencode_login,
}


# Whether a request arrives: the agent is started once, and a server on this machine answers.


class _Provider(ThreadingHTTPServer):
    """Stands where the provider would be, and refuses what it gets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Refusal)
        self.arrived = threading.Event()
        self.credential = ""
        """Which header had the login."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Refusal(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.partition("?")[0].endswith(_MODEL_PATHS):
            names = ("x-api-key", "authorization")
            found = (name for name in names if self.headers.get(name))
            assert isinstance(self.server, _Provider)  # noqa: S101 - see there
            self.server.credential = next(found, "")
            self.server.arrived.set()
        self._refuse(400)

    def do_GET(self) -> None:
        self._refuse(404)

    def _refuse(self, status: int) -> None:
        body = json.dumps({"type": "error", "error": _REFUSAL}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
        pass


@contextmanager
def _provider() -> Generator[_Provider]:
    with _Provider() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _arrival(agent: Agent, host: Host, program: str, login: Row) -> Iterator[Row]:
    """The login and the gateway: an agent without a valid login may send no request at all."""
    name = "gateway"
    try:
        launch(agent, host, Endpoint("http://127.0.0.1:1", recall=False), _PROBES[agent.name])
    except RefoldError as error:
        yield from (login, problem(name, error.what, error.fix))
        return
    with tempfile.TemporaryDirectory() as folder, _provider() as provider:
        keeper = GatewayKeeper(MEMORY, None, Path(folder), agent.name)
        endpoint = Endpoint(keeper.address, recall=False)
        started = launch(agent, host, endpoint, _PROBES[agent.name])
        upstreams = [
            upstream.model_copy(update={"base_url": f"{provider.address}/v1"})
            for upstream in started.upstreams
        ]
        try:
            with require_extra("wrap"):
                import_module("uvicorn")  # the gateway's process needs it
                keeper.start([each.model_dump(mode="json") for each in upstreams], started.windows)
        except Failure as failure:
            yield from (login, problem(name, failure.what, failure.fix))
            return
        try:
            output = _probe(program, started, keeper, provider.arrived, folder)
        finally:
            keeper.end()
            keeper.close()
    if provider.arrived.is_set():
        with_login = f", with its login ({provider.credential})" if provider.credential else ""
        yield from (login, ok(name, f"a request arrives{with_login}"))
        return
    last = (output.strip().splitlines() or ["it printed nothing"])[-1]
    if _LOGGED_OUT.search(last):
        yield problem("login", f"{agent.title} says: {last}", _to_log_in(agent, host))
        again = f"Log in, then: refold doctor --agent {agent.name}"
        yield warning(name, f"not checked, because {agent.title} is not logged in", again)
        return
    yield login
    yield problem(
        name,
        f"no request of {agent.title} arrived: {last}",
        f"Start {agent.name} by itself. If it works there, look at what it is given: "
        f"refold wrap --print {agent.name}",
    )


def _probe(
    program: str,
    started: Launch,
    keeper: GatewayKeeper,
    arrived: threading.Event,
    folder: str,
) -> str:
    """Run the agent until its request arrives, it ends, or it takes too long; what it printed."""
    with (Path(folder) / "output.txt").open("w+b") as output:
        process = subprocess.Popen(  # noqa: S603 - the user's own agent
            [program, *started.arguments],
            cwd=folder,
            env={**os.environ, **started.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(keeper.agents_end,),
            start_new_session=True,
        )
        keeper.tell_agent(process.pid)
        for _ in range(int(_PATIENCE * 10)):
            if arrived.wait(0.1) or process.poll() is not None:
                break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return output.read().decode(errors="replace")


def _hooks(name: str) -> Row:
    state = state_of(HOOKED[name])
    if state.problem:
        return warning("hooks", f"{state.path} {state.state}", "Correct that file.")
    if state.installed and not (state.current and state.reviewed):
        return warning("hooks", state.state, f"refold hooks install {name}")
    return ok("hooks", state.state)


# What the log has of it.


async def _sessions(agent: Agent, store: str, tenant: str) -> Sequence[Row]:
    try:
        async with store_at(store, create=False, quiet=True) as opened:
            return await _logged(opened.log(tenant), agent)
    except StoreNotFound:
        return [_none(agent)]
    except RefoldError as error:
        return [problem("sessions", error.what, error.fix)]


async def _logged(log: Log, agent: Agent) -> list[Row]:
    page = await log.sessions(limit=_MAX_LISTED)
    own = [info for info in page.sessions if info.origin and info.origin.program == agent.name]
    if not own:
        return [_none(agent)]
    newest = [info.session for info in own[:_MAX_SESSIONS]]
    torn = [session for session in newest if await _is_torn(log, session)]
    if torn:
        names = ", ".join(torn)
        whole = warning(
            "sessions",
            f"results without their calls in {names}",
            f"Import its own files: refold import --from {agent.name}",
        )
    else:
        whole = ok("sessions", f"{counted(len(newest), 'session')} looked at, whole")
    return [whole, await _recall(log, newest[0])]


def _none(agent: Agent) -> Row:
    return warning(
        "sessions",
        f"none of {agent.title} is in this store",
        f"refold wrap {agent.name}  # or: refold import --from {agent.name}",
    )


async def _is_torn(log: Log, session: str) -> bool:
    """Whether a result has no call before it."""
    info = await log.info(session)
    wire = wire_of(info.format)
    calls: set[str | None] = set()
    for entry in await log.read(session):
        value = CODEC.decode(entry)
        if wire is None or entry.forgotten or not isinstance(value, Message):
            continue
        with suppress(RefoldError):
            _, shapes, _ = wire.describe(value.payload)
            calls.update(shape.call for shape in shapes if shape.kind == "call")
            if any(shape.kind == "return" and shape.call not in calls for shape in shapes):
                return True
    return False


async def _recall(log: Log, session: str) -> Row:
    """Search for a word that the session has."""
    info = await log.info(session)
    wire = wire_of(info.format)
    for entry in await log.read(session):
        value = CODEC.decode(entry)
        if wire is None or entry.forgotten or not isinstance(value, Message):
            continue
        with suppress(RefoldError):
            _, shapes, _ = wire.describe(value.payload)
            words = " ".join(shape.text for shape in shapes if shape.kind == "prompt").split()
            word = next((word for word in words if word.isalpha() and len(word) > 4), "")  # noqa: PLR2004 - no stop word
            if word and await search(log, word, session=session, limit=1):
                return ok("recall", f"finds {word!r} in {session}")
    return warning("recall", f"finds nothing of {session}", "refold store check")
