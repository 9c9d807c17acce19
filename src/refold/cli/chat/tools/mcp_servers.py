"""The tools of MCP servers: started together, given up one by one, never the end of a chat."""

import asyncio
import json
import logging
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self, cast

from fastmcp.client.transports import StdioTransport
from pydantic import ValidationError
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.mcp import MCPToolset, load_mcp_toolsets
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, PrefixedToolset, ToolsetTool, WrapperToolset

from refold.cli.chat.clean import cleaned
from refold.cli.chat.tools import mcp_relay
from refold.errors import InvalidInput

# Which tools of an MCP server are offered to a model.
#
# A server says by itself which tools it has, and may say something else each time. One tool whose
# name a provider refuses, or a list that fills the context window, would end every turn of a chat.

MAX_TOOLS: Final = 200
MAX_TOOL_CHARS: Final = 32_000
MAX_CHARS: Final = 256_000
"""Characters of one tool's description and schema, and of all tools of a server."""
MAX_DEPTH: Final = 30
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what all providers take
_SHOWN_MCP_LIMITS: Final = 3

RESERVED: Final = frozenset(
    {
        *("recall_search", "recall_read", "recall_everywhere", "recall_read_in"),
        *("list_files", "read_file", "search_files"),
    }
)
"""The chat's own tools: no server may stand in for one of them."""


@dataclass
class Offer:
    """Of a server's tools, those that are offered, and why others are not."""

    tools: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, ToolsetTool[Any]])
    left_out: Counter[str] = field(default_factory=Counter[str])  # how many, by reason
    names: list[str] = field(default_factory=list[str])  # some of those left out

    @property
    def notice(self) -> str:
        """In one sentence, what was left out; empty if nothing was."""
        if not self.left_out:
            return ""
        why = "; ".join(f"{count} {reason}" for reason, count in sorted(self.left_out.items()))
        some = ", ".join(repr(cleaned(name)[:40]) for name in self.names[:_SHOWN_MCP_LIMITS])
        more = ", …" if self.left_out.total() > _SHOWN_MCP_LIMITS else ""
        return (
            f"{self.left_out.total():,} of its tools are left out ({why}): {some}{more}. "
            "If you need them, have the server offer fewer or smaller tools."
        )


def offer(tools: Mapping[str, ToolsetTool[Any]], taken: Collection[str] = ()) -> Offer:
    """Choose from a server's tools.

    Args:
        tools: What the server has, by the name that the model would call.
        taken: Names that are in use elsewhere.
    """
    found = Offer()
    total = 0
    for name, tool in tools.items():
        size = _size(tool.tool_def)
        why = _refused(name, size, taken)
        if not why and (len(found.tools) >= MAX_TOOLS or total + size > MAX_CHARS):
            why = f"beyond {MAX_TOOLS} tools or {MAX_CHARS:,} characters"
        if why:
            found.left_out[why] += 1
            if len(found.names) < _SHOWN_MCP_LIMITS:
                found.names.append(name)
            continue
        total += size
        found.tools[name] = _plain(tool)
    return found


def _refused(name: str, size: int, taken: Collection[str]) -> str:
    if not _NAME.fullmatch(name):
        return "with a name that providers refuse"
    if name in RESERVED or name in taken:
        return "with a name that is taken"
    if size > MAX_TOOL_CHARS:
        return f"of more than {MAX_TOOL_CHARS:,} characters or {MAX_DEPTH} levels"
    return ""


def _size(tool: ToolDefinition) -> int:
    """How many characters the model would be shown; too many where that cannot be told."""
    if _depth(tool.parameters_json_schema) > MAX_DEPTH:
        return MAX_TOOL_CHARS + 1
    schema = json.dumps(tool.parameters_json_schema)
    return len(tool.name) + len(tool.description or "") + len(schema)


