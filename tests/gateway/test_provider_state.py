"""What providers keep of a conversation, or edit in it, with the official clients."""

import asyncio
import json
from contextlib import asynccontextmanager
from functools import reduce
from itertools import count

import anthropic
import httpx2
import openai
import pytest
from amounts import amount
from gateway_world import MESSAGES, RESPONSES, Caller, World, worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from keeping_provider import KeepingProvider, compacted, text_in
from starlette.responses import Response

from refold.errors import ReferenceUnknown
from refold.exports.moments import moments
from refold.gateway.dialects.openai_responses import OPENAI_RESPONSES
from refold.gateway.sent_body import sent_body
from refold.gateway.upstream import Upstream, Upstreams
from refold.log import Note, Span
from refold.log.kinds import FoldCompleted
from refold.models.catalog import ModelSettings
from refold.session.explain import explain_past, explanation
from refold.testing.upstream import Refusal, Reply

MODEL = "some-model"
KEEP_THINKING = {"type": "clear_thinking_20251015", "keep": "all"}
CLEAR_TOOLS = {"type": "clear_tool_uses_20250919"}
COMPACT = {"type": "compact_20260112"}
SMALL = {MODEL: ModelSettings(window=3_000)}
LONG = "A sentence about the parcel and its long way through the city. " * 30


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


class Client:
    """OpenAI's own client, before a gateway."""

    def __init__(self, world, *, stream=False, **headers):
        self.stream = stream
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(world.app), base_url="http://gateway"
        )
        self.openai = openai.AsyncOpenAI(
            api_key="k",
            base_url="http://gateway/v1",
            http_client=self.http,
            max_retries=0,
            default_headers=headers,
        )

    async def ask(self, content, **more):
        """The id of the answer, its text, and the headers."""
        options = {"model": MODEL, "input": content, **more}
        responses = self.openai.responses
        if self.stream:
            created = await responses.with_raw_response.create(**options, stream=True)
            events = [event async for event in created.parse()]
            answer = events[-1].response
            assert events[-1].type == "response.completed"
        else:
            created = await responses.with_raw_response.create(**options)
            answer = created.parse()
        return answer.id, answer.output_text, created.headers


async def said(world, session):
    return [text_in(item) for item in await world.said(session)]


async def notes(world, session, kind):
    values = await world.values(session)
    return [one for one in values if isinstance(one, Note) and one.data["gateway"] == kind]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_by_ids_is_one_session_with_all_of_it(world, stream):
    provider = KeepingProvider()
    here = world(provider)
    client, before, texts = Client(here, stream=stream), {}, []
    for turn in range(5):
        name, text, headers = await client.ask(f"Turn {turn}.", **before)
        before = {"previous_response_id": name}
        texts += [f"Turn {turn}.", text]
        assert headers["refold-managed"] == "yes"
    assert await here.sessions() == [headers["refold-session"]]
    assert await said(here, headers["refold-session"]) == texts
    assert provider.saw[-1] == texts[:-1]
    assert [len(body["input"]) for body in provider.asked] == [len("Turn 0.")] * 5


async def test_a_request_by_id_goes_out_byte_for_byte(world):
    here = world(KeepingProvider())
    client = Client(here)
    name, _, _ = await client.ask("Hi.")
    raw = b'{ "model":"some-model","previous_response_id": "%s", "input":"And?" }' % name.encode()
    answer = await here.client.post(RESPONSES, content=raw)
    assert answer.status_code == 200
    assert here.upstream.got[-1].raw == raw


async def test_another_continuation_of_the_same_answer_is_a_fork(world):
    here = world(KeepingProvider())
    client = Client(here)
    name, _, first = await client.ask("Hi.")
    _, _, on = await client.ask("One.", previous_response_id=name)
    _, _, other = await client.ask("Two.", previous_response_id=name)
    assert first["refold-session"] == on["refold-session"] != other["refold-session"]
    assert await said(here, other["refold-session"]) == ["Hi.", "Answer 1.", "Two.", "Answer 3."]
    assert "Two." not in await said(here, on["refold-session"])


