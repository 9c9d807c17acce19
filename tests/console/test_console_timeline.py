"""A session as a timeline: what is in the context and what is not, in place, page by page."""

import asyncio
import re
from uuid import uuid4

import pytest
from api_serving import FORMAT, SETUP, raw, said, talked
from console_world import CONSOLE, console, events_of

from refold.console import timeline
from refold.gateway.sessions import Opening
from refold.log import Author, FoldCompleted, FoldStarted, Message, Opened, Span
from refold.stores import SqliteStore

PART = {"HX-Request": "true"}


def at(session, rest=""):
    return f"{CONSOLE}/sessions/{session}{rest}"


def entries(answer):
    """The messages that are shown, by their entries."""
    return [int(each) for each in re.findall(r'<article [^>]*id="e(\d+)"', answer.text)]


def fates(answer):
    """What became of the first part of each message, by its entry."""
    found = re.findall(r'<div class="part (\w+)" id="p(\d+)-0"', answer.text)
    return {int(seq): name for name, seq in found}


def text_of(answer):
    return re.sub(r"<[^>]+>|\s+", " ", answer.text)


async def appended(world, name, *values, tenant="default"):
    log = world.store.log(tenant)
    return await log.append(name, [Author().draft(each) for each in values], expected=None)


async def test_a_session_shows_what_was_said_beside_what_the_model_gets():
    async with console(local=True) as world:
        browser, facts = await world.opened(), await talked(world, "default", "talk", turns=4)
        page = await browser.get(at("talk"))
        assert entries(page) == [2, 4, 14, 16, 20]
        assert set(fates(page).values()) == {"kept"}
        words = text_of(page)
        assert "9 entries are compacted" in words
        assert f"Request {facts.seq}" in words
        assert "Where is parcel 3 of default?" in words
        assert "A note of default" in words
        assert "parcel 1" not in words  # its message is in the fold


async def test_a_fold_opens_in_place_and_has_a_page():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        page = await browser.get(at("talk"))
        (where,) = re.findall(r'hx-get="([^"]*/folds/\d+)"', page.text)
        inside = await browser.get(where, headers=PART)
        assert "<html" not in inside.text
        assert entries(inside) == [6, 8, 10, 12]
        assert set(fates(inside).values()) == {"folded"}
        assert "Where is parcel 1 of default?" in text_of(inside)
        assert "The summary" in inside.text
        whole = await browser.get(where)
        assert "<html" in whole.text
        assert entries(whole) == [6, 8, 10, 12]


async def test_a_fold_with_several_runs_says_so_at_each():
    async with console(local=True) as world:
        browser = await world.opened()
        messages = [Message(raw(said("user", f"word {nth}"))) for nth in range(8)]
        await world.store.log("default").append(
            "s", [Author().draft(x) for x in (Opened(FORMAT, "balanced"), *messages)], expected=0
        )
        fold, spans = uuid4(), (Span(2, 3), Span(6, 7))
        await appended(world, "s", FoldStarted(fold, spans, "manual"))
        await appended(world, "s", FoldCompleted(fold, spans, {"text": "What was said."}))
        page = await browser.get(at("s"))
        assert entries(page) == [4, 5, 8, 9]
        assert "2 entries are compacted" in text_of(page)
        assert "2 more entries of the same fold" in text_of(page)
        first, second = re.findall(r'hx-get="([^"]*/folds/[^"]+)"', page.text)
        assert entries(await browser.get(first, headers=PART)) == [2, 3]
        assert entries(await browser.get(second.replace("&amp;", "&"), headers=PART)) == [6, 7]


async def test_what_was_rewound_is_a_branch_that_opens():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=1)
        async with world.state.sessions.lease("default", "talk", Opening(FORMAT, SETUP)) as kept:
            head = kept.session.head
            await kept.session.say(raw(said("user", "a wrong turn")))
            await kept.session.rewind(head)
            await kept.session.say(raw(said("user", "the right one")))
        page = await browser.get(at("talk"))
        words = text_of(page)
        assert "a wrong turn" not in words
        assert "the right one" in words
        assert f"rewound to entry {head}" in words
        (where,) = re.findall(r'hx-get="([^"]*/branches/\d+)"', page.text)
        inside = await browser.get(where, headers=PART)
        assert "a wrong turn" in inside.text
        assert set(fates(inside).values()) == {"dropped"}
        assert "rewound or cleared" in inside.text


