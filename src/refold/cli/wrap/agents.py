"""What each coding agent is given, so that its requests go through a gateway: values, no effects.

An agent is changed by variables and flags of its own process only. Nothing that the user wrote is
written to; some of it is read, to learn where the agent's requests go without the gateway. They go
there with it, too, with the agent's own login, so that nobody else pays for them.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from refold.cli.hooks.recall import SERVER as HOOKS_SERVER
from refold.cli.wrap.agent import (
    ANTHROPIC,
    OPENAI,
    Agent,
    Endpoint,
    Host,
    Json,
    Launch,
    anthropic,
    as_json,
    at,
    chatgpt,
    json_object,
    merged,
    openai,
    toml_table,
)
from refold.errors import InvalidInput

SERVER: Final = "refold"
"""The name of the MCP server with recall's tools, as agents show it."""
RECALL_TOOLS: Final = ("recall_search", "recall_read", "recall_history")
_CODEX_PATH: Final = "/backend-api/codex"
_CODEX_SETTING: Final = ("-c", "--config")
_CODEX_SHARE: Final = 0.85
"""Codex compacts its own history at 90% of the window, and no setting changes that."""
_CODEX_MCP_START: Final = 60
"""Seconds. The gateway imports its MCP server while Codex starts."""
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NEVER: Final = "1000000000"
"""More tokens than any window has."""


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
    base = variables.get("ANTHROPIC_BASE_URL", "").strip() or ANTHROPIC
    flags: list[str] = []
    if "ANTHROPIC_BASE_URL" in settings:
        # Its settings override the environment, and flags override its settings.
        if any(argument.partition("=")[0] == "--settings" for argument in arguments):
            raise InvalidInput(
                "Claude Code's settings name an ANTHROPIC_BASE_URL. Refold overrides it with "
                "--settings, of which Claude Code takes one only.",
                "Leave --settings out, or set ANTHROPIC_BASE_URL in the environment instead.",
            )
        flags.append(f"--settings={as_json({'env': {'ANTHROPIC_BASE_URL': endpoint.address}})}")
    if endpoint.recall:
        # Without `alwaysLoad`, the model is told the names of tools only, and must look them up.
        server = {"type": "http", "url": endpoint.mcp, "alwaysLoad": True}
        flags.append(f"--mcp-config={as_json({'mcpServers': {SERVER: server}})}")
        tools = ",".join(f"mcp__{SERVER}__{tool}" for tool in RECALL_TOOLS)
        flags.append(f"--allowedTools={tools}")
    environment = {
        "ANTHROPIC_BASE_URL": endpoint.address,
        "DISABLE_AUTO_COMPACT": "1",
        # Else it sends nothing from some 85% of the window on; the gateway makes it fit.
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": _NEVER,
    }
    return Launch((*flags, *arguments), environment, (anthropic(base),))


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
            upstream, address = openai(base), endpoint.v1
        elif _codex_signed_in_with_chatgpt(host, home):
            upstream, address = chatgpt(), endpoint.address + _CODEX_PATH
            notes.append(
                "Codex is signed in with ChatGPT: that login passes through, but Codex's cloud "
                "history and notes may be off while its requests go to another address."
            )
        else:
            upstream, address = openai(OPENAI), endpoint.v1
        changes["openai_base_url"] = address
    else:
        upstream = openai(_codex_provider_url(config, provider))
        changes[f"model_providers.{provider}.base_url"] = endpoint.v1
    if endpoint.recall:
        changes[f"mcp_servers.{SERVER}.url"] = endpoint.mcp
        # Else it waits one second, and works without the tools if they come later.
        changes[f"mcp_servers.{SERVER}.required"] = True
        changes[f"mcp_servers.{SERVER}.startup_timeout_sec"] = _CODEX_MCP_START
        # Else the model must look for the tools before it can call them.
        changes["features.code_mode.direct_only_tool_namespaces"] = [f"mcp__{SERVER}"]
    if at(config, "mcp_servers", HOOKS_SERVER):
        changes[f"mcp_servers.{HOOKS_SERVER}.enabled"] = False
    flags = [word for name, value in changes.items() for word in ("-c", f"{name}={as_json(value)}")]
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
    config = toml_table(host.read(home / "config.toml"))
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
            config = merged(config, toml_table(host.read(home / f"{profile}.config.toml")))
        elif name in _CODEX_SETTING:
            config = merged(config, _toml_setting(value if equals else next(words, "")))
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
    models = json_object(catalog).get("models")
    windows: dict[str, int] = {}
    for model in models if isinstance(models, list) else []:
        if isinstance(model, dict):
            name, window = model.get("slug"), model.get("context_window")
            if isinstance(name, str) and isinstance(window, int):
                windows[name] = int(window * _CODEX_SHARE)
    return windows