async def test_a_full_history_and_ids_may_take_turns(world):
    provider = KeepingProvider()
    here = world(provider)
    client = Client(here)
    name, text, first = await client.ask([{"role": "user", "content": "Hi."}])
    history = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "On."},
    ]
    name, _, second = await client.ask(history)
    _, _, third = await client.ask("And on.", previous_response_id=name)
    assert {h["refold-session"] for h in (first, second, third)} == {first["refold-session"]}
    assert provider.saw[-1] == ["Hi.", "Answer 1.", "On.", "Answer 2.", "And on."]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_gets_too_long_is_sent_by_the_gateway_instead(world, stream):
    provider = KeepingProvider()
    here = world(provider, models=SMALL)
    client, before = Client(here, stream=stream), {}
    for turn in range(12):
        name, _, headers = await client.ask(f"Turn {turn}. {LONG}", **before)
        before = {"previous_response_id": name}
    await here.quiet()
    session = headers["refold-session"]
    assert await here.sessions() == [session]
    assert any(isinstance(one, FoldCompleted) for one in await here.values(session))
    assert "previous_response_id" in provider.asked[1]
    assert "previous_response_id" not in provider.asked[-1]
    assert "Turn 0." not in "".join(text_in(item) for item in provider.asked[-1]["input"][1:])
    assert provider.saw[-1][-1].startswith("Turn 11.")
    assert sum(map(len, provider.saw[-1])) < 12 * len(LONG)
    assert headers["refold-managed"] == "yes"
    whole = "".join(json.dumps(one.payload.decode()) for one in await messages_of(here, session))
    assert all(f"Turn {turn}." in whole for turn in range(12))


async def messages_of(world, session):
    return [one for one in await world.values(session) if hasattr(one, "payload")]


async def test_a_refusal_for_length_behind_an_id_is_answered_with_less(world):
    provider = KeepingProvider(max_chars=9_000)
    here = world(provider)
    client, before = Client(here), {}
    for turn in range(8):
        name, _, _ = await client.ask(f"Turn {turn}. {LONG}", **before)
        before = {"previous_response_id": name}
    assert "previous_response_id" not in provider.asked[-1]
    assert provider.saw[-1][-1].startswith("Turn 7.")
    assert len(await here.sessions()) == 1


async def test_after_an_undo_the_gateway_sends_what_the_provider_did_not_get(world):
    provider = KeepingProvider()
    here = world(provider, models=SMALL)
    client, before = Client(here), {}
    for turn in range(12):
        name, _, headers = await client.ask(f"Turn {turn}. {LONG}", **before)
        before = {"previous_response_id": name}
    await here.quiet()
    wide = world(provider, store=here.store)
    session = headers["refold-session"]
    async with wide.gateway.sessions.using("default", session) as opened:
        assert opened.inputs.foldings
        await opened.unfold(Span(1, opened.head))
        assert not opened.inputs.foldings
    await Client(wide).ask("All of it?", **before)
    assert provider.saw[-1][0].startswith("Turn 0.")
    assert len(provider.saw[-1]) == 25


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_provider_lost_is_sent_from_the_log(world, stream):
    provider = KeepingProvider()
    here = world(provider)
    client = Client(here, stream=stream)
    name, _, _ = await client.ask("Hi.")
    provider.kept.clear()
    name, _, headers = await client.ask("And?", previous_response_id=name)
    assert provider.saw[-1] == ["Hi.", "Answer 1.", "And?"]
    assert "previous_response_id" not in provider.asked[-1]
    [note] = await notes(here, headers["refold-session"], "provider lost")
    assert "resp_00000001" in note.text
    _, _, on = await client.ask("On.", previous_response_id=name)
    assert on["refold-session"] == headers["refold-session"]
    assert len(provider.saw[-1]) == 5


class Expiring(KeepingProvider):
    """Also refuses items by their ids, once it has lost them."""

    has_items, refused = True, 0

    def __call__(self, got):
        named = [item["id"] for item in got.body["input"] if "id" in item]
        if named and not self.has_items:
            self.refused += 1
            message = f"Item with id '{named[0]}' not found."
            return Refusal(404, {"error": {"type": "invalid_request_error", "message": message}})
        return super().__call__(got)


async def test_what_the_provider_lost_of_a_folded_conversation_is_sent_without_its_ids(world):
    provider = Expiring()
    here = world(provider, models=SMALL)
    client, before = Client(here), {}
    for turn in range(12):
        message = {"role": "user", "content": f"Turn {turn}. {LONG}"}
        name, _, headers = await client.ask([message], **before)
        before = {"previous_response_id": name}
    provider.has_items = False
    _, _, again = await client.ask([{"role": "user", "content": "And?"}], **before)
    assert again["refold-session"] == headers["refold-session"]
    assert provider.refused == 1
    assert not any("id" in item for item in provider.asked[-1]["input"])


@pytest.mark.parametrize("stream", [False, True])
async def test_an_id_that_only_the_provider_knows_passes_and_says_so(world, stream):
    provider = KeepingProvider()
    provider.kept["resp_elsewhere"] = [{"role": "user", "content": "Long ago."}]
    here = world(provider)
    client = Client(here, stream=stream)
    name, _, first = await client.ask("Hi.", previous_response_id="resp_elsewhere")
    by = 'yes; context=provider; detail="previous_response_id resp_elsewhere"'
    assert first["refold-managed"] == by
    _, _, second = await client.ask("And?", previous_response_id=name)
    session = first["refold-session"]
    assert (second["refold-managed"], second["refold-session"]) == (by, session)
    assert await said(here, session) == ["Hi.", "Answer 1.", "And?", "Answer 2."]
    assert provider.saw[-1] == ["Long ago.", "Hi.", "Answer 1.", "And?"]
    [note] = await notes(here, session, "provider context")
    assert "resp_elsewhere" in note.text


