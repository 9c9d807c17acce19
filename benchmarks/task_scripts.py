"""Scripted tasks: long sessions whose later steps need something from before a fold.

A task is steps. Most are work that goes on whatever the model is shown. A few are questions: the
world knows the answer, and the model must get it from what the request shows. Each task has three
questions, two of its own kind and one of another, about what was said in its first half.

Each fact has near misses: other values of the same form for other names, values and rules that the
user replaced later, lines that differ in one number. In half of the tasks the rule or the plan is
in the first prompt, which most ways to shorten a conversation keep. The same number makes the same
task, byte for byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, product
from random import Random
from typing import Final

from benchmarks.task_facts import AREAS, CASES, KINDS, Area, Kind, Need, Plant
from benchmarks.task_words import (
    TENANTS,
    Vocabulary,
    closing,
    code_line,
    log_line,
    order_line,
    paper_line,
    prompt,
)

SIZES: Final = (0.66, 0.76, 0.86, 1.5)
"""Of the window, about, for one task after the other; the last doesn't fit."""
CHARS_PER_TOKEN = 3.4
_STEPS_PER_TURN = (3, 7)
_ASKED_FROM = 0.72  # of the steps


@dataclass(frozen=True, slots=True)
class Work:
    """A step that the model makes whatever it is shown: a text, and a call with its result."""

    text: str
    tool: str = ""
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    result: str = ""
    user: str = ""
    """What the user says before it."""

    @property
    def chars(self) -> int:
        return len(self.text) + len(self.result) + len(self.user)


Step = Work | Need


@dataclass(frozen=True, slots=True)
class Task:
    """A session to be played."""

    name: str
    area: Area
    kind: Kind
    """Of most of its questions."""
    steps: tuple[Step, ...]
    documents: dict[str, str]
    """What can be read again, by name."""


def tasks(count: int, window: int) -> list[Task]:
    """So many tasks, of all areas and kinds in turn, in all sizes."""
    plans = zip(cycle(product(AREAS, KINDS)), range(count), strict=False)
    groups = len(AREAS) * len(KINDS)
    return [
        task(area, kind, seed, round(window * SIZES[(seed % groups + seed // groups) % len(SIZES)]))
        for (area, kind), seed in plans
    ]


def task(area: Area, kind: Kind, seed: int, tokens: int) -> Task:
    rng = Random(f"{area} {kind} {seed}")
    words = Vocabulary(rng)
    other: Kind = rng.choice([each for each in KINDS if each != kind])
    # One thread with two steps to take, and not two threads.
    kinds: tuple[Kind, ...] = (kind, other) if kind == "thread" else (kind, kind, other)
    cases = [CASES[each](area, words) for each in kinds]
    queues = [list(case.needs) for case in cases]
    asked = [queue.pop(0) for _ in range(2) for queue in queues if queue][:3]
    scene = _Scene(area, words)
    steps: list[Step] = [*scene.steps([plant for case in cases for plant in case.plants], tokens)]
    first = round(_ASKED_FROM * len(steps))
    for number, need in reversed([*enumerate(asked)]):
        steps.insert(first + (len(steps) - first) * (number + 1) // len(asked), need)
    return Task(f"{area}, {kind}, {seed}", area, kind, tuple(steps), scene.documents)


class _Scene:
    """The work around the facts."""

    def __init__(self, area: Area, words: Vocabulary) -> None:
        self._area: Area = area
        self._words = words
        self._rng = words.rng
        self.documents: dict[str, str] = {}

    def steps(self, plants: Sequence[Plant], tokens: int) -> Iterator[Work]:
        """Steps of about so many tokens, with each fact where it belongs."""
        first = [plant.text for plant in plants if not plant.place]
        later = sorted((plant for plant in plants if plant.place), key=lambda plant: plant.place)
        enough, chars = tokens * CHARS_PER_TOKEN, 0
        turn, user = self._turn(), " ".join([prompt(self._words), *first])
        while chars < enough:
            step = self._step(user)
            if later and chars >= later[0].place * enough:
                step = self._with_fact(step, later.pop(0))
            yield step
            chars += step.chars
            user, turn = "", turn - 1
            if not turn:
                yield Work(closing(self._words))
                turn, user = self._turn(), prompt(self._words)
        yield Work(closing(self._words))

    def _turn(self) -> int:
        return self._rng.randint(*_STEPS_PER_TURN)

    def _step(self, user: str) -> Work:
        words, size = self._words, self._rng.randrange(10, 60)
        text = f"I {words.verb()} the {words.noun()} first, then {words.identifier()}."
        match self._area:
            case "coding" if self._rng.random() < 0.6:
                tool, arguments, line = "read_file", {"path": words.path()}, code_line
            case "coding":
                tool, arguments, line = "run", {"command": f"make {words.noun()}"}, log_line
            case "support":
                tool, arguments, line = "find_orders", {"customer": words.other()}, order_line
            case _:
                tool, arguments, line = "search_papers", {"query": words.identifier()}, paper_line
        return Work(text, tool, arguments, words.lines(line, size), user)

    def _with_fact(self, step: Work, plant: Plant) -> Work:
        match plant.speaker:
            case "user":
                return replace(step, user=f"{step.user or prompt(self._words)} {plant.text}")
            case "assistant":
                return replace(step, text=f"{plant.text} {step.text}")
            case _:
                lines = step.result.split("\n")
                middle = len(lines) // 2
                result = "\n".join([*lines[:middle], plant.text, *lines[middle:]])
                if not plant.document:
                    return replace(step, result=result)
                self.documents[plant.document] = result
                tool, argument = _OPEN[self._area]
                others = self._words.others
                name = next(n for n in TENANTS if n in plant.text and n not in others)
                text = f"I open {plant.document} ({name})."
                return Work(text, tool, {argument: plant.document}, result, step.user)


_OPEN: Final[dict[Area, tuple[str, str]]] = {
    "coding": ("read_file", "path"),
    "support": ("open_mail", "id"),
    "research": ("open_source", "id"),
}
