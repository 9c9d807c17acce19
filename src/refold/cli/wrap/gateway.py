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
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refold.cli.wrap.processes import Order
from refold.errors import RefoldError
from refold.gateway.gateway import routes
from refold.gateway.outcome import Outcome
from refold.log import DEFAULT_TENANT, Log, Origin
from refold.memory import checked_out
from refold.models import ModelSettings, counter_for, family_of
from refold.models.catalog import cost_of, facts_of, settings_of
from refold.service import server
from refold.service.callers import ANYBODY
from refold.service.middleware import ServiceMiddleware
from refold.service.problem import refused_at
from refold.service.service import Service
from refold.session import Receipt, receipt_of
from refold.settings import Settings, UpstreamSettings, load_settings
from refold.stores import open_store
from refold.view.tokens import tools_tokens

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
        if settings_of(name, settings.models).window is None:
            own = models.get(name, ModelSettings())
            models[name] = own.model_copy(update={"window": window})
    return replace(settings, serve=serve, models=models)


class Door:
    """The outermost layer: only paths with the secret lead in. It reports each model's answer."""

    def __init__(self, order: Order, settings: Settings, report: Report) -> None:
        self.mcp: asyncio.Future[ASGIApp | None] = asyncio.get_running_loop().create_future()
        """Answers at `/mcp`, once it is there; None if it never is."""
        self.recall_tokens = 0
        """What the definitions of recall's tools take in each request."""
        self._prefix = f"/{order.secret}"
        self._models = settings.models
        self._report = report
        self._used = dict.fromkeys(order.sessions)
        """The sessions, the one used last at the end."""

    async def recent(self) -> list[str]:
        """The agent's sessions, the one used last first."""
        return [*reversed(self._used)]

    def before(self, app: ASGIApp) -> ASGIApp:
        """The application behind this door."""

        async def enter(scope: Scope, receive: Receive, send: Send) -> None:
            first, _, rest = scope["path"].removeprefix("/").partition("/")
            known = secrets.compare_digest(f"/{first}".encode(), self._prefix.encode())
            if scope["type"] != "http" or not known:
                await Response(status_code=_NOT_FOUND)(scope, receive, send)
                return
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            inner = {
                **scope,
                "path": f"/{rest}",
                "raw_path": raw[len(self._prefix) :] or b"/",
                # Who knows the secret is the user, whether or not the store has keys for others.
                "state": {**scope.get("state", {}), "caller": ANYBODY},
            }
            recall = await self.mcp if rest == "mcp" else None
            if recall is not None:
                await recall(inner, receive, send)
                return
            try:
                await app(inner, receive, send)
            finally:
                self._note(Outcome.of(inner))

        return enter

    def _note(self, outcome: Outcome) -> None:
        if outcome.session:
            self._used.pop(outcome.session, None)
            self._used[outcome.session] = None
        if not outcome.model:
            return
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


async def summary_of(log: Log, names: list[str], since: int) -> dict[str, JsonValue]:
    """What an agent's sessions came to since it was started: their receipt."""
    total = Receipt()
    for name in names:
        with suppress(RefoldError):  # it was forgotten meanwhile
            total = total.plus(await receipt_of(log, name, since=since, own=True))
    return total.as_json()


def _report(values: Mapping[str, object]) -> None:
    with suppress(OSError):  # `refold wrap` is gone
        sys.stdout.write(json.dumps(values) + "\n")
        sys.stdout.flush()


def application(service: Service, door: "Door") -> Starlette:
    """The gateway without an API, behind a door."""
    app = Starlette(routes=routes(service.gateway))
    app.state.service = service
    prefixes = service.gateway.prefixes
    app.add_middleware(
        ServiceMiddleware,
        settings=service.settings.serve,
        refuse=partial(refused_at, prefixes=prefixes),
        metrics=service.metrics,
        traffic=service.traffic,
        prefixes=prefixes,
    )
    app.add_middleware(door.before)
    return app


async def _serve(order: Order) -> None:
    server.log_to_standard_error()
    server.raise_file_limit()
    settings = settings_for(order)
    store = open_store(
        order.store,
        connect=settings.serve.times.store,
        forget_journal=lambda: settings.profile.store.forget_journal,
    )
    folder = Path.cwd()
    branch = await asyncio.to_thread(checked_out, folder)
    origin = Origin(order.program, folder=str(folder), branch=branch or None)
    service = Service(settings, store, order.store, origin=origin)
    door = Door(order, settings, _report)

    async def summarize(names: list[str]) -> None:
        await service.traffic.wait_until_idle(_DRAIN)
        log = service.store.log(DEFAULT_TENANT)
        summary = await summary_of(log, names, order.since)
        _report({"summary": {**summary, "recall_tokens": door.recall_tokens}})

    async def end_with_agent() -> None:
        try:
            await Attachment(order, summarize).run()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    tasks: list[asyncio.Task[None]] = []

    def on_start() -> None:
        _report({"ready": True})
        tasks.append(asyncio.create_task(end_with_agent()))
        tasks.append(asyncio.create_task(_offer_recall(service, door)))

    server.calm_garbage_collection()
    with socket.socket(fileno=order.socket) as sock:
        await server.serve(application(service, door), sock, on_start)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _offer_recall(service: Service, door: Door) -> None:
    """Serve recall's tools for the agent's model, where the package for it is installed."""
    if find_spec("mcp") is None:
        door.mcp.set_result(None)
        return
    # It is imported while the agent starts, which takes as long.
    from refold.service.recall_mcp import (  # noqa: PLC0415 - optional
        Conversations,
        definitions,
        recall_server,
    )

    log = service.store.log(DEFAULT_TENANT)
    door.recall_tokens = tools_tokens(counter_for(""), definitions(log), family_of("").marks)
    recall = recall_server(log, Conversations(log, door.recent).calling)
    app = recall.streamable_http_app(stateless_http=True, json_response=True)
    async with recall.session_manager.run():
        door.mcp.set_result(app)
        await service.draining.wait()


def main() -> None:
    order = Order(**json.loads(sys.stdin.readline()))
    try:
        asyncio.run(_serve(order))
    except RefoldError as error:
        _report({"error": [error.code, error.what, error.fix]})
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
