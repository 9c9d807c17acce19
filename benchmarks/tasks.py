"""Whether an agent still finishes its task when its context is shortened.

Scripted tasks (`task_scripts`) whose later steps need something from their first half are played by
a scripted model (`task_model`) that knows only what its requests show. Each row sends its own
requests: those of a profile are a session's with its folds and its recall tools, in other rows a
rule's. Whoever sends a request that doesn't fit the window has failed.

Rules of others act at the same number of tokens as `balanced`, and what a fold leaves is as large;
their summaries may take all that a fold of ours shows, not only its names. Where a profile has a
model write summaries, a placeholder that says nothing stands in, so those rows are a lower bound.
One rule's summary quotes the first sentences of what user and assistant said, the newest first: a
stand-in for a model that writes down what was going on.

A task is finished when all its three questions are answered. A row that failed goes on, so that
dollars are of the same work; they include summaries, lookups and the recall tools' definitions.
"""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from multiprocessing import get_context
from typing import Final, NamedTuple

from benchmarks.figures import Figure
from benchmarks.task_facts import KINDS, Kind, Need
from benchmarks.task_model import MAX_LOOKUPS, Call, Model, Tried, as_message
from benchmarks.task_scripts import Task, Work, tasks
from refold.fold.trigger import sized
from refold.lab import Reader, o200k
from refold.lab.metrics import DEFAULT_PRICES
from refold.lab.policies import Factory, HeadTail, Settings, Summarize, baselines, timed
from refold.lab.replay import ModelCaller, Policy
from refold.lab.report import CaseOptions, case_of
from refold.lab.session_policy import SessionPolicy, placeholder_summary
from refold.models import Usage, budget_for, cost_of, counter_for
from refold.models.catalog import ModelSettings
from refold.models.experience import Setup
from refold.recall.tools import Tool, recall_tools
from refold.stores import MemoryStore
from refold.transcripts import messages as make
from refold.transcripts.recording import Recording
from refold.view.profiles import PROFILES

MODEL: Final = "openai:gpt-4o"  # its tokenizer is the one that the lab counts with
INSTRUCTIONS: Final = 2_000
"""Tokens of instructions and tools that every request has."""
EVERYTHING, BALANCED = "everything", "balanced"
WITHOUT_RECALL = "balanced, no recall"
SENTENCES = "head, sentences, tail"
RULES: Final = {
    "sliding window, pair-safe": "sliding, pair-safe",
    "mask, rolling": "mask, rolling",
    "mask, batched": "mask, batched",
    "head and tail only": "head and tail only",
    "head / ledger / tail": "head, ledger, tail",
    "fold at twice its size": "ledger, at 2x",
    "fold at 2.5 times its size": "ledger, at 2.5x",
    "ski rental": "ledger, ski rental",
}
QUICK_ROWS: Final = (
    *(EVERYTHING, BALANCED, WITHOUT_RECALL),
    *("mask, batched", "head, ledger, tail", SENTENCES),
)


class Size(NamedTuple):
    """How large the windows are, and how many tasks there are."""

    window: int
    threshold: int
    tasks: int


FULL, QUICK = Size(64_000, 32_000, 60), Size(32_000, 16_000, 15)


@dataclass(slots=True)
class Run:
    """How a row did with a task."""

    task: str
    met: list[tuple[Kind, bool]] = field(default_factory=list[tuple[Kind, bool]])
    requests: int = 0
    lookups: int = 0
    refused: bool = False
    dollars: float = 0.0

    @property
    def finished(self) -> bool:
        return not self.refused and all(done for _, done in self.met)


def figures(*, quick: bool) -> list[Figure]:
    size = QUICK if quick else FULL
    names = [*rows(size)]
    if quick:
        names = [name for name in names if name in QUICK_ROWS]
    runs = _played(size, names)
    print(table(runs), file=sys.stderr)
    return _figures(runs)


