"""The store is unavailable: requests are refused soon, or passed on unmanaged and logged later."""

import asyncio
import json
import logging
import sqlite3
import time
from contextlib import asynccontextmanager

import httpx2
import pytest
from absent_stores import AbsentStore
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, body_of, served, text_of
from serving import asking, service_with

from refold.errors import Conflict, StoreBusy, StoreFull, StoreUnavailable
from refold.gateway.recent_answers import AnswerCache
from refold.gateway.unmanaged import not_managed
from refold.log import CODEC, Message
from refold.service.app import application
from refold.service.keys import keyring_of
from refold.service.service import Service
from refold.service.store_guard import GuardedStore, StoreGuard, write_probe
from refold.stores import SqliteStore
from refold.testing.upstream import Call, Reply, ScriptedUpstream

SOON = 0.3
"""The store's deadline in these tests, in seconds."""
OPEN = "no; reason=store-unavailable"


@asynccontextmanager
async def gateway(store, reply=lambda _: Reply("Hello there."), *, times=None, **serve):
    """A running service before a scripted provider, and a client of it."""
    upstream = ScriptedUpstream(reply)
    async with served(upstream) as base:
        named = {"name": "up", "base_url": f"{base}/v1"}
        service = service_with(
            store, upstreams=[named], times={"store": SOON, **(times or {})}, **serve
        )
        async with asking(service) as client:
            yield service, client, upstream


async def until(true):
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def said(store, tenant="default"):
    """The messages of each session, and what each says."""
    log, found = store.log(tenant), {}
    for one in (await log.sessions()).sessions:
        values = [CODEC.decode(entry) for entry in await log.read(one.session)]
        found[one.session] = [json.loads(v.payload) for v in values if isinstance(v, Message)]
    return found


def text_in(message):
    content = message["content"]
    return content if isinstance(content, str) else content[-1]["text"]


# The guard.


async def test_a_call_that_hangs_is_left_at_its_deadline_and_so_are_those_after_it():
    hang, calls, probes = asyncio.Event(), [], []

    async def call():
        calls.append(1)
        await hang.wait()

    async def probe():
        probes.append(1)
        await hang.wait()

    guard = StoreGuard(probe, 0.05, max_failures=3, pause=0.01)
    for _ in range(3):
        assert guard.available
        with pytest.raises(StoreUnavailable, match="did not answer"):
            await guard.call(call)
    assert not guard.available
    for _ in range(100):
        with pytest.raises(StoreUnavailable, match="not asked"):
            await guard.call(call)
    assert len(calls) == 3
    hang.set()
    await guard.recovered()
    assert guard.available
    await guard.call(call)
    await guard.close()


async def test_only_one_probe_is_under_way_at_a_time():
    under_way, most, back = 0, 0, False

    async def probe():
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            await asyncio.sleep(0 if back else 0.03)
            if not back:
                raise StoreBusy("Still away.")
        finally:
            under_way -= 1

    async def call():
        raise StoreBusy("Away.")

    guard = StoreGuard(probe, 1.0, pause=0.001)

    async def asked():
        with pytest.raises(StoreBusy):
            await guard.call(call)

    await asyncio.gather(*(asked() for _ in range(20)))
    assert not guard.available
    await asyncio.sleep(0.1)
    back = True
    await guard.recovered()
    assert most == 1
    await guard.close()


async def test_a_store_that_answers_no_is_not_away():
    async def call():
        raise Conflict("s", expected=1, found=2)

    async def full():
        raise StoreFull("Full.")

    guard = StoreGuard(full, 1.0, max_failures=2)
    for _ in range(5):
        with pytest.raises(StoreFull):
            await guard.call(full)
        with pytest.raises(Conflict):
            await guard.call(call)
    assert guard.available