def _depth(value: object) -> int:
    """How deep a value is nested. It is followed level by level, since it may be deep."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        depth, level = depth + 1, inner
    return depth


def _plain(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    described = tool.tool_def.description
    if described is None or cleaned(described) == described:
        return tool
    return replace(tool, tool_def=replace(tool.tool_def, description=cleaned(described)))


_PATIENCE = 30.0  # seconds that a server may take to start: some are downloaded first
_MOMENT = 10.0  # seconds that it may take to say which tools it has, and to end
_SHOWN = 200
_MAX_MESSAGE = 16 << 20
"""Bytes of one message of a server. Reading one takes time by the square of its length."""
_LAST_WORDS = 1 << 14
_LIBRARIES = ("mcp", "fastmcp")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_EXAMPLE = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'

Tell = Callable[[str], None]


def mcp_toolsets(file: Path) -> list[AbstractToolset[Any]]:
    """The tools of the servers that a file names, as Claude Desktop, Cursor and others write it."""
    _check(file)
    try:
        return [_patient(one) for one in load_mcp_toolsets(file)]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"{file} is no list of MCP servers: {where}: {first['msg']}.",
            f"Write it like {_EXAMPLE}.",
        ) from None
    except ValueError as error:
        raise InvalidInput(f"{file}: {error}.", f"Write it like {_EXAMPLE}.") from None


@asynccontextmanager
async def run_servers(
    toolsets: Sequence[AbstractToolset[Any]], told: Tell, *, patience: float = _PATIENCE
) -> AsyncGenerator[list[AbstractToolset[Any]]]:
    """Run the servers; those that started.

    Args:
        toolsets: What `mcp_toolsets` gave.
        told: Is called with a sentence for each server that does not start, or stops.
        patience: Seconds that they may take to start.
    """
    with TemporaryDirectory(prefix="refold-mcp-") as folder, _quiet():
        servers = [
            _Server(toolset, Path(folder) / f"{nth}.log", told)
            for nth, toolset in enumerate(toolsets)
        ]
        try:
            await asyncio.gather(*(one.start(patience) for one in servers))
            names: dict[str, str] = {}
            yield [
                RunningServerTools(one.toolset, one.name, told, names)
                for one in servers
                if one.started
            ]
        finally:
            await asyncio.gather(*(one.stop() for one in servers))


@dataclass
class RunningServerTools(WrapperToolset[Any]):
    """The tools of a server that runs already, for as long as it does."""

    name: str
    told: Tell
    names: dict[str, str] = field(default_factory=dict[str, str])
    """The tools of all servers of the chat: whose each is."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _notice: str = ""

    async def __aenter__(self) -> Self:
        """Nothing to start: who runs the server ends it."""
        return self

    async def __aexit__(self, *args: object) -> bool | None:
        """Nothing to end."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Its tools; none when it does not answer any more."""
        if self.gone.is_set():
            return {}
        try:
            async with asyncio.timeout(_MOMENT):
                tools = await self.wrapped.get_tools(ctx)
        except Exception as error:  # noqa: BLE001 - whatever it is, the chat goes on
            self._is_gone(error)
            return {}
        offered = offer(tools, {name for name, owner in self.names.items() if owner != self.name})
        self.names.update(dict.fromkeys(offered.tools, self.name))
        if offered.notice and offered.notice != self._notice:
            self.told(f"MCP server {self.name}: {offered.notice}")
        self._notice = offered.notice
        return offered.tools

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:  # noqa: ANN401 - whatever the tool returns
        """What the tool gives; a server that is gone is told to the model, and to the person."""
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            if not await self._answers():
                self._is_gone(error)
            if type(error).__module__.startswith("pydantic_ai."):
                raise
            raise ToolFailed(f"The tool's server failed: {_said(error)}.") from error

    async def _answers(self) -> bool:
        inner = _mcp(self.wrapped)
        try:
            if inner is not None:
                async with asyncio.timeout(_MOMENT):
                    await inner.client.list_tools()
        except Exception:  # noqa: BLE001 - an answer is what matters
            return False
        return True

    def _is_gone(self, error: BaseException) -> None:
        if not self.gone.is_set():
            self.gone.set()
            self.told(f"MCP server {self.name} stopped: {_said(error)}. Going on without it.")


