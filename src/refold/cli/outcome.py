"""How a command ends: its exit code and its error messages."""

import json
import os
import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO, cast

import typer

from refold.errors import InvalidInput, RefoldError

FAILED = 1
USAGE = 2
INTERRUPTED = 130
READER_GONE = 141


class Failure(typer.Exit):
    """Ends a command whose error was printed; it carries the error for other forms of output."""

    def __init__(self, code: str, what: str, fix: str, exit_code: int = FAILED) -> None:
        super().__init__(exit_code)
        self.code = code
        self.what = what
        self.fix = fix


class WrongUsage(InvalidInput):
    """What the command line itself has wrong, whatever the state of files and servers."""

    def __init__(self, refusal: InvalidInput) -> None:
        super().__init__(refusal.what, refusal.fix)
        self.refusal = refusal


@contextmanager
def wrong_usage() -> Generator[None]:
    """Count input refused here as wrong usage: for checks of the command line alone."""
    try:
        yield
    except InvalidInput as error:
        raise WrongUsage(error) from error


@contextmanager
def exit_on_error() -> Generator[None, None, None]:
    """Turn every error that is not a bug into a message and an exit code."""
    try:
        yield
    except WrongUsage as error:
        raise failed(error.refusal.code, error.what, error.fix, USAGE) from error
    except RefoldError as error:
        raise failed(error.code, error.what, error.fix) from error
    except BrokenPipeError as error:
        raise typer.Exit(unwritten(error)) from error
    except OSError as error:
        raise _failed_file(error) from error
    except UnicodeError as error:
        raise failed("encoding", f"Some text is not UTF-8: {error}.") from error
    except KeyboardInterrupt as error:
        raise interrupted() from error


@contextmanager
def json_on_error(session: str | None, model: str | None) -> Generator[None, None, None]:
    """Also print an error as the last JSON line of a chat's turn, which it has ended early."""
    try:
        yield
    except Failure as failure:
        write_json_failure(failure.code, failure.what, failure.fix, session, model)
        raise
    except typer.Exit:  # standard output takes no more
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        write_json_failure("bug", what, "Report this as a bug.", session, model)
        raise


def write_json_failure(
    code: str, what: str, fix: str, session: str | None = None, model: str | None = None
) -> None:
    """Print what `refold chat -p --json` prints after a turn, for one that never began."""
    value: dict[str, object] = {
        "session": session,
        "model": model,
        "ended": code if code == "interrupted" else "failed",
        "text": "",
        "at_limit": False,
        "tools": [],
        "context": {"tokens": None, "window": None},
        "cost": None,
        "saved": None,
    }
    write_json_error(code, what, fix, value)


def write_json_error(
    code: str, what: str, fix: str, fields: Mapping[str, object] | None = None
) -> None:
    """Print an error as one JSON object, for a command with --json."""
    value = {**(fields or {}), "error": {"code": code, "what": what, "fix": fix}}
    with suppress(OSError, ValueError):  # its reader may be gone
        typer.echo(json.dumps(value))


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


def failed(
    code: str, what: str, fix: str = "Correct it and try again.", exit_code: int = FAILED
) -> Failure:
    """Print what happened and what to do; the exit to raise."""
    from refold.cli.chat.clean import cleaned  # noqa: PLC0415 - slow, and seldom needed

    # An error may quote a file, a server or a model, which must not control the terminal.
    with suppress(OSError):  # the same disk may be full for this, too
        typer.echo(cleaned(f"error[{code}]: {what}\n{fix}"), err=True)
    return Failure(code, what, fix, exit_code)


def unwritten(error: OSError) -> int:
    """Report that standard output cannot be written, unless its reader left; the exit code."""
    _discard(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    return _failed_file(error).exit_code


def last_flush(code: int) -> int:
    """Write what is still buffered, so that Python does not fail to at exit; the exit code."""
    for stream in cast("tuple[TextIO | None, ...]", (sys.stdout, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except ValueError:  # it is closed
            pass
        except OSError as error:
            _discard(stream)
            if code == 0:
                code = unwritten(error)
    return code


def _discard(stream: TextIO | None) -> None:
    """Let what is written from now on go nowhere, the last flush at exit included."""
    with suppress(OSError, ValueError, AttributeError):  # there may be no file, or no output
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, cast("TextIO", stream).fileno())
        os.close(nowhere)


def interrupted() -> Failure:
    """Print that the command was interrupted; the exit to raise."""
    typer.echo("\nInterrupted.", err=True)  # on a line of its own after the terminal's ^C
    return Failure("interrupted", "Interrupted.", "Run the command again.", INTERRUPTED)


def say_no_more() -> None:
    """Mute the complaints of interrupted objects when the process ends."""
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")


def _failed_file(error: OSError) -> Failure:
    from refold.user_files import file_fix  # noqa: PLC0415 - slow, and seldom needed

    where = f"{error.filename!r}: " if error.filename else ""
    return failed("file", f"{where}{error.strerror or error}.", file_fix(error))
