"""What agents run for Refold's hooks: `python -m refold.cli.hooks.run AGENT`.

The agent waits for it, so it imports the standard library alone until there is work. It must never
break the agent: whatever fails, it ends with 0 and prints nothing; the reason is in a log file.

At the end of a turn it starts a process that brings the session's new messages into the log, and
does not wait for it. After a compaction it does that itself, and prints what the agent shows its
model: what was said before, quoted by code.
"""

import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from refold.cli.hooks import HOOK_MODULE
from refold.user_files import state_folder

WRAPPED: Final = "REFOLD_WRAPPED"
"""Set where `refold wrap` keeps the conversation: then hooks would keep it a second time."""
IMPORT: Final = "--import"
_MAX_INPUT: Final = 64 << 20
_PATIENCE: Final = 45.0
"""Seconds for an answer: less than the agent waits."""
_MAX_LOG: Final = 1 << 20
_MAX_WAIT: Final = 30.0
"""Seconds until a session that is being written is read nonetheless."""
_QUIET: Final = 2.0
"""A file that nobody wrote to for so many seconds is whole."""
_COMPACTION: Final = frozenset({("SessionStart", "compact"), ("compacting", "")})

Input = Mapping[str, Any]


def main() -> None:
    """Answer one call of a hook; always ends with 0."""
    try:
        arguments = sys.argv[1:]
        if arguments[:1] == [IMPORT]:
            _import(*arguments[1:])
        else:
            answer(arguments[0], json.loads(sys.stdin.buffer.read(_MAX_INPUT) or b"{}"))
    except BaseException as error:  # noqa: BLE001 - the agent must go on, whatever it is
        log_error(error)
    with suppress(BaseException):
        sys.stdout.flush()
    os._exit(0)  # nothing that is left, such as a thread, may hold the agent up


def answer(agent: str, call: Input) -> None:
    """Do what the event asks for."""
    if os.environ.get(WRAPPED) or call.get("agent_id"):  # a sub-agent's is part of another session
        return
    path, session = str(call.get("transcript_path") or ""), str(call.get("session_id") or "")
    event = str(call.get("hook_event_name") or ""), str(call.get("source") or "")
    if not path and agent != "opencode":
        return  # the agent keeps no transcript of this session
    with suppress(OSError):
        os.chdir(str(call.get("cwd") or "."))  # the store of this folder, if there is one
    if event in _COMPACTION:
        _end_after(_PATIENCE)
        from refold.cli.hooks.reminder import reminder  # noqa: PLC0415 - slow, and seldom needed

        text = reminder(agent, path, session)
        output: dict[str, object] = {"hookEventName": event[0], "additionalContext": text}
        if text:
            sys.stdout.write(json.dumps({"hookSpecificOutput": output}))
        return
    _start_import(agent, path, session)


def _end_after(seconds: float) -> None:
    """End in silence before the agent complains."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _start_import(agent: str, path: str, session: str) -> None:
    # It has no pipe of the agent's, which would wait for that to be closed.
    subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-P", "-m", HOOK_MODULE, IMPORT, agent, path, session],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _import(agent: str, path: str, session: str) -> None:
    """Bring what is new of a session into the log, once nobody writes to it."""
    with suppress(OSError, AttributeError):
        os.nice(10)
    with _turn(f"{agent} {path} {session}") as mine:
        if not mine:
            return  # another process waits for its turn to do the same
        whole = not path or _wait_until_quiet(Path(path))
        if path and not Path(path).exists():
            return  # nothing was said
        from refold.cli.hooks.reminder import import_session  # noqa: PLC0415 - slow

        import_session(agent, path, session, whole=whole)


def _wait_until_quiet(path: Path) -> bool:
    """Whether the file is whole; it is not where the agent keeps writing.

    At the first prompt there is none yet.
    """
    end = time.monotonic() + _MAX_WAIT
    while time.monotonic() < end:
        if path.exists() and time.time() - path.stat().st_mtime >= _QUIET:
            return True
        time.sleep(0.2)
    return False


@contextmanager
def _turn(name: str) -> Generator[bool]:
    """One process at a time works on a session, and one more waits; all others are not needed."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield True
        return
    path = state_folder() / "hooks" / "imports.lock"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Two bytes of one file are each session's: that of the one who waits, and that of the work.
    place = 2 * crc32(name.encode(errors="replace"))
    with path.open("ab") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            yield False
            return
        fcntl.lockf(file, fcntl.LOCK_EX, 1, place + 1)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)  # what is written from now on is the next one's
        yield True


def log_path() -> Path:
    """Where the errors of hooks are written."""
    return state_folder() / "hooks.log"


def log_error(error: BaseException) -> None:
    """Write down what went wrong; if that fails too, nobody is told."""
    with suppress(BaseException):
        path = log_path()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size > _MAX_LOG:
            path.replace(path.with_suffix(".log.1"))
        where = "".join(traceback.format_tb(error.__traceback__)[-3:]).rstrip()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with open(path, "a", encoding="utf-8", opener=_private) as file:
            file.write(f"{stamp} {type(error).__name__}: {error}\n{where}\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    main()
