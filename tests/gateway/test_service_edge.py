"""What a running `refold serve` does with headers, codings and connections that mean harm."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import gzip
import json
import zlib
from contextlib import asynccontextmanager

from backports import zstd
from serve_processes import COMPLETION, http_answer, raw_server, refold_serve, store_address

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HI = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
MEGABYTE = 1 << 20


@asynccontextmanager
async def gateway(folder, store=None, path="/v1", **more):
    """A running service before a raw upstream."""
    async with raw_server() as upstream:
        named = {"name": "up", "base_url": f"{upstream.address}{path}", **more.pop("named", {})}
        address = store or f"sqlite:///{folder}/refold.db"
        async with refold_serve(folder, address, [named], **more) as serving:
            yield serving, upstream


# Headers.


async def test_headers_named_in_connection_are_dropped_both_ways(tmp_path):
    async with gateway(tmp_path) as (serving, upstream):
        upstream.answer = http_answer(
            headers=["X-Hop: secret", "X-Stays: yes", "Connection: keep-alive, x-HOP", "x-hop: 2"]
        )
        for target, body in ((CHAT, HI), ("/v1/models", None)):
            answer = await serving.ask(
                target,
                "Connection: x-internal , X-Other",
                "X-Internal: secret",
                "x-other: secret",
                "X-Kept: yes",
                method="POST" if body else "GET",
                body=body,
            )
            sent = upstream.got[-1]
            assert sent.values("x-internal") == sent.values("x-other") == []
            assert sent.values("x-kept") == ["yes"]
            assert (answer.header("x-hop"), answer.header("x-stays")) == (None, "yes")


async def test_a_request_with_two_lengths_is_refused(tmp_path):
    async with gateway(tmp_path) as (serving, upstream):
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(HI), HI)
        for path in (CHAT, "/v1/files", "/api/v1/sessions", "/healthz"):
            smuggled = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
            head += f"Content-Length: {len(chunked)}\r\nTransfer-Encoding: chunked\r\n\r\n"
            raw = await serving.raw(head.encode() + chunked + smuggled)
            assert raw.startswith(b"HTTP/1.1 400 "), raw
            assert raw.count(b"HTTP/1.1 ") == 1, raw  # and the connection is closed
        old = "POST /v1/files HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await serving.raw(old.encode() + chunked)).startswith(b"HTTP/1.1 400 ")
        assert upstream.got == []
        alone = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        alone += "Transfer-Encoding: chunked\r\n\r\n"
        assert (await serving.raw(alone.encode() + chunked)).startswith(b"HTTP/1.1 200 ")


async def test_a_status_that_is_none_is_a_bad_gateway(tmp_path):
    async with gateway(tmp_path) as (serving, upstream):
        for status in ("999 What", "600 No", "000 Zero", "099 Low", "101 Switching"):
            upstream.answer = http_answer(status)
            for target, body in ((CHAT, HI), ("/v1/models", None)):
                answer = await serving.ask(target, method="POST" if body else "GET", body=body)
                assert answer.status == 502, (status, answer)
                assert json.loads(answer.body)["error"]["code"] == "upstream-unreachable"
        for known in ("204 No Content", "418 Teapot", "529 Overloaded", "599 Last"):
            body = b"" if known.startswith("204") else COMPLETION
            upstream.answer = http_answer(known, body=body)
            assert (await serving.ask("/v1/models")).status == int(known[:3])


async def test_the_access_log_clips_the_method(tmp_path):
    async with gateway(tmp_path) as (serving, _):
        assert (await serving.ask("/v1/models", method="A" * 20_000)).status == 405
        line = next(one for one in serving.errors.splitlines() if "AAAA" in one)
        assert len(line) < 200
        assert " 405 " in line


# Codings of bodies.

CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
}


async def test_packed_bodies_are_managed_like_others(store_address, tmp_path):
    async with gateway(tmp_path, store_address) as (serving, upstream):
        for coding, pack in CODINGS.items():
            said = f"packed with {coding}"
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": said}]})
            sent = pack(body.encode())
            answer = await serving.ask(
                CHAT, f"Content-Encoding: {coding}", method="POST", body=sent
            )
            assert (answer.status, answer.header("refold-managed")) == (200, "yes"), answer
            came = upstream.got[-1]
            assert (came.body, came.values("content-encoding")) == (body.encode(), [])
            session = answer.header("refold-session")
            listed = await serving.ask(f"/api/v1/sessions/{session}/entries")
            assert said.encode() in listed.body
        # In pieces, and a body of several frames.
        parts = [zstd.compress(HI[:20]), zstd.compress(b""), zstd.compress(HI[20:])]
        chunks = b"".join(b"1\r\n%b\r\n" % bytes([one]) for one in b"".join(parts)) + b"0\r\n\r\n"
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += "Content-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await serving.raw(head.encode() + chunks)).startswith(b"HTTP/1.1 200 ")
        assert upstream.got[-1].body == HI
        # The API's own bodies too.
        made = gzip.compress(b'{"name": "packed", "format": "openai-chat"}')
        answer = await serving.ask(
            "/api/v1/sessions",
            *("Content-Encoding: gzip", "Content-Type: application/json"),
            method="POST",
            body=made,
        )
        assert answer.status == 201, answer


async def test_codings_that_are_not_known_or_broken_are_refused_clearly(tmp_path):
    async with gateway(tmp_path) as (serving, upstream):
        for coding in ("br", "compress", "gzip, zstd", "aes128gcm", "\xff"):
            answer = await serving.ask(CHAT, f"Content-Encoding: {coding}", method="POST", body=HI)
            assert answer.status == 415, coding
            assert "zstd" in answer.header("accept-encoding")
            error = json.loads(answer.body)["error"]
            assert error["code"] == "unsupported-encoding"
            assert "gzip" in error["message"]
        whole = zstd.compress(HI)
        streamed = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
        wide = streamed.compress(bytes(MEGABYTE)) + streamed.flush()
        broken = {
            "gzip": [HI, gzip.compress(HI)[:-4], gzip.compress(HI) + b"more", b"\x1f\x8b"],
            "deflate": [HI, zlib.compress(HI)[:-1]],
            "zstd": [HI, whole[:-1], whole + b"x", wide, zstd.compress(b"") * 5_000],
        }
        for coding, bodies in broken.items():
            for body in bodies:
                answer = await serving.ask(
                    CHAT, f"Content-Encoding: {coding}", method="POST", body=body
                )
                assert answer.status == 400, (coding, body[:20], answer)
                assert json.loads(answer.body)["error"]["code"] == "invalid-encoding"
        assert upstream.got == []
        answer = await serving.ask(CHAT, "Content-Encoding: identity", method="POST", body=HI)
        assert answer.status == 200


async def test_a_packed_bomb_is_refused_while_it_is_unpacked(tmp_path):
    """Its memory is bounded too: the process may not grow by what the bombs would come to."""
    settings = f"[serve.sizes]\ngateway = {MEGABYTE}\n"
    async with gateway(tmp_path, settings=settings) as (serving, upstream):
        huge = bytes(256 * MEGABYTE)
        bombs = {"zstd": zstd.compress(huge), "gzip": gzip.compress(huge)}
        del huge
        await serving.ask(CHAT, method="POST", body=HI)
        before = _peak(serving.process.pid)
        for coding, body in bombs.items():
            assert len(body) < MEGABYTE
            answer = await serving.ask(
                CHAT, f"Content-Encoding: {coding}", method="POST", body=body
            )
            assert answer.status == 413, (coding, answer)
            assert json.loads(answer.body)["error"]["code"] == "request-too-large"
        assert _peak(serving.process.pid) - before < 64 * MEGABYTE
        assert len(upstream.got) == 1


def _peak(pid):
    """The most memory that a process ever had, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:  # noqa: PTH123 - no path of ours
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


