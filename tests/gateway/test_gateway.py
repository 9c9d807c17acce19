"""What goes through the gateway, over scripted upstreams: answers, the log, errors, overflow."""

import asyncio
import json

import pytest
from gateway_world import CHAT, PATHS, RESPONSES, World, body_of, text_of, worlds

from refold.log import Rewound
from refold.models import ModelSettings
from refold.session import receipt_of
from refold.testing.upstream import Call, Refusal, Reply


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_say_what_their_session_was_billed_before(world, stream):
    priced = {"some-model": ModelSettings(input_price=3, output_price=15)}
    w = world(models=priced, receipts=True)
    first = await w.ask(CHAT, body_of(CHAT, "hi", stream=stream))
    assert first.headers["refold-receipt"] == "paid=0.000000, whole=0.000000, saved=0.000000"
    await w.quiet()
    billed = await receipt_of(w.log, first.headers["refold-session"])
    second = await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "more", stream=stream))
    paid, whole, saved = (part.split("=") for part in second.headers["refold-receipt"].split(", "))
    assert (paid[0], float(paid[1])) == ("paid", pytest.approx(billed.paid, abs=1e-6))
    assert (whole[0], float(whole[1])) == ("whole", pytest.approx(billed.whole, abs=1e-6))
    assert (saved[0], float(saved[1])) == ("saved", pytest.approx(-billed.debt, abs=1e-6))
    assert billed.paid > 0


async def test_answers_say_nothing_of_costs_unless_that_is_set(world):
    answer = await world().ask(CHAT, body_of(CHAT, "hi"))
    assert "refold-receipt" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_conversation_goes_on_in_one_session(world, path, stream):
    w = world()
    first = await w.ask(path, body_of(path, "hi", stream=stream))
    assert first.status_code == 200
    assert first.headers["refold-managed"] == "yes"
    if not stream:
        assert text_of(path, first.json()) == "Hello there."
    second = await w.ask(path, body_of(path, "hi", "Hello there.", "more", stream=stream))
    assert second.headers["refold-session"] == first.headers["refold-session"]
    assert second.headers["refold-request"] != first.headers["refold-request"]
    assert await w.sessions() == [first.headers["refold-session"]]
    said = await w.said(first.headers["refold-session"])
    assert [one["role"] for one in said] == ["user", "assistant"] * 2
    sent = [one.body for one in w.upstream.got]
    assert sent[1] == body_of(path, "hi", "Hello there.", "more", stream=stream)


@pytest.mark.parametrize("path", PATHS)
async def test_what_is_asked_again_is_answered_again(world, path):
    replies = iter(["One.", "Two.", "Three.", "Four."])
    w = world(lambda _: Reply(next(replies)))
    first = await w.ask(path, body_of(path, "hi"))
    session = first.headers["refold-session"]
    parsed_request = body_of(path, "hi", "One.", "more")
    assert text_of(path, (await w.ask(path, parsed_request)).json()) == "Two."
    again = await w.ask(path, parsed_request)
    assert again.headers["refold-session"] == session
    assert text_of(path, again.json()) == "Three."
    assert len(await w.said(session)) == 4
    assert sum(isinstance(one, Rewound) for one in await w.values(session)) == 1
    on = await w.ask(path, body_of(path, "hi", "One.", "more", "Three.", "and more"))
    assert on.headers["refold-session"] == session
    assert await w.sessions() == [session]


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_that_was_asked_again_may_still_be_gone_on_from(world, path):
    replies = iter(["One.", "Two.", "Three.", "Four."])
    w = world(lambda _: Reply(next(replies)))
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    parsed_request = body_of(path, "hi", "One.", "more")
    await w.ask(path, parsed_request)
    await w.ask(path, parsed_request)
    other = await w.ask(path, body_of(path, "hi", "One.", "more", "Two.", "on"))
    assert other.headers["refold-session"] != session
    said = await w.said(other.headers["refold-session"])
    assert len(said) == 6
    assert "Two." in json.dumps(said[3])


@pytest.mark.parametrize("path", PATHS)
async def test_a_past_that_was_rewritten_is_a_fork(world, path):
    w = world(lambda _: Reply(f"Answer {len(w.upstream.got)}."))
    session = (await w.ask(path, body_of(path, "hi"))).headers["refold-session"]
    await w.ask(path, body_of(path, "hi", "Answer 1.", "more"))
    edited = await w.ask(path, body_of(path, "hi", "Answer 1.", "other"))
    fork = edited.headers["refold-session"]
    assert fork != session
    assert (await w.log.info(fork)).forked_from == session
    assert len(await w.said(session)) == 4
    assert len(await w.said(fork)) == 4
    on = await w.ask(path, body_of(path, "hi", "Answer 1.", "other", "Answer 3.", "on"))
    assert on.headers["refold-session"] == fork


