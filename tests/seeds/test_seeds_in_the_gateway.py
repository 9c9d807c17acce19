"""What the seeds say, in `refold serve`: with passed-on keys, with none, and with its own.

What the provider was sent decides. See `surfaces` for the harness.
"""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os
import re
from datetime import timedelta

import httpx2
import pytest
from forked_serve import start_serve
from refold_commands import quick, terminal
from surfaces import passing_service, provider, service, texts
from terminal.pieces import Call, Refuse

from refold.log import DEFAULT_TENANT, Author, Opened, wall_clock
from refold.service.keys import keyring_of
from refold.stores import open_store
from refold.view.profiles import STATIC_MARKER

MARKED = STATIC_MARKER.partition("{")[0]
SUMMARY = "They were counting."
SEEDS = ["co-cli", "copilot", "cowagent", "inkeep"]
FOLDS = "/api/v1/sessions/s/folds"


def prompts(count, words=20):
    return [f"Prompt {nth}: {'and so on ' * words}" for nth in range(count)]


def said(asked):
    return [text for text in texts(asked) if text.startswith("Prompt ")]


def keys(requests):
    return {asked.headers.get("authorization") for asked in requests}


@pytest.fixture(autouse=True)
def short_summaries(provider):
    provider.summary = SUMMARY


async def entries(client, session="s", kind=None):
    params = {"limit": 500, **({"kind": kind} if kind else {})}
    got = await client.get(f"/api/v1/sessions/{session}/entries", params=params)
    assert got.status_code == 200, got.text
    return got.json()["entries"]


