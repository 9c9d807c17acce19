"""Inkeep's order of work, as its page tells it: five things, one by one."""

import re

import pytest
from project_paths import DOCS
from shown import turn, used
from talks import Talk, Writer, setup, texts

from refold.fold.summary import Summary
from refold.recall import recall_tools
from refold.stores import MemoryStore
from refold.testing.wire import Asked
from refold.view.profiles import INKEEP

PAGE = DOCS / "contributing" / "inkeep-order-of-work.md"
LARGE = "a finding. " * 400
WINDOW = 10_000
"""Half of it is reached with the fifth result."""


@pytest.fixture
async def log():
    async with MemoryStore() as store:
        yield store.log()


def studies(*numbers):
    for nth in numbers:
        step = used(f"c{nth}", "study", f"study_{nth}: {LARGE}", nth=str(nth))
        yield from turn(f"Look at study {nth}.", step, reply=f"Looked at {nth}.")


class Looking(Writer):
    """Notes what had happened already when it is asked to summarize."""

    def __init__(self, log, *, fails=False):
        super().__init__(fails=fails)
        self.log = log
        self.watched = []
        self.readable = []

    async def __call__(self, material, job, steps) -> Summary:
        self.told_before = list(self.watched)
        _, read = recall_tools(self.log, "s")
        entries = await self.log.read("s")
        places = [one.seq for one in entries if b"study_" in one.body and b"finding" in one.body]
        self.readable = [await read.run({"at": f"{place}.0"}) for place in places]
        return await super().__call__(material, job, steps)


async def opened(log, *, fails=False):
    write = Looking(log, fails=fails)
    talk = await Talk.open(log, setup(INKEEP, WINDOW), write=write, watch=write.watched.append)
    return talk, write


def names(events):
    return [event.NAME for event in events]


async def test_it_watches_triggers_archives_and_then_summarizes(log):
    talk, write = await opened(log)
    await talk.go(*studies(0, 1, 2))
    # 1: watched, and nothing else, below half.
    assert set(names(write.watched)) == {"session.usage_info"}
    assert write.watched[-1].current_tokens < WINDOW / 2
    assert write.asked == 0
    # 2: triggered, before anybody is asked.
    await talk.go(*studies(3, 4))
    await talk.say(Asked("What do they have in common?"))
    latest = texts(await talk.request())
    assert write.asked == 1
    assert names(write.told_before)[-2:] == ["session.compaction_start", "session.compaction_wait"]
    # 3: archived, so that it could be read when the model was asked.
    assert len(write.readable) == 5
    assert all("a finding." in text for text in write.readable)
    # 4: summarized: everything before the latest prompt, with references to the large results.
    assert names(write.watched).index("session.compaction_complete") >= len(write.told_before)
    assert "## Large results" in latest[0]
    assert not any("a finding. a finding." in text for text in latest[:1])


async def test_it_falls_back_to_fixed_limits_after_the_summary_failed(log):
    talk, write = await opened(log, fails=True)
    await talk.go(*studies(*range(6)))
    await talk.say(Asked("What do they have in common?"))
    request = await talk.request()
    # 5: only after 2, 3 and 4: begun, archived, asked, failed.
    assert write.asked
    order = [name for name in names(write.watched) if name != "session.usage_info"]
    assert order[:3] == [
        "session.compaction_start",
        "session.compaction_wait",
        "session.compaction_complete",
    ]
    assert write.readable
    assert len(request.messages) <= 50
    earlier = "".join(texts(request)[:-1])
    assert len(earlier) / 4 <= 8_000
    assert "archived" in earlier
    assert (await talk.folds())[1] == 0


def test_the_page_tells_the_five_in_order():
    steps = re.findall(r"^\d\. \*\*(.+?)\.\*\*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert steps == ["Watch", "Trigger", "Archive", "Summarize", "Fall back"]
