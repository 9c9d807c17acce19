"""The terminal: the `refold` command."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; what it needs beside the library is imported only here."""
    try:
        _run()
    except KeyboardInterrupt:  # while it is imported, too
        sys.stderr.write("\nInterrupted.\n")
        sys.exit(130)


def _run() -> None:
    try:
        from refold.cli.app import run  # noqa: PLC0415 - typer comes with an extra

        sys.exit(run())
    except ModuleNotFoundError as error:
        if (error.name or "refold").partition(".")[0] == "refold":
            raise
        sys.stderr.write(
            f"error[not-installed]: The refold command needs {error.name}, "
            "which is not installed.\npip install 'refold[cli]'\n"
        )
        sys.exit(1)