def table(runs: dict[str, list[Run]]) -> str:
    """A line for each row, and what it failed at."""
    whole = sum(run.dollars for run in runs[EVERYTHING])
    fitting = [not run.refused for run in runs[EVERYTHING]]
    count = len(runs[EVERYTHING])
    heads = (
        "",
        f"of {count}",
        f"of {sum(fitting)} that fit",
        "lookups",
        "dollars",
        "share",
        *KINDS,
    )
    lines: list[tuple[str, ...]] = [heads]
    for name, mine in runs.items():
        paid = sum(run.dollars for run in mine)
        met = [each for run in mine for each in run.met]
        kinds = [[done for kind, done in met if kind == which] for which in KINDS]
        lines.append(
            (
                name,
                str(_finished(mine)),
                str(_finished(mine, fitting)),
                str(sum(run.lookups for run in mine)),
                f"{paid:.2f}",
                f"{paid / whole:.0%}" if all(not run.refused for run in mine) else "-",
                *(f"{sum(each)}/{len(each)}" for each in kinds),
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _finished(runs: Sequence[Run], which: Iterable[object] = repeat(1)) -> int:
    return sum(run.finished and bool(counts) for run, counts in zip(runs, which, strict=False))


def bars(runs: dict[str, list[Run]]) -> list[Figure]:
    """What has to hold."""
    finished = {name: _finished(mine) for name, mine in runs.items()}
    which = [not run.refused for run in runs[EVERYTHING]]
    others = [name for name in runs if name in RULES.values() or name == SENTENCES]
    return [
        Figure(
            "balanced: finished of those that fit, less everything's",
            _finished(runs[BALANCED], which) - _finished(runs[EVERYTHING], which),
            0,
        ),
        Figure(
            "balanced: finished, less those of the best rule of others",
            finished[BALANCED] - max(finished[name] for name in others),
            1,
        ),
    ]


def _figures(runs: dict[str, list[Run]]) -> list[Figure]:
    which = [not run.refused for run in runs[EVERYTHING]]
    found = [Figure("tasks", len(runs[EVERYTHING])), *bars(runs)]
    for name, mine in runs.items():
        found += [
            Figure(f"{name}: finished", _finished(mine)),
            Figure(f"{name}: finished of those that fit", _finished(mine, which)),
            Figure(f"{name}: requests", sum(run.requests for run in mine)),
            Figure(f"{name}: extra requests", sum(run.lookups for run in mine)),
            Figure(f"{name}: dollars", sum(run.dollars for run in mine)),
        ]
    return found


# The rows


class Row:
    """Whoever decides what is sent, and the tools that it offers beside the agent's own."""

    def __init__(self, policy: Policy, tools: Sequence[Tool] = (), tokens: int = 0) -> None:
        self.policy = policy
        self.tools = {tool.name: tool for tool in tools}
        self.tokens = INSTRUCTIONS + tokens

    def usage(self) -> Usage:
        return self.policy.usage() if isinstance(self.policy, ModelCaller) else Usage(0)

    def close(self) -> None:
        if isinstance(self.policy, SessionPolicy):
            self.policy.close()


def rows(size: Size) -> dict[str, Callable[[Reader], Row]]:
    """What is played, by name: everything, profiles, rules of others at their size."""
    fold = sized(PROFILES[BALANCED], size.threshold)
    sizes = Settings(
        threshold=size.threshold, tail=int(fold.keep.amount), summary=max(1, fold.max_tokens)
    )
    made: dict[str, Factory] = {
        **baselines(sizes),
        **timed(sizes, int(fold.keep.amount + fold.max_tokens + fold.keep.head_tokens)),
    }
    found: dict[str, Callable[[Reader], Row]] = {EVERYTHING: lambda r: Row(made["none"](r))}
    for name in PROFILES:
        found[name] = partial(_session, size, name, recall=True)
        if name == BALANCED:
            found[WITHOUT_RECALL] = partial(_session, size, name, recall=False)
    for name, label in RULES.items():
        found[label] = partial(_rule, made[name])
    found[SENTENCES] = partial(
        _rule, lambda r: HeadTail(r, sizes, first_sentences(r, sizes.summary))
    )
    return found


def _rule(make_policy: Factory, reader: Reader) -> Row:
    return Row(make_policy(reader))


def _session(size: Size, name: str, reader: Reader, *, recall: bool) -> Row:
    case = case_of(Recording("", ()), CaseOptions(size.window, size.threshold, DEFAULT_PRICES))
    profile = case.adapt(PROFILES[name])
    counter = counter_for(MODEL)
    schemas = [
        json.dumps({"name": tool.name, "description": tool.description, "schema": tool.schema})
        for tool in recall_tools(MemoryStore().log(), "replay")
    ]
    budget = budget_for(
        MODEL,
        profile,
        tools=schemas if recall else (),
        models={MODEL: ModelSettings(window=size.window)},
    )._replace(instructions=INSTRUCTIONS)
    write = placeholder_summary if profile.fold.writer == "model" else None
    policy = SessionPolicy(Setup(MODEL, counter, budget, profile, DEFAULT_PRICES), write=write)
    if not recall:
        return Row(policy)
    tools = recall_tools(policy.store.log(), "replay")
    return Row(policy, tools, sum(map(reader.count, schemas)))


_SENTENCE: Final = re.compile(r"^.*?[.!?](?=\s|$)")


def first_sentences(reader: Reader, tokens: int) -> Summarize:
    """A summary of the first sentences of what user and assistant said, the newest first."""

    def summarize(messages: Sequence[bytes]) -> str:
        left = tokens
        found: list[str] = []
        for payload in reversed(messages):
            message = reader.read(payload)
            if message.speaker not in ("user", "assistant"):
                continue
            match = _SENTENCE.match(message.text)
            line = f"{message.speaker}: {match[0] if match else message.text[:200]}\n"
            left -= reader.count(line)
            if left < 0:
                break
            found.append(line)
        return "".join(reversed(found))

    return summarize


# The play


def _played(size: Size, names: Sequence[str]) -> dict[str, list[Run]]:
    every = tasks(size.tasks, size.window)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        played = [*pool.map(partial(play_rows, size, names), every)]
    return {name: [each[name] for each in played] for name in names}


def play_rows(size: Size, names: Sequence[str], task: Task) -> dict[str, Run]:
    reader = Reader(o200k())
    made = rows(size)
    with asyncio.Runner() as runner:
        return {name: play(task, made[name](reader), reader, size.window, runner) for name in names}


def play(task: Task, row: Row, reader: Reader, window: int, runner: asyncio.Runner) -> Run:
    """Play a task to its end, or until a request is refused."""
    player = _Player(task, row, reader, window, runner)
    try:
        for step in task.steps:
            if isinstance(step, Work):
                player.work(step)
            else:
                player.need(step)
            if player.run.refused:
                break
    finally:
        row.close()
    return player.run


class _Player:
    """One task in one row: the conversation so far, and what it used."""

    def __init__(
        self, task: Task, row: Row, reader: Reader, window: int, runner: asyncio.Runner
    ) -> None:
        self._task = task
        self._row = row
        self._reader = reader
        self._window = window
        self._runner = runner
        self._model = Model(reader)
        self._messages: list[bytes] = []
        self._sent: Sequence[bytes] = ()
        self.run = Run(task.name)

    def work(self, step: Work) -> None:
        if step.user:
            self._say(step.user)
        if self._request() is None:
            return
        parts = [make.text(step.text)]
        call = f"c{len(self._messages)}"
        if step.tool:
            parts.append(make.tool_call(step.tool, call, json.dumps(step.arguments)))
        self._answer(make.response(parts))
        if step.tool:
            self._result(step.tool, call, step.result)

    def need(self, need: Need) -> None:
        self._say(need.question.ask)
        tried: list[Tried] = []
        done = False
        while (view := self._request()) is not None:
            call = self._model.answer(view, need.question, tried, recall=bool(self._row.tools))
            if call is None:
                self._answer(make.response([make.text("I do not know that any more.")]))
                break
            number = len(self._messages)
            self._answer(as_message("I look at what is there.", call, number))
            result = self._world(call, need)
            tried.append(Tried(call, result))
            self._result(call.tool, f"q{number}", result)
            if call.final:
                done = result.startswith("done")
                if done or need.question.kind != "exact text":
                    break
            if len(tried) > MAX_LOOKUPS + 1:
                break
        self.run.lookups += max(0, len(tried) - 1)
        self.run.met.append((need.question.kind, done))

    def _world(self, call: Call, need: Need) -> str:
        """What a call returns; only the world knows the answer."""
        if call.final:
            right = call.arguments["value"] == need.answer
            return "done" if right else "error: that is not what there is"
        if tool := self._row.tools.get(call.tool):
            return self._runner.run(tool.run(json.dumps(call.arguments)))
        return self._task.documents.get(call.arguments["name"], "error: there is no such document")

    def _say(self, text: str) -> None:
        self._messages.append(make.request([make.user_prompt(text)]))

    def _result(self, tool: str, call: str, text: str) -> None:
        self._messages.append(make.request([make.tool_return(tool, call, text)]))

    def _request(self) -> Sequence[bytes] | None:
        """The messages of the next request; None if it doesn't fit."""
        view = tuple(self._row.policy.view(self._messages))
        sizes = [self._reader.tokens(payload) for payload in view]
        sent = self._row.tokens + sum(sizes)
        self.run.requests += 1
        if sent > self._window:
            self.run.refused = True
            return None
        shared = 0
        while shared < min(len(view), len(self._sent)) and view[shared] == self._sent[shared]:
            shared += 1
        # The first request writes what all of them begin with.
        cached = (self._row.tokens if self._sent else 0) + sum(sizes[:shared])
        self._sent = view
        self._pay(Usage(sent, 0, cached, sent - cached))
        self._pay(self._row.usage())
        return view

    def _answer(self, payload: bytes) -> None:
        self._messages.append(payload)
        self._pay(Usage(0, self._reader.tokens(payload)))

    def _pay(self, usage: Usage) -> None:
        self.run.dollars += cost_of(usage, DEFAULT_PRICES) or 0.0