async def test_two_that_continue_from_different_unknown_answers_are_never_one(world):
    provider = KeepingProvider()
    provider.kept = {f"resp_old{nth}": [{"role": "user", "content": "Old."}] for nth in range(2)}
    here = world(provider)
    client = Client(here)
    answers = [await client.ask("Hi.", previous_response_id=f"resp_old{nth}") for nth in range(2)]
    for nth, (name, _, headers) in enumerate(answers):
        _, _, on = await client.ask(f"On {nth}.", previous_response_id=name)
        assert on["refold-session"] == headers["refold-session"]
    assert len(await here.sessions()) == 2


async def test_nothing_is_folded_while_the_provider_has_the_beginning(world):
    provider = KeepingProvider()
    provider.kept["resp_elsewhere"] = []
    here = world(provider, models=SMALL)
    client, before = Client(here), {"previous_response_id": "resp_elsewhere"}
    for turn in range(12):
        name, _, headers = await client.ask(f"Turn {turn}. {LONG}", **before)
        before = {"previous_response_id": name}
    await here.quiet()
    values = await here.values(headers["refold-session"])
    assert not any(isinstance(one, FoldCompleted) for one in values)
    assert len(provider.saw[-1]) == 23
    record = int(headers["refold-request"].partition(":")[2])
    found = await explain_past(here.log, headers["refold-session"], record)
    assert found.sent == 23


async def test_too_long_for_the_provider_is_its_refusal_where_it_has_the_beginning(world):
    provider = KeepingProvider(max_chars=3_000)
    provider.kept["resp_elsewhere"] = []
    client = Client(world(provider))
    name, _, _ = await client.ask("Hi. " + LONG, previous_response_id="resp_elsewhere")
    with pytest.raises(openai.BadRequestError) as refused:
        await client.ask("And? " + LONG, previous_response_id=name)
    assert refused.value.code == "context_length_exceeded"


async def test_an_unknown_id_that_the_provider_refuses_is_the_clients_to_see(world):
    here = world(KeepingProvider())
    with pytest.raises(openai.BadRequestError) as refused:
        await Client(here).ask("Hi.", previous_response_id="resp_nowhere")
    assert refused.value.code == "previous_response_not_found"


async def test_ids_are_known_again_after_a_restart(world):
    provider = KeepingProvider()
    first = world(provider)
    name, _, before = await Client(first).ask("Hi.")
    second = world(provider, store=first.store)
    _, _, headers = await Client(second).ask("And?", previous_response_id=name)
    assert headers["refold-session"] == before["refold-session"]
    assert headers["refold-managed"] == "yes"
    assert len(await said(second, headers["refold-session"])) == 4


async def test_an_id_of_another_tenant_never_resolves(world):
    provider = KeepingProvider()
    here = world(provider)
    name, _, _ = await Client(here).ask("My secret.")
    other = Client(here, **{"x-tenant": "other"})
    _, _, headers = await other.ask("What was it?", previous_response_id=name)
    assert headers["refold-managed"].startswith("yes; context=provider")
    log = here.store.log("other")
    entries = await log.read(headers["refold-session"])
    assert b"My secret." not in b"".join(entry.body for entry in entries)


@pytest.mark.parametrize("user", ["bob", None])
async def test_an_id_of_another_user_never_resolves(world, user):
    here = world(KeepingProvider())
    name, _, first = await Client(here).ask("My secret.", user="alice")
    more = {"user": user} if user else {}
    _, _, headers = await Client(here).ask("What was it?", previous_response_id=name, **more)
    assert headers["refold-session"] != first["refold-session"]
    assert "My secret." not in await said(here, headers["refold-session"])


async def test_an_id_never_leads_into_a_session_that_others_began_by_the_same_name(world):
    provider = KeepingProvider()
    here = world(provider)
    here.gateway._caller_of = caller_with_key
    named = {"refold-session": "parcel"}
    name, _, _ = await Client(here, **named, **{"x-key": "a"}).ask("Hi.")
    await here.log.forget("parcel")
    await Client(here, **named, **{"x-key": "b"}).ask("My secret.")
    _, _, headers = await Client(here, **{"x-key": "a"}).ask("And?", previous_response_id=name)
    assert provider.saw[-1] == ["Hi.", "Answer 1.", "And?"]
    assert await said(here, headers["refold-session"]) == ["And?", "Answer 3."]


async def test_an_id_that_a_server_gives_again_names_nothing(world):
    here = world(lambda got: Reply(f"To {got.body['input']}", number=1))
    names = {(await Client(here).ask(words))[0] for words in ("One.", "Two.", "Three.")}
    [name] = names
    _, _, headers = await Client(here).ask("And?", previous_response_id=name)
    assert await said(here, headers["refold-session"]) == ["And?", "To And?"]


