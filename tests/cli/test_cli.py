"""The real `refold`, in processes of its own: what each command does and prints."""

# ruff: noqa: F811, F401 - fixtures are imported

import gzip
import json
import subprocess
import sys
from pathlib import Path

import cli_reference
import pytest
from refold_commands import REFOLD, quick, stored, terminal, text
from typer.testing import CliRunner

from refold import __version__
from refold.cli.app import app

COMMANDS = list(cli_reference.commands())
NAMES = [
    "plain",
    "[bold]a[/bold] [1]",
    "[/]",
    "Zürich 日本語 🙂",
    "with  spaces",
    'it\'s "quoted"',
    "-x",
]


OURS = ["config", "explain", "export", "forget", "import", "models", "search", "sessions", "show"]
PRINTS_NO_DATA = {
    *(
        "down",
        "hooks install",
        "hooks preview",
        "hooks uninstall",
        "keys master-key",
        "mcp",
        "store forgotten",
    ),
    *("trust remove", "worker"),
}
"""Commands that have nothing to print as JSON, or print nothing else."""


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_has_help(terminal, option):
    said = terminal.does(option)
    assert said.startswith("Usage: refold ")
    assert max(map(len, said.splitlines())) <= 80
    assert all(f"\n  {name.split()[0]} " in said for name in COMMANDS)
    assert "Exit codes: 0 done" in said


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_needs_no_command_imports_none(option):
    asked = f"import sys; from refold.cli.app import app; app(['{option}'], standalone_mode=False)"
    printed = "print(*sorted(name for name in sys.modules if name.startswith('refold.')))"
    done = subprocess.run(
        [sys.executable, "-c", f"{asked}; {printed}"], capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert imported <= {"refold.cli", "refold.cli.app", "refold.cli.outcome", "refold.errors"} | {
        name for name in imported if name.startswith("refold.errors.")
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does_with_an_example(name):
    done = CliRunner().invoke(
        app, [*name.split(), "--help"], env={"COLUMNS": "80"}, prog_name="refold"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.output.startswith(f"Usage: refold {name} ")
    assert max(map(len, done.output.splitlines())) <= 80
    flat = " ".join(done.output.split())
    assert f"refold {name}" in flat.partition("Usage: refold")[2].partition("Example")[2]
    assert ("--json" in flat) != (name in PRINTS_NO_DATA)


def test_the_commands_around_the_chat_are_there():
    assert set(OURS) <= set(COMMANDS)


def test_the_reference_is_up_to_date():
    assert cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.render()


def test_tells_its_version(terminal):
    assert terminal.does("--version", command=REFOLD) == f"refold {__version__}\n"


@pytest.mark.parametrize(
    "wrong", [[], ["frob"], ["export"], ["export", "a", "b"], ["export", "a", "--frob"]]
)
def test_wrong_usage(terminal, wrong):
    done = terminal.run(*wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: refold ")


def test_an_import_needs_a_file_or_a_program(terminal):
    done = terminal.run("import")
    assert (done.returncode, done.stdout) == (2, "")
    assert "refold import --from claude" in done.stderr


def test_completes_commands(terminal):
    environment = {
        "_REFOLD_COMPLETE": "complete_bash",
        "COMP_WORDS": "refold ex",
        "COMP_CWORD": "1",
    }
    assert terminal.does(env=environment).split() == ["explain", "export"]


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_under_any_name(terminal, name):
    stored(terminal, name)
    exported = terminal.run("export", "-o", "out.jsonl", "--", name)
    assert exported.returncode == 0
    assert exported.stderr == f"Exported session {name!r} to 'out.jsonl': 3 entries.\n"
    there = ["--store", "sqlite:///there.db"]
    said = terminal.does("import", "out.jsonl", *there)
    assert said == f"Imported session {name!r}: 3 entries, 1 message.\n"
    assert (terminal.folder / "out.jsonl").read_text("utf-8") == terminal.does(
        "export", *there, "--", name
    )
    assert terminal.does("import", "out.jsonl", f"--as=copy of {name}", *there).startswith(
        f"Imported session {'copy of ' + name!r}: "
    )


def test_imports_from_standard_input_and_from_pipes(terminal, text):
    assert terminal.does("import", "-", given=text).startswith("Imported session 's'")
    name = terminal.write("in.jsonl", text)
    with (terminal.folder / name).open() as file:
        assert "was there already" in terminal.does("import", "-", stdin=file)
    if Path("/dev/stdin").exists():
        assert "was there already" in terminal.does("import", "/dev/stdin", given=text)


def test_imports_a_file_compressed_with_gzip(terminal, text):
    packed = gzip.compress(text.encode())
    (terminal.folder / "s.jsonl.gz").write_bytes(packed)
    assert terminal.does("import", "s.jsonl.gz").startswith("Imported session 's'")
    (terminal.folder / "cut.jsonl.gz").write_bytes(packed[:-10])
    what, _ = terminal.fails("import", "cut.jsonl.gz", "--as", "other")
    assert what == "error[file]: 'cut.jsonl.gz': its end is missing."


def test_says_what_was_there_already(terminal, text):
    name = terminal.write("in.jsonl", text)
    terminal.does("import", name)
    said = terminal.does("import", name)
    assert said == "Session 's' was there already: 3 entries, 1 message.\n"


def test_completes_what_is_there_in_part(terminal):
    stored(terminal, entries=5)
    whole = terminal.does("export", "s")
    part = "".join(f"{line}\n" for line in whole.split("\n")[:3]) + '{"entries":2}\n'
    there = ["--store", "sqlite:///there.db"]
    terminal.does("import", "-", *there, given=part)
    said = terminal.does("import", "-", *there, given=whole)
    assert said == "Completed session 's': 5 entries, 1 message; 3 entries were new.\n"
    assert terminal.does("export", "s", *there) == whole


def test_prints_the_result_as_json(terminal, text):
    assert json.loads(terminal.does("import", "-", "--json", "--as", "[x] ü", given=text)) == {
        "session": "[x] ü",
        "entries": 3,
        "messages": 1,
        "added": 3,
    }
    assert json.loads(terminal.does("import", "-", "--json", given=text))["session"] == "s"


def test_prints_a_name_that_the_locale_cannot(terminal, text):
    environment = {"PYTHONIOENCODING": "iso-8859-1"}
    said = terminal.does("import", "-", "--as=日本", given=text, env=environment)
    assert said.startswith(r"Imported session '\u65e5\u672c'")


def test_the_store_is_found_by_option_then_environment_then_folder_then_home(terminal, text):
    environment = {"REFOLD_STORE": "sqlite:///env.db"}
    nothing = {"REFOLD_STORE": ""}
    terminal.does("import", "-", given=text, env=nothing)
    own = Path(terminal.environment["XDG_DATA_HOME"]) / "refold" / "refold.db"
    assert (terminal.files(), own.exists()) == (set(), True)
    terminal.does("import", "-", given=text)
    assert terminal.files() == {"refold.db"}
    own.unlink()
    terminal.does("export", "s", env=nothing)  # from the one in this folder
    terminal.does("import", "-", "--store", "sqlite:///opt.db", given=text, env=environment)
    assert terminal.files() == {"refold.db", "opt.db"}
    terminal.does("import", "-", given=text, env=environment)
    assert terminal.files() == {"refold.db", "env.db", "opt.db"}


def test_tenants_are_apart(terminal, text):
    terminal.does("import", "-", "--tenant", "acme", given=text)
    assert terminal.does("export", "s", "--tenant", "acme") == text
    assert terminal.fails("export", "s") == (
        "error[session-not-found]: There is no session 's'.",
        "Tenant 'default' has no sessions here: check --store and --tenant.",
    )


@pytest.mark.parametrize(("module", "command"), [("typer", "--help"), ("rich", "sessions")])
def test_without_a_package_it_says_what_to_install(terminal, module, command):
    blocker = f"import sys\nsys.modules['{module}'] = None\n"
    (terminal.folder / "blocked").mkdir()
    terminal.write("blocked/sitecustomize.py", blocker)
    environment = {"PYTHONPATH": str(terminal.folder / "blocked")}
    what, fix = terminal.fails(command, env=environment)
    assert what.startswith(f"error[not-installed]: The refold command needs {module}")
    assert fix == "pip install 'refold[cli]'"


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ([], "cli"),
        (["--version"], "cli"),
        (["sessions", "--json"], "cli"),
        (["chat", "-p", "serve"], "chat"),
        (["demo"], "chat"),
        (["serve", "--port", "0"], "serve"),
        (["keys", "list"], "serve"),
        (["worker"], "cli,dbos"),
    ],
)
def test_without_the_extra_each_command_names_the_one_that_it_needs(words, extra):
    # As after `pip install 'refold[pydantic-ai]'`: nothing of the command is there.
    run = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['refold', *sys.argv[1:]]; "
        "from refold.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", run, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    what, fix = done.stderr.splitlines()
    assert what == ("error[not-installed]: The refold command needs typer, which is not installed.")
    assert fix == f"pip install 'refold[{extra}]'"


def test_typer_is_imported_only_to_run_a_command():
    check = "import sys, refold.cli, refold.log, refold.stores; sys.exit('typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_on_windows_it_says_where_it_runs():
    program = "import sys; sys.platform = 'win32'; from refold.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "WSL" in done.stderr
