"""How the command starts: what it costs, and what it leaves alone until it is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminal.provider import Provider

from refold.cli.options import TENANT
from refold.log import DEFAULT_TENANT

REFOLD = str(Path(sys.executable).with_name("refold"))
BESIDE = [sys.executable, "-c", "import pydantic_ai"]
ROUNDS = 5
HELD = """
import importlib.abc, os, sys, time

class Gate(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "pydantic_ai":
            while not os.path.exists({gate!r}):
                time.sleep(0.02)

sys.meta_path.insert(0, Gate())
"""


def processor_time(command: list[str]) -> float:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def test_version_and_help_take_a_quarter_of_what_importing_pydantic_ai_takes():
    commands = {"beside": BESIDE, "--version": [REFOLD, "--version"], "--help": [REFOLD, "--help"]}
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):  # in turn: other work on the machine slows all of them
        for name, command in commands.items():
            best[name] = min(best[name], processor_time(command))
    assert best["--version"] <= 0.25 * best["beside"]
    assert best["--help"] <= 0.25 * best["beside"]


def test_a_prompt_needs_no_terminal_no_command_and_no_other_provider(tmp_path):
    provider = Provider()
    url = provider.start()
    words = ("chat", "-m", "local", "--base-url", url, "-p", "hi", "--store", "sqlite:///a.db")
    try:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "refold.cli", *words],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        provider.stop()
    assert done.stdout == "You said: hi\n"
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "openai" in imported
    for name in ("anthropic", "google.genai", "mcp", "fastmcp", "prompt_toolkit", "markdown_it"):
        assert name not in imported
    for name in ("commands", "plain", "terminal"):
        assert f"refold.cli.chat.{name}" not in imported


@pytest.mark.parametrize("surface", ["terminal.terminal", "plain"])
def test_a_chat_takes_lines_before_anything_heavy_is_imported(surface):
    imports = f"import sys, refold.cli.chat.run, refold.cli.chat.{surface}"
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(done.stdout.split())
    assert not imported & {"pydantic_ai", "pydantic", "openai", "refold.log", "refold.session"}


def test_the_tenant_of_the_options_is_that_of_the_log():
    assert TENANT == DEFAULT_TENANT


@pytest.mark.parametrize("surface", [(), ("--plain",)])
def test_what_is_typed_while_the_chat_gets_ready_is_sent(talk, tmp_path, surface):
    gate = tmp_path / "open"
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sitecustomize.py").write_text(HELD.format(gate=str(gate)))
    path = os.pathsep.join([str(tmp_path / "held"), os.environ.get("PYTHONPATH", "")])
    words = ["refold", "chat", "--base-url", talk.provider.url, "-m", "local", *surface]
    env = {"REFOLD_STORE": f"sqlite:///{talk.store}", "PYTHONPATH": path}
    talk.terminal.start(words, env=env)
    screen = talk.terminal.wait_for("Getting ready")
    assert surface or "›" in screen  # noqa: RUF001 - the chat's own mark
    talk.type("too early")
    talk.terminal.wait_for("too early" if surface else "queued: too early")
    assert "local:scripted" not in talk.terminal.everything()
    gate.touch()
    talk.terminal.wait_for("You said: too early")
    assert "Getting ready …" not in talk.terminal.screen()
