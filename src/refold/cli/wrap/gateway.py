"""The gateway of one agent, a process of its own: `python -m refold.cli.wrap.gateway`.

It is told what to do on standard input, a JSON object per line, and reports on standard output, an
object per line as well. It answers on a socket that `refold wrap` holds, too: while a gateway that
died is started again, requests wait in that socket, and the port stays.

It lives as long as the agent, not as long as `refold wrap`, which tells it when the agent has
ended. If `refold wrap` is killed, a pipe does, of which the agent has the other end; or the agent's
process is gone: programs that the agent started may have that end of the pipe too, and go on.
"""

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from refold.cli.options import store_at
from refold.cli.wrap.processes import MEMORY, Order
from refold.errors import RefoldError
from refold.gateway.outcome import Outcome
from refold.log import DEFAULT_TENANT, FoldCompleted, Log, Span, Store
from refold.models import ModelSettings
from refold.models.catalog import cost_of, facts_of
from refold.service import app as service_app
from refold.service.callers import ANYBODY
from refold.service.service import Service
from refold.session.explain import SessionCost, session_cost
from refold.settings import Settings, UpstreamSettings, load_settings

if TYPE_CHECKING:
    from mcp.server import Server

_DRAIN: Final = 5.0
"""Seconds for what is under way when the agent has ended."""
_LOOK_EVERY: Final = 0.5
"""Seconds between two looks whether the agent is there, once nobody tells."""
_NOT_FOUND: Final = 404

Report = Callable[[Mapping[str, object]], None]


def settings_for(order: Order) -> Settings:
    """The user's settings, with the agent's own upstreams."""
    settings = load_settings(order.profile)
    upstreams = tuple(UpstreamSettings(**upstream) for upstream in order.upstreams)
    serve = settings.serve.model_copy(
        update={
            "upstreams": upstreams,
            "access_log": "off",
            "offload_processes": 0,  # there is one agent, and nobody else who waits
            "times": settings.serve.times.model_copy(update={"drain": _DRAIN}),
        }
    )
    models = dict(settings.models)
    for name, window in order.windows.items():
        own = models.get(name, ModelSettings())
        models[name] = own if own.window else own.model_copy(update={"window": window})
    return replace(settings, serve=serve, models=models)


class Door:
    """The outermost layer: only paths with the secret lead in. It reports each model's answer."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        app: ASGIApp,
        *,
        secret: str,
        settings: Settings,
        report: Report,
        used: dict[str, None],
        mcp: ASGIApp | None,
    ) -> None:
        """Make it; `used` gets the sessions, the one used last at the end."""
        self._app = app
        self._prefix = f"/{secret}"
        self._models = settings.models
        self._report = report
        self._used = used
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if scope["type"] != "http" or not secrets.compare_digest(
            f"/{first}".encode(), self._prefix.encode()
        ):
            await send({"type": "http.response.start", "status": _NOT_FOUND, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        inner = {
            **scope,
            "path": f"/{rest}",
            "raw_path": raw[len(self._prefix) :] or b"/",
            # Who knows the secret is the user, whether or not the store has keys for others.
            "state": {**scope.get("state", {}), "caller": ANYBODY},
        }
        if rest == "mcp" and self._mcp is not None:
            await self._mcp(inner, receive, send)
            return
        try:
            await self._app(inner, receive, send)
        finally:
            self._note(Outcome.of(inner))

    def _note(self, outcome: Outcome) -> None:
        if outcome.session:
            self._used.pop(outcome.session, None)
            self._used[outcome.session] = None
        if outcome.model:
            used, prices = outcome.usage, facts_of(outcome.model, self._models).prices
            self._report(
                {
                    "session": outcome.session,
                    "model": outcome.model,
                    "usage": list(used) if used else None,
                    "cost": cost_of(used, prices) if used else 0.0,
                    "failed": outcome.failure.code if outcome.failure else "",
                }
            )


class Attachment:
    """The ties of the gateway's life to the agent's."""

    def __init__(self, order: Order, summarize: Callable[[list[str]], Any]) -> None:
        self._order = order
        self._summarize = summarize
        self._agent = 0
        self._closed = asyncio.Event()

    async def run(self) -> None:
        """Return when the gateway is to end."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._order.pipe, self._read_pipe)
        try:
            if not await self._obey():
                await self._outlive()
        finally:
            loop.remove_reader(self._order.pipe)

    async def _obey(self) -> bool:
        """Do what is said on standard input; False if that ends without an order to end."""
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            said = json.loads(line)
            self._agent = said.get("agent", self._agent)
            if "end" in said:
                await self._summarize(said["end"])
                return True
        return False

    async def _outlive(self) -> None:
        while not self._closed.is_set() and (not self._agent or _runs(self._agent)):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), _LOOK_EVERY)

    def _read_pipe(self) -> None:
        if not os.read(self._order.pipe, 1024):
            asyncio.get_running_loop().remove_reader(self._order.pipe)
            self._closed.set()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