async def test_ids_may_be_long_and_differ_at_their_ends_only_as_those_of_litellm(world):
    numbers = count(10**235)
    here = world(lambda got: Reply(f"To {got.body['input']}", number=next(numbers)))
    names = [(await Client(here).ask(f"{nth}."))[0] for nth in range(52)]
    assert len(names[0]) > 240
    again = world(lambda got: Reply(f"To {got.body['input']}", number=1), store=here.store)
    _, _, headers = await Client(again).ask("And?", previous_response_id=names[0])
    assert await said(again, headers["refold-session"]) == ["0.", "To 0.", "And?", "To And?"]


async def caller_with_key(request):
    return Caller(request.headers.get("x-tenant", "default"), key=request.headers.get("x-key", "k"))


async def test_under_a_shared_key_an_unknown_id_is_refused(world, monkeypatch):
    provider = KeepingProvider(conversations=["conv_1"])
    here = world(provider)
    up = Upstream("up", "http://up/v1", key="sk-of-the-service", paths=("POST /v1/responses/*",))
    monkeypatch.setattr(here.gateway, "_upstreams", Upstreams([up], here._upstream))

    refusals = []

    def refuse(error, _dialect, _outcome):
        refusals.append(error)
        return Response("{}", 404)

    monkeypatch.setattr(here.gateway, "_caller_of", caller_with_key)
    monkeypatch.setattr(here.gateway, "_refuse", refuse)
    name, _, _ = await Client(here).ask("My secret.")
    body = {"model": MODEL, "input": "What was it?"}
    assert (await here.ask(RESPONSES, body | {"previous_response_id": name})).status_code == 200
    other = {"x-tenant": "other"}
    own = (await here.ask(RESPONSES, body, **other)).json()["id"]
    asked = len(provider.saw)
    item = {"input": [{"type": "item_reference", "id": "msg_1"}]}
    deep = {"metadata": reduce(lambda inner, _: [inner], range(250), [])}
    requests = [
        {"previous_response_id": name},
        {"conversation": "conv_1"},
        {"previous_response_id": name, "background": True},
        item,
        item | {"background": True},
        item | {"previous_response_id": own},
        {"input": [{"id": "msg_1"}], "previous_response_id": own},
        {"conversation": {"id": "conv_1"}, "previous_response_id": own},
        {"conversation": {"id": "conv_1"}} | deep,
        {"conversation": ["conv_1"]},
    ]
    for more in requests:
        answer = await here.ask(RESPONSES, body | more, **other)
        assert answer.status_code == 404
    compaction = body | item | {"previous_response_id": name}
    assert (await here.ask(f"{RESPONSES}/compact", compaction, **other)).status_code == 404
    assert {type(error) for error in refusals} == {ReferenceUnknown}
    assert len(provider.saw) == asked


async def test_a_conversation_is_not_known_by_what_the_provider_refused(world, monkeypatch):
    provider = KeepingProvider(conversations=["conv_1"])
    here = world(lambda _: Refusal(401, {"error": {"message": "That is no key."}}))
    monkeypatch.setattr(here.gateway, "_caller_of", caller_with_key)
    body = {"model": MODEL, "input": "What was it?", "conversation": "conv_1"}
    assert (await here.ask(RESPONSES, body)).status_code == 401
    again = world(provider, store=here.store)
    up = Upstream("up", "http://up/v1", key="sk-of-the-service")
    monkeypatch.setattr(again.gateway, "_upstreams", Upstreams([up], again._upstream))
    monkeypatch.setattr(again.gateway, "_caller_of", caller_with_key)
    assert "no answer with the id" in (await again.ask(RESPONSES, body)).text
    assert not provider.saw


def test_a_key_that_a_tenant_stored_itself_is_not_shared():
    keys = {("acme", "up"): "sk-acme", ("*", "up"): "sk-all", ("poor", "up"): "sk-all"}
    upstreams = Upstreams([], httpx2.AsyncClient(), lambda tenant, name: keys.get((tenant, name)))
    stored = Upstream("up", "http://up/v1", key="stored")
    assert not upstreams.is_shared(stored, "acme")
    assert upstreams.is_shared(stored, "poor")
    assert not upstreams.is_shared(Upstream("up", "http://up/v1"), "acme")
    assert upstreams.is_shared(Upstream("up", "http://up/v1", key="none"), "acme")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_of_the_provider_is_one_session(world, stream):
    provider = KeepingProvider(conversations=["conv_a", "conv_b"])
    here = world(provider)
    client = Client(here, stream=stream)
    sessions = set()
    for turn in range(3):
        _, _, headers = await client.ask(f"Turn {turn}.", conversation="conv_a")
        sessions.add(headers["refold-session"])
        by = 'yes; context=provider; detail="conversation conv_a"'
        assert headers["refold-managed"] == by
    _, _, other = await client.ask("Turn 0.", conversation={"id": "conv_b"})
    [session] = sessions
    assert other["refold-session"] != session
    assert len(await said(here, session)) == 6
    assert provider.saw[2] == ["Turn 0.", "Answer 1.", "Turn 1.", "Answer 2.", "Turn 2."]
    again = world(provider, store=here.store)
    _, _, headers = await Client(again).ask("On.", conversation="conv_a")
    assert headers["refold-session"] == session


