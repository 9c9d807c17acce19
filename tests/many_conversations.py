"""Many conversations at once: a model that all of them ask at the same moment, and an agent."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

TURNS = 7
"""Of each conversation: enough to outgrow the window."""


class ReadingModel:
    """Reads a page for each prompt, then answers.

    No prompt is answered before `runs` of them have come: that many runs are live at once. Only a
    prompt counts. A fold that is completed in mid-run brings tools that the run did not have, and
    Pydantic AI says so in a user part after the tool's result, which is no prompt.
    """

    def __init__(self, runs, window=4_000, all_here=lambda: None):
        self._barrier = asyncio.Barrier(runs)
        self._all_here = all_here
        self.prompts = 0
        self.model = FunctionModel(
            self._answer, profile={"context_window": window}, model_name="reading"
        )

    async def _answer(self, messages, _):
        if not any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            self.prompts += 1
            if await self._barrier.wait() == 0:
                self._all_here()
            return ModelResponse([ToolCallPart("read_page", {"page": len(messages)})])
        return ModelResponse([TextPart("That was the page.")])


def reading_agent(memory, model, words=50):
    """An agent that reads pages of so many words."""
    agent = Agent(model.model, capabilities=[memory])

    @agent.tool_plain
    def read_page(page: int) -> str:
        return f"Page {page}: " + "word " * words

    return agent


async def converse(agent, conversations, turns=TURNS, after_turn=lambda: None):
    """Have all of them make each of their turns at the same time."""
    for turn in range(turns):
        prompt = f"Read page {turn}. " + "Mind every word. " * 150
        await asyncio.gather(*(agent.run(prompt, conversation_id=one) for one in conversations))
        after_turn()
