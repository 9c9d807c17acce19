"""An agent in a process of its own, to be killed: it goes on where the log says it stopped.

Usage: agent_child.py FOLDER URL TURNS [WINDOW]. Without the window it must be learned.
What an agent imports takes seconds, so this process only imports: for each line of its input it
forks one that talks, says its pid, waits for its end, and says how it ended.
"""

import asyncio
import os
import re
import sys
import traceback
from pathlib import Path

import agent_script
import httpx2
from agent_log import messages_of
from local_model.deciding import Deciding, local
from local_model.journal import Journal
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import UserPromptPart

from refold import Refold

_MARK = re.compile(r"Turn (\d+):")


async def next_turn(path: Path) -> int:
    """After the last that the log has the prompt of, answered or not."""
    said = [
        part.content
        for message in await messages_of(path)
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    ]
    return max((int(mark[1]) for mark in map(_MARK.match, said) if mark), default=0) + 1


def agent_of(refold: Refold, model: Deciding, journal: Journal) -> Agent:
    """The agent: three tools, and Refold."""
    agent = Agent(model, capabilities=[refold], model_settings={"max_tokens": 16})

    @agent.tool
    def look(ctx: RunContext, at: str) -> str:
        """Look at a place."""
        journal.write("returned", call=ctx.tool_call_id)
        return agent_script.looked(at)

    @agent.tool
    def note(ctx: RunContext, text: str) -> str:
        """Write something down."""
        journal.write("returned", call=ctx.tool_call_id)
        return agent_script.noted(text)

    @agent.tool
    def dump(ctx: RunContext, name: str) -> str:
        """Show a whole file."""
        journal.write("returned", call=ctx.tool_call_id)
        return agent_script.dumped(name)

    return agent


async def talk(
    folder: Path,
    url: str,
    turns: int,
    window: int | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> None:
    """Go on with the conversation up to its last turn."""
    journal, path = Journal(folder / "journal.jsonl"), folder / "refold.db"
    first = await next_turn(path)
    async with Refold(f"sqlite:///{path}") as refold, journal.client(transport) as client:
        model = Deciding(local(url, client, window=window), agent_script.script, journal)
        agent = agent_of(refold, model, journal)
        for turn in range(first, turns + 1):
            journal.turn = turn
            journal.write("asked")
            try:
                told = await agent.run(
                    agent_script.prompt(turn), conversation_id=agent_script.SESSION
                )
            except Exception as error:
                journal.write("error", error=f"{type(error).__name__}: {error}")
                raise
            journal.write("answered", text=told.output)
    journal.write("finished")
    journal.close()


def live(folder: str, url: str, turns: str, window: str | None = None) -> None:
    """A child's whole life; it never returns."""
    code = 1
    try:
        asyncio.run(talk(Path(folder), url, int(turns), int(window) if window else None))
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, who looks at the test is told
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            live(*sys.argv[1:])
        print(child, flush=True)  # noqa: T201 - what the test waits for
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201