def written_in(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.req("R037", "R123")
async def test_without_a_summarizer_inkeep_sees_the_newest_messages(passing_service, provider):
    async with passing_service.running("inkeep") as client:
        await passing_service.talk(client, prompts(60, words=100))
        kinds = {one["kind"] for one in await entries(client)}
        assert kinds == {"session", "message", "request", "usage"}
    for nth, asked in enumerate(provider.asked):
        assert len(asked.messages) <= 50
        earlier = asked.messages[:-1]
        assert sum(len(json.dumps(one)) // 4 for one in earlier) <= 8_000 * 1.1  # by our count
        assert len(said(asked)) == nth + 1 or texts(asked)[0].startswith(MARKED)
    assert max(len(asked.messages) for asked in provider.asked) > 30


@pytest.mark.req("R066", "R135")
@pytest.mark.parametrize("profile", ["balanced", *SEEDS])
async def test_with_passed_on_keys_every_omission_is_said(passing_service, provider, profile):
    passing_service.settle({"agent_max_context_turns": 6}, None)
    async with passing_service.running(profile) as client:
        await passing_service.talk(client, prompts(20))
        failed = await entries(client, kind="fold.failed")
    assert failed == []
    assert provider.folds == []
    assert max(len(said(asked)) for asked in provider.asked) == 6
    for nth, asked in enumerate(provider.asked):
        stands = [text for text in texts(asked) if MARKED in text or "earlier messages" in text]
        assert len(stands) == (len(said(asked)) < nth + 1), (nth, texts(asked))


@pytest.mark.req("R139")
@pytest.mark.parametrize("profile", SEEDS)
async def test_a_fold_that_is_asked_for_is_made_from_the_log(passing_service, provider, profile):
    async with passing_service.running(profile) as client:
        said = await passing_service.talk(client, prompts(6))
        made = await client.post(FOLDS, json={"focus": "the prompts"})
        assert (made.status_code, made.json()["state"]) == (200, "completed"), made.text
        (fold,) = (await client.get(FOLDS)).json()["folds"]
        assert (fold["by"], fold["messages"] > 0) == ("breadcrumb", True)
        await passing_service.ask(client, [*said, {"role": "user", "content": "Go on."}], "s")
    assert provider.folds == []
    assert len(provider.asked[-1].messages) < len(said)


@pytest.mark.req("R059", "R061")
@pytest.mark.parametrize("profile", SEEDS)
async def test_a_clients_key_writes_summaries_of_its_own_conversation(
    passing_service, provider, profile, capfd
):
    passing_service.settle({"max_history_messages": 10}, None)
    other = [prompt.replace("Prompt", "Other") for prompt in prompts(14)]
    async with passing_service.running(profile, summarize_with_client_key=True) as client:
        await passing_service.talk(client, prompts(14))
        passing_service.client_key = "another-clients"
        await passing_service.talk(client, other, "t")
        for session in ("s", "t"):
            assert await entries(client, session, "fold.failed") == []
            assert await entries(client, session, "fold.complete")
    by_key = {"Bearer the-clients-own": "Prompt 2:", "Bearer another-clients": "Other 2:"}
    assert keys(provider.folds) == {*by_key}
    for fold in provider.folds:
        for key, words in by_key.items():
            own = fold.headers["authorization"] == key
            assert own == (words.split()[0] in json.dumps(fold.body))
    summaries = [text for asked in provider.asked for text in texts(asked) if SUMMARY in text]
    assert summaries
    logged = "".join(capfd.readouterr()).encode()
    for secret in (b"the-clients-own", b"another-clients"):
        assert secret not in written_in(passing_service.folder) + logged


async def test_a_refused_clients_key_is_not_in_the_log(passing_service, provider):
    error = {"message": "Incorrect API key provided: the-clients-own.", "code": "invalid_api_key"}
    provider.summary = [Refuse(401, json.dumps({"error": error}))]
    passing_service.settle({"max_history_messages": 10}, None)
    async with passing_service.running("co-cli", summarize_with_client_key=True) as client:
        await passing_service.talk(client, prompts(8))
        (failed, *_) = await entries(client, kind="fold.failed")
    assert "answered 401: Incorrect API key provided: ." in failed["body"]["reason"]
    assert MARKED in texts(provider.asked[-1])[2]
    assert b"the-clients-own" not in written_in(passing_service.folder)


async def test_a_fold_that_is_asked_for_takes_the_key_that_comes_with_it(passing_service, provider):
    async with passing_service.running("copilot", summarize_with_client_key=True) as client:
        await passing_service.talk(client, prompts(6))
        given = {"authorization": "Bearer who-asks-for-it"}
        made = await client.post(FOLDS, json={}, headers=given)
        assert made.status_code == 200, made.text
    assert keys(provider.folds) == {"Bearer who-asks-for-it"}


@pytest.mark.req("R059", "R139")
@pytest.mark.parametrize("profile", SEEDS)
async def test_an_upstream_without_a_key_summarizes(service, provider, profile):
    service.key = "none"
    service.settle({"max_history_messages": 10}, None)
    async with service.running(profile) as client:
        await service.talk(client, prompts(14))
        while (made := await client.post(FOLDS, json={})).status_code == 409:
            assert made.json()["code"] == "fold-under-way"  # one that began by itself
            await asyncio.sleep(0.1)
        assert made.status_code == 200, made.text
        assert await entries(client, kind="fold.failed") == []
    assert provider.folds
    assert keys(provider.asked) == {None}
    assert "Bearer the-clients-own" not in keys(provider.folds)


@pytest.mark.req("R139")
@pytest.mark.parametrize(("named", "sent"), [("none", "none"), ("MY_KEY", "from-a-variable")])
async def test_the_command_names_the_key_of_its_server(service, provider, monkeypatch, named, sent):
    monkeypatch.setenv("MY_KEY", "from-a-variable")
    arguments = ["--upstream", provider.url, "--upstream-key", named, "--profile", "copilot"]
    started = await start_serve(
        *("--port", "0", "--json", "--store", service.store, *arguments),
        cwd=service.folder,
        env={**os.environ, "REFOLD_SERVE__TIMES__STORE": "30"},
    )
    try:
        address = json.loads(await started.stdout.readline())["address"]
        async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
            await service.talk(client, prompts(6))
            made = await client.post(FOLDS, json={})
            assert made.status_code == 200, made.text
    finally:
        started.terminate()
        await started.wait()
    assert keys(provider.folds) == {f"Bearer {sent}"}


def test_a_key_itself_is_no_name_and_is_not_repeated(terminal):
    given = "sk-9Jx-not-a-name"
    arguments = ["--upstream", "http://127.0.0.1:1/v1", "--upstream-key", given]
    done = terminal.run("serve", "--store", "memory:", *arguments)
    assert done.returncode != 0
    assert "--upstream-key" in done.stderr
    assert given not in done.stdout + done.stderr


@pytest.mark.req("R100", "R124")
@pytest.mark.parametrize(
    ("profile", "settings"), [("cowagent", {}), ("balanced", {"retention": {"days": 30}})]
)
async def test_unused_sessions_are_forgotten_while_it_serves(service, profile, settings):
    async with open_store(service.store) as store:
        for tenant, name, days in [
            (DEFAULT_TENANT, "old", 31),
            (DEFAULT_TENANT, "daily", 2),
            ("acme", "older", 40),
            ("acme", "new", 2),
        ]:
            author = Author(lambda days=days: wall_clock() - timedelta(days=days))
            opened = author.draft(Opened("openai-chat", profile))
            await store.log(tenant).append(name, [opened], expected=0)
    service.settle(settings, None)
    async with service.running(profile) as client:
        await service.talk(client, ["Hello."], "mine")
        async with asyncio.timeout(120):
            while len(await names(client)) > 2:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
    assert await names_in(service.store, DEFAULT_TENANT) == {"daily", "mine"}
    # A tenant is known by its keys.
    assert await names_in(service.store, "acme") == {"older", "new"}
    async with open_store(service.store) as store:
        made = await keyring_of(store).create("acme", ["use"])
    async with service.running(profile) as client:
        client.headers["refold-key"] = made.secret
        async with asyncio.timeout(20):
            while await names_in(service.store, "acme") != {"new"}:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)


async def test_nothing_is_forgotten_unless_it_is_switched_on(service):
    async with open_store(service.store) as store:
        for name, days in (("old", 400), ("daily", 2)):
            author = Author(lambda days=days: wall_clock() - timedelta(days=days))
            opened = author.draft(Opened("openai-chat", "balanced"))
            await store.log().append(name, [opened], expected=0)
    async with service.running("balanced") as client:
        await service.talk(client, ["Hello."], "mine")
        assert await names(client) == {"old", "daily", "mine"}


async def names(client):
    got = await client.get("/api/v1/sessions")
    assert got.status_code == 200, got.text
    return {session["name"] for session in got.json()["sessions"]}


async def names_in(address, tenant):
    async with open_store(address) as store:
        return {info.session for info in (await store.log(tenant).sessions()).sessions}


async def events_of(client, until):
    """The session's own events, from its beginning until this many entries have come."""
    found, name, seq = [], "", 0
    async with client.stream("GET", "/api/v1/sessions/s/events?after=0") as stream:
        async for line in stream.aiter_lines():
            kind, _, value = line.partition(": ")
            if kind == "id":
                seq = int(value)
            elif kind == "event":
                name = value
            elif kind == "data" and name.startswith("session."):
                found.append((seq, json.loads(value)))
            if not line and seq >= until:
                return found
    return found


@pytest.mark.req("R125", "R128")
async def test_the_event_stream_has_the_sessions_own_events(service, provider):
    service.settle({}, 8_000)
    async with service.running("copilot") as client:
        await service.talk(client, prompts(24, words=120))
        stored = await entries(client)
        events = await events_of(client, stored[-1]["seq"])
    by_name = {}
    for _, event in events:
        by_name.setdefault(event["type"], []).append(event)
    usage = by_name["session.usage_info"]
    assert [event["messagesLength"] for event in usage] == [
        len(asked.messages) for asked in provider.asked
    ]
    assert [event["isInitial"] for event in usage] == [True] + [False] * (len(usage) - 1)
    assert all(event["toolDefinitionsTokens"] > 0 for event in usage)
    starts = by_name["session.compaction_start"]
    ends = by_name["session.compaction_complete"]
    assert len(starts) == len(ends) > 0
    assert all(event["conversationTokens"] > 0 for event in starts)
    assert all(event["success"] and event["tokensRemoved"] > 0 for event in ends)
    assert SUMMARY in ends[0]["summaryContent"]
    # A start is reported before the request that had to wait for it, the end after the start.
    order = [event["type"] for _, event in events]
    assert order.index("session.compaction_start") < order.index("session.compaction_complete")


@pytest.mark.req("R127")
async def test_the_event_stream_says_what_a_request_left_out(passing_service, provider):
    passing_service.settle({}, 4_000)
    async with passing_service.running("copilot") as client:
        await passing_service.talk(client, prompts(24, words=120))
        stored = await entries(client)
        events = [event for _, event in await events_of(client, stored[-1]["seq"])]
    truncations = [event for event in events if event["type"] == "session.truncation"]
    assert truncations
    for event in truncations:
        before = event["preTruncationTokensInMessages"]
        after = event["postTruncationTokensInMessages"]
        assert before > after == before - event["tokensRemovedDuringTruncation"]
        assert event["messagesRemovedDuringTruncation"] > 0
        assert event["performedBy"] == "BasicTruncator"
    sent = {len(asked.messages) for asked in provider.asked}
    assert {event["postTruncationMessagesLength"] for event in truncations} <= sent


ORPHAN = {"role": "tool", "tool_call_id": "call_gone", "content": "An orphan."}


@pytest.mark.req("R050")
@pytest.mark.parametrize(
    ("profile", "settings", "stays"),
    [
        ("copilot", {}, False),
        ("balanced", {}, True),
        ("balanced", {"fit": {"orphans": "drop"}}, False),
    ],
)
async def test_results_without_a_call_are_not_passed_on(
    service, provider, profile, settings, stays
):
    service.settle(settings, None)
    user = {"role": "user", "content": "And?"}
    async with service.running(profile) as client:
        await service.ask(client, [user, ORPHAN], "s")
    assert provider.asked[0].messages == ([user, ORPHAN] if stays else [user])


@pytest.mark.req("R050")
async def test_a_result_that_leaves_nothing_to_answer_is_passed_on(service, provider):
    sent = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}, ORPHAN]
    async with service.running("copilot") as client:
        await service.ask(client, sent, "s")
    assert provider.asked[0].messages == sent


