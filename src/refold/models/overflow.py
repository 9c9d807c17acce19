"""Whether a provider refused a request for its length, and what it said of its limit.

Every provider words it differently, most in a sentence, and some of these sentences are close to
those about rates, credits and the length of an answer.

Only a bounded part of a body is read, and nothing here raises.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple, cast

__all__ = [
    "CODES",
    "OTHER_CODES",
    "OTHER_SENTENCES",
    "SENTENCES",
    "Overflow",
    "overflow_of",
    "refused_otherwise",
]


class Sentence(NamedTuple):
    """The wording of one refusal, in lower case, and of its numbers (each a `#`).

    If a number has several wordings, the first that is found counts. For a new wording, add a row
    to `SENTENCES`, and its body to `tests/overflow_bodies.toml`.
    """

    mark: str
    """What only this refusal says."""
    limit: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    """Input and output together, or input alone if there is no output."""
    over: tuple[str, ...] = ()
    """By how much the limit is exceeded."""


CODES: Final = frozenset(
    {
        "context_exceeded",
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "request_too_large",
        "token_limit_exceeded",
    }
)
"""The `code` or `type` of a request that is too long."""

OTHER_CODES: Final = frozenset({"insufficient_quota", "rate_limit_error", "rate_limit_exceeded"})
"""Those of a request that came too soon, or unpaid."""

OTHER_STATUSES: Final = frozenset({401, 402, 403, 404, 408, 409, 429, 529})
"""Statuses that have nothing to do with the length, whatever the sentence."""

TOO_LARGE: Final = 413
"""The status for it, unless the body gives another reason."""

FIELDS: Final = {"n_ctx": "limit", "n_prompt_tokens": "asked"}
"""Fields with a number of their own."""

SENTENCES: Final = (
    # OpenAI and whoever speaks like it: Azure, DeepSeek, OpenRouter, vLLM, SGLang, llama-cpp-python
    Sentence(
        "maximum context length (?:is|of) #",
        limit=("maximum context length (?:is|of) #",),
        asked=("resulted in # tokens", "has # input tokens"),
        output=(
            "# (?:in|for) the (?:completion|output)",
            "# tokens for the completion",
            "requested # output tokens",
            "plus # 'max_tokens'",
            "is too large: #",
        ),
        total=("total of (?:at least )?# tokens", "requested (?:about )?# tokens"),
    ),
    Sentence(
        "input tokens exceed the configured limit of #",
        limit=("limit of #",),
        asked=("resulted in # tokens",),
    ),
    Sentence("exceeds (?:the|model) context window"),
    # Anthropic, also on Bedrock; Fireworks
    Sentence(
        "prompt is too long",
        limit=("> # maximum", "maximum context length: #"),
        asked=("too long: #",),
    ),
    Sentence(
        r"exceed context limit: # \+ # > #", limit=("> #",), asked=("limit: #",), output=(r"\+ #",)
    ),
    # Google
    Sentence(
        r"input token count (?:\(#\) )?exceeds the maximum number of tokens allowed",
        limit=(r"allowed \(?#",),
        asked=(r"count \(#",),
    ),
    Sentence(
        "input token count is # but (?:the )?model only supports up to #",
        limit=("up to #",),
        asked=("count is #",),
    ),
    # Bedrock
    Sentence("input is too long for requested model"),
    Sentence("input tokens exceeded: number of input tokens exceeds maximum length"),
    Sentence("value at 'body' failed to satisfy constraint: member must have length less than"),
    # Mistral, Cohere, xAI
    Sentence(
        "too large for model with # maximum context length",
        limit=("model with #",),
        asked=("contains # tokens",),
    ),
    Sentence(
        "too many tokens: [^.]{0,60}size limit exceeded by #",
        limit=("limit for this model is #",),
        over=("exceeded by #",),
    ),
    Sentence(
        "too many tokens: total number of tokens",
        limit=("cannot exceed #", "exceeds the limit of #"),
        asked=("received #",),
    ),
    Sentence(
        "maximum prompt length is # but the request contains #",
        limit=("length is #",),
        asked=("contains #",),
    ),
    # Groq, Cerebras
    Sentence(
        "reduce the length of the messages", limit=("limit is #",), asked=("current length is #",)
    ),
    # Text Generation Inference, Together; SGLang
    Sentence(
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= #",
        limit=("<= #",),
        asked=("given: #",),
        output=("and # `?max_new_tokens",),
    ),
    Sentence(
        "`?inputs`? must have less than # tokens", limit=("less than #",), asked=("given: #",)
    ),
    Sentence(
        "is longer than the model's context length",
        limit=(r"context length \(#",),
        asked=(r"input \(#",),
    ),
    Sentence(
        r"input length \(# tokens\) exceeds the maximum allowed length \(#",
        limit=(r"allowed length \(#",),
        asked=(r"input length \(#",),
    ),
    # vLLM
    Sentence(
        "is longer than the maximum model length of #",
        limit=("model length of #",),
        asked=(r"\(length #",),
    ),
    Sentence(
        r"too long to fit into the model \(context length #",
        limit=(r"context length #",),
        asked=("total length #",),
    ),
    Sentence(r"max_tokens must be at least 1, got -\d\d"),  # what the prompt left for the answer
    # llama.cpp, llama-cpp-python, LM Studio, Ollama
    Sentence(
        "exceeds the available context size", limit=(r"context size \(#",), asked=(r"request \(#",)
    ),
    Sentence(
        r"requested tokens \(#\) exceed context window of #",
        limit=("window of #",),
        asked=(r"tokens \(#",),
    ),
    Sentence("greater than the context length", limit=("n_ctx: #",), asked=("n_keep: #",)),
    Sentence(
        r"cannot truncate prompt with n_keep \(#\) >= n_ctx \(#",
        limit=(r"n_ctx \(#",),
        asked=(r"n_keep \(#",),
    ),
    Sentence(
        "when context the overflows", limit=("of only # tokens",), asked=("keep the first #",)
    ),
    Sentence(
        "input does not fit in context length",
        limit=("only supports # tokens",),
        asked=("input has # tokens",),
    ),
    Sentence("reached context length of # tokens", limit=("context length of #",)),
    Sentence("input length exceeds the context length"),
    # Moonshot, DashScope, MiniMax (the number it gives is a code), Zhipu, GitHub Copilot, others
    Sentence("exceeded model token limit", limit=("token limit: #",), asked=("requested: #",)),
    Sentence(r"range of input length should be \[", limit=(r"\[\d{1,6}, ?#\]",)),
    Sentence("context window exceeds limit"),
    Sentence("prompt exceeds max(?:imum context)? length"),
    Sentence(
        "prompt token count of # exceeds the limit of #",
        limit=("limit of #",),
        asked=("count of #",),
    ),
    Sentence(
        "prompt too long: # tokens exceeds max context window of #",
        limit=("window of #",),
        asked=("too long: #",),
    ),
    Sentence(
        r"length of prompt_tokens \(#\) must be less than max_seq_len",
        limit=(r"max_seq_len \(#",),
        asked=(r"prompt_tokens \(#",),
    ),
    Sentence("model max length exceeded", limit=("max length: #",)),
    Sentence(
        "prompt is # tokens but the model context window is #",
        limit=("window is #",),
        asked=("prompt is #",),
    ),
    Sentence("context[ _](?:length|size)[ _](?:has been )?exceeded"),
)
"""The sentences, tried in this order."""

OTHER_SENTENCES: Final = (
    r"\bper (?:min|minute|day|hour)\b",
    r"\brate limit",
    r"\bquota\b",
    r"\bcredits?\b",
    "maximum output for this model",
)
"""Wordings of other reasons, even if they mention too many tokens."""

_Object = dict[object, object]

_MESSAGE_FIELDS: Final = (
    "message",
    "error",
    "errors",
    "detail",
    "details",
    "msg",
    "errorMessage",
    "error_msg",
    "metadata",
    "raw",
    "base_resp",
    "status_msg",
    "response",
)
"""Fields with the reason. Other fields may quote the request."""

_MAX_VALUES: Final = 50  # objects, lists and texts of a body that are read
_MAX_CHARS: Final = 4_000  # of a text
_MAX_JSON: Final = 2_000_000  # characters

_NUMBER: Final = r"(\d{1,3}(?:[,_'\u00a0\u202f]\d{3})+|\d{1,12})(?:\.0)?(?!\d)"
"""A number, perhaps with separators of thousands."""

_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


class Overflow(NamedTuple):
    """A request was refused for its length. What the provider did not say is None."""

    limit: int | None = None
    """How many tokens it takes: of input, or of input and output together."""
    asked: int | None = None
    """How many tokens of input it counted."""
    output: int | None = None
    """How many tokens of output were requested, if they count toward the limit."""


def overflow_of(status: int | None, body: object, text: str = "") -> Overflow | None:
    """What a refusal says of the request's length; None if that was not the reason.

    Args:
        status: The HTTP status, if there was one.
        body: The body, parsed or raw.
        text: The error message, if there is no body.
    """
    refusal = _Refusal(body, text)
    if refusal.has_other_reason(status):
        return None
    overflow = next(filter(None, map(_match_sentence, refusal.texts)), None)
    if overflow is None and not refusal.codes & CODES and status != TOO_LARGE:
        return None
    return (overflow or Overflow())._replace(**refusal.numbers)


def refused_otherwise(status: int | None, body: object, text: str = "") -> bool:
    """Whether the reason only sounds like the request's length: a rate, a credit."""
    return _Refusal(body, text).has_other_reason(status)


