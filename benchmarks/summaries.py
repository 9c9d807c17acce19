"""Summaries by a model where much goes wrong: what is paid in vain, who waits, what is shown.

The world of faults, the recorded pace and the huge span are those of the tests, longer here. The
recordings are not part of the project: REFOLD_DATA names their folder. Without them the pace and
what recorded summaries hold are not measured.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.figures import Figure
from benchmarks.replay import DATA, PI
from refold.engine import LocalSteps
from refold.fold.compactor import Compactor, context
from refold.fold.identifiers import identifiers
from refold.fold.job import Job
from refold.fold.summary import Summary, parse
from refold.fold.write.by_model import ByModel, SummarizerAnswer, always
from refold.lab import Reader, o200k
from refold.log import Author, FoldCompleted, Log, Message, Opened, Span
from refold.models import counter_for
from refold.stores import MemoryStore
from refold.transcripts.pi import parse_pi
from refold.view.profiles import BALANCED

TESTS = Path(__file__).parents[1] / "tests"
MODEL = "openai:gpt-4o"
NEXT = 120
"""Messages after a recorded summary in which names are used again."""
MEMORY = 8.0
"""Times the text of a huge span that making its fold should take at most."""
ROOM = BALANCED.fold.max_tokens + BALANCED.fold.region_tokens
"""Tokens that a fold of the profile may show."""


def figures(*, quick: bool) -> list[Figure]:
    sys.path[:0] = [str(TESTS), *(str(TESTS / name) for name in ("fold", "session"))]
    found = [*_world(quick=quick), *_huge(quick=quick)]
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return found
    return [*found, *_pace(quick=quick), *_recorded()]


def _world(*, quick: bool) -> Iterator[Figure]:
    world, simulated = import_module("world"), import_module("simulated_time").simulated
    sizes: dict[str, Any] = {"sessions": 50} if quick else {"sessions": 100, "turns": (10, 40)}
    calls = useful = sessions = unanswered = 0
    for process in (world.Process(seed, **sizes) for seed in range(2 if quick else 10)):
        endings = simulated(process.run())
        sessions += len(endings)
        unanswered += sum(bool(one.unanswered or one.problems) for one in endings)
        calls += len(process.calls)
        useful += len(process.useful)
    yield Figure("world: sessions", sessions)
    yield Figure("world: sessions without an answer", unanswered, 0, "at most")
    yield Figure("world: calls of summarizers", calls)
    bar = None if quick else 1.2  # a few sessions say little
    yield Figure("world: calls per call that freed something", calls / useful, bar, "at most")


def _huge(*, quick: bool) -> Iterator[Figure]:
    huge = import_module("test_huge_span")
    tokens = 200_000 if quick else 2_000_000
    # The first fold of a process also fills what all folds share.
    asyncio.run(huge.folded(MemoryStore().log(), 200_000))
    done = asyncio.run(huge.folded(MemoryStore().log(), tokens))
    yield Figure("huge span: tokens", done.tokens)
    yield Figure("huge span: calls", done.summarizer.calls)
    yield Figure("huge span: share of entries shown", done.share_shown, 1.0)
    yield Figure("huge span: largest call, tokens", done.summarizer.most, huge.WINDOW, "at most")
    yield Figure("huge span: memory, times its text", done.memory, MEMORY, "at most")


def _pace(*, quick: bool) -> Iterator[Figure]:
    pace, simulated = import_module("test_pace"), import_module("simulated_time").simulated
    for name in PI[1:] if quick else PI:
        slow = simulated(pace.play(name, pace.SLOW))
        label = f"{name}: requests that waited, of {len(slow.waits)}"
        yield Figure(label, slow.waited, 0, "at most")
        hung = simulated(pace.play(name, pace.FOR_EVER))
        label = f"{name}: longest wait for one that hangs, s"
        yield Figure(label, max(hung.waits), pace.WAIT, "at most")


@dataclass
class _Recorded:
    """A summarizer that answers with a recorded summary, once it has seen all."""

    text: str
    name: str = "recorded"
    structured: bool = False
    warm: bool = False
    room: int = 110_000

    def __post_init__(self) -> None:
        self.counter = counter_for(MODEL)

    async def ask(
        self,
        guard: str,  # noqa: ARG002 - as asked
        prompt: str,
        job: Job,  # noqa: ARG002 - as asked
        history: object = (),  # noqa: ARG002 - as asked
    ) -> SummarizerAnswer:
        head = prompt.partition("This is part ")[2].partition(",")[0]
        number, _, of = head.partition(" of ")
        last = number == of.partition(".")[0]
        return SummarizerAnswer(
            self.text if last else import_module("world").true_summary(prompt, most=1)
        )


@dataclass(frozen=True)
class _Compaction:
    """A summary that was recorded, and the messages around it."""

    text: str
    folded: int
    """Messages that it stands for, from the first."""
    before: int
    """Messages that were said when it was made."""
    after: tuple[bytes, ...]


def _recorded() -> Iterator[Figure]:
    """Of the names used again after each recorded summary, the share that a fold holds."""
    lines = (DATA / "pi_before-compaction.jsonl").read_bytes().splitlines()
    payloads = parse_pi(lines, "all").payloads
    found = list(_compactions(lines))
    folds = asyncio.run(_folded(payloads, found))
    reader, count = Reader(o200k()), o200k()
    for nth, (one, fold) in enumerate(zip(found, folds, strict=True), 1):
        before = {name for said in payloads[: one.folded] for name in reader.identifiers(said)}
        label = f"recorded summary {nth}"
        for who in ("anybody", "assistant"):  # whose use counts can be read both ways
            said = (m for m in one.after if who in ("anybody", reader.read(m).speaker))
            again = {name for message in said for name in reader.identifiers(message)} & before
            alone, held = ({*identifiers(text)} & again for text in (one.text, fold.text))
            share = f"of {len(again)} names {who} used again, held"
            yield Figure(f"{label}: {share} by it alone", len(alone) / len(again))
            bar = 0.35 if who == "anybody" else None
            yield Figure(f"{label}: {share} by the fold", len(held) / len(again), bar)
        yield Figure(f"{label}: tokens of the fold", count(fold.text), ROOM, "at most")
        yield Figure(f"{label}: written by the model", fold.by == "recorded", 1)


def _compactions(lines: list[bytes]) -> Iterator[_Compaction]:
    for at, line in enumerate(lines):
        match json.loads(line):
            case {"type": "compaction", "summary": str(text), "firstKeptEntryIndex": int(first)}:
                folded, before = (len(parse_pi(lines[:to], "b").payloads) for to in (first, at))
                after = parse_pi(lines[at + 1 :], "a").payloads[:NEXT]
                yield _Compaction(text, folded, before, after)
            case _:
                pass


async def _folded(payloads: tuple[bytes, ...], found: list[_Compaction]) -> list[Summary]:
    """The folds in the place of the recorded ones, each over the one before."""
    log, author = MemoryStore().log(), Author()
    opened = author.draft(Opened("pydantic-ai", "balanced"))
    await log.append("s", [opened], expected=0)
    where: list[int] = []
    folds: list[Summary] = []
    for one in found:
        drafts = [author.draft(Message(said)) for said in payloads[len(where) : one.before]]
        done = await log.append("s", drafts, expected=None)
        where += range(done.first, done.last + 1)
        folds.append(await _fold(log, author, one, Span(2, where[one.folded - 1])))
    return folds


async def _fold(log: Log, author: Author, one: _Compaction, span: Span) -> Summary:
    summarizer = _Recorded(one.text)
    job = Job("s", uuid4(), (span,), "soft", context=context(BALANCED.fold, {}, 0))
    made = await Compactor(log, summarizer.counter, ByModel(always(summarizer)))(job, LocalSteps())
    completed = FoldCompleted(job.fold, job.spans, made)
    await log.append("s", [author.draft(job.started())], expected=None)
    await log.append("s", [author.draft(completed)], expected=None)
    return parse(made)
