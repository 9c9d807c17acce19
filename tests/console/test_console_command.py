"""`refold console` and `refold serve`: real processes, with a real store."""

import asyncio
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from api_serving import talked
from console_world import LOCAL, console
from test_console_folds import unfolded, words_of

from refold.console.access import Access
from refold.console.app import open_address
from refold.console.local import LocalConsole, ReadOnlyLog, application
from refold.errors import InvalidInput
from refold.settings import load_settings
from refold.stores import MemoryStore, SqliteStore

REFOLD = [sys.executable, "-m", "refold.cli"]


@pytest.fixture
async def stored(tmp_path):
    """The address of a store with a session."""
    path = tmp_path / "refold.db"
    async with console(store=SqliteStore(path)) as world:
        await talked(world, "default", "a talk", turns=4)
        await talked(world, "other", "their talk", words="cathedral")
    return f"sqlite:///{path}"


@contextmanager
def running(folder, *arguments, **more) -> Iterator[Any]:
    """The command, once it has told where it listens; its standard error afterwards."""
    home = folder / "home"
    names = {"HOME": home, "XDG_CONFIG_HOME": home / "c", "XDG_DATA_HOME": home / "d"}
    environment = {name: x for name, x in os.environ.items() if not name.startswith("REFOLD_")}
    environment |= {name: str(path) for name, path in names.items()} | more
    for name in {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} - more.keys():
        environment.pop(name, None)
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [*REFOLD, *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, **streams) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
    assert process.returncode in (0, 130)


def address_in(process, stream="stdout"):
    """The address of the console that a process has printed."""
    line = getattr(process, stream).readline()
    return json.loads(line)["console"] if line.startswith("{") else re.findall(r"http\S+", line)[0]


@contextmanager
def opened(address):
    """A browser that has opened the address, and the page that it got."""
    with httpx2.Client(follow_redirects=True) as client:
        yield client, client.get(address)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_the_console_opens_a_session_and_changes_nothing(stored, tmp_path):
    path = tmp_path / "refold.db"
    before = digest(path)
    command = ("console", "a talk", "--json", "--store", stored)
    with running(tmp_path, *command) as process:
        address = address_in(process)
        assert urlsplit(address).hostname == "127.0.0.1"
        with opened(address) as (browser, page):
            assert page.status_code == 200
            assert "Where is parcel 3 of default?" in page.text
            base = f"http://{urlsplit(address).netloc}"
            assert "a talk" in browser.get(f"{base}/console").text
            assert "their talk" not in browser.get(f"{base}/console").text
            for elsewhere in ("/api/v1/sessions", "/v1/chat/completions", "/metrics", "/"):
                assert browser.get(base + elsewhere).status_code == 404
        with opened(f"{base}/console") as (_, page):
            assert "parcel" not in page.text
        with opened(address) as (_, page):
            assert page.status_code == 401
    assert digest(path) == before


async def test_what_a_compaction_would_do_is_shown_without_a_gateway_or_a_model(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "refold.db"
    async with console(store=SqliteStore(path)) as world:
        await unfolded(world)
    before = digest(path)
    state = LocalConsole(load_settings(), SqliteStore(path, create=False))
    access = Access(state)
    transport = httpx2.ASGITransport(application(state, access))
    async with state, httpx2.AsyncClient(transport=transport, base_url=LOCAL) as browser:
        await browser.get(open_address(LOCAL, access.new_token()))
        page = await browser.get("/console/sessions/talk/folds/new")
        words = words_of(page)
        assert "Goes 4 messages" in words
        assert "Stays 4 messages" in words
        assert "parcel 1" in words
        assert "This console only reads." in words
        assert "<textarea" not in page.text
        assert 'class="change' not in page.text
        missing = await browser.get("/console/sessions/none/folds/new")
        assert missing.status_code == 404
    assert digest(path) == before


async def test_another_address_is_offered_when_one_was_used(stored, tmp_path):
    with running(tmp_path, "console", "--no-browser", "--store", stored) as process:
        first = address_in(process, "stderr")
        process.stderr.readline()
        with opened(first) as (_, page):
            assert page.status_code == 200
        second = address_in(process, "stderr")
        assert second != first
        with opened(second) as (_, page):
            assert page.status_code == 200


async def test_it_opens_the_browser_that_is_set(stored, tmp_path):
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {told}\n')
    browser.chmod(0o755)
    with running(tmp_path, "console", "--store", stored, BROWSER=f"{browser} %s") as process:
        address = address_in(process, "stderr")
        process.stderr.readline()
        for _ in range(200):
            if told.exists() and told.read_text():
                break
            await asyncio.sleep(0.05)
        assert told.read_text().strip() == address


async def test_another_tenants_sessions_are_asked_for_by_name(stored, tmp_path):
    command = ("console", "--json", "--tenant", "other", "--store", stored)
    with running(tmp_path, *command) as process, opened(address_in(process)) as (_, page):
        assert "their talk" in page.text
        assert "a talk" not in page.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "There is no session 'none'"),
        (["--store", "sqlite:///nowhere.db"], "Name the store with --store"),
        (["--store", "memory:"], "A store in memory would end"),
        ([], "There is no session yet"),
    ],
)
async def test_what_is_not_there_is_said_before_anything_starts(stored, tmp_path, arguments, words):
    store = ["--store", stored] if arguments == ["none"] else []
    home = {"HOME": str(tmp_path / "h"), "XDG_DATA_HOME": str(tmp_path / "h" / "d")}
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        [*REFOLD, "console", *arguments, *store],
        cwd=tmp_path / "..",
        env=os.environ | home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert words in done.stderr


async def test_refold_serve_has_the_console_too(stored, tmp_path):
    with running(tmp_path, "serve", "--port", "0", "--json", "--store", stored) as process:
        about = json.loads(process.stdout.readline())
        assert about["console"].startswith(f"{about['address']}/console/open?token=")
        with opened(about["console"]) as (browser, page):
            assert "a talk" in page.text
            assert browser.get(f"{about['address']}/api/v1/sessions").status_code == 200
            assert browser.get(f"{about['address']}/console/sessions/a%20talk").status_code == 200


@pytest.mark.parametrize("name", ["append", "fork", "forget", "expire"])
def test_nothing_is_written_to_a_store_that_is_read(name):
    log = ReadOnlyLog(MemoryStore().log())
    with pytest.raises(InvalidInput, match="only reads"):
        getattr(log, name)
    assert log.tenant == "default"
