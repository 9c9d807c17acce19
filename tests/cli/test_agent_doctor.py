"""`refold doctor --agent`, with a program in the agent's place."""

import json
import os
import sys
from pathlib import Path

import pytest
from lab_files import FILES

from refold.cli import agent_doctor
from refold.cli.agent_doctor import checked
from refold.cli.hooks.reminder import import_session
from refold.cli.output import Row

VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
ASKING = """
import json, os, sys, urllib.error, urllib.request
if "--version" in sys.argv:
    print("9.9.9 (Claude Code)")
    sys.exit()
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Say hello."}]}).encode(),
    {"content-type": "application/json", "x-api-key": "sk-secret"},
)
try:
    urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    print(error.read())
"""
SILENT = """
import sys
print("9.9.9" if "--version" in sys.argv else "Please sign in.")
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in (*VARIABLES, "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("REFOLD_STORE", f"sqlite:///{tmp_path / 'refold.db'}")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return tmp_path


def stands_for(home: Path, name: str, script: str) -> None:
    program = home / "bin" / name
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o755)


def rows_of(home: Path, name: str = "claude") -> dict[str, Row]:
    rows = [*checked(name, f"sqlite:///{home / 'refold.db'}", "default")]
    return {row.name: row for row in rows}


def test_an_agent_that_is_not_installed_is_a_problem_with_its_command(home):
    rows = rows_of(home)
    assert rows["installed"].verdict == "problem"
    assert rows["installed"].remedy == "npm install -g @anthropic-ai/claude-code"
    assert [*rows] == ["installed"]


def test_an_agent_whose_request_arrives_is_well(home, monkeypatch):
    stands_for(home, "claude", ASKING)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    (home / "session.jsonl").write_bytes(FILES["Claude Code"])
    import_session("claude", str(home / "session.jsonl"), "s", whole=True)
    rows = rows_of(home)
    assert {row.verdict for row in rows.values()} == {"ok"}
    assert rows["version"].found == "9.9.9 (Claude Code)"
    assert rows["login"].found == "ANTHROPIC_API_KEY"
    assert rows["gateway"].found == "a request arrives, with its login (x-api-key)"
    assert "whole" in rows["sessions"].found
    assert "claude-s" in rows["recall"].found
    assert "sk-secret" not in str(rows)


def test_an_agent_whose_request_does_not_arrive_is_a_problem(home):
    stands_for(home, "claude", SILENT.replace("Please sign in.", "Segmentation fault"))
    rows = rows_of(home)
    assert rows["gateway"].verdict == "problem"
    assert "Segmentation fault" in rows["gateway"].found
    assert rows["login"].verdict == rows["sessions"].verdict == "warning"


@pytest.mark.parametrize(
    "words", ["Please sign in.", "Not logged in · Please run /login", "Missing API key: set it"]
)
def test_an_agent_that_is_not_logged_in_has_that_problem_and_no_other(home, words):
    stands_for(home, "claude", SILENT.replace("Please sign in.", words))
    rows = rows_of(home)
    assert [*rows][2:4] == ["login", "gateway"]
    assert rows["login"].verdict == "problem"
    assert words in rows["login"].found
    assert rows["login"].remedy == "Start claude and sign in, or set ANTHROPIC_API_KEY."
    assert rows["gateway"].verdict == "warning"
    assert "not checked" in rows["gateway"].found


def test_advice_is_no_version_and_a_key_that_is_set_is_not_asked_for(home, monkeypatch):
    advice = SILENT.replace('"9.9.9"', '"Agent 9.9.9.\\nRun update to check."')
    stands_for(home, "qwen", advice.replace("Please sign in.", "No auth type is selected."))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    rows = rows_of(home, "qwen")
    assert rows["version"].found == "Agent 9.9.9."
    assert rows["login"].found == "Qwen Code says: No auth type is selected."
    assert rows["login"].remedy == "Start qwen and sign in."


def test_what_cannot_pass_the_gateway_is_said_with_its_fix(home, monkeypatch):
    stands_for(home, "claude", SILENT)
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    row = rows_of(home)["gateway"]
    assert row.verdict == "problem"
    assert "Bedrock" in row.found


def test_a_subscription_is_named_and_not_shown(home):
    stands_for(home, "claude", SILENT)
    login = {"claudeAiOauth": {"accessToken": "sk-ant-oat-secret"}}
    (home / ".claude").mkdir()
    (home / ".claude" / ".credentials.json").write_text(json.dumps(login))
    row = agent_doctor._login(agent_doctor.AGENTS["claude"], agent_doctor.host_of("claude"))
    assert row.found == "a Claude subscription"
