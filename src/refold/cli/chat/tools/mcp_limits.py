"""Which tools of an MCP server are offered to a model.

A server says by itself which tools it has, and may say something else each time. One tool whose
name a provider refuses, or a list that fills the context window, would end every turn of a chat.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool

from refold.cli.chat.clean import cleaned

MAX_TOOLS: Final = 200
MAX_TOOL_CHARS: Final = 32_000
MAX_CHARS: Final = 256_000
"""Characters of one tool's description and schema, and of all tools of a server."""
MAX_DEPTH: Final = 30
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What all providers take."""
_SHOWN: Final = 3

RESERVED: Final = frozenset(
    {
        *("recall_search", "recall_read", "recall_everywhere", "recall_read_in"),
        *("list_files", "read_file", "search_files"),
    }
)
"""The chat's own tools: no server may stand in for one of them."""


@dataclass
class Offer:
    """Of a server's tools, those that are offered, and why others are not."""

    tools: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, ToolsetTool[Any]])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """How many, by reason."""
    names: list[str] = field(default_factory=list[str])
    """Some of those left out."""

    @property
    def notice(self) -> str:
        """In one sentence, what was left out; empty if nothing was."""
        if not self.left_out:
            return ""
        why = "; ".join(f"{count} {reason}" for reason, count in sorted(self.left_out.items()))
        some = ", ".join(repr(cleaned(name)[:40]) for name in self.names[:_SHOWN])
        more = ", …" if self.left_out.total() > _SHOWN else ""
        return (
            f"{self.left_out.total():,} of its tools are left out ({why}): {some}{more}. "
            "If you need them, have the server offer fewer or smaller tools."
        )


def offer(tools: Mapping[str, ToolsetTool[Any]], taken: Collection[str] = ()) -> Offer:
    """Choose from a server's tools.

    Args:
        tools: What the server has, by the name that the model would call.
        taken: Names that are in use elsewhere.
    """
    found = Offer()
    total = 0
    for name, tool in tools.items():
        size = _size(tool.tool_def)
        why = _refused(name, size, taken)
        if not why and (len(found.tools) >= MAX_TOOLS or total + size > MAX_CHARS):
            why = f"beyond {MAX_TOOLS} tools or {MAX_CHARS:,} characters"
        if why:
            found.left_out[why] += 1
            if len(found.names) < _SHOWN:
                found.names.append(name)
            continue
        total += size
        found.tools[name] = _plain(tool)
    return found


def _refused(name: str, size: int, taken: Collection[str]) -> str:
    if not _NAME.fullmatch(name):
        return "with a name that providers refuse"
    if name in RESERVED or name in taken:
        return "with a name that is taken"
    if size > MAX_TOOL_CHARS:
        return f"of more than {MAX_TOOL_CHARS:,} characters or {MAX_DEPTH} levels"
    return ""


def _size(tool: ToolDefinition) -> int:
    """How many characters the model would be shown; too many where that cannot be told."""
    if _depth(tool.parameters_json_schema) > MAX_DEPTH:
        return MAX_TOOL_CHARS + 1
    schema = json.dumps(tool.parameters_json_schema)
    return len(tool.name) + len(tool.description or "") + len(schema)


def _depth(value: object) -> int:
    """How deep a value is nested. It is followed level by level, since it may be deep."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        depth, level = depth + 1, inner
    return depth


def _plain(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    """The tool, described without what a terminal would obey."""
    described = tool.tool_def.description
    if described is None or cleaned(described) == described:
        return tool
    return replace(tool, tool_def=replace(tool.tool_def, description=cleaned(described)))
