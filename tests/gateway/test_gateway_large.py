"""Requests that take long to read and to log: nobody else waits for them."""

import asyncio
import threading

import pytest
from gateway_world import CHAT, PATHS, World, body_of

from refold.gateway import incoming, large_requests
from refold.gateway.dialects import dialect
from refold.testing.upstream import Reply

SECONDS = 60


@pytest.fixture
async def world():
    made = World(lambda _: Reply("Hello there."))
    yield made
    await made.aclose()


@pytest.mark.parametrize("path", PATHS)
async def test_others_are_answered_while_a_huge_body_is_read(world, path, monkeypatch):
    read, begun = dialect.bounded_json, asyncio.Event()
    loop, answered = asyncio.get_running_loop(), threading.Event()

    def slowly(raw, max_objects):
        if len(raw) > large_requests.LARGE:
            loop.call_soon_threadsafe(begun.set)
            assert answered.wait(SECONDS), "nobody was answered meanwhile"
        return read(raw, max_objects)

    monkeypatch.setattr(dialect, "bounded_json", slowly)
    huge = asyncio.create_task(world.ask(path, body_of(path, "x" * large_requests.LARGE)))
    async with asyncio.timeout(SECONDS):
        await begun.wait()
    assert (await world.ask(path, body_of(path, "hi"))).status_code == 200
    assert len(world.upstream.got) == 1
    answered.set()
    assert (await huge).headers["refold-managed"] == "yes"
    assert len(world.upstream.got) == 2


async def test_others_are_answered_while_the_model_of_a_huge_body_is_looked_for(world, monkeypatch):
    answered = threading.Event()
    look = world.gateway.pass_on.__globals__["_model_in"]

    def slowly(proxied):
        if len(proxied.body) > large_requests.LARGE:
            assert answered.wait(SECONDS), "nobody was answered meanwhile"
        return look(proxied)

    monkeypatch.setattr("refold.gateway.gateway._model_in", slowly)
    body = {"model": "some-model", "input": "x" * large_requests.LARGE}
    huge = asyncio.create_task(world.ask("/v1/embeddings", body))
    await asyncio.sleep(0)
    assert (await world.ask(CHAT, body_of(CHAT, "hi"))).status_code == 200
    answered.set()
    assert (await huge).headers["refold-managed"].startswith("no; reason=")
    assert [one.path for one in world.upstream.got] == [CHAT, "/v1/embeddings"]


@pytest.mark.parametrize("path", PATHS)
async def test_others_are_answered_while_a_long_past_is_logged(world, path, monkeypatch):
    monkeypatch.setattr(incoming, "_MAX_CHUNK", 2)
    said = [f"{nth}" for nth in range(401)]
    long = asyncio.create_task(world.ask(path, body_of(path, *said)))
    await asyncio.sleep(0)
    await world.ask(path, body_of(path, "hi"))
    await long
    key = "input" if path == "/v1/responses" else "messages"
    assert [len(one.body[key]) for one in world.upstream.got] == [1, 401]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("bound", ["_MAX_CHUNK", "_MAX_CHUNK_BYTES"])
async def test_a_long_past_that_came_in_pieces_is_one_session(world, path, bound, monkeypatch):
    monkeypatch.setattr(incoming, bound, 100 if bound == "_MAX_CHUNK_BYTES" else 4)
    appended, append = [], type(world.log).append

    async def counted(self, session, drafts, **more):
        appended.append(len([*drafts]))
        return await append(self, session, drafts, **more)

    monkeypatch.setattr(type(world.log), "append", counted)
    said = [f"{nth} {'long ' * 30 if nth == 7 else ''}" for nth in range(11)]
    first = await world.ask(path, body_of(path, *said))
    assert len(appended) > 4
    session = first.headers["refold-session"]
    assert [one["content"] for one in (await world.said(session))[:-1]] == said
    second = await world.ask(path, body_of(path, *said, "Hello there.", "more"))
    assert second.headers["refold-session"] == session
    assert await world.sessions() == [session]


async def test_small_bodies_need_no_thread():
    where = []
    work = large_requests.ThreadOffload()
    await work(large_requests.LARGE, lambda: where.append(threading.current_thread()))
    await work(large_requests.LARGE + 1, lambda: where.append(threading.current_thread()))
    work.close()
    assert where[0] is threading.current_thread()
    assert where[1] is not threading.current_thread()
