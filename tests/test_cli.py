"""The real `refold`, in processes of its own."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import cli_reference
import pytest
from forked_commands import forked_commands
from typer.testing import CliRunner

from refold import __version__
from refold.cli.app import app
from refold.log import Author, Message, Note, Opened
from refold.stores import open_store

REFOLD = [sys.executable, "-m", "refold.cli"]
PLAIN = {"PYTHONUTF8": "1", "COLUMNS": "80"}
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


class Terminal:
    """Runs `refold` in a folder of its own."""

    def __init__(self, folder: Path, quick: Path) -> None:
        self.folder = folder
        self._quick = [str(quick / "refold")]
        home = folder.parent / f"home of {folder.name}"  # no test may write into a real one
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("REFOLD_")
        } | {
            **PLAIN,
            "REFOLD_STORE": "sqlite:///refold.db",
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"),
        }

    def start(self, *arguments: str, command=REFOLD, **options) -> subprocess.Popen[str]:
        environment = self.environment | options.pop("env", {})
        streams = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env=environment,
            text=True,
            encoding="utf-8",
            # A shell that runs the tests in its background has taught them to ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
            **{"stdin": subprocess.DEVNULL, **streams, **options},
        )

    def run(self, *arguments: str, given: str | None = None, **options):
        # What Python itself is told, and how it ends, only a new one shows.
        told = any(name.startswith("PYTHON") for name in options.get("env", ()))
        command = REFOLD if told or "stdout" in options else self._quick
        options = {"command": command, **options}
        if given is not None:
            options["stdin"] = subprocess.PIPE
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(given, timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def does(self, *arguments: str, **options) -> str:
        """What a command prints that succeeds."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def fails(self, *arguments: str, **options) -> tuple[str, str]:
        """What went wrong and the fix, of a command that ends with an error of ours."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stdout) == (1, ""), done
        what, fix, *more = done.stderr.splitlines()
        assert (more, what[:6]) == ([], "error["), done.stderr
        return what, fix

    def write(self, name: str, text: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return name

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture(scope="module")
def quick():
    with forked_commands(os.environ | PLAIN) as folder:
        yield folder


@pytest.fixture
def terminal(tmp_path, quick) -> Terminal:
    return Terminal(tmp_path, quick)


async def keep(path: Path, session: str, entries: int = 3, tenant: str = "default") -> None:
    author = Author()
    drafts = [author.draft(Opened("openai-chat", "balanced", "Parcels"))]
    drafts += [author.draft(Message(b'{\n"role": "user", "content": "Wo?\\u00fc"}'))]
    drafts += [author.draft(Note(f"note {n} " + "ü\u2028" * 50)) for n in range(entries - 2)]
    async with open_store(f"sqlite:///{path}") as store:
        await store.log(tenant).append(session, drafts, expected=0)


def stored(terminal: Terminal, session: str = "s", entries: int = 3, **options) -> None:
    asyncio.run(keep(terminal.folder / "refold.db", session, entries, **options))


@pytest.fixture
def text(terminal) -> str:
    """An exported session of three entries, `s`; the store it came from is gone."""
    asyncio.run(keep(terminal.folder / "other.db", "s"))
    text = terminal.does("export", "s", "--store", "sqlite:///other.db")
    for name in terminal.files():
        (terminal.folder / name).unlink()
    return text


OURS = ["config", "explain", "export", "forget", "import", "models", "search", "sessions", "show"]
PRINTS_NO_DATA = {"keys master-key", "worker"}
"""Commands that have nothing to print as JSON."""


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_has_help(terminal, option):
    said = terminal.does(option)
    assert said.startswith("Usage: refold ")
    assert max(map(len, said.splitlines())) <= 80
    assert all(f"\n  {name.split()[0]} " in said for name in COMMANDS)
    assert "Exit codes: 0 done" in said


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
    "wrong", [[], ["frob"], ["export"], ["import"], ["export", "a", "b"], ["export", "a", "--frob"]]
)
def test_wrong_usage(terminal, wrong):
    done = terminal.run(*wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: refold ")


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


def test_a_file_is_not_replaced_unasked(terminal, text):
    terminal.does("import", "-", given=text)
    terminal.write("out.jsonl", "precious")
    assert terminal.fails("export", "s", "-o", "out.jsonl") == (
        "error[transfer]: There is a file 'out.jsonl' already.",
        "Choose another name, or add --force.",
    )
    assert (terminal.folder / "out.jsonl").read_text() == "precious"
    assert terminal.run("export", "s", "-o", "out.jsonl", "--force").returncode == 0
    assert (terminal.folder / "out.jsonl").read_text("utf-8") == text
    assert terminal.files() == {"refold.db", "out.jsonl"}


def test_a_link_stays_a_link(terminal, text):
    terminal.does("import", "-", given=text)
    terminal.write("real.jsonl", "old")
    (terminal.folder / "link.jsonl").symlink_to("real.jsonl")
    assert terminal.run("export", "s", "-o", "link.jsonl", "--force").returncode == 0
    assert (terminal.folder / "link.jsonl").is_symlink()
    assert (terminal.folder / "real.jsonl").read_text("utf-8") == text


def test_a_device_is_written_and_never_replaced(terminal, text):
    terminal.does("import", "-", given=text)
    assert terminal.run("export", "s", "-o", os.devnull, "--force").returncode == 0
    assert Path(os.devnull).is_char_device()


def test_a_new_file_has_the_usual_permissions(terminal, text):
    terminal.does("import", "-", given=text)
    terminal.run("export", "s", "-o", "out.jsonl")
    plain = terminal.folder / terminal.write("plain", "")
    assert (terminal.folder / "out.jsonl").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("target", ["new.jsonl", "old.jsonl"])
def test_a_failed_export_leaves_no_file_and_no_half_one(terminal, target):
    stored(terminal, entries=3)
    terminal.write("old.jsonl", "precious")
    before = terminal.files()
    terminal.fails("export", "nope", "--force", "-o", target)
    assert terminal.files() == before
    assert (terminal.folder / "old.jsonl").read_text() == "precious"


def test_a_full_disk(terminal, text):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full disk to offer")
    terminal.does("import", "-", given=text)
    with Path("/dev/full").open("w") as full:
        done = terminal.run("export", "s", stdout=full)
    assert done.returncode == 1
    assert (
        done.stderr
        == "error[file]: No space left on device.\nFree some disk space and try again.\n"
    )


def test_a_closed_pipe_ends_quietly(terminal):
    stored(terminal, entries=3000)
    command = f"{shlex.join(REFOLD)} export s | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=terminal.folder,
        env=terminal.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ('{"refold":1,"session":"s"}\n141\n', "")


def test_a_closed_output(terminal, text):
    terminal.does("import", "-", given=text)
    command = f"{shlex.join(REFOLD)} export s >&-"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=terminal.folder,
        env=terminal.environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "error[file]: 'standard output': It is closed.",
    )


def test_an_interrupt_while_it_waits_for_input(terminal):
    with terminal.start("import", "-", stdin=subprocess.PIPE) as process:
        wait_until_it_reads(process)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)  # while its input is still open
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "\nInterrupted.\n")
    assert terminal.files() == set()


def test_an_interrupt_while_it_writes_leaves_no_file(terminal):
    stored(terminal, entries=30_000)
    before = terminal.files()
    with terminal.start("export", "s", "-o", "out.jsonl") as process:
        until = time.monotonic() + 60
        while not any(name.endswith(".part") for name in terminal.files()):
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "\nInterrupted.\n")
    assert terminal.files() == before


def wait_until_it_reads(process: subprocess.Popen[str]) -> None:
    """Fill the pipe: it is empty again only when the command reads from it."""
    assert process.stdin
    os.write(process.stdin.fileno(), b"\n" * 65536)
    os.write(process.stdin.fileno(), b"\n")
    time.sleep(0.2)


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
    what, fix = terminal.fails("import", "-", "--store", address, given=text)
    assert what.startswith("error[invalid-input]: ")
    assert "sqlite:///path/to/file.db" in fix
    assert terminal.files() == set()


@pytest.mark.parametrize("name", ["", " s", "x" * 201, os.fsdecode(b"\xff")])
def test_a_name_that_cannot_be(terminal, text, name):
    terminal.does("import", "-", given=text)
    for command in (
        ["export", name],
        ["import", "-", "--as", name],
        ["export", "s", "--tenant", name],
    ):
        what, fix = terminal.fails(*command, given=text)
        assert "is no name for a " in what
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
    assert what.startswith(("error[file]: 'missing': ", "error[file]: '.': "))


def test_a_binary_file(terminal):
    name = terminal.write("in.jsonl", b"\x1f\x8b\x08\xff\n\xfe")
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
            "Line 1 of the file does not begin an exported session.",
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


def test_without_typer_it_says_what_to_install(terminal):
    blocker = "import sys\nsys.modules['typer'] = None\n"
    (terminal.folder / "blocked").mkdir()
    terminal.write("blocked/sitecustomize.py", blocker)
    environment = {"PYTHONPATH": str(terminal.folder / "blocked")}
    what, fix = terminal.fails("--help", env=environment)
    assert what == "error[not-installed]: The refold command needs typer, which is not installed."
    assert fix == "pip install 'refold[cli]'"


def test_typer_is_imported_only_to_run_a_command():
    check = "import sys, refold.cli, refold.log, refold.stores; sys.exit('typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
