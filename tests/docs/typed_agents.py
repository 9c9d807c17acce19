# pyright: strict
"""What an agent's types are with a memory: the same as without. Read by pyright, and run once."""

import asyncio
from dataclasses import dataclass
from typing import assert_type

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.run import AgentRunResult

from refold import Refold
from refold.session import Compacted, Session


@dataclass
class Deps:
    """What tools are given."""

    name: str


@dataclass
class Weather:
    """What the agent answers."""

    degrees: int


memory = Refold()
agent = Agent(TestModel(), deps_type=Deps, output_type=Weather, capabilities=[memory])
plain = Agent(TestModel(), capabilities=[Refold(profile="co-cli", recall=False)])


@agent.tool
async def where(ctx: RunContext[Deps]) -> str:
    """Tell where."""
    return assert_type(ctx.deps.name, str)


async def main() -> None:
    """Run both."""
    result = await agent.run("hello", deps=Deps("x"), conversation_id="c")
    assert_type(result, AgentRunResult[Weather])
    assert_type(result.output.degrees, int)
    other = await plain.run("hello")
    assert_type(other.output, str)
    session = await memory.session("c", TestModel())
    assert_type(session, Session)
    if len(session.messages) > 100:  # never, here
        assert_type(await session.compact(), Compacted)
    async with agent.run_stream("again", deps=Deps("x"), conversation_id="c") as stream:
        assert_type(await stream.get_output(), Weather)
    await memory.close()


if __name__ == "__main__":
    asyncio.run(main())