async def test_two_that_begin_alike_are_never_one(world):
    w = world()
    first, second = [await w.ask(CHAT, body_of(CHAT, "hi")) for _ in range(2)]
    names = {first.headers["refold-session"], second.headers["refold-session"]}
    assert len(names) == 2
    one = await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "I am Anna."))
    two = await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "I am Bert."))
    assert {one.headers["refold-session"], two.headers["refold-session"]} == names
    assert "Anna" in json.dumps(await w.said(one.headers["refold-session"]))
    assert "Anna" not in json.dumps(await w.said(two.headers["refold-session"]))


async def test_an_answer_that_we_did_not_give_joins_nobody(world):
    w = world()
    await w.ask(CHAT, body_of(CHAT, "hi"))
    other = await w.ask(CHAT, body_of(CHAT, "hi", "I never said that.", "more"))
    assert len(await w.said(other.headers["refold-session"])) == 4
    assert len(await w.sessions()) == 2


async def test_tenants_are_apart(world):
    w = world()
    one = await w.ask(CHAT, body_of(CHAT, "hi"), **{"x-tenant": "a"})
    two = await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "on"), **{"x-tenant": "b"})
    assert one.headers["refold-session"] != two.headers["refold-session"]
    assert await w.sessions() == []
    assert len((await w.store.log("b").sessions()).sessions) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_parallel_requests_of_one_past_get_sessions_of_their_own(world, path):
    held = asyncio.Event()

    async def slow(got):
        if len(got.body.get("messages", got.body.get("input"))) > 1:
            await held.wait()
        return Reply("Hello there.")

    w = world(slow)
    await w.ask(path, body_of(path, "hi"))
    parsed_request = [body_of(path, "hi", "Hello there.", f"part {n % 3}") for n in range(6)]
    asking = [asyncio.create_task(w.ask(path, one)) for one in parsed_request]
    while len(w.upstream.got) < 7:  # noqa: ASYNC110 - it counts
        await asyncio.sleep(0.01)
    held.set()
    answers = await asyncio.gather(*asking)
    assert [one.status_code for one in answers] == [200] * 6
    lines = [await w.said(name) for name in await w.sessions()]
    assert all(len(line) == 4 for line in lines)
    said = sorted(json.dumps(line[2])[-9:] for line in lines)
    assert len(lines) == 6, said


@pytest.mark.parametrize("path", PATHS)
async def test_errors_of_the_upstream_pass_unchanged_and_may_be_retried(world, path):
    told = {"error": {"message": "slow down", "type": "rate_limit_error", "code": 429}}
    replies = iter([Refusal(429, told, {"retry-after": "7"}), Reply("Well.")])
    w = world(lambda _: next(replies))
    refused = await w.ask(path, body_of(path, "hi"))
    assert (refused.status_code, refused.json()) == (429, told)
    assert refused.headers["retry-after"] == "7"
    again = await w.ask(path, body_of(path, "hi"))
    assert again.headers["refold-session"] == refused.headers["refold-session"]
    assert await w.sessions() == [again.headers["refold-session"]]
    assert len(await w.said(again.headers["refold-session"])) == 2


async def test_who_speaks_of_what_the_provider_keeps_is_passed_on_unmanaged(world):
    w = world()
    body = body_of(RESPONSES, "hi", prompt={"id": "pmpt_1"})
    answer = await w.ask(RESPONSES, body)
    assert answer.headers["refold-managed"].startswith("no; reason=")
    assert w.upstream.got[0].body == body
    assert await w.sessions() == []


async def test_a_session_may_be_named(world):
    w = world()
    first = await w.ask(CHAT, body_of(CHAT, "hi"), **{"refold-session": "mine"})
    assert first.headers["refold-session"] == "mine"
    await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "on"), **{"refold-session": "mine"})
    await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "no, on"), **{"refold-session": "mine"})
    assert (await w.said("mine"))[2]["content"] == "no, on"
    await w.ask(CHAT, body_of(CHAT, "something else"), **{"refold-session": "mine"})
    assert (await w.said("mine"))[0]["content"] == "something else"
    assert await w.sessions() == ["mine"]


