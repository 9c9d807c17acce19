"""What the log of a long conversation must hold, whatever was killed when."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import agent_script
from local_model.journal import Exchange, exchanges_of, lines_of
from local_model.legality import faults_of
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from refold.errors import SessionNotFound
from refold.log import CODEC, Message, Requested
from refold.recall.text import rebuilt
from refold.stores import SqliteStore


async def messages_of(path: Path) -> list[ModelMessage]:
    """Every message of the conversation, as the log has it."""
    async with SqliteStore(path) as store:
        try:
            entries = await store.log().read(agent_script.SESSION)
        except SessionNotFound:
            return []
    payloads = [value.payload for value in map(CODEC.decode, entries) if isinstance(value, Message)]
    return ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(payloads) + b"]")


def check_requests(journal: Path) -> None:
    """Each request was legal, and no error reached the user."""
    assert [line for line in lines_of(journal) if line["what"] == "error"] == []
    faults = [
        (one.turn, fault)
        for one in exchanges_of(journal)
        for fault in faults_of(one, agent_script.prompt(one.turn))
    ]
    assert faults == []


async def check_nothing_lost(path: Path, journal: Path) -> None:
    """Whatever was sent, had run or was given to the user is in the log, whole."""
    parts = [part for message in await messages_of(path) for part in message.parts]
    prompts = {part.content for part in parts if isinstance(part, UserPromptPart)}
    calls = {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}
    returns = {part.tool_call_id: part for part in parts if isinstance(part, ToolReturnPart)}
    lines, exchanges = lines_of(journal), list(exchanges_of(journal))
    answered = {line["turn"]: line["text"] for line in lines if line["what"] == "answered"}
    ran = [(line["turn"], line["call"]) for line in lines if line["what"] == "returned"]
    said = {one.turn for one in exchanges} | answered.keys()
    assert {agent_script.prompt(turn) for turn in said} <= prompts
    assert {call for _, call in ran} <= calls.keys(), "a tool ran before its call was kept"
    wanted = {call for turn, call in ran if turn in answered} | _results_sent(exchanges)
    assert wanted <= returns.keys()
    for call in wanted:
        made = agent_script.RESULTS[calls[call].tool_name](**calls[call].args_as_dict())
        assert returns[call].content == made, "a result is not whole"
    texts = [m.text for m in await messages_of(path) if isinstance(m, ModelResponse)]
    assert set(answered.values()) <= set(texts)


def _results_sent(exchanges: Iterable[Exchange]) -> set[str]:
    """The calls whose results were sent in the turn that made them; later ones may stand in."""
    return {
        message["tool_call_id"]
        for one in exchanges
        for message in one.body["messages"]
        if message["role"] == "tool" and message["tool_call_id"].startswith(f"t{one.turn}s")
    }


async def check_records(path: Path, journal: Path) -> int:
    """Every past request can be made again, and says what the server was told; how many."""
    told = {_spoken(one.body["messages"]) for one in exchanges_of(journal)}
    async with SqliteStore(path) as store:
        log = store.log()
        entries = await log.read(agent_script.SESSION)
        seqs = [entry.seq for entry in entries if isinstance(CODEC.decode(entry), Requested)]
        made = [await rebuilt(log, agent_script.SESSION, seq) for seq in seqs]
    assert told <= {_spoken_again(messages) for messages in made}
    return len(made)


def _spoken(messages: list[dict[str, Any]]) -> tuple[str, ...]:
    """What users and tools said."""
    return tuple(
        one["content"] if isinstance(one["content"], str) else json.dumps(one["content"])
        for one in messages
        if one["role"] in {"user", "tool"}
    )


def _spoken_again(messages: tuple[bytes, ...]) -> tuple[str, ...]:
    made = ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(messages) + b"]")
    return tuple(
        str(part.content)
        for message in made
        for part in message.parts
        if isinstance(part, UserPromptPart | ToolReturnPart)
    )
