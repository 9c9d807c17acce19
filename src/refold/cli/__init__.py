"""The terminal: the `refold` command."""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["main"]

_EXTRAS: Final[Mapping[str, str]] = {
    "chat": "chat",
    "demo": "chat",
    "keys": "serve",
    "serve": "serve",
    "worker": "cli,dbos",
}
"""What a command needs; every other one needs `cli`."""


def main() -> None:
    """Run the command; what it needs beside the library is imported only here."""
    try:
        _run()
    except KeyboardInterrupt:  # while it is imported, too
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(130)


def _run() -> None:
    if sys.platform == "win32":  # it has no file locks, signals and file descriptors as used here
        sys.stderr.write(
            "error[unsupported]: The refold command runs on Linux and macOS.\n"
            "On Windows, install it in WSL, with the coding agent: wsl --install\n"
        )
        sys.exit(1)
    try:
        from refold.cli.app import run  # noqa: PLC0415 - typer comes with an extra

        sys.exit(run())
    except ModuleNotFoundError as error:
        if (error.name or "refold").partition(".")[0] == "refold":
            raise
        sys.stderr.write(
            f"error[not-installed]: The refold command needs {error.name}, "
            f"which is not installed.\npip install 'refold[{_extra_for(sys.argv[1:])}]'\n"
        )
        sys.exit(1)


def _extra_for(words: Sequence[str]) -> str:
    command = next((word for word in words if not word.startswith("-")), "")
    return _EXTRAS.get(command, "cli")
