"""What a request sent beside its messages is kept, so that its whole body can be made again."""

import json
from typing import Any

import pytest
from gateway_world import CHAT, MESSAGES, PATHS, RESPONSES, body_of, worlds

from refold.errors import Unrebuildable
from refold.gateway.history import KEPT_HEADERS
from refold.gateway.sent_body import sent_body
from refold.log import Span
from refold.testing.upstream import Reply

COMPACT, SPACED = (",", ":"), (", ", ": ")
MARK = {"type": "ephemeral"}
SECRETS = {
    "authorization": "Bearer sk-secret-one",
    "x-api-key": "sk-secret-two",
    "refold-key": "rfk_secret",
    "cookie": "session=secret",
    "proxy-authorization": "Basic c2VjcmV0",
    "chatgpt-account-id": "secret-account",
}


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


async def send(w, path, body, separators=COMPACT, *, ascii_only=False, **headers):
    text = json.dumps(body, separators=separators, ensure_ascii=ascii_only)
    answer = await w.client.post(path, content=text.encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    await w.quiet()
    session, _, seq = answer.headers["refold-request"].rpartition(":")
    return session, int(seq)


def full_body(path, *messages):
    """A body with everything: instructions, tools, parameters, odd fields, in an odd order."""
    said = body_of(path, *messages)
    tools = {
        CHAT: [{"type": "function", "function": {"name": "read", "parameters": {}}}],
        RESPONSES: [{"type": "function", "name": "read", "parameters": {}}],
        MESSAGES: [{"name": "read", "input_schema": {"type": "object"}}],
    }[path]
    if path == CHAT:
        said["messages"].insert(0, {"role": "system", "content": "Be brief. Grüße, 北京."})
    more = {RESPONSES: {"instructions": "Be brief."}, MESSAGES: {"system": "Be brief."}}
    return {"temperature": 0.5, "tools": tools, **said, **more.get(path, {}), "x_odd": [1, None]}


def sent_back(body):
    """The answer in the body as its API gave it, as careful clients send it back."""
    if "system" in body:
        body["messages"][1]["content"] = [{"type": "text", "text": "Hello there."}]
    elif "input" in body:
        text = {"type": "output_text", "text": "Hello there.", "annotations": []}
        about = {"type": "message", "id": "msg_00000001", "role": "assistant"}
        body["input"][1] = {**about, "status": "completed", "content": [text]}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("separators", [COMPACT, SPACED])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_the_whole_body_is_made_again_byte_for_byte(world, path, separators, ascii_only):
    w = world()
    first = full_body(path, "Hi, 北京")
    session, seq = await send(w, path, first, separators, ascii_only=ascii_only)
    more = full_body(path, "Hi, 北京", "Hello there.", "And é?")
    sent_back(more)
    session, other = await send(w, path, more, separators, ascii_only=ascii_only)
    for body, place in ((first, seq), (more, other)):
        made = await sent_body(w.log, session, place)
        assert made.state == "exact"
        assert made.path == path
        expected = json.dumps(body, separators=separators, ensure_ascii=ascii_only).encode()
        assert made.body == expected


async def test_cache_marks_are_where_the_client_had_them_then(world):
    w = world()
    first = body_of(MESSAGES, "hi")
    first["messages"][0]["content"] = [{"type": "text", "text": "hi", "cache_control": MARK}]
    session, seq = await send(w, MESSAGES, first)
    more = body_of(MESSAGES, "hi", "Hello there.", "on")
    more["messages"][0]["content"] = [{"type": "text", "text": "hi"}]
    more["messages"][1]["content"] = [{"type": "text", "text": "Hello there."}]
    more["messages"][2]["content"] = [{"type": "text", "text": "on", "cache_control": MARK}]
    session, other = await send(w, MESSAGES, more)
    for body, place in ((first, seq), (more, other)):
        made = await sent_body(w.log, session, place)
        assert (made.state, json.loads(made.body)) == ("exact", body)


async def test_an_edited_body_is_made_again_too(world):
    w = world(lambda _: Reply("Hello there."), models={})
    big = "line\n" * 60_000
    body = body_of(CHAT, "hi")
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [{"role": "user", "content": "hi"}]
    for nth in range(4):
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [{**call, "id": f"c{nth}"}]},
            {"role": "tool", "tool_call_id": f"c{nth}", "content": f"{nth} {big}"},
            {"role": "assistant", "content": f"It is long. {nth}"},
            {"role": "user", "content": f"again {nth}"},
        ]
    session, seq = await send(w, CHAT, {**body, "messages": messages})
    sent = w.upstream.got[-1].raw if hasattr(w.upstream.got[-1], "raw") else None
    made = await sent_body(w.log, session, seq)
    assert made.state == "exact"
    assert json.loads(made.body) == w.upstream.got[-1].body
    assert json.loads(made.body) != {**body, "messages": messages}
    assert sent is None or sent == made.body


