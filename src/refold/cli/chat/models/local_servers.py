"""Model servers of this machine, and any other that speaks OpenAI's language.

Only what a person named is asked beyond this machine. Everything is asked for a moment only: a
port may belong to another program.
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
"""Where model servers listen when nobody tells them otherwise."""
_MOMENT = 0.3
"""Seconds that a port of this machine may take to answer."""
_PATIENCE = 3.0
"""Seconds that a server which somebody named may take."""
_MOST = 1 << 20
_NO_CHAT = re.compile(r"embed|rerank|whisper|moderation|tts|(?:^|/)(?:bge|gte|e5)-", re.IGNORECASE)

Answer = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answered."""

    url: str
    """Its address, up to and with `/v1`."""
    models: tuple[str, ...]
    """Those one can talk with; the first is the one that is loaded, where it says so."""
    kind: str = "server"
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens that a request to a model may have, where the server says so."""


def running_here(ports: Iterable[int] = WELL_KNOWN) -> list[Server]:
    """The servers that answer on this machine."""
    listed = list(ports)
    with ThreadPoolExecutor(max(1, len(listed))) as pool:
        found = pool.map(_on_port, listed)
        return [one for one in found if one is not None]


def server_at(url: str, key: str | None = None) -> Server:
    """The server that somebody named, or an error that says what is wrong with it.

    Args:
        url: Its address.
        key: What it asks for, if it does.
    """
    _check(url)
    ask = _Asking(url.rstrip("/"), key, _PATIENCE)
    found = _asked(ask, "server")
    if found is None:
        raise _unlisted(public(url), ask.status, with_key=key is not None)
    if not found.models:
        raise NoModel(
            f"The server at {public(url)} has no model to talk with.",
            "Load one there (with Ollama: `ollama pull NAME`).",
        )
    return found


def public(url: str) -> str:
    """An address without the name, password or key that may stand in it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        right = False
    if not right:
        raise InvalidInput(
            "That is no address of a model server.", "Write it like http://127.0.0.1:8080/v1."
        )


def _unlisted(url: str, status: int | None, *, with_key: bool) -> NoModel:
    """Why a server that somebody named shows no models, as far as it tells."""
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
            "Try again when its model is loaded; what it logged may say more.",
        )
    return NoModel(
        f"What answers at {url} lists no models.",
        "Correct the address (it ends in /v1 with most servers), "
        f"or name the model: -m openai:NAME --base-url {url}",
    )


def _on_port(port: int) -> Server | None:
    ask = _Asking(f"http://127.0.0.1:{port}/v1", None, _MOMENT)
    return _asked(ask, WELL_KNOWN.get(port, "server"))


def _asked(ask: "_Asking", kind: str) -> Server | None:
    """What the server says of itself; None when it is no model server."""
    rows = _rows(ask.get(f"{urlsplit(ask.url).path}/models"))
    if rows is None:
        return None
    windows = {name: size for name, row in rows.items() if (size := _size_in(row))}
    names = [name for name in rows if not _NO_CHAT.search(name)]
    if len(windows) < len(names):
        windows |= _told_elsewhere(ask, names)
    names.sort(key=lambda name: name not in windows)
    return Server(ask.url, tuple(names), kind, windows)


def _rows(answer: Answer | None) -> dict[str, Answer] | None:
    """The models of an answer, by name; None when it is no list of models."""
    listed = (answer or {}).get("data")
    if not isinstance(listed, list):
        return None
    rows = [_table(one) for one in cast("list[object]", listed)]
    named = [(_name(row.get("id")), row) for row in rows]
    return {name: row for name, row in named if name}


def _name(given: object) -> str:
    """A model's name; empty when it has none. llama.cpp says its file, and takes any name."""
    if not isinstance(given, str) or not given.isprintable():
        return ""
    return PurePath(given).stem if given.endswith(".gguf") else given


def _size_in(row: Answer) -> int | None:
    """Beside the name (vLLM) or one level below (llama.cpp): not what it was trained with."""
    return _size(row.get("max_model_len")) or _size(_table(row.get("meta")).get("n_ctx"))


def _told_elsewhere(ask: "_Asking", names: list[str]) -> dict[str, int]:
    """Windows that a server tells in its own way: llama.cpp, LM Studio, Ollama."""
    props = ask.get("/props") or {}
    own = _table(props.get("default_generation_settings")).get("n_ctx") or props.get("n_ctx")
    if (size := _size(own)) and len(names) == 1:
        return {names[0]: size}
    if rows := _rows(ask.get("/api/v0/models")):
        sizes = {name: _size(row.get("loaded_context_length")) for name, row in rows.items()}
        return {name: size for name, size in sizes.items() if size and name in names}
    loaded = (ask.get("/api/ps") or {}).get("models")
    if not isinstance(loaded, list):
        return {}
    tables = [_table(one) for one in cast("list[object]", loaded)]
    sizes = {str(row.get("name")): _size(row.get("context_length")) for row in tables}
    return {name: size for name, size in sizes.items() if size and name in names}


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _table(value: object) -> Answer:
    return cast("Answer", value) if isinstance(value, Mapping) else {}


class _Asking:
    """Asks one server. No proxies and no redirects: nobody else is asked."""

    def __init__(self, url: str, key: str | None, wait: float) -> None:
        self.url = url
        self.status: int | None = None
        """That of the last answer; None when there was none."""
        self._at = urlsplit(url)
        self._wait = wait
        self._headers = {"Accept": "application/json"}
        if key and key.isascii() and key.isprintable():
            self._headers["Authorization"] = f"Bearer {key}"

    def get(self, path: str) -> Answer | None:
        """The JSON object that it answers with; None when it does not."""
        secure = self._at.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._at.hostname or "", self._at.port, timeout=self._wait)
        self.status = None
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            self.status = answer.status
            text = self._whole(answer) if answer.status == HTTPStatus.OK else None
            value: object = json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return None
        finally:
            connection.close()
        return cast("Answer", value) if isinstance(value, dict) else None

    def _whole(self, answer: http.client.HTTPResponse) -> bytes | None:
        """All of an answer that is neither too long nor too slow."""
        until = time.monotonic() + self._wait
        text = b""
        while time.monotonic() < until and len(text) <= _MOST:
            more = answer.read1(_MOST)
            if not more:
                return text
            text += more
        return None
