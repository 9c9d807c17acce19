"""The service around gateway and API: who is let in, what is bounded, and how it stops."""

import json
import logging

import pytest
from service_routes import ROUTES, SECRETIVE
from serving import asking, service_with
from starlette.routing import Route

from refold.errors import InvalidInput, SessionNotFound
from refold.service import problem, server
from refold.service.callers import gateway_caller
from refold.service.keys import Keyring, NoSecrets, keyring_of
from refold.stores import MemoryStore, open_store


async def with_key(store, *roles, tenant="acme"):
    return await keyring_of(store).create(tenant, roles or ("use", "read", "write"))


# Who is let in.


async def test_one_persons_service_needs_no_key_until_there_is_one():
    store = MemoryStore()
    service = service_with(store)
    async with asking(service, ROUTES) as client:
        assert (await client.get("/who")).json() == {"tenant": "default", "key": ""}
        made = await service.keyring.create("acme", ["use"])
        assert (await client.get("/who")).status_code == 401
        own = {"Authorization": f"Bearer {made.secret}"}
        assert (await client.get("/who", headers=own)).json()["tenant"] == "acme"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "[::1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"X-Forwarded-For": "192.0.2.1"},
    ],
)
async def test_without_keys_no_web_page_is_answered(headers):
    async with asking(service_with(), ROUTES) as client:
        answer = await client.get("/who", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "not-local")


async def test_who_comes_from_elsewhere_needs_a_key():
    async with asking(service_with(local=False), ROUTES) as client:
        answer = await client.get("/who")
        assert answer.status_code == 401
        assert answer.headers["content-type"] == problem.MEDIA_TYPE
        assert answer.headers["www-authenticate"].startswith("Bearer")
        for wrong in ("rfk_x", SECRETIVE, "é"):
            sent = {"Refold-Key": wrong.encode()}
            answer = await client.get("/who", headers=sent)
            assert answer.status_code == 401
            assert wrong not in answer.text


async def test_listening_elsewhere_without_a_key_is_refused(tmp_path):
    address = f"sqlite:///{tmp_path / 'refold.db'}"
    sock = server.listen("0.0.0.0", 0)  # noqa: S104 - it never listens
    try:
        with pytest.raises(InvalidInput, match="refold keys create"):
            await server.check_keys(open_store(address), sock)
        async with open_store(address) as store:
            await with_key(store)
        assert await server.check_keys(open_store(address), sock)
    finally:
        sock.close()
    local = server.listen("127.0.0.1", 0)
    assert not await server.check_keys(MemoryStore(), local)
    with pytest.raises(InvalidInput, match="--port"):
        server.listen("127.0.0.1", local.getsockname()[1])
    local.close()


async def test_each_role_opens_its_own():
    store = MemoryStore()
    async with asking(service_with(store, local=False), ROUTES) as client:
        reader = await with_key(store, "read")
        admin = await with_key(store, "admin")
        sent = {"Authorization": f"Bearer {reader.secret}"}
        assert (await client.get("/who", headers=sent)).status_code == 200
        answer = await client.post("/modelled", headers=sent)
        assert (answer.status_code, answer.json()["code"]) == (403, "role-needed")
        sent = {"X-Api-Key": admin.secret}
        assert (await client.post("/modelled", headers=sent, content=b"ab")).text == "2"


# How errors are told.


