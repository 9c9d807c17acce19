"""What has no end, or no measure: answers, streams, and what requests say."""

import gzip
import json

import httpx2
import pytest
from gateway_world import CHAT
from service_towns import EVENTS, HI, completion, town

from refold.gateway.upstream import BoundedAnswer
from refold.service.vault import new_master_key


@pytest.fixture(autouse=True)
def master(monkeypatch):
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())


async def test_an_answer_without_end_is_not_kept():
    async with town() as t:
        client = await t.client()
        t.upstream.pieces = [bytes(1 << 20)] * 70
        assert (await client.post(CHAT, json=HI)).status_code == 502
        t.upstream.headers = [(b"content-encoding", b"gzip")]
        t.upstream.pieces = [gzip.compress(bytes(70 << 20))]
        assert (await client.post(CHAT, json=HI)).status_code == 502
        t.upstream.headers = [(b"content-encoding", b"br")]
        assert (await client.post(CHAT, json=HI)).status_code == 502
        t.upstream.headers, t.upstream.pieces = [], [completion()]
        assert (await client.post(CHAT, json=HI)).status_code == 200


async def test_what_is_unpacked_comes_in_small_pieces():
    class Packed(httpx2.AsyncByteStream):
        async def __aiter__(self):
            yield gzip.compress(bytes(20 << 20))

    sizes = [len(one) async for one in BoundedAnswer(Packed(), "gzip", None)]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= 1 << 20
    with pytest.raises(httpx2.RemoteProtocolError):
        async for _ in BoundedAnswer(Packed(), "gzip", 1 << 20):
            pass


async def test_a_stream_without_end_is_broken_off():
    async with town() as t:
        t.upstream.headers = [EVENTS]
        done = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        comment = b":" + b"x" * (1 << 20) + b"\n\n"
        t.upstream.pieces = [b"data: " + json.dumps(done).encode() + b"\n\n", *[comment] * 70]
        client = await t.client()
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(CHAT, json={**HI, "stream": True})
        assert (await client.get("/healthz")).status_code == 200


ODD = [
    b'{"model":"\\ud800","messages":[{"role":"user","content":"hi"}]}',
    json.dumps({**HI, "model": "m" * 1_000_000}).encode(),
    json.dumps({**HI, "model": "a\x1b[31m\r\nX-A: b"}).encode(),
    b'{"model":"m","messages":[{"role":"user","content":"\\ud800 \\u0000 \\u001b[31m"}]}',
    b'{"model":"m","user":"\\ud800","messages":[{"role":"user","content":"hi"}]}',
    b"[" * 100_000,
    b'{"model":"m","messages":' + b'{"a":' * 150 + b"1" + b"}" * 151,
    b'{"model":1e999,"messages":[]}',
    b"\x1f\x8b" + bytes(50),
]


async def test_whatever_a_request_says_nothing_fails(caplog):
    async with town() as t:
        client = await t.client("acme", "admin")
        for body in ODD:
            for path in (CHAT, "/v1/embeddings"):
                answer = await client.post(path, content=body)
                assert answer.status_code < 500, body[:80]
                assert "x-a" not in answer.headers
        listed = (await client.get("/api/v1/sessions")).json()["sessions"]
        assert len(listed) >= 2
        assert all((one["title"] or "").isprintable() for one in listed)
    assert "Traceback" not in caplog.text
