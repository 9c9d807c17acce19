"""Summaries below the last request of a session: what its provider is sent decides."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from gateway_world import CHAT, MESSAGES, RESPONSES, served
from serving import asking, settings_with

from refold.models.catalog import ModelSettings
from refold.service.service import Service
from refold.stores import MemoryStore
from refold.testing.upstream import Call, Refusal, Reply, ScriptedUpstream

PATHS = [CHAT, RESPONSES, MESSAGES]
SUMMARY = (
    "## State\n"
    '- The pages were read one by one. — "says this and that about chapter 1"\n'
    '- Nothing was changed so far. — "It is clear now, and nothing was changed"'
)
PURPOSE = "x-interaction-type"
TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
TOOLS = {
    CHAT: [{"type": "function", "function": TOOL}],
    RESPONSES: [{"type": "function", **TOOL}],
    MESSAGES: [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
}


class Provider:
    """Answers; what is asked for a summary stands apart."""

    def __init__(self, summary=SUMMARY, answer=None):
        self.summary, self.answer = summary, answer
        self.asked, self.summaries = [], []
        self.upstream = ScriptedUpstream(self.reply)

    def before(self, summary):
        """The number of the request below which a summary was asked for."""
        shown = conversation(summary.path, summary.body)
        sent = (conversation(one.path, one.body) for one in self.asked)
        return max(nth for nth, one in enumerate(sent) if one == shown[: len(one)])

    def reply(self, got):
        if got.headers.get(PURPOSE):
            self.summaries.append(got)
            return self.summary(got) if callable(self.summary) else Reply(self.summary)
        self.asked.append(got)
        if self.answer:
            return self.answer(len(self.asked))
        return Reply(f"That was page {len(self.asked)}. It is clear now, and nothing was changed.")


def conversation(path, body):
    return body["input" if path == RESPONSES else "messages"]


def others(path, body):
    """All of a body but its conversation."""
    return {name: value for name, value in body.items() if value is not conversation(path, body)}


async def talk(client, path, *, turns=8, keys=lambda _: "the-clients", **more):
    """An agent that sends its whole history each time."""
    said = []
    limit = {"max_tokens": 500} if path == MESSAGES else {}
    body = {"model": "some-model", "tools": TOOLS[path], "temperature": 0.25, **limit, **more}
    for turn in range(turns):
        words = f"Page {turn} of the book says this and that about chapter {turn}. " * 50
        said.append({"role": "user", "content": words})
        name = "input" if path == RESPONSES else "messages"
        headers = {"authorization": f"Bearer {keys(turn)}", "refold-session": "s"}
        got = await client.post(path, json={**body, name: said}, headers=headers)
        assert got.status_code == 200, got.text
        said.append({"role": "assistant", "content": answered(got)})
        await idle(client)


def answered(got):
    """The text of an answer, whole or a stream."""
    texts = []
    lines = [line[6:] for line in got.text.splitlines() if line.startswith("data: {")]
    for one in map(json.loads, lines or [got.text]):
        match one:
            case {"choices": [{"message": {"content": str(text)}}]}:
                texts.append(text)
            case {"choices": [{"delta": {"content": str(text)}}]}:
                texts.append(text)
            case {"type": "response.output_text.delta", "delta": text}:
                texts.append(text)
            case {"delta": {"text": text}}:
                texts.append(text)
            case {"output": [*_, {"content": [{"text": text}]}]}:
                texts.append(text)
            case {"type": "message", "content": [{"text": text}]}:
                texts.append(text)
    return "".join(texts)


async def idle(client):
    """The fold that began, if one did, has come to its end."""
    async with asyncio.timeout(60):
        while len(await entries(client, "fold.start")) > len(await ends(client)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def ends(client):
    kinds = ("fold.complete", "fold.failed")
    return [one for kind in kinds for one in await entries(client, kind)]


async def entries(client, kind):
    params = {"limit": 500, "kind": kind}
    got = await client.get("/api/v1/sessions/s/entries", params=params)
    return [one["body"] for one in got.json()["entries"]]


async def writers(client):
    """Who wrote the summaries, and how."""
    found = []
    for body in await entries(client, "fold.complete"):
        summary = body["summary"]
        offers = (summary.get("report") or {}).get("offers", [])
        found.append((summary.get("by"), [offer[1] for offer in offers]))
    return found


@asynccontextmanager
async def serving(provider, *, key="none", window=6_000, upstream=None, **serve):
    """A client of the service, before this provider."""
    async with served(provider.upstream) as address:
        given = {"name": "up", "base_url": f"{address}/v1", "key": key, **(upstream or {})}
        settings = settings_with(upstreams=[given], **serve)
        models = {"some-model": ModelSettings(window=window)}
        service = Service(replace(settings, models=models), MemoryStore(), "memory:")
        async with asking(service) as client:
            yield client


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", PATHS)
async def test_the_summary_is_asked_for_below_the_last_request(path, stream):
    provider = Provider()
    async with serving(provider) as client:
        await talk(client, path, stream=stream)
        made = await writers(client)
    assert provider.summaries
    assert {by for by, _ in made} == {"some-model"}
    for asked in provider.summaries:
        before = provider.asked[provider.before(asked)]
        assert asked.path == path
        assert others(path, asked.body) == others(path, before.body)
        answer, prompt = conversation(path, asked.body)[-2:]
        assert "That was page" in json.dumps(answer)
        assert "Write that summary now" in json.dumps(prompt)


async def test_calls_in_the_last_answer_are_not_shown():
    """A provider refuses a call without its result."""
    provider = Provider(answer=lambda nth: Reply("", calls=(Call(f"call-{nth}", "look", {}),)))
    said = [{"role": "user", "content": "Read the book."}]
    async with serving(provider) as client:
        for turn in range(8):
            body = {"model": "some-model", "tools": TOOLS[CHAT], "messages": said}
            got = await client.post(CHAT, json=body, headers={"refold-session": "s"})
            called = got.json()["choices"][0]["message"]
            result = f"Page {turn} says this and that about chapter {turn}. " * 50
            call = called["tool_calls"][0]["id"]
            said += [called, {"role": "tool", "tool_call_id": call, "content": result}]
            await idle(client)
        made = await writers(client)
    assert {by for by, _ in made} == {"some-model"}
    for asked in provider.summaries:
        last, prompt = asked.body["messages"][-2:]
        assert (last["role"], prompt["role"]) == ("tool", "user")


async def test_a_model_that_calls_a_tool_is_asked_with_a_transcript():
    calls = Reply("", calls=(Call("c1", "look", {}),))
    provider = Provider(lambda got: calls if got.body.get("tools") else Reply(SUMMARY))
    async with serving(provider) as client:
        await talk(client, CHAT)
        made = await writers(client)
    assert {by for by, _ in made} == {"openai:some-model"}
    assert [bool(one.body.get("tools")) for one in provider.summaries[:2]] == [True, False]


JSON = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("path", "forced"),
    [
        (CHAT, {"tool_choice": "required"}),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "look"}}}),
        (CHAT, {"response_format": {"type": "json_object"}}),
        (RESPONSES, {"text": {"format": JSON}}),
        (MESSAGES, {"tool_choice": {"type": "any"}}),
        (MESSAGES, {"output_config": {"format": JSON}}),
    ],
)
async def test_where_a_model_may_not_answer_with_text_it_gets_a_transcript(path, forced):
    provider = Provider()
    async with serving(provider) as client:
        await talk(client, path, **forced)
        made = await writers(client)
    assert made
    assert {tuple(how) for _, how in made} == {("transcript",)}
    assert not any(one.body.get("tools") for one in provider.summaries)


async def test_a_refusal_for_its_length_leads_to_a_transcript():
    error = {"code": "context_length_exceeded", "message": "too long", "type": "invalid"}

    def summary(got):
        return Refusal(400, {"error": error}) if got.body.get("tools") else Reply(SUMMARY)

    provider = Provider(summary)
    async with serving(provider) as client:
        await talk(client, CHAT)
        made = await writers(client)
    assert made
    assert {by for by, _ in made} == {"openai:some-model"}


@pytest.mark.parametrize("path", PATHS)
async def test_a_clients_key_is_lent_only_if_the_operator_says_so(path, capfd):
    for lent in (False, True):
        provider = Provider()
        async with serving(provider, key="pass", summarize_with_client_key=lent) as client:
            await talk(client, path, keys=lambda _: "a-clients-own")
            made = await writers(client)
        assert {by for by, _ in made} == ({"some-model"} if lent else {"breadcrumb"})
        keys = {one.headers.get("authorization") for one in provider.summaries}
        assert keys == ({"Bearer a-clients-own"} if lent else set())
    assert "a-clients-own" not in "".join(capfd.readouterr())


async def test_the_key_is_that_of_the_request_that_starts_the_fold():
    """Nothing that is kept of a request has a key."""
    provider = Provider()
    async with serving(provider, key="pass", summarize_with_client_key=True) as client:
        await talk(client, CHAT, keys=lambda turn: f"key-{turn}")
    assert provider.summaries
    for asked in provider.summaries:
        starts = provider.asked[provider.before(asked) + 1]
        assert asked.headers["authorization"] == starts.headers["authorization"]


async def test_a_server_that_speaks_only_responses_is_asked_too():
    provider = Provider()
    only = {"dialects": ["openai-responses"]}
    async with serving(provider, upstream=only) as client:
        await talk(client, RESPONSES)
        made = await writers(client)
    assert {by for by, _ in made} == {"some-model"}
    assert {one.path for one in provider.summaries} == {RESPONSES}
