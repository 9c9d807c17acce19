"""Chats in real terminals: started once, and talked with by one test after another.

chat.start()
chat.provider.script += ["Good morning."]
chat.say("hello", "Good morning.")
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from requirement_report import ran
from syrupy.assertion import SnapshotAssertion
from syrupy.exceptions import SnapshotDoesNotExist
from terminal.provider import Provider
from terminal.steady import steady
from terminal.tmux import PASSED_ON, PATIENCE, Expected, Terminal

PROMPT = "› "  # noqa: RUF001 - the chat's own mark
_START = 120.0
"""Seconds until a chat that does not start fails the test."""
_STILL = 0.4
_REST = 20.0
"""Seconds after which a chat that one test left is not waited for by the next."""
REFOLD = str(Path(sys.executable).with_name("refold"))


class Talk:
    """A chat in a terminal, and who answers in it."""

    def __init__(self, terminal: Terminal, provider: Provider) -> None:
        self.terminal = terminal
        self.provider = provider
        self.store = terminal.home / "refold.db"

    def start(
        self,
        *more: str,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> str:
        """Start it, and wait until it can be talked with; the screen then."""
        words = ["refold", "chat", "--base-url", self.provider.url, "-m", "local", *more]
        # Named by the home, a store has the same name in every run.
        more_env = {"REFOLD_STORE": f"sqlite:///{self.store}", **(env or {})}
        self.terminal.start(words, columns, rows, more_env, cwd)
        self.terminal.wait_for_or_end(is_idle, timeout=_START)
        assert self.terminal.alive(), self.terminal.screen()
        return self.terminal.screen()

    def type(self, line: str) -> None:
        """Type a line and send it."""
        ran("chat")
        self.terminal.type(line)
        self.terminal.press("Enter")

    def say(self, line: str, *shown: Expected) -> str:
        """Send a line; the screen that shows all of it, when nothing goes on any more."""
        self.type(line)
        for wanted in shown:
            self.terminal.wait_for(wanted)
        self.idle()
        return self.terminal.screen()

    def run(self, command: str, *shown: Expected) -> str:
        """Send a command on an empty screen; the screen with what it said, and nothing else."""
        self.empty()
        return self.say(command, *shown)

    def empty(self) -> None:
        """Scroll everything away; what was still being printed, too."""
        ends = time.monotonic() + PATIENCE
        while not is_empty(self.settled()):
            if time.monotonic() > ends:
                pytest.fail(f"The screen was never empty:\n{self.terminal.screen()}")
            self.terminal.press("C-l")

    def idle(self) -> str:
        """The first screen where nothing goes on."""
        return self.terminal.wait_for(is_idle)

    def rests(self) -> bool:
        """Whether it waits for what one types next; not where a test failed in mid-answer."""
        if not self.terminal.alive():
            return False
        with suppress(pytest.fail.Exception):
            self.terminal.wait_for(lambda one: is_idle(one) and PROMPT in one, timeout=_REST)
            return True
        return False

    def settled(self) -> str:
        """The first screen that stays as it is, but for what turns and counts by itself."""
        ends = time.monotonic() + PATIENCE
        before, since = self.steady(), time.monotonic()
        while time.monotonic() - since < _STILL:
            if time.monotonic() > ends:
                pytest.fail(f"The terminal never settled:\n{before}")
            time.sleep(0.05)
            if (now := self.steady()) != before:
                before, since = now, time.monotonic()
        return self.terminal.screen()

    def shows(self, snapshot: SnapshotAssertion) -> None:
        """Fail unless the screen becomes what the snapshot holds; what comes late is waited for."""
        kept = None
        with suppress(SnapshotDoesNotExist):
            kept = snapshot.session.recall_snapshot(
                snapshot.extension, snapshot.test_location, snapshot.index
            )
        shown = ""
        with suppress(pytest.fail.Exception):
            shown = self.terminal.wait_for(
                lambda screen: snapshot.extension.serialize(self.steady(screen)) == kept,
                timeout=_REST if kept else 0,
            )
        assert self.steady(shown or self.settled()) == snapshot

    def leave(self) -> str:
        """Leave it; the command that comes back."""
        self.terminal.press("C-c")
        self.terminal.wait_for("Press Ctrl-C again to leave.")
        self.terminal.press("C-c")
        assert self.terminal.wait_until_ended() == 0
        [hint] = re.findall(r"Come back with: refold chat (.+)", self.terminal.everything())
        return hint.strip()

    def steady(self, screen: str | None = None) -> str:
        """The screen as it is in every run."""
        shown = self.terminal.screen() if screen is None else screen
        shown = re.sub(r"(?<=[a-z]-)[0-9a-f]{4}\b", "<hex>", shown)
        shown = re.sub(r"\b\d{4}-\d\d-\d\d-[0-9a-f]{6}\b", "<name>", shown)
        # How full it is depends on which tests ran before in the same chat.
        shown = re.sub(r"(~|system |tools |talk |folds )[\d.]+k?", r"\1<n>", shown)
        shown = re.sub(r"[█▏▎▍▌▋▊▉░]{10}", "<bar>", shown)
        shown = re.sub(r"\b[\d.,]+k?(?= (?:tokens?|now|then|→))", "<n>", shown)
        # Where the note stands that says which model answers depends on how quick the store is.
        shown = re.sub(r"(?m)^ +\d+(?=  +\S)", "  #", shown)
        shown = steady(shown, {str(self.terminal.home): "~", self.provider.url: "<url>"})
        return re.sub(r"  +((?:\S+ · )?<ago>)", r"  \1", shown)  # it ends at the right


def is_idle(screen: str) -> bool:
    """Whether the last line is the status of a chat that waits."""
    lines = screen.splitlines()
    return bool(lines) and lines[-1].startswith(("local:", "openai:"))


def is_empty(screen: str) -> bool:
    """Whether there is the prompt, and nothing above it."""
    lines = [line for line in screen.splitlines() if line.strip()]
    return len(lines) == 2 and lines[0].strip() == PROMPT.strip()


def whole(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every call has its return, right after it, and no return is without a call."""
    waiting: list[str] = []
    for one in messages:
        if one["role"] == "tool":
            if one["tool_call_id"] not in waiting:
                return False
            waiting.remove(one["tool_call_id"])
        elif waiting:
            return False
        waiting += [call["id"] for call in one.get("tool_calls") or ()]
    return not waiting


