"""What happened, one JSON object on a line, in a file that survives `kill -9`.

A kill may cut the line that is being written: it is none then.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx2


class Journal:
    """Appends to the file. Each line is one write, and begins after whatever was cut before."""

    def __init__(self, path: Path | str):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.turn = 0
        """Of what follows."""

    def write(self, what: str, **values: Any) -> None:
        line = json.dumps({"what": what, "turn": self.turn, **values})
        os.write(self._file, b"\n" + line.encode() + b"\n")

    def client(self, transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
        """A client that writes down each request before it is sent, and each answer."""
        hooks = {"request": [self._sending], "response": [self._received]}
        return httpx2.AsyncClient(event_hooks=hooks, timeout=600, transport=transport)

    def close(self) -> None:
        os.close(self._file)

    async def _sending(self, request: httpx2.Request) -> None:
        number = uuid4().hex
        request.extensions["number"] = number
        # A summary is asked for below the agent's own request: that is another kind of it.
        what = "summary" if "x-interaction-type" in request.headers else "request"
        self.write(what, number=number, body=json.loads(request.content))

    async def _received(self, response: httpx2.Response) -> None:
        answer = json.loads(await response.aread())
        number = response.request.extensions["number"]
        told = {key: answer.get(key) for key in ("error", "usage")}
        self.write("response", number=number, status=response.status_code, **told)


class Exchange(NamedTuple):
    """One request as the server got it, and how it answered; nothing if a kill came before."""

    turn: int
    body: dict[str, Any]
    status: int | None = None
    error: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Every line of a journal."""
    return list(_whole(path.read_bytes().split(b"\n"))) if path.exists() else []


def live(path: Path) -> Iterator[dict[str, Any] | None]:
    """Every line of a journal that is being written; None whenever there is no more yet."""
    rest = b""
    with path.open("rb") as file:
        while True:
            *lines, rest = (rest + file.read()).split(b"\n")
            yield from _whole(lines)
            yield None


def _whole(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def exchanges_of(path: Path) -> Iterator[Exchange]:
    """Every request of a journal with its answer."""
    lines = lines_of(path)
    answers = {line["number"]: line for line in lines if line["what"] == "response"}
    for line in lines:
        if line["what"] == "request":
            answer = answers.get(line["number"], {})
            told = (answer.get(key) for key in ("status", "error", "usage"))
            yield Exchange(line["turn"], line["body"], *told)
