"""Sessions that several use at once, here or in another gateway, or that are gone meanwhile."""

import asyncio
import json

import pytest
from gateway_edges import KEYS, TOO_LONG, released, until
from gateway_world import CHAT, PATHS, World, body_of, text_of, worlds

from refold.errors import StoreFailed
from refold.log import Requested
from refold.models import counter_for
from refold.session import Session
from refold.testing.upstream import Refusal, Reply
from refold.view.record import correction_in


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


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
    await w.gateway.sessions.drop("default", session)
    on = await w.ask(path, body_of(path, "hi", "Hello there.", "on", "Hello there.", "on"))
    assert on.status_code == 200, on.text
    assert await w.sessions() == [on.headers["refold-session"]]


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_that_was_forgotten_and_begun_anew_elsewhere_shows_nothing_of_the_first(
    world, path
):
    w, other, mine = world(), world(), {"refold-session": "mine"}
    other.gateway.sessions._store = w.store
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
    w.gateway.sessions.pool.max_idle = 1
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
    assert w.gateway.sessions.pool.counts.total <= 1


@pytest.mark.parametrize("path", PATHS)
async def test_a_past_that_was_rewound_elsewhere_leaves_the_newest(world, path):
    w = world()
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    await w.ask(path, body_of(path, "hi", "Hello there.", "secret"))
    async with w.gateway.sessions.using("default", session) as one:
        await one.rewind(one.inputs.rows[1].seq)
    body = body_of(path, "hi", "Hello there.", "secret", "Hello there.", "on")
    answer = await w.ask(path, body)
    assert answer.status_code == 200
    sent = w.upstream.got[-1].body[KEYS[path]]
    assert sent[-1] == body[KEYS[path]][-1]
    assert answer.headers["refold-session"] == session
    async with w.gateway.sessions.using("default", session) as one:
        await one.clear()
    body[KEYS[path]] += [
        {"role": "assistant", "content": "Hello there."},
        {"role": "user", "content": "so"},
    ]
    answer = await w.ask(path, body)
    assert w.upstream.got[-1].body[KEYS[path]][-1]["content"] == "so"


async def test_a_session_is_opened_by_one_at_a_time_also_after_one_failed(world, monkeypatch):
    """Three requests of one session, of which the first cannot open it."""
    w, opens, gates = world(), Session.open.__func__, [asyncio.Event() for _ in range(3)]
    begun, at_once = [], set()

    async def opened(cls, log, name, *args, **options):
        nth = len(begun)
        begun.append(name)
        at_once.add(nth)
        assert len(at_once) == 1, "another request opens it, too"
        await gates[min(nth, 2)].wait()
        at_once.discard(nth)
        if nth == 0:
            raise StoreFailed("The store cannot be reached.", "Try again.")
        return await opens(cls, log, name, *args, **options)

    monkeypatch.setattr(Session, "open", classmethod(opened))

    def ask(words):
        return asyncio.create_task(w.ask(CHAT, body_of(CHAT, words), **{"refold-session": "x"}))

    first, second = ask("one"), ask("two")
    await until(lambda: begun)
    for _ in range(50):
        await asyncio.sleep(0)
    gates[0].set()
    await until(lambda: len(begun) == 2)
    third = ask("three")
    for _ in range(50):
        await asyncio.sleep(0)
    gates[1].set()
    gates[2].set()
    answers = await asyncio.gather(first, second, third)
    assert [one.status_code for one in answers] == [500, 200, 200]
    assert begun.count("x") == 2
    await w.quiet()
    released(w)


async def test_a_gateway_counts_a_session_as_another_one_learned_to(world):
    def reply(got):
        plain = sum(counter_for("some-model").text(one["content"]) for one in got.body["messages"])
        return Reply("Hello there.", usage=(round(1.5 * plain), 5))

    said = ["something to say " * 300]

    async def ask(w, times):
        for _ in range(times):
            await w.ask(CHAT, body_of(CHAT, *said), **{"refold-session": "mine"})
            await w.quiet()
            said.extend(("Hello there.", "something more " * 300))

    one = world(reply)
    await ask(one, 5)
    other = world(reply, store=one.store)
    await ask(other, 2)
    await ask(one, 1)
    records = [value for value in await one.values("mine") if isinstance(value, Requested)]
    corrections = [correction_in(value) for value in records]
    assert len(corrections) == 8
    assert corrections[0] is None
    learned = corrections[4]
    assert learned is not None
    assert abs(learned.factor - 1.5) < 0.1
    assert corrections[5:] == [learned] * 3
