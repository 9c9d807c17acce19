"""Sessions that nobody uses are forgotten by themselves, and no others."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from refold import Refold
from refold.errors import SessionForgotten
from refold.log import Author, Message, Note, Opened
from refold.session.retention import MAX_FORGOTTEN, retain
from refold.stores import open_store
from refold.view.profiles import PROFILES

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)
THIRTY = PROFILES["cowagent"]


@pytest.fixture(params=["memory:", "sqlite:///{}/refold.db"])
async def log(request, tmp_path):
    """In daily use: else nobody knows whether time has passed, or the clock has jumped."""
    async with open_store(request.param.format(tmp_path)) as store:
        log = store.log()
        opened = author(1).draft(Opened("openai-chat", "balanced"))
        await log.append("daily", [opened], expected=0)
        yield log


def author(days):
    """Who writes so many days before."""
    return Author(lambda: NOW - timedelta(days=days))


async def used(log, session, days):
    """A session last used so many days ago."""
    message = Message(b'{"role": "user", "content": "a word from %s"}' % session.encode())
    drafts = [author(days).draft(value) for value in (Opened("openai-chat", "cowagent"), message)]
    await log.append(session, drafts, expected=0)


async def names(log):
    found = (await log.sessions(limit=100)).sessions
    return sorted(info.session for info in found if info.session != "daily")


async def test_after_thirty_days_in_cowagent_and_never_in_balanced(log):
    await used(log, "old", 30.5)
    await used(log, "young", 29.5)
    assert await retain(log, PROFILES["balanced"], now=NOW) == []
    assert await names(log) == ["old", "young"]
    assert await retain(log, PROFILES["cowagent"], now=NOW) == ["old"]
    assert await names(log) == ["young"]
    with pytest.raises(SessionForgotten):
        await log.read("old")
    assert await log.search("old") == []
    assert await retain(log, THIRTY, now=NOW) == []


async def test_so_many_at_once_the_oldest_first(log):
    for nth in range(MAX_FORGOTTEN + 3):
        await used(log, f"s{nth:02}", 100 - nth)
    assert await retain(log, THIRTY, now=NOW) == [f"s{nth:02}" for nth in range(MAX_FORGOTTEN)]
    assert len(await retain(log, THIRTY, now=NOW)) == 3


async def test_what_is_in_use_here_stays(log):
    for nth, name in enumerate(("oldest", "mine", "third")):
        await used(log, name, 90 - nth)
    assert await retain(log, THIRTY, now=NOW, keep={"mine"}) == ["oldest", "third"]
    assert await names(log) == ["mine"]
    await log.append("mine", [author(0).draft(Note("used again"))], expected=2)
    assert await retain(log, THIRTY, now=NOW) == []
    assert await names(log) == ["mine"]


async def test_what_a_run_holds_stays(log):
    await used(log, "running", 90)
    locks = log.locks("turn")
    held = await locks.take("running")
    assert held
    assert await retain(log, THIRTY, now=NOW) == []
    held.release()
    assert await retain(log, THIRTY, now=NOW) == ["running"]


async def test_no_run_can_begin_while_a_session_goes(log, monkeypatch):
    await used(log, "old", 90)
    locks = log.locks("turn")
    expire, seen = type(log).expire, []

    async def slowly(self, before, *, only):
        seen.append(await locks.take("old"))
        return await expire(self, before, only=only)

    monkeypatch.setattr(type(log), "expire", slowly)
    assert await retain(log, THIRTY, now=NOW) == ["old"]
    assert seen == [None]
    await used(log, "old", 1)
    again = await locks.take("old")
    assert again
    again.release()


async def test_a_living_fork_keeps_what_it_reads(log):
    await used(log, "old", 90)
    await log.fork("old", "living")
    await log.append("living", [author(1).draft(Note("still here"))], expected=2)
    assert await retain(log, THIRTY, now=NOW) == ["old"]
    assert [entry.forgotten for entry in await log.read("living")] == [False] * 3


async def test_sessions_of_other_profiles_stay(log):
    await used(log, "mine", 90)
    drafts = [author(90).draft(Opened("openai-chat", "balanced"))]
    await log.append("other", drafts, expected=0)
    assert await retain(log, THIRTY, now=NOW) == ["mine"]
    assert await names(log) == ["other"]


@pytest.mark.req("R100")
async def test_an_agent_forgets_by_itself_and_not_what_it_goes_on_with(tmp_path):
    address = f"sqlite:///{tmp_path}/refold.db"
    async with open_store(address) as store:
        for name, days in (("old", 40), ("resumed", 40), ("daily", 2)):
            author = Author(lambda days=days: datetime.now(UTC) - timedelta(days=days))
            drafts = [author.draft(Opened("pydantic-ai", "cowagent"))]
            await store.log().append(name, drafts, expected=0)
    async with Refold(address, profile="cowagent", summarizer=None) as memory:
        agent = Agent(TestModel(), capabilities=[memory])
        await agent.run("Hello", conversation_id="resumed")
        assert await names(memory.log) == ["resumed"]


@pytest.mark.parametrize("jump", [1 / 24, 1, 20, 365, 36_500])
async def test_a_clock_that_jumps_forward_makes_nothing_old(log, jump):
    """However far it jumps, and however often somebody opens a chat before it is set right."""
    await used(log, "young", 28)
    await used(log, "today", 0)
    wrong = NOW + timedelta(days=jump)
    assert await retain(log, THIRTY, now=wrong) == []
    # What is written meanwhile has the wrong time, and proves nothing yet.
    await used(log, "wrong", -jump)
    await log.append("today", [author(-jump).draft(Note("wrong too"))], expected=2)
    assert await retain(log, THIRTY, now=wrong + timedelta(hours=12)) == []
    assert await names(log) == ["today", "wrong", "young"]


async def test_a_clock_that_jumps_back_forgets_nothing(log):
    await used(log, "old", 31)
    assert await retain(log, THIRTY, now=NOW - timedelta(days=365)) == []
    assert await retain(log, THIRTY, now=NOW) == ["old"]


async def test_after_a_pause_it_takes_a_day_of_use(log):
    """Also where one and the same session is used each day."""
    await used(log, "old", 0)
    later = NOW + timedelta(days=90)
    assert await retain(log, THIRTY, now=later) == []
    await log.append("daily", [author(-90).draft(Note("back"))], expected=1)
    assert await retain(log, THIRTY, now=later) == []
    await log.append("daily", [author(-91.5).draft(Note("still here"))], expected=2)
    assert await retain(log, THIRTY, now=later + timedelta(days=1.5)) == ["old"]
