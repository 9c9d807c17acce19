"""Whatever happens to a session, what was said is found, until it is forgotten."""

import asyncio
import json
from uuid import UUID, uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from refold.log import (
    Author,
    Cleared,
    FoldCompleted,
    FoldStarted,
    Message,
    Opened,
    Requested,
    Rewound,
    Span,
)
from refold.recall import recall_tools, search, unfold
from refold.recall.unfold import MIN_PAGE
from refold.stores import MemoryStore, SqliteStore

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say", "say", "say", "fold", "rewind", "clear", "request", "fork", "forget"]
        ),
        st.integers(0, 50),
        st.integers(0, 5),
    ),
    max_size=25,
)
TEXTS = st.text(st.sampled_from("ab \n\u2028é東"), max_size=3_000)


class Life:
    """A session and its forks, and where each rare word was said."""

    def __init__(self, log):
        self.log = log
        self.author = Author()
        self.words: dict[str, dict[str, int]] = {}
        self.names = ["s"]

    async def append(self, name, *values):
        drafts = [self.author.draft(value) for value in values]
        return (await self.log.append(name, drafts, expected=None)).first

    async def begin(self):
        opened = self.author.draft(Opened("openai-chat", "balanced"))
        await self.log.append("s", [opened], expected=0)

    async def step(self, what, a, b):
        name = self.names[a % len(self.names)]
        head = await self.log.head(name)
        span = Span(1 + a % head, min(head, 1 + a % head + b))
        match what:
            case "say":
                word = f"rare{len(self.words)}"
                body = json.dumps({"role": "user", "content": f"{word} and hay"}).encode()
                self.words[word] = {name: await self.append(name, Message(body))}
            case "fold":
                await self.fold(name, span)
            case "rewind":
                await self.append(name, Rewound(span.first))
            case "clear":
                await self.append(name, Cleared())
            case "request":
                await self.append(name, Requested((span,), [], "model", "digest"))
            case "fork":
                await self.fork(name, span.last)
            case "forget":
                await self.log.forget(name, span)
                self.forget(name, span)

    async def fold(self, name, span):
        visible = await self.log.visible(name)
        line = visible.outline.on_line(visible.info.entries)
        taken = [one for fold in visible.outline.folds for one in fold.spans]
        free = any(span.first in one and span.last in one for one in line)
        if free and not any(one.first <= span.last and span.first <= one.last for one in taken):
            fold: UUID = uuid4()
            started = FoldStarted(fold, (span,), "test")
            await self.append(name, started, FoldCompleted(fold, (span,), "a summary"))

    async def fork(self, name, at):
        new = f"fork {len(self.names)}"
        await self.log.fork(name, new, at=at)
        self.names.append(new)
        for there in self.words.values():
            if there.get(name, at + 1) <= at:
                there[new] = there[name]

    def forget(self, name, span):
        for there in self.words.values():
            if there.get(name, 0) in span:
                there.clear()


async def live(store, steps):
    life = Life(store.log())
    await life.begin()
    for step in steps:
        await life.step(*step)
    for word, there in life.words.items():
        for name in life.names:
            hits = await search(life.log, word, session=name, limit=1)
            seqs = [hit.seq for hit in hits if word in hit.excerpt]
            assert seqs == ([there[name]] if name in there else [])
        everywhere = await search(life.log, word, limit=3)
        places = [(hit.session, hit.seq) for hit in everywhere if word in hit.excerpt]
        assert len(places) == bool(there)
        assert all(there[name] == seq for name, seq in places)


@settings(deadline=None, max_examples=40)
@given(steps=STEPS)
def test_what_was_said_is_found_until_it_is_forgotten(steps):
    async def run():
        async with MemoryStore() as store:
            await live(store, steps)

    asyncio.run(run())


@settings(deadline=None, max_examples=8)
@given(steps=STEPS)
def test_the_same_on_disk(tmp_path_factory, steps):
    async def run():
        async with SqliteStore(tmp_path_factory.mktemp("life") / "refold.db") as store:
            await live(store, steps)

    asyncio.run(run())


async def spoken(texts):
    """A session in which the user has said these."""
    life = Life(MemoryStore().log())
    await life.begin()
    for text in texts:
        body = json.dumps({"role": "user", "content": text}).encode()
        await life.append("s", Message(body))
    return life


@settings(deadline=None, max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=8), chars=st.integers(MIN_PAGE, 4_000))
def test_pages_cover_everything_exactly_once(texts, chars):
    async def run():
        life = await spoken(texts)
        read = dict.fromkeys(range(2, len(texts) + 2), "")
        page = await unfold(life.log, "s", Span(1, 99), chars=chars)
        while True:
            assert len(page.text) <= chars
            for piece in page.pieces:
                assert piece.start == len(read[piece.entry.seq])
                read[piece.entry.seq] += piece.entry.text
            if page.next is None:
                break
            page = await unfold(life.log, "s", Span(1, 99), chars=chars, start=page.next)
        assert list(read.values()) == texts

    asyncio.run(run())


@settings(deadline=None, max_examples=40)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    at=st.sampled_from(["2", "2-9", "2.0", "1", "3-4"]) | st.text(max_size=20),
    query=st.sampled_from(["a", "b é", "東", "aaa bbb"]) | st.text(max_size=50),
    start=st.integers(-5, 4_000),
    chars=st.integers(2_000, 4_000),
)
def test_tools_never_say_more_than_they_may(texts, at, query, start, chars):
    async def run():
        life = await spoken(texts)
        search_, read, everywhere, read_in = recall_tools(
            life.log, "s", chars=chars, everywhere=True
        )
        answers = [
            await search_.run({"query": query, "limit": 20}),
            await everywhere.run({"query": query, "limit": 20}),
            await read.run({"at": at, "start": start}),
            await read_in.run({"session": "s", "at": at, "start": start}),
        ]
        assert all(0 < len(answer) <= chars for answer in answers)

    asyncio.run(run())
