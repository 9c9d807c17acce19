"""What an agent gets from Refold's hooks, and what the log gets; it must never notice more."""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from lab_files import FILES, OPENCODE_ID, opencode_database, opencode_message, opencode_text

from refold.cli.hooks import run
from refold.cli.hooks.reminder import LIMITS

RUN = [sys.executable, "-P", "-m", "refold.cli.hooks.run"]
PATIENCE = 240


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", run.WRAPPED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("REFOLD_STORE", f"sqlite:///{tmp_path / 'refold.db'}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_end_after", lambda _seconds: None)
    return tmp_path


def call(capsys, agent, event, path, **more):
    """What a hook prints for the agent."""
    fields = {"hook_event_name": event, "session_id": "s", "transcript_path": path and str(path)}
    run.answer(agent, {**fields, "cwd": str(Path.cwd()), **more})
    return capsys.readouterr().out


def spoken(given, agent="claude"):
    """The same by a process of its own, as agents run it; it always ends well."""
    done = subprocess.run(
        [*RUN, agent], input=given, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def compacted(capsys, agent, path, event="SessionStart", source="compact", **more):
    printed = call(capsys, agent, event, path, source=source, **more)
    output = json.loads(printed)["hookSpecificOutput"]
    assert output["hookEventName"] == event
    return output["additionalContext"]


def log_of(home: Path) -> str:
    path = home / "state" / "refold" / "hooks.log"
    return path.read_text() if path.exists() else ""


def messages(home: Path) -> int:
    store = home / "refold.db"
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as db:
        try:
            return db.execute("SELECT count(*) FROM entries WHERE kind = 'message'").fetchone()[0]
        except sqlite3.OperationalError:  # it is being made
            return 0


def transcript(home: Path, program: str) -> Path:
    path = home / "session.jsonl"
    path.write_bytes(FILES[program])
    return path


def test_after_a_compaction_claude_code_gets_the_users_words_and_the_facts(capsys, home):
    text = compacted(capsys, "claude", transcript(home, "Claude Code"))
    assert "Better this." in text
    assert "no such file" in text
    assert "a.py" in text
    assert "search WORDS --session claude-s" in text
    assert messages(home) > 5
    assert not log_of(home)


def test_after_a_compaction_codex_gets_them(capsys, home):
    text = compacted(capsys, "codex", transcript(home, "Codex"))
    assert "Better this." in text
    assert "--session codex-s" in text


def test_before_a_compaction_opencode_gets_them_for_its_summary(capsys, home):
    said = opencode_message("user", opencode_text("Ship parcel PX-9 on Friday."))
    opencode_database(home / "data/opencode/opencode.db", [said], revert=None)
    opencode_database(home / "data/opencode/opencode.db", session="ses_other")
    text = compacted(capsys, "opencode", None, "compacting", "", session_id=OPENCODE_ID)
    assert text.startswith("Copy into the summary, word for word")
    assert "Ship parcel PX-9 on Friday." in text
    assert "Fix it." not in text


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_it_is_never_longer_than_the_agent_shows(capsys, home, agent):
    turns = []
    for nth in range(400):
        words = f"Never touch module_{nth}.py of customer {nth}é. " * 4
        message = {"role": "user", "content": words}
        turns.append({"type": "user", "uuid": f"u{nth}", "sessionId": "s", "message": message})
    path = home / "session.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    limit, units = LIMITS[agent]
    text = compacted(capsys, agent, path)
    assert limit * 0.7 < units(text) <= limit
    assert "module_399.py" in text


def test_a_turn_is_brought_into_the_log_while_the_agent_goes_on(capsys, home):
    path = transcript(home, "Claude Code")
    given = {"hook_event_name": "Stop", "session_id": "s", "transcript_path": str(path)}
    assert spoken(json.dumps(given)) == ""
    end = time.monotonic() + PATIENCE
    while not messages(home) and time.monotonic() < end:
        time.sleep(0.2)
    first = messages(home)
    assert first > 5
    assert not log_of(home)
    assert compacted(capsys, "claude", path)
    assert messages(home) == first


@pytest.mark.parametrize(
    "given",
    [
        "no json",
        '{"hook_event_name": "SessionStart", "source": "compact", "transcript_path": "/nowhere/x"}',
    ],
)
def test_whatever_fails_the_agent_hears_nothing_and_the_reason_is_written_down(home, given):
    assert spoken(given) == ""
    assert log_of(home)


def test_broken_settings_of_a_project_are_no_reason_to_be_silent(capsys, home):
    (home / "refold.toml").write_text("profile = [")
    assert "Better this." in compacted(capsys, "claude", transcript(home, "Claude Code"))


def test_under_refold_wrap_nothing_is_kept_twice(capsys, home, monkeypatch):
    monkeypatch.setenv(run.WRAPPED, "1")
    path = transcript(home, "Claude Code")
    assert call(capsys, "claude", "SessionStart", path, source="compact") == ""
    assert not messages(home)


def test_a_sub_agents_hooks_do_nothing(capsys, home):
    path = transcript(home, "Claude Code")
    assert call(capsys, "claude", "SessionStart", path, source="compact", agent_id="a1") == ""


def test_a_start_without_a_compaction_adds_nothing(capsys, home, monkeypatch):
    monkeypatch.setattr(run, "_start_import", lambda *_: None)
    path = transcript(home, "Claude Code")
    assert call(capsys, "claude", "SessionStart", path, source="startup") == ""


def test_a_session_without_a_transcript_is_left_alone(capsys, home):
    assert call(capsys, "codex", "SessionStart", None, source="compact") == ""
    assert not log_of(home)


def test_the_module_that_an_agent_waits_for_imports_nothing_heavy():
    code = "import sys, refold.cli.hooks.run; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"typer", "pydantic", "asyncio", "sqlite3", "refold.log", "refold.settings"}
    assert heavy.isdisjoint(names)


WAITING = """
import fcntl
from refold.cli.hooks import run
lockf = fcntl.lockf
def announced(file, how, *place):
    lockf(file, how, *place)
    if how & fcntl.LOCK_NB:
        print("waits", flush=True)
fcntl.lockf = announced
with run._turn("s") as mine:
    print(mine)
"""
THIRD = "from refold.cli.hooks import run\nwith run._turn('s') as mine: print(mine)"
OTHER = THIRD.replace("'s'", "'another'")


@pytest.mark.usefixtures("home")
def test_one_process_works_on_a_session_and_one_more_waits():
    def printed(code):
        return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)

    with run._turn("s") as first:
        assert first
        command = [sys.executable, "-c", WAITING]
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert waiting.stdout.readline() == "waits\n"
        assert printed(THIRD).stdout == b"False\n"
        assert printed(OTHER).stdout == b"True\n"
    assert waiting.communicate(timeout=PATIENCE)[0] == "True\n"
