"""The real `refold explain`, in processes of its own."""

import asyncio
import errno
import json
import os
import pty
import re
import subprocess
import sys

import explain_picture
import pytest
from forked_commands import forked_commands
from rich.cells import cell_len

from refold.log import Author, Message, Opened
from refold.stores import open_store

REFOLD = [sys.executable, "-m", "refold.cli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("store")

    async def fill():
        async with open_store(f"sqlite:///{path}/refold.db") as store:
            log, author = store.log(), Author()
            await explain_picture.write(log, "imports-7")
            odd = author.draft(Opened("openai-chat", "my own"))
            await log.append("odd", [odd], expected=0)
            unknown = author.draft(Opened("telex", "balanced"))
            await log.append("telex", [unknown], expected=0)
            long = author.draft(
                Message(json.dumps({"role": "user", "content": "a " * 999}).encode())
            )
            await log.append(
                "long", [author.draft(Opened("openai-chat", "balanced")), long], expected=0
            )

    asyncio.run(fill())
    return path


@pytest.fixture(scope="module")
def refold(folder):
    """`refold(…)`: `refold explain …` in that folder, to its end."""
    cleared = {key: one for key, one in os.environ.items() if not key.startswith("REFOLD_")}
    plain = cleared | {"PYTHONUTF8": "1", "COLUMNS": "80"}

    def run(*arguments):
        return subprocess.run(
            [quick / "refold", "explain", *arguments],
            cwd=folder,
            env=plain,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    with forked_commands(plain) as quick:
        yield run


def test_command(refold):
    done = refold("imports-7", "--window", "9000", "--target-tokens", "1000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "of the window of 9,000." in done.stdout
    assert "○ archived" in done.stdout
    assert max(map(cell_len, done.stdout.splitlines())) <= 80
    wide = refold("imports-7", "--width", "160", "--all", "--profile", "co-cli").stdout
    assert "profile co-cli" in wide
    assert "3.0 ≡ prompt" in wide
    assert max(map(cell_len, wide.splitlines())) == 160


def test_a_window_that_nobody_knows_can_be_given(refold):
    assert "--window N" in refold("imports-7", "--model", "local:x").stdout
    assert "--window N" not in refold("imports-7", "--model", "local:x", "--window", "9000").stdout


def test_command_prints_json(refold):
    told = json.loads(refold("imports-7", "--json", "--model", "openai:gpt-4o").stdout)
    assert (told["explanation"], told["session"]["name"]) == (1, "imports-7")
    assert (told["model"], told["window"]["tokens"]) == ("openai:gpt-4o", 128_000)
    assert [one["seq"] for one in told["messages"]][:3] == [2, 3, 4]
    assert told["unlisted"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "fix"),
    [
        (["nobody"], "session-not-found", "The sessions here: "),
        (["imports-7", "--tenant", "x"], "session-not-found", "Tenant 'x' has no sessions here"),
        (["imports-7", "--store", "sqlite:///no.db"], "store-not-found", "Name the store with"),
        (["odd"], "invalid-setting", "Use one of balanced, co-cli, "),
        (["telex"], "unknown-format", "Use one of the formats"),
        (["long", "--window", "400"], "view-too-large", "Shorten the instructions"),
    ],
)
def test_command_says_what_to_do(refold, arguments, code, fix):
    done = refold(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    what, then = done.stderr.splitlines()
    assert what.startswith(f"error[{code}]: ")
    assert then.startswith(fix)


@pytest.mark.parametrize(
    "wrong",
    [["--width", "59"], ["--profile", "frugal"], ["--window", "0"], ["--target-tokens", "0"]],
)
def test_command_refuses_what_cannot_be(refold, wrong):
    done = refold("imports-7", *wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert wrong[0] in done.stderr


def in_terminal(folder, **environment):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    plain = {key: one for key, one in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    with subprocess.Popen(
        [*REFOLD, "explain", "imports-7", "--width", "80"],
        cwd=folder,
        env=plain | {"PYTHONUTF8": "1", "TERM": "xterm-256color"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError as error:
                if error.errno != errno.EIO:  # Linux says so when the other end is closed
                    raise
                break
            if not some:
                break
            written += some
        process.wait(60)
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


def test_colors_only_where_they_are_wanted(folder, refold):
    plain = refold("imports-7").stdout
    colored = in_terminal(folder)
    assert "\x1b[" not in plain
    assert "\x1b[1m" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
    assert in_terminal(folder, NO_COLOR="1") == plain


def test_a_fold_now_has_a_price(refold):
    command = ("imports-7", "--model", "anthropic:claude-sonnet-4-5", "--fold")
    shown = refold(*command).stdout
    assert re.search(r"A fold now\n +\d+ messages would become a summary, \d+ would stay", shown)
    assert re.search(r"Price: (nothing: the next request is )?\$\d", shown)
    fold = json.loads(refold(*command, "--json").stdout)["fold"]
    assert fold["request_before"] > 0
    assert fold["saves"] == pytest.approx(fold["cost_before"] - fold["cost_after"])
    assert "A fold now" not in refold(*command[:-1]).stdout


def test_a_fold_at_an_unknown_price_says_so(refold):
    assert "no price is known" in refold("imports-7", "--model", "x:y", "--fold").stdout
