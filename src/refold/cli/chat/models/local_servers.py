"""Model servers on this machine, and any other that speaks OpenAI's protocol.

Beyond this machine, only servers that the user named are contacted. Every request has a short
timeout: a port may belong to another program.
"""

import http.client
import json
import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import PurePath
from typing import Final, cast
from urllib.parse import urlsplit

from refold.errors import InvalidInput, NoModel

WELL_KNOWN: Final = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""The default ports of model servers."""
_LOCAL_TIMEOUT = 0.3  # seconds for a port of this machine
_NAMED_TIMEOUT = 3.0  # seconds for a server that the user named
_MAX_BYTES = 1 << 20
_NO_CHAT = re.compile(r"embed|rerank|whisper|moderation|tts|(?:^|/)(?:bge|gte|e5)-", re.IGNORECASE)

Answer = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Server:
    url: str  # up to and with `/v1`
    models: tuple[str, ...]  # those for chats; the first is loaded, if the server says so
    kind: str = "server"
    windows: Mapping[str, int] = field(default_factory=dict[str, int])  # where it reports them


def running_here(ports: Iterable[int] = WELL_KNOWN) -> list[Server]:
    def probe(port: int) -> Server | None:
        client = _Client(f"http://127.0.0.1:{port}/v1", None, _LOCAL_TIMEOUT)
        return _probe(client, WELL_KNOWN.get(port, "server"))

    ports = list(ports)
    with ThreadPoolExecutor(max(1, len(ports))) as pool:
        return [server for server in pool.map(probe, ports) if server is not None]


def server_at(url: str, key: str | None = None) -> Server:
    """The server that the user named. Raises an error that says what is wrong with it.

    Args:
        url: Its address.
        key: Its API key, if it has one.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise InvalidInput(
            "That is not the address of a model server.", "Write it like http://127.0.0.1:8080/v1."
        )
    client = _Client(url.rstrip("/"), key, _NAMED_TIMEOUT)
    server = _probe(client, "server")
    if server is None:
        raise _no_models(public(url), client.status, with_key=key is not None)
    if not server.models:
        raise NoModel(
            f"The server at {public(url)} has no model to talk with.",
            "Load one there (with Ollama: `ollama pull NAME`).",
        )
    return server


def public(url: str) -> str:
    """An address without the name, password or key that it may contain."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _no_models(url: str, status: int | None, *, with_key: bool) -> NoModel:
    """Why a server that the user named lists no models, as far as its answer tells."""
    if status is None:
        return NoModel(
            f"No model server answers at {url}.",
            "Start it, or correct the address: it ends in /v1 with most servers.",
        )
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return NoModel(
            f"The server at {url} {'refuses the key' if with_key else 'asks for a key'}.",
            f"Set both: export OPENAI_BASE_URL={url} OPENAI_API_KEY=...",
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return NoModel(
            f"The server at {url} is not ready: it answered {status}.",
            "Try again when its model is loaded; its log may say more.",
        )
    return NoModel(
        f"What answers at {url} lists no models.",
        "Correct the address (it ends in /v1 with most servers), "
        f"or name the model: -m openai:NAME --base-url {url}",
    )


def _probe(client: "_Client", kind: str) -> Server | None:
    """The server's models and their windows; None if it is no model server."""
    rows = _models(client.get(f"{urlsplit(client.url).path}/models"))
    if rows is None:
        return None
    # Beside the name (vLLM) or one level below (llama.cpp); not the window of the training.
    windows = _sizes(
        (name, row.get("max_model_len"), _table(row.get("meta")).get("n_ctx"))
        for name, row in rows.items()
    )
    names = [name for name in rows if not _NO_CHAT.search(name)]
    if len(windows) < len(names):
        reported = _vendor_windows(client, names)
        windows |= {name: size for name, size in reported.items() if name in names}
    names.sort(key=lambda name: name not in windows)
    return Server(client.url, tuple(names), kind, windows)


def _models(answer: Answer | None) -> dict[str, Answer] | None:
    """The models of an answer, by name; None if it is no list of models."""
    data = (answer or {}).get("data")
    if not isinstance(data, list):
        return None
    models: dict[str, Answer] = {}
    for row in map(_table, cast("list[object]", data)):
        name = row.get("id")
        if isinstance(name, str) and name and name.isprintable():
            # llama.cpp reports its file, and takes any name.
            models[PurePath(name).stem if name.endswith(".gguf") else name] = row
    return models


def _vendor_windows(client: "_Client", names: list[str]) -> dict[str, int]:
    """The windows that a server reports in its own way: llama.cpp, LM Studio, Ollama."""
    props = client.get("/props") or {}
    own = _table(props.get("default_generation_settings")).get("n_ctx") or props.get("n_ctx")
    if len(names) == 1 and (sizes := _sizes([(names[0], own)])):
        return sizes
    if rows := _models(client.get("/api/v0/models")):
        return _sizes((name, row.get("loaded_context_length")) for name, row in rows.items())
    loaded = (client.get("/api/ps") or {}).get("models")
    tables = map(_table, cast("list[object]", loaded)) if isinstance(loaded, list) else ()
    return _sizes((str(row.get("name")), row.get("context_length")) for row in tables)


def _sizes(rows: Iterable[tuple[str, *tuple[object, ...]]]) -> dict[str, int]:
    """For each name the first value that is a size."""
    sizes: dict[str, int] = {}
    for name, *values in rows:
        for value in reversed(values):
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                sizes[name] = value
    return sizes


def _table(value: object) -> Answer:
    return cast("Answer", value) if isinstance(value, Mapping) else {}


class _Client:
    """Talks to one server, without proxies and redirects: no other host is contacted."""

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        self.url = url
        self.status: int | None = None  # of the last answer; None if there was none
        self._parts = urlsplit(url)
        self._timeout = timeout
        self._headers = {"Accept": "application/json"}
        if key and key.isascii() and key.isprintable():
            self._headers["Authorization"] = f"Bearer {key}"

    def get(self, path: str) -> Answer | None:
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)
        self.status = None
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            self.status = answer.status
            text = self._read(answer) if answer.status == HTTPStatus.OK else None
            value: object = json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return None
        finally:
            connection.close()
        return cast("Answer", value) if isinstance(value, dict) else None

    def _read(self, answer: http.client.HTTPResponse) -> bytes | None:
        """The whole answer, unless it is too long or too slow."""
        until = time.monotonic() + self._timeout
        text = b""
        while time.monotonic() < until and len(text) <= _MAX_BYTES:
            more = answer.read1(_MAX_BYTES)
            if not more:
                return text
            text += more
        return None