async def test_what_a_client_spells_in_its_own_way_is_called_respelled(world):
    w = world()
    odd = b'{"model":"some-model",  "messages":[{"role":"user","content":"hi"}]}'
    answer = await w.client.post(CHAT, content=odd)
    await w.quiet()
    session, _, seq = answer.headers["refold-request"].rpartition(":")
    made = await sent_body(w.log, session, int(seq))
    assert made.state == "respelled"
    assert json.loads(made.body) == json.loads(odd)


async def test_headers_are_kept_by_a_list_and_none_of_them_is_a_secret(world):
    w = world()
    headers: Any = {"user-agent": "agent/1.2", "anthropic-version": "2023-06-01"}
    headers["x-other"] = "no"
    session, seq = await send(w, MESSAGES, body_of(MESSAGES, "hi"), **SECRETS, **headers)
    made = await sent_body(w.log, session, seq)
    assert made.headers["user-agent"] == "agent/1.2"
    assert made.headers["anthropic-version"] == "2023-06-01"
    assert made.headers.keys() <= KEPT_HEADERS
    stored = b"".join(entry.body for entry in await w.log.read(session))
    hashes = {name for entry in await w.log.read(session) for name in entry.attached}
    stored += b"".join([(await w.log.artifact(name)).data for name in hashes])
    for secret in (*SECRETS.values(), "secret"):
        assert secret.encode() not in stored


async def test_what_does_not_change_is_kept_once(world):
    w = world()
    said = ["hi"]
    for nth in range(4):
        session, _ = await send(w, CHAT, full_body(CHAT, *said))
        said += ["Hello there.", f"on {nth}"]
    records = [x for x in await w.values(session) if x.KIND == "request"]
    for name in ("instructions", "tools", "settings", "fields", "headers", "marks"):
        assert len({record.plan["settings"][name] for record in records}) == 1
    attached = [x.attached for x in await w.log.read(session) if x.kind == "request"]
    assert all(attached[0])
    assert [len(each) for each in attached[1:]] == [0, 0, 0]


async def test_what_was_forgotten_is_not_made_again(world):
    w = world()
    session, seq = await send(w, CHAT, body_of(CHAT, "hi"))
    await w.log.forget(session, Span(2, 2))
    with pytest.raises(Unrebuildable):
        await sent_body(w.log, session, seq)


async def test_an_answer_that_comes_back_in_another_form_is_kept_once(world):
    w, said, bodies = world(), ["hi"], []
    for nth in range(6):
        body = body_of(MESSAGES, *said)  # answers come back as texts, not as they were given
        session, seq = await send(w, MESSAGES, body)
        bodies.append((seq, body))
        said += ["Hello there.", f"on {nth}"]
    for seq, body in bodies:
        made = await sent_body(w.log, session, seq)
        assert (made.state, json.loads(made.body)) == ("exact", body)
    records = [x for x in await w.log.read(session) if x.kind == "request"]
    assert [len(each.attached) for each in records[1:]] == [1, 0, 0, 0, 0]  # all have the same form


async def test_the_forms_go_on_after_a_restart_and_over_many_requests(world):
    said, bodies = ["hi"], []
    store: Any = None
    for _ in range(3):
        w = world(store=store)
        store = w.store
        for nth in range(30):
            body = body_of(MESSAGES, *said)
            session, seq = await send(w, MESSAGES, body)
            bodies.append((seq, body))
            said += ["Hello there.", f"on {nth}"]
        await w.aclose()
    for seq, body in bodies:
        made = await sent_body(store.log(), session, seq)
        assert (made.state, len(json.loads(made.body)["messages"])) == (
            "exact",
            len(body["messages"]),
        )


async def test_with_a_form_forgotten_the_rest_is_respelled_and_says_so(world):
    w, said = world(), ["hi"]
    for nth in range(3):
        session, seq = await send(w, MESSAGES, body_of(MESSAGES, *said))
        said += ["Hello there.", f"secret-word {nth}"]
    await w.log.forget(session, Span(2, 2))
    stored = [await w.log.read(session)]
    hashes = {name for entries in stored for entry in entries for name in entry.attached}
    texts = b"".join([(await w.log.artifact(name)).data for name in hashes])
    assert b"Hello there." not in texts
    with pytest.raises(Unrebuildable):
        await sent_body(w.log, session, seq)
