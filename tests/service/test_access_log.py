"""The access log as JSON: one line for each request, without secrets and content."""

import asyncio
import json
import logging

import httpx2
import pytest
from absent_stores import AbsentStore
from free_ports import free_ports
from gateway_world import CHAT, body_of, served
from serve_process import serve_process
from service_routes import ROUTES
from service_towns import HI, completion, town
from serving import asking, service_with

from refold.gateway.large_requests import MAX_BYTES
from refold.service.vault import new_master_key
from refold.testing.upstream import Reply, ScriptedUpstream

SECONDS = 60
WORDS = "The launch code is 7431."


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())


@pytest.fixture
def lines(monkeypatch):
    """The objects that are logged."""
    found = []
    handler, logger = logging.Handler(), logging.getLogger("refold.access")
    handler.emit = lambda record: found.append(json.loads(record.getMessage()))
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "level", logging.INFO)
    monkeypatch.setattr(logger, "_cache", {})
    return found


async def until(true):
    async with asyncio.timeout(SECONDS):
        while not true():  # noqa: ASYNC110 - a log sets no event
            await asyncio.sleep(0.02)


def behind(url, **serve):
    upstream = {"name": "up", "base_url": f"{url}/v1"}
    return service_with(upstreams=[upstream], access_log="json", **serve)


async def test_a_line_has_who_asked_which_model_and_what_it_used(lines):
    async with town(access_log="json") as t:
        cached = {"cached_tokens": 640}
        t.upstream.pieces = [
            completion(prompt_tokens=812, completion_tokens=57, prompt_tokens_details=cached)
        ]
        client = await t.client("acme")
        body = {**HI, "messages": [{"role": "user", "content": WORDS}]}
        answer = await client.post(f"{CHAT}?token=hunter2", json=body)
        await until(lambda: lines)
    (line,) = lines
    assert line.pop("duration_ms") >= 0
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "request": answer.headers["refold-request-id"],
        "client": "127.0.0.1",
        "method": "POST",
        "path": CHAT,
        "status": 200,
        "tenant": "acme",
        "key": client.key.key.id,
        "session": answer.headers["refold-session"],
        "model": "m",
        "upstream": "up",
        "tokens": {"input": 812, "output": 57, "cached": 640},
    }


async def test_the_id_of_a_load_balancer_is_used_and_nothing_else_in_its_place(lines):
    async with asking(service_with(access_log="json"), ROUTES) as client:
        for sent in ("lb-1", "two words", "x" * 65, f"rfk_{'a' * 12}_{'b' * 43}"):
            answer = await client.get("/who", headers={"X-Request-Id": sent})
            assert (answer.headers["refold-request-id"] == sent) == (sent == "lb-1")
    assert lines[0]["request"] == "lb-1"
    assert "b" * 43 not in json.dumps(lines)


async def test_a_stream_is_logged_once_at_its_end(lines):
    upstream = ScriptedUpstream(lambda _: Reply("One two three."))
    async with served(upstream) as url, asking(behind(url)) as client:
        await client.post(CHAT, json=body_of(CHAT, "hi", stream=True))
        await until(lambda: lines)
    (line,) = lines
    assert (line["status"], line["model"], line["upstream"]) == (200, "some-model", "up")
    assert line["tokens"]["input"] > 0
    assert "error" not in line


@pytest.mark.parametrize("said", ["", "One"], ids=["at once", "after a word"])
async def test_an_error_in_a_stream_is_told_though_its_status_was_200(lines, said):
    async def failing(_scope, _receive, send):
        events = [{"error": {"type": "server_error", "message": "overloaded"}}]
        if said:
            delta = {"role": "assistant", "content": said}
            events.insert(0, {"choices": [{"index": 0, "delta": delta}]})
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        await send({"type": "http.response.body", "body": data})

    async with served(failing) as url, asking(behind(url)) as client:
        answer = await client.post(CHAT, json=body_of(CHAT, "hi", stream=True))
        assert b"overloaded" in answer.content
        await until(lambda: lines)
    (line,) = lines
    assert line["status"] == 200
    assert line["error"] == {
        "code": "upstream-error",
        "reason": "The upstream sent an error in its stream.",
    }


@pytest.mark.parametrize("more", [{}, {"n": 2}], ids=["managed", "passed on"])
async def test_a_canceled_stream_is_logged_with_what_it_used_so_far(lines, more):
    going_on = asyncio.Event()

    async def endless(_scope, _receive, send):
        event = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "word " * 40}}]}
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        data = f"data: {json.dumps(event)}\n\n".encode()
        await send({"type": "http.response.body", "body": data, "more_body": True})
        await going_on.wait()

    async with served(endless) as url, asking(behind(url)) as client:
        body = body_of(CHAT, "hi", stream=True, **more)
        async with client.stream("POST", CHAT, json=body) as answer:
            await anext(answer.aiter_raw())
            assert not lines
        await until(lambda: lines)
        going_on.set()
    (line,) = lines
    assert line["error"]["code"] == "client-closed"
    assert line["tokens"]["output"] >= 40
    assert line["tokens"]["estimated"]


