"""Health of the service, what it counts, and how it stops."""

import asyncio
import os
import signal
import socket
from urllib.parse import urlsplit

import httpx2
import pytest
from service_routes import ROUTES
from serving import asking, running, service_with
from starlette.responses import StreamingResponse
from starlette.routing import Route

from refold.errors import StoreBusy
from refold.stores import MemoryStore


class Unreachable(MemoryStore):
    """A store that ceases to answer."""

    gone = False

    def log(self, tenant="default"):
        log = super().log(tenant)
        head = log.head

        async def answered(session):
            if self.gone:
                raise StoreBusy("It does not answer.")
            return await head(session)

        log.head = answered  # type: ignore[method-assign]
        return log


async def test_health_and_readiness(monkeypatch):
    store = Unreachable()
    monkeypatch.setattr("refold.service.store_guard._FRESH", 0.0)
    async with asking(service_with(store, local=False)) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok", "store": "available"}
        assert (await client.get("/readyz")).json() == {"status": "ready", "store": "available"}
        store.gone = True
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/metrics")).status_code == 404
        store.gone = False


async def test_metrics_are_told_where_that_is_allowed():
    pytest.importorskip("opentelemetry.exporter.prometheus")
    from refold.service import metrics  # noqa: PLC0415 - only here

    assert metrics.has_prometheus()
    async with asking(service_with(local=False, metrics=True), ROUTES) as client:
        await client.get("/who")
        answer = await client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        assert b"python_info" in answer.content


async def test_stopping_lets_what_is_under_way_end():
    going, ended = asyncio.Event(), []

    async def words():
        yield b"first "
        going.set()
        await service.draining.wait()
        for word in (b"second ", b"last"):
            await asyncio.sleep(0.1)
            yield word
        ended.append(len(ended))

    async def stream(_):
        return StreamingResponse(words())

    service = service_with(times={"drain_delay": 0.3})
    task = None
    async with running(service, [Route("/words", stream)]) as address:
        async with httpx2.AsyncClient(base_url=address, timeout=20) as client:
            task = asyncio.create_task(client.get("/words"))
            await going.wait()
            assert (await client.get("/readyz")).status_code == 200
            os.kill(os.getpid(), signal.SIGTERM)
            await service.draining.wait()
            assert (await client.get("/readyz")).json() == {"status": "draining"}
            assert (await task).text == "first second last"
        where = urlsplit(address)
        async with asyncio.timeout(20):
            while _accepts(where.hostname, where.port):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
    assert ended == [0]


def _accepts(host, port):
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex((host, port)) == 0


async def test_stopping_does_not_wait_for_ever():
    going, told = asyncio.Event(), []

    async def endless(_):
        going.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            told.append(await service.store.log("t").sessions())  # the store is still open

    service = service_with(times={"drain": 0.2})
    async with asking(service, [Route("/endless", endless)]) as client:
        task = asyncio.create_task(client.get("/endless"))
        await going.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        answer = await task
        assert (answer.status_code, answer.json()["code"]) == (503, "draining")
    assert len(told) == 1
