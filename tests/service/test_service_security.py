"""What an attacker tries: with a key of a tenant, with none, or from behind an upstream."""

import asyncio
import base64
import json
import logging

import pytest
from api_serving import serving
from gateway_world import CHAT
from service_towns import HI, completion, town
from serving import asking, service_with
from test_service_api_tenants import asked, operations

from refold.errors import InvalidInput, MasterKeyWrong
from refold.gateway.upstream import ProxiedRequest, Upstream
from refold.models.experience import Experiences
from refold.service.api.schemas import MadeKey, UpstreamKey
from refold.service.app import application
from refold.service.keys import EVERYBODY, TENANT, Keyring, Quota, keyring_of
from refold.service.vault import Sealing, _masters, new_master_key
from refold.stores import MemoryStore, open_store


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())


# Between tenants.


async def test_what_an_upstream_gives_one_tenant_is_not_sent_with_anothers():
    async with town() as t:
        t.upstream.headers = [(b"set-cookie", b"session=of-acme; Path=/")]
        acme, beta = await t.client("acme"), await t.client("beta")
        first = await acme.post(CHAT, json=HI, headers={"Cookie": "mine=1"})
        await beta.post(CHAT, json=HI)
        await acme.get("/v1/models")
    assert "set-cookie" not in first.headers
    assert [one.headers.get("cookie") for one in t.upstream.got] == [None] * 3
    keys = [one.headers["authorization"] for one in t.upstream.got]
    assert ["acme" in one for one in keys] == [True, False, True]


async def test_a_name_of_anothers_session_is_a_name_like_any_other():
    async with town() as t:
        acme, beta = await t.client("acme"), await t.client("beta", "admin")
        secret = {**HI, "messages": [{"role": "user", "content": "acme's plans"}]}
        told = (await acme.post(CHAT, json=secret, headers={"Refold-Session": "talk"})).headers
        answer = await beta.post(CHAT, json=HI, headers={"Refold-Session": "talk"})
        assert answer.headers["refold-request"] == told["refold-request"] == "talk:3"
        await beta.post(CHAT, json=secret)  # word for word what acme said
        listed = (await beta.get("/api/v1/sessions")).json()["sessions"]
        assert len(listed) == 2
        assert all(b"plans" not in one.body for one in t.upstream.got[1:2])
        entries = (await beta.get("/api/v1/sessions/talk/entries")).text
    assert "plans" not in entries


async def test_what_is_no_name_of_a_session_is_refused():
    async with town() as t:
        client = await t.client()
        for name in (b"x" * 5_000, b"", b"a\x1b[31m", b"a\tb", b"a\x7f", b"a\x85b"):
            answer = await client.post(CHAT, json=HI, headers={"Refold-Session": name})
            assert (answer.status_code, t.upstream.got) == (422, []), name
            assert answer.json()["error"]["code"]
            assert len(answer.content) < 1_000


async def test_what_models_taught_by_one_tenants_answers_changes_nothing_for_another():
    async with town() as t:
        acme, beta = await t.client("acme"), await t.client("beta")
        words = "This model's maximum context length is 50 tokens, but you asked for 900."
        error = {"message": words, "code": "context_length_exceeded"}
        t.upstream.status, t.upstream.pieces = 400, [json.dumps({"error": error}).encode()]
        long = {**HI, "messages": [{"role": "user", "content": "words " * 500}]}
        assert (await acme.post(CHAT, json=long)).status_code == 400
        t.upstream.status, t.upstream.pieces = 200, [completion()]
        before = len(t.upstream.got)
        assert (await beta.post(CHAT, json=long)).status_code == 200
        assert json.loads(t.upstream.got[before].body) == long
    learned = t.service.gateway._contexts
    assert learned["acme"].experiences.of("m").window
    assert learned["beta"].experiences.of("m").window is None


def test_names_of_models_are_not_kept_without_end():
    known = Experiences()
    for nth in range(1_000):
        known.of(f"model-{nth}")
    assert len(known._learned) <= 256


def test_the_services_own_tenant_is_nobodys():
    keyring = Keyring(MemoryStore().log(TENANT))
    for name in (TENANT, EVERYBODY):
        with pytest.raises(InvalidInput):
            asyncio.run(keyring.create(name, ["admin"]))
        with pytest.raises(InvalidInput):
            asyncio.run(keyring.set_quota(name, Quota(1)))


