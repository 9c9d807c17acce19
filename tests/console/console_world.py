"""The console of a service over a store in memory, and browsers that look at it."""

import asyncio
import re
from contextlib import asynccontextmanager
from types import SimpleNamespace
from urllib.parse import unquote

import httpx2
from api_serving import Serving

from refold.console.access import Access
from refold.console.app import add_console, open_address
from refold.service.keys import TENANT

LOCAL = "http://127.0.0.1:8790"
TEAM = "https://refold.example"
CONSOLE = "/console"


class ConsoleWorld(Serving):
    """The service with its console."""

    def __init__(self, *, local=False, clock=None, **how):
        super().__init__(**how)
        self.state.local = local
        self.where = LOCAL
        self.tokens_used = 0
        timing = {"clock": clock} if clock else {}
        sessions = self.store.log(TENANT)
        self.access = Access(self.state, sessions=sessions, token_used=self._token_used, **timing)
        add_console(self.app, self.access)

    def _token_used(self):
        self.tokens_used += 1

    def browser(self, where=TEAM, **headers):
        """A browser that has not signed in; it keeps cookies and follows no redirect."""
        transport = httpx2.ASGITransport(self.app)
        return httpx2.AsyncClient(transport=transport, base_url=where, headers=headers)

    async def signed_in(self, tenant="acme", *roles):
        """A browser that signed in with a new key of these roles."""
        browser = self.browser()
        answer = await sign_in(browser, await self.key(tenant, *(roles or ("read",))))
        assert answer.status_code == 303, answer.text
        return browser

    async def opened(self):
        """A browser on this machine that opened the address with the token."""
        browser = self.browser(LOCAL)
        answer = await browser.get(open_address(LOCAL, self.access.new_token()))
        assert answer.status_code == 303, answer.text
        return browser


@asynccontextmanager
async def console(**how):
    world = ConsoleWorld(**how)
    async with world.state:
        try:
            yield world
        finally:
            await world.state.sessions.close()


async def sign_in(browser, secret, *, origin=TEAM, then=CONSOLE):
    form = {"key": secret, "next": then}
    headers = {"origin": origin} if origin else {}
    return await browser.post(f"{CONSOLE}/sign-in", data=form, headers=headers)


def form_token(page):
    found = re.search(r'name="form_token" value="([^"]*)"', page.text)
    return found and found[1]


def cookie(answer):
    """The cookie that an answer sets: its value, and what it says besides."""
    name, _, rest = answer.headers["set-cookie"].partition("=")
    value, *flags = rest.split("; ")
    return SimpleNamespace(name=name, value=value, flags={flag.lower() for flag in flags})


async def events_of(world, browser, where, count):
    """The first events of a stream, read from the application itself."""
    found, done = [], asyncio.Event()
    path, _, query = where.replace("&amp;", "&").partition("?")
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:8790"), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8790),
    }

    async def receive():
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if body := message.get("body"):
            if body.startswith(b"data:"):
                found.append(body.decode())
            if len(found) == count:
                done.set()

    await world.app(scope, receive, send)
    return found
