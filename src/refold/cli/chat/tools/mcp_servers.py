"""The tools of MCP servers: a server that fails is dropped, and the chat goes on without it."""

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

MAX_TOOLS: Final = 200
MAX_TOOL_CHARS: Final = 32_000
MAX_CHARS: Final = 256_000
"""Characters of one tool's description and schema, and of all tools of a server."""
MAX_DEPTH: Final = 30
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what all providers take
_MAX_NAMES: Final = 3

RESERVED: Final = frozenset(
    {
        *("recall_search", "recall_read", "recall_everywhere", "recall_read_in"),
        *("list_files", "read_file", "search_files"),
    }
)
"""The chat's own tools: no server may replace one of them."""
_PATIENCE = 30.0  # seconds to start: some servers are downloaded first
_MOMENT = 10.0  # seconds to list the tools, and to end
_MAX_TEXT = 200
_MAX_MESSAGE = 16 << 20
"""Bytes of one message of a server. Reading one takes time by the square of its length."""
_LAST_WORDS = 1 << 14
_LIBRARIES = ("mcp", "fastmcp")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_EXAMPLE = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'

Notify = Callable[[str], None]


def mcp_toolsets(file: Path) -> list[AbstractToolset[Any]]:
    """The tools of the servers in a file with the format of Claude Desktop, Cursor and others."""
    _check(file)
    try:
        return [_bounded(toolset) for toolset in load_mcp_toolsets(file)]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(
            f"{file} is not a list of MCP servers: {where}: {first['msg']}.",
            f"Write it like {_EXAMPLE}.",
        ) from None
    except ValueError as error:
        raise InvalidInput(f"{file}: {error}.", f"Write it like {_EXAMPLE}.") from None


@asynccontextmanager
async def run_servers(
    toolsets: Sequence[AbstractToolset[Any]], notify: Notify, *, patience: float = _PATIENCE
) -> AsyncGenerator[list[AbstractToolset[Any]]]:
    """Run the servers; yields the tools of those that started.

    Args:
        toolsets: From `mcp_toolsets`.
        notify: Called with a sentence for each server that does not start, or stops.
        patience: Seconds that they may take to start.
    """
    with TemporaryDirectory(prefix="refold-mcp-") as folder, _quiet():
        servers = [
            _Server(toolset, Path(folder) / f"{nth}.log", notify)
            for nth, toolset in enumerate(toolsets)
        ]
        try:
            await asyncio.gather(*(server.start(patience) for server in servers))
            names: dict[str, str] = {}
            yield [
                RunningServerTools(server.toolset, server.name, notify, names)
                for server in servers
                if server.started
            ]
        finally:
            await asyncio.gather(*(server.stop() for server in servers))


@dataclass
class RunningServerTools(WrapperToolset[Any]):
    name: str
    notify: Notify
    names: dict[str, str] = field(default_factory=dict[str, str])  # tool -> server, of all servers
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _notice: str = ""

    async def __aenter__(self) -> Self:
        return self  # `run_servers` starts and ends it

    async def __aexit__(self, *args: object) -> bool | None:
        """`run_servers` ends the server, not an agent's run."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Its tools; none when it does not answer any more."""
        if self.stopped.is_set():
            return {}
        try:
            async with asyncio.timeout(_MOMENT):
                tools = await self.wrapped.get_tools(ctx)
        except Exception as error:  # noqa: BLE001 - whatever it is, the chat goes on
            self._drop(error)
            return {}
        offered = offer(tools, {name for name, owner in self.names.items() if owner != self.name})
        self.names.update(dict.fromkeys(offered.tools, self.name))
        if offered.notice and offered.notice != self._notice:
            self.notify(f"MCP server {self.name}: {offered.notice}")
        self._notice = offered.notice
        return offered.tools

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:  # noqa: ANN401 - whatever the tool returns
        """Call the tool; the model and the person are told if its server stopped."""
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            if not await self._answers():
                self._drop(error)
            if type(error).__module__.startswith("pydantic_ai."):
                raise
            raise ToolFailed(f"The tool's server failed: {_error_text(error)}.") from error

    async def _answers(self) -> bool:
        inner = _mcp(self.wrapped)
        try:
            if inner is not None:
                async with asyncio.timeout(_MOMENT):
                    await inner.client.list_tools()
        except Exception:  # noqa: BLE001 - an answer is what matters
            return False
        return True

    def _drop(self, error: BaseException) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            why = _error_text(error)
            self.notify(f"MCP server {self.name} stopped: {why}. Going on without it.")


