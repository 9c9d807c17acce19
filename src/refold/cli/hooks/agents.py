"""Where each agent's hooks are set, and what Refold writes there: texts in, texts out.

Only official interfaces are used, as the agents had them in November 2026. Nothing of the user's is
changed: Refold adds entries of its own, and takes out none but those.
"""

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from pydantic import JsonValue

from refold.cli.hooks import HOOK_MODULE
from refold.cli.hooks.json_text import parse, with_item, without
from refold.errors import InvalidInput

_EVENTS: Final = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
_PATIENT: Final = 60
_QUICK: Final = 10
_CODEX_END: Final = 3
"""Seconds: Codex lets a hook take no longer at a session's end."""
_CODEX_LIMIT: Final = 4_000
"""Tokens of what the hook adds, above which Codex writes it to a file."""
_FIRST_LINE: Final = "# >>> Hooks of Refold. `refold hooks uninstall codex` takes them out. >>>"
_LAST_LINE: Final = "# <<< Hooks of Refold. <<<"
_PLUGIN_LINE: Final = "// Refold's plugin for opencode"
_PLUGIN_RECALL: Final = re.compile(r"^const RECALL = \[.*\]$", re.MULTILINE)

Handler = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class HookedAgent:
    """An agent that has hooks or plugins."""

    name: str
    title: str
    interface: str
    """What is set in the file."""
    purpose: str
    """What that does, said before the user is asked about the change."""
    path: Callable[[], Path]
    """The file in which Refold's hooks are set, or would be."""
    install: Callable[[str], str]
    """The text of that file with the hooks of this version."""
    uninstall: Callable[[str], str]
    """The text without any hook of Refold."""
    count: Callable[[str], int]
    """How many hooks of Refold it has."""
    note: str = ""
    """What the user must do so that they run."""
    shown: Callable[[str], str] = str
    """What is shown of the text, when the user is asked about a change."""


def command(agent: str) -> list[str]:
    """What an agent runs: this Python, so that no virtual environment need be active."""
    return [sys.executable, "-P", "-m", HOOK_MODULE, agent]


def _shell_command(agent: str) -> str:
    # Where Refold is gone, the agent hears nothing of it.
    return f"{shlex.join(command(agent))} 2>/dev/null || exit 0"


def agent_folder(variable: str, *below: str) -> Path:
    """The folder that a variable names, else this one of the user's home."""
    own = os.environ.get(variable, "")
    return Path(own).expanduser() if own else Path.home().joinpath(*below)


# Claude Code and Codex have the same form of hooks: events with groups, and handlers in them.


def _groups(agent: str) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """An event and the group that is added to it."""
    for event in _EVENTS:
        compaction = event == "SessionStart"
        timeout = _PATIENT if compaction else _QUICK
        if agent == "codex" and event == "SessionEnd":
            timeout = _CODEX_END
        handler: dict[str, JsonValue] = {
            "type": "command",
            "command": _shell_command(agent),
            "timeout": timeout,
        }
        if agent == "codex" and compaction:
            handler["additionalContextLimit"] = _CODEX_LIMIT
        group: dict[str, JsonValue] = {"matcher": "compact"} if compaction else {}
        yield event, {**group, "hooks": [handler]}


def _is_ours(handler: JsonValue) -> bool:
    text = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(text, str) and f"-m {HOOK_MODULE} " in text


def _handlers(hooks: JsonValue) -> Iterator[tuple[str, int, int, Handler]]:
    """Refold's handlers: their events, groups and places, the last ones first."""
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for index, group in reversed([*enumerate(groups if isinstance(groups, list) else ())]):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for place, handler in reversed([*enumerate(inner if isinstance(inner, list) else ())]):
                if isinstance(handler, dict) and _is_ours(handler):
                    yield event, index, place, handler


def _value(text: str) -> JsonValue:
    return cast("JsonValue", parse(text).plain()) if text.strip() else {}


def _json_hooks(text: str) -> JsonValue:
    value = _value(text)
    return value.get("hooks") if isinstance(value, dict) else None


def _is_empty(text: str, path: Sequence[str | int]) -> bool:
    value: Any = _value(text)
    for name in path:
        value = value[name]
    return not value


