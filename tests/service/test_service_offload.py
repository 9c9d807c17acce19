"""Large requests are answered by processes of their own: nobody else waits for them."""

import asyncio
import json
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from dbos_servers import dbos, dbos_address  # noqa: F401 - fixtures
from gateway_world import served
from serve_process import parents, serve_process

from refold.gateway.large_requests import MAX_BYTES, MAX_VALUES
from refold.log import CODEC, Message, Span
from refold.service.offload import OffloadProcess, Start, read_frame, write_frame
from refold.settings import load_settings
from refold.stores import open_store
from refold.testing.upstream import Call, Reply, ScriptedUpstream

CHAT = "/v1/chat/completions"
SECONDS = 60
ENDS_IN_A_SECOND = """
from refold.service import offload_process
offload_process.STOP = 1
offload_process.main()
"""
LARGE = "All work and no play. " * (MAX_BYTES // 20)


def chat(*contents, **more):
    roles = ("user", "assistant")
    messages = [
        {"role": roles[index % 2], "content": content} for index, content in enumerate(contents)
    ]
    return {"model": "some-model", "messages": messages, **more}


def calls(count):
    messages = [{"role": "user", "content": "Read all of it."}]
    for index in range(count):
        function = {"name": "read", "arguments": json.dumps({"path": f"{index}.py"})}
        call = {"id": f"call_{index}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{index}", "content": "It is empty."},
        ]
    return {"model": "some-model", "messages": messages}


@pytest.fixture
def upstream():
    return ScriptedUpstream(lambda _: Reply("Hello there."))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    return request.getfixturevalue("dbos_address")


async def until(true):
    async with asyncio.timeout(SECONDS):
        while not true():  # noqa: ASYNC110 - other processes set no event here
            await asyncio.sleep(0.02)


async def said(store, session, tenant="default"):
    async with open_store(store) as opened:
        log = opened.log(tenant)
        entries = await log.read(session, Span(1, await log.head(session)))
    values = map(CODEC.decode, entries)
    return [json.loads(one.payload) for one in values if isinstance(one, Message)]


@pytest.mark.parametrize(
    "large",
    [chat(LARGE), calls(MAX_VALUES // 2), chat("x" * (31 << 20))],
    ids=["a long text", "many calls", "31 MB"],
)
async def test_a_large_request_is_managed_like_any_other(store, upstream, tmp_path, large):
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path) as serving,
        serving.client() as client,
    ):
        answer = await client.post(CHAT, json=large)
        assert (answer.status_code, answer.headers["refold-managed"]) == (200, "yes")
        assert answer.json()["choices"][0]["message"]["content"] == "Hello there."
    assert upstream.got[0].body["messages"] == large["messages"] or len(upstream.got) == 1
    logged = await said(store, answer.headers["refold-session"])
    assert logged[: len(large["messages"])] == large["messages"]
    assert logged[-1]["content"] == "Hello there."


async def test_an_agent_whose_request_is_over_the_bounds_goes_on_working(store, upstream, tmp_path):
    bounds = {"sizes__items": 50, "sizes__objects": 1_000}
    nested = chat("Hello.")
    nested["metadata"] = json.loads("[" * 250 + "]" * 250)
    blocks = chat([{"type": "text", "text": f"Block {index}."} for index in range(52)])
    objects = chat("Hello.")
    objects["metadata"] = [{} for _ in range(1_000)]
    over = {
        "50 messages": chat(*["More."] * 51),
        "50 items": blocks,
        "1,000 objects": objects,
        "200 levels": nested,
    }
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path, **bounds) as serving,
        serving.client() as client,
    ):
        for detail, body in over.items():
            answer = await client.post(CHAT, json=body)
            assert answer.status_code == 200
            assert answer.json()["choices"][0]["message"]["content"] == "Hello there."
            assert upstream.got[-1].raw == answer.request.content, "as it came"
            managed = answer.headers["refold-managed"]
            assert managed.startswith("no; reason=over-bounds"), managed
            assert detail in managed
            assert "refold-session" not in answer.headers
        less = await client.post(CHAT, json=chat(*["More."] * 49))
        assert (less.status_code, less.headers["refold-managed"]) == (200, "yes")


async def test_a_conversation_that_grows_large_stays_one_session(store, upstream, tmp_path):
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path) as serving,
        serving.client() as client,
    ):
        contents, sessions = [], []
        for words in ("Hello.", LARGE, "Go on.", "And on."):
            contents.append(words)
            answer = await client.post(CHAT, json=chat(*contents))
            sessions.append(answer.headers["refold-session"])
            contents.append("Hello there.")
        assert len({*sessions}) == 1
    assert [one["content"] for one in await said(store, sessions[0])] == contents


