"""What commands write: files for their owner alone, and nothing that a terminal would obey."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os
import pty
import select
import stat
import subprocess

import pytest
from refold_commands import REFOLD, quick, terminal

from refold.cli.chat.clean import cleaned
from refold.log import Author, Message, Opened
from refold.stores import open_store

HOSTILE = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x1b]52;c;ZXZpbA==\x07 \x7f \u202e and words"


FORMS = ["jsonl", "markdown", "json", "html"]


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def open_umask():
    """As on many machines: whatever is made without care, everybody reads."""
    before = os.umask(0o022)
    yield
    os.umask(before)


async def said(address, *texts):
    """A session `s` in which this was said; the store is still open."""
    store = open_store(address)
    await store.__aenter__()
    log, author = store.log(), Author()
    payloads = [
        json.dumps({"role": "user", "content": text}, ensure_ascii=False).encode() for text in texts
    ]
    drafts = [author.draft(Opened("openai-chat", "balanced"))]
    drafts += [author.draft(Message(payload)) for payload in payloads]
    await log.append("s", drafts, expected=0)
    return store


async def test_a_store_and_its_write_ahead_log_are_their_owners_alone(tmp_path):
    store = await said(f"sqlite:///{tmp_path / 'refold.db'}", "hi")
    try:
        modes = {one.name: oct(mode_of(one)) for one in tmp_path.iterdir()}
    finally:
        await store.__aexit__(None, None, None)
    names = ("refold.db", "refold.db-shm", "refold.db-wal")
    assert {name: modes[name] for name in names} == dict.fromkeys(names, "0o600")
    assert {*modes.values()} == {"0o600"}


async def test_a_store_behind_a_link_is_its_owners_alone_and_others_stay_as_they_are(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "behind.db")
    await (await said(f"sqlite:///{tmp_path / 'link.db'}", "hi")).__aexit__(None, None, None)
    assert mode_of(tmp_path / "behind.db") == 0o600
    shared = tmp_path / "behind.db"
    shared.chmod(0o640)
    async with open_store(f"sqlite:///{shared}"):
        assert {mode_of(one) for one in tmp_path.glob("behind.db*")} == {0o640}


def stored(terminal, *texts):
    """Have a session `s` in the terminal's store in which this was said."""

    async def made():
        store = await said(f"sqlite:///{terminal.folder / 'refold.db'}", *texts)
        await store.__aexit__(None, None, None)

    asyncio.run(made())


def test_exports_and_settings_are_their_owners_alone(terminal):
    stored(terminal, HOSTILE)
    for form in FORMS:
        assert terminal.run("export", "s", "--as", form, "-o", f"out.{form}").returncode == 0
    (terminal.folder / "mine.jsonl").touch(0o644)
    assert terminal.run("export", "s", "-o", "mine.jsonl", "--force").returncode == 0
    assert mode_of(terminal.folder / "mine.jsonl") == 0o644  # it stays as its owner made it
    assert "\x9b31m" in (terminal.folder / "mine.jsonl").read_text()  # a file has every byte
    assert terminal.run("keys", "create", "--role", "use").returncode == 0
    assert terminal.run("config", "profile", "balanced").returncode == 0
    home = terminal.folder.parent / f"home of {terminal.folder.name}"
    written = [one for folder in (terminal.folder, home) for one in folder.rglob("*")]
    modes = {one.name: oct(mode_of(one)) for one in written if one.is_file()}
    assert {f"out.{form}" for form in FORMS} | {"refold.db"} <= modes.keys()
    assert modes.pop("mine.jsonl") == "0o644"
    assert {name: mode for name, mode in modes.items() if mode != "0o600"} == {}


@pytest.mark.parametrize("form", FORMS)
def test_an_export_to_a_terminal_has_nothing_that_it_would_obey(form, terminal):
    stored(terminal, HOSTILE, "plain ü 🙂")
    shown = on_a_terminal(terminal, "export", "s", "--as", form).replace("\r\n", "\n")
    assert "words" in shown
    assert "ü" in shown
    assert cleaned(shown) == shown
    if form == "jsonl":  # and it is still the same JSON
        whole = terminal.does("export", "s")
        assert [*map(json.loads, shown.splitlines())] == [*map(json.loads, whole.splitlines())]


def on_a_terminal(terminal, *arguments):
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*REFOLD, *arguments],
        cwd=terminal.folder,
        env=terminal.environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    pieces = []
    try:
        while True:
            assert select.select([ours], [], [], 120)[0], "it hangs"
            piece = os.read(ours, 65_536)
            if not piece:
                break
            pieces.append(piece)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return b"".join(pieces).decode()
