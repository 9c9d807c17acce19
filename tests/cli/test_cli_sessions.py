"""`refold sessions`, `show`, `search` and `forget`, and `refold explain` without a name."""

import asyncio
import json
import shutil
import sys
from datetime import UTC, datetime, timedelta

import explain_picture
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from refold.cli import output, store
from refold.cli.app import app
from refold.cli.output import ago
from refold.cli.sessions import emphasized
from refold.log import Author, Message, Note, Opened, Origin, Requested, Span
from refold.stores import open_store
from refold.terminal_text import Piece

DAY = timedelta(days=1)


def message(role, content, **more):
    return Message(json.dumps({"role": role, "content": content, **more}).encode())


async def fill(path):
    async with open_store(f"sqlite:///{path}") as store:
        log = store.log()
        old = Author(lambda: datetime.now(UTC) - 3 * DAY)
        plan = {"profile": "copilot", "tokens": 1234}
        values = [
            Opened("openai-chat", "balanced", "日本語の題"),
            message("user", "Wo ist\x1b[31m Zürich\x07?"),
            Note("a remark"),
            Requested((Span(2, 2),), plan, "openai:gpt-4o", "d"),
        ]
        await log.append("old one", [old.draft(value) for value in values], expected=0)
        await explain_picture.write(log, "imports-7")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "refold.db"
    asyncio.run(fill(path))
    return path


@pytest.fixture(autouse=True)
def folder(filled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFOLD_STORE", "sqlite:///refold.db")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copy(filled, tmp_path)
    return tmp_path


def said(*arguments, code=0, given=None):
    done = CliRunner().invoke(app, list(arguments), input=given)
    assert done.exit_code == code, done.output
    return done.output


def told(*arguments):
    return json.loads(said(*arguments, "--json"))


def test_sessions_are_listed_last_used_first():
    head, first, second = said("sessions").splitlines()
    assert head.split() == [
        "session",
        "title",
        "last",
        "used",
        "messages",
        "tokens",
        "folds",
        "model",
        "profile",
    ]
    assert first.split()[0] == "imports-7"
    assert "just now" in first
    assert "3 days ago" in second
    assert second.split()[-4:-2] == ["17", "0"]  # of all that the next request has, not the plan's
    assert "copilot" in second
    assert max(map(cell_len, (head, first, second))) <= 80
    assert cell_len(first.partition("just")[0]) == cell_len(second.partition("3 days")[0])


@pytest.mark.parametrize("width", [30, 40, 60, 200])
def test_sessions_fit_the_terminal(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = said("sessions").splitlines()
    assert max(map(cell_len, lines)) <= max(width, 45)
    assert ("gpt-4o" in lines[2]) == (width == 200)


def test_sessions_can_be_searched_and_limited():
    assert [one["name"] for one in told("sessions", "--search", "zurich")] == ["old one"]
    assert [one["name"] for one in told("sessions", "--limit", "1")] == ["imports-7"]
    assert "There are more: refold sessions --limit 2" in said("sessions", "--limit", "1")
    assert said("sessions", "--search", "nowhere") == "No session has 'nowhere' in it.\n"
    assert said("sessions", "--tenant", "x") == "No sessions yet.\n"


def test_the_first_look_says_how_to_begin(folder, monkeypatch):
    monkeypatch.delenv("REFOLD_STORE")
    (folder / "refold.db").unlink()
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "nothing"))  # as on the first day
    empty = CliRunner().invoke(app, ["sessions"])
    assert (empty.exit_code, empty.stdout) == (0, "No sessions yet.\n")
    assert "Begin one with `refold chat`" in empty.stderr
    assert json.loads(said("sessions", "--json")) == []
    for command in ("show", "explain", "search x"):
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 1
        assert done.stderr.startswith("error[session-not-found]: There is no session yet.\nBegin")
    assert told("sessions", "--tenant", "x") == []


def test_sessions_as_json():
    first, second = told("sessions")
    assert (first["folds"], first["messages"]) == (1, 22)
    assert first["last_request"] == {"model": None, "profile": "balanced"}
    assert second["last_request"] == {"model": "openai:gpt-4o", "profile": "copilot"}
    assert (first["tokens"], second["tokens"]) == (None, 17)
    assert datetime.fromisoformat(second["updated_at"]).tzinfo is not None


