"""A real agent under `refold wrap`: a long task that needs a fact from before the first fold.

The fact is shown once, in the first file that is read. Many calls and some folds later the model is
asked for it. Then it is in no request, and the model, which knows nothing by itself, finds it with
the recall tools that the agent shows it.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.coding_agents.clients import Client
from benchmarks.coding_agents.model import (
    TASK,
    CodingModel,
    is_main,
    is_summary,
    words_of,
    write_project,
)
from benchmarks.coding_agents.run import served
from refold.log import CODEC, FoldCompleted, Message
from refold.stores.sqlite import SqliteStore
from refold.testing.upstream import (
    Call,
    Got,
    Rendered,
    Reply,
    RequestChecker,
    ScriptedUpstream,
)

TURNS: Final = (22, 22, 22)
WRAP: Final = (sys.executable, "-m", "refold.cli", "wrap")
QUESTION: Final = "On which shelf does parcel 41 stand?"
SHELF: Final = "shelf 90417"
_PATIENCE: Final = 900
_ROWS: Final = 60


@dataclass
class WrappedRun:
    """What came of an agent's work under `refold wrap`."""

    client: str
    calls: int = 0
    requests: int = 0
    folds: int = 0
    sessions: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    in_view: int = 0
    """In how many requests after the first fold, and before the model looked, the fact was."""
    recalled: bool = False
    answered: bool = False
    offered: str = ""
    """The name of the tool as the model is shown it."""
    hinted: bool = False
    """Whether the fold named that tool."""
    left: list[str] = field(default_factory=list)
    """Processes that were there when it was over."""
    closing: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        right = self.recalled and self.answered and self.hinted and not self.in_view
        clean = not self.faults and not any(self.exits) and not self.left
        return right and clean and self.calls >= 60 and self.folds > 1 and len(self.sessions) == 1


