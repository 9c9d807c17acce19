"""Tests that want no settings but their own."""

import os
from pathlib import Path

import pytest

_OURS = ("REFOLD_", "CO_CLI_", "COPILOT_")


def leave_settings(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Forget what the environment sets, and look for files of settings in another home."""
    for name in [name for name in os.environ if name.upper().startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
