"""Recipes of docs/contributing as steps, and how a copy of the tree is taken through them.

A page is followed literally, block by block:

- a python block that begins with `# file: PATH` is a new file;
- a diff block that begins with `--- PATH` changes a file: each hunk, parted from the next by `@@`,
  has lines to keep, to add (`+`) and to take out (`-`), and must fit in exactly one place;
- a console block holds commands, which must succeed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r"^```(?P<language>python|diff|console)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


class NewFile(NamedTuple):
    """A file to be written."""

    path: str
    text: str


class Changed(NamedTuple):
    """A file to be changed."""

    path: str
    hunks: tuple[str, ...]


class Command(NamedTuple):
    """A command to be run."""

    line: str


Step = NewFile | Changed | Command

_OURS = ("PYTEST_", "MAKE", "MFLAGS", "VENV")


def steps_of(page: Path) -> list[Step]:
    """The steps of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [step for block in BLOCK.finditer(text) for step in _steps(*block.groups())]


def _steps(language: str, text: str) -> Iterator[Step]:
    first, _, rest = text.partition("\n")
    if language == "console":
        yield from (Command(line.removeprefix("$ ")) for line in text.splitlines())
    elif language == "diff":
        yield Changed(first.removeprefix("--- "), tuple(rest.split("@@\n")))
    else:
        yield NewFile(first.removeprefix("# file: "), rest)


def edit(tree: Path, step: NewFile | Changed) -> None:
    """Write or change the file of a step."""
    file = tree / step.path
    if isinstance(step, NewFile):
        assert not file.exists(), f"{step.path} is there already"
        file.write_text(step.text, encoding="utf-8")
        return
    text = file.read_text(encoding="utf-8")
    for hunk in step.hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, f"{step.path} has {text.count(old)} places for:\n{old}"
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def failing(tree: Path, command: Command) -> str:
    """What a command says when it fails; nothing when it succeeds."""
    (tree / ".venv").exists() or (tree / ".venv").symlink_to(sys.prefix)
    ours = {
        "PYTHONPATH": str(tree / "src"),  # before the installed one
        "HYPOTHESIS_PROFILE": "quick",
        "WORKERS": "0",
    }
    # Not what we run under: a contributor's shell knows nothing of our pytest, nor of our make.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    done = subprocess.run(
        ["bash", "-c", command.line],
        cwd=tree,
        env=kept | ours,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return f"$ {command.line}\n{done.stdout}" if done.returncode else ""
