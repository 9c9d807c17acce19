"""The edges of the gateway: who leaves, what breaks, what is asked twice at once."""

import asyncio
import json

import pytest
from gateway_edges import ENDS, KEYS, TOO_LONG, asgi, released
from gateway_world import MESSAGES, PATHS, RESPONSES, body_of, worlds

from refold.errors import StoreFailed
from refold.gateway.history import _in_clients_form
from refold.models.catalog import ModelSettings
from refold.testing.upstream import Call, Refusal, Reply


@pytest.fixture
async def world():
    async with worlds() as make:
        yield make


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("nth", "more"), [(0, 1), (1, 1), (2, 1), (1, 100), (2, 100)])
async def test_a_store_that_fails_refuses_what_was_not_asked_and_withholds_no_answer(  # noqa: PLR0913, PLR0917
    world, path, stream, nth, more, monkeypatch
):
    """The prompt is the first append, the record of the request the second, the answer the third.

    Once the provider has answered, its client gets the answer, whole.
    """
    w = world(lambda _: Reply("Hello there.", pieces=3))
    append = type(w.log).append
    count = iter(range(10_000))

    async def failing(self, session, drafts, **kept):
        if nth <= next(count) < nth + more:
            raise StoreFailed("The store is away.", "Wait.")
        return await append(self, session, drafts, **kept)

    monkeypatch.setattr(type(w.log), "append", failing)
    body = body_of(path, "hi", stream=stream)
    answer = await w.ask(path, body)
    parsed_request = nth == 2
    assert (answer.status_code, len(w.upstream.got)) == ((200, 1) if parsed_request else (500, 0))
    assert (b"Hell" in answer.content, stream and ENDS[path] in answer.content) == (
        (True, stream) if parsed_request else (False, False)
    )
    if parsed_request and not stream:
        assert answer.headers["refold-managed"] == "yes; answer=not-logged"
    comment = b"\n\n: refold-managed: yes; answer=not-logged\n\n"
    assert (comment in answer.content) == (parsed_request and stream)
    assert len(w.gateway.unmanaged) == parsed_request
    await w.quiet()
    released(w)
    monkeypatch.undo()
    assert (await w.ask(path, body)).status_code == 200
    await w.quiet()
    released(w)


@pytest.mark.parametrize("version", ["2.3", "2.4"])
@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_is_gone_before_the_first_byte_leaves_its_place(world, path, version):
    w = world(lambda _: Reply("Hello there."))
    body = body_of(path, "hi", stream=True)

    async def send(_message):
        raise OSError("gone")

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the framework says
        await asgi(w.app, path, json.dumps(body).encode(), send, version=version)
    await w.quiet()
    released(w)
    gone = asyncio.Event()
    gone.set()

    async def heard(_message):
        await asyncio.sleep(0)

    await asgi(w.app, path, json.dumps(body).encode(), heard, gone)
    await w.quiet()
    released(w)
    assert ENDS[path] in (await w.ask(path, body)).content


async def test_names_of_sessions_that_are_nowhere_cost_nothing(world):
    w = world()
    for nth in range(3):
        with pytest.raises(Exception, match="no session"):
            async with w.gateway.sessions.using("default", f"nowhere-{nth}"):
                pass
    released(w)


async def test_thoughts_that_a_client_leaves_out_are_not_sent_for_it(world):
    w = world(lambda _: Reply("", (Call("c1", "look", {}),), thought="Hm."))
    body = body_of(RESPONSES, "hi")
    items = (await w.ask(RESPONSES, body)).json()["output"]
    assert [one["type"] for one in items] == ["reasoning", "function_call"]
    body["input"] += [
        {key: items[1][key] for key in ("type", "call_id", "name", "arguments")},
        {"type": "function_call_output", "call_id": "c1", "output": "there"},
    ]
    await w.ask(RESPONSES, body)
    assert w.upstream.got[1].body == body
    assert len(await w.sessions()) == 1


async def test_what_is_edited_part_by_part_has_the_parts_that_were_logged(world):
    w = world(lambda _: Reply("Hello there.", thought="Hm."))
    session = (await w.ask(MESSAGES, body_of(MESSAGES, "hi"))).headers["refold-session"]
    theirs = json.dumps({"role": "assistant", "content": "Hello there."}).encode()
    async with w.gateway.sessions.using("default", session) as one:
        wire, row = one.inputs.wire, one.inputs.rows[1]
    assert _in_clients_form(wire, row, theirs, set()).payload == theirs
    assert _in_clients_form(wire, row, theirs, {row.seq}).payload == row.payload
    marked = json.loads(row.payload)
    marked["content"][1]["cache_control"] = {"type": "ephemeral"}
    same = json.dumps(marked).encode()
    assert _in_clients_form(wire, row, same, {row.seq}).payload == same


