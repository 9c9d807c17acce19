"""`refold up`, `refold down` and `refold env`."""

# ruff: noqa: F811, F401 - fixtures are imported

import json
import os
import plistlib
import subprocess
import sys
import tomllib
from dataclasses import asdict

import pytest
import yaml
from free_ports import free_ports
from refold_commands import quick, terminal

from refold.cli import up
from refold.cli.env import PROGRAMS
from refold.errors import InvalidInput

COMMAND = ["/opt/a b/python", "-m", "refold.cli", "serve", "--port", "8790"]


@pytest.fixture
def alone(terminal):
    terminal.environment["XDG_STATE_HOME"] = str(terminal.folder / "state")
    terminal.environment.pop("REFOLD_STORE", None)
    yield terminal
    terminal.run("down")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return tmp_path


def calls_of(home, monkeypatch, name, script="exit 0"):
    """A program of the system's that writes down how it is called."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "$@" >> {home}/calls\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda: (home / "calls").read_text().splitlines()


def test_up_starts_one_gateway_and_down_ends_it(alone):
    [port] = free_ports(1)
    up_ = ("up", "--port", str(port), "--no-service", "--json")
    first = json.loads(alone.does(*up_))
    assert (first["started"], first["manager"]) == (True, "process")
    assert up.answers(first["address"])
    assert not json.loads(alone.does(*up_))["started"]
    assert alone.does("env", "claude") == f"export ANTHROPIC_BASE_URL={first['address']}\n"
    assert alone.does("down") == "Ended.\n"
    assert "No gateway" in alone.does("down")
    assert not up.answers(first["address"])


def test_a_number_that_another_process_has_by_now_is_not_taken_for_the_gateway(home):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        folder = home / "state" / "refold"
        folder.mkdir(parents=True)
        (folder / "up.lock").touch()
        stale = up.Started("process", "http://127.0.0.1:9", COMMAND, other.pid)
        (folder / "up.json").write_text(json.dumps(asdict(stale)))
        assert not up.is_running(stale)
        up.down()
        assert other.poll() is None
        assert up.started() is None
        other.kill()


def test_a_gateway_that_cannot_start_says_why(home, monkeypatch):
    monkeypatch.setattr(up, "answers", lambda _address: False)
    failing = [sys.executable, "-c", "import sys; sys.exit('The port is taken.')"]
    with pytest.raises(InvalidInput, match="The port is taken"):
        up._start("process", failing, "http://127.0.0.1:9")
    assert up.started() is None
    assert (home / "state/refold/up.log").exists()


def test_systemd_runs_it_where_it_looks_after_this_users_programs(home, monkeypatch):
    calls = calls_of(home, monkeypatch, "systemctl")
    monkeypatch.setattr(sys, "platform", "linux")
    assert up._manager() == "systemd"
    monkeypatch.setattr(up, "answers", lambda _address: True)
    up._start("systemd", [*COMMAND, "100%"], "http://127.0.0.1:8790")
    unit = (home / "config/systemd/user/refold.service").read_text()
    assert 'ExecStart="/opt/a b/python" "-m" "refold.cli" "serve" "--port" "8790" "100%%"' in unit
    assert "--user enable --now refold.service" in calls()
    up.down()
    assert "--user disable --now refold.service" in calls()
    assert not (home / "config/systemd/user/refold.service").exists()


def test_launchd_runs_it_on_a_mac(home, monkeypatch):
    calls = calls_of(home, monkeypatch, "launchctl", 'echo "state = running"')
    monkeypatch.setattr(sys, "platform", "darwin")
    assert up._manager() == "launchd"
    monkeypatch.setattr(up, "answers", lambda _address: True)
    up._start("launchd", COMMAND, "http://127.0.0.1:8790")
    agent = home / "Library/LaunchAgents/dev.refold.gateway.plist"
    value = plistlib.loads(agent.read_bytes())
    assert (value["ProgramArguments"], value["RunAtLoad"]) == (COMMAND, True)
    up.down()
    assert any(call.startswith("bootout") for call in calls())
    assert not agent.exists()


def test_without_either_it_is_a_process(home, monkeypatch):
    calls_of(home, monkeypatch, "systemctl", "exit 1")
    monkeypatch.setattr(sys, "platform", "linux")
    assert up._manager() == "process"


def test_what_systemd_says_is_passed_on(home, monkeypatch):
    calls_of(home, monkeypatch, "systemctl", "echo no bus >&2; exit 1")
    with pytest.raises(InvalidInput, match="no bus"):
        up._start("systemd", COMMAND, "http://127.0.0.1:8790")


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_gets_something_that_it_can_read(alone, program):
    value = json.loads(alone.does("env", program, "--port", "18791", "--json"))
    told = json.dumps(value)
    assert "127.0.0.1:18791" in told or program == "cursor"
    text = value["text"]
    match program:
        case "codex":
            assert tomllib.loads(text)["openai_base_url"] == "http://127.0.0.1:18791/v1"
        case "opencode" | "vscode" | "zed":
            assert json.loads(text)
        case "continue":
            assert yaml.safe_load(text)["models"][0]["apiBase"] == "http://127.0.0.1:18791/v1"
        case _:
            assert value["variables"] or value["note"]


def test_a_shell_takes_the_lines(alone):
    printed = alone.does("env", "shell", "--port", "18791")
    script = f'eval "{printed}"\necho "$ANTHROPIC_BASE_URL $OPENAI_BASE_URL"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "http://127.0.0.1:18791 http://127.0.0.1:18791/v1\n"
    assert "set -gx OPENAI_BASE_URL http" in alone.does("env", "qwen", "--shell", "fish")


def test_a_program_that_is_not_known_is_wrong_usage(alone):
    _, fix = alone.fails("env", "emacs", code=2)
    assert "shell" in fix
