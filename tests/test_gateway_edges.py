"""The edges of the gateway: who leaves, what breaks, what is asked twice at once."""

import asyncio
import gzip
import json

import httpx2
import pytest
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, World, body_of, text_of

from refold.errors import StoreFailed
from refold.gateway.dialects import DIALECTS
from refold.gateway.listening import Events, Listening
from refold.gateway.placing import Placing
from refold.gateway.rendering import _as_sent
from refold.models.catalogue import ModelSettings
from refold.recall.records import rebuilt
from refold.testing.upstream import Call, Refusal, Reply
from refold.testing.upstream_replies import Rendered
from refold.testing.upstream_script import Got

KEYS = {CHAT: "messages", RESPONSES: "input", MESSAGES: "messages"}
ENDS = {CHAT: b"[DONE]", RESPONSES: b"response.completed", MESSAGES: b"message_stop"}
TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 3000 tokens. However, "
        "your messages resulted in 9000 tokens.",
        "code": "context_length_exceeded",
    }
}


@pytest.fixture
async def world():
    made = []

    def make(reply=lambda _: Reply("Hello there."), **more):
        made.append(World(reply, **more))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


def raw(w, *chunks, kind=b"text/event-stream", status=200, headers=(), after=None):
    """Have the upstream answer with these bytes."""

    async def app(_scope, receive, send):
        await receive()
        start = {"type": "http.response.start", "status": status}
        await send({**start, "headers": [(b"content-type", kind), *headers]})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if after is not None:
            raise after
        await send({"type": "http.response.body", "body": b""})

    w._upstream._transport = httpx2.ASGITransport(app)


def events(path, reply):
    got = Got(path, {}, b"{}")
    return [*Rendered(got, reply, 1).events()]


async def asgi(app, path, body, send, gone=None, version="2.3"):  # noqa: PLR0913, PLR0917
    """Ask over ASGI itself; the client leaves when it is told to."""
    came = iter([{"type": "http.request", "body": body, "more_body": False}])
    gone = gone or asyncio.Event()

    async def receive():
        for one in came:
            return one
        await gone.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": version},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"gateway")],
        "scheme": "http",
        "server": ("gateway", 80),
        "client": ("client", 1),
    }
    await app(scope, receive, send)


async def until(done):
    """Wait until something is so."""
    while not done():  # noqa: ASYNC110 - it says so nowhere else
        await asyncio.sleep(0)


def released(w):
    """Nobody holds a place, and nothing is left to be written."""
    keeping = w.gateway.keeping
    assert not w.gateway._working
    assert [kept.users for kept in keeping._open.values() if kept.users] == []
    assert not any(kept.turn.locked() for kept in keeping._open.values())
    assert keeping._opening == {}


async def logged(w):
    """All messages that the log has, as JSON text."""
    lines = [json.dumps(await w.said(name)) for name in await w.sessions()]
    return "\n".join(lines)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("nth", "more"), [(0, 1), (1, 1), (2, 1), (1, 100), (2, 100)])
async def test_a_store_that_fails_ends_nothing_that_is_not_logged(  # noqa: PLR0913, PLR0917
    world, path, stream, nth, more, monkeypatch
):
    w = world(lambda _: Reply("Hello there.", pieces=3))
    append = type(w.log).append
    count = iter(range(10_000))

    async def failing(self, session, drafts, **kept):
        if nth <= next(count) < nth + more:
            raise StoreFailed("The store is away.", "Wait.")
        return await append(self, session, drafts, **kept)

    monkeypatch.setattr(type(w.log), "append", failing)
    body = body_of(path, "hi", stream=stream)
    try:
        answer = await w.ask(path, body)
        got = answer.content
        assert answer.status_code == 500
    except StoreFailed:
        assert stream
        got = b""
    assert ENDS[path] not in got
    await w.quiet()
    released(w)
    monkeypatch.undo()
    assert (await w.ask(path, body)).status_code == 200
    await w.quiet()
    released(w)


