"""The examples of a page: its fenced blocks, and what their commands are expected to print."""

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PLAIN = {"PYTHONUTF8": "1", "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
"""The environment of commands, so that they print the same everywhere."""

BLOCK = re.compile(
    r"^(?P<skip><!-- not executed: \S[^\n]*-->\n+)?"
    r"```(?P<language>python|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One example."""

    page: Path
    line: int
    language: str
    text: str


class Step(NamedTuple):
    """A command, and what it prints: `…` is any text, and on a line of its own any lines."""

    command: str
    expected: str


def blocks_of(page: Path, *, marked: bool = False) -> list[Block]:
    """The blocks of a page, in order.

    Args:
        page: A Markdown file.
        marked: Also those that are marked as not executed.
    """
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start("text")), found["language"], found["text"])
        for found in BLOCK.finditer(text)
        if marked or not found["skip"]
    ]


def steps_of(block: Block) -> Iterator[Step]:
    """The commands of a console block."""
    for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = f"{command}\n{more}"
        yield Step(command, expected)


def as_pattern(expected: str) -> re.Pattern[str]:
    """What matches the output that a page expects."""
    pattern = ""
    for line in expected.strip().splitlines():
        any_lines = line.strip() == "…"
        pattern += (
            r"(?:.*\n)*" if any_lines else re.escape(line.rstrip()).replace("…", ".*") + r"\n"
        )
    return re.compile(pattern)


def tidied(printed: str) -> str:
    """What was printed, without blanks at its ends and at the ends of its lines."""
    return "".join(f"{line.rstrip()}\n" for line in printed.strip().splitlines())


def run_page(page: Path, folder: Path, programs: Callable[[], Path]) -> None:
    """Run the blocks of a page in order, in one namespace and one folder, the current one.

    Args:
        page: A Markdown file.
        folder: Where commands run.
        programs: Where `refold` is; asked for when a command needs it.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block in blocks_of(page):
            if block.language == "python":
                _run_python(block, namespace, runner)
            else:
                _run_console(block, folder, programs())


def _run_python(block: Block, namespace: dict[str, object], runner: asyncio.Runner) -> None:
    padded = "\n" * block.line + block.text  # a traceback then shows the page's own line
    code = compile(padded, str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, namespace)  # noqa: S307 (our own pages; exec would drop the coroutine)
    if inspect.iscoroutine(result):
        runner.run(result)


def _run_console(block: Block, folder: Path, programs: Path) -> None:
    steps = [*steps_of(block)]
    ours = [step.command.startswith("refold ") for step in steps]
    if not any(ours):
        return
    if not all(ours):
        raise AssertionError(f"{block.page}:{block.line}: other commands beside refold's")
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    for command, expected in steps:
        done = subprocess.run(  # noqa: S603 - our own pages
            ["bash", "-c", command],  # noqa: S607 - as a reader's
            cwd=folder,
            env=os.environ | PLAIN | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        printed = tidied(done.stdout)
        if not as_pattern(expected).fullmatch(printed):
            where = f"{block.page}:{block.line}"
            raise AssertionError(f"{where}: {command}\nprinted:\n{printed}\nexpected:\n{expected}")
