"""One agent's work, through `refold serve` or straight to its provider, and what came of it."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Final

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from benchmarks.coding_agents.clients import Client
from benchmarks.coding_agents.cost import Priced, priced
from benchmarks.coding_agents.model import TASK, CodingModel, is_main, write_project
from refold.log import CODEC, FoldCompleted, Note
from refold.stores.sqlite import SqliteStore
from refold.testing.upstream import Got, Reply, RequestChecker, ScriptedUpstream

_PATIENCE: Final = 600
"""Seconds for one turn of an agent."""
_HOPS: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
)


@dataclass
class Exchange:
    """A request as the agent sent it, and how it was answered."""

    path: str
    body: dict[str, Any]
    status: int = 0
    session: str = ""
    answer: Reply | None = None
    number: int = 0
    """Which request it was for the provider."""


@dataclass
class Run:
    """What one agent's work came to."""

    client: str
    through_gateway: bool
    folder: Path
    exchanges: list[Exchange] = field(default_factory=list)
    sent: list[tuple[float, dict[str, Any], int]] = field(default_factory=list)
    """What the provider got: when, what, and how much it answered."""
    faults: list[str] = field(default_factory=list)
    """Why the provider refused requests."""
    calls: int = 0
    folds: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    exits: list[int] = field(default_factory=list)
    compacted: bool = False
    """Whether the agent compacted its own history in between."""

    @property
    def main(self) -> list[Exchange]:
        """The requests of the conversation itself, without titles and other agents."""
        return [one for one in self.exchanges if is_main(one.body)]

    @property
    def sessions(self) -> list[str]:
        """The sessions that the conversation was in."""
        return list(dict.fromkeys(one.session for one in self.main))

    @property
    def errors(self) -> int:
        """Requests that were answered with an error, and turns that ended with one."""
        failed = sum(one.status >= 400 for one in self.exchanges)
        return failed + sum(code != 0 for code in self.exits)

    @property
    def prices(self) -> list[Priced]:
        return priced(self.sent)

    @property
    def dollars(self) -> float:
        return sum(one.dollars for one in self.prices)