def _toml_setting(text: str) -> Json:
    """A setting as Codex takes it: a dotted name, and a value that may lack its quotes."""
    name, _, value = text.partition("=")
    return toml_table(text) or (toml_table(f"{name}={json.dumps(value)}") if name else {})


# opencode.


def _opencode(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    given = json_object(host.variable("OPENCODE_CONFIG_CONTENT"))
    config: Json = {}
    for file in _opencode_files(host):
        config = merged(config, host.json(file))
    config = merged(config, given)
    usual = {"anthropic": f"{ANTHROPIC}/v1", "openai": OPENAI}
    bases = {
        name: str(at(config, "provider", name, "options", "baseURL") or base)
        for name, base in usual.items()
    }
    options: JsonValue = {"options": {"baseURL": endpoint.v1}}
    providers: JsonValue = dict.fromkeys(bases, options)
    changes: dict[str, JsonValue] = {"provider": providers, "compaction": {"auto": False}}
    if endpoint.recall:
        changes["mcp"] = {SERVER: {"type": "remote", "url": endpoint.mcp, "enabled": True}}
    environment = {"OPENCODE_CONFIG_CONTENT": as_json(merged(given, changes))}
    upstreams = (anthropic(bases["anthropic"], append_v1=False), openai(bases["openai"]))
    notes = ("Models of the providers anthropic and openai come through; others do not.",)
    return Launch(arguments, environment, upstreams, notes=notes)


def _opencode_files(host: Host) -> Iterator[Path]:
    """Its settings; the later files override the earlier ones."""
    configured = host.variable("XDG_CONFIG_HOME")
    user = (Path(configured) if configured else host.home / ".config") / "opencode"
    yield from (user / "config.json", user / "opencode.json", user / "opencode.jsonc")
    if own := host.variable("OPENCODE_CONFIG"):
        yield Path(own)
    for folder in (*reversed(host.folder.parents), host.folder):
        yield from (folder / "opencode.json", folder / "opencode.jsonc")


# Copilot CLI.


def _copilot(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    base = host.variable("COPILOT_PROVIDER_BASE_URL")
    if not base:
        raise InvalidInput(
            "Copilot CLI's own login works at GitHub's address only, so its requests cannot go "
            "through the gateway.",
            "To use a provider's key instead, which that provider bills, set "
            "COPILOT_PROVIDER_BASE_URL, COPILOT_PROVIDER_API_KEY and COPILOT_MODEL. Or run copilot "
            "without refold wrap.",
        )
    kind = host.variable("COPILOT_PROVIDER_TYPE") or "openai"
    if kind not in {"openai", "anthropic"}:
        raise InvalidInput(
            f"Copilot CLI is set to a provider of the type {kind!r}, whose requests the gateway "
            "cannot pass on.",
            "Use one of the type openai or anthropic, or run copilot without refold wrap.",
        )
    is_openai = kind == "openai"
    environment = {
        "COPILOT_PROVIDER_BASE_URL": endpoint.v1 if is_openai else endpoint.address,
        "COPILOT_PROVIDER_TRANSPORT": "http",
        # It compacts when that is nearly used up, and has no other setting.
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": _NEVER,
    }
    flags: tuple[str, ...] = ()
    if endpoint.recall:
        server = {"type": "http", "url": endpoint.mcp, "tools": ["*"]}
        flags = (f"--additional-mcp-config={as_json({'mcpServers': {SERVER: server}})}",)
    upstream = openai(base) if is_openai else anthropic(base)
    return Launch((*flags, *arguments), environment, (upstream,))


# Qwen Code.

_QWEN_LOGINS: Final = {
    "qwen-oauth": "its own login",
    "gemini": "Google's Gemini",
    "vertex-ai": "Google Vertex AI",
}


def _qwen(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    settings: Json = {}
    for folder in (host.home, host.folder):
        settings = merged(settings, host.json(folder / ".qwen" / "settings.json"))
    login = _value_of("--auth-type", arguments) or at(settings, "security", "auth", "selectedType")
    if why := _QWEN_LOGINS.get(str(login)):
        raise InvalidInput(
            f"Qwen Code is set to {why} ({login}), whose requests the gateway cannot pass on.",
            "Choose a key of OpenAI's or Anthropic's format with /auth, or run qwen without refold "
            "wrap.",
        )
    own = str(at(settings, "security", "auth", "baseUrl") or "")
    bases = {
        "ANTHROPIC_BASE_URL": host.variable("ANTHROPIC_BASE_URL") or ANTHROPIC,
        "OPENAI_BASE_URL": host.variable("OPENAI_BASE_URL") or own or OPENAI,
    }
    flags: tuple[str, ...] = ()
    if endpoint.recall:
        # Else the model must look for the tools before it can call them.
        server = {"httpUrl": endpoint.mcp, "trust": True, "alwaysLoadTools": True}
        flags = (f"--mcp-config={as_json({'mcpServers': {SERVER: server}})}",)
    upstreams = (anthropic(bases["ANTHROPIC_BASE_URL"]), openai(bases["OPENAI_BASE_URL"]))
    environment = {"ANTHROPIC_BASE_URL": endpoint.address, "OPENAI_BASE_URL": endpoint.v1}
    notes = ["Qwen Code still compacts by itself, at some 85% of the window."]
    if "baseUrl" in as_json(at(settings, "modelProviders")):
        notes.append(
            "Models that Qwen Code's settings list with a baseUrl of their own do not come through."
        )
    return Launch((*flags, *arguments), environment, upstreams, notes=tuple(notes))


# pi.

_PI_EXTENSION: Final = Path(__file__).with_name("pi_extension.js")
_PI_COMMANDS: Final = frozenset(
    {"install", "remove", "uninstall", "update", "list", "config", "auth"}
)


def _pi(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    own = host.variable("PI_CODING_AGENT_DIR")
    folder = Path(own) if own else host.home / ".pi" / "agent"
    models = host.json(folder / "models.json")
    bases = {
        name: str(at(models, "providers", name, "baseUrl") or base)
        for name, base in {"anthropic": ANTHROPIC, "openai": OPENAI}.items()
    }
    flags: tuple[str, ...] = ("--extension", str(_PI_EXTENSION))
    if arguments[:1] and arguments[0] in _PI_COMMANDS:
        flags = ()
    environment = {"REFOLD_GATEWAY": endpoint.address}
    if endpoint.recall:
        environment["REFOLD_RECALL"] = endpoint.mcp
    upstreams = (anthropic(bases["anthropic"]), openai(bases["openai"]))
    notes = ("Models of the providers anthropic and openai come through; others do not.",)
    return Launch((*flags, *arguments), environment, upstreams, notes=notes)


def _value_of(flag: str, arguments: Sequence[str]) -> str:
    """The value of a flag, as `--flag value` or `--flag=value`; empty if it is not there."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == flag:
            return value if equals else next(iter(arguments[index + 1 :]), "")
    return ""


# Any command.


def _any(host: Host, endpoint: Endpoint, arguments: tuple[str, ...]) -> Launch:
    """The usual variables, which most programs read that speak to OpenAI or Anthropic."""
    own = host.variable("OPENAI_BASE_URL") or host.variable("OPENAI_API_BASE")
    environment = {
        "ANTHROPIC_BASE_URL": endpoint.address,
        "OPENAI_BASE_URL": endpoint.v1,
        "OPENAI_API_BASE": endpoint.v1,
    }
    upstreams = (
        anthropic(host.variable("ANTHROPIC_BASE_URL") or ANTHROPIC),
        openai(own or OPENAI),
    )
    return Launch(arguments, environment, upstreams)


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
        Agent(
            "opencode",
            "opencode",
            _opencode,
            "npm install -g opencode-ai",
            ("--continue",),
            own_resume=False,
            detached={"attach": "is shown the work of another process"},
        ),
        Agent(
            "copilot", "Copilot CLI", _copilot, "npm install -g @github/copilot", ("--continue",)
        ),
        Agent("qwen", "Qwen Code", _qwen, "npm install -g @qwen-code/qwen-code", ("--continue",)),
        Agent(
            "pi",
            "pi",
            _pi,
            "npm install -g @earendil-works/pi-coding-agent",
            ("--continue",),
        ),
    )
}


def agent_for(command: str) -> Agent:
    """The agent with this command, a path or a name; any other gets the usual variables."""
    name = Path(command).name
    return AGENTS.get(name) or Agent(name, name, _any, "", ())
