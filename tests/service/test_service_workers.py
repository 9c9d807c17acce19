"""`refold worker` beside a service: whose models write its summaries, and whose quota pays."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from serving import settings_with

from refold.errors import NoModel, QuotaUsedUp
from refold.fold.compactor import context
from refold.service import for_workers, keys, writing
from refold.service.for_workers import making_beside
from refold.service.keys import Quota, keyring_of
from refold.service.quotas import quotas_of
from refold.service.spending import FREE
from refold.service.vault import VARIABLE, Vault, new_master_key
from refold.stores import MemoryStore
from refold.view import Fold


@pytest.fixture
def asked(monkeypatch):
    """The models that are asked; each summary uses 15 tokens."""
    models = []

    def by_model(resolve, _models):
        async def write(_material, job, _steps):
            models.append(resolve("some-model", job))
            return SimpleNamespace(usage={"input": 10, "output": 5}, by="some-model")

        return write

    monkeypatch.setattr(writing, "by_model", by_model)
    monkeypatch.setattr(for_workers, "makes", lambda _log, write: write)
    monkeypatch.setattr(keys, "_FRESH", 0.0)
    return models


async def summarized(make, store, tenant="acme", summarizer=""):
    given = context(Fold(), {}, model="some-model", summarizer=summarizer)
    await make(store.log(tenant))(None, SimpleNamespace(context=given), None)


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setattr("refold.models.summarizer.by_name", lambda name, _job: name)


@pytest.mark.usefixtures("named")
async def test_a_workers_summaries_count_for_all_processes(asked):
    store, settings = MemoryStore(), settings_with(limits={"day_tokens": 20})
    async with making_beside(store, settings) as make:
        await summarized(make, store)
        await summarized(make, store)
        with pytest.raises(QuotaUsedUp):
            await summarized(make, store)
        await summarized(make, store, tenant="other")
    assert asked == ["some-model"] * 3
    elsewhere = quotas_of(store, keyring_of(store), settings.serve.limits)
    await elsewhere.exchange()
    assert elsewhere.used("acme").tokens == 30
    with pytest.raises(QuotaUsedUp):
        elsewhere.check("acme")


@pytest.mark.usefixtures("named")
async def test_what_a_service_lets_a_tenant_use_ends_a_workers_summaries(asked):
    store, settings = MemoryStore(), settings_with()
    async with making_beside(store, settings) as make:
        await summarized(make, store)
        await keyring_of(store).set_quota("acme", Quota(10, None))
        with pytest.raises(QuotaUsedUp):
            await summarized(make, store)
    assert len(asked) == 1


async def test_a_worker_asks_the_upstreams_that_the_settings_name(asked, monkeypatch):
    monkeypatch.setenv("UP_KEY", "sk-from-a-variable")
    up = {"name": "up", "base_url": "http://up/v1", "models": ["some-*"], "key": "UP_KEY"}
    store = MemoryStore()
    async with making_beside(store, settings_with(upstreams=[up])) as make:
        await summarized(make, store)
    assert asked[0].base_url.startswith("http://up/v1")
    assert asked[0].client.api_key == "sk-from-a-variable"


async def test_a_worker_uses_the_key_that_is_stored_for_the_tenant(asked, monkeypatch):
    monkeypatch.setenv(VARIABLE, new_master_key())
    up = {"name": "up", "base_url": "http://up/v1", "key": "stored"}
    store = MemoryStore()
    async with making_beside(store, settings_with(upstreams=[up])) as make:
        with pytest.raises(NoModel):
            await summarized(make, store)
        await Vault(keyring_of(store)).put("acme", "up", "sk-of-acme")
        await summarized(make, store)
        with pytest.raises(NoModel):
            await summarized(make, store, tenant="other")
    assert [one.client.api_key for one in asked] == ["sk-of-acme"]


def test_what_is_learned_of_a_model_outlives_a_fold():
    write_of = writing.writing_by(lambda *_: None, settings_with(), FREE)
    assert write_of("acme") is write_of("acme")
    assert write_of("acme") is not write_of("other")


def test_a_worker_without_upstreams_needs_nothing_of_the_service():
    program = """
import sys
for name in ("cryptography", "fastapi", "starlette", "uvicorn"):
    sys.modules[name] = None
import refold.service.for_workers
import refold.service.writing
"""
    subprocess.run([sys.executable, "-c", program], check=True)
