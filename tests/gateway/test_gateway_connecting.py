"""Connections to upstreams: over real sockets, plain and private."""

import asyncio
import socket
import ssl
import threading
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import httpcore2
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from refold.gateway import upstream_stream
from refold.gateway.upstream_stream import CoalescedStream

LIMITS = httpx2.Limits(max_connections=10, max_keepalive_connections=10)
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


def client(seconds=5.0):
    return upstream_stream.client(httpx2.Timeout(seconds), LIMITS)


@asynccontextmanager
async def server(answer, context=None):
    """A server that answers each request by a function of its writer; it counts connections."""
    connections = []

    async def serve(reader, writer):
        connections.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = made.sockets[0].getsockname()[1]
    scheme = "https" if context else "http"
    try:
        yield f"{scheme}://127.0.0.1:{port}", connections
    finally:
        made.close()
        for writer in connections:
            writer.close()


async def hello(writer):
    writer.write(HEAD + chunk(b"hello") + END)
    await writer.drain()


async def test_connections_are_used_again():
    async with server(hello) as (address, connections), client() as asking:
        for _ in range(3):
            assert (await asking.get(address)).content == b"hello"
        assert len(connections) == 1


async def test_connections_that_the_server_closed_meanwhile_are_not():
    async with server(hello) as (address, connections), client() as asking:
        await asking.get(address)
        connections[0].close()
        await connections[0].wait_closed()
        await asyncio.sleep(0.01)
        assert (await asking.get(address)).content == b"hello"
        assert len(connections) == 2


async def test_one_that_the_server_closed_while_the_loop_was_busy_is_not_used_again():
    answered, closed = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            for _ in range(2):
                connection, _ = listening.accept()
                connection.recv(1 << 16)
                connection.sendall(HEAD + chunk(b"hello") + END)
                answered.wait()
                connection.close()
                closed.set()

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with client() as asking:
            await asking.get(address)
            answered.set()
            closed.wait()  # the loop sees nothing of it meanwhile
            assert (await asking.get(address)).content == b"hello"
        thread.join()


async def test_a_connection_that_is_made_while_the_loop_is_busy_is_in_time():
    def busy():
        time.sleep(10 * seconds)

    seconds = 0.05
    times = httpx2.Timeout(60, connect=seconds)
    async with server(hello) as (address, _), upstream_stream.client(times, LIMITS) as asking:
        asyncio.get_running_loop().call_later(seconds / 100, busy)
        parsed_request = asyncio.create_task(asking.get(address))
        assert (await parsed_request).content == b"hello"


async def test_pieces_come_when_they_are_sent():
    more = asyncio.Event()

    async def answer(writer):
        writer.write(HEAD + chunk(b"one"))
        await more.wait()
        writer.write(chunk(b"two") + END)

    async with (
        server(answer) as (address, _),
        client() as asking,
        asking.stream("GET", address) as r,
    ):
        pieces = r.aiter_raw()
        assert await anext(pieces) == b"one"
        more.set()
        assert [piece async for piece in pieces] == [b"two"]


async def test_who_reads_slowly_holds_the_server_back():
    sent = []

    async def answer(writer):
        writer.write(HEAD)
        for _ in range(400):
            writer.write(chunk(b"x" * 100_000))
            await writer.drain()
            sent.append(100_000)
        writer.write(END)

    async with (
        server(answer) as (address, _),
        client() as asking,
        asking.stream("GET", address) as r,
    ):
        pieces = r.aiter_raw()
        first = await anext(pieces)
        before = -1
        while before < len(sent):
            before = len(sent)
            await asyncio.sleep(0.3)
        assert len(sent) < 400
        assert len(first) + sum([len(piece) async for piece in pieces]) == 40_000_000


async def test_a_server_that_says_nothing_is_given_up():
    async def answer(writer):
        writer.write(HEAD + chunk(b"one"))
        await asyncio.sleep(5)

    async with server(answer) as (address, _), client(0.1) as asking:
        with pytest.raises(httpx2.ReadTimeout):
            await asking.get(address)


