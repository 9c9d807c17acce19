"""`refold import --from`: sessions of other programs, from where they keep them."""

# ruff: noqa: F811, F401 - fixtures are imported

import json
import os
import pty
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from lab_files import (
    CODEX,
    FILES,
    OPENCODE,
    claude,
    claude_said,
    lines,
    opencode_database,
    opencode_message,
    opencode_storage,
    opencode_text,
)
from refold_commands import REFOLD, quick, terminal
from terminal.provider import Provider

MOVED = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME")
OLD = 1_700_000_000


@pytest.fixture
def home(terminal):
    for name in (*MOVED, "PI_CODING_AGENT_DIR"):
        terminal.environment.pop(name, None)
    return Path(terminal.environment["HOME"])


def put(path: Path, data: bytes, modified=OLD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (modified, modified))
    return path


def report(terminal, *arguments, **options):
    return json.loads(terminal.does("import", *arguments, "--yes", "--json", **options))


def turns(count, session="s"):
    """A session of Claude Code with this many prompts and answers."""
    records = []
    for nth in range(count):
        records += [
            claude("user", f"u{nth}", f"a{nth - 1}", f"Question {nth}.", sessionId=session),
            claude_said(f"a{nth}", f"u{nth}", f"m{nth}", {"type": "text", "text": f"No. {nth}"}),
        ]
    return lines(*records)


def test_all_programs_are_read_from_where_they_keep_their_sessions(terminal, home):
    put(home / ".claude/projects/-p/s.jsonl", FILES["Claude Code"])
    put(home / ".claude/projects/-p/notes.txt", b"no session")
    put(home / ".codex/sessions/2026/01/02/rollout-s.jsonl", FILES["Codex"])
    put(home / ".copilot/session-state/s/events.jsonl", FILES["Copilot CLI"])
    put(home / ".copilot/session-state/s/rewind-file-snapshots/index.json", b'{\n"version": 1\n}')
    put(home / ".gemini/tmp/p/chats/session-s.json", FILES["Gemini CLI"])
    put(home / ".pi/agent/sessions/-p/s.jsonl", FILES["pi"])
    reports = report(terminal, "--from", "all")
    assert [one["program"] for one in reports] == ["claude", "codex", "copilot", "gemini", "pi"]
    assert [one["new"] for one in reports] == [1] * 5
    assert [one["unread"] for one in reports] == [[]] * 5
    listed = json.loads(terminal.does("sessions", "--json"))
    assert {one["origin"]["program"] for one in listed} == {one["program"] for one in reports}
    again = report(terminal, "--from", "all")
    assert [(one["unchanged"], one["messages"]) for one in again] == [(1, 0)] * 5
    found = terminal.does("search", "no such file", "--session", "claude-s")
    assert "claude-s [" in found
    assert "I go on." in terminal.does("show", "claude-s")


def test_a_moved_folder_and_a_path_are_read(terminal, home):
    put(home / "mine/projects/-p/s.jsonl", FILES["Claude Code"])
    moved = {"CLAUDE_CONFIG_DIR": str(home / "mine")}
    assert report(terminal, "--from", "claude", env=moved)[0]["new"] == 1
    file = put(home / "copy", FILES["Claude Code"])
    assert report(terminal, "--from", "claude", str(file))[0]["unchanged"] == 1
    other = put(home / "copies/other.jsonl", FILES["Codex"])
    put(home / "copies/s.jsonl", FILES["Claude Code"])
    [result] = report(terminal, "--from", "claude", str(other.parent))
    assert result["unread"] == [{"file": str(other), "why": "it is of Codex"}]
    what, _ = terminal.fails("import", "--from", "claude", str(other), "--yes")
    assert "it is of Codex" in what


def test_the_sentence_says_what_is_new(terminal, home):
    file = put(home / ".claude/projects/-p/s.jsonl", turns(2))
    command = ("import", "--from", "claude", "--yes")
    sentence = "Claude Code: 1 session (1 new, 0 grown, 0 unchanged), 4 new messages.\n"
    assert terminal.does(*command) == sentence
    put(file, turns(3))
    sentence = "Claude Code: 1 session (0 new, 1 grown, 0 unchanged), 2 new messages.\n"
    assert terminal.does(*command) == sentence
    terminal.does("forget", "claude-s", "--yes")
    assert "you forgot them: 1 session" in terminal.does(*command)
    terminal.fails("show", "claude-s")


def test_the_last_answer_waits_while_a_file_is_being_written(terminal, home):
    file = put(home / ".claude/projects/-p/s.jsonl", turns(2) + b'{"type": "us', time.time())
    [result] = report(terminal, "--from", "claude")
    assert (result["active"], result["messages"], result["broken"]) == (1, 3, 0)
    put(file, turns(2))
    [result] = report(terminal, "--from", "claude")
    assert (result["active"], result["grown"], result["messages"]) == (0, 1, 1)


