"""Live events: the entries of a session as they come."""

import asyncio
import json

import pytest
from api_serving import API, FORMAT, at, serving

from refold.log import Author, Message, Opened
from refold.service.api import events


@pytest.fixture
async def service():
    async with serving() as one:
        yield one


async def followed(service, secret, path, *, headers=(), stop):
    """The pieces of an event stream, until `stop` says so of all that came."""
    gone, pieces, status = asyncio.Event(), [], []
    fields = [(b"authorization", f"Bearer {secret}".encode()), *headers]
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": fields,
        "http_version": "1.1",
        "server": ("api.example", 80),
        "scheme": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
    }
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        if (first := next(asked, None)) is not None:
            return first
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        status.append(message.get("status"))
        pieces.append(message.get("body", b""))
        if stop(b"".join(pieces)):
            gone.set()

    async with asyncio.timeout(30):
        await service.app(scope, receive, send)
    return status[0], b"".join(pieces)


async def test_live_events_tell_of_each_entry_once_and_go_on_where_they_ended(service):
    secret, log, author = await service.key("acme"), service.store.log("acme"), Author()
    await log.append("s", [author.draft(Opened(FORMAT, "balanced"))], expected=0)
    spread = b'{"role": "user",\r\n "content": "hi"}'

    async def others():
        for _ in range(3):
            await asyncio.sleep(0.05)
            await log.append("s", [author.draft(Message(spread))], expected=None)

    writing = asyncio.create_task(others())
    path = at("s", "/events")
    status, first = await followed(service, secret, path, stop=lambda all_: b"id: 3\n" in all_)
    await writing
    assert status == 200
    assert events_in(first)[:2] == [("2", "message", "hi"), ("3", "message", "hi")]
    seen = [(b"last-event-id", b"3")]
    _, rest = await followed(
        service, secret, path, headers=seen, stop=lambda all_: b"id: 4\n" in all_
    )
    assert events_in(rest) == [("4", "message", "hi")]
    _, whole = await followed(
        service, secret, f"{path}?after=0", stop=lambda all_: b"id: 4\n" in all_
    )
    assert [one[0] for one in events_in(whole)] == ["1", "2", "3", "4"]
    assert not events._OPEN


def events_in(stream):
    """The id, the name and the words of each event."""
    found = []
    for block in stream.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "id" in fields:
            body = json.loads(fields["data"])["body"]
            found.append((fields["id"], fields["event"], body.get("content")))
    return found


async def test_live_events_end_when_the_service_drains_or_the_session_goes(service, monkeypatch):
    monkeypatch.setattr(events, "_HEARTBEAT", 0.01)
    secret, log, author = await service.key("acme"), service.store.log("acme"), Author()
    await log.append("s", [author.draft(Opened(FORMAT, "balanced"))], expected=0)
    path = at("s", "/events")
    beaten = asyncio.Event()
    beats = lambda all_: b"still here" in all_ and beaten.set()  # noqa: E731 - it is given
    live = asyncio.create_task(followed(service, secret, path, stop=beats))
    await beaten.wait()
    await log.forget("s")
    _, ended = await live
    assert b": still here\n\n" in ended
    assert b"session-forgotten" in ended
    await log.append("t", [author.draft(Opened(FORMAT, "balanced"))], expected=0)
    beaten.clear()
    live = asyncio.create_task(followed(service, secret, at("t", "/events"), stop=beats))
    await beaten.wait()
    service.state.draining.set()
    await live
    status, refused = await followed(service, secret, at("t", "/events"), stop=lambda _: False)
    assert (status, json.loads(refused)["code"]) == (503, "draining")


async def test_a_tenant_has_only_so_many_streams_and_ids_must_be_places(service, monkeypatch):
    monkeypatch.setattr(events, "MAX_STREAMS", 0)
    secret, log = await service.key("acme"), service.store.log("acme")
    await log.append("s", [Author().draft(Opened(FORMAT, "balanced"))], expected=0)
    status, _ = await followed(service, secret, at("s", "/events"), stop=lambda _: False)
    assert status == 429
    for bad in (b"x", b"-1", b"9" * 400, "²".encode()):
        status, _ = await followed(
            service, secret, at("s", "/events"), headers=[(b"last-event-id", bad)], stop=bool
        )
        assert status == 422


@pytest.mark.parametrize(("length", "expected"), [(20_000, 404), (1_000_000, 431)])
async def test_a_path_that_no_id_could_make_so_long_is_refused_shortly(service, length, expected):
    secret = await service.key("acme")
    path = f"{API}/sessions/{'x' * length}/entries"
    status, told = await followed(service, secret, path, stop=lambda _: False)
    assert status == expected
    assert len(told) < 1_000
