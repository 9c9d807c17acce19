"""`refold demo --store`: the session stays, for `show`, `explain`, `search` and the lab."""

import json

import pytest
from typer.testing import CliRunner

from refold.cli.app import app
from refold.cli.demo.show import demo_store
from refold.errors import SessionExists, SessionNotFound
from refold.log import Author, Opened
from refold.stores import MemoryStore


def run(*words):
    return CliRunner().invoke(app, words)


def test_the_session_stays_and_other_commands_read_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = ("--store", "sqlite:///demo.db")
    played = json.loads(run("demo", "--json", *store).stdout)
    [kept_one] = json.loads(run("sessions", "--json", *store).stdout)
    assert kept_one["name"] == played["session"] == "demo"
    found = json.loads(run("search", played["detail"]["found"], "--json", *store).stdout)
    assert played["detail"]["entry"] in [one["seq"] for one in found]
    # What it cost, and what everything would have cost, are the same wherever they are shown.
    for totals in (json.loads(run(name, "--json", *store).stdout) for name in ("costs", "receipt")):
        assert played["with_refold"]["dollars"] == pytest.approx(totals["billed"], abs=1e-6)
        everything = totals["billed"] - totals["debt"]
        assert played["without"]["dollars"] == pytest.approx(everything, abs=1e-6)
    run("export", "demo", "-o", "demo.jsonl", *store)
    few = ("--profile", "balanced", "--policy", "a summary of names")
    [session] = json.loads(run("lab", "demo.jsonl", *few, "--json").stdout)["sessions"]
    assert (session["prices_known"], session["prices"]["input"]) == (True, 1.25)  # as recorded
    assert (session["window_known"], session["window"]) == (True, 7_500)  # without the answer's
    again = run("demo", "--json", *store)
    assert again.exit_code == 1
    assert "has a session 'demo' already" in again.output


async def test_without_an_address_nothing_is_left_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFOLD_STORE", "sqlite:///mine.db")
    async with demo_store("", "demo") as store:
        assert isinstance(store, MemoryStore)
    assert list(tmp_path.iterdir()) == []


async def test_what_is_there_is_never_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with demo_store("sqlite:///demo.db", "demo") as store:
        with pytest.raises(SessionNotFound):
            await store.log().info("demo")
        await store.log().append(
            "demo", [Author().draft(Opened("pydantic-ai", "balanced"))], expected=0
        )
    with pytest.raises(SessionExists, match="demo"):
        async with demo_store("sqlite:///demo.db", "demo"):
            pass
