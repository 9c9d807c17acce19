"""What agents call their conversations, in headers: hints that join nothing by themselves."""

import json

import pytest
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, body_of, worlds

from refold.gateway.incoming import conversation_of
from refold.testing.upstream import Reply


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


AGENTS = [
    ("x-claude-code-session-id", MESSAGES),
    ("x-qwen-code-session-id", CHAT),
    ("thread-id", RESPONSES),
    ("session_id", RESPONSES),
    ("conversation_id", RESPONSES),
    ("x-session-affinity", CHAT),
    ("x-client-session-id", CHAT),
]


@pytest.mark.parametrize(("header", "path"), AGENTS)
async def test_another_name_continues_in_a_fork(world, header, path):
    w = world()
    first = await w.ask(path, body_of(path, "hi"), **{header: "a"})
    on = body_of(path, "hi", "Hello there.", "more")
    other = await w.ask(path, on, **{header: "b"})
    assert other.headers["refold-session"] != first.headers["refold-session"]
    own = await w.ask(path, on, **{header: "a"})
    assert own.headers["refold-session"] == first.headers["refold-session"]
    assert len(await w.said(first.headers["refold-session"])) == 4


@pytest.mark.parametrize("path", PATHS)
async def test_a_retry_under_another_name_leaves_the_first_answer_alone(world, path):
    replies = iter(["One.", "Two.", "Three.", "Four."])
    w = world(lambda _: Reply(next(replies)))
    await w.ask(path, body_of(path, "hi"), session_id="a")
    on = body_of(path, "hi", "One.", "more")
    first = await w.ask(path, on, session_id="a")
    other = await w.ask(path, on, session_id="b")
    assert other.headers["refold-session"] != first.headers["refold-session"]
    assert "Two." in json.dumps(await w.said(first.headers["refold-session"]))
    assert "Two." not in json.dumps(await w.said(other.headers["refold-session"]))


async def test_of_two_that_are_alike_each_continues_its_own(world):
    w = world()
    names = [f"agent-{nth}" for nth in range(4)]
    first = [await w.ask(CHAT, body_of(CHAT, "hi"), session_id=name) for name in names]
    on = body_of(CHAT, "hi", "Hello there.", "more")
    for name, before in reversed([*zip(names, first, strict=True)]):
        after = await w.ask(CHAT, on, session_id=name)
        assert after.headers["refold-session"] == before.headers["refold-session"]
    assert len(await w.sessions()) == 4


async def test_the_same_name_joins_no_other_content(world):
    w = world()
    first = await w.ask(CHAT, body_of(CHAT, "hi"), session_id="a")
    other = await w.ask(CHAT, body_of(CHAT, "something else"), session_id="a")
    assert other.headers["refold-session"] != first.headers["refold-session"]


async def test_the_same_name_joins_no_other_tenant(world):
    w = world()
    await w.ask(CHAT, body_of(CHAT, "hi"), session_id="a")
    on = body_of(CHAT, "hi", "Hello there.", "more")
    other = await w.ask(CHAT, on, **{"session_id": "a", "x-tenant": "other"})
    assert len(await w.sessions()) == 1
    assert other.headers["refold-session"] not in await w.sessions()


async def test_without_a_name_content_alone_decides(world):
    w = world()
    first = await w.ask(CHAT, body_of(CHAT, "hi"), session_id="a")
    on = await w.ask(CHAT, body_of(CHAT, "hi", "Hello there.", "more"))
    assert on.headers["refold-session"] == first.headers["refold-session"]


def test_a_sub_agent_has_a_name_of_its_own():
    parent = {"x-claude-code-session-id": "s"}
    assert conversation_of(parent) == "s"
    assert conversation_of({**parent, "x-claude-code-agent-id": "a1"}) == "s/a1"
    assert conversation_of({"x-claude-code-agent-id": "a1"}) == ""
    assert conversation_of({"x-interaction-id": "i", "x-request-id": "r"}) == ""
    assert conversation_of({"thread-id": "t", "session-id": "s"}) == "t"
    assert len(conversation_of({"session_id": "x" * 10_000})) == 200