async def test_a_server_that_breaks_off_is_an_error():
    async def answer(writer):
        writer.write(HEAD + chunk(b"one"))
        await writer.drain()
        writer.transport.abort()

    async with server(answer) as (address, _), client() as asking:
        with pytest.raises(httpx2.TransportError):
            await asking.get(address)


async def test_a_server_that_is_not_there_is_an_error():
    async with server(hello) as (address, _):
        pass
    async with client() as asking:
        with pytest.raises(httpx2.ConnectError):
            await asking.get(address)


def test_every_error_of_a_connection_is_one_of_the_client():
    """A new kind of error in httpcore2 needs its counterpart here, or nobody would catch it."""
    theirs = {
        one
        for one in vars(httpcore2).values()
        if isinstance(one, type)
        and issubclass(one, Exception)
        and one is not httpcore2.ConnectionNotAvailable  # the pool itself tries again then
    }
    assert set(upstream_stream.ERRORS) == theirs
    for error, ours in upstream_stream.ERRORS.items():
        assert ours is getattr(httpx2, error.__name__)


async def test_who_stops_reading_closes_the_connection():
    gone = asyncio.Event()

    async def answer(writer):
        writer.write(HEAD)
        try:
            while True:
                writer.write(chunk(b"more"))
                await writer.drain()
                await asyncio.sleep(0.001)
        except ConnectionError:
            gone.set()
            raise

    async with server(answer) as (address, _), client() as asking:
        async with asking.stream("GET", address) as response:
            await anext(response.aiter_raw())
        async with asyncio.timeout(5):
            await gone.wait()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@asynccontextmanager
async def private(answer, certificate):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with server(answer, context) as found:
        yield found


async def test_private_connections(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    body = b"x" * 300_000

    async def answer(writer):
        writer.write(HEAD + chunk(body) + END)
        await writer.drain()

    async with private(answer, certificate) as (address, connections), client() as asking:
        for _ in range(2):
            assert (await asking.get(address)).content == body
        assert len(connections) == 1


async def test_a_certificate_that_nobody_knows_is_refused(certificate):
    async with private(hello, certificate) as (address, _), client() as asking:
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await asking.get(address)


def test_where_the_environment_names_a_proxy_it_is_gone_through(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    asking = client()
    assert not isinstance(asking._transport, upstream_stream._Transport)


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, *pieces, error=None):
        self.pieces, self.error, self.closed = pieces, error, False

    async def __aiter__(self):
        for piece in self.pieces:
            if piece is None:
                await asyncio.sleep(0.01)
            else:
                yield piece
        if self.error:
            raise self.error

    async def aclose(self):
        self.closed = True


async def test_what_is_there_is_handed_on_at_once():
    body = Pieces(b"a", b"b", None, b"c", b"d")
    assert [piece async for piece in CoalescedStream(body)] == [b"ab", b"cd"]


async def test_an_error_comes_after_all_that_came_before_it():
    pieces = aiter(CoalescedStream(Pieces(b"a", error=httpx2.ReadError("gone"))))
    assert await anext(pieces) == b"a"
    with pytest.raises(httpx2.ReadError, match="gone"):
        await anext(pieces)


async def test_no_more_is_taken_ahead_than_has_room():
    piece = b"x" * 100_000
    sizes = [len(one) async for one in CoalescedStream(Pieces(*[piece] * 20))]
    assert sum(sizes) == 2_000_000
    assert max(sizes) <= 400_000


async def test_closing_ends_what_is_taken():
    joined = CoalescedStream(body := Pieces(b"a", *[None] * 1_000))
    pieces = aiter(joined)
    assert await anext(pieces) == b"a"
    await joined.aclose()
    assert body.closed
    assert joined._reader.done()
    await pieces.aclose()
