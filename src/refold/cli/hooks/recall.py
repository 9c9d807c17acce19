"""Recall's tools for an agent with hooks: an MCP server in the agent's own settings.

The agent starts `refold mcp`, which reads what the hooks bring into the log. It is named apart from
the server of `refold wrap`, under which it has no tools.
"""

import json
import os
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from pydantic import JsonValue

from refold.cli.hooks.agents import HookedAgent, agent_folder, opencode_path, plugin_text
from refold.cli.hooks.json_text import parse, with_member, without
from refold.errors import InvalidInput

SERVER: Final = "refold_recall"
"""The name of the MCP server, as agents show it."""
_START: Final = 60
"""Seconds that the server may take to start."""
_COMMENT: Final = "# Refold's recall. `refold hooks uninstall codex` takes it out."
_NO_TOOLS: Final = "const RECALL = []\n"
_TABLE: Final = re.compile(
    rf"(?:(?<=\n)\r?\n)?(?:{re.escape(_COMMENT)}\r?\n)?"
    rf"^\[mcp_servers\.{SERVER}(?:\.[^\]\r\n]+)?\](?:\r?\n|$)"
    r"(?:[ \t]*[\w.\"'-]+[ \t]*=[^\r\n]*(?:\r?\n|$))*",
    re.MULTILINE,
)
"""A table of the server, or of one of its tools, with the empty line and the comment before it."""


def server_command() -> list[str]:
    """What an agent runs: this Python, for the conversations of the agent's folder."""
    return [sys.executable, "-P", "-m", "refold.cli", "mcp", "--cwd", "."]


# Claude Code keeps the user's MCP servers in a file of its own.


def _claude_path() -> Path:
    own = os.environ.get("CLAUDE_CONFIG_DIR", "")
    return (Path(own).expanduser() if own else Path.home()) / ".claude.json"


def _claude_server() -> dict[str, JsonValue]:
    program, *arguments = server_command()
    return {"type": "stdio", "command": program, "args": [*arguments], "env": {}}


def _claude_servers(text: str) -> dict[str, JsonValue]:
    value = cast("JsonValue", parse(text).plain()) if text.strip() else {}
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    return servers if isinstance(servers, dict) else {}


def _install_claude(text: str) -> str:
    if _claude_servers(text).get(SERVER) == _claude_server():
        return text
    text = _uninstall_claude(text) if text.strip() else "{}\n"
    return with_member(text, ["mcpServers", SERVER], _claude_server())


def _uninstall_claude(text: str) -> str:
    servers = _claude_servers(text)
    if SERVER not in servers:
        return text
    text = without(text, ["mcpServers", SERVER])
    return text if len(servers) > 1 else without(text, ["mcpServers"])


def _shown_of_claude(text: str) -> str:
    """Refold's server alone: other servers have keys, and so has the rest of the file."""
    server = _claude_servers(text).get(SERVER)
    return json.dumps({"mcpServers": {SERVER: server}}, indent=2) if server else "{}"


# Codex has them in its settings.


def _codex_path() -> Path:
    return agent_folder("CODEX_HOME", ".codex") / "config.toml"


def _codex_server() -> dict[str, JsonValue]:
    program, *arguments = server_command()
    return {"command": program, "args": [*arguments], "startup_timeout_sec": _START}


def _install_codex(text: str) -> str:
    if _toml(text).get("mcp_servers", {}).get(SERVER) == _codex_server():
        return text
    rest = _uninstall_codex(text)
    end = "\r\n" if "\r\n" in text else "\n"
    # Strings, lists of them and numbers are spelled alike in both.
    lines = [f"{name} = {json.dumps(value)}" for name, value in _codex_server().items()]
    block = end.join([_COMMENT, f"[mcp_servers.{SERVER}]", *lines, ""])
    between = "" if not rest else end if rest.endswith("\n") else end * 2
    added = f"{rest}{between}{block}"
    expected = _toml(rest)
    try:
        expected.setdefault("mcp_servers", {})[SERVER] = _codex_server()
        fits = tomllib.loads(added) == expected
    except (tomllib.TOMLDecodeError, TypeError):
        fits = False
    if not fits:
        raise InvalidInput(
            "A server cannot be added at its end without changing yours.",
            "Write your mcp_servers as tables, such as [mcp_servers.name], and try again.",
        )
    return added


def _uninstall_codex(text: str) -> str:
    expected = _toml(text)
    if SERVER not in expected.get("mcp_servers", {}):
        return text
    rest = _TABLE.sub("", text)
    del expected["mcp_servers"][SERVER]
    if not expected["mcp_servers"]:
        del expected["mcp_servers"]
    if _toml(rest) != expected:
        raise InvalidInput(
            f"The table [mcp_servers.{SERVER}] in it was changed.", "Take it out by hand."
        )
    return rest


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"It is not TOML: {error}.", "Correct it and try again.") from error


# opencode's plugin adds the server by itself.


def _install_opencode(text: str) -> str:
    tools = f"const RECALL = {json.dumps(server_command())}\n"
    return _uninstall_opencode(plugin_text(text)).replace(_NO_TOOLS, tools)


def _uninstall_opencode(text: str) -> str:
    return re.sub(r"(?m)^const RECALL = \[.*\]\n", _NO_TOOLS, text)


def _count_opencode(text: str) -> int:
    return int("\nconst RECALL = [" in text and _NO_TOOLS not in text)


def _purpose(title: str) -> str:
    return (
        f"{title} then starts that with each session, so that its model can search and reread the "
        "sessions of that folder in your log."
    )


@cache
def recall_servers() -> dict[str, HookedAgent]:
    """Where each agent has the server, by the agent's name."""
    return {
        "claude": HookedAgent(
            "claude-recall",
            "Claude Code",
            f"the MCP server {SERVER}",
            _purpose("Claude Code"),
            _claude_path,
            _install_claude,
            _uninstall_claude,
            lambda text: int(SERVER in _claude_servers(text)),
            shown=_shown_of_claude,
        ),
        "codex": HookedAgent(
            "codex-recall",
            "Codex",
            f"the MCP server {SERVER}",
            _purpose("Codex"),
            _codex_path,
            _install_codex,
            _uninstall_codex,
            lambda text: int(SERVER in _toml(text).get("mcp_servers", {})),
        ),
        "opencode": HookedAgent(
            "opencode-recall",
            "opencode",
            f"the MCP server {SERVER}",
            _purpose("opencode"),
            opencode_path,
            _install_opencode,
            _uninstall_opencode,
            _count_opencode,
        ),
    }


def has_recall(agent: str) -> bool:
    """Whether an agent has the server, as far as its settings can be read."""
    server = recall_servers()[agent]
    try:
        return bool(server.count(server.path().read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, InvalidInput):
        return False