async def test_no_route_takes_the_name_of_a_tenant_but_the_operators():
    async with serving() as service:
        for _, path, told in operations(service.app):
            assert not {"tenant"} & {*told.names, *told.queries}, path
        schemas = service.app.openapi()["components"]["schemas"]
    naming = {name for name, schema in schemas.items() if '"tenant"' in json.dumps(schema)}
    assert naming == {"Tenant", "TenantQuota", "TenantReceiptRow"}, "answers to the operator"


# Keys.


async def test_a_revoked_key_hears_no_more(monkeypatch):
    monkeypatch.setattr("refold.service.keys._FRESH", 0.05)
    async with town() as t:
        client = await t.client("acme", "admin")
        other = await t.client("acme", "read")
        await client.post("/api/v1/sessions", json={"name": "s", "format": "openai-chat"})
        async with other.stream("GET", "/api/v1/sessions/s/events") as stream:
            pieces = stream.aiter_text()
            assert "retry" in await anext(pieces)
            await client.delete(f"/api/v1/keys/{other.key.key.id}")
            async with asyncio.timeout(20):
                rest = "".join([one async for one in pieces])
        assert "key-needed" in rest


async def test_rotations_at_once_leave_one_newest_secret():
    keyring = keyring_of(MemoryStore())
    made = await keyring.create("acme", ["use"])
    again = await asyncio.gather(*(keyring.rotate(made.key.id, overlap=0) for _ in range(5)))
    valid = [one for one in (made, *again) if await keyring.find(one.secret)]
    assert len(valid) == 1


def test_no_secret_is_in_what_programs_show_of_values():
    secret = "sk-" + "s" * 30
    made = asyncio.run(keyring_of(MemoryStore()).create("acme", ["use"]))
    passing = ProxiedRequest(
        "GET", "/v1", f"k={secret}", ((b"a", secret.encode()),), secret.encode(), "t"
    )
    values = [
        Upstream("up", "http://up", key=secret),
        UpstreamKey(key=secret),
        passing,
        MadeKey.model_construct(secret=secret),
        Sealing([b"s" * 32]),
    ]
    shown = repr([made, *values])
    assert "s" * 20 not in shown
    assert made.secret[-20:] not in shown
    assert made.key.secrets[0].hash not in shown


@pytest.mark.parametrize(
    "wrong", ["é" * 44, "short", "a" * 44, base64.b64encode(b"x" * 16).decode()]
)
def test_a_wrong_master_key_is_not_repeated(wrong):
    with pytest.raises(MasterKeyWrong) as caught:
        _masters(wrong)
    assert wrong not in str(caught.value)


async def test_keys_are_in_no_log_no_answer_and_no_file(tmp_path, caplog):
    """Every route is asked, with everybody's keys; then all that was written is looked through."""
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "refold.db"
    async with town(key="pass", store=open_store(f"sqlite:///{file}")) as t:
        admin = await t.client("acme", "admin")
        mine = f"sk-client-{'c' * 24}"
        sent = {"Authorization": f"Bearer {mine}", "Refold-Key": admin.key.secret}
        admin.headers.clear()
        admin.headers.update(sent)
        for path in (CHAT, "/v1/models", "/v1/nowhere", "/v1/../x"):
            await admin.post(path, json=HI)
            await admin.post(path, content=b"{")
        t.upstream.status, t.upstream.pieces = 401, [b'{"error":{"message":"no"}}']
        await admin.post(CHAT, json=HI)
        answers = []
        ids = {"session": "s", "seq": 1, "index": 0, "fold": "0" * 32, "hash": "0" * 64}
        ids |= {"key": admin.key.key.id, "upstream": "up"}
        for method, path, told in operations(application(t.service)):
            if told.id in {"follow_session", "create_key", "rotate_key", "revoke_key"}:
                continue
            answers.append((await asked(admin, method, path, told, ids)).text)
    assert len(answers) > 25
    stored = [f"sk-of-acme-{'k' * 20}", "sk-mine"]
    secrets = [admin.key.secret, mine, *stored]
    written = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    for secret in secrets:
        assert secret not in caplog.text
        assert secret.encode() not in written
        assert all(secret not in one for one in answers)
    assert len(written) > 10_000


async def test_the_pages_that_a_browser_opens_run_nothing():
    async with asking(service_with()) as client:
        answer = await client.get(
            "/api/v1/openapi.json", headers={"Origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in answer.headers
        for path in ("/docs", "/redoc", "/api/v1/docs"):
            assert (await client.get(path)).status_code == 404
