"""What each coding agent is given, so that its requests go through a gateway: values, no effects.

An agent is changed by variables and flags of its own process only. Nothing that the user wrote is
written to; some of it is read, to learn where the agent's requests go without the gateway. They go
there with it, too, with the agent's own login, so that nobody else pays for them.
"""

import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.settings import UpstreamSettings

SERVER: Final = "refold"
"""The name of the MCP server with recall's tools, as agents show it."""
RECALL_TOOLS: Final = ("recall_search", "recall_read", "recall_history")
_ANTHROPIC: Final = "https://api.anthropic.com"
_OPENAI: Final = "https://api.openai.com/v1"
_CHATGPT: Final = "https://chatgpt.com/backend-api/codex"
_CODEX_PATH: Final = "/backend-api/codex"
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NEVER: Final = "1000000000"
"""More tokens than any window has."""
_CODEX_SETTING: Final = ("-c", "--config")
_CODEX_SHARE: Final = 0.85
"""Codex compacts its own history at 90% of the window, and no setting changes that."""

Json = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the gateway answers."""

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
        return _object(self.read(path))


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


def launch(
    agent: Agent,
    host: Host,
    endpoint: Endpoint,
    arguments: Sequence[str],
    *,
    resume: bool = False,
) -> Launch:
    """How an agent is started, for a gateway at this endpoint.

    Raises:
        InvalidInput: Its requests cannot go through the gateway.
    """
    given = tuple(arguments)
    if not agent.own_resume and given[:1] == ("--resume",):
        resume, given = True, given[1:]
    for index, argument in enumerate(given):
        name = argument.partition("=")[0]
        why = agent.detached.get(name) if index == 0 or name.startswith("-") else None
        if why:
            raise InvalidInput(
                f"With {argument}, {agent.title} {why}, so its requests would not come through "
                "the gateway.",
                f"Leave {argument} out, or run {agent.name} without refold wrap.",
            )
    started = agent.configure(host, endpoint, (*agent.resume, *given) if resume else given)
    return replace(started, environment={**started.environment, **_direct(host)})


def _direct(host: Host) -> dict[str, str]:
    """The variables that keep requests to this machine out of a proxy, where there is one."""
    if not any(host.variable(name) or host.variable(name.lower()) for name in _PROXIES):
        return {}
    names = ("NO_PROXY", "no_proxy")
    return {name: ",".join(filter(None, (host.variable(name), "127.0.0.1"))) for name in names}


# Claude Code.

_CLAUDE_CLOUDS: Final = {
    "CLAUDE_CODE_USE_BEDROCK": "Amazon Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "Google Vertex AI",
    "CLAUDE_CODE_USE_FOUNDRY": "Microsoft Foundry",
    "CLAUDE_CODE_USE_MANTLE": "Amazon Bedrock",
}
_NO: Final = frozenset({"", "0", "false", "no", "off"})


def _claude(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    settings = _claude_settings(host)
    variables = {**host.environment, **settings}
    for name, cloud in _CLAUDE_CLOUDS.items():
        if variables.get(name, "").strip().lower() not in _NO:
            raise InvalidInput(
                f"Claude Code is set to {cloud} ({name}), whose requests the gateway cannot read.",
                f"Unset {name}, or run claude without refold wrap.",
            )
    base = variables.get("ANTHROPIC_BASE_URL", "").strip() or _ANTHROPIC
    flags: list[str] = []
    if "ANTHROPIC_BASE_URL" in settings:
        # Its settings override the environment, and flags override its settings.
        if any(argument.partition("=")[0] == "--settings" for argument in arguments):
            raise InvalidInput(
                "Claude Code's settings name an ANTHROPIC_BASE_URL. Refold overrides it with "
                "--settings, of which Claude Code takes one only.",
                "Leave --settings out, or set ANTHROPIC_BASE_URL in the environment instead.",
            )
        flags.append(f"--settings={_json({'env': {'ANTHROPIC_BASE_URL': endpoint.address}})}")
    if endpoint.recall:
        # Without `alwaysLoad`, the model is told the names of tools only, and must look them up.
        server = {"type": "http", "url": endpoint.mcp, "alwaysLoad": True}
        flags.append(f"--mcp-config={_json({'mcpServers': {SERVER: server}})}")
        tools = ",".join(f"mcp__{SERVER}__{tool}" for tool in RECALL_TOOLS)
        flags.append(f"--allowedTools={tools}")
    environment = {
        "ANTHROPIC_BASE_URL": endpoint.address,
        "DISABLE_AUTO_COMPACT": "1",
        # Else it sends nothing from some 85% of the window on; the gateway makes it fit.
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": _NEVER,
    }
    return Launch((*flags, *arguments), environment, (_anthropic(base),))


def _claude_settings(host: Host) -> dict[str, str]:
    """The variables that Claude Code's settings set; the later files override the earlier ones."""
    own = host.variable("CLAUDE_CONFIG_DIR")
    user = Path(own) if own else host.home / ".claude"
    project = host.folder / ".claude"
    files = (
        user / "settings.json",
        project / "settings.json",
        project / "settings.local.json",
        Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
        Path("/etc/claude-code/managed-settings.json"),
    )
    found: dict[str, str] = {}
    for file in files:
        values = host.json(file).get("env")
        if isinstance(values, dict):
            found |= {name: str(value) for name, value in values.items()}
    return found


