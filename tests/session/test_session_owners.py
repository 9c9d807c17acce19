"""Whose conversation it is: by every identifier of the client's, and by the key that began it."""

import asyncio
import json
import os
import sys

import pytest
from dbos_servers import dbos, dbos_address  # noqa: F401 - fixtures
from gateway_world import served
from serve_process import serve_process

from refold.gateway.large_requests import MAX_BYTES
from refold.service.keys import keyring_of
from refold.stores import open_store
from refold.testing.upstream import Reply, ScriptedUpstream

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


@pytest.fixture
def upstream():
    return ScriptedUpstream(lambda _: Reply("Hello there."))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    return request.getfixturevalue("dbos_address")


def chat(*contents, **more):
    roles = ("user", "assistant")
    messages = [
        {"role": roles[index % 2], "content": content} for index, content in enumerate(contents)
    ]
    return {"model": "some-model", "messages": messages, **more}


async def test_every_identifier_counts_for_whose_conversation_it_is(store, upstream, tmp_path):
    who = [
        {},
        {"user": "alice"},
        {"user": "bob"},
        {"safety_identifier": "alice"},
        {"user": "alice", "safety_identifier": "bob"},
        {"user": "alice", "safety_identifier": "alice"},
    ]
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path) as serving,
        serving.client() as client,
    ):
        first = [await client.post(CHAT, json=chat("Hi.", **one)) for one in who]
        begun = [one.headers["refold-session"] for one in first]
        assert len({*begun}) == len(who)
        talk = ("Hi.", "Hello there.", "Go on.")
        again = [await client.post(CHAT, json=chat(*talk, **one)) for one in who]
        assert [one.headers["refold-session"] for one in again] == begun


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, chat("Hi.", user=["alice"])),
        (CHAT, chat("Hi.", user="alice", safety_identifier=7)),
        (RESPONSES, {"model": "m", "input": "Hi.", "user": {"id": "alice"}}),
        (MESSAGES, {**chat("Hi."), "max_tokens": 9, "metadata": {"user_id": ["alice"]}}),
        (MESSAGES, {**chat("Hi."), "max_tokens": 9, "metadata": "alice"}),
    ],
)
async def test_an_identifier_that_is_no_text_makes_a_request_unmanaged(
    upstream, tmp_path, path, body
):
    store = f"sqlite:///{tmp_path}/test.db"
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path, offload_processes=0) as serving,
        serving.client() as client,
    ):
        answer = await client.post(path, json=body)
        assert answer.status_code == 200
        assert answer.headers["refold-managed"].startswith("no; reason=unsupported-request")
    assert upstream.got[0].body == body


async def test_a_named_session_belongs_to_the_key_that_began_it(store, upstream, tmp_path):
    named = {"Refold-Session": "support-42"}
    async with served(upstream) as base, serve_process(store, base, tmp_path) as serving:
        ann, bob = await serving.key("acme"), await serving.key("acme")
        boss = await serving.key("acme", "use", "admin")

        async def ask(secret, *contents, headers=named):
            async with serving.client(secret) as client:
                return await client.post(CHAT, json=chat(*contents), headers=headers)

        assert (await ask(ann.secret, "Hi.")).headers["refold-session"] == "support-42"
        refused = await ask(bob.secret, "Give me this.")
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "session-owned"
        assert "hand" in refused.json()["error"]["message"]
        # Nor by a request that another process answers.
        assert (await ask(bob.secret, "x" * MAX_BYTES)).status_code == 403
        # Nor a session that the service has named.
        unnamed = await ask(ann.secret, "Hello, you.", headers={})
        other = {"Refold-Session": unnamed.headers["refold-session"]}
        assert (await ask(bob.secret, "Give me that.", headers=other)).status_code == 403
        assert len(upstream.got) == 2

        async with open_store(store) as opened:
            rotated = await keyring_of(opened).rotate(ann.key.id, overlap=0)
        talk = ("Hi.", "Hello there.", "Go on.")
        assert (await ask(rotated.secret, *talk)).headers["refold-session"] == "support-42"
        assert (await ask(boss.secret, *talk)).headers["refold-session"] == "support-42"

        await hand_over("support-42", bob.key.id, store)
        async with asyncio.timeout(60):
            while (await ask(bob.secret, "Now?")).status_code == 403:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert (await ask(ann.secret, *talk)).status_code == 401
        assert (await ask(rotated.secret, *talk)).status_code == 403
        async with serving.client(boss.secret) as client:
            back = await client.put("/api/v1/sessions/support-42/owner", json={"key": ann.key.id})
            assert back.status_code == 200
            wrong = await client.put("/api/v1/sessions/support-42/owner", json={"key": "nobody"})
            assert wrong.status_code == 404
        async with serving.client(bob.secret) as client:
            own = await client.put("/api/v1/sessions/support-42/owner", json={"key": bob.key.id})
            assert own.status_code == 403
        assert (await ask(rotated.secret, *talk)).status_code == 200
        assert (await ask(bob.secret, *talk)).status_code == 403


async def test_a_session_that_begins_again_by_its_name_is_its_new_keys(store, upstream, tmp_path):
    named = {"Refold-Session": "support-42"}
    async with served(upstream) as base, serve_process(store, base, tmp_path) as serving:
        ann, bob = await serving.key("acme"), await serving.key("acme")
        boss = await serving.key("acme", "use", "admin")
        async with (
            serving.client(ann.secret) as hers,
            serving.client(bob.secret) as his,
            serving.client(boss.secret) as client,
        ):
            assert (await hers.post(CHAT, json=chat("Hi."), headers=named)).status_code == 200
            assert (await client.delete("/api/v1/sessions/support-42")).status_code == 200
            assert (await his.post(CHAT, json=chat("Hi."), headers=named)).status_code == 200
            assert (await hers.post(CHAT, json=chat("Hi."), headers=named)).status_code == 403


async def hand_over(session, key, store):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "refold.cli", "keys", "hand-over", session, key),
        *("--store", store, "--json"),
        stdout=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    said, _ = await process.communicate()
    assert json.loads(said) == {"session": session, "tenant": "acme", "key": key}
