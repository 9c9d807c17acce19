"""A coding agent as `refold wrap` knows it: what it finds here, and how it is started."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.settings import UpstreamSettings

ANTHROPIC: Final = "https://api.anthropic.com"
OPENAI: Final = "https://api.openai.com/v1"
CHATGPT: Final = "https://chatgpt.com/backend-api/codex"
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
"""What JSON lacks and some settings have, or a text, which stays."""

Json = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an agent reaches its gateway."""

    address: str
    """Without `/v1`."""
    recall: bool = True
    """Whether it has an MCP server with recall's tools."""

    @property
    def v1(self) -> str:
        return f"{self.address}/v1"

    @property
    def mcp(self) -> str:
        return f"{self.address}/mcp"


@dataclass(frozen=True, slots=True)
class Host:
    """What an agent would find if it were started without Refold."""

    environment: Mapping[str, str]
    home: Path
    folder: Path
    """The current folder."""
    read: Callable[[Path], str] = lambda _path: ""
    """The text of a file; empty if there is none."""
    run: Callable[[Sequence[str]], str] = lambda _arguments: ""
    """What the agent prints for these arguments; empty if it fails."""

    def variable(self, name: str) -> str:
        return self.environment.get(name, "").strip()

    def json(self, path: Path) -> Json:
        """The object in a file; empty if there is none that can be read."""
        return json_object(self.read(path))


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent is started."""

    arguments: tuple[str, ...]
    """All of them: those of Refold, and the user's."""
    environment: Mapping[str, str]
    """The variables that are set; all others stay."""
    upstreams: tuple[UpstreamSettings, ...]
    """Where the gateway passes its requests on to."""
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    """Windows of models, in tokens, where the agent itself would act before they are full."""
    notes: tuple[str, ...] = ()
    """What the user should know before it starts."""


Configure = Callable[[Host, Endpoint, tuple[str, ...]], Launch]


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent that Refold knows."""

    name: str
    """Of its command."""
    title: str
    configure: Configure
    install: str
    """How it is installed."""
    resume: tuple[str, ...]
    """The arguments that continue its newest conversation in this folder."""
    own_resume: bool = True
    """Whether it has a flag `--resume` of its own."""
    detached: Mapping[str, str] = field(default_factory=dict[str, str])
    """Arguments with which its requests would not come through the gateway, and why."""


# Where requests are passed on to.


def anthropic(base: str, *, append_v1: bool = True) -> UpstreamSettings:
    """A server of Anthropic's format; `/v1` is appended to its address, or is a part of it."""
    return UpstreamSettings(
        name="anthropic",
        base_url=_checked(base),
        dialects=("anthropic-messages",),
        append_v1=append_v1,
    )


def openai(base: str) -> UpstreamSettings:
    """Clients of OpenAI append nothing to its address: `/v1` is a part of it, or it is not."""
    return UpstreamSettings(
        name="openai",
        base_url=_checked(base),
        dialects=("openai-chat", "openai-responses"),
        append_v1=False,
    )


def chatgpt() -> UpstreamSettings:
    return UpstreamSettings(name="chatgpt", base_url=CHATGPT, dialects=("openai-responses",))


def _checked(base: str) -> str:
    if not base.startswith(("http://", "https://")):
        raise InvalidInput(
            f"The agent's address of its model, {base!r}, is not one of HTTP.",
            "Set it as https://host/path.",
        )
    return base.rstrip("/")


# Settings of agents, which may hold anything.


def as_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def json_object(text: str) -> Json:
    """The object in a text, which may have comments; empty if there is none."""
    for lacking in (_COMMENT, _LAST_COMMA):
        text = lacking.sub(lambda found: found[1] or "", text)
    try:
        value: object = json.loads(text)
    except ValueError:
        return {}
    return cast("Json", value) if isinstance(value, dict) else {}


def at(values: Json, *names: str) -> JsonValue:
    """What is at a path of names in an object; None if nothing is."""
    found: JsonValue = dict(values)
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def toml_table(text: str) -> Json:
    try:
        return cast("Json", tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return {}


def merged(below: Json, above: Json) -> Json:
    """Both objects in one; what the second one sets counts."""
    values = dict(below)
    for name, value in above.items():
        inner = values.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            values[name] = dict(merged(inner, value))
        else:
            values[name] = value
    return values