async def test_a_fork_names_its_source_and_a_pin_who_made_it():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=2)
        await world.store.log("default").fork("talk", "other", at=6)
        async with world.state.sessions.lease("default", "other", Opening(FORMAT, SETUP)) as kept:
            await kept.session.pin(kept.session.inputs.rows[0].parts[0].ref)
        page = await browser.get(at("other"))
        assert 'href="/console/sessions/talk?at=6"' in page.text
        assert "pinned by a person" in page.text


async def test_a_message_since_the_newest_request_is_not_sent_yet():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=1)
        where = await appended(world, "talk", Message(raw(said("user", "and now?"))))
        page = await browser.get(at("talk"))
        assert fates(page)[where.first] == "new"
        assert "not sent yet" in page.text


async def test_a_large_text_is_shown_when_it_is_asked_for_in_pieces_and_as_a_file():
    async with console(local=True) as world:
        browser, log = await world.opened(), world.store.log("default")
        huge = "x" * 250_000 + "the end"
        values = [Opened(FORMAT, "balanced"), Message(raw(said("user", huge)))]
        await log.append("s", [Author().draft(each) for each in values], expected=0)
        page = await browser.get(at("s"))
        assert len(page.content) < 20_000
        assert "A large text, kept apart" in page.text
        part = await browser.get(at("s", "/entries/2/parts/0"), headers=PART)
        assert "1 to 100,000 of 250,007" in text_of(part)
        last = await browser.get(at("s", "/entries/2/parts/0?offset=200000"), headers=PART)
        assert "the end" in last.text
        assert len(last.content) < 60_000
        body = await browser.get(at("s", "/entries/2/body"))
        assert body.content == raw(said("user", huge))
        assert body.headers["content-disposition"] == 'attachment; filename="entry-2.json"'
        assert body.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ("/entries/99/parts/0", 422),
        ("/entries/2/parts/9", 422),
        ("/entries/3/body", 422),
        ("/folds/2", 422),
        ("/branches/2", 422),
        ("?at=0", 422),
        ("?before=x", 422),
        ("?at=99999", 200),
        ("?after=99999", 200),
        ("?before=1", 200),
        ("/before/1", 200),
        ("/before/99999", 200),
    ],
)
async def test_places_that_are_not_there(rest, status):
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=1)
        answer = await browser.get(at("talk", rest))
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")


async def test_what_was_forgotten_is_a_tombstone():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=2)
        await world.store.log("default").forget("talk", Span(2, 2))
        page = await browser.get(at("talk"))
        assert "Where is parcel 0" not in page.text
        assert "erased for good" in page.text or "forgotten for good" in page.text
        await world.store.log("default").forget("talk")
        assert (await browser.get(at("talk"))).status_code == 404


async def long_session(store, messages, *, folded):
    """A session of so many messages, all but the newest of them in one fold, with one request."""
    log, author = store.log("default"), Author()
    await log.append("long", [author.draft(Opened(FORMAT, "balanced"))], expected=0)
    roles = ("user", "assistant")
    for first in range(0, messages, 1_000):
        drafts = [
            author.draft(Message(raw(said(roles[nth % 2], f"word {nth}"))))
            for nth in range(first, min(messages, first + 1_000))
        ]
        await log.append("long", drafts, expected=None)
    if folded:
        fold, spans = uuid4(), (Span(2, messages - 60),)
        summary = {"shown": [{"kind": "prompt", "text": "Much was said."}], "messages": messages}
        drafts = [FoldStarted(fold, spans, "manual"), FoldCompleted(fold, spans, summary)]
        await log.append("long", [author.draft(each) for each in drafts], expected=None)
    await log.append("long", [author.draft(Message(raw(said("user", "now"))))], expected=None)