async def test_a_retry_in_a_conversation_of_the_provider_is_logged_once(world):
    provider, failures = KeepingProvider(conversations=["conv_a"]), [1, 1]

    def reply(got):
        return Refusal(500, {}) if failures and failures.pop() else provider(got)

    here = world(reply)
    body = {"model": MODEL, "input": "Turn 0.", "conversation": "conv_a"}
    answers = [await here.ask(RESPONSES, body) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [500, 500, 200, 200]
    [session] = {answer.headers["refold-session"] for answer in answers}
    assert await said(here, session) == ["Turn 0.", "Answer 1.", "Turn 0.", "Answer 2."]
    _, _, record = answers[-1].headers["refold-request"].partition(":")
    assert (await explain_past(here.log, session, int(record))).context.held == 2


async def test_what_is_forgotten_is_not_sent_again(world):
    provider = KeepingProvider()
    here = world(provider)
    client = Client(here)
    name, _, headers = await client.ask("Forget me.")
    await here.log.forget(headers["refold-session"])
    provider.kept.clear()
    with pytest.raises(openai.BadRequestError):
        await client.ask("And?", previous_response_id=name)


async def test_a_named_session_takes_requests_by_id(world):
    here = world(KeepingProvider())
    client = Client(here, **{"refold-session": "mine"})
    name, _, _ = await client.ask("Hi.")
    await client.ask("And?", previous_response_id=name)
    assert await here.sessions() == ["mine"]
    assert await said(here, "mine") == ["Hi.", "Answer 1.", "And?", "Answer 2."]


async def test_a_named_session_takes_what_passes_with_ids_that_the_provider_alone_knows(world):
    provider = KeepingProvider()
    provider.kept = {"resp_old": [], "resp_other": []}
    here = world(provider)
    client = Client(here, **{"refold-session": "mine"})
    for words, name in [("Hi.", "resp_old"), ("And?", "resp_other")]:
        _, _, headers = await client.ask(words, previous_response_id=name)
        assert headers["refold-session"] == "mine"
    assert await here.sessions() == ["mine"]
    assert await said(here, "mine") == ["Hi.", "Answer 1.", "And?", "Answer 2."]


# Threads of Anthropic's API: the same by another name.


@pytest.mark.parametrize("stream", [False, True])
async def test_a_thread_is_one_session_with_all_of_it(world, stream):
    provider = KeepingProvider()
    here = world(provider)
    client = Messages(here, stream=stream)
    message, first = await client.ask("Hi.", thread={"type": "create"})
    on = {"type": "continue", "previous_message_id": message.id}
    message, second = await client.ask("And?", thread=on)
    assert provider.saw[-1] == ["Hi.", "Answer 1.", "And?"]
    assert second["refold-managed"] == "yes"
    assert await here.sessions() == [first["refold-session"]]
    assert await said(here, first["refold-session"]) == ["Hi.", "Answer 1.", "And?", "Answer 2."]
    provider.kept.clear()
    on = {"type": "continue", "previous_message_id": message.id}
    message, _ = await client.ask("On.", thread=on)
    assert provider.asked[-1]["thread"] == {"type": "create"}
    assert len(provider.saw[-1]) == 5


async def test_what_a_thread_loses_is_sent_without_the_cache_marks_of_each_turn(world):
    provider = KeepingProvider()
    here = world(provider)
    thread = {"type": "create"}
    for turn in range(6):
        text = {"type": "text", "text": f"Turn {turn}.", "cache_control": {"type": "ephemeral"}}
        body = {"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": [text]}]}
        if turn == 5:
            provider.kept.clear()
        answer = await here.ask(MESSAGES, body | {"thread": thread})
        thread = {"type": "continue", "previous_message_id": answer.json()["id"]}
    assert len(provider.saw[-1]) == 11
    sent = [json.dumps(message) for message in provider.asked[-1]["messages"]]
    assert [nth for nth, message in enumerate(sent) if "cache_control" in message] == [10]
    session, _, record = answer.headers["refold-request"].partition(":")
    assert (await sent_body(here.log, session, int(record))).state == "exact"


async def test_a_thread_gets_no_recall_as_its_provider_keeps_each_round(world):
    here = world(KeepingProvider(), recall=True)
    await Messages(here).ask("Hi.", thread={"type": "create"})
    assert "tools" not in here.upstream.got[-1].body