async def summary_of(log: Log, names: list[str], since: int, settings: Settings) -> dict[str, Any]:
    """What an agent's sessions came to since it was started."""
    cost, folds, titles = SessionCost(), 0, dict[str, str]()
    for name in names:
        with suppress(RefoldError):  # it was forgotten meanwhile
            first = await _first_since(log, name, since)
            more = await session_cost(log, name, SessionCost(upto=first - 1), settings.models)
            cost = SessionCost(
                requests=cost.requests + more.requests,
                summaries=cost.summaries + more.summaries,
                cost=_sum(cost.cost, more.cost),
                unmanaged=_sum(cost.unmanaged, more.unmanaged),
            )
            rest = await log.read(name, Span(first, max(first, more.upto)), whole=False)
            folds += sum(entry.kind == FoldCompleted.KIND for entry in rest)
            titles[name] = (await log.info(name)).title or ""
    return {**asdict(cost), "folds": folds, "titles": titles}


def _sum(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


async def _first_since(log: Log, name: str, since: int) -> int:
    """The first entry of a session that was written since then."""
    low, high = 1, await log.head(name) + 1
    while low < high:
        middle = (low + high) // 2
        [entry] = await log.read(name, Span(middle, middle), whole=False)
        low, high = (middle + 1, high) if entry.at < since else (low, middle)
    return low


def _report(values: Mapping[str, object]) -> None:
    with suppress(OSError):  # `refold wrap` is gone
        sys.stdout.write(json.dumps(values) + "\n")
        sys.stdout.flush()


async def _serve(order: Order) -> None:
    service_app.log_to_standard_error()
    service_app.raise_file_limit()
    settings = settings_for(order)
    store: Store | None = None
    if order.store != MEMORY:
        store = store_at(order.store, create=True, connect=settings.serve.times.store)
    app = service_app.app(settings, store=store, address=order.store)
    service = cast("Service", app.state.service)
    used = dict.fromkeys(order.sessions)
    recall = _recall_server(service.store.log(DEFAULT_TENANT), used)
    app.add_middleware(
        Door,
        secret=order.secret,
        settings=settings,
        report=_report,
        used=used,
        mcp=recall and recall.streamable_http_app(stateless_http=True, json_response=True),
    )

    async def summarize(names: list[str]) -> None:
        await service.traffic.wait_until_idle(_DRAIN)
        log = service.store.log(DEFAULT_TENANT)
        _report({"summary": await summary_of(log, names, order.since, settings)})

    async def end_with_agent() -> None:
        try:
            await Attachment(order, summarize).run()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    tasks: list[asyncio.Task[None]] = []

    def on_start() -> None:
        _report({"ready": True})
        tasks.append(asyncio.create_task(end_with_agent()))

    service_app.calm_garbage_collection()
    with socket.socket(fileno=order.socket) as sock:
        async with recall.session_manager.run() if recall else nullcontext():
            await service_app.serve(app, sock, on_start)


def _recall_server(log: Log, used: dict[str, None]) -> "Server | None":
    """Recall's tools for the agent's model, where the package for it is installed."""
    if find_spec("mcp") is None:
        return None
    from refold.service.recall_mcp import Conversations, recall_server  # noqa: PLC0415 - optional

    async def recent() -> list[str]:
        return [*reversed(used)]

    return recall_server(log, Conversations(log, recent).calling)


def main() -> None:
    order = Order(**json.loads(sys.stdin.readline()))
    try:
        asyncio.run(_serve(order))
    except RefoldError as error:
        _report({"error": [error.code, error.what, error.fix]})
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