@pytest.mark.parametrize("version", ["2.3", "2.4"])
@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_is_gone_before_the_first_byte_leaves_its_place(world, path, version):
    w = world(lambda _: Reply("Hello there."))
    body = body_of(path, "hi", stream=True)

    async def send(_message):
        raise OSError("gone")

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the framework says
        await asgi(w.app, path, json.dumps(body).encode(), send, version=version)
    await w.quiet()
    released(w)
    gone = asyncio.Event()
    gone.set()

    async def heard(_message):
        await asyncio.sleep(0)

    await asgi(w.app, path, json.dumps(body).encode(), heard, gone)
    await w.quiet()
    released(w)
    assert ENDS[path] in (await w.ask(path, body)).content


async def test_names_of_sessions_that_are_nowhere_cost_nothing(world):
    w = world()
    for nth in range(3):
        with pytest.raises(Exception, match="no session"):
            async with w.gateway.keeping.using("default", f"nowhere-{nth}"):
                pass
    released(w)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_an_upstream_that_packs_what_it_sends_is_understood(world, path, stream):
    w = world()
    reply = Reply("Hello there.")
    if stream:
        plain, kind = b"".join(events(path, reply)), b"text/event-stream"
    else:
        made = Rendered(Got(path, {}, b"{}"), reply, 1).whole()
        plain, kind = json.dumps(made).encode(), b"application/json"
    raw(w, gzip.compress(plain), kind=kind, headers=[(b"content-encoding", b"gzip")])
    answer = await w.ask(path, body_of(path, "hi", stream=stream))
    assert answer.content == plain
    assert "Hello there." in await logged(w)


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("path", PATHS)
async def test_a_last_event_without_its_blank_line_stays_the_last(world, path, cut, monkeypatch):
    w = world()
    told = events(path, Reply("Hello there."))
    plain = b"".join(told)[:-cut]
    raw(w, plain)
    answer = await w.ask(path, body_of(path, "hi", stream=True))
    assert answer.content == plain
    if path != RESPONSES:  # there the last event has the whole answer
        assert "Hello there." in await logged(w)

    w = world()
    raw(w, plain)
    append = type(w.log).append

    async def checked(self, session, drafts, **more):
        if any(b"Hello there." in one.body for one in drafts):
            raise StoreFailed("The store is away.", "Wait.")
        return await append(self, session, drafts, **more)

    monkeypatch.setattr(type(w.log), "append", checked)
    sent = []

    async def send(message):
        sent.append(message.get("body", b""))

    body = json.dumps(body_of(path, "hi", stream=True)).encode()
    with pytest.raises(StoreFailed):
        await asgi(w.app, path, body, send)
    got = b"".join(sent)
    assert b"data: " in got
    assert ENDS[path] not in got


async def test_an_event_that_is_too_large_to_read_passes(world, monkeypatch):
    monkeypatch.setattr(Events.__init__, "__defaults__", (1000,))
    for told in ([b"data: " + b"x" * 3000 + b"\n\n"], [b"data: {}\n\n", b"data: " + b"x" * 3000]):
        w = world()
        raw(w, *told)
        answer = await w.ask(CHAT, body_of(CHAT, "hi", stream=True))
        assert answer.status_code == 200
        assert answer.content == b"".join(told)
        await w.quiet()
        released(w)


async def test_thoughts_that_a_client_leaves_out_are_not_sent_for_it(world):
    w = world(lambda _: Reply("", (Call("c1", "look", {}),), thought="Hm."))
    body = body_of(RESPONSES, "hi")
    items = (await w.ask(RESPONSES, body)).json()["output"]
    assert [one["type"] for one in items] == ["reasoning", "function_call"]
    body["input"] += [
        {key: items[1][key] for key in ("type", "call_id", "name", "arguments")},
        {"type": "function_call_output", "call_id": "c1", "output": "there"},
    ]
    await w.ask(RESPONSES, body)
    assert w.upstream.got[1].body == body
    assert len(await w.sessions()) == 1