class Messages:
    """Anthropic's own client, before a gateway."""

    def __init__(self, world, *, stream=False):
        self.stream = stream
        self.client = anthropic.AsyncAnthropic(
            api_key="k",
            base_url="http://gateway",
            http_client=httpx2.AsyncClient(transport=httpx2.ASGITransport(world.app)),
            max_retries=0,
        )

    async def ask(self, content, **more):
        history = content if isinstance(content, list) else [{"role": "user", "content": content}]
        options = {"model": MODEL, "max_tokens": 100, "messages": history, "extra_body": more}
        messages = self.client.messages
        if self.stream:
            raw = await messages.with_raw_response.create(**options, stream=True)
            events = [event async for event in await raw.parse()]
            return events[0].message, raw.headers
        raw = await messages.with_raw_response.create(**options)
        return await raw.parse(), raw.headers


# What a provider edits.


@asynccontextmanager
async def talk(here, turns=12, *, stream=False, **more):
    client, history = Messages(here, stream=stream), []
    for turn in range(turns):
        history.append({"role": "user", "content": f"Turn {turn}. {LONG}"})
        _, headers = await client.ask(history, **more)
        history.append({"role": "assistant", "content": f"Answer {turn + 1}."})
    await here.quiet()
    yield client, history, headers


def is_folded(values):
    return any(isinstance(one, FoldCompleted) for one in values)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("edit", [CLEAR_TOOLS, COMPACT, {"type": "some_later_edit"}])
async def test_what_the_provider_shortens_is_not_folded(world, edit, stream):
    here = world(KeepingProvider(), models=SMALL)
    more = {"context_management": {"edits": [KEEP_THINKING, edit]}}
    async with talk(here, stream=stream, **more) as (_, history, headers):
        session = headers["refold-session"]
        assert not is_folded(await here.values(session))
        assert here.upstream.got[-1].body["messages"] == history[:-1]
        assert here.upstream.got[-1].body["context_management"] == more["context_management"]
        by = f'yes; context=provider; detail="{edit["type"]}"'
        assert headers["refold-managed"] == by
        [note] = await notes(here, session, "provider context")
        assert edit["type"] in note.text


async def test_a_header_stays_short_whatever_an_edit_is_called(world):
    edit = {"type": "compact_" + "x" * 100_000}
    _, headers = await Messages(world()).ask("Hi.", context_management={"edits": [edit]})
    assert len(headers["refold-managed"]) < 2_000


async def test_clearing_thoughts_leaves_the_context_to_refold(world):
    here = world(KeepingProvider(), models=SMALL)
    more = {"context_management": {"edits": [KEEP_THINKING]}}
    async with talk(here, **more) as (_, _, headers):
        assert is_folded(await here.values(headers["refold-session"]))
        assert headers["refold-managed"] == "yes"
        assert here.upstream.got[-1].body["context_management"] == more["context_management"]


async def test_once_refold_has_folded_the_providers_edits_are_taken_out(world):
    here = world(KeepingProvider(), models=SMALL)
    async with talk(here) as (client, history, before):
        assert is_folded(await here.values(before["refold-session"]))
        history.append({"role": "user", "content": "And?"})
        management = {"edits": [KEEP_THINKING, COMPACT]}
        _, headers = await client.ask(history, context_management=management)
        assert headers["refold-session"] == before["refold-session"]
        assert headers["refold-managed"] == "yes"
        sent = here.upstream.got[-1].body
        assert sent["context_management"] == {"edits": [KEEP_THINKING]}
        assert len(sent["messages"]) < len(history)
        history += [{"role": "assistant", "content": "Answer 13."}]
        history += [{"role": "user", "content": "On."}]
        await client.ask(history, context_management={"edits": [COMPACT]})
        assert "context_management" not in here.upstream.got[-1].body


async def test_a_session_that_the_provider_edited_may_become_refolds(world):
    here = world(KeepingProvider(), models=SMALL)
    more = {"context_management": {"edits": [COMPACT]}}
    async with talk(here, **more) as (client, history, before):
        history.append({"role": "user", "content": "And?"})
        _, headers = await client.ask(history)
        await here.quiet()
        assert headers["refold-session"] == before["refold-session"]
        assert headers["refold-managed"] == "yes"
        assert is_folded(await here.values(headers["refold-session"]))
        assert len(here.upstream.got[-1].body["messages"]) < len(history)