async def test_what_takes_long_by_its_nature_is_not_cut():
    store = AbsentStore()
    guard = StoreGuard(write_probe(store.log("refold.service")), 0.01)
    log = GuardedStore(store, guard).log()
    assert await log.expire(0) == []
    assert await log.search("nothing") == []
    store.leave()
    with pytest.raises(StoreUnavailable):
        await log.head("s")
    whole = asyncio.create_task(log.read("s"))
    done, _ = await asyncio.wait({whole}, timeout=0.2)
    assert not done  # an export
    whole.cancel()


# Requests that are refused.


@pytest.mark.parametrize("path", PATHS)
async def test_without_fail_open_requests_are_refused_within_the_deadline(path, caplog):
    store = AbsentStore()
    async with gateway(store) as (service, client, upstream):
        assert (await client.post(path, json=body_of(path, "hi"))).status_code == 200
        store.leave()
        refused = [await client.post(path, json=body_of(path, "more")) for _ in range(3)]
        assert not service.guard.available
        store.calls = 0
        refused += [await client.post(path, json=body_of(path, "more")) for _ in range(20)]
        assert store.calls <= 20  # of probes: far fewer than of requests
        for one in refused:
            assert (one.status_code, one.headers["retry-after"]) == (503, "1")
            error = one.json()["error"]
            assert "store is unavailable" in error["message"]
            assert "serve.fail_open" in error["message"]
            assert error["type"] == ("overloaded_error" if path == MESSAGES else "server_error")
        assert len(upstream.got) == 1
        assert (await client.get("/readyz")).status_code == 503
        health = await client.get("/healthz")
        assert health.json() == {"status": "ok", "store": "unavailable"}
        store.come_back()
        await service.guard.recovered()
        assert (await client.post(path, json=body_of(path, "more"))).status_code == 200
        service.readiness._checked -= 2  # it asks once a second
        assert (await client.get("/readyz")).status_code == 200
    told = [one.getMessage() for one in caplog.records if one.name == "refold.service"]
    assert sum("is unavailable" in one for one in told) == 1
    assert sum("answers again" in one for one in told) == 1


# Requests that are passed on.


def first(away):
    """Whether a call is the first of a conversation's of this kind."""
    counts = {}

    def is_it(name, session):
        if isinstance(session, str) and session in ("keys", "outages"):
            return False
        if isinstance(session, str) and session.startswith("used "):
            return False
        counts[name] = counts.get(name, 0) + 1
        return (name, counts[name]) == away

    return is_it


