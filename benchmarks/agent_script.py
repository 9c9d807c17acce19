"""A scripted agent: the same prompts, calls, results and answers, whatever manages its memory.

The script does not look at what it is sent. So all who are compared do the same work, and what
differs is what they send. It is run by our Python and by a peer's, and needs Pydantic AI only.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

WINDOW = 32_000
TURNS = 120
INSTRUCTIONS = "You are a careful engineer. Read before you write, and say what you changed."
SHORTEST, LONGEST = 2_000, 8_000
"""Characters of a tool's result."""
SUMMARY = 2_400
"""Characters of a summary, where a model is asked for one: about 600 tokens."""
_WORDS = ("cache", "index", "parser", "token", "retry", "queue", "batch", "order", "price", "login")


@dataclass
class Asked:
    """One request as it was sent: its pieces in order, each known by its number."""

    pieces: list[int]
    answer: int
    summary: bool = False


@dataclass
class Sent:
    """Every request of a run. A text that is sent again is kept once."""

    texts: list[str] = field(default_factory=list[str])
    asked: list[Asked] = field(default_factory=list[Asked])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    def take(
        self, messages: Sequence[ModelMessage], info: AgentInfo, answer: str, *, summary: bool
    ) -> RequestUsage:
        """Note a request and its answer; gives the usage that a provider would report."""
        pieces = [self._number(_beside(info)), *(self._number(_told(one)) for one in messages)]
        self.asked.append(Asked(pieces, self._number(answer), summary))
        given = sum(len(self.texts[one]) for one in pieces) // 4
        return RequestUsage(input_tokens=given, output_tokens=max(1, len(answer) // 4))

    def as_json(self) -> str:
        asked = [[one.pieces, one.answer, one.summary] for one in self.asked]
        return json.dumps({"texts": self.texts, "asked": asked})

    @classmethod
    def from_json(cls, written: str) -> "Sent":
        read = json.loads(written)
        return cls(read["texts"], [Asked(*one) for one in read["asked"]])

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


class Script:
    """What is asked, called, returned and answered, turn by turn."""

    def __init__(self, turns: int = TURNS) -> None:
        self.sent = Sent()
        self._random = Random(7)
        self.prompts = [self._prompt(nth) for nth in range(turns)]
        self._steps = [self._random.randint(1, 3) for _ in range(turns)]
        self._turn, self._step, self._calls = 0, 0, 0

    def agent(self, *capabilities: Any, window: int = WINDOW) -> Agent:  # noqa: ANN401 - any
        """The agent that plays it."""
        agent = Agent(
            FunctionModel(self._play, model_name="scripted", profile={"context_window": window}),
            instructions=INSTRUCTIONS,
            capabilities=capabilities,
        )
        agent.tool_plain(self.read_file)
        return agent

    def summarizer(self) -> FunctionModel:
        """The model that is asked for summaries, by those who ask."""
        return FunctionModel(self._summarize, model_name="summarizer")

    def read_file(self, path: str) -> str:
        """Read a file."""
        lines = [f"# {path}"]
        length = self._random.randint(SHORTEST, LONGEST)
        while sum(map(len, lines)) + len(lines) < length:
            one, other = self._random.choices(_WORDS, k=2)
            lines.append(f"def {one}_{other}_{len(lines)}({one}, *, {other}=None):")
            lines.append(f"    return {one}.{other}({self._random.randint(1, 9_999)}, {other})")
        return "\n".join(lines)

    def _play(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if self._step < self._steps[self._turn]:
            self._step += 1
            self._calls += 1
            path = f"src/{self._random.choice(_WORDS)}/module_{self._calls % 97}.py"
            part = ToolCallPart("read_file", {"path": path}, f"call_{self._calls:05d}")
            answer = f"read_file {path}"
        else:
            one, other = self._random.choices(_WORDS, k=2)
            answer = f"The {one} of turn {self._turn} was wrong where the {other} is read. " * 3
            part = TextPart(answer)
            self._turn, self._step = self._turn + 1, 0
        usage = self.sent.take(messages, info, answer, summary=False)
        return ModelResponse([part], usage=usage)

    def _summarize(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = f"Up to turn {self._turn}: "
        while len(said) < SUMMARY:
            one, other = self._random.choices(_WORDS, k=2)
            said += f"the {one} in src/{one}/module_{len(said) % 97}.py reads the {other}. "
        usage = self.sent.take(messages, info, said, summary=True)
        return ModelResponse([TextPart(said)], usage=usage)

    def _prompt(self, nth: int) -> str:
        one, other = self._random.choices(_WORDS, k=2)
        return f"Turn {nth}: please look why the {one} fails when the {other} is empty. " * 2


def _told(message: ModelMessage) -> str:
    """What a model is sent of a message: no times, no ids of runs."""
    return "\n".join(f"{part.part_kind} {_content(part)}" for part in message.parts)


def _content(part: Any) -> str:  # noqa: ANN401 - a part of any kind
    said = [getattr(part, name, None) for name in ("tool_name", "tool_call_id", "args", "content")]
    return " ".join(one if isinstance(one, str) else json.dumps(one, default=str) for one in said)


def _beside(info: AgentInfo) -> str:
    """The instructions and the tools, which stand before all messages."""
    tools = [[one.name, one.description, one.parameters_json_schema] for one in info.function_tools]
    return f"{info.instructions}\n{json.dumps(tools)}"