@pytest.mark.parametrize(("answer", "count"), [("y", 1), ("n", 0), ("", 1)])
def test_a_person_is_asked_first(terminal, home, answer, count):
    put(home / ".claude/projects/-p/s.jsonl", FILES["Claude Code"])
    what, fix = terminal.run("import", "--from", "claude").stderr.splitlines()[-2:]
    assert ("terminal" in what, fix) == (True, "Add --yes.")
    assert not (terminal.folder / "refold.db").exists()
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = terminal.run("import", "--from", "claude", stdin=theirs, stderr=theirs, command=REFOLD)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1 - count, done
    assert "Claude Code: 1 file, 0.0 MB in ~/.claude/projects" in shown
    assert (terminal.folder / "refold.db").exists() == bool(count)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--yes",),
        ("--from", "other"),
        ("--from", "claude", "--as", "x"),
        ("--from", "all", "somewhere"),
    ],
)
def test_wrong_usage_is_explained(terminal, arguments):
    terminal.fails("import", *arguments, code=2)


@pytest.mark.usefixtures("home")
def test_a_program_without_sessions_says_how_to_name_them(terminal):
    what, fix = terminal.fails("import", "--from", "codex", "--yes")
    assert "Codex" in what
    assert "CODEX_HOME" in fix
    terminal.fails("import", "--from", "codex", "missing", "--yes")


def test_an_import_that_is_killed_is_completed_by_the_next(terminal, home):
    for nth in range(8):
        put(home / f".claude/projects/-p/s{nth}.jsonl", turns(1_500, session=f"s{nth}"), OLD + nth)
    kills = 0
    for wanted in (1, 6_000, 14_000):
        process = terminal.start("import", "--from", "claude", "--yes", command=REFOLD)
        while process.poll() is None:
            if entries(terminal.folder / "refold.db") >= wanted:
                process.send_signal(signal.SIGKILL)
                kills += process.wait() == -signal.SIGKILL
            time.sleep(0.002)
        process.communicate()
    assert kills
    assert entries(terminal.folder / "refold.db") > 0
    report(terminal, "--from", "claude")
    assert entries(terminal.folder / "refold.db") == 8 * 3_001
    [result] = report(terminal, "--from", "claude")
    assert (result["unchanged"], result["messages"]) == (8, 0)


def entries(path: Path) -> int:
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        try:
            return db.execute("SELECT count(*) FROM entries").fetchone()[0]
        except sqlite3.OperationalError:  # it is being made
            return 0


def test_hostile_files_leave_the_terminal_alone(terminal, home):
    evil = "\x1b]0;owned\x07\u202e"
    name = "evil\x1b[2J.jsonl"
    put(home / f".claude/projects/-p/{name}", b"\0" * 100)
    put(home / ".claude/projects/-p/deep.jsonl", b'{"type":"user","uuid":' + b"[" * 100_000)
    put(home / ".claude/projects/-p/none.jsonl", b"")
    record = claude("user", "u1", None, evil, cwd=evil, gitBranch=evil, sessionId=f"../{evil}")
    put(home / ".claude/projects/-p/s.jsonl", lines(record, {"type": "summary", "summary": evil}))
    done = terminal.run("import", "--from", "claude", "--yes")
    assert done.returncode == 0, done
    assert "Skipped 3 files" in done.stderr
    [result] = report(terminal, "--from", "claude")
    assert len(result["unread"]) == 3
    listed = json.loads(terminal.does("sessions", "--json"))
    assert [one["name"].isprintable() for one in listed] == [True]
    for command in (("sessions",), ("show",), ("search", "owned")):
        done = terminal.run(*command)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\u202e" not in done.stdout + done.stderr


def test_sessions_of_a_folder_are_those_of_any_program_in_it_or_below(terminal, home):
    here = terminal.folder / "project"
    (here / "src").mkdir(parents=True)
    (terminal.folder / "link").symlink_to(here)
    for nth, folder in enumerate((here, here / "src", terminal.folder / "link", f"{here}-two")):
        record = claude("user", "u1", None, "Hi", cwd=str(folder), sessionId=f"s{nth}")
        put(home / f".claude/projects/-p/s{nth}.jsonl", lines(record | {"gitBranch": "fix"}))
    record = CODEX[0] | {"payload": {"id": "c", "cwd": str(here), "git": {"branch": "main"}}}
    put(home / ".codex/sessions/c.jsonl", lines(record, *CODEX[1:]))
    report(terminal, "--from", "all")
    listed = terminal.does("sessions", "--cwd", "project", env={"COLUMNS": "140"}).splitlines()
    rows = {line.split()[0]: line for line in listed[1:]}
    assert [*rows] == ["codex-c", "claude-s2", "claude-s1", "claude-s0"]
    assert " codex " in rows["codex-c"]
    assert " main " in rows["codex-c"]
    assert " fix " in rows["claude-s0"]
    below = json.loads(terminal.does("sessions", "--cwd", "project/src", "--json"))
    assert [one["name"] for one in below] == ["claude-s1"]
    assert below[0]["origin"]["folder"] == str(here / "src")
    assert "worked in" in terminal.does("sessions", "--cwd", "link/none")
    done = terminal.run("sessions", "--cwd", "project", "--limit", "1")
    assert "refold sessions --limit 2" in done.stderr
    assert f"from claude · {here} · branch fix" in terminal.does(
        "show", "claude-s0", env={"COLUMNS": "300"}
    )