def _install_json(agent: str, text: str) -> str:
    wanted = dict(_groups(agent))
    present = [(event, dict(handler)) for event, _, _, handler in _handlers(_json_hooks(text))]
    if sorted(present, key=str) == sorted(
        ((event, handler) for event, group in wanted.items() for handler in _inner(group)), key=str
    ):
        return text
    text = _uninstall_json(text) if present else text
    text = text if text.strip() else "{}\n"
    for event, group in wanted.items():
        text = with_item(text, ["hooks", event], group)
    return text


def _inner(group: Handler) -> list[dict[str, JsonValue]]:
    return cast("list[dict[str, JsonValue]]", group["hooks"])


def _uninstall_json(text: str) -> str:
    for event, index, place, _ in [*_handlers(_json_hooks(text))]:
        group: list[str | int] = ["hooks", event, index]
        text = without(text, [*group, "hooks", place])
        # What is empty now was there for it.
        if _is_empty(text, [*group, "hooks"]):
            for last in (3, 2, 1):
                text = without(text, group[:last])
                if not _is_empty(text, group[: last - 1]):
                    break
    return text


def _count_json(text: str) -> int:
    return sum(1 for _ in _handlers(_json_hooks(text)))


def _codex_path() -> Path:
    """The file with the user's own hooks, if there is one: Codex complains of two."""
    folder = agent_folder("CODEX_HOME", ".codex")
    with suppress(OSError, UnicodeDecodeError):
        if HOOK_MODULE in (folder / "hooks.json").read_text(encoding="utf-8"):
            return folder / "hooks.json"  # installed before the user wrote others elsewhere
    try:
        config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        config = {}
    events = cast("dict[str, JsonValue]", config).get("hooks")
    inline = isinstance(events, dict) and any(name != "state" for name in events)
    return folder / ("config.toml" if inline else "hooks.json")


def _is_toml(text: str) -> bool:
    return not text.lstrip().startswith("{") and bool(text.strip())


def _install_codex(text: str) -> str:
    if not _is_toml(text):
        return _install_json("codex", text)
    lines = [_FIRST_LINE]
    for event, group in _groups("codex"):
        matcher = group.get("matcher")
        lines += [f"[[hooks.{event}]]", *([f'matcher = "{matcher}"'] if matcher else [])]
        for handler in _inner(group):
            lines.append(f"[[hooks.{event}.hooks]]")
            # Strings and numbers are spelled alike in both.
            lines += [f"{name} = {json.dumps(value)}" for name, value in handler.items()]
    end = "\r\n" if "\r\n" in text else "\n"
    block = end.join([*lines, _LAST_LINE, ""])
    if block in text:
        return text
    rest = _uninstall_codex(text)
    added = f"{rest}{'' if rest.endswith(end) else end}{end}{block}"
    if _count_toml(added) != len(_EVENTS) or _without_ours(_toml(added)) != _toml(rest):
        raise InvalidInput(
            "Hooks cannot be added to it without changing yours.",
            "Move its hooks to hooks.json in the same folder, and try again.",
        )
    return added


def _uninstall_codex(text: str) -> str:
    if not _is_toml(text):
        return _uninstall_json(text)
    start, last = text.find(_FIRST_LINE), text.find(_LAST_LINE)
    if 0 <= start < last:
        end = last + len(_LAST_LINE)
        line = text[end : end + 2]
        end += 2 if line == "\r\n" else line.startswith("\n")
        for blank in ("\r\n", "\n"):  # the empty line that was put before it
            if text[:start].endswith(blank * 2):
                start -= len(blank)
                break
        rest = text[:start] + text[end:]
    else:
        rest = text
    if _toml(rest) != _without_ours(_toml(text)):
        raise InvalidInput(
            "The lines of Refold in it were changed, or others stand between them.",
            f"Take out the tables with {HOOK_MODULE!r} by hand.",
        )
    return rest


def _without_ours(config: dict[str, Any]) -> dict[str, Any]:
    for event, index, place, _ in [*_handlers(config.get("hooks"))]:
        groups = config["hooks"][event]
        del groups[index]["hooks"][place]
        if not groups[index]["hooks"]:
            del groups[index]
        if not groups:
            del config["hooks"][event]
    if not config.get("hooks", True):
        del config["hooks"]
    return config


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"It is not TOML: {error}.", "Correct it and try again.") from error