async def test_a_conversation_with_a_large_answer_stays_one_session(store, tmp_path):
    upstream = ScriptedUpstream(lambda got: Reply(LARGE if len(got.body["messages"]) == 1 else "!"))
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path) as serving,
        serving.client() as client,
    ):
        contents, sessions = [], []
        for words in ("Write it.", "Go on.", "And on."):
            contents.append(words)
            answer = await client.post(CHAT, json=chat(*contents))
            sessions.append(answer.headers["refold-session"])
            contents.append(answer.json()["choices"][0]["message"]["content"])
        assert len({*sessions}) == 1
    assert [one["content"] for one in await said(store, sessions[0])] == contents


async def test_others_are_answered_while_the_process_for_large_requests_does_nothing(
    store, upstream, tmp_path
):
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path, offload_processes=1) as serving,
        serving.client() as client,
    ):
        assert (await client.post(CHAT, json=chat(LARGE))).status_code == 200
        [worker] = await serving.children(1)
        os.kill(worker, signal.SIGSTOP)
        try:
            large = asyncio.create_task(client.post(CHAT, json=chat(LARGE, "Hi.", "Go on.")))
            async with asyncio.timeout(SECONDS):
                for number in range(5):
                    answer = await client.post(CHAT, json=chat(f"Small request {number}."))
                    assert answer.headers["refold-managed"] == "yes"
                    assert (await client.get("/healthz")).status_code == 200
            assert not large.done()
        finally:
            os.kill(worker, signal.SIGCONT)
        assert (await large).headers["refold-managed"] == "yes"


async def test_a_large_answer_to_a_small_request_is_read_by_another_process(store, tmp_path):
    value = json.loads('{"a":[' * 70 + "1" + "]}" * 70)
    arguments = {"values": [value] * 300}
    upstream = ScriptedUpstream(lambda _: Reply(calls=[Call("call_1", "write", arguments)]))
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path, offload_processes=1) as serving,
        serving.client() as client,
    ):
        await client.post(CHAT, json=chat(LARGE))  # now it is there
        for stream in (False, True):
            [worker] = await serving.children(1)
            first = await client.post(CHAT, json=chat("Warm up.", stream=stream))
            assert first.headers["refold-managed"] == "yes"
            os.kill(worker, signal.SIGSTOP)
            try:
                large = asyncio.create_task(
                    client.post(CHAT, json=chat(f"Write it, {stream}.", stream=stream))
                )
                await until(lambda: len(upstream.got) > 1)
                assert (await client.get("/healthz")).status_code == 200
                assert not large.done()
            finally:
                os.kill(worker, signal.SIGCONT)
            answer = await large
            logged = await said(store, answer.headers["refold-session"])
            function = logged[-1]["tool_calls"][0]["function"]
            assert json.loads(function["arguments"]) == arguments
            upstream.got.clear()


async def test_when_the_process_for_large_requests_dies_the_client_is_told_and_it_comes_back(
    tmp_path, upstream
):
    store = f"sqlite:///{tmp_path}/test.db"
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path, offload_processes=1) as serving,
        serving.client() as client,
    ):
        await client.post(CHAT, json=chat(LARGE))
        [worker] = await serving.children(1)
        os.kill(worker, signal.SIGSTOP)
        large = asyncio.create_task(client.post(CHAT, json=chat(LARGE)))
        await client.post(CHAT, json=chat("Meanwhile."))
        await asyncio.sleep(0.2)
        os.kill(worker, signal.SIGKILL)
        refused = await large
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "offload-lost"
        assert refused.headers["retry-after"]
        again = await client.post(CHAT, json=chat(LARGE))
        assert again.headers["refold-managed"] == "yes"


async def test_a_request_waits_for_the_next_process_if_the_last_one_just_ended(tmp_path):
    class Process(OffloadProcess):
        def start(self) -> None:
            """None is started: the test listens in its place."""

    socket = f"{tmp_path}/requests.sock"
    process = Process(Start(load_settings(), "memory", socket, worker=False), lambda *_: None)
    process._ready.set()  # as nobody has noticed yet that it ended
    connecting = asyncio.create_task(process.connect())
    await asyncio.sleep(0.05)
    async with await asyncio.start_unix_server(lambda _reader, writer: writer.close(), socket):
        _, writer = await connecting
        writer.close()


