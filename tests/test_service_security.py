"""What an attacker tries: with a key of a tenant, with none, or from behind an upstream."""

import asyncio
import base64
import gzip
import json
import logging
from types import SimpleNamespace

import httpcore2
import httpx2
import pytest
from api_serving import serving
from gateway_world import CHAT, MESSAGES, RESPONSES, served
from serving import asking, running, service_with
from test_service_api_tenants import asked, operations

from refold.errors import InvalidInput, MasterKeyWrong, NoModel
from refold.fold.job import Job
from refold.fold.run import context
from refold.gateway.bounded_answers import BoundedAnswer
from refold.gateway.connecting import Network
from refold.gateway.passed_paths import check_path
from refold.gateway.upstream import Passing, Upstream, Upstreams
from refold.models.experience import Experiences
from refold.service import summarising
from refold.service.api.given import UpstreamKey
from refold.service.api.key_answers import MadeKey
from refold.service.app import application
from refold.service.journal import TENANT
from refold.service.kept import Quota
from refold.service.keyring import EVERYBODY, Keyring, keyring_of
from refold.service.sealing import Sealing, _masters, new_master_key
from refold.service.spending import Spending
from refold.stores import MemoryStore, open_store
from refold.view import Fold

HI = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())


class Upstreamed:
    """A server that keeps what it got, and answers as it is told."""

    def __init__(self):
        self.got = []
        self.status, self.headers, self.pieces = 200, [], [completion()]

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.got.append(
            SimpleNamespace(
                method=scope["method"],
                path=scope["raw_path"].decode(),
                query=scope["query_string"].decode(),
                headers={name.decode(): value.decode() for name, value in scope["headers"]},
                body=body,
            )
        )
        kind = [] if any(n == b"content-type" for n, _ in self.headers) else [JSON]
        start = {"status": self.status, "headers": [*kind, *self.headers]}
        await send({"type": "http.response.start", **start})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")


def completion(text="hello", **usage):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    told = {"usage": usage} if usage else {}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "choices": [choice], **told}
    ).encode()


class Town:
    """A service with tenants, before one upstream."""

    def __init__(self, service, address, upstream):
        self.service, self.address, self.upstream = service, address, upstream
        self.clients = []

    async def client(self, tenant="acme", *roles, **headers):
        made = await self.service.keyring.create(tenant, roles or ["use"])
        headers = headers or {"Authorization": f"Bearer {made.secret}"}
        client = httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=30)
        client.key = made
        self.clients.append(client)
        return client


class town:  # noqa: N801 - used like a function
    def __init__(self, key="stored", paths=(), store=None, **serve):
        self.options = {"key": key, "paths": paths}
        self.store, self.serve = store, serve

    async def __aenter__(self):
        upstream = Upstreamed()
        self.there = served(upstream)
        base = await self.there.__aenter__()
        one = {"name": "up", "base_url": f"{base}/v1", **self.options}
        service = service_with(self.store, local=False, upstreams=[one], **self.serve)
        self.here = running(service)
        self.town = Town(service, await self.here.__aenter__(), upstream)
        for tenant in ("acme", "beta"):
            await service.vault.put(tenant, "up", f"sk-of-{tenant}-{'k' * 20}")
        return self.town

    async def __aexit__(self, *error):
        for client in self.town.clients:
            await client.aclose()
        await self.here.__aexit__(*error)
        await self.there.__aexit__(*error)


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
    learned = t.service.gateway._means
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


async def test_no_route_takes_the_name_of_a_tenant():
    async with serving() as service:
        for _, path, told in operations(service.app):
            assert not {"tenant"} & {*told.names, *told.queries}, path
        document = json.dumps(service.app.openapi()["components"])
    assert '"tenant"' not in document


# What is passed on.

LEADING_ELSEWHERE = [
    "/v1/../admin",
    "/v1/%2e%2e/admin",
    "/v1/%252e%252e/admin",
    "/v1/files/a%2F..%2F..%2Fb",
    "/v1/..%5cadmin",
    "/v1/..;/admin",
    "/v1/models/./x",
    "/v1/models/%00",
    "/v1/models/a%0d%0aX-Key:%20b",
    "/v1/" + "a" * 9_000,
]


@pytest.mark.parametrize("path", LEADING_ELSEWHERE)
def test_a_path_that_leads_elsewhere_is_refused(path):
    with pytest.raises(InvalidInput):
        check_path(path, "")


