"""Models that write summaries, and that consolidate sessions into facts on a board.

Needs the extra `refold[pydantic-ai]`.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pydantic_ai import Agent, NativeOutput, capture_run_messages
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.usage import RunUsage, UsageLimits

from refold.errors import FoldNotMade, NoModel, WindowExceeded
from refold.fold.compactor import AUTO, MANUAL, read_context
from refold.fold.job import Job
from refold.fold.material import Material, Passage
from refold.fold.summary import Offer
from refold.fold.write.by_model import ByModel, Choice, SummarizerAnswer
from refold.fold.write.draft import Form
from refold.fold.write.transcript import GUARD
from refold.memory.board import ContextBoard
from refold.models.catalog import (
    NO_OVERRIDES,
    Overrides,
    Usage,
    cost_of,
    counter_for,
    facts_of,
)
from refold.models.overflow_errors import overflow_in, words_of
from refold.models.summarizer_choice import (
    CHEAPER,
    FindLast,
    WarmSummarizer,
    choose_cheapest,
    figures_of,
    same_account,
    transcript_offer,
)
from refold.view import Counter
from refold.view.budget import ASSUMED_WINDOW
from refold.view.policies.pair import INTERRUPTED

INTERACTION: Final = "conversation-compaction"
REM_INTERACTION: Final = "memory-consolidation"
"""The purpose of calls, in their header and their metadata."""
_HEADER = "X-Interaction-Type"
_MAX_MODELS = 256
_MAX_ID = 200  # characters
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

    warm = False

    def __init__(self, model: Model, models: Overrides = NO_OVERRIDES) -> None:
        self.model = model
        self._models = models
        self._counter = counter_for(model.model_id)
        facts = facts_of(model.model_id, models)
        self._window = facts.window or model.context_window or ASSUMED_WINDOW
        self._max_answer = facts.output or _MAX_ANSWER

    @property
    def name(self) -> str:
        return self.model.model_id

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

    def offer(self, material: Material) -> Offer:
        """A summary that it writes, with its price."""
        return transcript_offer(material, self, self._models)

    @property
    def structured(self) -> bool:
        # Only native output counts: otherwise the form would need a tool.
        return bool(self.model.profile.get("supports_json_schema_output"))

    async def ask(
        self, guard: str, prompt: str, job: Job, history: Sequence[Passage] = ()
    ) -> SummarizerAnswer:
        form = self.structured and read_context(job.context).values.ground == "check"
        agent: Agent[None, Any] = Agent(
            self.model,
            output_type=NativeOutput(Form) if form else str,
            instructions=guard,
            name="refold-summarizer",
            retries=0,
            metadata={"interaction_type": INTERACTION, "fold": str(job.fold)},
        )
        with capture_run_messages() as messages:
            try:
                result = await agent.run(
                    prompt,
                    message_history=conversation(history) or None,
                    model_settings=self.settings(),
                )
            except UnexpectedModelBehavior as error:
                # It filled in no form, or was cut off: the text is read as it is.
                answers = [message for message in messages if isinstance(message, ModelResponse)]
                if not answers or not answers[-1].text:
                    raise self._failure(error, prompt) from error
                figures = figures_of(answers[-1].usage)
                return SummarizerAnswer(answers[-1].text, None, figures, _id_of(answers[-1]))
            except Exception as error:
                raise self._failure(error, prompt) from error
        output, request = result.output, _id_of(result.response)
        if isinstance(output, Form):
            text = output.model_dump_json()
            return SummarizerAnswer(text, output, figures_of(result.usage), request)
        return SummarizerAnswer(str(output), None, figures_of(result.usage), request)

    def settings(self, interaction: str = INTERACTION) -> Any:  # noqa: ANN401 - a typed dict of many
        """The model's own settings, with our header and a bounded answer."""
        own = cast("dict[str, Any]", self.model.settings or {})
        headers: dict[str, str] = {**(own.get("extra_headers") or {}), _HEADER: interaction}
        max_tokens = min(self.reserve, own.get("max_tokens") or self.reserve)
        return {**own, "max_tokens": max_tokens, "extra_headers": headers}

    def _failure(self, error: Exception, prompt: str) -> Exception:
        """What to raise; if the prompt was too long, the room is smaller from now on."""
        sent = self._counter.text(prompt)
        overflow = overflow_in(error, window=self._window, sent=sent)
        if overflow is None:
            if isinstance(error, ModelAPIError):
                return FoldNotMade(words_of(error, self.name))
            return error
        limit = overflow.limit or sent * 2 // 3
        self._window = min(self._window * 2 // 3, limit) if limit >= self._window else limit
        return WindowExceeded(f"{self.name} was shown more than it has room for.")


def conversation(passages: Iterable[Passage]) -> list[ModelMessage]:
    """The passages as messages that any provider takes: no call without a return, nor the reverse.

    System content, reasoning and what only its provider can read are left out.
    """
    messages: list[ModelMessage] = []
    calls: dict[str, str] = {}  # open ones, with their tools
    for passage in passages:
        said = _response_parts(passage)
        if said:
            messages += _unanswered(calls)
            calls = {
                part.tool_call_id: part.tool_name for part in said if isinstance(part, ToolCallPart)
            }
            messages.append(ModelResponse(parts=said))
            continue
        heard: list[ModelRequestPart] = []
        for shape in passage.shapes:
            if shape.kind == "return" and (tool := calls.pop(shape.call or "", None)):
                heard.append(ToolReturnPart(tool, shape.text, shape.call or ""))
            elif shape.kind == "prompt" and shape.text.strip():
                heard.append(UserPromptPart(shape.text))
        if any(isinstance(part, UserPromptPart) for part in heard):
            messages += _unanswered(calls)
            calls = {}
        if heard:
            messages.append(ModelRequest(parts=heard))
    return [*messages, *_unanswered(calls)]


def _response_parts(passage: Passage) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    for shape in passage.shapes:
        if shape.kind == "text" and shape.text.strip():
            parts.append(TextPart(shape.text))
        elif shape.kind == "call" and shape.tool and shape.call:
            parts.append(ToolCallPart(shape.tool, shape.text, shape.call))
    return parts


def _unanswered(calls: Mapping[str, str]) -> list[ModelMessage]:
    parts = [ToolReturnPart(tool, INTERRUPTED, call) for call, tool in calls.items()]
    return [ModelRequest(parts=parts)] if parts else []


Resolve = Callable[[str, Job], Model]
"""The model of a name, for a fold: a name may mean different models in two sessions."""


def by_name(name: str, job: Job) -> Model:  # noqa: ARG001 - a name is the same for all
    return inferred(name)


class Summarizers:
    """Chooses the model: the primary one for manual folds, the summarizer for automatic ones.

    `resolve` gives the model of a name; by default, Pydantic AI infers it. `last` gives the request
    that a session sent last, if this process sent it.
    """

    def __init__(
        self,
        resolve: Resolve = by_name,
        models: Overrides = NO_OVERRIDES,
        last: FindLast = lambda _: None,
    ) -> None:
        self._resolve = resolve
        self._models = models
        self._last = last
        self._cache: OrderedDict[int, tuple[Model, ModelSummarizer]] = OrderedDict()

    async def __call__(self, job: Job, material: Material) -> Choice:
        """The summarizers of this fold; none for an extractive summary."""
        context = read_context(job.context)
        if context.values.writer == "log" and not context.summarizer:
            return Choice()
        if context.summarizer == AUTO:
            return await self._cheapest(job, material, context.model)
        name = context.model if job.trigger == MANUAL else context.named or context.model
        return Choice((self._for(self._resolve(name, job)),)) if name else Choice()

    async def _cheapest(self, job: Job, material: Material, name: str) -> Choice:
        transcripts: list[ModelSummarizer] = []
        with suppress(NoModel):  # nobody asked for one: the log writes the summary, as it would
            own = self._for(self._resolve(name, job))
            transcripts = [own, *filter(None, [self._cheaper(own, job)])]
        last = self._last(job)
        warm: WarmSummarizer | None = None
        entries = [passage.seq for passage in material.passages]
        if last is not None and last.can_be_asked(name, entries):
            warm = WarmSummarizer(name, last, counter_for(name), {_HEADER: INTERACTION})
        # It counts the tokens of a transcript.
        return await asyncio.to_thread(
            choose_cheapest, job, material, name, warm, transcripts, models=self._models
        )

    def _cheaper(self, own: ModelSummarizer, job: Job) -> ModelSummarizer | None:
        """A cheaper model of the same provider, for the same account; None if there is none."""
        provider = own.name.partition(":")[0]
        name = f"{provider}:{CHEAPER.get(provider, '')}"
        if name.endswith(":") or name == own.name:
            return None
        try:
            model = self._resolve(name, job)
        except Exception:  # noqa: BLE001 - a key that is missing; the session's own model writes it
            return None
        return self._for(model) if same_account(own.model, model) else None

    def _for(self, model: Model) -> ModelSummarizer:
        # One for each model, so that what it learned of its room is not lost.
        entry = self._cache.pop(id(model), None) or (model, ModelSummarizer(model, self._models))
        self._cache[id(model)] = entry
        while len(self._cache) > _MAX_MODELS:
            self._cache.popitem(last=False)
        return entry[1]


def by_model(
    resolve: Resolve = by_name,
    models: Overrides = NO_OVERRIDES,
    last: FindLast = lambda _: None,
) -> ByModel:
    """A writer of summaries for `Session.open`, with the models that settings and folds name."""

    def price(name: str, usage: Mapping[str, int]) -> float | None:
        counts = (usage.get(count, 0) for count in Usage._fields)
        return cost_of(Usage(*counts), facts_of(name, models).prices)

    return ByModel(Summarizers(resolve, models, last), price)


def _id_of(response: ModelResponse) -> str:
    return (response.provider_response_id or "")[:_MAX_ID]


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
        return figures_of(usage)