PHASES = {
    "placing": ("marked", 1),
    "saying": ("append", 1),
    "planning": ("append", 2),
    "answering": ("append", 3),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("path", PATHS)
async def test_a_conversation_goes_on_in_one_session_with_all_of_its_turns(path, phase, stream):
    """Whenever the store goes away, and whether or not it had taken the prompt."""
    store, count = AbsentStore(), iter(range(100))
    talk = []

    async with gateway(
        store, lambda _: Reply(f"Answer {next(count)}.", pieces=1), fail_open=True
    ) as (
        service,
        client,
        upstream,
    ):

        async def turn(text):
            body = json.dumps(body_of(path, *talk, text, stream=stream), indent=3).encode()
            answer = await client.post(path, content=body)
            assert answer.status_code == 200
            assert b"Answer" in answer.content
            if not stream:
                assert text_of(path, answer.json()) == f"Answer {len(talk) // 2}."
            talk.extend((text, f"Answer {len(talk) // 2}."))
            return answer, body

        for nth in range(2):
            await turn(f"Prompt {nth}")
        if phase == "placing":  # where the session is looked for
            service.gateway._resolver._answers = AnswerCache()
        store.away_at = first(PHASES[phase])
        answer, body = await turn("During")
        if phase == "answering":
            answered = "yes" if stream else "yes; answer=not-logged"
            assert answer.headers["refold-managed"] == answered
        else:
            assert answer.headers["refold-managed"] == OPEN
            assert upstream.got[-1].raw == body
        for nth in range(3):
            answer, body = await turn(f"Away {nth}")
            assert answer.headers["refold-managed"] == OPEN
            assert upstream.got[-1].raw == body
        assert len(service.gateway.unmanaged) == 4
        assert (await client.get("/readyz")).json() == {"status": "ready", "store": "unavailable"}
        store.come_back()
        await service.guard.recovered()
        answer, _ = await turn("Back")
        assert answer.headers["refold-managed"] == "yes"
        assert len(service.gateway.unmanaged) == 0
        await turn("And on")
        lines = await said(store)
        assert [[text_in(one) for one in line] for line in lines.values()] == [talk]
        # Whoever goes back to a turn that was unmanaged gets a fork of the same session.
        answer = await client.post(path, json=body_of(path, *talk[:8], "Another"))
        forked = (await store.log().info(answer.headers["refold-session"])).forked_from
        assert [forked] == [*lines]


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_with_a_thought_and_a_call_is_logged_as_it_came(path):
    """What belongs to an answer that could not be logged is logged with it."""
    store = AbsentStore()
    call = Call("call_1", "look", {"at": "it"})
    replies = iter([Reply("Hello."), Reply(calls=(call,), thought="Let me see."), Reply("Done.")])
    async with gateway(store, lambda _: next(replies), fail_open=True) as (service, client, up):
        key = "input" if path == RESPONSES else "messages"
        body = body_of(path, "hi")
        body[key] += _answers(path, (await client.post(path, json=body)).json())
        body[key].append({"role": "user", "content": "Look."})
        store.away_at = first(PHASES["answering"])
        answered = _answers(path, (await client.post(path, json=body)).json())
        body[key] += [*answered, _returned(path)]
        store.come_back()
        await until(lambda: service.guard.available)
        answer = await client.post(path, json=body)
        assert answer.headers["refold-managed"] == "yes"
        assert json.loads(up.got[-1].raw) == body
        [line] = (await said(store)).values()
        before = len(body[key]) - len(answered) - 1
        assert line[before:-1] == body[key][before:]


def _answers(path, answer):
    match path:
        case "/v1/chat/completions":
            return [answer["choices"][0]["message"]]
        case "/v1/responses":
            return answer["output"]
        case _:
            return [{"role": "assistant", "content": answer["content"]}]


def _returned(path):
    match path:
        case "/v1/chat/completions":
            return {"role": "tool", "tool_call_id": "call_1", "content": "There."}
        case "/v1/responses":
            return {"type": "function_call_output", "call_id": "call_1", "output": "There."}
        case _:
            block = {"type": "tool_result", "tool_use_id": "call_1", "content": "There."}
            return {"role": "user", "content": [block]}


async def test_a_conversation_that_begins_in_an_outage_is_one_session():
    store = AbsentStore()
    async with gateway(store, fail_open=True) as (service, client, _):
        store.leave()
        for turns in range(3):
            body = body_of(CHAT, *["hi", "Hello there."] * turns, "hi")
            assert (await client.post(CHAT, json=body)).headers["refold-managed"] == OPEN
        assert len(service.gateway.unmanaged) == 3
        store.come_back()
        await service.guard.recovered()
        body = body_of(CHAT, *["hi", "Hello there."] * 3, "hi")
        assert (await client.post(CHAT, json=body)).headers["refold-managed"] == "yes"
        [line] = (await said(store)).values()
        assert len(line) == 8


@pytest.mark.parametrize("others", [1, 3])
async def test_one_that_was_answered_like_others_does_not_get_into_their_sessions(others):
    """A model says the same in many conversations: that is no summary of theirs."""
    words = "Happy to help! Tell me what you are working on. " * (2 if others == 1 else 20)
    store = AbsentStore()
    async with gateway(store, lambda _: Reply(words), fail_open=True) as (service, client, _):
        for nth in range(others):
            body = body_of(CHAT, f"I am number {nth}.")
            assert (await client.post(CHAT, json=body)).headers["refold-managed"] == "yes"
        before = await said(store)
        store.leave()
        body = body_of(CHAT, "I am somebody else.")
        assert (await client.post(CHAT, json=body)).headers["refold-managed"] == OPEN
        store.come_back()
        await service.guard.recovered()
        body = body_of(CHAT, "I am somebody else.", words, "Go on.")
        assert (await client.post(CHAT, json=body)).headers["refold-managed"] == "yes"
        after = await said(store)
        assert len(after) == others + 1
        assert {name: after[name] for name in before} == before


async def test_a_retry_of_what_was_refused_in_the_middle_stays_in_its_session():
    store = AbsentStore()
    async with gateway(store) as (service, client, _):
        store.away_at = first(PHASES["planning"])
        assert (await client.post(CHAT, json=body_of(CHAT, "hi"))).status_code == 503
        for _ in range(3):
            await client.post(CHAT, json=body_of(CHAT, "something else"))
        store.come_back()
        await service.guard.recovered()
        await until(lambda: not service.gateway._tasks)
        assert (await client.post(CHAT, json=body_of(CHAT, "hi"))).status_code == 200
        lines = (await said(store)).values()
        assert [[text_in(one) for one in line] for line in lines] == [["hi", "Hello there."]]


# Keys, limits, quotas.


async def test_authentication_never_fails_open():
    store = AbsentStore()
    ours = keyring_of(store)
    known = await ours.create("acme", ["use", "read"])
    ended = await ours.create("acme", ["use"])
    await ours.revoke(ended.key.id)
    async with gateway(store, local=False, fail_open=True) as (service, client, upstream):
        store.leave()

        async def asked(secret, path=CHAT):
            headers = {"Authorization": f"Bearer {secret}"} if secret else {}
            return await client.post(path, json=body_of(path, "hi"), headers=headers)

        for _ in range(4):
            answer = await asked(known.secret)
            assert (answer.status_code, answer.headers["refold-managed"]) == (200, OPEN)
        passed = len(upstream.got)
        for secret in (ended.secret, f"{known.secret[:-5]}wrong", "rfk_no", None):
            assert (await asked(secret)).status_code in (401, 503)
        own = {"Authorization": f"Bearer {known.secret}"}
        service.keyring._refreshed -= 10  # longer ago than what was read just now
        assert (await client.get("/api/v1/sessions", headers=own)).status_code == 503
        assert len(upstream.got) == passed
        service.keyring._refreshed -= 901  # longer ago than `serve.times.stale_keys` allows
        assert (await asked(known.secret)).status_code == 503


async def test_limits_and_quotas_hold_while_the_store_is_away():
    store = AbsentStore()
    limits = {"key_requests": 4, "day_tokens": 1_000}
    async with gateway(store, fail_open=True, limits=limits) as (service, client, _):
        store.leave()
        answers = [await client.post(CHAT, json=body_of(CHAT, "hi")) for _ in range(6)]
        assert [one.status_code for one in answers] == [200] * 4 + [429] * 2
        assert service.quotas.used("default").tokens == 4 * 15


# What is lost, and what is told of it.


async def later(service):
    """Look for what is lost as if `serve.times.unmanaged` were over, and more."""
    service.gateway.unmanaged._tick = lambda: time.monotonic() + 4_000
    await service.gateway.unmanaged.sweep()


async def test_a_turn_that_is_not_sent_again_counts_as_lost(caplog, monkeypatch):
    store, lost = AbsentStore(), []
    async with gateway(store, fail_open=True) as (service, client, _):
        monkeypatch.setattr(service.metrics, "unmanaged_lost", lost.append)
        store.leave()
        for text in ("one", "two", "three"):
            await client.post(CHAT, json=body_of(CHAT, text))
        await client.post(CHAT, json=body_of(CHAT, "one", "Hello there.", "more"))
        await later(service)
        assert not lost  # nobody could have had them logged
        store.come_back()
        await service.guard.recovered()
        await client.post(CHAT, json=body_of(CHAT, "two", "Hello there.", "more"))
        assert len(service.gateway.unmanaged) == 3
        await later(service)
        assert (sorted(lost), len(service.gateway.unmanaged)) == ([1, 2], 0)
    told = [one.getMessage() for one in caplog.records if one.name == "refold.gateway"]
    assert sum("Requests passed on" in one for one in told) == 1
    assert any("count as lost" in one for one in told)


async def test_what_another_gateway_logged_is_not_lost(monkeypatch):
    store, lost = AbsentStore(), []
    async with gateway(store, fail_open=True) as (one, client, _):
        monkeypatch.setattr(one.metrics, "unmanaged_lost", lost.append)
        await client.post(CHAT, json=body_of(CHAT, "old"))
        store.away_at = first(PHASES["answering"])
        await client.post(CHAT, json=body_of(CHAT, "old", "Hello there.", "more"))
        await until(lambda: store.is_away)
        for text in ("new", "newer"):
            await client.post(CHAT, json=body_of(CHAT, text))
        assert len(one.gateway.unmanaged) == 3
        store.come_back()
        provider = ScriptedUpstream(lambda _: Reply("Hello there."))
        other = Service(
            one.settings, store, client=httpx2.AsyncClient(transport=httpx2.ASGITransport(provider))
        )
        through = httpx2.ASGITransport(application(other))
        async with other, httpx2.AsyncClient(transport=through, base_url="http://localhost") as two:
            for talk in (["old", "Hello there.", "more"], ["new"], ["newer"]):
                body = body_of(CHAT, *talk, "Hello there.", "on")
                assert (await two.post(CHAT, json=body)).headers["refold-managed"] == "yes"
            await later(one)
            assert (lost, len(one.gateway.unmanaged)) == ([], 0)
            assert len(await said(store)) == 3


async def test_too_many_conversations_to_remember_count_as_lost(monkeypatch):
    store, lost = AbsentStore(), []
    async with gateway(store, fail_open=True) as (service, client, _):
        monkeypatch.setattr(service.metrics, "unmanaged_lost", lost.append)
        monkeypatch.setattr(service.gateway.unmanaged, "_max_turns", 3)
        store.leave()
        for nth in range(5):
            await client.post(CHAT, json=body_of(CHAT, f"hi {nth}"))
        assert (lost, len(service.gateway.unmanaged)) == ([1, 1], 3)


def test_the_header_is_a_structured_field():
    assert not_managed("store-unavailable") == OPEN
    assert not_managed("unsupported-request", 'a "b" \\c') == (
        'no; reason=unsupported-request; detail="a \\"b\\" \\\\c"'
    )


# SQLite.


@pytest.mark.parametrize("fail_open", [False, True])
async def test_a_file_that_another_process_keeps_locked_is_an_outage(tmp_path, fail_open):
    path = tmp_path / "refold.db"
    async with gateway(SqliteStore(path), fail_open=fail_open) as (service, client, _):
        await client.post(CHAT, json=body_of(CHAT, "hi"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        body = body_of(CHAT, "hi", "Hello there.", "more")
        for _ in range(5):
            answer = await client.post(CHAT, json=body)
            assert answer.status_code == (200 if fail_open else 503)
        assert not service.guard.available
        other.execute("ROLLBACK")
        other.close()
        await service.guard.recovered()
        talk = ["hi", "Hello there.", "more", "Hello there.", "on"] if fail_open else None
        answer = await client.post(CHAT, json=body_of(CHAT, *talk) if talk else body)
        assert (answer.status_code, answer.headers["refold-managed"]) == (200, "yes")
        [line] = (await said(service.store)).values()
        assert len(line) == (6 if fail_open else 4)


async def test_an_outage_leaves_no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    store = AbsentStore()
    known = await keyring_of(store).create("acme", ["use"])
    async with gateway(store, local=False, fail_open=True) as (_, client, _):
        store.leave()
        headers = {"Authorization": f"Bearer {known.secret}"}
        for _ in range(4):
            body = body_of(CHAT, "the parcel is 4711")
            assert (await client.post(CHAT, json=body, headers=headers)).status_code == 200
    ours = "".join(one.getMessage() for one in caplog.records if one.name.startswith("refold"))
    assert known.secret not in ours
    assert "4711" not in ours
