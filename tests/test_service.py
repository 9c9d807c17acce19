"""The service around gateway and API: who is let in, what is bounded, and how it stops."""

import asyncio
import json
import logging
import os
import signal
import socket
from urllib.parse import urlsplit

import httpx2
import pytest
from serving import asking, running, service_with
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from refold.errors import InvalidInput, SessionNotFound, StoreBusy
from refold.service import listening, problem
from refold.service.callers import caller_of, gateway_caller
from refold.service.intake import is_too_deep
from refold.service.keyring import Keyring, keyring_of
from refold.service.secrets import NoSecrets
from refold.stores import MemoryStore, open_store

SECRETIVE = f"rfk_{'a' * 12}_{'B' * 43}"


async def who(request):
    caller = await caller_of(request)
    return JSONResponse({"tenant": caller.tenant, "key": caller.key})


async def modelled(request):
    await gateway_caller(request)
    return Response(str(len(await request.body())))


async def failing(_):
    raise RuntimeError(f"postgresql://me:hunter2hunter2@db and {SECRETIVE}")


async def unknown(_):
    raise SessionNotFound("There is no session 'x'.")


async def busy(_):
    raise StoreBusy("The file /srv/me/refold.db is busy.")


ROUTES = (
    Route("/who", who, methods=["GET", "POST"]),
    Route("/modelled", modelled, methods=["POST"]),
    Route("/failing", failing),
    Route("/unknown", unknown),
    Route("/busy", busy),
)


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
    sock = listening.bound("0.0.0.0", 0)  # noqa: S104 - it never listens
    try:
        with pytest.raises(InvalidInput, match="refold keys create"):
            await listening.check_keys(open_store(address), sock)
        async with open_store(address) as store:
            await with_key(store)
        assert await listening.check_keys(open_store(address), sock)
    finally:
        sock.close()
    local = listening.bound("127.0.0.1", 0)
    assert not await listening.check_keys(MemoryStore(), local)
    with pytest.raises(InvalidInput, match="--port"):
        listening.bound("127.0.0.1", local.getsockname()[1])
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


# What is bounded.


async def raw(address, sent, *, seconds=20.0):
    """What the service says to these bytes until it closes the connection."""
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(sent)
        await writer.drain()
        async with asyncio.timeout(seconds):
            return await reader.read()
    finally:
        writer.close()


def head(path, *lines):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


async def test_a_body_that_says_to_be_too_large_is_refused_before_it_comes():
    async with running(service_with(sizes={"gateway": 5_000, "api": 2_000}), ROUTES) as address:
        answer = await raw(address, head("/modelled", "Content-Length: 99999999999"))
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()
        assert b"request-too-large" in answer
        waiting = head("/modelled", "Content-Length: 2001", "Expect: 100-continue")
        answer = await raw(address, waiting)
        assert answer.startswith(b"HTTP/1.1 413 ")
        answer = await raw(address, head("/v1/messages", "Content-Length: 5001"))
        assert b"request_too_large" in answer


async def test_a_body_that_grows_too_large_is_not_read_to_its_end():
    async def pieces():
        for _ in range(1_000):
            yield b"x" * 1_000

    async with asking(service_with(sizes={"api": 10_000}), ROUTES) as client:
        answer = await client.post("/modelled", content=pieces())
        assert answer.status_code == 413
        answer = await client.post("/modelled", content=b"x" * 10_000)
        assert answer.text == "10000"
        # FastAPI would tell of any failure of a body as a 400.
        answer = await client.post("/api/v1/keys", content=b" " * 10_001)
        assert (answer.status_code, answer.json()["code"]) == (413, "request-too-large")


async def test_slow_clients_are_not_waited_for():
    times = {"headers": 0.2, "pause": 0.2, "body": 0.5, "idle": 1}
    async with running(service_with(times=times), ROUTES) as address:
        assert await raw(address, b"") == b""
        assert await raw(address, b"POST /modelled HTTP/1.1\r\nHost: loc") == b""
        answer = await raw(address, head("/modelled", "Content-Length: 10") + b"abc")
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"request-too-slow" in answer
        dripped = asyncio.create_task(drip(address))
        async with asyncio.timeout(20):
            assert await dripped in (b"HTTP/1.1 408 ", b"")
        # Who was answered and then begins slowly is not waited for either.
        whole = head("/modelled", "Content-Length: 1") + b"a"
        answer = await raw(address, whole + b"POST /mod")
        assert answer.startswith(b"HTTP/1.1 200 ")


async def drip(address):
    """Send a byte of a body now and then, each in time, the whole never."""
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(head("/modelled", "Content-Length: 100000"))
    answer = asyncio.create_task(reader.read())
    try:
        while not answer.done():
            writer.write(b"x")
            await asyncio.wait({answer}, timeout=0.05)
        return answer.result()[:13]
    except ConnectionError:  # who still writes when it is closed may not get to read why
        return b""
    finally:
        answer.cancel()
        writer.close()


async def test_a_client_that_reads_nothing_is_dropped():
    ended = asyncio.Event()

    async def endless():
        try:
            while True:
                yield b"x" * 65_536
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def stream(_):
        return StreamingResponse(endless())

    service = service_with(times={"reader": 0.2})
    async with running(service, [Route("/endless", stream)]) as address:
        where = urlsplit(address)
        _, writer = await asyncio.open_connection(where.hostname, where.port, limit=1_024)
        writer.write(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(20):
            await ended.wait()
        writer.close()


async def test_headers_without_end_are_refused():
    async with running(service_with(sizes={"headers": 8_192}), ROUTES) as address:
        try:
            answer = await raw(address, b"GET / HTTP/1.1\r\nX-Much: " + b"x" * 100_000)
        except ConnectionError:
            answer = b""
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
        assert (await raw(address, b"\x00\xff nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
async def test_nesting_beyond_measure_is_refused(opening):
    async with asking(service_with(), ROUTES) as client:
        deep = opening * 100_000
        answer = await client.post("/api/v1/keys", content=deep)
        assert (answer.status_code, answer.json()["code"]) == (400, "request-too-deep")
    assert not is_too_deep(b"[" * 50 + b"]" * 50)
    assert not is_too_deep(b'{"a": "' + b"[" * 5_000 + b'"}')
    assert not is_too_deep(b"no JSON")


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


# Health, and stopping.


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
    monkeypatch.setattr("refold.service.health._FRESH", 0.0)
    async with asking(service_with(store, local=False)) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        store.gone = True
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/metrics")).status_code == 404
        store.gone = False


async def test_metrics_are_told_where_that_is_allowed():
    pytest.importorskip("opentelemetry.exporter.prometheus")
    from refold.service import prometheus  # noqa: PLC0415 - only here

    assert prometheus.always_measured()
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