@pytest.mark.parametrize("path", PATHS)
async def test_a_name_of_another_format_is_refused(world, path):
    w = world()
    other = PATHS[PATHS.index(path) - 1]
    assert (await w.ask(other, body_of(other, "hi"), **{"refold-session": "x"})).status_code == 200
    refused = await w.ask(path, body_of(path, "hi"), **{"refold-session": "x"})
    assert refused.status_code == 500
    assert "format" in refused.text
    for name in ("", "a" * 5000, "with space", "é"):
        odd = await w.client.post(
            path, json=body_of(path, "hi"), headers=[(b"refold-session", name.encode("latin-1"))]
        )
        assert odd.status_code in {200, 500}
    released(w)


ONLY_OUTPUT = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens. However, you requested "
        "9010 tokens (10 in the messages, 9000 in the completion). Please reduce the length of the "
        "messages or completion.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}


@pytest.mark.parametrize("path", PATHS)
async def test_what_only_the_asked_for_output_makes_too_long_is_refused_as_it_was(world, path):
    w = world(lambda _: Refusal(400, ONLY_OUTPUT))
    limit = "max_output_tokens" if path == RESPONSES else "max_tokens"
    body = body_of(path, "hi", **{limit: 9000})
    for _ in range(3):
        refused = await w.ask(path, body)
        assert (refused.status_code, refused.json()) == (400, ONLY_OUTPUT)
    assert all(one.body == body for one in w.upstream.got)
    assert len(await w.sessions()) == 1
    await w.quiet()
    released(w)
    w.upstream._reply = lambda _: Reply("Hello there.")
    said = [f"{n}: " + "something to say " * 20 for n in range(21)]
    for size in (1, 9, 21):
        answer = await w.ask(path, body_of(path, *said[:size], **{limit: 100}))
        assert answer.status_code == 200
        assert w.upstream.got[-1].body == body_of(path, *said[:size], **{limit: 100})


@pytest.mark.parametrize("path", PATHS)
async def test_refusals_again_and_again_end(world, path):
    w = world(lambda _: Refusal(400, TOO_LONG))
    said = [f"{n}: " + "something to say " * 60 for n in range(31)]
    for _ in range(3):
        refused = await w.ask(path, body_of(path, *said))
        assert (refused.status_code, refused.json()) == (400, TOO_LONG)
    sizes = [len(one.raw) for one in w.upstream.got]
    assert len(sizes) <= 15
    for got in w.upstream.got:
        assert got.body[KEYS[path]][-1]["content"] == said[-1]
    assert len(await w.sessions()) == 1
    await w.quiet()
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_for_its_length_does_not_reach_a_client_because_the_store_failed(
    world, path, monkeypatch
):
    """An agent ends its work on such a refusal; on ours it asks again, and then it fits."""
    w = world(lambda _: Refusal(400, TOO_LONG) if len(w.upstream.got) == 1 else Reply("Hello."))
    append = type(w.log).append

    async def failing(self, session, drafts, **kept):
        if len(w.upstream.got) == 1:
            raise StoreFailed("The store is away.", "Wait.")
        return await append(self, session, drafts, **kept)

    body = body_of(path, *(f"{n}: " + "something to say " * 60 for n in range(31)))
    monkeypatch.setattr(type(w.log), "append", failing)
    refused = await w.ask(path, body)
    assert (refused.status_code, len(w.upstream.got)) == (500, 1)
    assert "context_length_exceeded" not in refused.text
    monkeypatch.undo()
    assert (await w.ask(path, body)).status_code == 200
    assert len(await w.sessions()) == 1
    await w.quiet()
    released(w)


@pytest.mark.parametrize("path", PATHS)
async def test_one_message_of_two_megabytes(world, path):
    w = world()
    body = body_of(path, "x" * 2_000_000)
    answer = await w.ask(path, body)
    assert answer.status_code == 200
    assert w.upstream.got[0].body == body
    body["model"] = "small"
    w.gateway._models = {"small": ModelSettings(window=3000)}
    await w.ask(path, body)
    assert w.upstream.got[1].body == body
