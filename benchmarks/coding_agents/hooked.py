"""A real agent with Refold's hooks, and its own compaction: what stands in its context afterwards.

Nothing goes through a gateway. The scripted model says once that its window is almost full, so the
agent compacts, and answers the request for a summary with one that says nothing. What the next
request holds of the user's words and of the work is counted, beside a run without hooks.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.coding_agents.clients import Client
from benchmarks.coding_agents.model import (
    SHELLS,
    TASK,
    CodingModel,
    is_summary,
    tools_of,
    words_of,
    write_project,
)
from benchmarks.coding_agents.run import served
from refold.testing.upstream import Got, Reply, RequestChecker, ScriptedUpstream

HOOKED: Final = ("claude-code", "codex", "opencode")
RULE: Final = "Never push to release-2031 without asking me first."
_CODE: Final = "PX-77142-QF"
_MISSING: Final = "notes/missing-9917.sh"
_FILE: Final = re.compile(r"notes/0\d\.md")
_FAILING: Final = 5
"""Which call reads a file that is not there."""
_TURNS: Final = (14, 10)
_FULL: Final = (9, 20)
"""After which calls the window is said to be full: within a turn, and in one that was resumed."""
_PATIENCE: Final = 300
_WINDOWS: Final = {"claude-code": 98_000, "codex": 390_000, "opencode": 395_000}
FACTS: Final[dict[str, Callable[[str], bool]]] = {
    "the user's rule, word for word": lambda text: RULE in text,
    "the user's number": lambda text: _CODE in text,
    "the path that failed": lambda text: _MISSING in text,
    "what it failed with": lambda text: "No such file" in text,
    "files that it worked on": lambda text: bool(_FILE.search(text)),
}


@dataclass
class HookedRun:
    """What came of an agent's work with or without hooks."""

    client: str
    mode: str
    kept: list[dict[str, bool]] = field(default_factory=list)
    """After each compaction, what the next request of the conversation holds."""
    added: list[int] = field(default_factory=list)
    """Characters that Refold added to it."""
    faults: list[str] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    logged: int = 0
    """Messages in Refold's log."""
    errors: str = ""
    text: str = ""
    """The newest request from where Refold's words begin."""

    @property
    def holds(self) -> bool:
        clean = not self.faults and not any(self.exits) and not self.errors
        if self.mode != "hooks":
            return clean and not any(self.added) and not self.logged
        return clean and len(self.kept) > 1 and all(all(each.values()) for each in self.kept)


@dataclass
class FullModel(CodingModel):
    """Works as the other one; its usage makes the agent compact."""

    window: int = 0
    run: HookedRun = field(default_factory=lambda: HookedRun("", ""))
    _compacted: bool = False

    def __call__(self, got: Got) -> Reply:
        if not got.body or got.path.endswith("count_tokens"):
            return Reply("")
        if is_summary(words_of(got.body)):
            self._compacted = True
            self._look(got.body, summary=True)
            return Reply(_EMPTY, usage=(1_000, 40))
        tools = tools_of(got.body)
        if not any(name in tools for name in SHELLS):  # a title
            return super().__call__(got)
        if self._compacted:
            self._compacted = False
            self._look(got.body, summary=False)
        answer = self._main_answer(tools, (2_000, 40))
        full = answer.calls and self.calls in _FULL
        return replace(answer, usage=(self.window, 40)) if full else answer

    def _look(self, body: dict[str, Any], *, summary: bool) -> None:
        """Note what a request holds; of a summary's, only what it was added."""
        text = json.dumps(body, ensure_ascii=False).replace("\\\\", "\\")
        start = text.find("[From Refold")
        if summary == (self.run.client == "opencode"):
            held = text[start:] if summary and start >= 0 else "" if summary else text
            self.run.kept.append({name: check(held) for name, check in FACTS.items()})
            self.run.text = text[start:] if start >= 0 else ""
            self.run.added.append(text.find('"}', start) - start if start >= 0 else 0)

    def _call(self, tools: dict[str, Any], nth: int) -> Any:  # noqa: ANN401 - a call
        if nth == _FAILING:
            return self._shell(tools, f"sh {_MISSING}")
        return super()._call(tools, nth)


