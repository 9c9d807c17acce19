"""The slash commands, one file each kind.

    line ─▶ run ─▶ a command ─▶ the conversation, and something to read

A command shows what it has to say and never adds to what the model sees.
"""

from refold.cli.chat.commands.dispatch import COMMANDS, completions, run
from refold.cli.chat.commands.output import Command

__all__ = ["COMMANDS", "Command", "completions", "run"]
