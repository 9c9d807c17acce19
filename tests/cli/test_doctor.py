"""`refold doctor`: what it finds, and that doing what it says helps."""

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
import typer
from typer.testing import CliRunner

from refold.cli import doctor as configured
from refold.cli.app import app
from refold.cli.doctor import Row, doctor, installed, terminal
from refold.cli.doctor import configured as of_settings
from refold.cli.doctor import stored as of_store
from refold.log import Author, FoldStarted, Message, Opened, Span
from refold.log.kinds import Value
from refold.stores import open_store

pytest.importorskip("genai_prices")

SECRET = "sk-do-not-show-4711"  # noqa: S105 - what must never be seen
ALONE = typer.Typer()
ALONE.command()(doctor)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    ours = ("REFOLD_", "CO_CLI_", "COPILOT_", "OPENAI_", "OLLAMA_", "XDG_")
    for name in [name for name in os.environ if name.startswith(ours) or "API_KEY" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(configured, "running_here", list)
    monkeypatch.setattr("refold.cli.chat.models.providers.running_here", list)
    for name, value in {"HOME": tmp_path, "COLUMNS": "100", "TERM": "xterm", "SHELL": "x"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def seen(*arguments: str, code: int = 0) -> dict[str, Row]:
    done = CliRunner().invoke(ALONE, ["--json", *arguments])
    assert done.exit_code == code, done.output
    return {row["name"]: Row(**row) for row in json.loads(done.stdout)}


def found(rows, name: str) -> Row:
    return next(one for one in rows if one.name == name)


def do(remedy: str):
    """Run the command that a remedy is."""
    for command in remedy.split("&&"):
        first, *words = shlex.split(command, comments=True)
        assert first == "refold"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output


async def kept(*more: Value, at: datetime | None = None):
    author = Author(clock=lambda: at) if at else Author()
    drafts = [
        author.draft(Opened(format="openai-chat", profile="balanced")),
        author.draft(Message(b'{"role": "user", "content": "Where is my parcel?"}')),
        *(author.draft(one) for one in more),
    ]
    async with open_store("sqlite:///refold.db") as store:
        await store.log().append("parcel", drafts, expected=0)


def test_every_row_that_is_not_well_has_a_remedy(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    rows = seen()
    assert [one.name for one in rows.values() if one.verdict != "ok" and not one.remedy] == []
    assert rows["keys"].found == "ANTHROPIC_API_KEY"
    assert "because ANTHROPIC_API_KEY is set" in rows["model"].found
    for name in ("window", "prices", "tokens", "store", "disk", "settings", "terminal"):
        assert rows[name].verdict == "ok", rows[name]
    text = CliRunner().invoke(ALONE, []).output
    assert SECRET not in text
    assert text.endswith("All is well.\n")
    assert max(map(len, text.splitlines())) <= 100


def test_no_model_is_a_warning_that_says_how_to_get_one():
    row = seen()["model"]
    assert row.verdict == "warning"
    assert "refold demo" in row.remedy


def test_a_setting_that_is_none(place):
    (place / "refold.toml").write_text("profil = 'balanced'\n")
    row = seen(code=1)["settings"]
    assert row.verdict == "problem"
    assert row.remedy == "Did you mean profile?"
    (place / "refold.toml").write_text("profile = 'balanced'\n")
    assert "refold.toml" in seen()["settings"].found


async def test_the_store_is_looked_at(place):
    await kept()
    rows = await of_store("", "default")
    assert found(rows, "store").found.startswith("refold.db, ")
    assert {one.verdict for one in rows} == {"ok"}
    (place / "other.db").write_text("this is no database, whatever its name says" * 40)
    row = found(await of_store("sqlite:///other.db", "default"), "store")
    assert row.verdict == "problem"
    (place / "file").touch()
    assert found(await of_store("memory:", "default"), "store").verdict == "problem"
    deep = found(await of_store("sqlite:///file/x.db", "default"), "store")
    assert deep.verdict == "problem"
    assert "REFOLD_STORE" in deep.remedy


async def test_a_file_that_another_process_keeps_locked_is_a_problem():
    await kept()
    with closing(sqlite3.connect("refold.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        row = found(await of_store("", "default"), "store")
    assert (row.verdict, row.found) == ("problem", "refold.db is locked by another process")
    assert "fuser -v refold.db" in row.remedy
    assert found(await of_store("", "default"), "store").verdict == "ok"


async def test_a_fold_that_never_ended_is_taken_up_by_opening_its_session():
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent  # noqa: PLC0415 - comes with an extra

    from refold.integrations.pydantic_ai import Refold  # noqa: PLC0415 - see above

    fold = Author().draft(FoldStarted(uuid4(), (Span(2, 2),), "asked"))
    async with Refold("sqlite:///refold.db") as memory:
        await Agent("test", capabilities=[memory]).run("Hello.", conversation_id="a parcel")
        await memory.log.append("a parcel", [fold], expected=None)
    row = found(await of_store("", "default"), "folds")
    assert row.verdict == "warning"
    assert row.remedy.startswith("refold chat 'a parcel' ")
    async with Refold("sqlite:///refold.db") as memory:
        await memory.session("a parcel", "test")
    assert found(await of_store("", "default"), "folds").verdict == "ok"


async def test_a_fold_of_another_program_is_left_to_it():
    await kept(FoldStarted(uuid4(), (Span(2, 2),), "asked"))
    row = found(await of_store("", "default"), "folds")
    assert row.remedy.startswith("Open 'parcel' with the program that keeps it")


async def test_a_clock_that_is_behind():
    await kept(at=datetime(2100, 1, 1, tzinfo=UTC))
    assert found(await of_store("", "default"), "clock").verdict == "warning"


async def test_a_store_on_another_machine_or_in_a_cloud(place, monkeypatch):
    mounts = place / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {place}/far nfs4 rw 0 0\n")
    (place / "far").mkdir()
    for folder, expected in {"near": "ok", "far": "warning", "Dropbox": "warning"}.items():
        rows = await of_store(f"sqlite:///{place}/{folder}/refold.db", "default", mounts=mounts)
        assert found(rows, "place").verdict == expected
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    assert found(await of_store("", "default"), "disk").verdict == "problem"


def test_a_window_and_prices_that_nobody_knows_can_be_set():
    environ = {"REFOLD_MODEL": "openrouter:me/my-own", "OPENROUTER_API_KEY": SECRET}
    for name in ("window", "prices"):
        row = found(of_settings(environ), name)
        assert row.verdict == "warning"
        do(row.remedy)
        assert found(of_settings(environ), name).verdict == "ok"


def test_a_provider_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("refold.cli.chat.models.providers.find_spec", lambda _: None)
    row = found(of_settings({"GROQ_API_KEY": SECRET}), "model")
    assert (row.verdict, row.remedy) == ("problem", 'pip install "pydantic-ai-slim[groq]"')


def test_what_is_not_installed_is_named():
    row = found(installed(missing=lambda module: module == "rs_bpe"), "extra models")
    assert (row.verdict, row.remedy) == ("warning", 'pip install "refold[models]"')
    assert {one.verdict for one in installed(missing=lambda _: False)} == {"ok"}


@pytest.mark.parametrize(
    ("changed", "row", "said"),
    [
        ({"TERM": "dumb"}, "terminal", "export TERM="),
        ({"COLUMNS": "40"}, "terminal", "80 columns wide"),
        ({"SHELL": "/bin/zsh"}, "completion", "refold --install-completion"),
    ],
)
def test_a_terminal_that_lacks_something(monkeypatch, changed, row, said):
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    assert said in found(terminal(), row).remedy


def test_characters_that_cannot_be_shown():
    assert found(terminal(encoding="utf-8"), "characters").verdict == "ok"
    row = found(terminal(encoding="iso8859-1"), "characters")
    assert row.verdict == "warning"
    words = dict(word.split("=") for word in row.remedy.split()[1:])
    code = "import sys; print(sys.stdout.encoding)"
    environ = os.environ | {"LC_ALL": "", "LANG": "C", "PYTHONUTF8": "0"} | words
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, check=True
    )
    assert done.stdout.strip().lower() == b"utf-8"


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_completion_is_there_once_it_is_installed(place, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/bash")
    row = found(terminal(), "completion")
    assert row.verdict == "warning"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = os.environ | {"PATH": path, "HOME": str(place)}
    subprocess.run(["bash", "-c", f"{row.remedy}; true"], env=environ, check=True, timeout=60)
    assert found(terminal(), "completion").verdict == "ok"