async def test_what_is_edited_part_by_part_has_the_parts_that_were_logged(world):
    w = world(lambda _: Reply("Hello there.", thought="Hm."))
    session = (await w.ask(MESSAGES, body_of(MESSAGES, "hi"))).headers["refold-session"]
    theirs = json.dumps({"role": "assistant", "content": "Hello there."}).encode()
    async with w.gateway.keeping.using("default", session) as one:
        wire, row = one.sheet.wire, one.sheet.rows[1]
    assert _as_sent(wire, row, theirs, set()).payload == theirs
    assert _as_sent(wire, row, theirs, {row.seq}).payload == row.payload
    marked = json.loads(row.payload)
    marked["content"][1]["cache_control"] = {"type": "ephemeral"}
    same = json.dumps(marked).encode()
    assert _as_sent(wire, row, same, {row.seq}).payload == same


@pytest.mark.parametrize("path", PATHS)
async def test_a_retry_never_sees_what_the_first_was_answered(world, path):
    first, second = asyncio.Event(), asyncio.Event()
    count = iter(range(100))

    async def reply(_):
        nth = next(count)
        if nth == 0:
            return Reply("Hello there.")
        if nth == 1:
            await first.wait()
            return Reply("The first answer.")
        if nth == 2:
            await second.wait()
            return Refusal(400, TOO_LONG)
        return Reply("The second answer.")

    w = world(reply)
    said = [f"{n}: " + "something to say " * 60 for n in range(31)]
    await w.ask(path, body_of(path, *said))
    body = body_of(path, *said, "Hello there.", "more")
    one = asyncio.create_task(w.ask(path, body))
    await until(lambda: len(w.upstream.got) == 2)
    two = asyncio.create_task(w.ask(path, body))
    await until(lambda: len(w.upstream.got) == 3)
    first.set()
    assert text_of(path, (await one).json()) == "The first answer."
    second.set()
    answer = await two
    assert answer.status_code == 200
    assert "The first answer." not in w.upstream.got[-1].raw.decode()
    assert w.upstream.got[-1].body[KEYS[path]][-1]["content"] == "more"
    lines = [await w.said(name) for name in await w.sessions()]
    assert not any("first" in line and "second" in line for line in map(json.dumps, lines))
    await w.quiet()
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_a_retry_that_is_placed_before_the_first_is_answered_sends_its_own(
    world, path, monkeypatch
):
    held, count = asyncio.Event(), iter(range(10))

    async def reply(_):
        nth = next(count)
        if nth == 1:
            await held.wait()
        return Reply(["Hello there.", "The first answer.", "The second answer."][nth])

    w = world(reply)
    await w.ask(path, body_of(path, "hi"))
    body = body_of(path, "hi", "Hello there.", "more")
    first = asyncio.create_task(w.ask(path, body))
    await until(lambda: len(w.upstream.got) == 2)
    place = Placing.place

    async def slow(self, wanted):
        placed = await place(self, wanted)
        held.set()
        await first
        return placed

    monkeypatch.setattr(Placing, "place", slow)
    second = await w.ask(path, body)
    assert w.upstream.got[-1].body == body
    assert text_of(path, second.json()) == "The second answer."
    session, seq = second.headers["refold-request"].rsplit(":", 1)
    assert "first" not in str(await rebuilt(w.log, session, int(seq)))
    lines = [json.dumps(await w.said(name)) for name in await w.sessions()]
    assert sorted("first" in line for line in lines) == [False, True]
    assert all(len(json.loads(line)) == 4 for line in lines)
    await w.quiet()
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_requests_that_name_one_session_at_once_get_what_they_sent(world, path):
    held = asyncio.Event()

    async def reply(_):
        await held.wait()
        return Reply("Hello there.")

    w = world(reply)
    bodies = [body_of(path, *[f"{nth} says {n}" for n in range(2 * nth + 1)]) for nth in range(5)]
    asking = [asyncio.create_task(w.ask(path, one, **{"refold-session": "mine"})) for one in bodies]
    await until(lambda: len(w.upstream.got) == 5)
    held.set()
    answers = await asyncio.gather(*asking)
    assert [one.status_code for one in answers] == [200] * 5
    sent = sorted(json.dumps(one.body) for one in w.upstream.got)
    assert sent == sorted(map(json.dumps, bodies))
    await w.quiet()
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_requests_that_name_one_session_never_send_each_others_words(world, path):
    """Also not when they are refused for their length while others go on in the session."""
    gate = asyncio.Event()
    count = iter(range(100))

    async def reply(_):
        nth = next(count)
        if nth == 0:
            await gate.wait()
            return Refusal(400, TOO_LONG)
        return Reply("Hello there.")

    w = world(reply)
    said = [f"anna {n}: " + "something to say " * 60 for n in range(31)]
    mine = {"refold-session": "mine"}
    one = asyncio.create_task(w.ask(path, body_of(path, *said), **mine))
    await until(lambda: w.upstream.got)
    await w.ask(path, body_of(path, "bert 1", "bert 2", "bert 3"), **mine)
    gate.set()
    assert (await one).status_code == 200
    for got in w.upstream.got:
        words = got.raw.decode()
        assert ("anna" in words) is not ("bert" in words)


