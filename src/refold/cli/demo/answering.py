"""What the demo's model answers to what it is shown: it looks there, and nowhere else."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from refold.cli.demo.script import Call, Step, script

_ID = re.compile(r"demo-(\d+)-(\d+)-")
_NO_TOOL: Final = (
    "I would have to look that up, but I am not offered `{tool}` here, so I had better not guess."
)


class Answer(NamedTuple):
    """What the model says, and the tools that it calls."""

    say: str
    calls: tuple[Call, ...] = ()
    id: str = ""
    """How the ids of its calls begin: they tell the next request where the script is."""


def answer_to(messages: Sequence[ModelMessage], tools: Sequence[str]) -> Answer:
    """The answer, by what the last request has: a prompt of the script, or returns of its calls."""
    turn, step = _where(messages)
    if turn is None:
        return Answer(script().outside)
    steps = script().turns[turn].steps
    if step >= len(steps):
        return Answer(script().outside)
    return _answer(steps[step], f"demo-{turn}-{step}-", messages, tools)


def _where(messages: Sequence[ModelMessage]) -> tuple[int | None, int]:
    """The turn and the step; only the end is looked at, for all else may be folded."""
    last = messages[-1] if messages else None
    for part in reversed(last.parts if isinstance(last, ModelRequest) else ()):
        match part:
            case UserPromptPart(content=str(prompt)):
                return script().turn_of(prompt), 0
            case ToolReturnPart(tool_call_id=id_) if found := _ID.match(id_):
                return int(found[1]), int(found[2]) + 1
            case _:
                continue
    return None, 0


def _answer(step: Step, id_: str, messages: Sequence[ModelMessage], tools: Sequence[str]) -> Answer:
    missing = [call.tool for call in step.calls if call.tool not in tools]
    if missing:
        return Answer(_NO_TOOL.format(tool=missing[0]))
    say = step.say
    if step.find:
        found = re.search(step.find, "\n".join(_texts(messages)))
        say = say.replace("{found}", found[1]) if found else step.otherwise
    place = re.search(step.place, next(_texts(messages[-1:]), "")) if step.place else None
    known = {"{place}": place[1]} if place else {}
    calls = tuple(
        Call(
            tool=call.tool,
            arguments={
                name: known.get(str(given), given) for name, given in call.arguments.items()
            },
        )
        for call in step.calls
    )
    return Answer(say, calls, id_)


def _texts(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """What is said in the messages, newest first."""
    for message in reversed(messages):
        for part in reversed(message.parts):
            match part:
                case ToolReturnPart():
                    yield part.model_response_str()
                case UserPromptPart(content=str(text)):
                    yield text
                case TextPart(content=text) if isinstance(message, ModelResponse):
                    yield text
                case _:
                    continue
