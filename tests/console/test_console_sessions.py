"""The list of sessions: what it shows, what it finds, and what it leaves out."""

import asyncio
import re
from uuid import uuid4

import pytest
from api_serving import FORMAT, raw, said, talked
from console_world import CONSOLE, console, events_of

from refold.console import sessions
from refold.log import (
    Author,
    FoldStarted,
    Message,
    Note,
    Opened,
    Origin,
    PartRef,
    Pinned,
    Span,
    Titled,
)


def listed(answer):
    """The sessions that a page lists, by their names."""
    return re.findall(r'class="row" href="/console/sessions/([^"]+)"', answer.text)


async def opened(world, name, *values, tenant="default", form=FORMAT, origin=None):
    log, author = world.store.log(tenant), Author()
    await log.append(
        name,
        [author.draft(each) for each in (Opened(form, "balanced", origin=origin), *values)],
        expected=0,
    )


async def test_the_list_shows_each_session_with_what_it_cost():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "a talk/with slash")
        page = await browser.get(CONSOLE)
        assert listed(page) == ["a%20talk%2Fwith%20slash"]
        assert "test:model" in page.text
        assert "Where is parcel 0 of default?" in page.text  # without a title, how it begins
        row = re.sub(r"<[^>]+>|\s+", " ", page.text[page.text.index("<tbody>") :])
        assert "openai-chat" in row
        assert "parcel 0 of default?" in row


async def test_an_imported_session_has_no_cost_and_the_program_that_it_is_from():
    async with console(local=True) as world:
        browser = await world.opened()
        message = Message(raw(said("user", "Hello")))
        await opened(world, "old", message, origin=Origin("claude", "1"))
        text = (await browser.get(CONSOLE)).text
        row = text[text.index("<tbody>") :]
        assert "Claude Code" in row
        assert "$" not in row
        assert FORMAT not in row
        assert "Claude Code" in (await browser.get(f"{CONSOLE}/sessions/old")).text


async def test_without_a_session_it_says_how_to_get_one():
    async with console(local=True) as world:
        page = await (await world.opened()).get(CONSOLE)
        assert "No session yet" in page.text
        assert "refold demo" in page.text


async def test_a_search_finds_sessions_and_the_words_in_them():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "one", words="parcel")
        await talked(world, "default", "two", words="cathedral")
        page = await browser.get(CONSOLE, params={"q": "cathedral"})
        assert listed(page) == ["two"]
        assert re.search(r'href="/console/sessions/two\?at=\d+#e\d+"', page.text)
        assert re.search(
            r'<b>compacted</b> <a href="/console/sessions/two/folds/\d+/summary">a summary stands',
            page.text,
        )
        none = await browser.get(CONSOLE, params={"q": "zeppelin"})
        assert listed(none) == []
        assert "No session is like that" in none.text


async def test_a_match_says_whether_the_model_has_it():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        expected = {
            "parcel 1 of": ">a summary stands for it</a>",
            "parcel 3 of": "<b>sent</b> the newest request has it",
            "note": "a note, which no model sees",
        }
        for words, fate in expected.items():
            page = await browser.get(CONSOLE, params={"q": words})
            first = page.text.partition('class="hits"')[2].partition("</li>")[0]
            assert fate in first, words


async def test_filters_leave_out_what_they_say():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "folded")
        await opened(world, "plain", Message(raw(said("user", "Hello"))))
        await opened(world, "agent", Titled("An agent"), form="pydantic-ai")
        await opened(world, "refused", Note("It failed.", {"gateway": "failed", "request": 1}))
        forced = FoldStarted(uuid4(), (Span(1, 1),), "forced")
        await opened(world, "forced", forced)

        async def with_(**query):
            return sorted(listed(await browser.get(CONSOLE, params=query)))

        assert len(await with_()) == 5
        assert await with_(folded="1") == ["folded"]
        assert await with_(refused="1") == ["forced", "refused"]
        assert await with_(form="pydantic-ai") == ["agent"]
        assert await with_(model="TEST:") == ["folded"]
        assert await with_(model="other") == []
        assert len(await with_(since="today")) == 5
        assert await with_(folded="1", form="pydantic-ai") == []
        titled = await browser.get(CONSOLE, params={"form": "pydantic-ai"})
        assert "An agent" in titled.text