# Codex.


def _codex(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    own = host.variable("CODEX_HOME")
    home = Path(own) if own else host.home / ".codex"
    config = _codex_config(host, home, arguments)
    provider = str(config.get("model_provider") or "openai")
    changes: dict[str, JsonValue] = {}
    notes: list[str] = []
    if provider == "openai":
        base = str(config.get("openai_base_url") or "")
        if base:
            upstream, address = _openai(base), endpoint.v1
        elif _codex_signed_in_with_chatgpt(host, home):
            upstream, address = _chatgpt(), endpoint.address + _CODEX_PATH
            notes.append(
                "Codex is signed in with ChatGPT: that login passes through, but Codex's cloud "
                "history and notes may be off while its requests go to another address."
            )
        else:
            upstream, address = _openai(_OPENAI), endpoint.v1
        changes["openai_base_url"] = address
    else:
        upstream = _openai(_codex_provider_url(config, provider))
        changes[f"model_providers.{provider}.base_url"] = endpoint.v1
    if endpoint.recall:
        changes[f"mcp_servers.{SERVER}.url"] = endpoint.mcp
        # Else the model must look for the tools before it can call them.
        changes["features.code_mode.direct_only_tool_namespaces"] = [f"mcp__{SERVER}"]
    flags = [word for name, value in changes.items() for word in ("-c", f"{name}={_json(value)}")]
    own_words = _without_settings(arguments, changes.keys())
    windows = _codex_windows(host.run(("debug", "models")))
    return Launch(("--no-daemon", *flags, *own_words), {}, (upstream,), windows, tuple(notes))


def _without_settings(arguments: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """The arguments without those that set one of these: the last one would count."""
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        setting = [word]
        if flag in _CODEX_SETTING and not equals:
            setting += [value := next(words, "")]
        if flag not in _CODEX_SETTING or value.partition("=")[0].strip() not in names:
            yield from setting


def _codex_config(host: Host, home: Path, arguments: Sequence[str]) -> Json:
    """The settings that decide where Codex sends its requests."""
    config = _toml(host.read(home / "config.toml"))
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in {"--oss", "--local-provider"}:
            raise InvalidInput(
                f"With {name}, Codex asks a model on this machine, which Refold does not find.",
                "Define that server under [model_providers] in Codex's config.toml instead.",
            )
        if name in ("-p", "--profile"):
            profile = value if equals else next(words, "")
            config = _merged(config, _toml(host.read(home / f"{profile}.config.toml")))
        elif name in _CODEX_SETTING:
            config = _merged(config, _toml_setting(value if equals else next(words, "")))
    return config


def _codex_provider_url(config: Json, provider: str) -> str:
    providers = config.get("model_providers")
    own = providers.get(provider) if isinstance(providers, dict) else None
    base = own.get("base_url") if isinstance(own, dict) else None
    if not isinstance(base, str) or not base:
        raise InvalidInput(
            f"Codex is set to the model provider {provider!r}, whose address Refold does not know.",
            f"Set base_url under [model_providers.{provider}] in Codex's config.toml, or run codex "
            "without refold wrap.",
        )
    return base


def _codex_signed_in_with_chatgpt(host: Host, home: Path) -> bool:
    if host.variable("CODEX_API_KEY"):
        return False
    login = host.json(home / "auth.json")
    if login:
        return bool(login.get("tokens")) and not login.get("OPENAI_API_KEY")
    return "chatgpt" in host.run(("login", "status")).lower()  # it may be in a keyring


def _codex_windows(catalog: str) -> dict[str, int]:
    """The windows within which Codex does not compact, by its own catalog of models."""
    models = _object(catalog).get("models")
    windows: dict[str, int] = {}
    for model in models if isinstance(models, list) else []:
        if isinstance(model, dict):
            name, window = model.get("slug"), model.get("context_window")
            if isinstance(name, str) and isinstance(window, int):
                windows[name] = int(window * _CODEX_SHARE)
    return windows


# Any command.


def _any(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    """The usual variables, which most programs read that speak to OpenAI or Anthropic."""
    anthropic = host.variable("ANTHROPIC_BASE_URL") or _ANTHROPIC
    openai = host.variable("OPENAI_BASE_URL") or host.variable("OPENAI_API_BASE") or _OPENAI
    environment = {
        "ANTHROPIC_BASE_URL": endpoint.address,
        "OPENAI_BASE_URL": endpoint.v1,
        "OPENAI_API_BASE": endpoint.v1,
    }
    return Launch(arguments, environment, (_anthropic(anthropic), _openai(openai)))


AGENTS: Final = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            "Claude Code",
            _claude,
            "npm install -g @anthropic-ai/claude-code",
            ("--continue",),
            detached={
                "--bg": "works in the background",
                "--background": "works in the background",
                "--cloud": "works in the cloud",
                "--teleport": "works in the cloud",
                "--desktop": "opens another program",
            },
        ),
        Agent(
            "codex",
            "Codex",
            _codex,
            "npm install -g @openai/codex",
            ("resume", "--last"),
            own_resume=False,
            detached={
                "--remote": "is shown the work of another process",
                "cloud": "works in the cloud",
                "remote-control": "starts a server that outlives it",
            },
        ),
    )
}