async def test_no_path_leads_out_of_what_an_upstream_is_for():
    async with town(key="pass") as t:
        client = await t.client()
        host, port = t.address.removeprefix("http://").split(":")
        for path in LEADING_ELSEWHERE:
            reader, writer = await asyncio.open_connection(host, int(port))
            lines = [f"GET {path} HTTP/1.1", "Host: x", "Connection: close"]
            lines += [f"Authorization: Bearer {client.key.secret}", "", ""]
            writer.write("\r\n".join(lines).encode())
            async with asyncio.timeout(20):
                status = int((await reader.read()).split(b" ")[1])
            writer.close()
            assert status in {404, 422}, path
        assert t.upstream.got == []
        for path in ("/v1/models/org%2Fname", "/v1/models/a%3Fb%23c", "/v1/files?limit=2"):
            assert (await client.get(path)).status_code == 200
            one = t.upstream.got[-1]
            assert path == one.path + (f"?{one.query}" if one.query else "")


OTHERS = [
    ("DELETE", "/v1/files/f-1"),
    ("GET", "/v1/files"),
    ("GET", CHAT),
    ("GET", f"{RESPONSES}/resp_1"),
    ("POST", "/v1/fine_tuning/jobs"),
    ("POST", f"{MESSAGES}/batches"),
    ("DELETE", "/v1/models/ft-1"),
    ("POST", "/v1//files"),
    ("GET", "/v1/organization/admin_api_keys"),
]


@pytest.mark.parametrize("key", ["stored", "SHARED_KEY"])
async def test_only_models_are_asked_with_a_key_that_is_not_the_clients(key, monkeypatch):
    monkeypatch.setenv("SHARED_KEY", "sk-shared-by-all\n")
    async with town(key=key) as t:
        client = await t.client()
        for method, path in OTHERS:
            answer = await client.request(method, path)
            assert (answer.status_code, t.upstream.got) == (403, []), (method, path)
            assert "paths" in answer.json()["error"]["message"]
        for method, path in [("GET", "/v1/models"), ("POST", "/v1/embeddings"), ("POST", CHAT)]:
            assert (await client.request(method, path, json={})).status_code == 200
        assert all("rfk_" not in str(one.headers) for one in t.upstream.got)


async def test_who_runs_the_service_may_have_more_passed_on():
    async with town(paths=["GET /v1/files/*"]) as t:
        client = await t.client()
        assert (await client.get("/v1/files/f-1")).status_code == 200
        assert (await client.delete("/v1/files/f-1")).status_code == 403
    async with town(key="pass") as t:
        client = await t.client(Authorization="Bearer sk-mine")
        sent = {"Refold-Key": client.key.secret}
        for method, path in OTHERS:
            assert (await client.request(method, path, headers=sent)).status_code == 200
        assert {one.headers["authorization"] for one in t.upstream.got} == {"Bearer sk-mine"}


async def test_the_services_own_keys_never_leave():
    async with town(key="pass") as t:
        client = await t.client()
        secret = client.key.secret
        for query in (f"?key={secret}", f"?key={secret.replace('_', '%5F')}"):
            answer = await client.get(f"/v1/models{query}")
            assert answer.status_code == 422
            assert secret not in answer.text
        names = ("X-Goog-Api-Key", "Api-Key", "X-Api-Key", "Cookie", "X-Any", "Refold-Key")
        for name in names:
            sent = {name: f"a={secret}" if name in {"Cookie", "X-Any"} else secret}
            assert (await client.post(CHAT, json=HI, headers=sent)).status_code == 200
        assert len(t.upstream.got) == len(names)
        assert all(secret not in str(one.headers) for one in t.upstream.got)


