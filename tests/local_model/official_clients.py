"""The official clients, each asked in the same way. Nothing of them is changed but the base URL."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
from needed import need

NPM = Path(__file__).parents[1] / "gateway_npm"
_INSTALL = ["npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"]
_INSTALL_S = 120
_IDS = {"id", "item_id", "call_id"}
_TIMES = {"created", "created_at", "completed_at", "timings"}
_VOLATILE = _IDS | _TIMES | {"cached_tokens"}


class Told(NamedTuple):
    """What a client got."""

    status: int
    answer: Any
    """As JSON: what the client made of the answer, its list of events, or the error's body."""
    headers: dict[str, str]

    @property
    def session(self) -> str | None:
        return self.headers.get("refold-session")

    @property
    def same(self) -> Any:
        """The answer without what differs between any two that are equal."""
        return self.status, _same(self.answer)


def _same(value: Any) -> Any:
    if isinstance(value, list):
        return [_same(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _same(one) for key, one in value.items() if key not in _VOLATILE}
    if "cache_read_input_tokens" in kept:  # Anthropic counts them apart from the others
        kept["input_tokens"] += kept.pop("cache_read_input_tokens") or 0
    return kept


class PythonClient:
    """`openai` or `anthropic` from PyPI."""

    def __init__(self, api):
        self.api = api

    async def ask(self, base, body) -> Told:
        async with self._client(base) as client:
            try:
                raw = await self._asked(client).with_raw_response.create(**self._given(body))
            except (openai.APIStatusError, anthropic.APIStatusError) as error:
                headers = dict(error.response.headers)
                return Told(error.status_code, error.response.json(), headers)
            parsed = raw.parse()
            if asyncio.iscoroutine(parsed):
                parsed = await parsed
            events = [_plain(one) async for one in parsed] if body.get("stream") else _plain(parsed)
            return Told(raw.status_code, events, dict(raw.headers))

    def _given(self, body):
        if self.api != "messages":
            return body
        given = {key: value for key, value in body.items() if key != "temperature"}
        return {
            **given,
            "extra_body": {"temperature": body["temperature"]},
        }  # it has no word for it

    def _client(self, base):
        if self.api == "messages":
            return anthropic.AsyncAnthropic(base_url=base, api_key="none")
        return openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="none")

    def _asked(self, client):
        match self.api:
            case "chat":
                return client.chat.completions
            case _:
                return getattr(client, self.api)


def _plain(one):
    return one.model_dump(mode="json", exclude_unset=True, warnings=False)


class NpmClient:
    """`openai` from npm, in a process of node's."""

    def __init__(self, api, node):
        self.api = api
        self._node = node

    async def ask(self, base, body) -> Told:
        given = {"baseURL": f"{base}/v1", "api": self.api, "body": body}
        self._node.stdin.write(json.dumps(given) + "\n")
        self._node.stdin.flush()
        told = await asyncio.to_thread(self._node.stdout.readline)
        assert told, "node ended"
        return Told(**json.loads(told))


@contextmanager
def node_with_client(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that asks with the client from npm; skips where there is none, unless needed."""
    missing = _install(folder)
    need(not missing, missing or "", "REFOLD_NPM")
    node = subprocess.Popen(
        ["node", folder / "ask.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield node
    finally:
        node.communicate()


def _install(folder: Path) -> str:
    if not (shutil.which("node") and shutil.which("npm")):
        return "node and npm are not installed"
    for one in ("package.json", "package-lock.json", "ask.mjs"):
        shutil.copy(NPM / one, folder)
    try:
        done = subprocess.run(
            _INSTALL, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"npm did not install the client within {_INSTALL_S} s"
    return f"npm could not install the client: {done.stderr[-500:]}" if done.returncode else ""
