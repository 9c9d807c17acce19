"""The service over PostgreSQL: keys, the gateway, folds by a worker of its own, and its end."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import os
import signal

import httpx2
import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from gateway_world import CHAT, body_of, served
from serving import running, service_with

from refold.service.keys import keyring_of
from refold.service.vault import new_master_key
from refold.stores import open_store
from refold.testing.upstream import Reply, ScriptedUpstream


async def test_the_service_over_postgresql(dbos_address, monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def pause():
        asked.set()
        await go_on.wait()

    def replied(got):
        held = "last" in str(got.body["messages"][-1])
        return Reply("Hello there. " * 20, pause=pause if held else None)

    async with open_store(dbos_address) as store:  # as `refold keys` does, elsewhere
        acme = await keyring_of(store).create("acme", ["admin"])
        beta = await keyring_of(store).create("beta", ["use", "read"])
    upstream = ScriptedUpstream(replied)
    async with served(upstream) as base:
        one = {"name": "up", "base_url": f"{base}/v1", "key": "stored"}
        service = service_with(
            open_store(dbos_address), local=False, address=dbos_address, upstreams=[one]
        )
        async with (
            running(service) as address,
            httpx2.AsyncClient(base_url=address, timeout=60) as client,
        ):
            client.headers["Authorization"] = f"Bearer {acme.secret}"
            other = {"Authorization": f"Bearer {beta.secret}"}
            assert (await client.get("/readyz")).status_code == 200
            put = await client.put("/api/v1/upstreams/up/key", json={"key": "sk-acme"})
            assert put.status_code == 200
            session = await _talked(client)
            assert upstream.got[-1].headers["authorization"] == "Bearer sk-acme"
            folded = await client.post(f"/api/v1/sessions/{session}/folds", json={})
            assert (folded.status_code, folded.json()["state"]) == (200, "completed")
            told = f"/api/v1/sessions/{session}"
            assert (await client.get(told)).json()["folds"] == 1
            assert (await client.get(told, headers=other)).status_code == 404
            assert (await client.post(CHAT, json={}, headers=other)).status_code == 422
            body = body_of(CHAT, "the last", stream=True)
            asking = asyncio.create_task(client.post(CHAT, json=body))
            await asked.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            await service.draining.wait()
            go_on.set()
            answer = await asking
            assert answer.content.endswith(b"[DONE]\n\n")
    async with open_store(dbos_address) as store:
        log = store.log("acme")
        assert (await log.info(answer.headers["refold-session"])).messages == 2
        assert (await log.sessions(search="the last")).sessions
        assert not (await store.log("beta").sessions()).sessions


async def _talked(client):
    said = []
    for nth in range(4):
        said.append(f"Question {nth}: " + "words " * 100)
        answer = await client.post(CHAT, json=body_of(CHAT, *said))
        assert answer.headers["refold-managed"] == "yes"
        said.append(answer.json()["choices"][0]["message"]["content"])
    return answer.headers["refold-session"]
