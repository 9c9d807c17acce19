"""Models as summarizers: agents without tools, that are shown a conversation as data.

Needs the extra `refold[pydantic-ai]`.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pydantic_ai import Agent, NativeOutput, capture_run_messages
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, infer_model
from pydantic_ai.usage import RunUsage, UsageLimits

from refold.errors import WindowExceeded
from refold.fold.compactor import MANUAL, read_context
from refold.fold.job import Job
from refold.fold.write.by_model import ByModel, Summarizer, SummarizerAnswer
from refold.fold.write.draft import Form
from refold.fold.write.transcript import GUARD
from refold.memory.board import ContextBoard
from refold.models.catalog import NONE, Overrides, counter_for, facts_of
from refold.models.overflow_errors import overflow_in
from refold.view import Counter
from refold.view.budget import ASSUMED_WINDOW

# Models by their names. Needs the extra `refold[pydantic-ai]`.

_MOST: Final = 256


@lru_cache(_MOST)
def inferred(name: str) -> Model:
    """The model of a name, as Pydantic AI makes it; made once."""
    return infer_model(name)


INTERACTION: Final = "conversation-compaction"
"""What the calls are for, as their header and their metadata say it."""
PRIMARY: Final = "primary"
"""The name by which settings call the model that the session is for."""
_HEADER = "X-Interaction-Type"
_MOST_KNOWN = 256  # models
_MOST_ANSWERED = 8_000  # tokens
_SHARE_ANSWERED = 4  # of the window, the fraction that is kept for the answer
_MARGIN = 0.95  # of what is left, since counts are never quite the provider's


class ModelSummarizer:
    """One model that writes summaries. It has no tools, and keeps no history."""

    def __init__(self, model: Model, models: Overrides = NONE) -> None:
        self._model = model
        self._counter = counter_for(model.model_id)
        facts = facts_of(model.model_id, models)
        self._window = facts.window or model.context_window or ASSUMED_WINDOW
        self._most = facts.output or _MOST_ANSWERED

    @property
    def name(self) -> str:
        """The model."""
        return self._model.model_id

    @property
    def counter(self) -> Counter:
        """Counts its tokens."""
        return self._counter

    @property
    def reserve(self) -> int:
        """Tokens of its window that are kept for the answer."""
        return min(self._most, self._window // _SHARE_ANSWERED)

    @property
    def room(self) -> int:
        """How many tokens a prompt may have."""
        left = self._window - self.reserve - self._counter.text(GUARD, "system")
        return int(_MARGIN * left / (1 + self._counter.spread))

    @property
    def structured(self) -> bool:
        """Whether the model fills in a form by itself; a tool for it would be a tool."""
        return bool(self._model.profile.get("supports_json_schema_output"))

    async def ask(self, guard: str, prompt: str, job: Job) -> SummarizerAnswer:
        """Its answer. Raises WindowExceeded where it was shown too much."""
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
                return self._as_it_came(messages, prompt, error)
            except Exception as error:
                raise self._refused(error, prompt) from error
        output = result.output
        usage = used(result.usage)
        if isinstance(output, Form):
            return SummarizerAnswer(output.model_dump_json(), output, usage)
        return SummarizerAnswer(str(output), None, usage)

    def settings(self, interaction: str = INTERACTION) -> Any:  # noqa: ANN401 - a typed dict of many
        """Its own settings, with our header; and no longer answer than there is room for."""
        own = cast("dict[str, Any]", self._model.settings or {})
        headers: dict[str, str] = {**(own.get("extra_headers") or {}), _HEADER: interaction}
        most = min(self.reserve, own.get("max_tokens") or self.reserve)
        return {**own, "max_tokens": most, "extra_headers": headers}

    def _as_it_came(
        self, messages: list[ModelMessage], prompt: str, error: UnexpectedModelBehavior
    ) -> SummarizerAnswer:
        """An answer that is no form, or cut short: its words are read as they are."""
        answers = [one for one in messages if isinstance(one, ModelResponse)]
        text = answers[-1].text if answers else None
        if not text:
            raise self._refused(error, prompt) from error
        usage = answers[-1].usage
        return SummarizerAnswer(text, None, _figures(usage.input_tokens, usage.output_tokens))

    def _refused(self, error: Exception, prompt: str) -> Exception:
        """The error; if the prompt was too long, less is shown from now on."""
        sent = self._counter.text(prompt)
        said = overflow_in(error, window=self._window, sent=sent)
        if said is None:
            return error
        named = said.limit or sent * 2 // 3
        self._window = min(self._window * 2 // 3, named) if named >= self._window else named
        return WindowExceeded(f"{self.name} was shown more than it has room for.")


Resolve = Callable[[str, Job], Model]
"""The model of a name, for a fold: two sessions may know two models by one name."""


def by_name(name: str, job: Job) -> Model:  # noqa: ARG001 - a name is the same for all
    """The model that Pydantic AI makes of a name."""
    return inferred(name)


class Summarizers:
    """Chooses who writes: people's folds are the primary model's, others the summarizer's.

    `resolve` gives the model of a name; without it, Pydantic AI makes one.
    """

    def __init__(self, resolve: Resolve = by_name, models: Overrides = NONE) -> None:
        self._resolve = resolve
        self._models = models
        self._made: OrderedDict[int, tuple[Model, ModelSummarizer]] = OrderedDict()

    def __call__(self, job: Job) -> Summarizer | None:
        """Who writes the summary of this fold; None where no model is to."""
        given = read_context(job.context)
        if given.values.writer == "log" and not given.summarizer:
            return None
        auto = given.summarizer if given.summarizer != PRIMARY else ""
        name = given.model if job.trigger == MANUAL else auto or given.model
        return self._summarizer(self._resolve(name, job)) if name else None

    def _summarizer(self, model: Model) -> ModelSummarizer:
        """One for each model, so that what it learned of its room is not lost."""
        made = self._made.pop(id(model), None) or (model, ModelSummarizer(model, self._models))
        self._made[id(model)] = made
        while len(self._made) > _MOST_KNOWN:
            self._made.popitem(last=False)
        return made[1]


def by_model(resolve: Resolve = by_name, models: Overrides = NONE) -> ByModel:
    """A writer of summaries for `Session.open`: models as the settings and each fold say."""
    return ByModel(Summarizers(resolve, models))


def used(usage: RunUsage) -> Mapping[str, int]:
    """The tokens of a run, by what they were for."""
    return _figures(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


def _figures(sent: int, answered: int, cached: int = 0) -> Mapping[str, int]:
    return {"input": sent, "output": answered, "cache_read": cached}


# The rem-agent: a model that reads a session and changes its board, and can do nothing else.
#
# Needs the extra `refold[pydantic-ai]`.

INTERACTION_REM_AGENT: Final = "memory-consolidation"
"""What the calls are for, as their header and their metadata say it."""
_MOST_REQUESTS = 12  # of one record


class RemAgent:
    """Reads records with one model. Its one tool is `context_board`, and it keeps no history."""

    def __init__(self, model: Model, models: Overrides = NONE) -> None:
        self._model = model
        self._asking = ModelSummarizer(model, models)

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
            metadata={"interaction_type": INTERACTION_REM_AGENT},
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
                model_settings=self._asking.settings(INTERACTION_REM_AGENT),
            )
        return used(usage)
