"""The recall tools as Pydantic AI's, offered when there is something to recall."""

from collections.abc import Callable
from typing import Any

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.toolsets import AbstractToolset

from refold.integrations.pydantic_ai.places import Caller, Place, current
from refold.log import Log
from refold.recall import Tool as RecallTool
from refold.recall import recall_tools
from refold.recall.tools import CHARS, FEWEST_CHARS

LEAST_ROOM = 3_000
"""Tokens of a request below which the tools, and what they bring, would fill it."""


def recall_toolset(
    log: Log, wanted: Callable[[RunContext[Any]], bool], *, everywhere: bool
) -> AbstractToolset[Any]:
    """The tools of all runs. While everything is in view they would only cost room."""

    def of(caller: Caller) -> tuple[RecallTool, ...]:
        session, scope = caller.place
        chars = max(FEWEST_CHARS, min(CHARS, caller.room))  # about a quarter of it in tokens
        return recall_tools(log, session, scope=scope, chars=chars, everywhere=everywhere)

    offered = [_offered(tool, of) for tool in of(Caller(None, Place("any"), 0))]
    toolset: FunctionToolset[Any] = FunctionToolset(offered, id="refold-recall")
    return toolset.filtered(lambda ctx, _: wanted(ctx))


def _offered(tool: RecallTool, of: Callable[[Caller], tuple[RecallTool, ...]]) -> Tool[Any]:
    async def call(**arguments: Any) -> str:  # noqa: ANN401 - whatever the model gave
        caller = current()
        assert caller is not None  # noqa: S101 - it is called as a tool of a governed run
        own = next(one for one in of(caller) if one.name == tool.name)
        return await own.run(arguments)

    return Tool[Any].from_schema(call, tool.name, tool.description, tool.schema)