async def work(
    client: Client, programs: Path, folder: Path, turns: tuple[int, ...], *, through_gateway: bool
) -> Run:
    """Let an agent work: as many turns as told, each in a process of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    home, project = folder / "home", folder / "project"
    home.mkdir(parents=True)
    write_project(project)
    run = Run(client.name, through_gateway, folder)
    model = CodingModel(str(project), turns, delegates=True)
    checker = RequestChecker()
    provider = ScriptedUpstream(_noted(run, model), checker=checker)
    async with served(provider) as upstream:
        gateway = _gateway(client, folder, upstream) if through_gateway else _same(upstream)
        async with gateway as target, served(_recorder(run, target)) as address:
            environment = client.configure(home, address, client.model)
            for turn in range(len(turns)):
                prompt = f"{TASK}, part {turn + 1} of {len(turns)}. Go note by note."
                arguments = client.arguments(prompt, turn)
                run.exits.append(
                    await _command(client, programs, arguments, home, project, environment)
                )
                if turn == len(turns) - 2 and client.compact is not None:
                    run.compacted = True
                    compact = client.compact()
                    run.exits.append(
                        await _command(client, programs, compact, home, project, environment)
                    )
    run.calls, run.faults = model.calls, [why for _, why in checker.faults]
    if through_gateway:
        await _read_log(run, folder / "store.db")
    return run


def _noted(run: Run, model: CodingModel) -> Callable[[Got], Reply]:
    begun = monotonic()

    def reply(got: Got) -> Reply:
        if not got.body or got.path.endswith("count_tokens"):  # these cost nothing
            return Reply("", number=0)
        answer = replace(model(got), number=len(run.sent) + 1)
        output = len(answer.text) + len(answer.thought)
        output += sum(len(json.dumps(call.arguments)) for call in answer.calls)
        run.sent.append((monotonic() - begun, got.body, output // 4))
        waiting = [one for one in run.exchanges if one.answer is None and _alike(one, got)]
        if waiting:
            waiting[0].answer, waiting[0].number = answer, len(run.sent)
        return answer

    return reply


def _alike(exchange: Exchange, got: Got) -> bool:
    """Whether a request of the agent may be the one that the provider got, shortened or not."""
    mine, other = exchange.body, got.body
    tools = len(mine.get("tools") or ()) == len(other.get("tools") or ())
    return tools and mine.get("model") == other.get("model") and is_main(mine) == is_main(other)


async def _command(  # noqa: PLR0913, PLR0917 - what a process needs
    client: Client,
    programs: Path,
    arguments: list[str],
    home: Path,
    project: Path,
    environment: dict[str, str],
) -> int:
    """Run one turn of an agent to its end; its exit code."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    usual = {"PATH": path, "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8", "CI": "1"}
    output = (home.parent / "output.txt").open("ab")
    with output:
        process = await asyncio.create_subprocess_exec(
            str(programs / client.command),
            *arguments,
            cwd=project,
            env={**usual, **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return await asyncio.wait_for(process.wait(), _PATIENCE)
        except TimeoutError:
            return -1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@asynccontextmanager
async def _same(address: str) -> AsyncIterator[str]:
    yield address


@asynccontextmanager
async def _gateway(client: Client, folder: Path, upstream: str) -> AsyncIterator[str]:
    """The address of a real `refold serve` before the provider."""
    settings = folder / "settings" / "refold"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(
        f'[models."{client.model}"]\nwindow = {client.window}\n', encoding="utf-8"
    )
    environment = {**os.environ, "XDG_CONFIG_HOME": str(settings.parent), "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "refold.cli", "serve", "--json", "--port", "0"),
        *("--store", f"sqlite:///{folder / 'store.db'}", "--upstream", f"{upstream}/v1"),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=(folder / "gateway.log").open("wb"),
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 300)
        yield json.loads(line)["address"]
    finally:
        process.terminate()
        await process.wait()


def _recorder(run: Run, target: str) -> Starlette:
    """Passes everything on, and keeps what models were asked and where it was logged."""
    client = httpx2.AsyncClient(timeout=httpx2.Timeout(300.0))

    async def passed(request: Request) -> Response:
        raw = await request.body()
        exchange = None
        if request.method == "POST" and not request.url.path.endswith("count_tokens"):
            with suppress(ValueError):
                exchange = Exchange(request.url.path, json.loads(raw))
                run.exchanges.append(exchange)
        headers = [one for one in request.headers.items() if one[0] not in _HOPS]
        url = f"{target}{request.url.path}"
        url += f"?{request.url.query}" if request.url.query else ""
        asked = client.build_request(request.method, url, headers=headers, content=raw)
        answer = await client.send(asked, stream=True)
        if exchange is not None:
            exchange.status = answer.status_code
            exchange.session = answer.headers.get("refold-session", "")
        kept = [one for one in answer.headers.items() if one[0] not in _HOPS]

        async def body() -> AsyncGenerator[bytes]:
            async for chunk in answer.aiter_raw():
                yield chunk
            await answer.aclose()

        return StreamingResponse(body(), answer.status_code, dict(kept))

    methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{path:path}", passed, methods=methods)])


async def _read_log(run: Run, file: Path) -> None:
    async with SqliteStore(file) as store:
        log = store.log()
        for session in run.sessions:
            for entry in await log.read(session):
                value = CODEC.decode(entry)
                run.folds += isinstance(value, FoldCompleted)
                if isinstance(value, Note) and isinstance(value.data, dict):
                    run.notes[str(value.data.get("gateway"))] += 1


Application = Callable[[Any, Any, Any], Awaitable[None]]


@asynccontextmanager
async def served(app: Application) -> AsyncIterator[str]:
    """The address of an application, while it is served."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # noqa: SLF001 - `serve` takes over signals
    while not server.started:  # noqa: ASYNC110 - it says so nowhere else
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        await task
