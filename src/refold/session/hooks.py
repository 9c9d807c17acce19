"""Commands that run before a fold, as the settings say.

Each receives one JSON object on its standard input, with the fields that Claude Code and Copilot
give their hooks. It blocks the fold with exit code 2, or with a decision as JSON on its standard
output. Whatever else it does, the fold is made: it may fail, take too long, or print anything.
"""

import asyncio
import json
import logging
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from refold.errors import FoldNotMade
from refold.fold.compactor import MANUAL
from refold.fold.job import Job
from refold.log import wall_clock
from refold.view.profiles import CommandHook

_LOGGER: Final = logging.getLogger("refold.session")
_BLOCKED: Final = 2
"""The exit code of a command that blocks the fold."""
_MAX_OUTPUT: Final = 65_536  # bytes that are read; a command that prints more is not held up
_MAX_REASON: Final = 300


class _Output(NamedTuple):
    code: int
    out: bytes
    err: bytes


async def run_hooks(hooks: Sequence[CommandHook], job: Job) -> None:
    """Run the commands that are for this fold, one after the other.

    Raises FoldNotMade if one of them blocks the fold; those after it are not run.
    """
    trigger = "manual" if job.trigger == MANUAL else "auto"
    for hook in hooks:
        if hook.trigger not in ("", trigger):
            continue
        try:
            output = await _run(hook, _input(job, trigger))
        except TimeoutError:
            _LOGGER.warning("A preCompact hook took longer than %g seconds.", hook.timeout)
        except OSError as error:
            _LOGGER.warning("A preCompact hook could not be run: %s", error)
        else:
            if reason := _refusal(output):
                raise FoldNotMade(
                    f"A preCompact hook blocked the fold: {reason}",
                    "Nothing changed. The hook is in the setting hooks.pre_compact.",
                )
            if output.code:
                _LOGGER.warning("A preCompact hook ended with %d.", output.code)


def _input(job: Job, trigger: str) -> bytes:
    focus, now = job.focus or "", wall_clock().astimezone(UTC)
    fields = {
        "hook_event_name": "PreCompact",
        "session_id": job.session,
        "transcript_path": "",
        "custom_instructions": focus,
        # The same, with Copilot's names.
        "sessionId": job.session,
        "transcriptPath": "",
        "customInstructions": focus,
        "timestamp": _milliseconds(now),
        # The same in both.
        "cwd": str(Path.cwd()),
        "trigger": trigger,
        # Refold's own: what triggered the fold.
        "reason": job.trigger,
        "fold": str(job.fold),
    }
    return json.dumps(fields).encode()


def _milliseconds(now: datetime) -> int:
    return int(now.timestamp() * 1000)


async def _run(hook: CommandHook, given: bytes) -> _Output:
    process = await asyncio.create_subprocess_shell(
        hook.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - pipes, see above
    try:
        async with asyncio.timeout(hook.timeout):
            with suppress(BrokenPipeError, ConnectionResetError):  # it need not read its input
                process.stdin.write(given)
                await process.stdin.drain()
            process.stdin.close()
            out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            return _Output(await process.wait(), out, err)
    finally:
        # With everything that it started: a canceled session waits for none of it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _read(stream: asyncio.StreamReader) -> bytes:
    """The beginning of its output; the rest is read and dropped."""
    kept = b""
    while data := await stream.read(_MAX_OUTPUT):
        kept += data[: _MAX_OUTPUT - len(kept)]
    return kept


def _refusal(output: _Output) -> str:
    """Why the fold is blocked; empty if it is not."""
    if output.code == _BLOCKED:
        return _sentence(output.err.decode(errors="replace"))
    if output.code:
        return ""
    try:
        decision = json.loads(output.out)
    except (ValueError, RecursionError):  # no decision: it printed something for people
        return ""
    match decision:
        case {"decision": "block" | "deny"}:
            return _sentence(decision.get("reason"))
        case {"continue": False}:
            return _sentence(decision.get("stopReason"))
        case _:
            return ""


def _sentence(reason: object) -> str:
    text = " ".join(reason.split())[:_MAX_REASON].rstrip(".") if isinstance(reason, str) else ""
    return f"{text or 'it gives no reason'}."