@dataclass
class RecallModel(CodingModel):
    """Works as the other one, and is asked at the end what the first file said."""

    namespaces: dict[str, str] = field(default_factory=dict)
    """Of calls: some agents have their tools in namespaces."""
    run: WrappedRun = field(default_factory=lambda: WrappedRun(""))

    def __call__(self, got: Got) -> Reply:
        words = words_of(got.body)
        if not is_main(got.body) or is_summary(words):
            return super().__call__(got)
        text = json.dumps(got.body)
        last = _last(got.body)
        usage = (len(got.raw) // 4, 40)
        if QUESTION not in words:
            if self.calls == 0:
                self.calls += 1
                tools = _tools(got.body)
                return Reply("", (self._shell(_schemas(tools), "cat notes/first.md"),), usage)
            return super().__call__(got)
        if QUESTION in last:
            self.run.in_view += SHELF in text
            name, namespace = _recall(_tools(got.body))
            self.run.offered = f"{namespace}{name}"
            self.run.hinted = f"find it with {name}, and read an entry in full" in text
            call = Call(f"{next(self._ids):04d}call", name, {"query": "parcel 41 shelf"})
            if namespace:
                self.namespaces[call.id] = namespace
            return Reply("", (call,), usage)
        self.run.recalled = SHELF in last
        self.run.answered = True
        return Reply(f"It stands on {SHELF}." if self.run.recalled else "I do not know.", (), usage)


def _last(body: dict[str, Any]) -> str:
    """The newest messages: all after the model's last answer."""
    messages = body.get("messages") or body.get("input") or []
    after: list[Any] = []
    for message in reversed(messages):
        kind = message.get("type", "message")
        if message.get("role") == "assistant" or kind in {"function_call", "reasoning"}:
            break
        after.append(message)
    return json.dumps(after)


def _tools(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each tool that is offered, with its namespace, if it has one."""
    messages = [one for one in body.get("input") or () if isinstance(one, dict)]
    more = [
        tool for one in messages if one.get("type") == "additional_tools" for tool in one["tools"]
    ]
    found: list[tuple[str, dict[str, Any]]] = []
    for tool in (*(body.get("tools") or ()), *more):
        if tool.get("type") == "namespace":
            found += [(tool["name"], one) for one in tool["tools"]]
        else:
            found.append(("", tool.get("function") or tool))
    return found


def _schemas(tools: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    return {
        tool["name"]: tool.get("parameters") or tool.get("input_schema") or {}
        for _, tool in tools
        if isinstance(tool.get("name"), str)
    }


def _recall(tools: Sequence[tuple[str, dict[str, Any]]]) -> tuple[str, str]:
    for namespace, tool in tools:
        if str(tool.get("name")).endswith("recall_search"):
            return tool["name"], namespace
    return "recall_search", ""


def _codex(home: Path, address: str, model: str) -> dict[str, str]:
    """Codex with its own provider, whose address is the scripted one's."""
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f'model = "{model}"\nopenai_base_url = "{address}/v1"\n'
        'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        'model_reasoning_effort = "low"\ncheck_for_update_on_startup = false\n'
        "[analytics]\nenabled = false\n"
    )
    return {"CODEX_API_KEY": "sk-nobody"}


def _pi(home: Path, address: str, _model: str) -> dict[str, str]:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    providers = {"openai": {"baseUrl": f"{address}/v1"}}
    (folder / "models.json").write_text(json.dumps({"providers": providers}))
    return {"OPENAI_API_KEY": "sk-nobody", "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


def _pi_turn(prompt: str, turn: int) -> list[str]:
    resumed = ["--continue"] if turn else []
    return ["-p", "--model", "openai/gpt-5-mini", "--thinking", "low", *resumed, prompt]


_AS_USUAL: Final[dict[str, dict[str, Any]]] = {
    "codex": {"configure": _codex},
    "pi": {"configure": _pi, "arguments": _pi_turn},
}
"""Agents that otherwise have a provider of their own for the gateway."""


def as_usual(client: Client) -> Client:
    """The agent with the provider that it has without Refold."""
    return replace(client, **_AS_USUAL.get(client.name, {}))


async def work_wrapped(client: Client, programs: Path, folder: Path) -> WrappedRun:
    """Let an agent work under `refold wrap`, each turn in a process of its own."""
    client = as_usual(client)
    shutil.rmtree(folder, ignore_errors=True)
    home, project = folder / "home", folder / "project"
    home.mkdir(parents=True)
    write_project(project)
    rows = [f"parcel {row} stands on shelf {10_000 + row * 37 % 971}" for row in range(_ROWS)]
    rows[41] = f"parcel 41 stands on {SHELF}"
    (project / "notes" / "first.md").write_text("\n".join(rows) + "\n")
    settings = home / ".config" / "refold"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(
        f'[models."{client.model}"]\nwindow = {client.window}\n', encoding="utf-8"
    )
    run = WrappedRun(client.name)
    model = RecallModel(str(project), TURNS, run=run)
    checker = RequestChecker()

    def reply(got: Got) -> Reply:
        if not got.body or got.path.endswith("count_tokens"):
            return Reply("", number=0)
        run.requests += 1
        return replace(model(got), number=run.requests)

    _name_spaces(model.namespaces)
    async with served(without_websockets(ScriptedUpstream(reply, checker=checker))) as provider:
        given = client.configure(home, provider, client.model)
        prompts = [
            f"{TASK}, part {turn + 1} of {len(TURNS)}. Go note by note."
            for turn in range(len(TURNS))
        ]
        for turn, prompt in enumerate([*prompts, f"{TASK}. {QUESTION}"]):
            arguments = client.arguments(prompt, turn)
            command = [*WRAP, client.command, *arguments]
            run.exits.append(await run_agent(command, programs, folder, given))
    run.calls, run.faults = model.calls, [why for _, why in checker.faults]
    run.closing = (folder / "wrap.txt").read_text(encoding="utf-8", errors="replace").splitlines()
    run.left = _left(folder)
    await _read_log(run, home / "data" / "refold" / "refold.db")
    return run


def _name_spaces(namespaces: dict[str, str]) -> None:
    """Let a scripted provider's calls have the namespaces of their tools."""
    items = Rendered._items  # noqa: SLF001 - only here

    def with_namespaces(self: Rendered) -> list[dict[str, Any]]:
        made = items(self)
        for item in made:
            if namespace := namespaces.get(str(item.get("call_id"))):
                item["namespace"] = namespace
        return made

    Rendered._items = with_namespaces  # noqa: SLF001 - as above


def without_websockets(app: Any) -> Any:  # noqa: ANN401 - an ASGI application
    async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        if scope["type"] == "http" and any(name == b"upgrade" for name, _ in scope["headers"]):
            await send({"type": "http.response.start", "status": 426, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    return answer


async def run_agent(
    command: Sequence[str], programs: Path, folder: Path, given: dict[str, str]
) -> int:
    """Run an agent in a folder that has its home and its project; its exit code."""
    home = folder / "home"
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "CI": "1",
        **given,
    }
    with (folder / "wrap.txt").open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
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
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            return -1


def _left(folder: Path) -> list[str]:
    """The processes that work in the folder still."""
    found: list[str] = []
    for _ in range(20):
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(folder):
                    found.append((entry / "cmdline").read_text().replace("\0", " ")[:80])
        if not found:
            break
        time.sleep(0.1)
    return found


async def _read_log(run: WrappedRun, file: Path) -> None:
    """The sessions of the conversation, and their folds."""
    async with SqliteStore(file) as store:
        log = store.log()
        for info in (await log.sessions(limit=100)).sessions:
            values = [CODEC.decode(entry) for entry in await log.read(info.session)]
            texts = [value.payload.decode() for value in values if isinstance(value, Message)]
            if sum(bool(re.search(r"call_id|tool_use|tool_calls", text)) for text in texts) > 3:
                run.sessions.append(info.session)
                run.folds += sum(isinstance(value, FoldCompleted) for value in values)


def report_wrapped(run: WrappedRun) -> bool:
    """Print what came of it; whether all of it holds."""
    print(f"\n{run.client} under refold wrap")
    print(f"  tool calls {run.calls}, requests {run.requests}, folds {run.folds}")
    print(f"  sessions of the conversation {len(run.sessions)}")
    print(f"  the tool is shown as {run.offered}; the fold names it: {run.hinted}")
    print(f"  the fact: in view {run.in_view} times, recalled {run.recalled}")
    print(f"  refused {len(run.faults)}, exit codes {run.exits}, left {run.left or 'nothing'}")
    for fault in run.faults[:5]:
        print(f"  refused: {fault}")
    for line in run.closing[-3:]:
        print(f"  | {line}")
    if not run.holds:
        print("  FAILED")
    return run.holds
