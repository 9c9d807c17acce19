"""The real `refold`: what it refuses, with what is wrong and the fix."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os

import pytest
from refold_commands import keep, quick, stored, terminal, text

from refold import errors


def test_a_session_that_is_not_there(terminal):
    stored(terminal, "[a]")
    assert terminal.fails("export", "[b]") == (
        "error[session-not-found]: There is no session '[b]'.",
        "The sessions here: '[a]'.",
    )


def test_a_store_that_is_not_there(terminal, text):
    what, fix = terminal.fails("export", "s")
    assert what == "error[store-not-found]: There is no store at refold.db."
    assert fix == "Name the store with --store, or in REFOLD_STORE."
    assert terminal.files() == set()
    what, fix = terminal.fails("import", "-", "--store", "sqlite:///no/x.db", given=text)
    assert what == "error[store-not-found]: There is no folder no."


def test_a_store_that_is_none(terminal, text):
    terminal.write("notes.txt", "not a database, but some text of a length that matters" * 20)
    what, _ = terminal.fails("export", "s", "--store", "sqlite:///notes.txt")
    assert what.startswith("error[not-a-store]: ")
    what, _ = terminal.fails("import", "-", "--store", "sqlite:///notes.txt", given=text)
    assert what.startswith("error[not-a-store]: ")


@pytest.mark.parametrize("address", ["nonsense", "memory:", "mysql://x/y", "sqlite:///"])
def test_an_address_that_is_none(terminal, text, address):
    what, fix = terminal.fails("import", "-", "--store", address, given=text, code=2)
    assert what.startswith("error[invalid-input]: ")
    assert "sqlite:///path/to/file.db" in fix
    assert terminal.files() == set()


@pytest.mark.parametrize(
    ("words", "next_step"),
    [
        (["forget", "s", "--span", "nonsense", "--json"], "Write it like 12 or 12-14."),
        (["forget", "s", "--span", "5-2", "--json"], "Write it like 12 or 12-14."),
        (["sessions", "--store", "nonsense", "--json"], "Use --store sqlite:///"),
        (["sessions", "--limit", "some", "--json"], "refold sessions --help"),
        (["explain", "--profile", "nope", "--json"], "Use one of balanced,"),
        (["models", "--profile", "nope", "--json"], "Use one of balanced,"),
        (["config", "--profile", "nope", "--json"], "Use one of balanced,"),
        (["config", "nope", "--json"], "`refold config` lists them"),
        (["config", "nope", "3", "--json"], "`refold config` lists them"),
        (["config", "trigger.tokens", "many", "--json"], "balanced has 100000"),
        (["config", "trigger.tokens", "9", "--unset", "--json"], "refold config KEY --unset"),
        (["config", "--unset", "--json"], "refold config KEY --unset"),
        (["export", "s", "--json"], "Name a file with -o"),
        (["export", "s", "--as", "pdf"], "Use one of jsonl,"),
        (["lab", ".", "--prices", "3,15", "--json"], "four dollar amounts"),
        (["lab", ".", "--prices", "no:model", "--json"], "four dollar amounts"),
        (["lab", ".", "--policy", "nope", "--json"], "There are: "),
        (["lab", ".", "--profile", "nope", "--json"], "Use one of balanced,"),
        (["chat", "-p", "", "--json"], "Say it with -p"),
        (["chat", "-p", "hi", "--profile", "nope", "--json"], "Use one of balanced,"),
        (["chat", "-p", "hi", "--store", "nonsense", "--json"], "Use --store sqlite:///"),
        (["chat", "-p", "hi", "-m", "http://x/v1", "--json"], "Write: -m local --base-url"),
        (
            ["chat", "-p", "hi", "-m", "anthropic:x", "--base-url", "http://x/v1", "--json"],
            "leave --base-url out",
        ),
        (["chat", "-p", "hi", "--base-url", "nonsense", "--json"], "Write it like http://"),
        (["demo", "--store", "nonsense", "--json"], "Use --store sqlite:///"),
        (["keys", "create", "--role", "king", "--json"], "Use use,"),
        (["serve", "--upstream", "nonsense", "--json"], "--upstream http://"),
        (["serve", "--upstream-key", "KEY", "--json"], "Add --upstream http://"),
        (["serve", "--metrics", "nonsense", "--json"], "Use one like"),
        (["worker", "--store", "memory:"], "--store postgresql://"),
        (["worker", "--profile", "nope"], "Use one of balanced,"),
        (["store", "migrate", "--store", "sqlite:///a.db", "--json"], "--store postgresql://"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_wrong_usage_ends_with_2_and_says_what_to_do(terminal, words, next_step):
    stored(terminal)
    done = terminal.run(*words)
    assert done.returncode == 2, done
    said = " ".join(done.stderr.replace("│", " ").split())
    assert next_step in said
    assert not done.stdout or "--json" in words
    if "--json" in words:
        error = json.loads(done.stdout)["error"]
        assert next_step in f"{error['what']} {error['fix']}"
        assert error["code"]


@pytest.mark.parametrize(
    "words",
    [
        ["show", "nobody", "--json"],
        ["lab", "nowhere", "--json"],
        ["forget", "s", "--span", "90-99", "--yes", "--json"],
        ["export", "s", "-o", "no/folder", "--json"],
    ],
    ids=" ".join,
)
def test_a_failure_of_operation_ends_with_1(terminal, words):
    stored(terminal)
    done = terminal.run(*words)
    assert done.returncode == 1, done
    error = json.loads(done.stdout)["error"]
    assert done.stderr == f"error[{error['code']}]: {error['what']}\n{error['fix']}\n"


@pytest.mark.parametrize("name", ["", " s", "x" * 201, os.fsdecode(b"\xff")])
def test_a_name_that_cannot_be(terminal, text, name):
    terminal.does("import", "-", given=text)
    for command in (
        ["export", name],
        ["import", "-", "--as", name],
        ["export", "s", "--tenant", name],
    ):
        what, fix = terminal.fails(*command, given=text)
        assert "is not a valid name for a " in what
        assert fix.startswith("Use 1 to 200 printable characters")


def test_an_address_that_is_not_text(terminal, text):
    store = os.fsdecode(b"sqlite:///\xff.db")
    what, _ = terminal.fails("import", "-", "--store", store, given=text)
    assert what.startswith("error[")


@pytest.mark.parametrize("path", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read(terminal, path):
    what, _ = terminal.fails("import", path)
    assert what.startswith(f"error[file]: {path!r}: ")
    assert terminal.files() == set()


@pytest.mark.parametrize("path", ["missing/out.jsonl", "."])
def test_a_file_that_cannot_be_written(terminal, text, path):
    terminal.does("import", "-", given=text)
    what, _ = terminal.fails("export", "s", "-o", path, "--force")
    assert what.startswith(f"error[file]: {path!r}: ")


def test_a_binary_file(terminal):
    name = terminal.write("in.jsonl", b"\x1f\x8c\x08\xff\n\xfe")
    assert terminal.fails("import", name) == (
        "error[transfer]: Line 1 of the file is not UTF-8 text.",
        "Check that it is a file that `refold export` wrote.",
    )


def damaged(text: str) -> dict[str, tuple[str, str]]:
    """Files that are not right, and what is said of them."""
    header, first, second, third, end = text.split("\n")[:-1]
    return {
        "": ("transfer", "The file is empty: it was cut short."),
        f"{header}\n{first}\n": (
            "transfer",
            "The file ends after line 2 without its last line: it was cut short.",
        ),
        f"{header}\n{first}\n{third}\n{end}\n": (
            "transfer",
            "Line 3 of the file holds entry 3 where entry 2 should be.",
        ),
        f"{header}\n{first}\ngarbage\n": (
            "transfer",
            "Line 3 of the file is not a line of an exported session.",
        ),
        '{"name": "package", "version": "1.0"}\n': (
            "transfer",
            "Line 1 of the file is not the start of an exported session.",
        ),
        header.replace(":1,", ":99,") + f"\n{first}\n{second}\n{third}\n{end}\n": (
            "written-by-newer",
            "Line 1 of the file names format 99; this Refold reads formats up to 1.",
        ),
    }


def test_a_file_that_is_not_right_imports_nothing(terminal, text):
    for given, (code, said) in damaged(text).items():
        what, fix = terminal.fails("import", "-", given=given)
        assert what == f"error[{code}]: {said}"
        assert fix
    assert terminal.files() == set()


def test_a_long_file_that_is_cut_short_imports_nothing(terminal):
    asyncio.run(keep(terminal.folder / "other.db", "s", 1000))
    text = terminal.does("export", "s", "--store", "sqlite:///other.db")
    cut = "".join(f"{line}\n" for line in text.split("\n")[:900])
    assert "cut short" in terminal.fails("import", "-", given=cut)[0]
    assert terminal.files() == {"other.db"}


def test_another_session_of_the_same_name(terminal, text):
    stored(terminal)
    before = terminal.does("export", "s")
    what, fix = terminal.fails("import", "-", given=text)
    assert what == (
        "error[session-exists]: There is another session 's' already: "
        "line 2 of the file is not in it."
    )
    assert fix == "Import it under another name: --as NAME."
    assert terminal.does("export", "s") == before


def test_no_error_speaks_of_the_programming_interface():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    fixes = {kind.code: kind.usual_fix for kind in kinds if issubclass(kind, errors.RefoldError)}
    assert len(fixes) > 40
    assert not [code for code, fix in fixes.items() if "Opened" in fix or "expected=" in fix]