async def test_what_came_before_a_connection_was_private_is_not_believed():
    async def forging(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(forging, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    stream = await Network().connect_tcp("127.0.0.1", port, timeout=20)
    async with asyncio.timeout(20):
        while not stream.get_extra_info("is_readable"):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    with pytest.raises(httpcore2.ConnectError, match="private"):
        await stream.start_tls(httpx2.create_ssl_context(), "localhost", timeout=20)
    server.close()
    await server.wait_closed()


async def test_an_upstream_cannot_speak_for_the_service():
    async with town() as t:
        t.upstream.headers = [
            (b"refold-session", b"forged"),
            (b"refold-anything", b"forged"),
            (b"alt-svc", b'h3="evil.example:443"'),
            (b"x-request-id", b"kept"),
        ]
        client = await t.client()
        for answer in (await client.post(CHAT, json=HI), await client.get("/v1/models")):
            assert "forged" not in str(answer.headers)
            assert "alt-svc" not in answer.headers
            assert answer.headers["x-request-id"] == "kept"


async def test_a_refusal_that_repeats_the_stored_key_is_told_without_it():
    async with town() as t:
        key = f"sk-of-acme-{'k' * 20}".encode()
        t.upstream.status, t.upstream.headers = 401, [(b"x-key", b"Bearer " + key)]
        t.upstream.pieces = [b'{"error":"Incorrect key: ' + key[:9], key[9:] + b'"}']
        client = await t.client("acme", "admin")
        for answer in (await client.post(CHAT, json=HI), await client.get("/v1/models")):
            assert answer.status_code == 401
            assert key.decode() not in answer.text + str(answer.headers)
            assert "Incorrect key: ..." in answer.text


async def test_redirects_are_neither_followed_nor_passed_on():
    async with town() as t, served(elsewhere := Upstreamed()) as other:
        t.upstream.status = 307
        t.upstream.headers = [(b"location", f"{other}{CHAT}".encode())]
        client = await t.client()
        for answer in (await client.post(CHAT, json=HI), await client.get("/v1/models")):
            assert answer.status_code == 502
            assert "location" not in answer.headers
    assert elsewhere.got == []


# What has no end.


async def test_an_answer_without_end_is_not_kept():
    async with town() as t:
        client = await t.client()
        t.upstream.pieces = [bytes(1 << 20)] * 70
        assert (await client.post(CHAT, json=HI)).status_code == 502
        t.upstream.headers = [(b"content-encoding", b"gzip")]
        t.upstream.pieces = [gzip.compress(bytes(70 << 20))]
        assert (await client.post(CHAT, json=HI)).status_code == 502
        t.upstream.headers = [(b"content-encoding", b"br")]
        assert (await client.post(CHAT, json=HI)).status_code == 502
        t.upstream.headers, t.upstream.pieces = [], [completion()]
        assert (await client.post(CHAT, json=HI)).status_code == 200


async def test_what_is_unpacked_comes_in_small_pieces():
    class Packed(httpx2.AsyncByteStream):
        async def __aiter__(self):
            yield gzip.compress(bytes(20 << 20))

    sizes = [len(one) async for one in BoundedAnswer(Packed(), "gzip", None)]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= 1 << 20
    with pytest.raises(httpx2.RemoteProtocolError):
        async for _ in BoundedAnswer(Packed(), "gzip", 1 << 20):
            pass


async def test_a_stream_without_end_is_broken_off():
    async with town() as t:
        t.upstream.headers = [EVENTS]
        done = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        comment = b":" + b"x" * (1 << 20) + b"\n\n"
        t.upstream.pieces = [b"data: " + json.dumps(done).encode() + b"\n\n", *[comment] * 70]
        client = await t.client()
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(CHAT, json={**HI, "stream": True})
        assert (await client.get("/healthz")).status_code == 200


ODD = [
    b'{"model":"\\ud800","messages":[{"role":"user","content":"hi"}]}',
    json.dumps({**HI, "model": "m" * 1_000_000}).encode(),
    json.dumps({**HI, "model": "a\x1b[31m\r\nX-A: b"}).encode(),
    b'{"model":"m","messages":[{"role":"user","content":"\\ud800 \\u0000 \\u001b[31m"}]}',
    b'{"model":"m","user":"\\ud800","messages":[{"role":"user","content":"hi"}]}',
    b"[" * 100_000,
    b'{"model":"m","messages":' + b'{"a":' * 150 + b"1" + b"}" * 151,
    b'{"model":1e999,"messages":[]}',
    b"\x1f\x8b" + bytes(50),
]


async def test_whatever_a_request_says_nothing_fails(caplog):
    async with town() as t:
        client = await t.client("acme", "admin")
        for body in ODD:
            for path in (CHAT, "/v1/embeddings"):
                answer = await client.post(path, content=body)
                assert answer.status_code < 500, body[:80]
                assert "x-a" not in answer.headers
        listed = (await client.get("/api/v1/sessions")).json()["sessions"]
        assert len(listed) >= 2
        assert all((one["title"] or "").isprintable() for one in listed)
    assert "Traceback" not in caplog.text


# What may be used.

UNGOVERNED = [
    (CHAT, {**HI, "n": 2}, {}, [JSON], [completion(prompt_tokens=70, completion_tokens=50)]),
    (CHAT, {**HI, "n": 2}, {}, [JSON], [completion("word " * 100)]),
    (CHAT, HI, {"Content-Encoding": "gzip"}, [JSON], [completion("word " * 100)]),
    (CHAT, {**HI, "stream": True}, {}, [EVENTS], None),
    (
        RESPONSES,
        {"model": "m", "input": "hi", "previous_response_id": "r"},
        {},
        [EVENTS],
        [b'data: {"response":{"usage":{"input_tokens":70,"output_tokens":50}}}\n\n'],
    ),
    (
        "/v1/embeddings",
        {"model": "m", "input": "hi"},
        {},
        [JSON],
        [b'{"data":[],"usage":{"prompt_tokens":120,"total_tokens":120}}'],
    ),
]


def chunks(text):
    """A stream that says nothing of what it used."""
    for delta, finish in [({"role": "assistant", "content": text}, None), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


async def test_nothing_is_free_because_it_is_not_governed():
    async with town(limits={"day_tokens": 100}) as t:
        await t.service.vault.put("*", "up", "sk-for-all")
        for nth, (path, body, headers, kind, pieces) in enumerate(UNGOVERNED):
            client = await t.client(f"tenant-{nth}")
            t.upstream.headers, t.upstream.got = kind, []
            t.upstream.pieces = pieces or [*chunks("word " * 100)]
            content = json.dumps(body).encode()
            sent = gzip.compress(content) if headers else content
            assert (await client.post(path, content=sent, headers=headers)).status_code == 200
            answer = await client.post(path, content=sent, headers=headers)
            assert (answer.status_code, len(t.upstream.got)) == (429, 1), nth


async def test_who_leaves_before_the_end_has_used_what_came():
    async with town(limits={"day_tokens": 100}) as t:
        client = await t.client()
        t.upstream.headers, t.upstream.pieces = [EVENTS], [next(chunks("word " * 500))] * 50
        async with client.stream("POST", CHAT, json={**HI, "n": 2, "stream": True}) as answer:
            await anext(answer.aiter_raw())
        async with asyncio.timeout(20):
            while not t.service.quotas.used("acme").tokens:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        assert (await client.post(CHAT, json=HI)).status_code == 429


async def test_limits_count_a_key_however_it_is_sent():
    async with town(limits={"key_requests": 6}) as t:
        client = await t.client(Accept="*/*")
        secret = client.key.secret
        forms = [
            {"Authorization": f"Bearer {secret}"},
            {"authorization": f"BEARER  {secret}"},
            {"X-Api-Key": secret},
            {"x-API-key": secret},
            {"Refold-Key": secret, "Authorization": "Bearer sk-other"},
            {"REFOLD-KEY": secret, "X-Api-Key": "sk-other"},
        ]
        for form in forms:
            assert (await client.get("/v1/models", headers=form)).status_code == 200
        for form in forms:
            assert (await client.get("/v1/models", headers=form)).status_code == 429
        assert (await client.get(f"/v1/models?key={secret}")).status_code == 401


def job_for(model, summariser=""):
    given = context(Fold(), {}, model=model, summariser=summariser)
    return SimpleNamespace(context=given, trigger="auto", spec=Job)


def test_a_clients_word_does_not_choose_a_key_of_the_process(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-who-runs-it")
    client = httpx2.AsyncClient()
    upstreams = Upstreams([Upstream("up", "http://up", models=("m-*",), key="sk-up")], client)
    resolved = summarising._resolved
    with pytest.raises(NoModel):
        resolved(upstreams, "acme", "openai:gpt-4o", job_for("openai:gpt-4o"))
    assert resolved(upstreams, "acme", "m-1:8b", job_for("m-1:8b")).base_url.startswith("http://up")
    named = job_for("m-1", "openai:gpt-4o")
    assert "openai.com" in resolved(upstreams, "acme", "openai:gpt-4o", named).base_url


async def test_summaries_are_counted_and_end_with_the_quota(monkeypatch):
    spent, refused = [], []

    async def write(*_given):
        return SimpleNamespace(usage={"input": 10, "output": 5, "calls": 1}, by="m")

    monkeypatch.setattr(
        summarising, "by_model", lambda resolve, _models: (seen.append(resolve), write)[1]
    )
    seen = []
    spending = Spending(refused.append, lambda *one: spent.append(one))
    settings = SimpleNamespace(models={})
    await summarising.writing_with(None, settings, spending)("acme")(None, None, None)
    assert [(who, used.input, used.output) for who, used, _ in spent] == [("acme", 10, 5)]
    monkeypatch.setattr(summarising, "_resolved", lambda *_: None)
    seen[0]("m", None)
    assert refused == ["acme"]


# Keys.


async def test_a_revoked_key_hears_no_more(monkeypatch):
    monkeypatch.setattr("refold.service.keyring._FRESH", 0.05)
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
    passing = Passing("GET", "/v1", f"k={secret}", ((b"a", secret.encode()),), secret.encode(), "t")
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
