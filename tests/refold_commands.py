"""The real `refold`, in processes and folders of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forked_commands import forked_commands

from refold.log import Author, Message, Note, Opened
from refold.stores import open_store

REFOLD = [sys.executable, "-m", "refold.cli"]


PLAIN = {"PYTHONUTF8": "1", "COLUMNS": "80"}


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
            try:
                out, err = process.communicate(given, timeout=240)
            except BaseException:
                process.kill()  # else leaving the block waits for it without end
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def does(self, *arguments: str, **options) -> str:
        """What a command prints that succeeds."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def fails(self, *arguments: str, code: int = 1, **options) -> tuple[str, str]:
        """What went wrong and the fix, of a command that ends with an error of ours."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stdout) == (code, ""), done
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