async def grow_a_tree():
    """A fork of a fork, and a sub-agent's session that was used last."""
    async with open_store("sqlite:///refold.db", create=False) as store:
        log = store.log()
        await log.fork("old one", "fork", at=2)
        await log.fork("fork", "fork of it", at=2)
        origin = Origin("claude", parent="old one")
        opened = Opened("openai-chat", "balanced", "Find it", origin=origin)
        values = [opened, message("user", "Find it.")]
        await log.append("agent", [Author().draft(value) for value in values], expected=0)


def test_forks_and_sub_agents_stand_beneath_what_began_them():
    asyncio.run(grow_a_tree())
    head, *rows = said("sessions", "--tree").splitlines()
    assert head.split()[:2] == ["session", "relation"] or "relation" in head
    cells = [row.split() for row in rows]
    assert [row[0] for row in cells].count("└") == 3
    assert cells[0][0] == "old"  # its tree has the session that was used last
    listed = told("sessions", "--tree")
    by_name = {row["name"]: (row["depth"], row["relation"]) for row in listed}
    assert by_name == {
        "old one": (0, None),
        "fork": (1, "fork"),
        "fork of it": (2, "fork"),
        "agent": (1, "sub-agent"),
        "imports-7": (0, None),
    }
    names = [row["name"] for row in listed]
    assert names.index("fork of it") == names.index("fork") + 1


def test_a_tree_has_the_sessions_above_those_that_are_listed():
    asyncio.run(grow_a_tree())
    [above, below] = told("sessions", "--tree", "--limit", "1")
    assert (above["name"], below["name"]) == ("old one", "agent")
    assert "relation" not in told("sessions")[0]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3 * 60, "3 minutes ago"),
        (3600, "1 hour ago"),
        (86_399, "23 hours ago"),
        (86_400, "1 day ago"),
        (30 * 86_400, "30 days ago"),
        (31 * 86_400, "1970-01-02"),
    ],
)
def test_how_long_ago(seconds, words):
    assert ago(86_400_000, 86_400_000 + seconds * 1000) == words


def test_show_reads_as_a_person_would():
    text = said("show", "imports-7")
    assert text.startswith("The nightly import\nimports-7 · 22 messages · last used just now")
    assert "── Conversation Compacted: 6 messages → 21 tokens\n" in text
    assert "Find out why." not in text
    assert "Delete their files." not in text
    assert "── Rewound: 2 messages no longer in the conversation\n" in text
    assert "  → search pattern=no time zone ← 4,754 characters\n" in text
    assert "  → run_import branch=vilnius ← no result\n" in text
    assert text.count("← 4,754") == 1
    assert max(map(cell_len, text.splitlines())) <= 80


def test_show_all_opens_what_is_folded():
    text = said("show", "imports-7", "--all")
    assert "│   The nightly import fails since Tuesday. Find out why.\n" in text
    assert "│   Delete their files.\n" in text
    assert "\n  Stop, that is enough. Did Riga work?\n" in text


def test_show_last():
    text = said("show", "--last", "2")
    assert "earlier ones are left out; there are 22 messages in all" in text
    assert [line for line in text.splitlines() if line.endswith("]")] == [
        "assistant  just now  [26]",
        "user  just now  [27]",
    ]
    # A result whose call is not shown says what it is of.
    result = said("show", "--last", "3")
    assert "← run_import: 2,789 characters" in result
    assert said("show", "--last", "999") == said("show")


def test_show_as_json():
    shown = told("show", "imports-7")
    assert shown["session"]["name"] == "imports-7"
    [fold] = [one for one in shown["items"] if one["type"] == "fold"]
    assert (fold["messages_removed"], fold["tokens_removed"]) == (6, 2857)
    assert fold["spans"] == [[3, 8]]
    every = told("show", "imports-7", "--all")["items"]
    assert sum(one["type"] == "message" for one in every) == 22
    assert [one["depth"] for one in every if one["type"] == "message"][:3] == [0, 1, 1]
    assert [one["how"] for one in every if one["type"] == "aside"] == ["rewound"]


def test_what_was_said_does_not_steer_the_terminal():
    for text in (said("show", "old one"), said("search", "zurich")):
        assert "Wo ist Zürich?" in text
        assert not set(text) & {"\x1b", "\x07"}


def test_search_finds_in_all_sessions_and_in_one():
    text = said("search", "time zones")
    assert "imports-7 [8] · assistant · just now · folded\n" in text
    # Not what only stands beside it.
    zones = [one["excerpt"].lower() for one in told("search", "time zone")]
    assert [one for one in zones if "time" not in one and "zone" not in one] == []
    assert [one["session"] for one in told("search", "Zürich")] == ["old one"]
    [found] = told("search", "remark")
    assert (found["session"], found["seq"], found["role"]) == ("old one", 3, "note")
    assert len(told("search", "import", "--limit", "2")) == 2
    assert told("search", "Zürich", "--session", "imports-7") == []
    nothing = said("search", "Zürich", "--session", "imports-7")
    assert nothing == "Nothing in session 'imports-7' answers 'Zürich'.\n"
    assert "The sessions here" in said("search", "x", "--session", "nope", code=1)