@pytest.mark.parametrize("path", PATHS)
async def test_a_session_that_was_forgotten_elsewhere_stops_nobody(world, path):
    w = world()
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    await w.log.forget(session)
    on = await w.ask(path, body_of(path, "hi", "Hello there.", "on"))
    assert on.status_code == 200, on.text
    assert len(await w.said(on.headers["refold-session"])) == 4
    session = on.headers["refold-session"]
    await w.log.forget(session)
    await w.gateway.keeping.drop("default", session)
    on = await w.ask(path, body_of(path, "hi", "Hello there.", "on", "Hello there.", "on"))
    assert on.status_code == 200, on.text
    assert await w.sessions() == [on.headers["refold-session"]]


def created(status="in_progress", error=None):
    return {"id": "resp_1", "object": "response", "status": status, "error": error, "output": []}


def named(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


REFUSED = {
    CHAT: [b"data: " + json.dumps(TOO_LONG).encode() + b"\n\n", b"data: [DONE]\n\n"],
    RESPONSES: [
        named("response.created", response=created()),
        named("response.in_progress", response=created()),
        named("response.failed", response=created("failed", TOO_LONG["error"])),
    ],
    MESSAGES: [
        named(
            "error",
            error={
                "type": "invalid_request_error",
                "message": "prompt is too long: 9000 tokens > 3000 maximum",
            },
        )
    ],
}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_within_a_stream_is_one(world, path, together):
    w = world()
    chunks = [b"".join(REFUSED[path])] if together else REFUSED[path]
    upstream, asked = w.upstream, []

    async def app(scope, receive, send):
        if asked:
            return await upstream(scope, receive, send)
        asked.append(1)
        await receive()
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        return await send({"type": "http.response.body", "body": b""})

    w._upstream._transport = httpx2.ASGITransport(app)
    said = [f"{n}: " + "something to say " * 60 for n in range(31)]
    answer = await w.ask(path, body_of(path, *said, stream=True))
    assert ENDS[path] in answer.content
    assert len(w.upstream.got) == 1
    assert len(w.upstream.got[0].raw) < 14_000


@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_within_a_stream_that_nothing_helps_passes_whole(world, path):
    w = world()
    raw(w, *REFUSED[path])
    answer = await w.ask(path, body_of(path, "hi", stream=True))
    assert answer.content == b"".join(REFUSED[path])
    assert answer.headers["content-type"].startswith("text/event-stream")
    await w.quiet()
    released(w)


EMPTY = {
    CHAT: {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}}]},
    RESPONSES: {"object": "response", "status": "completed", "output": []},
    MESSAGES: {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
}


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_after_an_answer_that_says_nothing_it_goes_on(world, path, sends):
    w = world()
    through = w._upstream._transport
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    said = ["hi", "Hello there.", "more"]
    raw(w, json.dumps(EMPTY[path]).encode(), kind=b"application/json")
    answer = await w.ask(path, body_of(path, *said))
    assert answer.json() == EMPTY[path]
    w._upstream._transport = through
    body = body_of(path, *said, "", "on")
    if not sends:
        del body[KEYS[path]][3]
    on = await w.ask(path, body)
    assert on.status_code == 200
    assert w.upstream.got[-1].body == body
    if sends and path != RESPONSES:  # where nothing can be sent for nothing
        assert on.headers["refold-session"] == session
    body[KEYS[path]] += [
        {"role": "assistant", "content": "Hello there."},
        {"role": "user", "content": "so"},
    ]
    again = await w.ask(path, body)
    assert w.upstream.got[-1].body == body
    assert again.headers["refold-session"] == on.headers["refold-session"]


