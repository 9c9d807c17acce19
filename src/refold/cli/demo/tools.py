"""The tools of the demo: they read the files of a small made-up project that comes with it."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from pydantic_ai import FunctionToolset


def demo_tools() -> FunctionToolset[Any]:
    """Tools that list, read and search the demo's project, and change nothing."""
    return FunctionToolset([list_files, read_file, search_files], id="refold-demo")


def list_files() -> str:
    """List the files of the project."""
    return "\n".join(f"{path}  {len(text):,} chars" for path, text in _project())


def read_file(path: str) -> str:
    """Read a file of the project."""
    found = dict(_project())
    wanted = path.strip().removeprefix("./")
    if wanted not in found:
        return f"There is no file {path!r}. There are: {', '.join(found)}."
    return found[wanted]


def search_files(text: str) -> str:
    """Find the lines of the project that hold a text."""
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, content in _project()
        for number, line in enumerate(content.splitlines(), 1)
        if text in line
    ]
    return "\n".join(found) or f"No line holds {text!r}."


def _project() -> list[tuple[str, str]]:
    return sorted(_within(files("refold.cli.demo") / "project", ""))


def _within(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _within(one, f"{path}{one.name}/")
        else:
            yield f"{path}{one.name}", one.read_text("utf-8")