async def test_no_process_is_left_when_the_service_is_killed(tmp_path, upstream):
    store = f"sqlite:///{tmp_path}/test.db"
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path) as serving,
        serving.client() as client,
    ):
        assert await serving.children() == []  # none before it is needed
        await client.post(CHAT, json=chat("x" * (MAX_BYTES // 4)))
        workers = await serving.children(1)
        serving.process.kill()
        await serving.process.wait()
        await until(lambda: not {pid for pid, _ in parents()} & {*workers})


@asynccontextmanager
async def passed_on(address):
    """The address of a database by another port, and what makes that one silent for good."""
    parts = urlsplit(address)
    writers, copies = [], []
    server = SimpleNamespace(silent=False)

    async def copy(reader, writer):
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async def arrived(reader, writer):
        writers.append(writer)
        if server.silent:
            return
        there, further = await asyncio.open_connection(parts.hostname, parts.port)
        writers.append(further)
        copies.append(asyncio.create_task(copy(reader, further)))
        copies.append(asyncio.create_task(copy(there, writer)))

    async def fall_silent():
        server.silent = True
        for task in copies:
            task.cancel()
        await asyncio.gather(*copies, return_exceptions=True)

    listening = await asyncio.start_server(arrived, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield address.replace(f":{parts.port}/", f":{port}/"), fall_silent
    finally:
        listening.close()
        await fall_silent()
        for writer in writers:
            writer.close()


async def test_a_process_whose_database_is_silent_ends_soon_after_its_input(
    dbos_address,  # noqa: F811 - a fixture
    tmp_path,
):
    socket = f"{tmp_path}/requests.sock"
    async with passed_on(dbos_address) as (address, fall_silent):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ENDS_IN_A_SECOND), stdin=PIPE, stdout=PIPE
        )
        try:
            start = Start(load_settings(), address, socket, worker=True)
            await write_frame(process.stdin, pickle.dumps(start))
            assert json.loads(await read_frame(process.stdout)) == ["ready"]
            await fall_silent()
            process.stdin.close()
            await asyncio.wait_for(process.wait(), SECONDS)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def test_what_a_large_request_used_counts_for_its_key(tmp_path):
    store = f"sqlite:///{tmp_path}/test.db"
    upstream = ScriptedUpstream(lambda _: Reply("Hello there.", usage=(50_000, 10)))
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path, limits__key_tokens=40_000) as serving,
    ):
        made = await serving.key("acme")
        async with serving.client(made.secret) as client:
            assert (await client.post(CHAT, json=chat(LARGE))).status_code == 200
            statuses = [(await client.post(CHAT, json=chat("Hi."))).status_code for _ in range(20)]
            assert statuses[-1] == 429


async def test_a_body_beyond_the_limit_is_refused(tmp_path, upstream):
    store = f"sqlite:///{tmp_path}/test.db"
    async with (
        served(upstream) as base,
        serve_process(store, base, tmp_path) as serving,
        serving.client() as client,
    ):
        answer = await client.post(CHAT, json=chat("x" * (33 << 20)))
        assert answer.status_code == 413
        assert "33,554,432 bytes" in answer.json()["error"]["message"]
    assert not upstream.got


async def test_a_client_that_shortens_a_large_history_stays_in_its_session(store, tmp_path):
    summary = "\n".join(
        f"Step {nth}: the part number {nth} was read and is empty." for nth in range(9)
    )
    upstream = ScriptedUpstream(
        lambda got: Reply(summary if "Sum it up." in str(got.body) else "Hello there.")
    )
    begins = f"This session goes on from one that ran out of room. The summary:\n{summary}"
    async with (
        served(upstream) as address,
        serve_process(store, address, tmp_path) as serving,
        serving.client() as client,
    ):
        large = await client.post(CHAT, json=chat(LARGE))
        asked = await client.post(CHAT, json=chat(LARGE, "Hello there.", "Sum it up."))
        small = await client.post(CHAT, json=chat(begins))
    sessions = {one.headers["Refold-Session"] for one in (large, asked, small)}
    assert len(sessions) == 1


async def test_what_the_process_for_large_requests_changed_is_known_to_the_main_one(
    store, tmp_path
):
    """It shortened the session that the main process has in memory, too."""
    summary = "\n".join(
        f"Step {nth}: the part number {nth} was read and is empty." for nth in range(9)
    )
    upstream = ScriptedUpstream(
        lambda got: Reply(summary if "Sum it up." in str(got.body) else "Hello there.")
    )
    begins = f"This session goes on from one that ran out of room. The summary:\n{summary}"
    reminder = "<system-reminder>\nA file was read before.\n</system-reminder>"
    shortened = begins, "Hello there.", reminder
    large = {"metadata": {"note": LARGE}}
    async with (
        served(upstream) as address,
        serve_process(store, address, tmp_path) as serving,
        serving.client() as client,
    ):
        answers = [
            await client.post(CHAT, json=body)
            for body in (
                chat("Hello."),
                chat("Hello.", "Hello there.", "Sum it up.") | large,
                chat(*shortened) | large,
                chat(*shortened, "Hello there.", "Go on."),
            )
        ]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.headers["Refold-Session"] for answer in answers}) == 1
