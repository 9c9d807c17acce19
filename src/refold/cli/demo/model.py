"""The demo's model: it plays a script, and reports what a real model would have used for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import RequestUsage

from refold.cli.demo.answering import Answer, answer_to
from refold.cli.demo.counting import PRICED_AS, Count
from refold.cli.demo.script import DETAIL, INSTRUCTIONS, PACE, PROMPTS, WINDOW
from refold.cli.demo.streaming import streamed, whole
from refold.cli.demo.tools import demo_tools
from refold.integrations.pydantic_ai.pydantic_ai_compat import PartStream
from refold.models import ModelSettings, Overrides, facts_of
from refold.view import PROFILES, Profile

__all__ = [
    "DETAIL",
    "INSTRUCTIONS",
    "NAME",
    "PACE",
    "PRICED_AS",
    "PROMPTS",
    "WINDOW",
    "DemoModel",
    "demo_model",
    "demo_models",
    "demo_profile",
    "demo_tools",
]

NAME: Final = "refold:demo"
"""The model, as sessions name it."""
_LONGEST = 500  # tokens that an answer may have: none of the script's is longer


class DemoModel(Model[None]):
    """Answers as the script says, by what it is shown and nothing else.

    Args:
        pace: Seconds for each word; 0 answers at once.
    """

    def __init__(self, pace: float = PACE) -> None:
        super().__init__(profile={"context_window": WINDOW})
        self._pace = pace
        self._count = Count()

    @property
    def model_name(self) -> str:
        """Its name."""
        return NAME.partition(":")[2]

    @property
    def system(self) -> str:
        """Who serves it."""
        return NAME.partition(":")[0]

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The answer at once."""
        _, offered = self.prepare_request(model_settings, model_request_parameters)
        answer, used = self._answer(messages, offered)
        return whole(answer, used, self.model_name)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002 - part of the interface
    ) -> AsyncGenerator[StreamedResponse]:
        """The answer, word by word."""
        _, offered = self.prepare_request(model_settings, model_request_parameters)
        answer, used = self._answer(messages, offered)
        yield PartStream(offered, streamed(answer, self._pace), used, self.model_name)

    def _answer(
        self, messages: list[ModelMessage], offered: ModelRequestParameters
    ) -> tuple[Answer, RequestUsage]:
        answer = answer_to(messages, [tool.name for tool in offered.function_tools])
        return answer, self._count.usage(messages, offered, answer)


def demo_model(pace: float = PACE) -> Model[Any]:
    """The model of the demo; it needs no key and no network."""
    return DemoModel(pace)


def demo_profile() -> Profile:
    """The default profile, but each request waits for the fold that it starts.

    Then everybody who watches sees the same figures, however slow the machine is.
    """
    profile = PROFILES["balanced"]
    return profile.model_copy(update={"fold": profile.fold.model_copy(update={"apply": "inline"})})


def demo_models() -> Overrides:
    """What is known of it, for `Refold(models=…)`: its window, and the prices it is shown at."""
    prices = facts_of(PRICED_AS).prices
    return {
        NAME: ModelSettings(
            window=WINDOW,
            output=_LONGEST,
            input_price=prices.input,
            output_price=prices.output,
            cache_read_price=prices.cache_read,
            cache_write_price=prices.cache_write,
        )
    }