def settings(talk: Talk, text: str) -> None:
    """The person's own settings."""
    folder = talk.terminal.home / ".config" / "refold"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, "utf-8")


def piped(
    talk: Talk, *words: str, given: str = "", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """`refold …` without a terminal."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    own = {
        "HOME": str(talk.terminal.home),
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "REFOLD_STORE": f"sqlite:///{talk.store}",
    }
    return subprocess.run(
        [REFOLD, *words],
        capture_output=True,
        check=False,
        cwd=talk.terminal.home,
        encoding="utf-8",
        env={**kept, **own, **(env or {})},
        input=given,
        timeout=120,
    )


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Talk]]:
    """`talks()`: another person with a provider; `talks(talk)`: another terminal of that one."""
    with ExitStack() as stack:

        def made(of: Talk | None = None, **about: Any) -> Talk:
            if of is not None:
                return Talk(
                    stack.enter_context(closing(Terminal(of.terminal.home.parent))), of.provider
                )
            provider = Provider(**about)
            provider.start()
            stack.callback(provider.stop)
            folder = tmp_path_factory.mktemp("person")
            return Talk(stack.enter_context(closing(Terminal(folder))), provider)

        yield made


@pytest.fixture
def talk(talks: Callable[..., Talk]) -> Talk:
    """A person with a provider and a terminal, for one test."""
    return talks()
