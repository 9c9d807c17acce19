"""LangChain's `trim_messages`, run by its own Python: what it costs a request.

    python -m benchmarks.peers.langchain MESSAGES.json COUNT SECONDS

It keeps nothing from one request to the next: the next one is given the whole session again, with
one more turn.
"""
# Its packages are in its own environment only.
# pyright: reportMissingImports=false

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)

from benchmarks.peers.timing import LIMIT, best_of, show

PEER = f"langchain-core {version('langchain-core')}"
NEVER = 10**12


def main(path: Path, count: int, seconds: float) -> None:
    told = json.loads(path.read_bytes())
    told = [SystemMessage(told[0]["instructions"]), *map(_native, told)]
    given = {"first": told[: count + 2], "next": told}
    passed = best_of(lambda: given["first"], list, seconds)
    show(peer=PEER, name="list(messages)", messages=count, request="first", seconds=passed)
    for limit, name in (
        (LIMIT, f"trim_messages(max_tokens={LIMIT})"),
        (NEVER, "trim_messages, check only"),
    ):
        for request, messages in given.items():
            _measure(name, limit, messages, count, request, seconds)


def _measure(  # noqa: PLR0913, PLR0917 - what a row says
    name: str, limit: int, messages: list[Any], count: int, request: str, seconds: float
) -> None:
    result: list[list[Any]] = []

    def call(given: list[Any]) -> None:
        result[:] = [
            trim_messages(
                given,
                max_tokens=limit,
                strategy="last",
                token_counter="approximate",  # noqa: S106 - counts, it is no secret
                start_on="human",
                include_system=True,
            )
        ]

    took = best_of(lambda: messages, call, seconds)
    row = {"peer": PEER, "name": name, "messages": count, "request": request, "seconds": took}
    if result:
        kept = len(result[-1])
        row |= {"given": len(messages), "kept": kept, "changed": kept != len(messages)}
    show(**row)


def _native(message: dict[str, Any]) -> Any:  # noqa: ANN401 - a message of its own package
    """One message as LangChain's users hold it."""
    part = message["parts"][0]
    if part["part_kind"] == "user-prompt":
        return HumanMessage(part["content"])
    if part["part_kind"] == "tool-return":
        call, tool = part["tool_call_id"], part["tool_name"]
        return ToolMessage(part["content"], tool_call_id=call, name=tool)
    calls = [
        {"name": one["tool_name"], "args": json.loads(one["args"]), "id": one["tool_call_id"]}
        for one in message["parts"]
        if one["part_kind"] == "tool-call"
    ]
    tokens = message["usage"]["input_tokens"], message["usage"]["output_tokens"]
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)}
    return AIMessage(part["content"], tool_calls=calls, usage_metadata=usage)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
