"""Models that write summaries, and that consolidate sessions into facts on a board.

Needs the extra `refold[pydantic-ai]`.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pydantic_ai import Agent, NativeOutput, capture_run_messages
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, infer_model
from pydantic_ai.usage import RunUsage, UsageLimits

from refold.errors import WindowExceeded
from refold.fold.compactor import MANUAL, read_context
from refold.fold.job import Job
from refold.fold.write.by_model import ByModel, Summarizer, SummarizerAnswer
from refold.fold.write.draft import Form
from refold.fold.write.transcript import GUARD
from refold.memory.board import ContextBoard
from refold.models.catalog import NO_OVERRIDES, Overrides, counter_for, facts_of
from refold.models.overflow_errors import overflow_in
from refold.view import Counter
from refold.view.budget import ASSUMED_WINDOW

INTERACTION: Final = "conversation-compaction"
REM_INTERACTION: Final = "memory-consolidation"
"""The purpose of calls, in their header and their metadata."""
PRIMARY: Final = "primary"
"""The name of the session's own model in settings."""
_HEADER = "X-Interaction-Type"
_MAX_MODELS = 256
_MAX_ANSWER = 8_000  # tokens
_ANSWER_SHARE = 4  # the fraction of the window that is reserved for the answer
_MARGIN = 0.95  # of the room, since counts are never quite the provider's
_MAX_REQUESTS = 12  # of the rem-agent, for one record


@lru_cache(_MAX_MODELS)
def inferred(name: str) -> Model:
    """The model that Pydantic AI makes of a name; made once."""
    return infer_model(name)


class ModelSummarizer:
    """A model that writes summaries, without tools and without a history."""

    def __init__(self, model: Model, models: Overrides = NO_OVERRIDES) -> None:
        self._model = model
        self._counter = counter_for(model.model_id)
        facts = facts_of(model.model_id, models)
        self._window = facts.window or model.context_window or ASSUMED_WINDOW
        self._max_answer = facts.output or _MAX_ANSWER

    @property
    def name(self) -> str:
        return self._model.model_id

    @property
    def counter(self) -> Counter:
        return self._counter

    @property
    def reserve(self) -> int:
        """Tokens of the window that are reserved for the answer."""
        return min(self._max_answer, self._window // _ANSWER_SHARE)

    @property
    def room(self) -> int:
        left = self._window - self.reserve - self._counter.text(GUARD, "system")
        return int(_MARGIN * left / (1 + self._counter.spread))

    @property
    def structured(self) -> bool:
        # Only native output counts: otherwise the form would need a tool.
        return bool(self._model.profile.get("supports_json_schema_output"))

    async def ask(self, guard: str, prompt: str, job: Job) -> SummarizerAnswer:
        form = self.structured and read_context(job.context).values.ground == "check"
        agent: Agent[None, Any] = Agent(
            self._model,
            output_type=NativeOutput(Form) if form else str,
            instructions=guard,
            name="refold-summarizer",
            retries=0,
            metadata={"interaction_type": INTERACTION, "fold": str(job.fold)},
        )
        with capture_run_messages() as messages:
            try:
                result = await agent.run(prompt, model_settings=self.settings())
            except UnexpectedModelBehavior as error:
                # It filled in no form, or was cut off: the text is read as it is.
                answers = [message for message in messages if isinstance(message, ModelResponse)]
                if not answers or not answers[-1].text:
                    raise self._shrink_on_overflow(error, prompt) from error
                usage = answers[-1].usage
                figures = {"input": usage.input_tokens, "output": usage.output_tokens}
                return SummarizerAnswer(answers[-1].text, None, {**figures, "cache_read": 0})
            except Exception as error:
                raise self._shrink_on_overflow(error, prompt) from error
        output = result.output
        if isinstance(output, Form):
            return SummarizerAnswer(output.model_dump_json(), output, _figures(result.usage))
        return SummarizerAnswer(str(output), None, _figures(result.usage))

    def settings(self, interaction: str = INTERACTION) -> Any:  # noqa: ANN401 - a typed dict of many
        """The model's own settings, with our header and a bounded answer."""
        own = cast("dict[str, Any]", self._model.settings or {})
        headers: dict[str, str] = {**(own.get("extra_headers") or {}), _HEADER: interaction}
        max_tokens = min(self.reserve, own.get("max_tokens") or self.reserve)
        return {**own, "max_tokens": max_tokens, "extra_headers": headers}

    def _shrink_on_overflow(self, error: Exception, prompt: str) -> Exception:
        """The error; if the prompt was too long, the room is smaller from now on."""
        sent = self._counter.text(prompt)
        overflow = overflow_in(error, window=self._window, sent=sent)
        if overflow is None:
            return error
        limit = overflow.limit or sent * 2 // 3
        self._window = min(self._window * 2 // 3, limit) if limit >= self._window else limit
        return WindowExceeded(f"{self.name} was shown more than it has room for.")


Resolve = Callable[[str, Job], Model]
"""The model of a name, for a fold: a name may mean different models in two sessions."""


def by_name(name: str, job: Job) -> Model:  # noqa: ARG001 - a name is the same for all
    return inferred(name)


class Summarizers:
    """Chooses the model: the primary one for manual folds, the summarizer for automatic ones.

    `resolve` gives the model of a name; by default, Pydantic AI infers it.
    """

    def __init__(self, resolve: Resolve = by_name, models: Overrides = NO_OVERRIDES) -> None:
        self._resolve = resolve
        self._models = models
        self._cache: OrderedDict[int, tuple[Model, ModelSummarizer]] = OrderedDict()

    def __call__(self, job: Job) -> Summarizer | None:
        """The summarizer of this fold; None for an extractive summary."""
        context = read_context(job.context)
        if context.values.writer == "log" and not context.summarizer:
            return None
        auto = context.summarizer if context.summarizer != PRIMARY else ""
        name = context.model if job.trigger == MANUAL else auto or context.model
        return self._for(self._resolve(name, job)) if name else None

    def _for(self, model: Model) -> ModelSummarizer:
        # One for each model, so that what it learned of its room is not lost.
        entry = self._cache.pop(id(model), None) or (model, ModelSummarizer(model, self._models))
        self._cache[id(model)] = entry
        while len(self._cache) > _MAX_MODELS:
            self._cache.popitem(last=False)
        return entry[1]


def by_model(resolve: Resolve = by_name, models: Overrides = NO_OVERRIDES) -> ByModel:
    """A writer of summaries for `Session.open`, with the models that settings and folds name."""
    return ByModel(Summarizers(resolve, models))


def _figures(usage: RunUsage) -> Mapping[str, int]:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
    }


class RemAgent:
    """Consolidates records with one model, whose only tool is `context_board`."""

    def __init__(self, model: Model, models: Overrides = NO_OVERRIDES) -> None:
        self._model = model
        self._summarizer = ModelSummarizer(model, models)

    @property
    def name(self) -> str:
        return self._summarizer.name

    @property
    def counter(self) -> Counter:
        return self._summarizer.counter

    @property
    def room(self) -> int:
        return self._summarizer.room * 3 // 4  # the rest is for its calls and their results

    async def read(self, guard: str, record: str, board: ContextBoard) -> Mapping[str, int]:
        agent: Agent[None, str] = Agent(
            self._model,
            instructions=guard,
            name="rem-agent",
            retries=2,
            metadata={"interaction_type": REM_INTERACTION},
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
                usage_limits=UsageLimits(request_limit=_MAX_REQUESTS),
                model_settings=self._summarizer.settings(REM_INTERACTION),
            )
        return _figures(usage)