async def test_a_long_list_has_pages_and_a_filter_looks_at_so_many_only(monkeypatch):
    async with console(local=True) as world:
        browser = await world.opened()
        for nth in range(60):
            await opened(world, f"s{nth:02}", form="pydantic-ai" if nth == 0 else FORMAT)
        seen, page = [], await browser.get(CONSOLE)
        while True:
            seen += listed(page)
            more = re.search(r'href="(/console\?[^"]*after=[^"]+)"', page.text)
            if not more:
                break
            page = await browser.get(more[1].replace("&amp;", "&"))
        assert seen == [f"s{nth:02}" for nth in reversed(range(60))]
        assert listed(await browser.get(CONSOLE, params={"form": "pydantic-ai"})) == ["s00"]
        monkeypatch.setattr(sessions, "MAX_LOOKED_AT", 25)
        none = await browser.get(CONSOLE, params={"form": "pydantic-ai"})
        assert listed(none) == []
        assert "among the 25 used last" in none.text
        further = re.search(r'href="(/console\?form=pydantic-ai&amp;after=[^"]+)"', none.text)
        assert further


async def test_what_sessions_cost_is_counted_on_and_not_anew(monkeypatch):
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=6)
        monkeypatch.setattr(sessions, "_ENTRIES_AT_ONCE", 10)
        assert "wait" in (await browser.get(CONSOLE)).text
        for _ in range(6):
            page = await browser.get(CONSOLE)
        assert 'class="n wait"' not in page.text
        log, reads = world.store.log("default"), []
        original = type(log).read

        async def read(self, session, span, **how):
            reads.append(len(span))
            return await original(self, session, span, **how)

        monkeypatch.setattr(type(log), "read", read)
        await browser.get(CONSOLE)
        assert sum(reads) < 10  # the newest record, and how it begins


async def test_rereads_are_counted():
    async with console(local=True) as world:
        browser = await world.opened()
        pin = Pinned((PartRef(2, 0), PartRef(3, 0)), watched=True)
        messages = [Message(raw(said("user", words))) for words in ("a", "b")]
        await opened(world, "s", *messages, pin)
        page = await browser.get(CONSOLE)
        assert '<td data-label="Rereads" class="n">2</td>' in page.text


async def test_the_list_follows_what_is_said():
    async with console(local=True) as world:
        await world.opened()
        browser = await world.opened()
        await opened(world, "first")
        events = asyncio.create_task(events_of(world, browser, f"{CONSOLE}/live", 2))
        await asyncio.sleep(0.3)
        await opened(world, "second")
        first, second = await asyncio.wait_for(events, 90)
        assert "first" in first
        assert "second" not in first
        assert "second" in second


@pytest.mark.parametrize("tenant", ["acme", "beta"])
async def test_a_tenant_sees_its_own_sessions_only(tenant):
    async with console() as world:
        await talked(world, "acme", "talk of acme")
        await talked(world, "beta", "talk of beta")
        browser = await world.signed_in(tenant)
        for query in ({}, {"q": "parcel"}, {"folded": "1"}):
            page = await browser.get(CONSOLE, params=query)
            assert listed(page) == [f"talk%20of%20{tenant}"]
            other = "beta" if tenant == "acme" else "acme"
            assert f"of {other}" not in page.text


@pytest.mark.parametrize(
    "query", ["after=x", "after=1.2.3", "q=%00", f"q={'a' * 1001}", "folded=perhaps"]
)
async def test_a_query_that_cannot_be_is_refused_with_a_page(query):
    async with console(local=True) as world:
        answer = await (await world.opened()).get(f"{CONSOLE}?{query}")
        assert answer.status_code == 422
        assert "All sessions" in answer.text


async def test_a_session_says_which_agent_it_is_from_and_is_found_by_it():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        for name, program in (("one", "claude"), ("two", "codex")):
            origin = Origin(program, "id", "/projects/shop", "fix-rounding")
            drafts = [Author().draft(Opened(FORMAT, "balanced", origin=origin))]
            await log.append(name, drafts, expected=0)
        page = await browser.get(CONSOLE)
        assert '<option value="Claude Code"><option value="Codex">' in page.text
        words = re.sub(r"<[^>]+>", "", page.text)
        assert "from Claude Code in /projects/shop on branch fix-rounding" in words
        assert listed(await browser.get(CONSOLE, params={"agent": "Claude"})) == ["one"]
        assert listed(await browser.get(CONSOLE, params={"agent": "c"})) == ["two", "one"]
        assert listed(await browser.get(CONSOLE, params={"agent": "other"})) == []
        session = re.sub(r"<[^>]+>", "", (await browser.get(f"{CONSOLE}/sessions/two")).text)
        assert "from Codex in /projects/shop on branch fix-rounding" in session