def bulky(asked):
    """Tool definitions, with many words."""
    text = "A tool that does this and that. " * asked
    function = {"name": "read_file", "description": text, "parameters": {"type": "object"}}
    return [{"type": "function", "function": function}]


@pytest.mark.req("R040", "R074")
async def test_tools_are_counted_too(service):
    """With tools of 3,000 tokens in a window of 8,000, folds begin so many messages earlier."""
    begun = {}
    service.settle({}, 8_000)
    async with service.running("copilot") as client:
        for session, words in (("few", 1), ("many", 375)):
            said = []
            for nth, prompt in enumerate(prompts(24, words=120)):
                said.append({"role": "user", "content": prompt})
                said.append(await service.ask(client, said, session, tools=bulky(words)))
                if await entries(client, session, "fold.start"):
                    begun[session] = nth
                    break
    assert begun["few"] - begun["many"] >= 5


@pytest.mark.req("R045", "R080")
@pytest.mark.parametrize("profile", ["balanced", "co-cli", "copilot", "inkeep"])
async def test_the_retry_after_a_refusal_has_a_summary(service, provider, profile):
    """Not only less: what is not sent any more is summarized, and the retry waits for that."""
    refused = []

    def refuse_once(asked):
        if len(asked.messages) > 14 and not refused:
            refused.append(asked)
            error = {"message": "Your input exceeds the context window.", "code": None}
            return [Refuse(400, json.dumps({"error": {**error, "type": "invalid_request_error"}}))]
        return "Yes."

    provider.otherwise = refuse_once
    service.settle({}, 200_000)
    async with service.running(profile) as client:
        await service.talk(client, prompts(8))
        assert len(await entries(client, kind="fold.complete")) == 1
        (started,) = await entries(client, kind="fold.start")
    assert started["body"]["trigger"] == "forced"
    retry = provider.asked[provider.asked.index(refused[0]) + 1]
    assert said(retry)[-1] == said(refused[0])[-1]
    assert len(said(retry)) < len(said(refused[0]))
    assert any("earlier messages" in text for text in texts(retry))
    if profile != "balanced":
        assert any(SUMMARY in text for text in texts(retry))


