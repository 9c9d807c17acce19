"""The terminal, and the shell's completion."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from refold.cli.checks.row import Row, ok, warning

_NARROW = 60
_COMPLETIONS = {
    "bash": ".bash_completions/refold.sh",
    "zsh": ".zfunc/_refold",
    "fish": ".config/fish/completions/refold.fish",
}


def terminal(
    environ: Mapping[str, str] = os.environ, *, encoding: str | None = None
) -> Iterator[Row]:
    """Width, colours, characters; and whether the shell completes our commands."""
    yield _size(environ)
    yield _characters(encoding or sys.stdout.encoding)
    yield _completion(environ)


def _size(environ: Mapping[str, str]) -> Row:
    if not sys.stdout.isatty() and "COLUMNS" not in environ:
        return ok("terminal", "none: the output is read by a program")
    columns = shutil.get_terminal_size().columns
    kind = environ.get("TERM", "")
    if kind in ("", "dumb"):
        return warning(
            "terminal",
            "it says that it can neither move the cursor nor show colours: chats are plain",
            "export TERM=xterm-256color",
        )
    if columns < _NARROW:
        return warning("terminal", f"{columns} columns", "Make the window 80 columns wide.")
    colours = "no colours (NO_COLOR)" if environ.get("NO_COLOR") else "colours"
    within = ", in tmux" if environ.get("TMUX") else ""
    return ok("terminal", f"{kind}, {columns} columns, {colours}{within}")


def _characters(encoding: str) -> Row:
    if encoding.lower().replace("-", "") == "utf8":
        return ok("characters", "UTF-8")
    return warning(
        "characters",
        f"{encoding}: other scripts and lines of boxes cannot be shown",
        "export PYTHONUTF8=1 LANG=C.UTF-8",
    )


def _completion(environ: Mapping[str, str]) -> Row:
    shell = Path(environ.get("SHELL", "")).name
    file = _COMPLETIONS.get(shell)
    if file is None:
        return ok("completion", f"not known for {shell or 'this shell'}")
    if (Path.home() / file).exists():
        return ok("completion", f"installed for {shell}")
    return warning(
        "completion",
        f"not installed for {shell}",
        "refold --install-completion",
    )
