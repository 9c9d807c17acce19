"""One thing that was looked at."""

from pathlib import Path
from typing import Literal, NamedTuple

Verdict = Literal["ok", "warning", "problem"]
"""A warning costs something; with a problem, something does not work."""


class Row(NamedTuple):
    """What was found, and what to do about it."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""
    """A command or a sentence; empty when all is well."""


def ok(name: str, found: str) -> Row:
    """All is well."""
    return Row(name, "ok", found)


def warning(name: str, found: str, remedy: str) -> Row:
    """It works, at a price."""
    return Row(name, "warning", found, remedy)


def problem(name: str, found: str, remedy: str) -> Row:
    """It does not work."""
    return Row(name, "problem", found, remedy)


def short(path: Path) -> str:
    """A path as people read it: from their home on."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
