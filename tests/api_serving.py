"""The API over a store in memory, with two tenants, each with a session in which much happened."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx2

from refold.engine import LocalEngine
from refold.fold.compactor import Compactor, from_the_log
from refold.gateway.sessions import GatewaySessions, Opening
from refold.log import Artifact, Author, Note, export_session
from refold.models.catalog import counter_for
from refold.models.experience import Setup
from refold.service.app import application
from refold.service.service import Service
from refold.service.vault import Sealing, Vault
from refold.session import Usage
from refold.settings import load_settings
from refold.stores import MemoryStore
from refold.view.profiles import BALANCED

API = "/api/v1"
FORMAT = "openai-chat"
SETUP = Setup.of("test:model", BALANCED)
LARGE = "a parcel, " * 2_000
"""More than an entry holds by itself."""


def said(role, text, **more):
    return {"role": role, "content": text, **more}


def raw(message):
    return json.dumps(message).encode()


class Serving:
    """The service, without any limit on how much is asked, and its application."""

    def __init__(self, store=None, write=from_the_log):
        self.store = store or MemoryStore()
        self.write = write
        self.state = Service(load_settings("balanced"), self.store, local=False)
        self.state.vault = Vault(self.state.keyring, Sealing([b"m" * 32]))
        self.state.limits = SimpleNamespace(admit=lambda _: None)
        self.state.sessions = GatewaySessions(self.store, BALANCED, self._engine)
        self.app = application(self.state)

    def _engine(self, log):
        return LocalEngine(log, Compactor(log, counter_for(""), self.write))

    async def key(self, tenant, *roles):
        """The secret of a new key."""
        made = await self.state.keyring.create(tenant, roles or ("read", "write", "admin"))
        return made.secret

    def client(self, secret=None, **how):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        transport = httpx2.ASGITransport(self.app, **how)
        return httpx2.AsyncClient(
            transport=transport, base_url="http://api.example", headers=headers
        )


@asynccontextmanager
async def serving(**how):
    one = Serving(**how)
    async with one.state:
        try:
            yield one
        finally:
            await one.state.sessions.close()


async def talked(serving, tenant, session, *, words="parcel", turns=3):
    """A session that was talked in: requests, a fold, a pin, a title, a note, an artifact."""
    sessions, log = serving.state.sessions, serving.store.log(tenant)
    async with sessions.lease(tenant, session, Opening(FORMAT, SETUP)) as kept:
        talk = kept.session
        for nth in range(turns):
            await talk.say(raw(said("user", f"Where is {words} {nth} of {tenant}?")))
            await talk.request()
            await talk.answer(
                raw(said("assistant", f"The {words} {nth} is on its way.")), usage=Usage(100, 10)
            )
        folded = await talk.compact()
        await talk.say(raw(said("user", f"{LARGE} of {tenant}")))
        await talk.request()
    kept = Artifact.of(f"kept for {tenant}".encode())
    note = Author().draft(Note(f"A note of {tenant}", {"of": tenant}), artifacts=[kept])
    await log.append(session, [note], expected=None)
    outline = (await log.outlined(session)).outline
    return SimpleNamespace(
        session=session,
        fold=str(folded.fold),
        hash=kept.hash,
        seq=outline.record,
        index=0,
        said=2,
    )


async def all_of(store, tenant) -> dict[str, Any]:
    """Everything that a tenant has, as bytes."""
    log = store.log(tenant)
    names = [one.session for one in (await log.sessions(limit=1_000)).sessions]
    return {
        name: "".join([line async for line in export_session(log, name)]) for name in sorted(names)
    }


def at(session, rest="") -> str:
    """The address of something of a session."""
    return f"{API}/sessions/{quote(session, safe='')}{rest}"