def test_what_did_not_change_is_not_read_again(terminal, home):
    file = put(home / ".claude/projects/-p/s.jsonl", turns(2))
    report(terminal, "--from", "claude")
    size = len(turns(2))
    put(file, b"x" * size)  # the same size and time: nobody looks into it
    [result] = report(terminal, "--from", "claude")
    assert (result["unchanged"], result["unread"]) == (1, [])
    [result] = report(terminal, "--from", "claude", "--store", "sqlite:///other.db")
    assert len(result["unread"]) == 1
    put(file, turns(3))
    [result] = report(terminal, "--from", "claude")
    assert result["grown"] == 1
    (terminal.folder / "refold.db").unlink()
    [result] = report(terminal, "--from", "claude")
    assert result["new"] == 1
    for state in home.rglob("imports.json"):
        state.write_text("{")
    [result] = report(terminal, "--from", "claude")
    assert result["unchanged"] == 1


def test_sessions_that_retention_would_delete_stay_out(terminal, home):
    put(home / ".claude/projects/-p/old.jsonl", turns(2))
    put(home / ".codex/sessions/new.jsonl", FILES["old Codex"], time.time() - 1_000)
    command = ("import", "--from", "all", "--yes")
    shown = terminal.does(*command, env={"REFOLD_RETENTION__DAYS": "30"})
    assert "retention.days would delete them: 1 session" in shown
    assert "Codex: 1 session (1 new" in shown
    assert "1 new" in terminal.does("import", "--from", "claude", "--yes")


def test_opencode_and_qwen_are_imported(terminal, home):
    data = {"XDG_DATA_HOME": str(home / "data")}
    path = home / "data/opencode/opencode.db"
    opencode_database(path)
    put(home / ".qwen/projects/-p/chats/s.jsonl", FILES["Qwen Code"])
    reports = report(terminal, "--from", "all", env=data)
    assert [(one["program"], one["new"]) for one in reports] == [("opencode", 1), ("qwen", 1)]
    assert "Better this." in terminal.does("show", "opencode-0hdKw8vxbpEb2j")
    more = (*OPENCODE, opencode_message("user", opencode_text("More.")))
    opencode_database(path, more, revert=None)
    opencode_database(path, session="ses_e0c3fa8f8ffeAAAAAAAAAAAAAA")
    [result] = report(terminal, "--from", "opencode", env=data)
    assert (result["grown"], result["new"]) == (1, 1)
    opencode_storage(home / "data/opencode/storage", more)
    [result] = report(terminal, "--from", "opencode", env=data)
    assert (result["unchanged"], result["messages"]) == (3, 0)
    assert len(json.loads(terminal.does("sessions", "--json"))) == 3


def test_an_imported_session_is_continued_in_a_chat(terminal, home):
    file = put(home / ".claude/projects/-p/s.jsonl", turns(2))
    report(terminal, "--from", "claude")
    server = Provider(otherwise="It was number one.")
    server.start()
    try:
        named = ("--base-url", server.url, "-m", "local")
        done = terminal.run("chat", "--resume", "claude-s", *named, "-p", "Which one?")
        assert done.returncode == 0, done
        sent = json.dumps(server.received[-1].body)
        assert "Question 1." in sent
        assert "No. 1" in sent
        done = terminal.run("chat", "mine", *named, "-p", "Hi")
        assert done.returncode == 0, done
    finally:
        server.stop()
    put(file, turns(3))
    [result] = report(terminal, "--from", "claude")
    assert (result["grown"], result["messages"]) == (1, 2)
    assert "It was number one." in terminal.does("show", "claude-s")
    assert "No. 2" in terminal.does("show", "claude-s-2")
    here = json.loads(terminal.does("sessions", "--cwd", ".", "--json"))
    assert [(one["name"], one["origin"]["program"]) for one in here] == [("mine", "refold")]


def test_an_imported_session_is_explained_for_the_agent_and_model_of_the_recording(terminal, home):
    put(home / ".claude/projects/-p/s.jsonl", turns(2))
    report(terminal, "--from", "claude")
    shown = " ".join(terminal.does("explain", "claude-s").split())
    assert "from claude ·" in shown
    assert "model claude-opus-4-5" in shown
    assert "of the window of 200,000." in shown
    explained = json.loads(terminal.does("explain", "claude-s", "--json"))
    assert explained["session"]["program"] == "claude"
    other = terminal.does("explain", "claude-s", "--model", "openai:gpt-4o")
    assert "of the window of 128,000." in " ".join(other.split())
