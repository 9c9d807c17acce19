"""How a command ends: its exit code and its error messages."""

import errno
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress

import typer

from refold.errors import RefoldError

FAILED = 1
INTERRUPTED = 130
READER_GONE = 141

_FIXES = {
    errno.ENOSPC: "Free some disk space and try again.",
    errno.EACCES: "Choose a path that this user may read or write.",
    errno.ENOENT: "Check the path.",
}


@contextmanager
def exit_on_error() -> Generator[None, None, None]:
    """Turn every error that is not a bug into a message and an exit code."""
    try:
        yield
    except RefoldError as error:
        raise failed(error.code, error.what, error.fix) from error
    except BrokenPipeError as error:
        raise typer.Exit(unwritten(error)) from error
    except OSError as error:
        raise _failed_file(error) from error
    except UnicodeError as error:
        raise failed("encoding", f"Some text is not UTF-8: {error}.") from error
    except KeyboardInterrupt as error:
        interrupted()
        raise typer.Exit(INTERRUPTED) from error


@contextmanager
def require_extra(extra: str) -> Generator[None, None, None]:
    """Report a missing package with the extra that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "refold").partition(".")[0] == "refold":
            raise
        raise failed(
            "not-installed",
            f"This command needs {error.name}, which is not installed.",
            f"pip install 'refold[{extra}]'",
        ) from error


def failed(code: str, what: str, fix: str = "Correct it and try again.") -> typer.Exit:
    """Print what happened and what to do; the exit to raise."""
    from refold.cli.chat.clean import cleaned  # noqa: PLC0415 - slow, and seldom needed

    # An error may quote a file, a server or a model, which must not control the terminal.
    typer.echo(cleaned(f"error[{code}]: {what}\n{fix}"), err=True)
    return typer.Exit(FAILED)


def unwritten(error: OSError) -> int:
    """Report that standard output cannot be written, unless its reader left; the exit code."""
    # Let the last flush at exit go nowhere instead of failing again.
    with suppress(OSError, ValueError, AttributeError):  # there may be no file, or no output
        output = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)
        os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    return _failed_file(error).exit_code


def interrupted() -> None:
    typer.echo("\nInterrupted.", err=True)  # on a line of its own after the terminal's ^C


def say_no_more() -> None:
    """Mute the complaints of interrupted objects when the process ends."""
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")


def _failed_file(error: OSError) -> typer.Exit:
    fix = _FIXES.get(error.errno or 0, "Check the path and try again.")
    where = f"{error.filename!r}: " if error.filename else ""
    return failed("file", f"{where}{error.strerror or error}.", fix)
