"""co-cli's history functions under their own names, for Pydantic AI and for one's own loop."""

from refold.integrations.co_cli import history
from refold.integrations.co_cli import loop as commands
from refold.integrations.co_cli.history import (
    configured,
    summarize_messages,
    truncate_history_window,
    truncate_tool_returns,
)
from refold.integrations.co_cli.loop import (
    COMMANDS,
    CommandContext,
    TurnResult,
    restore_history,
    run_command,
    run_turn,
)

# As co-cli spells them.
_cmd_clear = commands.cmd_clear
_cmd_compact = commands.cmd_compact
_cmd_history = commands.cmd_history
_content_length = history.content_length
_find_first_run_end = history.find_first_run_end
_patch_dangling_tool_calls = history.patch_dangling_tool_calls
_static_marker = history.static_marker

__all__ = [
    "COMMANDS",
    "CommandContext",
    "TurnResult",
    "_cmd_clear",
    "_cmd_compact",
    "_cmd_history",
    "_content_length",
    "_find_first_run_end",
    "_patch_dangling_tool_calls",
    "_static_marker",
    "configured",
    "restore_history",
    "run_command",
    "run_turn",
    "summarize_messages",
    "truncate_history_window",
    "truncate_tool_returns",
]