# Paths without /v1, and WebSockets.


async def test_upstreams_may_have_paths_without_v1(tmp_path):
    body = json.dumps({"model": "m", "input": "hi", "store": False}).encode()
    async with gateway(tmp_path, path="/backend-api/codex") as (serving, upstream):
        answer = await serving.ask(
            "/backend-api/codex/responses",
            "Content-Encoding: zstd",
            method="POST",
            body=zstd.compress(body),
        )
        assert upstream.got[-1].target == "/backend-api/codex/responses"
        assert upstream.got[-1].body == body
        assert answer.header("refold-managed") == "yes"
        await serving.ask("/backend-api/codex/models?client_version=1")
        assert upstream.got[-1].target == "/backend-api/codex/models?client_version=1"
        await serving.ask(RESPONSES, method="POST", body=body)
        assert upstream.got[-1].target == "/backend-api/codex/v1/responses"
        count = len(upstream.got)
        for elsewhere in ("/backend-api/other", "/backend-api/codexx/a", "/backend-api/codex"):
            assert (await serving.ask(elsewhere)).status == 404
        for climbing in ("/backend-api/codex/../x", "/backend-api/codex/%2e%2e/x"):
            assert (await serving.ask(climbing)).status == 422
        assert len(upstream.got) == count


async def test_v1_is_not_appended_where_the_settings_say_so(tmp_path):
    more = {"append_v1": False}
    async with gateway(tmp_path, path="/backend-api/codex", named=more) as (serving, upstream):
        await serving.ask(RESPONSES, method="POST", body=b'{"model": "m", "input": "hi"}')
        assert upstream.got[-1].target == "/backend-api/codex/responses"