class _Refusal:
    def __init__(self, body: object, text: str) -> None:
        self.texts: list[str] = []
        self.codes: set[str] = set()
        self.numbers: dict[str, int] = {}
        for value in _values(body if text == "" else [body, text]):
            if isinstance(value, str):
                self.texts.append(" ".join(value[:_MAX_CHARS].translate(_QUOTES).lower().split()))
                continue
            codes = (value.get("code"), value.get("type"))
            self.codes.update(code.lower() for code in codes if isinstance(code, str))
            for field, name in FIELDS.items():
                number = value.get(field)
                if type(number) is int and number > 0:
                    self.numbers[name] = number

    def has_other_reason(self, status: int | None) -> bool:
        if status in OTHER_STATUSES or self.codes & OTHER_CODES:
            return True
        return any(_pattern(other).search(text) for text in self.texts for other in OTHER_SENTENCES)


def _values(body: object) -> Iterator[_Object | str]:
    """The objects and texts of a body, outer ones first, including JSON inside texts."""
    waiting = deque[object]([body])
    for _ in range(_MAX_VALUES):
        if not waiting:
            return
        value = waiting.popleft()
        if isinstance(value, bytes | bytearray):
            value = bytes(value[:_MAX_JSON]).decode(errors="replace")
        if isinstance(value, str):
            inner: object = None
            if len(value) <= _MAX_JSON and value.lstrip().startswith(("{", "[")):
                with suppress(ValueError, RecursionError):
                    inner = json.loads(value)
            if inner is None:
                yield value
            else:
                waiting.append(inner)
        elif isinstance(value, dict):
            fields = cast("_Object", value)
            yield fields
            waiting.extend(fields[key] for key in _MESSAGE_FIELDS if key in fields)
        elif isinstance(value, list | tuple):
            waiting.extend(cast("list[object]", value)[:_MAX_VALUES])


def _match_sentence(text: str) -> Overflow | None:
    sentence = next((one for one in SENTENCES if _pattern(one.mark).search(text)), None)
    if sentence is None:
        return None
    limit, output = _number(sentence.limit, text), _number(sentence.output, text)
    total, over = _number(sentence.total, text), _number(sentence.over, text)
    asked = _number(sentence.asked, text)
    if asked is None and total is not None:
        asked = total - (output or 0)
    if asked is None and limit is not None and over is not None:
        asked = limit + over
    return Overflow(limit, asked, output)


def _number(wordings: Iterable[str], text: str) -> int | None:
    for wording in wordings:
        if found := _pattern(wording).search(text):
            return int(re.sub(r"\D", "", found[1])) or None
    return None


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words.replace("#", _NUMBER))
