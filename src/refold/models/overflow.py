"""Whether a provider refused a request for its length, and what it said of its limit.

No two providers say it alike, most say it in a sentence, and some of these sentences are close to
those about rates, credits and the length of an answer. What is known of them stands in
`refold.models.overflow`.

Nothing here reads more than a bounded part of a body, and nothing raises.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
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


# How providers word it that a request is too long, and what sounds alike but is not that.
#
# A new wording is one more row in `SENTENCES`: what only it says, and where its numbers stand. Put
# the body that it was seen in beside the others, which the tests hold
# (`tests/overflow_bodies.toml`).


class Sentence(NamedTuple):
    """How one refusal is worded, in lower case, and where its numbers stand (each a `#`).

    Where a number can stand in several places, the first that is found counts.
    """

    mark: str
    """What only this refusal says."""
    limit: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    """Input and output together, or input alone where no output is told."""
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
"""What `code` or `type` say of a request that is too long."""

OTHER_CODES: Final = frozenset({"insufficient_quota", "rate_limit_error", "rate_limit_exceeded"})
"""What they say of a request that only came too soon, or unpaid."""

OTHER_STATUSES: Final = frozenset({401, 402, 403, 404, 408, 409, 429, 529})
"""Statuses of requests that their length is no reason for, whatever the sentence."""

TOO_LARGE: Final = 413
"""The status for it, unless the body gives another reason."""

FIELDS: Final = {"n_ctx": "limit", "n_prompt_tokens": "asked"}
"""Fields that give a number without a sentence."""

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
        r"exceed context limit: # \+ # > #",
        limit=("> #",),
        asked=("limit: #",),
        output=(r"\+ #",),
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
        "reduce the length of the messages",
        limit=("limit is #",),
        asked=("current length is #",),
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
        "exceeds the available context size",
        limit=(r"context size \(#",),
        asked=(r"request \(#",),
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
"""What a refusal for another reason says, even where it speaks of too many tokens."""


_Object = dict[object, object]

_SAID: Final = (
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
"""Where a body says what happened. Elsewhere it may quote the request, which gives no reason."""

_OPENED: Final = 50
"""Of a body's objects, lists and texts, how many are read."""

_READ: Final = 4_000
"""Of a text, how many characters."""

_PARSED: Final = 2_000_000
"""Of a text that is JSON, how many characters at most."""

_NUMBER: Final = r"(\d{1,3}(?:[,_'\u00a0\u202f]\d{3})+|\d{1,12})(?:\.0)?(?!\d)"
"""A number, also with marks between its thousands."""

_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


class Overflow(NamedTuple):
    """A request was refused for its length. What the provider did not say is None."""

    limit: int | None = None
    """How many tokens it takes: of input, or of input and output together."""
    asked: int | None = None
    """How many tokens of input it counted."""
    output: int | None = None
    """How many tokens of output were asked for, where they count towards the limit."""


def overflow_of(status: int | None, body: object, text: str = "") -> Overflow | None:
    """What a refusal says of the request's length; None where that was not the reason.

    Args:
        status: The HTTP status, where there was one.
        body: The body, as JSON was read from it or as it came.
        text: What else was said, where there is no body.
    """
    told = _told(body, text)
    if _otherwise(status, told):
        return None
    worded = next(filter(None, map(_worded, told.texts)), None)
    if worded is None and not told.codes & CODES and status != TOO_LARGE:
        return None
    return (worded or Overflow())._replace(**told.numbers)


def refused_otherwise(status: int | None, body: object, text: str = "") -> bool:
    """Whether a refusal gives a reason that sounds like its length and is not: a rate, a credit."""
    return _otherwise(status, _told(body, text))


class _Told(NamedTuple):
    """What is read of a body."""

    texts: list[str]
    codes: set[str]
    numbers: dict[str, int]


def _told(body: object, text: str) -> _Told:
    told = _Told([], set(), {})
    for found in _opened(body if text == "" else [body, text]):
        if isinstance(found, str):
            told.texts.append(_plain(found))
            continue
        codes = (found.get("code"), found.get("type"))
        told.codes.update(code.lower() for code in codes if isinstance(code, str))
        for field, name in FIELDS.items():
            number = found.get(field)
            if type(number) is int and number > 0:
                told.numbers[name] = number
    return told


def _otherwise(status: int | None, told: _Told) -> bool:
    if status in OTHER_STATUSES or told.codes & OTHER_CODES:
        return True
    return any(_pattern(other).search(text) for text in told.texts for other in OTHER_SENTENCES)


def _opened(body: object) -> Iterator[_Object | str]:
    """The objects and texts of a body, outer ones first, also of JSON within texts."""
    waiting = deque[object]([body])
    for _ in range(_OPENED):
        if not waiting:
            return
        found = waiting.popleft()
        if isinstance(found, bytes | bytearray):
            found = bytes(found[:_PARSED]).decode(errors="replace")
        if isinstance(found, str):
            inner = _parsed(found)
            if inner is None:
                yield found
            else:
                waiting.append(inner)
        elif isinstance(found, dict):
            opened = cast("_Object", found)
            yield opened
            waiting.extend(opened[key] for key in _SAID if key in opened)
        elif isinstance(found, list | tuple):
            waiting.extend(cast("list[object]", found)[:_OPENED])


def _parsed(text: str) -> object:
    """What JSON the text is, if it is an object or a list."""
    if len(text) > _PARSED or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(text: str) -> str:
    return " ".join(text[:_READ].translate(_QUOTES).lower().split())


def _worded(text: str) -> Overflow | None:
    """What the text says, if it has one of the sentences."""
    said = next((one for one in SENTENCES if _pattern(one.mark).search(text)), None)
    return None if said is None else _numbers(said, text)


def _numbers(said: Sentence, text: str) -> Overflow:
    limit, output = _number(said.limit, text), _number(said.output, text)
    total, over = _number(said.total, text), _number(said.over, text)
    asked = _number(said.asked, text)
    if asked is None and total is not None:
        asked = total - (output or 0)
    if asked is None and limit is not None and over is not None:
        asked = limit + over
    return Overflow(limit, asked, output)


def _number(places: Iterable[str], text: str) -> int | None:
    """The number in the first of these places that the text has."""
    for place in places:
        found = _pattern(place).search(text)
        if found:
            return int(re.sub(r"\D", "", found[1])) or None
    return None


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words.replace("#", _NUMBER))
