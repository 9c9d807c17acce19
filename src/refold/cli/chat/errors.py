"""Why a turn failed, and what to do about it."""

import os
import re
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestContext

from refold.errors import PromptTooLarge, RefoldError, WindowExceeded
from refold.models.overflow_errors import is_disconnect, short, words_of

RETRIABLE = {"provider", "model", "failed"}
"""Codes of turns that may work the next time."""
_KEYS = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?(?:_|\d|$)", re.IGNORECASE)
"""Names of environment variables that nobody else should read."""
_MIN_KEY = 8  # characters of a key; a shorter value may be a word
_TOO_LONG = (
    "Go on with another prompt: this one is left out of the context, and the model sees one line "
    "in its place."
)
_OFFICIAL = ("https://api.openai.com", "https://api.anthropic.com")
"""Whose streams end with a reason, whenever they are whole."""


class Advice(NamedTuple):
    """What to do next: in the chat, by its commands; after `-p`, by those of the shell."""

    resume: str = ""
    """The shell's command for the session, after `-p`."""

    def retry(self) -> str:
        how = self._either("/retry", f'`{self.resume} -p "…"` with the same words')
        return f"{how} sends your message again; tools that ran already are not run again."

    def go_on(self) -> str:
        what = "The model stopped at its output limit."
        return self._either(f"{what} Say `go on`.", f'{what} Run: {self.resume} -p "go on"')

    def more_steps(self) -> str:
        return self._either(
            "Say `go on`, or allow more: /config max_steps 50.",
            f'Run: {self.resume} -p "go on". Or allow more: refold config max_steps 50',
        )

    def other_model(self) -> str:
        return self._either("choose another: /model.", "choose another: -m PROVIDER:MODEL.")

    def explain(self) -> str:
        return self._either("/explain", "`refold explain`")

    def command(self, command: str) -> str:
        """A command that only the chat has."""
        return self._either(command, f"{command} (typed in `{self.resume}`)")

    def too_long(self) -> str:
        file = "To have the model read it, save it as a file in"
        return self._either(
            f"{_TOO_LONG} /undo removes that line too. {file} this folder and name the file.",
            f"{_TOO_LONG} {file} a folder, name the file, and add --files FOLDER.",
        )

    def _either(self, typed: str, printed: str) -> str:
        return printed if self.resume else typed


CHAT: Final = Advice()


class AnswerCutOff(ModelAPIError):
    """A stream ended, and the model had not said that its answer was whole."""


class AnswerEnds(AbstractCapability[Any]):
    """Sees how the answers of a turn end; one that was cut off fails the turn."""

    def __init__(self) -> None:
        self.reason = ""
        """Why the newest answer ended, as Pydantic AI calls it; empty if nothing says so."""
        self._cut_off = False

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        self.reason = response.finish_reason or ""
        self._cut_off = request_context.streaming and _is_cut_off(response, ctx.messages)
        return replace(response, state="interrupted") if self._cut_off else response

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:  # noqa: ANN401 - Pydantic AI's own type needs its graph
        if self._cut_off:  # the log has it by now, and none of its calls was run
            raise AnswerCutOff(ctx.model.model_id, "The answer was cut off.")
        return node


def _is_cut_off(response: ModelResponse, earlier: list[ModelMessage]) -> bool:
    """Whether an answer's stream ended without a reason, where whole ones end with one.

    Some servers never give a reason. This one does if it has given one in this conversation.
    """
    if _raw_reason(response) or response.finish_reason not in (None, "stop"):
        return False
    if (response.provider_url or "").startswith(_OFFICIAL):
        return True
    source = (response.provider_url, response.model_name)
    return any(
        isinstance(message, ModelResponse)
        and (message.provider_url, message.model_name) == source
        and _raw_reason(message)
        for message in earlier
    )


def _raw_reason(response: ModelResponse) -> str:
    """The reason in the provider's own words: where it gave none, Pydantic AI assumes `stop`."""
    return str((response.provider_details or {}).get("finish_reason") or "")


def describe_error(
    error: Exception, model: str, advice: Advice = CHAT, *, began: bool = False
) -> tuple[str, str, str]:
    """What happened, what to do, and a code for programs.

    Args:
        error: What the turn raised.
        model: The model's name.
        advice: What can be done where this is shown.
        began: Whether the error came in the middle of an answer.
    """
    what, fix, code = _describe(error, model, advice, began=began)
    if code in RETRIABLE:
        fix = f"{fix}\n{advice.retry()}".strip()
    return without_keys(what), without_keys(fix), code


def _describe(  # noqa: PLR0911 - one a kind
    error: Exception, model: str, advice: Advice, *, began: bool
) -> tuple[str, str, str]:
    match error:
        case PromptTooLarge():
            return error.what, advice.too_long(), error.code
        case WindowExceeded():
            undo = advice.command("/undo")
            return error.what, f"{error.fix} {undo} takes the prompt back.", error.code
        case RefoldError():
            return error.what, error.fix, error.code
        case AnswerCutOff():
            return "The answer stopped before its end.", "", "provider"
        case ModelHTTPError(status_code=status):
            return words_of(error, model, _short), _fix(status, advice), "provider"
        case ModelAPIError() if began and is_disconnect(error):
            what = f"The connection to {model} broke in the middle of the answer."
            return what, "", "provider"
        case ModelAPIError() if began:
            return f"{model} broke its answer off: {_short(str(error))}", "", "provider"
        case ModelAPIError():
            fix = "Check the connection and the address, then try again."
            return words_of(error, model, _short), fix, "provider"
        case UnexpectedModelBehavior() | UserError():
            return _short(error.message), f"Try again, or {advice.other_model()}", "model"
        case _:
            what = f"{type(error).__name__}: {_short(str(error))}"
            return (
                what,
                "The log has everything up to here. Try again, or look at the tool.",
                "failed",
            )


def without_keys(text: str) -> str:
    """The text without the environment's keys: some providers repeat them."""
    values = (value.strip() for name, value in os.environ.items() if _KEYS.search(name))
    keys = {value for value in values if len(value) >= _MIN_KEY}
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, "…")
    return text


def _fix(status: int, advice: Advice) -> str:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "Check its key; `refold doctor` shows which one is used."
    if status == HTTPStatus.NOT_FOUND:
        return f"Check the model's name, or {advice.other_model()}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return f"Its limit is reached: wait a moment and try again, or {advice.other_model()}"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "The fault is the provider's: try again in a moment."
    return f"Look at what it says; {advice.explain()} shows what was sent."


def _short(text: str) -> str:
    return short(without_keys(text))
