"""Searches files for a pattern, as a process of its own.

A pattern can take years to match, and then only the end of its process stops it. So it runs in one
that can be killed. Run by its path, it reads the request as JSON from standard input and prints
what it finds as JSON lines. It needs only the standard library.
"""

import codecs
import errno
import io
import json
import os
import re
import stat
import sys
from collections.abc import Generator, Iterator
from typing import Any

HEAD = 8_192  # bytes by which text is distinguished from other files
LONGEST = 2_000  # characters of a line that are shown
LARGEST = 64_000_000  # bytes of a file that is searched
WHOLE = 16_000_000  # characters of a line that are searched
_LONG = 10_000  # characters of a line that waits until the others are searched: it may take long
_SHOWN = 240
_MEMORY = 1 << 30
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def opened(path: str) -> io.BufferedReader | None:
    """Open a regular file; None if it is something else. No link is followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    number = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        return None
    return os.fdopen(number, "rb")


def encoding_of(head: bytes) -> str | None:
    """The encoding of a text that begins so; None if it is no text."""
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if marked or b"\0" in head:
        return marked
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def lines_of(
    file: io.BufferedReader, encoding: str, longest: int = LONGEST
) -> Generator[tuple[str, bool], None, None]:
    """The lines without their ends, cut to a length, and whether each was cut."""
    with io.TextIOWrapper(file, encoding, errors="replace") as text:
        while line := text.readline(longest + 1):
            more = line
            while more and not more.endswith("\n"):
                more = text.readline(1 << 16)
            bare = line.removesuffix("\n")
            yield bare[:longest], len(bare) > longest


def _compile(pattern: str, *, ignore_case: bool) -> tuple[re.Pattern[str], bool]:
    """The pattern, and whether it is meant literally because it is no regular expression."""
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    try:
        return re.compile(pattern, flags), False
    except (re.error, RecursionError, OverflowError):
        return re.compile(re.escape(pattern), flags), True


class _Skipped(Exception):
    """Why a file is not searched."""


def _lines(path: str, longest: int) -> Iterator[tuple[int, str, bool]]:
    file = opened(path)
    if file is None:
        raise _Skipped("special")
    with file:
        encoding = encoding_of(file.peek(HEAD)[:HEAD])
        if encoding is None:
            raise _Skipped("binary")
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise _Skipped("large")
        for number, (line, cut) in enumerate(lines_of(file, encoding, longest), 1):
            yield number, line, cut


class _Search:
    """Searches all lines of the files but the long ones first, then the long ones."""

    def __init__(self, pattern: re.Pattern[str], max_matches: int) -> None:
        self._pattern = pattern
        self._left = max_matches

    def through(self, files: list[str]) -> bool:
        """Print matches and skipped files; whether all files were searched."""
        later = [nth for nth, path in enumerate(files) if self._left and self._short(nth, path)]
        for nth in later:
            if self._left:
                self._long(nth, files[nth])
        return self._left > 0

    def _short(self, nth: int, path: str) -> bool:
        long = False
        try:
            for number, line, cut in _lines(path, _LONG):
                long = long or cut
                if not cut and not self._look(nth, number, line):
                    break
        except _Skipped as skipped:
            _print({"skipped": str(skipped)})
        except (OSError, UnicodeError) as error:
            link = isinstance(error, OSError) and error.errno == errno.ELOOP
            _print({"skipped": "link" if link else "unreadable"})
        return long

    def _long(self, nth: int, path: str) -> None:
        try:
            for number, line, cut in _lines(path, WHOLE):
                if len(line) <= _LONG:
                    continue
                if not self._look(nth, number, line):
                    break
                if cut:
                    _print({"skipped": "end"})
        except (_Skipped, OSError, UnicodeError):
            _print({"skipped": "unreadable"})

    def _look(self, nth: int, number: int, line: str) -> int:
        if match := self._pattern.search(line):
            _print([nth, number, _around(line, match.start())])
            self._left -= 1
        return self._left


def _around(line: str, index: int) -> str:
    begin = max(0, min(index - _SHOWN // 3, len(line) - _SHOWN))
    part = line[begin : begin + _SHOWN].strip()
    return f"{'…' if begin else ''}{part}{'…' if begin + _SHOWN < len(line) else ''}"


def _limit_memory() -> None:
    try:
        import resource  # noqa: PLC0415 - not on every system

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, OSError, ValueError):
        return


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    _limit_memory()
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    pattern, literal = _compile(request["pattern"], ignore_case=request["ignore_case"])
    _print({"literal": literal})
    if _Search(pattern, request["most"]).through(request["files"]):
        _print({"done": True})


if __name__ == "__main__":
    main()
