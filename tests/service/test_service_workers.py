"""`refold worker` beside a service: whose models write its summaries, and whose quota pays."""

import asyncio
import re
import subprocess
import sys
from types import SimpleNamespace

import psycopg
import pytest
from dbos_servers import dbos, dbos_address  # noqa: F401 - fixtures
from serving import asking, settings_with

from refold.errors import NoModel, QuotaUsedUp
from refold.fold.compactor import context
from refold.service import engines, keys, summarizers, worker
from refold.service.keys import Quota, keyring_of
from refold.service.quotas import FREE, quotas_of
from refold.service.service import Service
from refold.service.vault import VARIABLE, Vault, new_master_key
from refold.service.worker import worker_fold_maker
from refold.stores import MemoryStore, open_store
from refold.view import Fold

SECONDS = 60


@pytest.fixture
def asked(monkeypatch):
    """The models that are asked; each summary uses 15 tokens."""
    models = []

    def by_model(resolve, *_more):
        async def write(_material, job, _steps):
            models.append(resolve("some-model", job))
            return SimpleNamespace(usage={"input": 10, "output": 5}, by="some-model")

        return write

    monkeypatch.setattr(summarizers, "by_model", by_model)
    monkeypatch.setattr(worker, "makes", lambda _log, write, *_: write)
    monkeypatch.setattr(keys, "_FRESH", 0.0)
    return models


async def summarize(make, store, tenant="acme", summarizer=""):
    job_context = context(Fold(), {}, model="some-model", summarizer=summarizer)
    await make(store.log(tenant))(None, SimpleNamespace(context=job_context), None)


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setattr("refold.models.summarizer.by_name", lambda name, _job: name)


@pytest.mark.usefixtures("named")
async def test_a_workers_summaries_count_for_all_processes(asked):
    store, settings = MemoryStore(), settings_with(limits={"day_tokens": 20})
    async with worker_fold_maker(store, settings) as make:
        await summarize(make, store)
        await summarize(make, store)
        with pytest.raises(QuotaUsedUp):
            await summarize(make, store)
        await summarize(make, store, tenant="other")
    assert asked == ["some-model"] * 3
    elsewhere = quotas_of(store, keyring_of(store), settings.serve.limits)
    await elsewhere.exchange()
    assert elsewhere.used("acme").tokens == 30
    with pytest.raises(QuotaUsedUp):
        elsewhere.check("acme")


@pytest.mark.usefixtures("named")
async def test_what_a_service_lets_a_tenant_use_ends_a_workers_summaries(asked):
    store, settings = MemoryStore(), settings_with()
    async with worker_fold_maker(store, settings) as make:
        await summarize(make, store)
        await keyring_of(store).set_quota("acme", Quota(10, None))
        with pytest.raises(QuotaUsedUp):
            await summarize(make, store)
    assert len(asked) == 1


async def test_a_worker_asks_the_upstreams_that_the_settings_name(asked, monkeypatch):
    monkeypatch.setenv("UP_KEY", "sk-from-a-variable")
    up = {"name": "up", "base_url": "http://up/v1", "models": ["some-*"], "key": "UP_KEY"}
    store = MemoryStore()
    async with worker_fold_maker(store, settings_with(upstreams=[up])) as make:
        await summarize(make, store)
    assert asked[0].base_url.startswith("http://up/v1")
    assert asked[0].client.api_key == "sk-from-a-variable"


async def test_a_worker_uses_the_key_that_is_stored_for_the_tenant(asked, monkeypatch):
    monkeypatch.setenv(VARIABLE, new_master_key())
    up = {"name": "up", "base_url": "http://up/v1", "key": "stored"}
    store = MemoryStore()
    async with worker_fold_maker(store, settings_with(upstreams=[up])) as make:
        with pytest.raises(NoModel):
            await summarize(make, store)
        await Vault(keyring_of(store)).put("acme", "up", "sk-of-acme")
        await summarize(make, store)
        with pytest.raises(NoModel):
            await summarize(make, store, tenant="other")
    assert [one.client.api_key for one in asked] == ["sk-of-acme"]


def test_what_is_learned_of_a_model_outlives_a_fold():
    write_for = summarizers.tenant_summarizers(lambda *_: None, settings_with(), FREE)
    assert write_for("acme") is write_for("acme")
    assert write_for("acme") is not write_for("other")


def test_a_worker_without_upstreams_needs_nothing_of_the_service():
    program = """
import sys
for name in ("cryptography", "fastapi", "starlette", "uvicorn"):
    sys.modules[name] = None
import refold.service.worker
import refold.service.summarizers
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Folds that nobody makes.


async def test_an_operator_sees_that_folds_wait_for_a_worker(dbos_address, caplog):  # noqa: F811 - a fixture
    settings = settings_with(offload_processes=0)

    async def body(client, path, wanted):
        async with asyncio.timeout(SECONDS):
            while ("folds" in (found := (await client.get(path)).json())) != wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return found

    service = Service(settings, open_store(dbos_address), dbos_address, worker=False)
    service.workers = engines.WorkerWatch(dbos_address, every=0.05, unseen=0)
    async with asking(service) as client:
        assert "folds" not in await body(client, "/healthz", wanted=False)
        async with await psycopg.AsyncConnection.connect(dbos_address, autocommit=True) as db:
            await db.execute(
                "INSERT INTO refold_engine.folds (id, tenant, session, fold, pool, version, queue)"
                " VALUES ('w', 'acme', 'talk', gen_random_uuid(), 'other', '1', 'q')"
            )
            found = await body(client, "/healthz", wanted=True)
            assert re.fullmatch(
                r"1 fold waits, and no worker has been seen for \d+ seconds", found["folds"]
            )
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (200, "ready")
            assert "no worker" in ready.json()["folds"]
            assert "acme" not in ready.text
            await db.execute("DELETE FROM refold_engine.folds")
            await body(client, "/healthz", wanted=False)
    warnings = [one for one in caplog.records if "no worker has been seen" in one.getMessage()]
    assert len(warnings) == 1, "one line for each time"
    assert "refold worker" in warnings[0].getMessage()