async def test_a_provider_that_refuses_its_own_edited_context_gets_refolds(world):
    provider = KeepingProvider(max_chars=12_000)
    here = world(provider)
    more = {"context_management": {"edits": [COMPACT]}}
    async with talk(here, **more) as (_, history, headers):
        assert is_folded(await here.values(headers["refold-session"]))
        assert "context_management" not in provider.asked[-1]
        assert len(provider.asked[-1]["messages"]) < len(history)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_provider_cleared_is_in_the_log(world, stream):
    applied = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4}]}

    block = {"type": "text", "text": "Well."}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    message |= {"content": [block], "stop_reason": "end_turn"}
    message |= {"usage": {"input_tokens": 5, "output_tokens": 1}}
    ended = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    events = [
        {"type": "message_start", "message": message | {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "context_management": applied} | ended,
        {"type": "message_stop"},
    ]
    streamed = "".join(f"event: {x['type']}\ndata: {json.dumps(x)}\n\n" for x in events)
    body = streamed if stream else json.dumps(message | {"context_management": applied})
    kind = b"text/event-stream" if stream else b"application/json"

    async def clearing(_scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})

    here = world()
    here._upstream._transport = httpx2.ASGITransport(clearing)
    _, headers = await Messages(here, stream=stream).ask(
        "Hi.", context_management={"edits": [CLEAR_TOOLS]}
    )
    await here.quiet()
    [note] = await notes(here, headers["refold-session"], "provider cleared")
    assert "clear_tool_uses_20250919" in note.text


async def test_openais_own_compaction_is_left_to_it(world):
    here = world(KeepingProvider(), models=SMALL)
    client, history = Client(here), []
    management = [{"type": "compaction", "compact_threshold": 1_000}]
    for turn in range(12):
        history.append({"role": "user", "content": f"Turn {turn}. {LONG}"})
        _, text, headers = await client.ask(history, context_management=management)
        history.append({"role": "assistant", "content": text})
    await here.quiet()
    assert not is_folded(await here.values(headers["refold-session"]))
    assert headers["refold-managed"] == 'yes; context=provider; detail="compaction"'


