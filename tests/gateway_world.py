"""A gateway over a store in memory, before a scripted upstream."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response

from refold.engine import LocalEngine
from refold.fold.compactor import from_the_log
from refold.gateway.gateway import Gateway, routes
from refold.gateway.sessions import GatewaySessions
from refold.gateway.upstream import Upstream, Upstreams
from refold.log import CODEC
from refold.models.making import makes
from refold.stores import MemoryStore
from refold.testing.upstream import Reply, ScriptedUpstream
from refold.view import PROFILES

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PATHS = [CHAT, RESPONSES, MESSAGES]


class Caller:
    stale = False

    def __init__(self, tenant="default", key=""):
        self.tenant, self.key = tenant, key


class World:
    """A gateway over a store in memory, before a scripted upstream."""

    def __init__(self, reply, models=None, address=None, store=None, checker=None, **choices):
        self.upstream = ScriptedUpstream(reply, checker=checker)
        self.store = store or MemoryStore()
        through = None if address else httpx2.ASGITransport(self.upstream)
        upstream = self._upstream = httpx2.AsyncClient(transport=through)
        sessions = GatewaySessions(
            self.store,
            PROFILES["balanced"],
            lambda log: LocalEngine(log, makes(log, from_the_log)),
        )

        async def caller_of(request):
            return Caller(request.headers.get("x-tenant", "default"))

        def refuse(error, dialect, _outcome):
            name = dialect.name if dialect else None
            return Response(f"{name}: {error}", 500)

        self.gateway = Gateway(
            sessions,
            Upstreams([Upstream("up", address or "http://up/v1")], upstream),
            caller_of=caller_of,
            refuse=refuse,
            models=models or {},
            **choices,
        )
        self.app = Starlette(routes=routes(self.gateway))
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app), base_url="http://gateway"
        )

    async def aclose(self):
        await self.gateway.close()
        await self.client.aclose()
        await self._upstream.aclose()

    async def ask(self, path, body, **headers):
        content = json.dumps(body).encode()  # ASCII: strings may hold what UTF-8 cannot
        return await self.client.post(path, content=content, headers=headers)

    @property
    def log(self):
        return self.store.log()

    async def said(self, session):
        """The messages that stand on the session's line."""
        async with self.gateway.sessions.using("default", session) as one:
            return [json.loads(payload) for payload in one.messages]

    async def quiet(self):
        """Whatever is still to be written is written."""
        while self.gateway._tasks:
            await asyncio.wait(self.gateway._tasks)

    async def values(self, session):
        return [CODEC.decode(one) for one in await self.log.read(session)]

    async def sessions(self):
        return [one.session for one in (await self.log.sessions()).sessions]


@asynccontextmanager
async def worlds():
    """Makes worlds, and closes them in the end."""
    made = []

    def make(reply=lambda _: Reply("Hello there."), **more):
        made.append(World(reply, **more))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


def body_of(path, *messages, **more):
    """A conversation in the format of the path; roles alternate."""
    roles = ["user", "assistant"] * len(messages)
    said = [{"role": role, "content": text} for role, text in zip(roles, messages, strict=False)]
    key = "input" if path == RESPONSES else "messages"
    limit = {"max_tokens": 100} if path == MESSAGES else {}
    return {"model": "some-model", key: said, **limit, **more}


def text_of(path, answer):
    match path:
        case "/v1/chat/completions":
            return answer["choices"][0]["message"]["content"]
        case "/v1/responses":
            return answer["output"][-1]["content"][0]["text"]
        case _:
            return answer["content"][-1]["text"]


@asynccontextmanager
async def served(app, **options):
    """The address at which an application is served, over a real socket."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none", **options)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it says so nowhere else
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving
