"""A search through files, made by a process that can be ended."""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from refold.cli.chat.tools import line_search
from refold.cli.chat.tools.shown_folder import Walked, shown, with_notes


class Search:
    """One search, and what it has found so far."""

    def __init__(self, pattern: str, *, ignore_case: bool, most: int, seconds: float) -> None:
        self._asked = {"pattern": pattern, "ignore_case": ignore_case, "most": most}
        self._most = most
        self._seconds = seconds
        self._found: list[tuple[int, int, str]] = []
        self._told: dict[str, bool] = {}

    async def through(self, files: Sequence[str], root: Path, walked: Walked) -> str:
        """What the files hold, named from the root on."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-IS",
            line_search.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._seconds):
                await self._listen(process, files)
        except (TimeoutError, ConnectionError):
            walked.late = True
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return self._text(files, root, walked)

    async def _listen(self, process: asyncio.subprocess.Process, files: Sequence[str]) -> None:
        assert process.stdin is not None  # noqa: S101 - it was asked for
        assert process.stdout is not None  # noqa: S101 - it was asked for
        process.stdin.write(json.dumps(self._asked | {"files": files}).encode())
        process.stdin.write_eof()
        async for line in process.stdout:
            value: object = json.loads(line)
            if isinstance(value, dict):
                self._told |= cast("dict[str, bool]", value)
            else:
                at, number, text = cast("list[Any]", value)
                self._found.append((at, number, text))

    def _text(self, files: Sequence[str], root: Path, walked: Walked) -> str:
        rows = [
            f"{shown(str(Path(files[at]).relative_to(root)))}:{number}: {text}"
            for at, number, text in self._found
        ]
        full = len(rows) >= self._most
        late = walked.late or not (full or "done" in self._told)
        left_out = {
            f"Only the first {len(rows)} matches are shown: narrow it with path or files.": full,
            "That is no regular expression, so it was looked for as it stands.": self._told.get(
                "literal"
            ),
            "Not all files were looked into: narrow it with path or files.": walked.crowded,
            "It took too long and was stopped: use a simpler pattern, or narrow it.": late,
        }
        none = "No match so far." if late else f"No match in {len(files):,} files."
        return with_notes("\n".join(rows) or none, [note for note, so in left_out.items() if so])
