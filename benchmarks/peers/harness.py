"""Pydantic AI's harness, run by its own Python: what its compactions cost a request.

    python -m benchmarks.peers.harness MESSAGES.json COUNT SECONDS

A compaction is called as the agent calls it, through `before_model_request`, with a run context
that holds the messages and nothing else. It rewrites the run's messages for good, so that each is
timed twice: on the whole session, and on its own result with one more turn, which is what its next
request is given.
"""
# Its packages are in its own environment only.
# pyright: reportMissingImports=false

import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SlidingWindowCompaction,
    estimate_token_count,
)

from benchmarks.peers.timing import LIMIT, best_of, show

PEER = f"pydantic-ai-harness {version('pydantic-ai-harness')}"
NEVER = 10**12

Messages = list[ModelMessage]
Contexts = tuple[RunContext[None], ModelRequestContext]
Done = TypeVar("Done")

COMPACTIONS = {
    f"ClearToolResults(max_tokens={LIMIT}, keep_pairs=3)": ClearToolResults(
        max_tokens=LIMIT, keep_pairs=3
    ),
    "ClearToolResults, check only": ClearToolResults(max_tokens=NEVER),
    f"SlidingWindowCompaction(max_tokens={LIMIT}, keep_tokens={LIMIT // 2})": (
        SlidingWindowCompaction(max_tokens=LIMIT, keep_tokens=LIMIT // 2)
    ),
    "SlidingWindowCompaction(max_messages=80, keep_messages=40)": SlidingWindowCompaction(
        max_messages=80, keep_messages=40
    ),
    "SlidingWindowCompaction, check only": SlidingWindowCompaction(max_tokens=NEVER),
}


def main(path: Path, count: int, seconds: float) -> None:
    told = ModelMessagesTypeAdapter.validate_json(path.read_bytes())
    whole, more = told[: count + 1], told[count + 1 :]
    passed = best_of(lambda: whole, list, seconds)
    show(peer=PEER, name="list(messages)", messages=count, request="first", seconds=passed)
    for name, compaction in COMPACTIONS.items():
        kept = _measure(name, compaction, whole, count, "first", seconds)
        if kept is None:
            show(peer=PEER, name=name, messages=count, request="next", seconds=None)
        else:
            _measure(name, compaction, [*kept, *_answered(more, kept)], count, "next", seconds)


def _measure(  # noqa: PLR0913, PLR0917 - what a row says
    name: str,
    compaction: Any,  # noqa: ANN401 - of a package that only the peer's Python has
    messages: Messages,
    count: int,
    request: str,
    seconds: float,
) -> Messages | None:
    """Show how long one request takes, and give what is then in the run's messages."""
    result: list[Messages] = []
    call = _caller(compaction, result)
    took = best_of(lambda: _contexts(messages), call, seconds)
    row = {"peer": PEER, "name": name, "messages": count, "request": request, "seconds": took}
    if not result:
        show(**row)
        return None
    same = len(result[-1]) == len(messages) and all(map(_is, result[-1], messages))
    show(**row, given=len(messages), kept=len(result[-1]), changed=not same)
    return result[-1]


def _caller(compaction: Any, result: list[Messages]) -> Callable[[Contexts], None]:  # noqa: ANN401
    def call(contexts: Contexts) -> None:
        _finish(compaction.before_model_request(*contexts))
        result[:] = [contexts[0].messages]

    return call


def _contexts(messages: Messages) -> Contexts:
    model = TestModel()
    run = RunContext(deps=None, model=model, usage=RunUsage(), messages=list(messages))
    parameters = ModelRequestParameters()
    return run, ModelRequestContext(
        model=model,
        messages=list(messages),
        model_settings=None,
        model_request_parameters=parameters,
    )


def _answered(more: Messages, kept: Messages) -> Messages:
    """The next turn, with the usage that a provider would report for what was kept."""
    given = estimate_token_count(kept)
    return [
        replace(one, usage=replace(one.usage, input_tokens=given))
        if isinstance(one, ModelResponse)
        else one
        for one in more
    ]


def _finish(work: Coroutine[Any, Any, Done]) -> Done:
    """The result of work that waits for nothing, without the cost of an event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the compaction waited for something")


def _is(one: object, other: object) -> bool:
    return one is other


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