class _Server:
    """One server, entered and left by the same task, as its streams need it."""

    def __init__(self, toolset: AbstractToolset[Any], log: Path, told: Tell) -> None:
        self.toolset = toolset
        self.name = _name(toolset)
        self.started = False
        self._log = log
        self._told = told
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, patience: float) -> None:
        """Wait until it runs, or tell why it does not."""
        inner = _mcp(self.toolset)
        if inner is not None and hasattr(inner.client.transport, "log_file"):
            inner.client.transport.log_file = self._log  # else it would write into the chat
        ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(ready))
        await asyncio.wait({ready, self._task}, timeout=patience, return_when="FIRST_COMPLETED")
        self.started = ready.done() and not self._task.done()
        if self.started:
            return
        why = f"it did not answer within {patience:.0f} seconds"
        if self._task.done() and (error := self._task.exception()):
            why = _said(error)
        last = self._last_words()
        self._told(
            f"MCP server {self.name} did not start: {why}.{last} The chat goes on without it."
        )

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stop.set()
        if not self.started:
            self._task.cancel()
        _, late = await asyncio.wait({self._task}, timeout=_MOMENT)
        for one in late:
            one.cancel()
        with suppress(Exception, asyncio.CancelledError):
            await asyncio.wait_for(self._task, _MOMENT)

    async def _run(self, ready: "asyncio.Future[None]") -> None:
        async with self.toolset:
            inner = _mcp(self.toolset)
            if inner is not None:
                await inner.list_tools()
            ready.set_result(None)
            await self._stop.wait()

    def _last_words(self) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - _LAST_WORDS))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f" It said: {_clipped(last)!r}." if last else ""


@contextmanager
def _quiet() -> Generator[None]:
    """Let libraries not log what servers send: it would stand in the chat."""
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check(file: Path) -> None:
    try:
        value: object = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise InvalidInput(
            f"There is no file {str(file)!r}.", f"Name one that holds {_EXAMPLE}."
        ) from None
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"{file}, line {error.lineno}: {error.msg}.", "Correct it there: it must be JSON."
        ) from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{file} is no JSON.", f"Write it like {_EXAMPLE}.") from None
    listed = cast("dict[str, object]", value).get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(listed, dict):
        raise InvalidInput(f"{file} names no mcpServers.", f"Write it like {_EXAMPLE}.")


def _patient(toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
    """The same, with more time to start, and a process that ends with the chat."""
    inner = _mcp(toolset)
    if inner is None:
        return toolset
    transport = inner.client.transport
    if isinstance(transport, StdioTransport):
        transport.keep_alive = False
        bounded = ["-I", "-S", mcp_relay.__file__, str(_MAX_MESSAGE)]
        transport.args = [*bounded, transport.command, *transport.args]
        transport.command = sys.executable
    again: MCPToolset[Any] = MCPToolset(
        transport,
        id=inner.id,
        init_timeout=_PATIENCE,
        tool_error_behavior="failed",  # the model hears of it, and the turn goes on
    )
    return again.prefixed(_NOT_IN_NAMES.sub("_", _name(toolset)))


def _mcp(toolset: AbstractToolset[Any]) -> MCPToolset[Any] | None:
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    return toolset if isinstance(toolset, MCPToolset) else None


def _name(toolset: AbstractToolset[Any]) -> str:
    if isinstance(toolset, PrefixedToolset):
        return toolset.prefix
    return toolset.id or toolset.label


def _said(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = " ".join(cleaned(str(error)).split()).rstrip(".")
    return _clipped(text) or type(error).__name__


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
