"""The real `refold`: the files and pipes that it writes, and interrupts while it does."""

# ruff: noqa: F811, F401 - fixtures are imported

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from refold_commands import REFOLD, quick, stored, terminal, text


def test_a_file_is_not_replaced_unasked(terminal, text):
    terminal.does("import", "-", given=text)
    terminal.write("out.jsonl", "precious")
    assert terminal.fails("export", "s", "-o", "out.jsonl") == (
        "error[transfer]: There is a file 'out.jsonl' already.",
        "Choose another name, or add --force.",
    )
    assert (terminal.folder / "out.jsonl").read_text() == "precious"
    assert terminal.run("export", "s", "-o", "out.jsonl", "--force").returncode == 0
    assert (terminal.folder / "out.jsonl").read_text("utf-8") == text
    assert terminal.files() == {"refold.db", "out.jsonl"}


def test_a_link_stays_a_link(terminal, text):
    terminal.does("import", "-", given=text)
    terminal.write("real.jsonl", "old")
    (terminal.folder / "link.jsonl").symlink_to("real.jsonl")
    assert terminal.run("export", "s", "-o", "link.jsonl", "--force").returncode == 0
    assert (terminal.folder / "link.jsonl").is_symlink()
    assert (terminal.folder / "real.jsonl").read_text("utf-8") == text


def test_a_device_is_written_and_never_replaced(terminal, text):
    terminal.does("import", "-", given=text)
    assert terminal.run("export", "s", "-o", os.devnull, "--force").returncode == 0
    assert Path(os.devnull).is_char_device()


def test_a_new_file_is_its_owners_alone(terminal, text):
    terminal.does("import", "-", given=text)
    terminal.run("export", "s", "-o", "out.jsonl")
    assert (terminal.folder / "out.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("target", ["new.jsonl", "old.jsonl"])
def test_a_failed_export_leaves_no_file_and_no_half_one(terminal, target):
    stored(terminal, entries=3)
    terminal.write("old.jsonl", "precious")
    before = terminal.files()
    terminal.fails("export", "nope", "--force", "-o", target)
    assert terminal.files() == before
    assert (terminal.folder / "old.jsonl").read_text() == "precious"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [["export", "s"], ["sessions"], ["config", "profile"], ["--help"]]
)
def test_a_full_disk(terminal, text, words, unbuffered):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full disk to offer")
    terminal.does("import", "-", given=text)
    with Path("/dev/full").open("w") as full:
        done = terminal.run(*words, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert (
        done.stderr
        == "error[file]: No space left on device.\nFree some disk space and try again.\n"
    )


def test_a_full_disk_for_errors_too(terminal):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full disk to offer")
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": full, "stderr": full}
        done = terminal.run("config", "profile", **streams, env={"PYTHONUNBUFFERED": ""})
    assert done.returncode == 1


def test_a_closed_pipe_ends_quietly(terminal):
    stored(terminal, entries=3000)
    command = f"{shlex.join(REFOLD)} export s | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=terminal.folder,
        env=terminal.environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.stdout, done.stderr) == ('{"refold":1,"session":"s"}\n141\n', "")


def test_a_closed_output(terminal, text):
    terminal.does("import", "-", given=text)
    command = f"{shlex.join(REFOLD)} export s >&-"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=terminal.folder,
        env=terminal.environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "error[file]: 'standard output': It is closed.",
    )


def test_an_interrupt_while_it_waits_for_input(terminal):
    with terminal.start("import", "-", stdin=subprocess.PIPE) as process:
        wait_until_it_reads(process)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=240)  # while its input is still open
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "\nInterrupted.\n")
    assert terminal.files() == set()


def test_an_interrupt_while_it_writes_leaves_no_file(terminal):
    stored(terminal, entries=30_000)
    before = terminal.files()
    with terminal.start("export", "s", "-o", "out.jsonl") as process:
        until = time.monotonic() + 240
        while not any(name.endswith(".part") for name in terminal.files()):
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=240)
    assert (process.returncode, said) == (130, "\nInterrupted.\n")
    assert terminal.files() == before


def wait_until_it_reads(process: subprocess.Popen[str]) -> None:
    """Fill the pipe: it is empty again only when the command has read all of it."""
    assert process.stdin
    os.write(process.stdin.fileno(), b"\n" * 65536)
    unread = b"    "
    while int.from_bytes(unread, sys.byteorder):
        time.sleep(0.05)
        unread = fcntl.ioctl(process.stdin, termios.FIONREAD, b"    ")
    time.sleep(0.5)  # the last lines it read are handled, and it waits
