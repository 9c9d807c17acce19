"""Every address that a page links answers, whatever became of what it leads to."""

from uuid import uuid4

import pytest
from api_serving import FORMAT, SETUP, raw, said, talked
from console_world import CONSOLE, console
from test_console_folds import words_of
from test_console_hostile import crawl, folded_by_hand

from refold.gateway.sessions import Opening
from refold.log import Author, FoldCompleted, FoldStarted, Requested, Span

SESSION = f"{CONSOLE}/sessions/talk"


async def superseded(world):
    """Three folds over the same messages, one after the other, and one that was undone."""
    await talked(world, "default", "talk", turns=4)
    log, author = world.store.log("default"), Author()
    for words in ("first", "second", "third"):
        drafts = [author.draft(each) for each in folded_by_hand(words)]
        await log.append("talk", drafts, expected=None)
    async with world.state.sessions.lease("default", "talk", Opening(FORMAT, SETUP)) as kept:
        talk = kept.session
        for nth in range(6):
            await talk.say(raw(said("user", f"And {nth}?")))
            await talk.request()
            await talk.answer(raw(said("assistant", f"Also {nth}.")))
        folded = await talk.compact()
        await talk.edit_summary(folded.fold, "Everything was delivered.")
        await talk.say(raw(said("user", "Really?")))
        await talk.request()
        await talk.take_back()


async def forgotten(world):
    """A message that requests and a fold were made of is gone."""
    await talked(world, "default", "talk", turns=4)
    await world.store.log("default").forget("talk", Span(3, 3))


async def all_forgotten(world):
    await talked(world, "default", "talk", turns=4)
    log = world.store.log("default")
    await log.forget("talk", Span(2, await log.head("talk")))


async def orphaned(world):
    """A fork whose source was forgotten."""
    await talked(world, "default", "source")
    log = world.store.log("default")
    await log.fork("source", "talk", at=9)
    await log.forget("source")


async def nested(world):
    """A fold over several runs of entries, and one over the whole of it."""
    await talked(world, "default", "talk", turns=6)
    log, author = world.store.log("default"), Author()
    head = await log.head("talk")
    for spans in ((Span(2, 3), Span(6, 7)), (Span(2, head),)):
        name = uuid4()
        drafts = [
            author.draft(FoldStarted(name, spans, "by hand")),
            author.draft(FoldCompleted(name, spans, {"version": 1, "text": "short"})),
        ]
        await log.append("talk", drafts, expected=None)


HISTORIES = [superseded, forgotten, all_forgotten, orphaned, nested]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda each: each.__name__)
async def test_every_address_that_a_page_links_answers(history):
    async with console(local=True) as world:
        await history(world)
        pages = await crawl(await world.opened())
        assert SESSION in pages


async def test_a_superseded_fold_keeps_its_page():
    async with console(local=True) as world:
        await superseded(world)
        browser, log = await world.opened(), world.store.log("default")
        folds = [x.seq for x in await log.read("talk") if x.kind == FoldCompleted.KIND]
        standing = {fold.seq for fold in (await log.outlined("talk")).outline.folds}
        former = [seq for seq in folds if seq not in standing]
        assert len(former) >= 4
        for seq in former:
            page = await browser.get(f"{SESSION}/folds/{seq}")
            assert page.status_code == 200
            assert "It is no longer in effect." in words_of(page)
            assert "What it replaced" in words_of(page)


async def test_a_request_that_cannot_be_rebuilt_says_what_is_left_of_it():
    async with console(local=True) as world:
        await forgotten(world)
        browser = await world.opened()
        entries = await world.store.log("default").read("talk")
        record = next(x.seq for x in entries if x.kind == Requested.KIND and x.forgotten)
        page = await browser.get(f"{SESSION}/requests/{record}")
        assert page.status_code == 200
        assert "It cannot be rebuilt" in words_of(page)
        assert "test:model" in page.text
