"""What is asked again: before it was answered, after an answer was lost, or said nothing."""

import asyncio
import json

import pytest
from gateway_edges import ENDS, KEYS, TOO_LONG, asgi, raw, released, until
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, body_of, text_of, worlds

from refold.gateway.session_resolver import SessionResolver
from refold.recall.text import rebuilt
from refold.testing.upstream import Refusal, Reply


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


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
    lease = SessionResolver.lease

    async def slow(self, incoming):
        placed = await lease(self, incoming)
        held.set()
        await first
        return placed

    monkeypatch.setattr(SessionResolver, "lease", slow)
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
