"""What may be used: nothing is free because of how it is asked for."""

import asyncio
import gzip
import json
from types import SimpleNamespace

import httpx2
import pytest
from gateway_world import CHAT, RESPONSES
from service_towns import EVENTS, HI, JSON, completion, town

from refold.errors import NoModel
from refold.fold.compactor import context
from refold.fold.job import Job
from refold.gateway.upstream import Upstream, Upstreams
from refold.service import summarizers
from refold.service.quotas import Spending
from refold.service.vault import new_master_key
from refold.view import Fold


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())


UNMANAGED = [
    (CHAT, {**HI, "n": 2}, {}, [JSON], [completion(prompt_tokens=70, completion_tokens=50)]),
    (CHAT, {**HI, "n": 2}, {}, [JSON], [completion("word " * 100)]),
    (CHAT, HI, {"Content-Encoding": "gzip"}, [JSON], [completion("word " * 100)]),
    (CHAT, {**HI, "stream": True}, {}, [EVENTS], None),
    (
        RESPONSES,
        {"model": "m", "input": "hi", "prompt": {"id": "p"}},
        {},
        [EVENTS],
        [b'data: {"response":{"usage":{"input_tokens":70,"output_tokens":50}}}\n\n'],
    ),
    (
        "/v1/embeddings",
        {"model": "m", "input": "hi"},
        {},
        [JSON],
        [b'{"data":[],"usage":{"prompt_tokens":120,"total_tokens":120}}'],
    ),
]


def chunks(text):
    """A stream that says nothing of what it used."""
    for delta, finish in [({"role": "assistant", "content": text}, None), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


async def test_nothing_is_free_because_it_is_not_managed():
    async with town(limits={"day_tokens": 100}) as t:
        await t.service.vault.put("*", "up", "sk-for-all")
        for nth, (path, body, headers, kind, pieces) in enumerate(UNMANAGED):
            client = await t.client(f"tenant-{nth}")
            t.upstream.headers, t.upstream.got = kind, []
            t.upstream.pieces = pieces or [*chunks("word " * 100)]
            content = json.dumps(body).encode()
            sent = gzip.compress(content) if headers else content
            assert (await client.post(path, content=sent, headers=headers)).status_code == 200
            answer = await client.post(path, content=sent, headers=headers)
            assert (answer.status_code, len(t.upstream.got)) == (429, 1), nth


async def test_who_leaves_before_the_end_has_used_what_came():
    async with town(limits={"day_tokens": 100}) as t:
        client = await t.client()
        t.upstream.headers, t.upstream.pieces = [EVENTS], [next(chunks("word " * 500))] * 50
        async with client.stream("POST", CHAT, json={**HI, "n": 2, "stream": True}) as answer:
            await anext(answer.aiter_raw())
        async with asyncio.timeout(20):
            while not t.service.quotas.used("acme").tokens:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        assert (await client.post(CHAT, json=HI)).status_code == 429


async def test_limits_count_a_key_however_it_is_sent():
    async with town(limits={"key_requests": 6}) as t:
        client = await t.client(Accept="*/*")
        secret = client.key.secret
        forms = [
            {"Authorization": f"Bearer {secret}"},
            {"authorization": f"BEARER  {secret}"},
            {"X-Api-Key": secret},
            {"x-API-key": secret},
            {"Refold-Key": secret, "Authorization": "Bearer sk-other"},
            {"REFOLD-KEY": secret, "X-Api-Key": "sk-other"},
        ]
        for form in forms:
            assert (await client.get("/v1/models", headers=form)).status_code == 200
        for form in forms:
            assert (await client.get("/v1/models", headers=form)).status_code == 429
        assert (await client.get(f"/v1/models?key={secret}")).status_code == 401


def job_for(model, summarizer=""):
    given = context(Fold(), {}, model=model, summarizer=summarizer)
    return SimpleNamespace(context=given, trigger="auto", spec=Job)


def test_a_clients_word_does_not_choose_a_key_of_the_process(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-who-runs-it")
    client = httpx2.AsyncClient()
    upstreams = Upstreams([Upstream("up", "http://up", models=("m-*",), key="sk-up")], client)
    resolved = summarizers._UpstreamModels(upstreams).resolve
    with pytest.raises(NoModel):
        resolved("acme", "openai:gpt-4o", job_for("openai:gpt-4o"))
    assert resolved("acme", "m-1:8b", job_for("m-1:8b")).base_url.startswith("http://up")
    named = job_for("m-1", "openai:gpt-4o")
    assert "openai.com" in resolved("acme", "openai:gpt-4o", named).base_url


async def test_summaries_are_counted_and_end_with_the_quota(monkeypatch):
    spent, refused = [], []

    async def write(*_args):
        return SimpleNamespace(usage={"input": 10, "output": 5, "calls": 1}, by="m")

    monkeypatch.setattr(
        summarizers, "by_model", lambda resolve, *_more: (seen.append(resolve), write)[1]
    )
    monkeypatch.setattr(summarizers._UpstreamModels, "resolve", lambda *_: None)
    seen = []
    spending = Spending(refused.append, lambda *one: spent.append(one))
    settings = SimpleNamespace(models={})
    await summarizers.upstream_summarizers(None, settings, spending)("acme")(
        None, job_for("m"), None
    )
    assert [(who, used.input, used.output) for who, used, _ in spent] == [("acme", 10, 5)]
    seen[0]("m", None)
    assert refused == ["acme"]