@pytest.mark.parametrize(
    ("line", "strong"),
    [
        ("no time zone, Timezone", ["time", "zone"]),
        ("Zürich-Nord: ZÜRICH", ["Zürich", "ZÜRICH"]),
        ("nothing", []),
    ],
)
def test_the_match_is_emphasized(line, strong):
    pieces = list(emphasized(line, frozenset({"time", "zone", "zurich"})))
    assert "".join(piece.text for piece in pieces) == line
    assert [piece.text for piece in pieces if piece.tone] == strong


def test_forget_needs_a_terminal_or_yes():
    text = said("forget", "imports-7", code=1)
    assert text.endswith("cannot be undone.\nAdd --yes if you are sure.\n")
    assert len(told("sessions")) == 2


@pytest.fixture
def asked(monkeypatch):
    """As on a terminal, where somebody answers."""
    monkeypatch.setattr(store, "can_ask", lambda: True)


@pytest.mark.usefixtures("asked")
def test_forget_says_what_would_go_and_asks():
    text = said("forget", "imports-7", given="n\n", code=1)
    assert "  All of session 'imports-7' (The nightly import): 22 messages.\n" in text
    assert text.endswith("Nothing was forgotten.\n")
    assert len(told("sessions")) == 2
    assert "Forgot session 'imports-7': " in said("forget", "imports-7", given="y\n")
    assert [one["name"] for one in told("sessions")] == ["old one"]
    assert "It is gone already." in said("forget", "imports-7", "--yes", code=1)


@pytest.mark.usefixtures("asked")
def test_forget_interrupted_at_the_question_forgets_nothing():
    assert "Interrupted." in said("forget", "imports-7", code=130)
    assert len(told("sessions")) == 2


def test_forget_a_span():
    gone = told("forget", "imports-7", "--span", "3-4", "--yes")
    # A request record, and the title: "The nightly import" are the first words of entry 3.
    assert gone == {"session": "imports-7", "entries": 2, "derived": 2, "to_scrub": []}
    assert said("show", "imports-7").count("(forgotten)") == 2
    assert not {one["seq"] for one in told("search", "Tuesday")} & {3, 4}
    again = said("forget", "imports-7", "--span", "3-4", "--yes", code=1)
    assert "Nothing is left at 3-4" in again


@pytest.mark.parametrize("span", ["0-3", "4-2", "a-b", "-3", "1-", "9" * 30])
def test_forget_refuses_what_is_no_span(span):
    assert "Write it like 12 or 12-14." in said(
        "forget", "imports-7", f"--span={span}", "--yes", code=2
    )


def test_without_a_name_the_session_used_last():
    assert said("show") == said("show", "imports-7")
    assert told("explain")["session"]["name"] == "imports-7"
    assert "Tenant 'x' has no sessions here" in said("explain", "--tenant", "x", code=1)


class Screen:
    """Standard output that is a terminal."""

    encoding = "utf-8"

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass


def on_a_screen(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def test_colors_only_where_they_are_wanted(monkeypatch):
    screen = on_a_screen(monkeypatch)
    output.print_lines([[Piece("a", "strong"), Piece("b")]])
    assert screen.text.startswith("\x1b[1ma")
    screen.text = ""
    monkeypatch.setenv("NO_COLOR", "1")
    output.print_lines([[Piece("a", "strong"), Piece("b")]])
    assert screen.text == "ab\n"


def test_pages_only_what_does_not_fit(monkeypatch):
    screen = on_a_screen(monkeypatch)
    paged = []
    monkeypatch.setattr("pydoc.pager", paged.append)
    monkeypatch.setenv("LESS", "-R")
    few, many = [[Piece("line")]] * 9, [[Piece("line", "strong")]] * 10
    output.print_lines(few, paged=True)
    output.print_lines(many)
    assert paged == []
    output.print_lines(many, paged=True)
    assert paged[0].count("\x1b[1mline") == 10
    monkeypatch.setenv("NO_COLOR", "1")
    output.print_lines(many, paged=True)
    assert paged[1] == "line\n" * 10
    assert screen.text.count("line") == 19