@pytest.mark.parametrize("path", PATHS)
async def test_asking_on_from_the_answer_itself_may_be_retried(world, path):
    slow = Refusal(429, {"error": {"message": "Slow."}})
    replies = iter([Reply("Hello"), slow, Reply(" there.")])
    w = world(lambda _: next(replies))
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    body = body_of(path, "hi", "Hello")
    assert (await w.ask(path, body)).status_code == 429
    again = await w.ask(path, body)
    assert again.headers["refold-session"] == session
    assert w.upstream.got[-1].body == body


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_that_was_forgotten_and_begun_anew_elsewhere_shows_nothing_of_the_first(
    world, path
):
    w, other, mine = world(), world(), {"refold-session": "mine"}
    other.gateway.keeping._store = w.store
    other.store = w.store
    await w.ask(path, body_of(path, "my secret"), **mine)
    await w.log.forget("mine")
    said = ["hi"]
    for _ in range(3):
        await other.ask(path, body_of(path, *said), **mine)
        said += ["Hello there.", "on"]
    await w.ask(path, body_of(path, *said), **mine)
    assert "secret" not in json.dumps(await w.said("mine"))
    assert len(await w.said("mine")) == 8


@pytest.mark.parametrize("path", PATHS)
async def test_two_gateways_take_turns(path):
    one = World(lambda got: Reply(f"Answer {len(got.raw)}."))
    two = World(lambda got: Reply(f"Answer {len(got.raw)}."), store=one.store)
    body, names = body_of(path, "hi"), set()
    for nth in range(8):
        w = [one, two, two][nth % 3]
        answer = await w.ask(path, body)
        names.add(answer.headers["refold-session"])
        assert w.upstream.got[-1].body == body
        body[KEYS[path]].append({"role": "assistant", "content": text_of(path, answer.json())})
        body[KEYS[path]].append({"role": "user", "content": f"on {nth}"})
    (name,) = names
    lines = [json.dumps(await w.said(name)) for w in (one, two)]
    assert lines[0] == lines[1]
    assert len(json.loads(lines[0])) == 16
    await one.aclose()
    await two.aclose()


@pytest.mark.parametrize("path", PATHS)
async def test_a_session_that_is_let_go_of_while_others_wait_is_opened_again(world, path):
    held = asyncio.Event()

    async def reply(got):
        if "slow" in got.raw.decode():
            await held.wait()
        return Reply("Hello there.")

    w = world(reply)
    w.gateway.keeping._most = 1
    asking = [asyncio.create_task(w.ask(path, body_of(path, f"slow {n}"))) for n in range(4)]
    for n in range(4):
        assert (await w.ask(path, body_of(path, f"hi {n}"))).status_code == 200
    held.set()
    answers = await asyncio.gather(*asking)
    assert [one.status_code for one in answers] == [200] * 4
    for n, answer in enumerate(answers):
        on = await w.ask(path, body_of(path, f"slow {n}", "Hello there.", "on"))
        assert on.headers["refold-session"] == answer.headers["refold-session"]
    await w.quiet()
    released(w)
    assert w.gateway.keeping.count <= 1


