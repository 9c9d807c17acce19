"""A real terminal for tests: tmux on a socket of its own, typed into and read by a program.

terminal.start(["refold", "chat"])
terminal.type("hello")
terminal.press("Enter")
terminal.wait_for("You said: hello")
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from needed import need

Expected = str | re.Pattern[str] | Callable[[str], object]
"""What a screen is waited for to show: a text, a pattern, or whatever a function finds in it."""

PASSED_ON = ("COVERAGE_", "PYTHONPATH")
"""How the names of the variables begin that are not the user's, but the test run's."""
PATIENCE = 120.0
"""Seconds until a screen that does not come fails the test; only failures wait so long."""
_POLL = 0.05
_LONGEST = 4_000  # characters of one command of tmux


def require_tmux() -> None:
    """Skip the test where there is no tmux, unless there must be one."""
    need(shutil.which("tmux"), "tmux is not installed", "REFOLD_TMUX")


class Terminal:
    """One terminal of a person whose home is a folder of the test.

    Args:
        folder: Where its home and its store are; terminals of one folder share both.
        env: More variables for whatever is started.
    """

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        require_tmux()
        self._socket = f"refold-{uuid4().hex[:12]}"
        self._more = dict(env or {})
        self.home = folder / "home"
        self.store = folder / "refold.db"
        self.home.mkdir(exist_ok=True)
        self._path = Path()
        self._running = False

    def start(
        self,
        command: str | Sequence[str],
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Start a command: words as they are, or one line for a shell."""
        self.close()
        line = command if isinstance(command, str) else f"exec {shlex.join(command)}"
        # History and size count from when the pane is made, so all is set before that.
        self._tmux(
            *("start-server", ";"),
            *("set-option", "-g", "history-limit", "50000", ";"),
            *("set-option", "-g", "default-terminal", "tmux-256color", ";"),
            *("set-option", "-g", "default-shell", "/bin/sh", ";"),
            *("set-option", "-g", "remain-on-exit", "on", ";"),
            *("set-option", "-g", "status", "off", ";"),
            *("set-option", "-s", "escape-time", "0", ";"),
            *("new-session", "-d", "-x", str(columns), "-y", str(rows), line),
            env=self._environment(env or {}),
            cwd=cwd or self.home,
        )
        self._running = True
        # Tests that are killed close nothing: the server ends itself when they are gone.
        gone = f"tail --pid={os.getpid()} -f /dev/null; tmux -L {self._socket} kill-server"
        self._tmux("run-shell", "-b", gone)
        self._path = Path(self._asked("#{socket_path}"))

    def type(self, text: str) -> None:
        """Type a text, as keys; `press("Enter")` sends it."""
        for at in range(0, len(text), _LONGEST):
            piece = text[at : at + _LONGEST]
            # To tmux, a word that ends with a semicolon ends the command.
            safe = f"{piece[:-1]}\\;" if piece.endswith(";") else piece
            self._tmux("send-keys", "-l", "--", safe)

    def paste(self, text: str) -> None:
        """Paste a text, between the marks that tell a program so, if it asked for them."""
        self._tmux("load-buffer", "-", given=text)
        self._tmux("paste-buffer", "-p", "-d")

    def press(self, *keys: str) -> None:
        """Press keys by their names: Enter, Escape, Up, Tab, C-c, M-Enter."""
        self._tmux("send-keys", *keys)

    def screen(self, *, colors: bool = False) -> str:
        """What is to be seen now."""
        return self._tmux("capture-pane", "-p", *(["-e"] if colors else [])).rstrip("\n")

    def everything(self, *, colors: bool = False) -> str:
        """What is to be seen, and what was scrolled away; lines that were wrapped are whole."""
        more = ["-e"] if colors else []
        return self._tmux("capture-pane", "-p", "-J", "-S", "-", *more).rstrip("\n")

    def wait_for(
        self, expected: Expected, timeout: float = PATIENCE, *, scrolled: bool = False
    ) -> str:
        """The first screen that shows it; with `scrolled`, what was scrolled away counts, too."""
        look = self.everything if scrolled else self.screen
        ends = time.monotonic() + timeout
        while not _shows(expected, screen := look()):
            if time.monotonic() > ends:
                pytest.fail(f"The terminal never showed {_named(expected)}:\n{_framed(screen)}")
            time.sleep(_POLL)
        return screen

    def wait_for_or_end(self, expected: Expected, timeout: float = PATIENCE) -> str:
        """The first screen that shows it, or the last of a program that ended before."""
        return self.wait_for(
            lambda screen: _shows(expected, screen) or not self.alive(), timeout=timeout
        )

    def wait_until_gone(self, expected: Expected, timeout: float = PATIENCE) -> str:
        """The first screen that does not show it."""
        ends = time.monotonic() + timeout
        while _shows(expected, screen := self.screen()):
            if time.monotonic() > ends:
                pytest.fail(f"The terminal always showed {_named(expected)}:\n{_framed(screen)}")
            time.sleep(_POLL)
        return screen

    def wait_until_still(self, still: float = 0.4, timeout: float = PATIENCE) -> str:
        """The first screen that stays as it is for so many seconds."""
        ends = time.monotonic() + timeout
        before, since = self.screen(), time.monotonic()
        while time.monotonic() - since < still:
            if time.monotonic() > ends:
                pytest.fail(f"The terminal never stood still:\n{_framed(before)}")
            time.sleep(_POLL)
            if (now := self.screen()) != before:
                before, since = now, time.monotonic()
        return before

    def wait_until_ended(self, timeout: float = PATIENCE) -> int:
        """The exit code of the program, once it ended; -9 where a signal ended it."""
        ends = time.monotonic() + timeout
        while self.alive():
            if time.monotonic() > ends:
                pytest.fail(f"The program did not end:\n{_framed(self.screen())}")
            time.sleep(_POLL)
        # That it is dead may be known a moment before how it died.
        while (how := self._asked("#{pane_dead_status},#{pane_dead_signal}")) == ",":
            if time.monotonic() > ends:
                pytest.fail("The program ended, and nobody knows how.")
            os.kill(int(self._asked("#{pid}")), signal.SIGCHLD)  # tmux may have missed it
            time.sleep(_POLL)
        code, by_signal = how.split(",")
        return int(code) if code else -int(by_signal)

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller, as a person does with the mouse."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def cursor(self) -> tuple[int, int]:
        """Where the cursor is: column and row, from 0."""
        column, row = self._asked("#{cursor_x},#{cursor_y}").split(",")
        return int(column), int(row)

    def title(self) -> str:
        """What the window is named."""
        return self._asked("#{pane_title}")

    def pid(self) -> int:
        """The process that was started."""
        return int(self._asked("#{pane_pid}"))

    def kill9(self) -> None:
        """Kill it as a power cut would; waits until it is gone."""
        os.kill(self.pid(), signal.SIGKILL)
        self.wait_until_ended()

    def alive(self) -> bool:
        """Whether the program still runs."""
        # Not by the line that tmux draws on the screen: it waits for a signal that may be missed.
        return self._running and self._asked("#{pane_dead}") == "0"

    def close(self) -> None:
        """Close the terminal, and whatever runs in it."""
        if self._running:
            self._tmux("kill-server", check=False)
            self._path.unlink(missing_ok=True)  # tmux leaves it
            self._running = False

    def _asked(self, form: str) -> str:
        return self._tmux("display-message", "-p", form).strip()

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """No key, no setting and no file of who runs the tests."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        return {
            **kept,
            "PATH": path,
            "HOME": str(self.home),
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 - tmux asks for one
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "xterm-256color",
            "REFOLD_STORE": f"sqlite:///{self.store}",
            **self._more,
            **more,
        }

    def _tmux(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        given: str | None = None,
        check: bool = True,
    ) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", self._socket, "-f", "/dev/null", *words],
            capture_output=True,
            check=False,
            cwd=cwd,
            encoding="utf-8",
            env=None if env is None else dict(env),
            errors="replace",
            input=given,
            timeout=60,
        )
        if check and done.returncode:
            pytest.fail(f"tmux {words[0]} failed: {done.stderr.strip()}")
        return done.stdout


def _shows(expected: Expected, screen: str) -> object:
    if isinstance(expected, str):
        return expected in screen
    return expected.search(screen) if isinstance(expected, re.Pattern) else expected(screen)


def _named(expected: Expected) -> str:
    if isinstance(expected, re.Pattern):
        return f"/{expected.pattern}/"
    return repr(expected) if isinstance(expected, str) else getattr(expected, "__name__", "it")


def _framed(screen: str) -> str:
    return "\n".join(f"| {line}" for line in screen.splitlines())