@pytest.mark.req("R121")
@pytest.mark.parametrize(
    ("profile", "settings", "limit"),
    [("cowagent", {}, 15), ("balanced", {"agent_max_steps": 3}, 3), ("balanced", {}, 0)],
)
async def test_a_turn_has_so_many_steps(service, provider, profile, settings, limit):
    service.write("a.txt", "Nothing.")
    provider.otherwise = [Call("read_file", {"path": "a.txt"})]
    service.settle(settings, None)
    async with service.running(profile) as client:
        said = [{"role": "user", "content": "Read it."}]
        for _ in range(limit or 20):
            reply = await service.ask(client, said, "s")
            said += [reply]
            said += [
                {"role": "tool", "tool_call_id": call["id"], "content": "Nothing."}
                for call in reply["tool_calls"]
            ]
        body = {"model": "scripted", "messages": said}
        more = await client.post("/v1/chat/completions", json=body)
        if limit:
            assert more.status_code == 400
            assert more.json()["error"]["code"] == "too-many-steps"
            assert len(provider.asked) == limit
        said.append({"role": "user", "content": "Go on."})
        assert await service.ask(client, said, "s")


@pytest.mark.req("R021")
@pytest.mark.parametrize("profile", ["balanced", "inkeep"])
async def test_a_fold_names_each_large_result_and_promises_nothing(service, provider, profile):
    for nth in range(23):
        service.write(f"f{nth}.txt", f"Line {nth} of the file. " * 150)
    async with service.running(profile) as client:
        told = await service.talk(client, [f"read f{nth}.txt" for nth in range(12)])
        assert (await client.post(FOLDS, json={})).status_code == 200
        told = await service.talk(client, [f"read f{nth}.txt" for nth in range(12, 23)], "s", told)
        assert (await client.post(FOLDS, json={})).status_code == 200
        await service.talk(client, ["Well?"], "s", told)
        results = [
            one["seq"]
            for one in await entries(client, kind="message")
            if one["body"]["role"] == "tool"
        ]
    sent = provider.asked[-1]
    whole = sum(one["role"] == "tool" for one in sent.messages)  # of the turns that are not folded
    folds = " ".join(one["content"] for one in sent.messages if one["role"] == "user")
    named = [seq for seq in results if re.search(rf"\b{seq}\.0\b", folds)]
    assert whole <= 2
    assert len(named) == len(results) - whole
    words = " ".join(texts(provider.asked[-1])).lower()
    assert not any(promise in words for promise in ("read again", "read it back", "recall"))
