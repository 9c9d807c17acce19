"""How a command ends: its exit code, and what it says of an error."""

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
def explained() -> Generator[None, None, None]:
    """Turn every error that is not a fault of the program into words and an exit code."""
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
def needing(extra: str) -> Generator[None, None, None]:
    """Say how to install what a command needs besides the others."""
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
    """Say what happened and what to do; the exit to raise."""
    from refold.cli.chat.clean import cleaned  # noqa: PLC0415 - slow, and seldom needed

    # An error may quote a file, a server or a model: none of them may write to the terminal.
    typer.echo(cleaned(f"error[{code}]: {what}\n{fix}"), err=True)
    return typer.Exit(FAILED)


def unwritten(error: OSError) -> int:
    """Standard output takes no more: say why, unless nobody reads it; the exit code."""
    _silence_output()
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    return _failed_file(error).exit_code


def interrupted() -> None:
    """Say so, on a line of its own after the terminal's ^C."""
    typer.echo("\nInterrupted.", err=True)


def say_no_more() -> None:
    """What was broken off as it began, or closed, would tell of it when the process ends."""
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")


def _failed_file(error: OSError) -> typer.Exit:
    fix = _FIXES.get(error.errno or 0, "Check the path and try again.")
    return failed("file", _sentence(error), fix)


def _sentence(error: OSError) -> str:
    where = f"{error.filename!r}: " if error.filename else ""
    return f"{where}{error.strerror or error}."


def _silence_output() -> None:
    """Nobody reads on: let the last flush at exit go nowhere instead of failing again."""
    with suppress(OSError, ValueError, AttributeError):  # there may be no file, or no output
        output = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)
        os.close(nowhere)