async def left_after(w, path, body, chunks):
    """Ask over ASGI, and leave after so many chunks of the answer."""
    gone, got = asyncio.Event(), []

    async def send(message):
        if message["type"] == "http.response.body":
            got.append(message["body"])
        if len(got) >= chunks:
            gone.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    await asgi(w.app, path, json.dumps(body).encode(), send, gone)
    await w.quiet()
    return b"".join(got)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("chunks", [0, 1, 2])
@pytest.mark.parametrize("stream", [False, True])
async def test_who_leaves_may_ask_again(world, path, chunks, stream):
    w = world(lambda _: Reply("Hello there."))
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    body = body_of(path, "hi", "Hello there.", "more", stream=stream)
    await left_after(w, path, body, chunks)
    released(w)
    again = await w.ask(path, body)
    assert again.headers["refold-session"] == session
    assert len(await w.said(session)) == 4
    on = await w.ask(path, body_of(path, "hi", "Hello there.", "more", "Hello there.", "on"))
    assert on.headers["refold-session"] == session
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_of_another_format_is_refused(world, path):
    w = world()
    other = PATHS[PATHS.index(path) - 1]
    assert (await w.ask(other, body_of(other, "hi"), **{"refold-session": "x"})).status_code == 200
    refused = await w.ask(path, body_of(path, "hi"), **{"refold-session": "x"})
    assert refused.status_code == 500
    assert "format" in refused.text
    for name in ("", "a" * 5000, "with space", "é"):
        odd = await w.client.post(
            path, json=body_of(path, "hi"), headers=[(b"refold-session", name.encode("latin-1"))]
        )
        assert odd.status_code in {200, 500}
    released(w)


ONLY_OUTPUT = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens. However, you requested "
        "9010 tokens (10 in the messages, 9000 in the completion). Please reduce the length of the "
        "messages or completion.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}


@pytest.mark.parametrize("path", PATHS)
async def test_what_only_the_asked_for_output_makes_too_long_is_refused_as_it_was(world, path):
    w = world(lambda _: Refusal(400, ONLY_OUTPUT))
    limit = "max_output_tokens" if path == RESPONSES else "max_tokens"
    body = body_of(path, "hi", **{limit: 9000})
    for _ in range(3):
        refused = await w.ask(path, body)
        assert (refused.status_code, refused.json()) == (400, ONLY_OUTPUT)
    assert all(one.body == body for one in w.upstream.got)
    assert len(await w.sessions()) == 1
    await w.quiet()
    released(w)
    w.upstream._reply = lambda _: Reply("Hello there.")
    said = [f"{n}: " + "something to say " * 20 for n in range(21)]
    for size in (1, 9, 21):
        answer = await w.ask(path, body_of(path, *said[:size], **{limit: 100}))
        assert answer.status_code == 200
        assert w.upstream.got[-1].body == body_of(path, *said[:size], **{limit: 100})


@pytest.mark.parametrize("path", PATHS)
async def test_refusals_again_and_again_end(world, path):
    w = world(lambda _: Refusal(400, TOO_LONG))
    said = [f"{n}: " + "something to say " * 60 for n in range(31)]
    for _ in range(3):
        refused = await w.ask(path, body_of(path, *said))
        assert (refused.status_code, refused.json()) == (400, TOO_LONG)
    sizes = [len(one.raw) for one in w.upstream.got]
    assert len(sizes) <= 15
    for got in w.upstream.got:
        assert got.body[KEYS[path]][-1]["content"] == said[-1]
    assert len(await w.sessions()) == 1
    await w.quiet()
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_one_message_of_two_megabytes(world, path):
    w = world()
    body = body_of(path, "x" * 2_000_000)
    answer = await w.ask(path, body)
    assert answer.status_code == 200
    assert w.upstream.got[0].body == body
    body["model"] = "small"
    w.gateway._models = {"small": ModelSettings(window=3000)}
    await w.ask(path, body)
    assert w.upstream.got[1].body == body