def _count_toml(text: str) -> int:
    return sum(1 for _ in _handlers(_toml(text).get("hooks")))


def _count_codex(text: str) -> int:
    return _count_toml(text) if _is_toml(text) else _count_json(text)


def codex_reviewed() -> int:
    """How many of Refold's hooks the user has reviewed, as Codex wrote it down."""
    path = _codex_path()
    try:
        text = path.read_text(encoding="utf-8")
        config = (path.parent / "config.toml").read_text(encoding="utf-8")
        hooks = _toml(text).get("hooks") if _is_toml(text) else _json_hooks(text)
        states = _toml(config).get("hooks", {}).get("state", {})
    except (OSError, UnicodeDecodeError, InvalidInput):
        return 0
    snake = {
        "SessionStart": "session_start",
        "UserPromptSubmit": "user_prompt_submit",
        "Stop": "stop",
        "SessionEnd": "session_end",
    }
    keys = {
        f"{path}:{snake.get(event)}:{index}:{place}" for event, index, place, _ in _handlers(hooks)
    }
    return sum(bool(state.get("trusted_hash")) for key, state in states.items() if key in keys)


# opencode loads plugins from a folder.


def opencode_path() -> Path:
    """The file of Refold's plugin."""
    own = os.environ.get("OPENCODE_CONFIG_DIR", "")
    folder = Path(own) if own else agent_folder("XDG_CONFIG_HOME", ".config") / "opencode"
    return folder / "plugins" / "refold.js"


def plugin_text(text: str) -> str:
    """The plugin of this version; of the one that is there, it keeps whether it adds recall."""
    if text.strip() and not text.startswith(_PLUGIN_LINE):
        raise InvalidInput("It is another program's plugin.", "Rename it and try again.")
    template = files("refold.cli.hooks").joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    plugin = template.replace('["COMMAND"]', json.dumps(command("opencode")))
    recall = _PLUGIN_RECALL.search(text)
    return _PLUGIN_RECALL.sub(lambda _: recall[0], plugin) if recall else plugin


def _uninstall_plugin(text: str) -> str:
    return "" if text.startswith(_PLUGIN_LINE) else text


_COPIES: Final = "to copy the session into your log"
_QUOTES: Final = "your words, names, values, changed files and errors"


def _hooks_purpose(title: str) -> str:
    return (
        f"{title} then runs Refold when you send a prompt, when a turn ends and when a session "
        f"ends, {_COPIES}; and after it compacts, to show its model {_QUOTES} again."
    )


AGENTS: Final = {
    "claude": HookedAgent(
        "claude",
        "Claude Code",
        "four hooks",
        _hooks_purpose("Claude Code"),
        lambda: agent_folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json",
        partial(_install_json, "claude"),
        _uninstall_json,
        _count_json,
        "Sessions that are open take them up at their next start.",
    ),
    "codex": HookedAgent(
        "codex",
        "Codex",
        "four hooks",
        _hooks_purpose("Codex"),
        _codex_path,
        _install_codex,
        _uninstall_codex,
        _count_codex,
        "Codex runs no hook before you have reviewed it: start codex, enter /hooks, and trust the "
        "four of Refold. It asks again when a command changes. Refold never does this for you.",
    ),
    "opencode": HookedAgent(
        "opencode",
        "opencode",
        "a plugin",
        f"opencode then runs Refold when a turn ends, {_COPIES}; and before it compacts, to add "
        f"{_QUOTES} to the instructions for the summary.",
        opencode_path,
        plugin_text,
        _uninstall_plugin,
        lambda text: int(text.startswith(_PLUGIN_LINE)),
        "opencode loads it when it starts.",
    ),
}


def agent_for(name: str) -> HookedAgent:
    """The agent of a name. Raises InvalidInput where it has no hooks that Refold knows."""
    if name not in AGENTS:
        raise InvalidInput(
            f"Refold has no hooks for {name!r}.",
            f"Name {', '.join(AGENTS)}, or run another agent with refold wrap.",
        )
    return AGENTS[name]
