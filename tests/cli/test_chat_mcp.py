"""MCP servers: real ones, those that die, those that hang, and files that name none."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")
pytest.importorskip("mcp")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from refold.cli.chat.tools.mcp_servers import mcp_toolsets, run_servers
from refold.errors import InvalidInput

GOOD = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("good")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@server.tool()
def fails() -> int:
    "Never works."
    raise ValueError("no such city")

@server.tool()
def pid() -> int:
    "Which process this is."
    return os.getpid()

server.run()
"""
DIES = "import sys; print('no such database', file=sys.stderr); sys.exit(3)"
HANGS = "import time; time.sleep(60)"


def written(folder: Path, **scripts: str) -> Path:
    servers: dict[str, Any] = {}
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
        servers[name] = {"command": sys.executable, "args": [str(folder / f"{name}.py")]}
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def calling(tool: str, **arguments: Any) -> FunctionModel:
    """Calls the tool if it is there, then says what came back."""

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = messages[-1].parts
        names = [one.name for one in info.function_tools]
        if parts[-1].part_kind == "user-prompt" and tool in names:
            return ModelResponse([ToolCallPart(tool, arguments)])
        return ModelResponse([TextPart(f"{getattr(parts[-1], 'content', '')} of {names}")])

    return FunctionModel(model)


async def gone(process: int) -> None:
    """Return when the process has ended, and somebody has been told."""
    async with asyncio.timeout(60):
        while True:
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.02)


async def test_those_that_start_serve_and_the_others_are_named(tmp_path):
    said: list[str] = []
    toolsets = mcp_toolsets(written(tmp_path, good=GOOD, dies=DIES, hangs=HANGS))
    async with run_servers(toolsets, said.append, patience=15) as started:
        assert len(started) == 1
        agent = Agent(calling("good_add", a=2, b=3), toolsets=started)
        assert (await agent.run("Add.")).output.startswith("5 of")
        assert (await agent.run("Again.")).output.startswith("5 of")
        agent = Agent(calling("good_fails"), toolsets=started)
        failed = (await agent.run("Try.")).output
        assert "Error executing tool" in failed
        assert "good_fails" in failed, "a tool that fails does not mean that its server is gone"
    dies, hangs = sorted(said)
    assert dies.startswith("MCP server dies did not start: ")
    assert "'no such database'" in dies
    assert hangs == (
        "MCP server hangs did not start: it did not answer within 15 seconds. "
        "The chat goes on without it."
    )


async def test_a_server_that_dies_in_a_chat_does_not_end_it(tmp_path):
    said: list[str] = []
    async with run_servers(mcp_toolsets(written(tmp_path, good=GOOD)), said.append) as started:
        agent = Agent(calling("good_pid"), toolsets=started)
        process = int((await agent.run("Who are you?")).output.partition(" ")[0])
        os.kill(process, signal.SIGKILL)
        await gone(process)
        for _ in range(2):
            answer = (await agent.run("Who are you?")).output
            assert not answer.startswith(str(process))
        assert "good_pid" not in answer, "it offers no tools any more"
    assert said == ["MCP server good stopped: Connection closed. Going on without it."]


async def test_no_server_is_left_when_the_chat_ends(tmp_path):
    async with run_servers(mcp_toolsets(written(tmp_path, good=GOOD)), print) as started:
        agent = Agent(calling("good_pid"), toolsets=started)
        process = int((await agent.run("Who are you?")).output.partition(" ")[0])
        os.kill(process, 0)
    await gone(process)


async def test_no_servers_are_no_trouble():
    async with run_servers([], print) as started:
        assert started == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n  'a': 1}", r"line 2: Expecting property name.*must be JSON"),
        ("[]", "names no mcpServers"),
        ("{}", "names no mcpServers"),
        ('{"mcpServers": []}', "names no mcpServers"),
        ('{"mcpServers": {"x": 5}}', "mcpServers.x"),
        ('{"mcpServers": {"x": {"args": ["hush"]}}}', "x.*command.*url"),
        ('{"mcpServers": {"x": {"command": 7}}}', "mcpServers.x.command"),
        ('{"mcpServers": {"x": {"command": "${NOT_SET_HERE}"}}}', "NOT_SET_HERE"),
        ("[" * 99_999, "not JSON"),
        ("", "line 1"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, text, said):
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=said) as raised:
        mcp_toolsets(file)
    assert "hush" not in str(raised.value)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(InvalidInput, match=r"no file.*mcpServers"):
        mcp_toolsets(tmp_path / "nothing.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InvalidInput, match="not JSON"):
        mcp_toolsets(tmp_path / "latin.json")


async def test_a_program_that_is_not_there(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program-here"}}}))
    said: list[str] = []
    async with run_servers(mcp_toolsets(file), said.append) as started:
        assert started == []
    assert "MCP server gone did not start" in said[0]
