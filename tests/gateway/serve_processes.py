"""A real `refold serve` in a process of its own, raw sockets to it, and a raw upstream behind it.

A client library would normalize what an attacker sends, so requests are bytes here, both ways.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from forked_serve import start_serve

COMPLETION = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Hello there."},
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3},
    }
).encode()
STORES = ["sqlite", "postgres"]
_PATIENCE = 120


@dataclass
class Recorded:
    """A request that reached a raw server."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def target(self):
        return self.line.split(" ")[1]

    def values(self, name):
        return [value for key, value in self.headers if key.lower() == name]


def http_answer(status="200 OK", headers=(), body=COMPLETION, kind="application/json"):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


@dataclass
class RawServer:
    """Keeps what it is sent, and answers with the bytes that it is given."""

    answer: bytes = field(default_factory=http_answer)
    got: list[Recorded] = field(default_factory=list)
    connections: int = 0
    address: str = ""
    port: int = 0

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                sent = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *fields = sent.rstrip("\r\n").split("\r\n")
                headers = [tuple(one.split(": ", 1)) for one in fields]
                length = next((int(v) for k, v in headers if k.lower() == "content-length"), 0)
                self.got.append(Recorded(line, headers, await reader.readexactly(length)))
                head, end, body = self.answer.partition(b"\r\n\r\n")
                writer.write(head + end + (b"" if line.startswith("HEAD ") else body))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


@asynccontextmanager
async def raw_server(answer=None):
    """A raw server on a port of its own."""
    made = RawServer(answer or http_answer())
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=1 << 20)
    made.port = server.sockets[0].getsockname()[1]
    made.address = f"http://127.0.0.1:{made.port}"
    try:
        yield made
    finally:
        server.close()


class Serving:
    """A running `refold serve`."""

    def __init__(self, process, address, store, folder, environment):
        self.process, self.address, self.store, self.folder = process, address, store, folder
        self.environment = environment
        where = urlsplit(address)
        self.host, self.port = where.hostname, where.port

    @property
    def errors(self):
        """What the process wrote to standard error so far: the access log, and faults."""
        return (self.folder / "errors.txt").read_text(errors="replace")

    async def command(self, *arguments):
        """What another `refold` command prints, over the same store."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "refold.cli", *arguments),
            cwd=self.folder,
            env={**self.environment, "REFOLD_STORE": self.store},
            stdout=PIPE,
        )
        out, _ = await asyncio.wait_for(process.communicate(), _PATIENCE)
        assert process.returncode == 0, arguments
        return out.decode()

    async def key(self, *roles):
        """A new key of the service: its id and its secret."""
        named = [word for role in roles for word in ("--role", role)]
        made = json.loads(await self.command("keys", "create", *named, "--json"))
        return made["id"], made["secret"]

    async def raw(self, sent, *, seconds=30.0):
        """What the service says to these bytes until it closes the connection."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 24)
        try:
            writer.write(sent)
            await writer.drain()
            async with asyncio.timeout(seconds):
                return await reader.read()
        finally:
            writer.transport.abort()

    async def ask(self, target, *headers, method="GET", body=None, host="localhost"):
        """The answer to one request with this target, as it is."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return Answered(await self.raw(head + (body or b"")))


class Answered:
    """An answer, taken apart."""

    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        self.raw = raw
        self.status = int(first.split(" ")[1]) if raw else 0
        self.headers = [(k.lower(), v) for k, _, v in (one.partition(": ") for one in fields)]

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)

    def __repr__(self):
        return repr(self.raw[:600])


@asynccontextmanager
async def refold_serve(folder, store, upstreams, *, settings="", environment=None):
    """`refold serve` over a store, before these upstreams, until the block ends.

    Args:
        folder: Where it runs; also its home.
        store: The store's address.
        upstreams: Tables of `serve.upstreams`.
        settings: More of the user's own settings file.
        environment: More variables.
    """
    home = Path(folder) / "home"
    own = home / "config" / "refold"
    own.mkdir(parents=True, exist_ok=True)
    tables = (
        "[[serve.upstreams]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in one.items())
        for one in upstreams
    )
    (own / "config.toml").write_text("\n".join([settings, *tables]))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("REFOLD_")}
    env = kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        **(environment or {}),
    }
    errors = (Path(folder) / "errors.txt").open("wb")
    process = await start_serve(
        *("--store", store, "--port", "0", "--json"),
        *(["--no-worker"] if store.startswith("postgres") else []),
        cwd=folder,
        env=env,
        stderr=errors,
    )
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _PATIENCE)
        serving = Serving(process, "", store, Path(folder), env)
        assert line, serving.errors
        yield Serving(process, json.loads(line)["address"], store, Path(folder), env)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
        assert "Traceback" not in serving.errors, serving.errors[-3_000:]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        errors.close()


@pytest.fixture(params=STORES)
def store_address(request, tmp_path):
    """The address of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'refold.db'}"
    return request.getfixturevalue("postgres_address")