async def test_errors_are_problems_and_tell_no_secret(caplog):
    async with asking(service_with(), ROUTES) as client:
        answer = await client.get("/unknown")
        assert answer.headers["content-type"] == problem.MEDIA_TYPE
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.json() == {
            "type": "urn:refold:session-not-found",
            "title": "Not Found",
            "status": 404,
            "detail": "There is no session 'x'.",
            "fix": SessionNotFound.usual_fix,
            "code": "session-not-found",
        }
        answer = await client.get("/busy")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "/srv/me" not in answer.text
        answer = await client.get("/failing")
        assert (answer.status_code, answer.json()["code"]) == (500, "fault")
        assert "hunter2" not in answer.text
        assert "Traceback" not in answer.text
        for path in ("/nowhere", "/api/v1/nowhere"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert (await client.delete("/who")).json()["status"] == 405
        assert "server" not in answer.headers
    assert "/srv/me" in caplog.text  # who runs the service must know
    assert "in failing" in caplog.text
    assert "hunter2" not in caplog.text
    assert "B" * 43 not in caplog.text


async def test_a_key_of_somebody_elses_is_refused_as_that():
    async with asking(service_with(local=False)) as client:
        for name, key in (("authorization", "Bearer sk-wrong"), ("x-api-key", "sk-wrong")):
            answer = await client.get("/api/v1/sessions", headers={name: key})
            assert answer.status_code == 401
            assert "not one of this service's" in answer.text
            assert "sk-wrong" not in answer.text


async def test_gateway_paths_refuse_in_the_providers_shape():
    async with asking(service_with(local=False)) as client:
        answer = await client.post("/v1/chat/completions", json={})
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "key-needed"
        answer = await client.post("/v1/messages", json={})
        assert answer.json()["error"]["type"] == "authentication_error"
        assert answer.json()["type"] == "error"


def test_no_error_of_ours_is_left_without_a_status():
    from refold import errors  # noqa: PLC0415 - only here

    kinds = [getattr(errors, name) for name in errors.__all__]
    unsaid = {
        kind.__name__
        for kind in kinds
        if problem.status_of(kind.__new__(kind)) == 500 and not kind.__subclasses__()
    }
    assert unsaid == {"NotRemembered"}


# What is written of requests.


async def test_the_access_log_holds_no_secret(caplog):
    caplog.set_level(logging.INFO, "refold.access")
    store = MemoryStore()
    async with asking(service_with(store, local=False), ROUTES) as client:
        made = await with_key(store)
        sent = {"Authorization": f"Bearer {made.secret}"}
        await client.post("/who?token=hunter2", headers=sent, content=b"confidential")
        await client.get(f"/who/{made.secret}")
        await client.get("/a%0Ab%1B%5B31m")
    lines = [one.getMessage() for one in caplog.records if one.name == "refold.access"]
    assert len(lines) == 3
    assert f"POST /who 200 {lines[0].split(' 200 ')[1]}" in lines[0]
    assert lines[0].endswith(f" acme {made.key.id}")
    written = "\n".join(lines)
    assert made.secret not in written
    assert made.secret[-20:] not in written
    for word in ("hunter2", "confidential", "\x1b"):
        assert word not in written
    assert len(written.splitlines()) == 3


def test_what_is_logged_elsewhere_holds_no_secret_either():
    error = RuntimeError(f"no {SECRETIVE} here")
    record = logging.LogRecord("x", 40, "", 1, "with %s", (SECRETIVE,), None)
    record.exc_info = (type(error), error, error.__traceback__)
    assert NoSecrets().filter(record)
    shown = logging.Formatter().format(record)
    assert "B" * 43 not in shown
    assert "RuntimeError: no … here" in shown


async def test_a_slot_is_released_however_a_request_ends():
    store = MemoryStore()
    service = service_with(store, limits={"streams": 1})

    async def breaking(request):
        await gateway_caller(request)
        raise ValueError

    async with asking(service, [*ROUTES, Route("/breaking", breaking)]) as client:
        for _ in range(3):
            assert (await client.get("/breaking")).status_code == 500
            assert (await client.post("/modelled", content=b"a")).text == "1"
        assert service.limits.under_way == 0


def test_a_keyring_is_over_the_services_own_log():
    with pytest.raises(InvalidInput):
        Keyring(MemoryStore().log("acme"))


def test_problems_are_ascii():
    said = problem.answer(SessionNotFound("There is no session '\u202e<script>\u001b[31m'."))
    assert bytes(said.body).isascii()
    assert json.loads(said.body)["status"] == 404
