"""What a model sees of a folder: bounded, read-only, nothing outside, nothing that Git ignores."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.models.test import TestModel

from refold.cli.chat.tools import folder as gitignore
from refold.cli.chat.tools import line_search
from refold.cli.chat.tools.files import Limits, file_tools

SECRET = "what lies outside"  # noqa: S105 - what must never be seen


def call(folder: Path, tool: str, limits: Limits | None = None, **arguments: Any) -> str:
    """What a tool answers."""
    return asked(file_tools(folder, limits or Limits()), tool, **arguments)


def asked(toolset: FunctionToolset[Any], tool: str, **arguments: Any) -> str:
    function: Any = toolset.tools[tool].function
    answer = function(**arguments)
    return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer


def listed(folder: Path, **arguments: Any) -> list[str]:
    return [row.split("  ")[0] for row in call(folder, "list_files", **arguments).splitlines()]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "outside.txt").write_text(SECRET)
    top = tmp_path / "top"
    (top / "src" / "deep" / "deeper" / "deepest").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / ".git" / "config").write_text("token")
    (top / "notes.md").write_text("one\ntwo\nthree\n")
    (top / "src" / "main.py").write_text("def main():\n    return 'a parcel'\n")
    (top / "src" / "deep" / "deeper" / "deepest" / "end.py").write_text("parcel = 1\n")
    (top / ".gitignore").write_text("*.log\n/secret/\n")
    (top / "secret").mkdir()
    (top / "secret" / "key.txt").write_text("a parcel of keys")
    (top / "run.log").write_text("a parcel of lines")
    return top


def test_a_folder_is_listed_level_by_level(folder):
    assert listed(folder) == [
        ".gitignore",
        "notes.md",
        "src/",
        "src/deep/",
        "src/main.py",
        "src/deep/deeper/",
        "[Deeper folders were not looked into: raise depth, or list one of them.]",
    ]
    assert listed(folder, path="src/deep/deeper") == [
        "src/deep/deeper/deepest/",
        "src/deep/deeper/deepest/end.py",
    ]
    python = ["src/main.py", "src/deep/deeper/deepest/end.py"]
    assert listed(folder, pattern="*.py", depth=9) == python
    assert listed(folder, pattern="src/**/*.py", depth=9) == python
    assert listed(folder, path="src", pattern="./deep/**/*.py", depth=9) == python[1:]
    assert listed(folder, pattern="*.rs") == ["Nothing here matches '*.rs'.", ANY]


ANY = "[Deeper folders were not looked into: raise depth, or list one of them.]"


def test_a_file_is_read_by_the_page(folder):
    assert call(folder, "read_file", path="notes.md") == (
        "[notes.md, lines 1 to 3 of 3]\none\ntwo\nthree"
    )
    page = call(folder, "read_file", path="notes.md", first_line=2, lines=1)
    assert page == (
        "[notes.md, lines 2 to 2]\ntwo\n"
        "[There is more: read_file('notes.md', first_line=3) goes on.]"
    )
    assert "has 3 lines: there is no line 9" in call(
        folder, "read_file", path="notes.md", first_line=9
    )


def test_lines_are_found(folder):
    assert call(folder, "search_files", pattern="PARCEL") == (
        "src/main.py:2: return 'a parcel'\nsrc/deep/deeper/deepest/end.py:1: parcel = 1"
    )
    assert "No match in 4 files" in call(
        folder, "search_files", pattern="PARCEL", ignore_case=False
    )
    assert call(folder, "search_files", pattern="t(wo|hree)", path="notes.md").count("\n") == 1
    assert "main.py" not in call(folder, "search_files", pattern="parcel", files="end.*")
    unclosed = call(folder, "search_files", pattern="main(")
    assert "src/main.py:1" in unclosed
    assert "no regular expression" in unclosed
    assert "empty" in call(folder, "search_files", pattern="")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../outside.txt", "outside the folder"),
        ("/etc/passwd", "outside the folder"),
        ("/no/such/file", "outside the folder"),
        ("src/../../outside.txt", "outside the folder"),
        ("link", "outside the folder"),
        ("folder-link/outside.txt", "outside the folder"),
        ("run.log", "Git is told to ignore it"),
        ("secret/key.txt", "Git is told to ignore it"),
        ("secret-link", "Git is told to ignore it"),
        (".git/config", "Git is told to ignore it"),
        (".GIT/config", "nothing at"),
        ("nothing.md", "list_files shows what there is"),
        ("loop", "cannot be read"),
        ("a\0b", "cannot be read"),
        ("x" * 5_000, "cannot be read"),
        ("pipe", "no regular file"),
        ("src", "is a folder: list_files lists it"),
        ("bytes.bin", "binary file of 300 B"),
        ("empty.txt", "is empty"),
    ],
)
def test_what_is_not_shown_is_said(folder, path, said):
    (folder / "link").symlink_to("../outside.txt")
    (folder / "folder-link").symlink_to("..")
    (folder / "secret-link").symlink_to("secret/key.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "bytes.bin").write_bytes(b"\x7fELF\0" * 60)
    (folder / "empty.txt").touch()
    os.mkfifo(folder / "pipe")
    answer = call(folder, "read_file", path=path)
    assert said in answer
    assert SECRET not in answer
    seen = call(folder, "list_files", depth=9) + call(folder, "search_files", pattern=".")
    assert SECRET not in seen
    assert "link" not in seen
    assert "pipe" not in seen


def test_a_link_within_the_folder_is_read(folder):
    (folder / "also.md").symlink_to("notes.md")
    assert "three" in call(folder, "read_file", path="also.md")
    assert "also.md" in listed(folder)


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("grün\n".encode(), "grün"),
        ("grün\n".encode("utf-8-sig"), "grün"),
        ("grün\n".encode("latin-1"), "grün"),
        ("grün\n".encode("utf-16"), "grün"),
        ("grün\n".encode("utf-32"), "grün"),
        (b"\xff\xfeg\x00\xd8", "g"),
        (b"ok\n" * 4_000 + b"\xff\x81", "ok"),
        (b"a\r\nb\r\n", "a\nb"),
        ("ü".encode() * 5_000, "ü"),
    ],
)
def test_any_encoding_survives(folder, raw, seen):
    (folder / "text.txt").write_bytes(raw)
    answer = call(folder, "read_file", path="text.txt")
    assert seen in answer
    answer.encode()
    assert "text.txt:1" in call(folder, "search_files", pattern=seen[0], path="text.txt")


def test_everything_is_bounded(folder):
    small = Limits(entries=2, lines=10, characters=60, matches=3, files=2, seconds=5.0)
    (folder / "long.txt").write_text("word\n" * 100 + "x" * 100_000)
    assert "Only the first 2 are listed" in call(folder, "list_files", small)
    page = call(folder, "read_file", small, path="long.txt", lines=99)
    assert page.count("word") == 10
    assert "first_line=11" in page
    wide = Limits(characters=20)
    assert "first_line=5" in call(folder, "read_file", wide, path="long.txt")
    cut = call(folder, "read_file", path="long.txt", first_line=101)
    assert len(cut) < 2_200
    assert "cut to 2,000 characters" in cut
    found = call(folder, "search_files", small, pattern="word", path="long.txt")
    assert found.count("word") == 3
    assert "Only the first 3 matches" in found
    assert "Not all files" in call(folder, "search_files", small, pattern="end")
    assert len(call(folder, "search_files", pattern="x+", path="long.txt")) < 400


@pytest.mark.parametrize("before", [1_990, 2_000, 9_990, 10_000, 70_000, 3_000_000])
def test_a_long_line_is_searched_whole(folder, before):
    (folder / "long.json").write_text(f"short needle\n{'x' * before} needle {'y' * 500}\nneedle\n")
    found = call(folder, "search_files", pattern="needle y", path="long.json")
    assert found.startswith("long.json:2: …x")
    assert " needle y" in found
    assert found.endswith("y…")
    assert len(found) < 300
    every = call(folder, "search_files", pattern="needle", path="long.json").splitlines()
    assert [row.split(": ")[0] for row in every] == [f"long.json:{nth}" for nth in (1, 2, 3)]
    assert "long.json:2" in call(folder, "search_files", pattern="^x+ needle y+$")


def test_a_line_that_takes_long_does_not_keep_others_from_being_found(folder):
    (folder / "a.js").write_text("a" * 40_000 + "\n")
    found = call(folder, "search_files", Limits(seconds=2.0), pattern="(a+)+ b|parcel")
    assert "src/main.py:2" in found
    assert "It took too long" in found


def test_what_is_not_searched_is_said(folder, monkeypatch):
    for name in ("one.bin", "two.bin"):
        (folder / name).write_bytes(b"\0needle")
    with (folder / "large.txt").open("wb") as file:
        file.write(b"needle\n" * line_search.HEAD)
        file.truncate(line_search.LARGEST + 1)
    (folder / "also.md").symlink_to("notes.md")
    assert call(folder, "search_files", pattern="needle") == (
        "No match in 4 files.\n"
        "[4 files were not searched: 2 binary, 1 larger than 64 MB, 1 behind a link.]"
    )
    assert call(folder, "search_files", pattern="needle", path="one.bin") == (
        "No match in 0 files.\n[1 file was not searched: 1 binary.]"
    )
    assert call(folder, "search_files", pattern="one", path="notes.md") == "notes.md:1: one"

    looked = os.scandir

    def scandir(path):
        if path.name == "deep":
            raise PermissionError
        return looked(path)

    monkeypatch.setattr(os, "scandir", scandir)
    unread = "[Folders that could not be read: 1.]"
    assert unread in call(folder, "search_files", pattern="needle", path="src")
    assert unread in call(folder, "list_files", path="src")


def test_the_end_of_a_line_that_is_not_searched_is_said(folder):
    text = b"x" * line_search.WHOLE + b"needle\nneedle\n"
    (folder / "huge.json").write_bytes(text)
    assert call(folder, "search_files", pattern="needle", path="huge.json") == (
        "huge.json:2: needle\n"
        "[Of very long lines (1) only the first 16,000,000 characters were searched.]"
    )


def test_nested_folders_are_looked_at_once(folder, monkeypatch):
    deep = 300
    folder.joinpath(*["d"] * deep).mkdir(parents=True)
    taken: list[str] = []
    known = gitignore.as_bytes
    monkeypatch.setattr(gitignore, "as_bytes", lambda name: taken.append(name) or known(name))
    assert call(folder, "search_files", pattern="two") == "notes.md:2: two"
    assert deep < len(taken) < 4 * deep


@pytest.mark.parametrize("pattern", ["a/**/b/**", "**/d/**/q/**", "/d/**/x/**/y", "**/d/d/d/e"])
def test_a_pattern_takes_time_as_a_path_is_long(monkeypatch, pattern):
    taken: list[str] = []
    known = gitignore.segment
    monkeypatch.setattr(gitignore, "segment", lambda one: taken.append(one) or known(one))
    assert not gitignore.matches(gitignore.between_slashes(pattern), ["d"] * 200)
    assert len(taken) <= 200 * pattern.count("/") + 1


def test_a_pattern_that_would_never_end_is_stopped(folder):
    (folder / "evil.txt").write_text("a" * 60 + "b\n")
    answer = call(folder, "search_files", Limits(seconds=1.0), pattern="(a+)+$")
    assert "It took too long and was stopped" in answer
    assert "No match so far" in answer
    (folder / ".gitignore").write_text("*a" * 40 + "z\n")
    (folder / ("a" * 200)).touch()
    assert "a" * 200 in listed(folder)


def test_names_that_are_no_text_survive(folder):
    (folder / os.fsdecode(b"no\xfftext")).write_text("parcel")
    (folder / "two\nlines").write_text("parcel")
    answer = call(folder, "list_files") + call(folder, "search_files", pattern="parcel")
    answer.encode()
    assert "two\\nlines" in answer
    assert answer.count("\\udcff") == 2


async def test_an_agent_can_use_them(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    agent = Agent(TestModel(), toolsets=[file_tools(folder)])
    result = await agent.run("Look around.")
    assert '"list_files"' in result.output
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    start, seen = asyncio.create_subprocess_exec, []

    async def noted(*command, **how):
        seen.append(await start(*command, **how))
        return seen[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    return seen


def test_a_search_that_is_through_is_left_to_end(folder, started, monkeypatch):
    """Who kills it may take its end from asyncio, which then complains on the terminal."""
    kill = Mock()
    monkeypatch.setattr(asyncio.subprocess.Process, "kill", kill)
    assert "src/main.py:2" in call(folder, "search_files", pattern="parcel")
    assert [process.returncode for process in started] == [0]
    kill.assert_not_called()


async def test_an_interrupted_search_leaves_no_process(folder, started):
    (folder / "evil.txt").write_text("a" * 60 + "b\n")
    search: Any = file_tools(folder).tools["search_files"].function
    task = asyncio.ensure_future(search(pattern="(a+)+$"))
    while not started:  # noqa: ASYNC110 - it is a process
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [process.returncode for process in started] == [-signal.SIGKILL]


PARTS = ["..", ".", "", "a", "b", "up", "in", "abs", "~", "/", "outside.txt", ".git", "\0", "\n"]


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    top = tmp_path_factory.mktemp("linked").resolve() / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top.parent / "outside.txt").write_text(SECRET)
    (top / "up").symlink_to("..")
    (top / "a" / "up").symlink_to("../..")
    (top / "abs").symlink_to(top.parent)
    (top / "in").symlink_to("a")
    return file_tools(top)


@given(
    st.lists(st.sampled_from(PARTS) | st.text(max_size=4), max_size=7).map("/".join),
    st.sampled_from(["", "/"]),
)
def test_no_path_leaves_the_folder(linked, path, begin):
    for tool, arguments in (
        ("read_file", {"path": begin + path}),
        ("list_files", {"path": begin + path, "depth": 9}),
        ("list_files", {"pattern": begin + path, "depth": 9}),
    ):
        answer = asked(linked, tool, **arguments)
        assert SECRET not in answer
        assert "outside.txt  " not in answer