def agent_for(command: str) -> Agent:
    """The agent with this command, a path or a name; any other gets the usual variables."""
    name = Path(command).name
    return AGENTS.get(name) or Agent(name, name, _any, "", ())


# Where requests are passed on to.


def _anthropic(base: str) -> UpstreamSettings:
    return UpstreamSettings(
        name="anthropic", base_url=_checked(base), dialects=("anthropic-messages",)
    )


def _openai(base: str) -> UpstreamSettings:
    """Clients of OpenAI append nothing to its address: `/v1` is a part of it, or it is not."""
    return UpstreamSettings(
        name="openai",
        base_url=_checked(base),
        dialects=("openai-chat", "openai-responses"),
        append_v1=False,
    )


def _chatgpt() -> UpstreamSettings:
    return UpstreamSettings(name="chatgpt", base_url=_CHATGPT, dialects=("openai-responses",))


def _checked(base: str) -> str:
    if not base.startswith(("http://", "https://")):
        raise InvalidInput(
            f"The agent's address of its model, {base!r}, is not one of HTTP.",
            "Set it as https://host/path.",
        )
    return base.rstrip("/")


# Settings of agents, which may hold anything.


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _object(text: str) -> Json:
    try:
        value: object = json.loads(text) if text.strip() else {}
    except ValueError:
        return {}
    return cast("Json", value) if isinstance(value, dict) else {}


def _toml(text: str) -> Json:
    try:
        return cast("Json", tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return {}


def _merged(below: Json, above: Json) -> Json:
    merged = dict(below)
    for name, value in above.items():
        inner = merged.get(name)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[name] = dict(_merged(inner, value)) if both else value
    return merged


def _toml_setting(text: str) -> Json:
    """A setting as Codex takes it: a dotted name, and a value that may lack its quotes."""
    name, _, value = text.partition("=")
    return _toml(text) or (_toml(f"{name}={json.dumps(value)}") if name else {})
