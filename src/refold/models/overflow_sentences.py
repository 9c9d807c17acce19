"""How providers word it that a request is too long, and what sounds alike but is not that.

A new wording is one more row in `SENTENCES`: what only it says, and where its numbers stand. Put
the body that it was seen in beside the others, which the tests hold (`tests/overflow_bodies.toml`).
"""

from typing import Final, NamedTuple


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
