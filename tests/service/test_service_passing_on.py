"""What is passed on, to upstreams and from them, when somebody means harm."""

import asyncio

import httpcore2
import httpx2
import pytest
from gateway_world import CHAT, MESSAGES, RESPONSES, served
from service_towns import HI, Upstreamed, town

from refold.errors import InvalidInput
from refold.gateway.upstream import check_path
from refold.gateway.upstream_stream import Network
from refold.service.vault import new_master_key


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())


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
            writer.transport.abort()
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


@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/v1/models"])
async def test_a_client_without_the_providers_key_is_answered_by_us(path):
    async with town(key="pass") as t:
        t.upstream.status = 401
        client = await t.client()
        ask = client.get if path == "/v1/models" else lambda to: client.post(to, json=HI)
        answer = await ask(path)
        assert answer.status_code == 401
        assert "refold keys upstream set up" in answer.text
        assert client.key.secret not in answer.text
        if path == CHAT:
            assert answer.json()["error"]["code"] == "no-provider-key"
        client.headers["Refold-Key"] = client.headers["authorization"].removeprefix("Bearer ")
        client.headers["authorization"] = "Bearer sk-mine"
        answer = await ask(path)
        assert (answer.status_code, "no-provider-key" in answer.text) == (401, False)


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
        writer.transport.abort()

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
