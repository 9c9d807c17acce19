"""The examples of a page: its fenced blocks, and what their commands are expected to print."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
