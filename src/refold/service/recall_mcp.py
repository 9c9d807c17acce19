"""Recall's tools as an MCP server: an agent's model reads back what it no longer sees.

An agent calls a tool without saying in which conversation. The gateway has logged the answer in
which the model asked for that call, so the log says it: by the call's id, which Claude Code and
Codex send along, or by the call's arguments. Hooks log a turn after its end; then the agent's own
id of the session, if it sends that along, says it. Any other call is answered from the conversation
that was used last.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from mcp import types
from mcp.server import Server, ServerRequestContext
from pydantic import JsonValue

from refold import __version__
from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Log, Message, Span
from refold.recall import Tool, recall_tools
from refold.recall.text import shapes_of, wire_of
from refold.view.framing import is_recall_tool

_INSTRUCTIONS: Final = (
    "What was said and done earlier in this conversation and is no longer in view, or only "
    "summarized, can be searched and read in full with these tools."
)
_NO_CONVERSATION: Final = "Nothing of this conversation is kept yet."
_MAX_SESSIONS: Final = 16
"""Conversations in which a call is looked for."""
_MAX_ENTRIES: Final = 32
"""Of each, the newest."""
_TRIES, _PAUSE = 10, 0.05
"""An agent may call a tool before the end of the answer is logged: so often, and so many seconds
between."""
_MAX_IDS: Final = 64
_READ_ONLY: Final = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Recent = Callable[[], Awaitable[Sequence[str]]]
"""The sessions of which one made the call, the one used last first."""


class ToolCall(NamedTuple):
    """A call as an agent passes it on."""

    name: str
    arguments: Mapping[str, JsonValue]
    ids: frozenset[str]
    """Whatever the agent says of it: the call's id may be among these."""


class Conversations:
    """Finds the conversation whose model called a tool."""

    def __init__(self, log: Log, recent: Recent, tries: int = _TRIES) -> None:
        self._log = log
        self._recent = recent
        self._tries = tries

    async def calling(self, call: ToolCall) -> str | None:
        """The session; None if nothing is kept yet."""
        sessions: Sequence[str] = ()
        for tried in range(self._tries):
            if tried:
                await asyncio.sleep(_PAUSE)
            sessions = (await self._recent())[:_MAX_SESSIONS]
            alike = ""
            for session in sessions:
                with suppress(SessionNotFound, SessionForgotten):
                    found = await self._call_in(session, call)
                    if found == "id":
                        return session
                    alike = alike or (session if found else "")
            if alike:
                return alike
        return sessions[0] if sessions else None

    async def _call_in(self, session: str, call: ToolCall) -> str:
        """How a session or its newest messages have this call: by `id`, `alike`, or not."""
        head = await self._log.head(session)
        info = await self._log.info(session)
        if info.origin and info.origin.id in call.ids:
            return "id"
        wire = wire_of(info.format)
        span = Span(max(1, head - _MAX_ENTRIES + 1), head)
        answered: set[str | None] = set()
        alike = ""
        for entry in reversed(await self._log.read(session, span)):
            if entry.kind != Message.KIND or entry.forgotten:
                continue
            for shape in shapes_of(wire, entry)[1]:
                if shape.kind == "return":
                    answered.add(shape.call)
                elif shape.kind == "call" and is_recall_tool(shape.tool):
                    if shape.call in call.ids:
                        return "id"
                    named = (shape.tool or "").endswith(call.name)
                    if named and shape.call not in answered and _same(shape.text, call.arguments):
                        alike = "alike"
        return alike


def _same(text: str, arguments: Mapping[str, JsonValue]) -> bool:
    try:
        return json.loads(text) == arguments
    except ValueError:
        return False


def recall_server(log: Log, session_of: Callable[[ToolCall], Awaitable[str | None]]) -> Server:
    """The server; each call is about the session that the function names."""

    async def list_tools(
        _context: ServerRequestContext, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[*map(_described, _tools(log, "any"))])

    async def call_tool(
        _context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments: Mapping[str, JsonValue] = params.arguments or {}
        call = ToolCall(params.name, arguments, frozenset(_strings(_meta(params))))
        session = await session_of(call)
        tools = _tools(log, session or "any")
        tool = next((tool for tool in tools if tool.name == params.name), None)
        if tool is None:
            return _result(f"There is no tool {params.name[:80]!r} here.", failed=True)
        if session is None:
            return _result(_NO_CONVERSATION)
        return _result(await tool.run(dict(arguments)))

    return Server(
        "refold",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def no_tools() -> Server:
    """A server without tools, where another one has them."""
    return Server("refold", version=__version__)


def definitions(log: Log) -> list[str]:
    """The tools as a model is shown them, as JSON, to count them."""
    return [
        json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.schema})
        for tool in _tools(log, "any")
    ]


def _tools(log: Log, session: str) -> tuple[Tool, ...]:
    return recall_tools(log, session, outside=True)


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=_READ_ONLY,
    )


def _result(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=failed
    )


def _meta(params: types.CallToolRequestParams) -> JsonValue:
    return params.model_dump(mode="json", by_alias=True).get("_meta")


def _strings(value: JsonValue) -> Iterator[str]:
    """The texts in what an agent says of a call: no more of them than are usual."""
    waiting = [value]
    for _ in range(_MAX_IDS):
        match waiting.pop(0) if waiting else None:
            case str() as text:
                yield text
            case dict() as fields:
                waiting += fields.values()
            case _:
                pass
