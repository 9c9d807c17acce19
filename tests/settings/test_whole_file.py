"""Files that are written whole or not at all, whatever comes between."""

import contextlib
import errno
import gc
import os
import pathlib
import re
import sys
from types import FrameType
from typing import Any

import pytest

from refold import user_files
from refold.user_files import atomic_file, check_writable, file_fix, write_whole

FILES = {module.__file__ for module in (user_files, contextlib, pathlib)}


class Interrupt:
    """Ctrl-C before the step of that number, a step being an instruction of the interpreter."""

    def __init__(self, step: int) -> None:
        self._left = step
        self.came = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> "Interrupt | None":
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.came:
            self._left -= 1
            if self._left < 0:
                self.came = True
                raise KeyboardInterrupt
        return self

    def during(self, path: pathlib.Path, content: bytes) -> None:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            write_whole(path, content)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # interrupted as it opened
@pytest.mark.parametrize("before", [None, b"as it was"])
def test_an_interrupt_at_any_step_leaves_the_file_as_it_was_or_whole(tmp_path, before):
    path = tmp_path / "out.jsonl"
    seen = set()
    for step in range(100_000):
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        interrupt = Interrupt(step)
        interrupt.during(path, b"whole")
        gc.collect(0)  # a block that was never entered is left when it is collected
        assert {one.name for one in tmp_path.iterdir()} <= {path.name}, step
        there = path.read_bytes() if path.exists() else None
        assert there in (before, b"whole"), step
        seen.add(there)
        if not interrupt.came:
            break
    assert not interrupt.came
    assert there == b"whole"
    assert seen == {before, b"whole"}


def test_an_error_within_leaves_what_was_there(tmp_path):
    path = tmp_path / "notes.md"
    path.write_text("old")
    with pytest.raises(TypeError), atomic_file(path) as file:
        file.writelines([b"half of", None])
    assert [one.name for one in tmp_path.iterdir()] == ["notes.md"]
    assert path.read_text() == "old"


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "gone" / "notes.md"
    with pytest.raises(FileNotFoundError) as failed:
        write_whole(path, b"whole")
    assert failed.value.filename == str(path)


def test_a_name_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("ä" * 127)
    write_whole(path, b"whole")
    assert path.read_bytes() == b"whole"


def test_what_only_its_owner_may_read_stays_so(tmp_path):
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)


def refusal(write, path):
    """The name of the error, the path that it names, and what it says to do."""
    with pytest.raises(OSError, match=re.escape(str(path))) as refused:
        write(path)
    error = refused.value
    return errno.errorcode[error.errno], error.filename, file_fix(error)


@pytest.mark.parametrize("write", [check_writable, lambda path: write_whole(path, b"x")])
def test_a_path_without_its_folder_is_named_with_what_to_do(tmp_path, write):
    path = tmp_path / "none" / "page.html"
    fix = f"Create the folder '{path.parent}' first, or choose another path."
    assert refusal(write, path) == ("ENOENT", str(path), fix)


def test_a_folder_or_a_file_in_the_way_is_named_before_anything_is_written(tmp_path):
    (tmp_path / "file").touch()
    inside = tmp_path / "file" / "page.html"
    fix = "Part of this path is a file, not a folder: choose another path."
    assert refusal(check_writable, inside) == ("ENOTDIR", str(inside), fix)
    fix = "Name a file in this folder."
    assert refusal(check_writable, tmp_path) == ("EISDIR", str(tmp_path), fix)
    check_writable(tmp_path / "page.html")


def test_a_folder_that_is_closed_to_the_user_is_named_before_anything_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    path = tmp_path / "page.html"
    code, name, fix = refusal(check_writable, path)
    assert (code, name) == ("EACCES", str(path))
    assert "permissions" in fix


def test_a_full_disk_is_named_with_the_file_that_it_refused(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "page.html"
    fix = "Free some disk space and try again."
    assert refusal(lambda it: write_whole(it, b"x"), path) == ("ENOSPC", str(path), fix)