_EMPTY: Final = "<summary>\nThe work goes on.\n</summary>"


async def work_hooked(client: Client, programs: Path, folder: Path, mode: str) -> HookedRun:
    """Let an agent work with hooks, without ("none"), or with hooks nobody reviewed ("unread")."""
    shutil.rmtree(folder, ignore_errors=True)
    home, project = folder / "home", folder / "project"
    home.mkdir(parents=True)
    write_project(project)
    run = HookedRun(client.name, mode)
    window = _WINDOWS[client.name]
    model = FullModel(str(project), _TURNS, window=window, run=run)
    checker = RequestChecker()
    async with served(ScriptedUpstream(model, checker=checker)) as provider:
        given = client.configure(home, provider, client.model)
        if client.name == "opencode":
            _opencode_compacts(home)
        environment = _environment(home, programs) | given
        environment["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
        if mode != "none":
            words = ("hooks", "install", client.command, "--yes")
            refold = [sys.executable, "-m", "refold.cli", *words]
            subprocess.run(refold, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603, ASYNC221 - our own
        prompt = f"{TASK}, note by note. The parcel that matters is {_CODE}. {RULE}"
        for turn, text in enumerate((prompt, f"{TASK}: go on with the notes that are left.")):
            arguments = client.arguments(text, turn)
            if client.name == "codex" and mode == "hooks":
                # What the user does once in /hooks.
                arguments.insert(1, "--dangerously-bypass-hook-trust")
            run.exits.append(await _turn(client, programs, arguments, folder, environment))
    (folder / "added.txt").write_text(run.text, encoding="utf-8")
    run.faults = [why for _, why in checker.faults]
    store = home / "data" / "refold" / "refold.db"
    for _ in range(30 if mode == "hooks" else 0):  # what brings a turn into the log works alone
        await asyncio.sleep(2)
        before, run.logged = run.logged, _messages(store)
        if run.logged and run.logged == before:
            break
    run.logged = _messages(store)
    log = home / "state" / "refold" / "hooks.log"
    run.errors = log.read_text(encoding="utf-8") if log.exists() else ""
    return run


def _opencode_compacts(home: Path) -> None:
    path = home / ".config" / "opencode" / "opencode.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "compaction": {"auto": True}}), encoding="utf-8")


def _environment(home: Path, programs: Path) -> dict[str, str]:
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "SHELL": "/bin/sh",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "CI": "1",
    }


async def _turn(
    client: Client, programs: Path, arguments: list[str], folder: Path, environment: dict[str, str]
) -> int:
    with (folder / "output.txt").open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            str(programs / client.command),
            *arguments,
            cwd=folder / "project",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return await asyncio.wait_for(process.wait(), _PATIENCE)
        except TimeoutError:
            return -1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _messages(store: Path) -> int:
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as db:
        [(count,)] = db.execute("SELECT count(*) FROM entries WHERE kind = 'message'").fetchall()
        return int(count)


def report_hooked(runs: list[HookedRun]) -> bool:
    """Print what came of an agent's runs; whether all of it holds."""
    print(f"\n{runs[0].client}: what the request after its own compaction holds")
    for run in runs:
        print(f"  {run.mode}: compactions {len(run.kept)}, added characters {run.added}")
        for name in FACTS:
            print(f"    {name:34}{[each[name] for each in run.kept]}")
        print(f"    messages in the log {run.logged}, refused {len(run.faults)}, exits {run.exits}")
        for line in (*run.faults[:3], *run.errors.splitlines()[:3]):
            print(f"    | {line}")
        if not run.holds:
            print("    FAILED")
    return all(run.holds for run in runs)
