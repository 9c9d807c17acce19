"""A span far larger than a summarizer's window: all of it is shown, in bounded memory.

Here it has 200,000 tokens; `python -m benchmarks summaries` takes one of 2,000,000.
"""

import tracemalloc
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from folding import spelled
from shown import turn, used
from summarizers import ENTRY, writing
from world import true_summary

from refold.engine import LocalEngine
from refold.fold.compactor import Compactor, context
from refold.fold.job import Job
from refold.fold.summary import Summary, parse
from refold.fold.write.by_model import SummarizerAnswer
from refold.fold.write.transcript import GUARD
from refold.log import Author, Message, Opened, Span
from refold.models import counter_for
from refold.stores import MemoryStore, open_store
from refold.view.profiles import BALANCED

MODEL = "openai:gpt-4o"
WINDOW, RESERVE = 32_000, 8_000
MOST_MEMORY = 10.0
"""Times the span's text that making a fold may take here; the aim of the benchmark is lower."""
_BATCH = 100


@dataclass
class Narrow:
    """A summarizer of a small window, which takes no more than that."""

    name: str = "test:narrow"
    structured: bool = False
    warm: bool = False
    counter: Any = field(default_factory=lambda: counter_for(MODEL))
    shown: set[int] = field(default_factory=set)
    calls: int = 0
    most: int = 0
    """Tokens of the largest call, with what is kept for its answer."""

    def __post_init__(self):
        left = WINDOW - RESERVE - self.counter.text(GUARD, "system")
        self.room = int(0.95 * left / (1 + self.counter.spread))

    async def ask(self, guard, prompt, job):  # noqa: ARG002 - as asked
        self.calls += 1
        tokens = self.counter.text(guard, "system") + self.counter.text(prompt) + RESERVE
        assert tokens <= WINDOW
        self.most = max(self.most, tokens)
        self.shown.update(map(int, ENTRY.findall(prompt)))
        return SummarizerAnswer(true_summary(prompt))


@dataclass
class Spanned:
    """A fold over a huge span, and what it took."""

    summarizer: Narrow
    summary: Summary
    entries: set[int]
    text: int
    """Bytes that were said."""
    tokens: int
    peak: int
    """Bytes of memory at most, beyond what was there before."""

    @property
    def memory(self):
        return self.peak / self.text

    @property
    def share_shown(self):
        return len(self.summarizer.shown & self.entries) / len(self.entries)


def vocabulary(random, count=4_000):
    """Made-up words, and the names of a project among them."""
    syllables = [one + other for one in "bdfgklmnprst" for other in "aeiou"]
    some = ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(count)]
    names = [f"src/{random.choice(some)}/{random.choice(some)}_{nth}.py" for nth in range(300)]
    return some + names


def words(random, known, length):
    """A text of so many characters."""
    text = " ".join(random.choices(known, k=length // 3))
    return text[:length]


def turns(random, counter, tokens):
    """Turns of an agent at work until there are so many tokens: the payloads, and the text."""
    known, nth = vocabulary(random), 0
    while tokens > 0:
        text = words(random, known, random.randrange(500, 8_000))
        step = used(f"c{nth}", "read_file", text, path=f"src/part_{nth}.py")
        asked, reply = f"Please look at src/part_{nth}.py.", f"It reads value_{nth}, as it should."
        yield spelled("pydantic-ai", *turn(asked, step, reply=reply)), asked + text + reply
        tokens -= counter.text(text) + counter.text(asked + reply) + 20
        nth += 1


async def filled(log, counter, tokens):
    """A session of so many tokens; its message entries, and the bytes of what was said."""
    author = Author()
    await log.append("s", [author.draft(Opened("pydantic-ai", "balanced"))], expected=0)
    entries, size, drafts = set(), 0, []
    random = Random(tokens)  # noqa: S311 - the same text each time
    for payloads, text in turns(random, counter, tokens):
        drafts += [author.draft(Message(one)) for one in payloads]
        size += len(text.encode())
        if len(drafts) >= _BATCH:
            done = await log.append("s", drafts, expected=None)
            entries.update(range(done.first, done.last + 1))
            drafts = []
    if drafts:
        done = await log.append("s", drafts, expected=None)
        entries.update(range(done.first, done.last + 1))
    return entries, size


async def folded(log, tokens):
    """A fold over all of a session of so many tokens."""
    summarizer = Narrow()
    entries, size = await filled(log, summarizer.counter, tokens)
    given = context(BALANCED.fold, {}, tokens)
    job = Job("s", uuid4(), (Span(2, max(entries)),), "soft", context=given)
    folder = Compactor(log, summarizer.counter, writing(summarizer))
    async with LocalEngine(log, folder, limit=None) as engine:
        tracemalloc.start()
        try:
            assert await engine.start(job)
            ended = await engine.wait("s", job.fold)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert ended is not None
    assert ended.completed, ended.reason
    return Spanned(summarizer, parse(ended.summary), entries, size, tokens, peak)


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
async def test_all_of_a_huge_span_is_shown_within_the_summarizers_window(kept, tmp_path):
    store = MemoryStore() if kept == "memory" else open_store(f"sqlite:///{tmp_path}/log.db")
    async with store:
        done = await folded(store.log(), 200_000)
    assert done.share_shown == 1.0
    assert done.summarizer.calls > 200_000 / WINDOW
    assert done.summarizer.most <= WINDOW
    assert done.summary.by == "test:narrow"
    assert done.memory <= MOST_MEMORY


async def test_the_memory_of_a_fold_grows_no_faster_than_its_span():
    sizes = 100_000, 50_000, 100_000  # the first fold of a process also fills what is kept for all
    _, small, large = [await folded(MemoryStore().log(), tokens) for tokens in sizes]
    assert large.peak <= MOST_MEMORY * large.text
    assert large.memory <= 1.25 * max(small.memory, MOST_MEMORY / 2)