@pytest.mark.parametrize("path", PATHS)
async def test_a_past_that_was_rewound_elsewhere_leaves_the_newest(world, path):
    w = world()
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    await w.ask(path, body_of(path, "hi", "Hello there.", "secret"))
    async with w.gateway.keeping.using("default", session) as one:
        await one.rewind(one.sheet.rows[1].seq)
    body = body_of(path, "hi", "Hello there.", "secret", "Hello there.", "on")
    answer = await w.ask(path, body)
    assert answer.status_code == 200
    sent = w.upstream.got[-1].body[KEYS[path]]
    assert sent[-1] == body[KEYS[path]][-1]
    assert answer.headers["refold-session"] == session
    async with w.gateway.keeping.using("default", session) as one:
        await one.clear()
    body[KEYS[path]] += [
        {"role": "assistant", "content": "Hello there."},
        {"role": "user", "content": "so"},
    ]
    answer = await w.ask(path, body)
    assert w.upstream.got[-1].body[KEYS[path]][-1]["content"] == "so"


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_that_was_logged_and_lost_is_given_anew_in_one_line(world, path):
    replies = iter(["One.", "Two.", "Three.", "Four.", "Five."])
    w = world(lambda _: Reply(next(replies)))
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    body = body_of(path, "hi", "One.", "more", stream=True)
    sent = await left_after(w, path, body, 10_000)
    assert ENDS[path] in sent
    again = await w.ask(path, {**body, "stream": False})
    assert text_of(path, again.json()) == "Three."
    assert again.headers["refold-session"] == session
    assert await w.sessions() == [session]
    late = await w.ask(path, body_of(path, "hi", "One.", "more", "Two.", "on"))
    assert "Two." in w.upstream.got[-1].raw.decode()
    assert late.headers["refold-session"] != session
    on = await w.ask(path, body_of(path, "hi", "One.", "more", "Three.", "on"))
    assert on.headers["refold-session"] == session


class Chunks:
    """A response that comes in these chunks; how many were read."""

    def __init__(self, *chunks):
        self.chunks, self.read = chunks, 0

    async def aiter_raw(self):
        for chunk in self.chunks:
            self.read += 1
            yield chunk


@pytest.mark.parametrize("path", PATHS)
async def test_the_first_event_is_the_first_that_says_something(path):
    response = Chunks(b": wait\n\n", *REFUSED[path])
    listening = Listening(DIALECTS[path], response)
    await listening.begin()
    assert listening.error is not None
    assert await listening.refused() == b"".join(response.chunks)
    told = events(path, Reply("Hello there."))
    response = Chunks(b": wait\n\n", *told)
    listening = Listening(DIALECTS[path], response)
    await listening.begin()
    assert (listening.error, listening.silent) == (None, False)
    assert response.read < 4
    passed = [chunk async for chunk in listening.passed()]
    assert b"".join(passed) + listening.held == b"".join(response.chunks)
    assert ENDS[path] not in b"".join(passed)


@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_of_nothing_passes_as_it_is_and_may_be_retried(world, path):
    w = world()
    through = w._upstream._transport
    raw(w)
    empty = await w.ask(path, body_of(path, "hi", stream=True))
    assert (empty.status_code, empty.content) == (200, b"")
    w._upstream._transport = through
    again = await w.ask(path, body_of(path, "hi", stream=True))
    assert again.headers["refold-session"] == empty.headers["refold-session"]
    assert ENDS[path] in again.content
    await w.quiet()
    released(w)
