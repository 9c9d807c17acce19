"""`refold hooks`: for coding agents whose traffic cannot go through the gateway."""

from typing import Final

HOOK_MODULE: Final = "refold.cli.hooks.run"
"""By which a command in an agent's settings is known to be Refold's."""