@pytest.mark.parametrize(
    ("url", "status", "code", "reason"),
    [
        (
            "http://127.0.0.1:{port}",
            502,
            "upstream-refused",
            "The upstream refused the connection.",
        ),
        (
            "http://localhost:{port}",
            502,
            "upstream-refused",
            "The upstream refused the connection.",
        ),
        (
            "http://nowhere.invalid",
            502,
            "upstream-unknown-host",
            "The upstream has a host name that cannot be resolved.",
        ),
    ],
)
async def test_why_an_upstream_cannot_be_reached(lines, url, status, code, reason):
    async with asking(behind(url.format(port=free_ports(1)[0]))) as client:
        answer = await client.post(CHAT, json=body_of(CHAT, "hi"))
        assert answer.status_code == status
        assert reason.removeprefix("The upstream ") in answer.text
        await until(lambda: lines)
    (line,) = lines
    assert (line["status"], line["error"]) == (status, {"code": code, "reason": reason})
    assert line["upstream"] == "up"


async def test_an_upstream_that_sends_nothing_and_one_that_breaks_off(lines):
    async def silent(_scope, _receive, _send):
        await asyncio.Event().wait()

    async with served(silent) as url, asking(behind(url, times={"upstream": 0.2})) as client:
        assert (await client.post(CHAT, json=body_of(CHAT, "hi"))).status_code == 502
    breaks = Reply("One two three four.", breaks_after=4, pieces=6)
    async with served(ScriptedUpstream(lambda _: breaks)) as url, asking(behind(url)) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(CHAT, json=body_of(CHAT, "hi", stream=True))
        await until(lambda: len(lines) == 2)
    assert [line["error"]["code"] for line in lines] == ["upstream-timeout", "upstream-broke-off"]
    assert [line["status"] for line in lines] == [502, 200]


async def test_an_upstreams_own_503_and_a_refusal_of_ours(lines):
    async with town(access_log="json") as t:
        t.upstream.status = 503
        client = await t.client("acme")
        assert (await client.post(CHAT, json=HI)).status_code == 503
        async with httpx2.AsyncClient(base_url=t.address) as stranger:
            assert (await stranger.post(CHAT, json=HI)).status_code == 401
        await until(lambda: len(lines) == 2)
    assert lines[0]["error"] == {
        "code": "upstream-error",
        "reason": "The upstream answered 503.",
    }
    assert lines[1]["error"] == {"code": "key-needed"}


async def test_failures_of_the_api_have_their_code_too(lines):
    async with asking(service_with(access_log="json")) as client:
        for path in ("/api/v1/sessions/none", "/api/v1/search?limit=x", "/api/v1/nowhere"):
            assert (await client.get(path)).status_code >= 400
        await until(lambda: len(lines) == 3)
    codes = [line["error"]["code"] for line in lines]
    assert codes == ["session-not-found", "invalid-input", "not-found"]
    assert lines[0]["session"] == "none"


async def test_an_outage_of_the_store_has_its_code(lines):
    store = AbsentStore()
    service = service_with(store, access_log="json", times={"store": 0.2})
    async with asking(service) as client:
        store.leave()
        assert (await client.post(CHAT, json=HI)).status_code == 503
        await until(lambda: lines)
        store.come_back()
    assert lines[0]["error"]["code"] == "store-unavailable"
    assert "store" in lines[0]["error"]["reason"]


async def test_off_logs_nothing(lines):
    async with asking(service_with(access_log="off"), ROUTES) as client:
        assert (await client.get("/who")).status_code == 200
    assert not lines


async def test_the_command_prints_it_on_standard_output_for_large_requests_too(tmp_path):
    large = {"role": "user", "content": WORDS * (MAX_BYTES // 20)}
    bodies = [body_of(CHAT, "hi"), {"model": "some-model", "messages": [large]}]
    bodies.append({**bodies[1], "stream": True})
    async with (
        served(ScriptedUpstream(lambda _: Reply("Hello there."))) as url,
        serve_process(f"sqlite:///{tmp_path}/test.db", url, tmp_path, access_log="json") as serving,
        serving.client() as client,
    ):
        for body in bodies:
            answer = await client.post(CHAT, json=body)
            assert answer.status_code == 200
            async with asyncio.timeout(SECONDS):
                written = await serving.process.stdout.readline()
            line = json.loads(written)
            assert line["request"] == answer.headers["refold-request-id"]
            assert line["session"] == answer.headers["refold-session"]
            assert (line["model"], line["upstream"]) == ("some-model", "upstream")
            assert line["tokens"]["output"] > 0
            assert b"launch" not in written