class Rows:
    """How many entries were read from the store."""

    def __init__(self, monkeypatch, log):
        self.count = 0
        for name in ("read", "visible"):
            monkeypatch.setattr(type(log), name, self._counting(getattr(type(log), name)))

    def _counting(self, original):
        async def counting(log, *args, **how):
            found = await original(log, *args, **how)
            self.count += len(found if isinstance(found, list) else found.entries)
            return found

        return counting


async def rows_read(monkeypatch, path, messages, *, folded):
    """How many rows the pages of a session of so many messages read."""
    store = SqliteStore(path)
    async with console(local=True, store=store) as world:
        browser = await world.opened()
        await long_session(store, messages, folded=folded)
        if folded:
            lease = world.state.sessions.lease("default", "long", Opening(FORMAT, SETUP))
            async with lease as kept:
                await kept.session.request()
        with monkeypatch.context() as patch:
            rows = Rows(patch, store.log("default"))
            counts = {}
            for name, rest in PAGES.items():
                before = rows.count
                answer = await browser.get(at("long", rest.format(middle=messages // 2)))
                assert answer.status_code == 200, (name, answer.text)
                counts[name] = rows.count - before
        return counts


PAGES = {"end": "", "middle": "?at={middle}", "earlier": "/before/{middle}", "begin": "?after=0"}


@pytest.mark.parametrize("folded", [False, True])
async def test_a_page_of_a_long_session_reads_as_many_rows_as_one_of_a_short_one(
    monkeypatch, tmp_path, folded
):
    short = await rows_read(monkeypatch, tmp_path / "short.db", 1_000, folded=folded)
    long = await rows_read(monkeypatch, tmp_path / "long.db", 20_000, folded=folded)
    assert all(long[name] <= 1.5 * short[name] for name in PAGES), (short, long)
    assert max(long.values()) <= 2 * timeline.PAGE


async def test_a_session_is_read_to_its_beginning_page_by_page(tmp_path):
    store = SqliteStore(tmp_path / "s.db")
    async with console(local=True, store=store) as world:
        browser = await world.opened()
        await long_session(store, 500, folded=False)
        page = await browser.get(at("long"))
        seen = entries(page)
        deep = ""
        while found := re.search(r'hx-get="([^"]*/before/[^"]*)"', page.text):
            page = await browser.get(found[1].replace("&amp;", "&"), headers=PART)
            seen = entries(page) + seen
            deep = found[1]
        assert seen == [*range(2, 503)]
        assert "depth=" in deep
        forward, page = [], await browser.get(at("long", "?after=0"))
        while True:
            forward += entries(page)
            found = re.search(r'href="([^"]*\?after=\d+)"', page.text)
            if not found:
                break
            page = await browser.get(found[1])
        assert forward == seen


async def test_pages_are_not_added_to_one_another_without_end():
    async with console(local=True) as world:
        browser = await world.opened()
        await long_session(world.store, 200, folded=False)
        page = await browser.get(at("long", "/before/150?depth=9"), headers=PART)
        assert "Go on reading" in page.text
        assert "hx-get" not in page.text
        assert (await browser.get(at("long", "/before/150?depth=11"))).status_code == 422


async def test_the_timeline_follows_the_session():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=1)
        page = await browser.get(at("talk"))
        (where,) = re.findall(r'hx-sse:connect="([^"]+)"', page.text)
        events = asyncio.create_task(events_of(world, browser, where, 2))
        await asyncio.sleep(0.3)
        await appended(world, "talk", Message(raw(said("user", "and now?"))))
        await asyncio.sleep(1)
        await appended(world, "talk", Message(raw(said("assistant", "<b>zebra</b>"))))
        first, second = await asyncio.wait_for(events, 90)
        assert "and now?" in first
        assert "zebra" not in first
        assert "&lt;b&gt;zebra" in second
        assert "data: <article" in second
