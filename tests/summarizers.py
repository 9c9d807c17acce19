"""Summarizers that say what a test wants them to."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from sessions import Quarter

from refold.errors import WindowExceeded
from refold.fold.write.by_model import ByModel, SummarizerAnswer, always

ENTRY = re.compile(r"^\[entry (\d+)\]", re.MULTILINE)


@dataclass
class Scripted:
    """A summarizer whose answers are given: texts, errors, or what a function makes of a prompt."""

    answer: Any = "## State\n- They went on."
    name: str = "test:summarizer"
    counter: Any = field(default_factory=Quarter)
    window: int = 100_000
    structured: bool = False
    warm: bool = False
    prompts: list[str] = field(default_factory=list)
    hangs: bool = False
    learns: bool = True
    """Whether it shows less after it was shown too much, or the writer must find out by itself."""
    room: int = 0

    def __post_init__(self):
        self.room = self.room or self.window

    @property
    def calls(self):
        return len(self.prompts)

    @property
    def shown(self):
        """The entries that it was shown, call by call."""
        return [[int(seq) for seq in ENTRY.findall(prompt)] for prompt in self.prompts]

    async def ask(self, guard, prompt, job):  # noqa: ARG002 - as asked
        self.prompts.append(prompt)
        if self.hangs:
            await asyncio.Event().wait()
        if self.counter.text(prompt) > self.window:
            if self.learns:
                self.room = self.window
            raise WindowExceeded("Too long.")
        answer: Any = self.answer(prompt) if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        usage = {"input": self.counter.text(prompt), "output": self.counter.text(str(answer))}
        if not isinstance(answer, str):
            return SummarizerAnswer(answer.model_dump_json(), answer, usage)
        return SummarizerAnswer(answer, None, usage)


class Kept:
    """Steps that are kept in a dictionary, as an engine would keep them."""

    def __init__(self, done=None):
        self.done = {} if done is None else done

    async def step(self, name, work):
        if name not in self.done:
            self.done[name] = await work()
        return self.done[name]


def writing(summarizer):
    """A writer that always asks this summarizer."""
    return ByModel(always(summarizer))