class _Server:
    """One server, entered and exited by the same task, as its streams require."""

    def __init__(self, toolset: AbstractToolset[Any], log: Path, notify: Notify) -> None:
        self.toolset = toolset
        self.name = _name(toolset)
        self.started = False
        self._log = log
        self._notify = notify
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, patience: float) -> None:
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
            why = _error_text(error)
        last = self._last_words()
        self._notify(
            f"MCP server {self.name} did not start: {why}.{last} The chat goes on without it."
        )

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stop.set()
        if not self.started:
            self._task.cancel()
        _, late = await asyncio.wait({self._task}, timeout=_MOMENT)
        for task in late:
            task.cancel()
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
    """Keep libraries from logging what servers send into the chat."""
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
        example = f"Name one that holds {_EXAMPLE}."
        raise InvalidInput(f"There is no file {str(file)!r}.", example) from None
    except json.JSONDecodeError as error:
        what = f"{file}, line {error.lineno}: {error.msg}."
        raise InvalidInput(what, "Correct it there: it must be JSON.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{file} is not JSON.", f"Write it like {_EXAMPLE}.") from None
    value = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if not isinstance(value.get("mcpServers"), dict):
        raise InvalidInput(f"{file} names no mcpServers.", f"Write it like {_EXAMPLE}.")


def _bounded(toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
    """The same with more time to start, bounded output, and a process that ends with the chat."""
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
        tool_error_behavior="failed",  # the model sees the error, and the turn goes on
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


def _error_text(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = " ".join(cleaned(str(error)).split()).rstrip(".")
    return _clipped(text) or type(error).__name__


def _clipped(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


# Which tools of a server are offered to the model.
#
# A server chooses its own tools, and may list others each time. One tool whose name a provider
# refuses, or a list that fills the context window, would end every turn of a chat.


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
        some = ", ".join(repr(cleaned(name)[:40]) for name in self.names[:_MAX_NAMES])
        more = ", …" if self.left_out.total() > _MAX_NAMES else ""
        return (
            f"{self.left_out.total():,} of its tools are left out ({why}): {some}{more}. "
            "If you need them, have the server offer fewer or smaller tools."
        )


def offer(tools: Mapping[str, ToolsetTool[Any]], taken: Collection[str] = ()) -> Offer:
    """Choose from a server's tools.

    Args:
        tools: The server's tools, by the name that the model would call.
        taken: Names in use elsewhere.
    """
    result = Offer()
    total = 0
    for name, tool in tools.items():
        size = _size(tool.tool_def)
        why = _refusal(name, size, taken)
        if not why and (len(result.tools) >= MAX_TOOLS or total + size > MAX_CHARS):
            why = f"beyond {MAX_TOOLS} tools or {MAX_CHARS:,} characters"
        if why:
            result.left_out[why] += 1
            if len(result.names) < _MAX_NAMES:
                result.names.append(name)
            continue
        total += size
        result.tools[name] = _plain(tool)
    return result


def _refusal(name: str, size: int, taken: Collection[str]) -> str:
    if not _NAME.fullmatch(name):
        return "with a name that providers refuse"
    if name in RESERVED or name in taken:
        return "with a name that is taken"
    if size > MAX_TOOL_CHARS:
        return f"of more than {MAX_TOOL_CHARS:,} characters or {MAX_DEPTH} levels"
    return ""


def _size(tool: ToolDefinition) -> int:
    """The characters that the model would be shown; too many if the schema is too deep."""
    if _depth(tool.parameters_json_schema) > MAX_DEPTH:
        return MAX_TOOL_CHARS + 1
    schema = json.dumps(tool.parameters_json_schema)
    return len(tool.name) + len(tool.description or "") + len(schema)


def _depth(value: object) -> int:
    """How deep a value is nested; not recursive, since it may be very deep."""
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
    text = tool.tool_def.description
    if text is None or cleaned(text) == text:
        return tool
    return replace(tool, tool_def=replace(tool.tool_def, description=cleaned(text)))
