"""What a shell is offered, through typer's own completion."""

import asyncio

import pytest
from typer.testing import CliRunner

from refold.cli.app import app
from refold.cli.options import MAX_NAMES
from refold.log import Author, Opened
from refold.stores import open_store


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFOLD_STORE", "sqlite:///refold.db")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def offered(line: str) -> list[str]:
    """What bash would show after this line."""
    words = line.split(" ")
    environment = {
        "_REFOLD_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = CliRunner().invoke(app, [], env=environment, prog_name="refold")
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if done.stdout.endswith("\n") else done.stdout.split("\n")


async def keep(path, *names, tenant="default"):
    async with open_store(f"sqlite:///{path}") as store:
        for name in names:
            draft = Author().draft(Opened("openai-chat", "balanced"))
            await store.log(tenant).append(name, [draft], expected=0)


@pytest.mark.parametrize("command", ["show", "export", "forget", "explain", "search x --session"])
def test_sessions(folder, command):
    asyncio.run(keep(folder / "refold.db", "alpha", "beta", "also"))
    asyncio.run(keep(folder / "refold.db", "theirs", tenant="acme"))
    assert sorted(offered(f"refold {command} al")) == ["alpha", "also"]
    if command == "show":
        assert offered("refold show --tenant acme t") == ["theirs"]
        assert offered("refold show --store sqlite:///no.db a") == [""]


def test_sessions_that_are_many_or_cannot_be_read(folder):
    asyncio.run(keep(folder / "refold.db", *(f"s{n}" for n in range(MAX_NAMES + 20))))
    assert len(offered("refold show s")) == MAX_NAMES
    assert len(offered("refold models o")) == MAX_NAMES
    (folder / "refold.db").write_bytes(b"no store at all" * 100)
    assert offered("refold show s") == [""]
    assert {path.name for path in folder.iterdir()} <= {"refold.db"}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("refold explain --profile co", ["co-cli", "copilot", "cowagent"]),
        ("refold explain --model openai:gpt-4o-m", ["openai:gpt-4o-mini"]),
        ("refold models openai:gpt-4o-m", ["openai:gpt-4o-mini"]),
        ("refold config trim.m", ["trim.max_chars", "trim.marker"]),
        ("refold config agent_max_s", ["agent_max_steps"]),
        ("refold config trim.style h", ["head", "head-tail"]),
        ("refold config dedupe t", ["true"]),
        ("refold config profile in", ["inkeep"]),
        ("refold config budget 1", [""]),
        ("refold export s --as j", ["jsonl", "json"]),
        ("refold config --profile b", ["balanced"]),
        ("refold models --profile b", ["balanced"]),
    ],
)
def test_values(line, names):
    found = offered(line)
    if "gpt-4o-m" in line:
        assert names[0] in found
        assert all(one.startswith("openai:gpt-4o-m") for one in found)
    else:
        assert found == names
