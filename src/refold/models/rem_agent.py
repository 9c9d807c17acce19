"""The rem-agent: a model that reads a session and changes its board, and can do nothing else.

Needs the extra `refold[pydantic-ai]`.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal

from pydantic_ai import Agent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from refold.memory.context_board import ContextBoard
from refold.models.asking import ModelSummariser, used
from refold.models.catalogue import NONE, Overrides
from refold.view import Counter

INTERACTION: Final = "memory-consolidation"
"""What the calls are for, as their header and their metadata say it."""
_MOST_REQUESTS = 12  # of one record


class RemAgent:
    """Reads records with one model. Its one tool is `context_board`, and it keeps no history."""

    def __init__(self, model: Model, models: Overrides = NONE) -> None:
        self._model = model
        self._asking = ModelSummariser(model, models)

    @property
    def name(self) -> str:
        """The model."""
        return self._asking.name

    @property
    def counter(self) -> Counter:
        """Counts its tokens."""
        return self._asking.counter

    @property
    def room(self) -> int:
        """How many tokens a record may have: its own calls and their answers stand beside it."""
        return self._asking.room * 3 // 4

    async def read(self, guard: str, record: str, board: ContextBoard) -> Mapping[str, int]:
        """Read the record and change the board; the tokens that it took."""
        agent: Agent[None, str] = Agent(
            self._model,
            instructions=guard,
            name="rem-agent",
            retries=2,
            metadata={"interaction_type": INTERACTION},
        )

        @agent.tool_plain
        def context_board(
            action: Literal["add", "prune"],
            text: str = "",
            entries: list[int] | None = None,
            number: int = 0,
        ) -> str:
            """Change the board by one fact.

            Args:
                action: Add a fact, or prune one.
                text: The fact to add, on one line.
                entries: The numbers of the entries that the fact rests on.
                number: The number of the fact to prune.
            """
            return board.add(text, entries or []) if action == "add" else board.prune(number)

        usage = RunUsage()
        with suppress(UsageLimitExceeded):  # it has changed enough
            await agent.run(
                record,
                usage=usage,
                usage_limits=UsageLimits(request_limit=_MOST_REQUESTS),
                model_settings=self._asking.settings(INTERACTION),
            )
        return used(usage)
