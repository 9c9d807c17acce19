"""A model that decides the tool calls itself and still asks the real one each time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx2
from local_model.journal import Journal
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

Calls = Sequence[tuple[str, dict[str, Any]]]
"""Tools by name, with their arguments; none ends the turn."""
Script = Callable[[int, int], Calls]
"""What is called in which turn and which step of it."""


def local(
    url: str,
    client: httpx2.AsyncClient,
    *,
    window: int | None = None,
    settings: ModelSettings | None = None,
) -> OpenAIChatModel:
    """The real model behind that address. It says its window only when it is given here."""
    provider = OpenAIProvider(base_url=url, api_key="none", http_client=client)
    profile: ModelProfile = {} if window is None else {"context_window": window}
    return OpenAIChatModel("smollm2", provider=provider, profile=profile, settings=settings)


class Deciding(WrapperModel):
    """Sends every request on, so that the server judges and counts it; then says what is called.

    The server's words are kept where the turn is to end, and everywhere its count of tokens.
    """

    def __init__(self, wrapped: OpenAIChatModel, script: Script, journal: Journal):
        super().__init__(wrapped)
        self._script = script
        self._journal = journal
        self._at = (0, 0)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = await super().request(messages, model_settings, model_request_parameters)
        if not model_request_parameters.function_tools:
            return response  # not the agent's own request
        turn, step = self._next_step()
        parts = [
            ToolCallPart(tool, arguments, tool_call_id=f"t{turn}s{step}c{nth}")
            for nth, (tool, arguments) in enumerate(self._script(turn, step))
        ]
        if parts:
            return replace(response, parts=parts, finish_reason="tool_call")
        words = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        said = TextPart(f"{words} (end of turn {turn})".strip())
        return replace(response, parts=[said], finish_reason="stop")

    def _next_step(self) -> tuple[int, int]:
        turn, step = self._at
        self._at = (self._journal.turn, step + 1 if turn == self._journal.turn else 0)
        return self._at