TOO_LONG = {
    "error": {
        "message": "This model's maximum context length is 3000 tokens. However, "
        "your messages resulted in 9000 tokens.",
        "code": "context_length_exceeded",
    }
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_what_is_too_long_for_the_model_is_sent_with_less(world, path, stream):
    def reply(got):
        return Refusal(400, TOO_LONG) if len(got.raw) > 12_000 else Reply("Fits.")

    w = world(reply)
    said = [f"{n}: " + "something to say " * 60 for n in range(31)]
    body = body_of(path, *said, stream=stream)
    answer = await w.ask(path, body)
    assert answer.status_code == 200
    assert w.upstream.got[0].body == body
    assert len(w.upstream.got[-1].raw) <= 12_000
    key = "input" if path == RESPONSES else "messages"
    assert w.upstream.got[-1].body[key][-1] == body[key][-1]
    assert {**w.upstream.got[-1].body, key: None} == {**body, key: None}
    on = await w.ask(path, body_of(path, *said, "Fits.", "on", stream=stream))
    assert on.headers["refold-session"] == answer.headers["refold-session"]
    assert len(w.upstream.got[-1].raw) <= 12_000


async def test_a_refusal_that_nothing_helps_passes_unchanged(world):
    w = world(lambda _: Refusal(400, TOO_LONG))
    answer = await w.ask(CHAT, body_of(CHAT, "hi"))
    assert (answer.status_code, answer.json()) == (400, TOO_LONG)


async def test_tools_are_called_and_answered(world):
    def reply(got):
        if any(one["role"] == "tool" for one in got.body["messages"]):
            return Reply("It rains.")
        return Reply("", (Call("c1", "weather", {"city": "Bern", "days": 2}),), thought="Hm.")

    w = world(reply)
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    body = body_of(CHAT, "Weather?", tools=tools)
    first = (await w.ask(CHAT, body)).json()["choices"][0]["message"]
    call = first["tool_calls"][0]
    # As some clients send it back: without thoughts and nulls, the arguments spelt anew.
    spelt = {**call, "function": {"name": "weather", "arguments": '{"days":2,  "city":"Bern"}'}}
    body["messages"] += [
        {"role": "assistant", "tool_calls": [spelt]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    second = await w.ask(CHAT, body)
    assert second.json()["choices"][0]["message"]["content"] == "It rains."
    assert w.upstream.got[1].body == body
    (session,) = await w.sessions()
    assert [one["role"] for one in await w.said(session)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


async def test_what_goes_beside_the_messages_is_kept_once(world):
    w = world()
    system = {"role": "system", "content": "Be brief. Today is Monday."}
    body = body_of(CHAT, "hi")
    body["messages"].insert(0, system)
    session = (await w.ask(CHAT, body)).headers["refold-session"]
    more = body_of(CHAT, "hi", "Hello there.", "on")
    more["messages"].insert(0, {**system, "content": "Be brief. Today is Tuesday."})
    assert (await w.ask(CHAT, more)).headers["refold-session"] == session
    assert w.upstream.got[1].body == more
    records = [one for one in await w.values(session) if one.KIND == "request"]
    hashes = [one.plan["settings"]["instructions"] for one in records]
    kept = [(await w.log.artifact(one)).data.decode() for one in hashes]
    assert ["Monday" in kept[0], "Tuesday" in kept[1]] == [True, True]


async def test_keys_of_ours_never_leave(world):
    w = world()
    secret = {"authorization": "Bearer rfk_1_secret", "refold-key": "rfk_1_secret"}
    await w.ask(CHAT, body_of(CHAT, "hi"), **secret)
    await w.ask(CHAT, body_of(CHAT, "hi"), authorization="Bearer sk-own", **{"x-other": "1"})
    first, second = (one.headers for one in w.upstream.got)
    assert "rfk_" not in json.dumps(first)
    assert (second["authorization"], second["x-other"]) == ("Bearer sk-own", "1")


async def test_anything_else_is_passed_on(world):
    w = world()
    answer = await w.client.post("/v1/embeddings", json={"model": "m", "input": "x"})
    assert answer.headers["refold-managed"] == "no; reason=not-a-conversation"
    assert w.upstream.got[0].path == "/v1/embeddings"
    broken = await w.client.post(CHAT, content=b"{not json")
    assert broken.headers["refold-managed"].startswith("no; reason=")
    assert w.upstream.got[1].raw == b"{not json"


async def test_a_session_that_was_forgotten_and_begun_anew_knows_nothing_of_the_first(world):
    w = world()
    mine = {"refold-session": "mine"}
    await w.ask(CHAT, body_of(CHAT, "my secret"), **mine)
    async with w.gateway.sessions.using("default", "mine") as session:
        assert "secret" in str(session.messages)
    await w.log.forget("mine")
    await w.ask(CHAT, body_of(CHAT, "hi"), **mine)
    async with w.gateway.sessions.using("default", "mine") as session:
        assert len(session.messages) == 2
        assert "secret" not in str(session.messages)
    await w.log.forget("mine")
    other = World(lambda _: Reply("Well."), store=w.store)
    for said in (["hi"], ["hi", "Well.", "on"], ["hi", "Well.", "on", "Well.", "on"]):
        await other.ask(CHAT, body_of(CHAT, *said), **mine)
    await w.ask(CHAT, body_of(CHAT, "hi", "Well.", "on", "Well.", "on", "Well.", "so"), **mine)
    assert "Well." in str(w.upstream.got[-1].body)
    assert len(await w.said("mine")) == 8
    await other.aclose()