async def test_a_large_answer_that_another_process_logs_gets_the_same_notes(world):
    there = world(lambda _: Reply("On."))
    here = world(store=there.store, large=there.gateway)
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x" * 200_000}
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}
    message["content"][0] |= {"text": "Hello.", "annotations": []}
    answer = {"id": "resp_1", "object": "response", "status": "completed"}

    async def app(scope, receive, send):
        del scope, receive
        whole = json.dumps(answer | {"output": [sealed, message]}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": whole})

    here._upstream._transport = httpx2.ASGITransport(app)
    more = {"context_management": [{"type": "compaction"}]}
    first = await here.ask(RESPONSES, {"model": MODEL, "input": "Hi."} | more)
    session = first.headers["refold-session"]
    for kind in ("provider answer", "provider compacted", "provider context"):
        assert len(await notes(here, session, kind)) == 1
    history = [sealed, message, {"role": "user", "content": "On?"}]
    second = await there.ask(RESPONSES, {"model": MODEL, "input": history} | more)
    assert second.headers["refold-session"] == session


def test_a_request_by_id_without_the_providers_edits_has_its_own_messages_only():
    body = {"model": MODEL, "input": "And?", "previous_response_id": "resp_1"}
    management = {"context_management": [{"type": "compaction"}]}
    parsed_request = OPENAI_RESPONSES.read(json.dumps(body | management).encode())
    held = OPENAI_RESPONSES.continuing(parsed_request, [b'{"role":"user","content":"Hi."}'])
    assert b"Hi." not in OPENAI_RESPONSES.unedited(held).raw


# Compactions that a client asks its provider for.


class Compacting(KeepingProvider):
    """Also answers requests for a compaction."""

    def __init__(self):
        super().__init__()
        self.compactions = 0

    async def asgi(self, scope, receive, send, inner):
        if scope["path"] != "/v1/responses/compact":
            return await inner(scope, receive, send)
        while (await receive()).get("more_body"):
            pass
        self.compactions += 1
        output = compacted(self.compactions, "Hi.")
        body = {"id": "resp_c", "object": "response.compaction", "created_at": 0, "output": output}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        return await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def compacting(make, provider, **more):
    here = make(provider, **more)
    inner = here.upstream

    async def app(scope, receive, send):
        await provider.asgi(scope, receive, send, inner)

    here._upstream._transport = httpx2.ASGITransport(app)
    return here


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("by_id", [False, True])
async def test_a_history_that_the_provider_compacted_stays_in_its_session(world, by_id, restarted):
    provider = Compacting()
    here = compacting(world, provider)
    client = Client(here)
    name, text, before = await client.ask("Hi.")
    history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": text}]
    asked = {"previous_response_id": name} if by_id else {"input": history}
    raw = await client.openai.responses.with_raw_response.compact(model=MODEL, **asked)
    assert raw.headers["refold-managed"] == "no; reason=provider-compaction"
    assert raw.headers["refold-session"] == before["refold-session"]
    output = raw.http_response.json()["output"]
    if restarted:
        here = compacting(world, provider, store=here.store)
        client = Client(here)
    _, _, after = await client.ask([*output, {"role": "user", "content": "And?"}])
    assert after["refold-session"] == before["refold-session"]
    assert after["refold-managed"] == 'yes; context=provider; detail="its own compaction"'
    assert here.upstream.got[-1].body["input"][:-1] == output
    assert len(await here.sessions()) == 1


async def test_a_compaction_of_another_tenants_history_joins_nothing(world):
    here = compacting(world, Compacting())
    client = Client(here)
    name, _, _ = await client.ask("Hi.")
    await client.openai.responses.compact(model=MODEL, previous_response_id=name)
    other = Client(here, **{"x-tenant": "other"})
    _, _, headers = await other.ask([*compacted(1), {"role": "user", "content": "And?"}])
    assert headers["refold-session"] not in await here.sessions()


async def test_a_compaction_on_demand_of_anthropics_is_passed_on(world):
    here = world(KeepingProvider())
    client = Messages(here)
    _, first = await client.ask("Hi.")
    history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Answer 1."}]
    _, headers = await client.ask(history, compaction={"type": "summarize"})
    assert headers["refold-managed"] == "no; reason=provider-compaction"
    assert headers["refold-session"] == first["refold-session"]
    assert len(await said(here, first["refold-session"])) == 2


# What people are shown.


async def test_a_record_says_what_was_not_sent_and_rebuilds_what_was(world):
    here = world(KeepingProvider())
    client = Client(here)
    name, _, _ = await client.ask([{"role": "user", "content": "Hi."}])
    more = {"input": [{"role": "user", "content": "And?"}], "previous_response_id": name}
    body = json.dumps({"model": MODEL, **more}, separators=(",", ":")).encode()
    answer = await here.client.post(RESPONSES, content=body)
    session, _, record = answer.headers["refold-request"].partition(":")
    found = await explain_past(here.log, session, int(record))
    assert found.context == ("", 2)
    assert "The first 2 messages were not sent" in found.as_text()
    assert found.as_json()["context"]["held"] == 2
    sent = await sent_body(here.log, session, int(record))
    assert (sent.state, sent.body) == ("exact", body)
    assert len(sent.messages) == 3


async def test_what_people_read_has_no_note_of_each_answer_that_is_all_here(world):
    provider = KeepingProvider()
    provider.kept["resp_elsewhere"] = []
    here = world(provider)
    for more, shown in [({}, 0), ({"previous_response_id": "resp_elsewhere"}, 2)]:
        _, _, headers = await Client(here).ask("Hi.", **more)
        notes_of_all = await notes(here, headers["refold-session"], "provider answer")
        assert len(notes_of_all) == 1
        placed = [one async for one in moments(here.log, headers["refold-session"])]
        assert sum(getattr(one, "role", "") == "note" for one in placed) == shown


async def test_what_the_provider_manages_is_explained(world):
    provider = KeepingProvider()
    provider.kept["resp_elsewhere"] = []
    here = world(provider)
    _, _, headers = await Client(here).ask("Hi.", previous_response_id="resp_elsewhere")
    found = await explanation(here.log, headers["refold-session"])
    assert found.context.provider == "previous_response_id resp_elsewhere"
    assert "Refold compacts nothing" in " ".join(found.as_text().split())
    assert found.as_json()["context"]["by"] == "provider"


# Any sequence of requests by ids, with full histories, retries and forks, over restarts.

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["new", "id", "history", "restart"]),
        st.integers(0, 5),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["one", "two"]),
    ),
    max_size=14,
)


@given(STEPS)
@settings(max_examples=amount(few=3, quick=5, ci=20, nightly=200, thorough=1_000), deadline=None)
def test_the_model_sees_its_own_conversation_however_it_is_named(steps):
    asyncio.run(check_steps(steps))


async def check_steps(steps):
    provider = KeepingProvider()
    here = World(provider)
    worlds_made = [here]
    answers = {"one": [], "two": []}
    where = {}
    for kind, nth, text, tenant in steps:
        own = answers[tenant]
        if kind == "restart":
            here = World(provider, store=here.store)
            worlds_made.append(here)
            continue
        client = Client(here, **{"x-tenant": tenant})
        path, more = [], {}
        if kind != "new" and own:
            path, name = own[nth % len(own)]
            more = {"previous_response_id": name} if kind == "id" else {}
        asked = [{"role": "user", "content": text}]
        if path and not more:
            roles = ["user", "assistant"] * len(path)
            asked = [
                *({"role": r, "content": t} for r, t in zip(roles, path, strict=False)),
                *asked,
            ]
        name, answered, headers = await client.ask(asked, **more)
        assert headers["refold-managed"] == "yes"
        assert provider.saw[-1] == [*path, text]
        own.append(([*path, text, answered], name))
        session = headers["refold-session"]
        assert where.setdefault(session, tenant) == tenant
        async with here.gateway.sessions.using(tenant, session) as opened:
            texts = [text_in(json.loads(payload)) for payload in opened.messages]
        assert texts == [*path, text, answered]
    for each in worlds_made:
        await each.aclose()