async def test_a_websocket_is_answered_426_at_once(tmp_path):
    async with gateway(tmp_path) as (serving, upstream):
        for target in (RESPONSES, "/v1/realtime?model=m", "/api/v1/sessions", "/"):
            reader, writer = await asyncio.open_connection(serving.host, serving.port)
            lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Connection: Upgrade"]
            lines += ["Upgrade: WebSocket", "Sec-WebSocket-Version: 13"]
            lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
            writer.write("\r\n".join(lines).encode())
            async with asyncio.timeout(30):
                raw = await reader.read()  # it is closed without the client's doing
            writer.transport.abort()
            assert raw.startswith(b"HTTP/1.1 426 "), raw
            assert b"http" in raw.lower()
        assert upstream.got == []
        # Any other upgrade may be ignored, and HTTP goes on.
        answer = await serving.ask("/v1/models", "Connection: Upgrade", "Upgrade: h2c")
        assert answer.status == 200
        assert "WebSocket library" not in serving.errors


# Keys.


async def test_the_event_stream_of_a_revoked_key_is_closed(store_address, tmp_path):
    async with gateway(tmp_path, store_address) as (serving, _):
        _, admin = await serving.key("admin")
        made = json.dumps({"name": "s", "format": "openai-chat"}).encode()
        created = await serving.ask(
            "/api/v1/sessions",
            f"Authorization: Bearer {admin}",
            "Content-Type: application/json",
            method="POST",
            body=made,
        )
        assert created.status == 201, created
        for command in ("revoke", "rotate"):
            key, secret = await serving.key("read")
            async with live(serving, secret) as reader:
                more = ("--overlap", "0") if command == "rotate" else ()
                await serving.command("keys", command, key, *more)
                async with asyncio.timeout(30):
                    rest = await reader.read()
            assert b"key-needed" in rest, command
            assert rest.endswith(b"0\r\n\r\n")


async def test_a_stream_that_needed_no_key_is_closed_when_there_is_one(tmp_path):
    async with gateway(tmp_path) as (serving, _):
        await serving.ask(CHAT, "Refold-Session: s", method="POST", body=HI)
        async with live(serving, None) as reader:
            await serving.key("admin")
            async with asyncio.timeout(30):
                rest = await reader.read()
        assert b"key-needed" in rest


@asynccontextmanager
async def live(serving, secret):
    """The event stream of the session `s`, after its first bytes."""
    reader, writer = await asyncio.open_connection(serving.host, serving.port)
    lines = ["GET /api/v1/sessions/s/events HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [f"Authorization: Bearer {secret}"] if secret else []
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        async with asyncio.timeout(30):
            await reader.readuntil(b"retry: 1000\n\n")
        yield reader
    finally:
        writer.transport.abort()
