"""A fold on its own page: its preview, its evidence, and who may change it from where."""

import asyncio
import html
import re
from types import SimpleNamespace
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from api_serving import FORMAT, SETUP, all_of, raw, said, talked
from console_world import CONSOLE, LOCAL, TEAM, console, form_token
from test_console_hostile import HOSTILE, Tags

from refold.fold.summary import Claim, Finding, Report, Section, Summary, SummaryMessage
from refold.gateway.sessions import Opening
from refold.log import CODEC, Author, FoldCompleted, FoldStarted, FoldUndone, PartRef, Span
from refold.recall.text import rebuilt

SESSION = f"{CONSOLE}/sessions/talk"
PART = {"HX-Request": "true"}
CHANGES = ("/folds", "/folds/{seq}/edit", "/folds/{seq}/undo", "/folds/{seq}/unfold")


def words_of(answer):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


async def fold_of(world, tenant="default", session="talk"):
    """The entry of the fold in effect, and its spans."""
    [fold] = (await world.store.log(tenant).outlined(session)).outline.folds
    return SimpleNamespace(seq=fold.seq, id=fold.fold, spans=fold.spans)


async def send(browser, where, origin=LOCAL, page=f"{SESSION}/folds/new", **fields):
    """Send a form as a page of this browser does."""
    token = form_token(await browser.get(page))
    form = {"form_token": token or "", **fields}
    return await browser.post(where, data=form, headers={"origin": origin})


async def shown(world, tenant="default", session="talk"):
    """What the next request of the session says."""
    async with world.state.sessions.lease(tenant, session, Opening(FORMAT, SETUP)) as kept:
        await kept.session.say(raw(said("user", "and?")))
        await kept.session.request()
        record = kept.session.record
    return b"".join(await rebuilt(world.store.log(tenant), session, record)).decode()


async def unfolded(world, tenant="default", session="talk", turns=4):
    async with world.state.sessions.lease(tenant, session, Opening(FORMAT, SETUP)) as kept:
        for nth in range(turns):
            await kept.session.say(raw(said("user", f"Where is parcel {nth}?")))
            await kept.session.request()
            await kept.session.answer(raw(said("assistant", f"Parcel {nth} is on its way.")))


async def test_a_preview_says_what_goes_and_what_stays_and_changes_nothing():
    async with console(local=True) as world:
        browser = await world.opened()
        await unfolded(world)
        before = await all_of(world.store, "default")
        page = await browser.get(f"{SESSION}/folds/new")
        words = words_of(page)
        assert "Goes 4 messages" in words
        assert "Stays 4 messages" in words
        assert "What is sent instead" in words
        assert "parcel 1" in page.text
        assert await all_of(world.store, "default") == before


async def test_a_session_with_nothing_to_compact_says_so():
    async with console(local=True) as world:
        browser = await world.opened()
        async with world.state.sessions.lease("default", "talk", Opening(FORMAT, SETUP)) as kept:
            await kept.session.say(raw(said("user", "Hello?")))
        page = await browser.get(f"{SESSION}/folds/new")
        assert page.status_code == 200
        assert "so there must be something before it" in page.text
        assert "Compact now" not in page.text


async def test_a_compaction_is_made_and_its_summary_opened():
    async with console(local=True) as world:
        browser = await world.opened()
        await unfolded(world)
        answer = await send(browser, f"{SESSION}/folds", focus="the parcels")
        assert answer.status_code == 303, answer.text
        where = answer.headers["location"]
        for _ in range(3_000):
            answer = await browser.get(where)
            if answer.status_code != 200:
                break
            await asyncio.sleep(0.02)
        fold = await fold_of(world)
        assert answer.headers["location"] == f"{SESSION}/folds/{fold.seq}/summary"
        page = await browser.get(answer.headers["location"])
        assert "written from the log, without a model" in words_of(page)


async def test_a_compaction_that_waits_is_watched_and_canceled():
    begun, never = asyncio.Event(), asyncio.Event()

    async def wait(*_, **__):
        begun.set()
        await never.wait()

    async with console(local=True, write=wait) as world:
        browser = await world.opened()
        await unfolded(world)
        answer = await send(browser, f"{SESSION}/folds")
        await asyncio.wait_for(begun.wait(), 60)
        where = answer.headers["location"]
        page = await browser.get(where)
        assert 'hx-trigger="every 1s"' in page.text
        assert "Cancel it" in page.text
        assert f"{urlsplit(where).path}" in (await browser.get(f"{SESSION}/folds/new")).text
        part = await browser.get(where, headers=PART)
        assert "<html" not in part.text
        ended = await send(browser, f"{where}/cancel", page=where)
        assert ended.status_code == 303, ended.text
        page = await browser.get(where)
        assert "was not made, and nothing changed" in page.text
        assert (await world.store.log("default").outlined("talk")).outline.running == ()


async def test_a_compaction_that_ended_leads_a_watching_page_to_its_summary():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        part = await browser.get(f"{SESSION}/folds/under-way/{fold.id}", headers=PART)
        assert part.headers["hx-redirect"] == f"{SESSION}/folds/{fold.seq}/summary"
        never = await browser.get(f"{SESSION}/folds/under-way/{'0' * 8}-0000-4000-8000-{'0' * 12}")
        assert never.status_code == 422


async def test_an_edited_summary_supersedes_the_old_one_which_stays():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        old = await fold_of(world)
        page = await browser.get(f"{SESSION}/folds/{old.seq}/summary")
        draft = page.text.partition("<textarea")[2].partition("</textarea>")[0]
        assert "parcel 1 of default" in draft
        assert "earlier messages are folded here" not in draft
        text = "The parcels are in Riga.\r\nAsk Ines."
        answer = await send(browser, f"{SESSION}/folds/{old.seq}/edit", text=text)
        assert answer.status_code == 303, answer.text
        new = await fold_of(world)
        assert new.spans == old.spans
        assert answer.headers["location"] == f"{SESSION}/folds/{new.seq}/summary"
        page = await browser.get(answer.headers["location"])
        assert "in a person's words" in words_of(page)
        before = await browser.get(f"{SESSION}/folds/{old.seq}/summary")
        assert f"Fold {new.seq} is, for the same messages." in words_of(before)
        assert 'name="text"' not in before.text
        request = await shown(world)
        assert "these words of the user" in request
        assert r"The parcels are in Riga.\nAsk Ines." in request
        assert "Where is parcel 1 of default?" not in request


async def test_an_edited_summary_is_undone_like_any_other():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        old = await fold_of(world)
        await send(browser, f"{SESSION}/folds/{old.seq}/edit", text="In Riga.")
        new = await fold_of(world)
        answer = await send(browser, f"{SESSION}/folds/{new.seq}/undo")
        assert answer.headers["location"] == f"{SESSION}/folds/{new.seq}/summary"
        [span] = old.spans
        undone = words_of(await browser.get(answer.headers["location"]))
        again = f"entries {span.first} to {span.last} again"
        assert f"It is no longer in effect. The next request has {again}." in undone
        request = await shown(world)
        assert "In Riga." not in request
        assert "Where is parcel 1 of default?" in request


async def test_of_an_undone_compaction_only_what_no_older_one_has_is_sent_again():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        old = await fold_of(world)
        await unfolded(world)
        async with world.state.sessions.lease("default", "talk", Opening(FORMAT, SETUP)) as kept:
            await kept.session.compact()
            await kept.session.say(raw(said("user", "and now?")))
            await kept.session.request()
        new = await fold_of(world)
        first, last = old.spans[-1].last + 1, new.spans[-1].last
        assert old.seq < new.seq
        await send(browser, f"{SESSION}/folds/{new.seq}/undo")
        undone = words_of(await browser.get(f"{SESSION}/folds/{new.seq}/summary"))
        assert f"has entries {first} to {last} again" in undone
        assert f"and fold {old.seq} is in effect as before it" in undone
        page = await browser.get(f"{SESSION}?at={first}")
        assert "<b>sent again</b> <span>the newest request had a summary of it" in page.text
        older = await browser.get(f"{SESSION}?at={old.spans[0].first}")
        assert "a summary stands for it" in older.text
        await shown(world)
        assert "sent again" not in (await browser.get(f"{SESSION}?at={first}")).text


async def test_some_entries_are_shown_again_and_the_fold_stays_for_the_rest():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        last = fold.spans[-1].last
        first = last - 1
        where = f"{SESSION}/folds/{fold.seq}/unfold"
        answer = await send(browser, where, first=str(first), last=str(last))
        assert answer.status_code == 303, answer.text
        left = await fold_of(world)
        assert all(first not in span and last not in span for span in left.spans)
        assert left.spans[0].first == fold.spans[0].first


@pytest.mark.parametrize(("first", "last"), [("9", "5"), ("x", "5"), ("", ""), ("900", "901")])
async def test_entries_that_are_not_in_the_fold_are_refused(first, last):
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        answer = await send(browser, f"{SESSION}/folds/{fold.seq}/unfold", first=first, last=last)
        assert answer.status_code == 422
        assert await fold_of(world) == fold


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 100_001])
async def test_no_summary_and_one_that_is_too_long_are_refused(text):
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        answer = await send(browser, f"{SESSION}/folds/{fold.seq}/edit", text=text)
        assert answer.status_code == 422
        assert await fold_of(world) == fold


async def test_the_price_of_a_change_is_what_lies_behind_the_summary():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        page = await browser.get(f"{SESSION}/folds/{fold.seq}/summary")
        found = re.search(r"The newest request has ([\d,]+) tokens behind this summary", page.text)
        assert found
        assert int(found[1].replace(",", "")) > 4_000  # the long prompt, and not the two before it


def claimed(words="The parcel is in Riga."):
    """A model's summary: claims with and without evidence, and what the check changed."""
    return Summary(
        "test:writer",
        title=words,
        sections=(
            Section(
                f"Done {words}"[:60],
                (
                    Claim(words, (PartRef(2, 0),), "Where is parcel", "user"),
                    Claim(words, against=f"entry 4: {words}", outdated=words),
                ),
            ),
        ),
        report=Report(
            checked=3,
            findings=(
                Finding("masked", words, f"no entry has {words}", (PartRef(4, 0),)),
                Finding("no source", words, words),
            ),
            crowded=1,
            added=2,
            coverage=0.5,
        ),
        messages=4,
        tokens=99,
        cost=0.0123,
        shown=(SummaryMessage("prompt", words),),
    )


async def with_claims(world, summary, session="talk"):
    """A session whose fold has this summary."""
    await unfolded(world, session=session)
    log, span, name = world.store.log("default"), Span(2, 5), uuid4()
    values = [FoldStarted(name, (span,), "manual"), FoldCompleted(name, (span,), summary.as_json())]
    await log.append(session, [Author().draft(each) for each in values], expected=None)
    return await fold_of(world, session=session)


async def test_each_claim_stands_beside_its_evidence_and_what_the_check_changed():
    async with console(local=True) as world:
        browser = await world.opened()
        fold = await with_claims(world, claimed())
        page = await browser.get(f"{SESSION}/folds/{fold.seq}/summary")
        words = words_of(page)
        assert "written by test:writer" in words
        assert "cost $0.01" in words
        assert "3 claims were looked up in the log." in words
        assert "50% of the names" in words
        assert "Where is parcel 0?" in words  # the evidence
        assert "no entry has The parcel is in Riga." in words
        assert "Nothing in the log bears it out." in words
        assert "The log disagrees: entry 4" in words
        assert "It names no source." in words


@pytest.mark.parametrize("name", HOSTILE)
async def test_words_of_a_summary_are_text(name):
    async with console(local=True) as world:
        browser = await world.opened()
        words = HOSTILE[name].encode(errors="replace").decode()
        fold = await with_claims(world, claimed(words))
        where = f"{SESSION}/folds/{fold.seq}/summary"
        hostile = Tags((await browser.get(where)).text).found
    async with console(local=True) as world:
        browser = await world.opened()
        await with_claims(world, claimed("harmless words"))
        plain = Tags((await browser.get(where)).text).found
        answer = await send(browser, f"{SESSION}/folds/{fold.seq}/edit", text=words)
        edited = await browser.get(answer.headers["location"])
        await send(browser, f"{SESSION}/folds/{(await fold_of(world)).seq}/edit", text="harmless")
        again = await browser.get(f"{SESSION}/folds/{(await fold_of(world)).seq}/summary")
    assert hostile == plain
    assert Tags(edited.text).found == Tags(again.text).found


async def changes(world):
    """Every change, with fields that it takes."""
    fold = await fold_of(world, "acme")
    fields = {
        "text": "In Riga.",
        "first": str(fold.spans[0].first),
        "last": str(fold.spans[0].first),
    }
    where = [SESSION + each.format(seq=fold.seq) for each in CHANGES]
    return [*where, f"{SESSION}/folds/under-way/{fold.id}/cancel"], fields


@pytest.mark.parametrize("roles", [["read"], ["read", "use"]])
async def test_who_may_only_read_changes_nothing_and_is_offered_nothing(roles):
    async with console() as world:
        await talked(world, "acme", "talk", turns=4)
        browser, before = await world.signed_in("acme", *roles), await all_of(world.store, "acme")
        where, fields = await changes(world)
        fold = await fold_of(world, "acme")
        for page in (f"{SESSION}/folds/new", f"{SESSION}/folds/{fold.seq}/summary"):
            assert 'class="change' not in (await browser.get(page)).text
        for each in where:
            answer = await send(browser, each, TEAM, **fields)
            assert answer.status_code == 403, each
        assert await all_of(world.store, "acme") == before


async def test_another_tenants_session_cannot_be_changed():
    async with console() as world:
        await talked(world, "acme", "talk", turns=4)
        browser = await world.signed_in("beta", "read", "write", "admin")
        before = await all_of(world.store, "acme")
        where, fields = await changes(world)
        for each in where:
            answer = await send(browser, each, TEAM, page=CONSOLE, **fields)
            assert answer.status_code == 404, each
        assert await all_of(world.store, "acme") == before


@pytest.mark.parametrize("how", ["no token", "another browser's", "another site", "no origin"])
async def test_a_form_of_another_site_changes_nothing(how):
    async with console() as world:
        await talked(world, "acme", "talk", turns=4)
        browser = await world.signed_in("acme", "read", "write")
        other = await world.signed_in("acme", "read", "write")
        before = await all_of(world.store, "acme")
        where, fields = await changes(world)
        page = await (other if how == "another browser's" else browser).get(CONSOLE)
        token = "" if how == "no token" else form_token(page)
        origin = {"no origin": {}, "another site": {"origin": "https://evil.example"}}
        headers = origin.get(how, {"origin": TEAM})
        for each in where:
            answer = await browser.post(each, data={"form_token": token, **fields}, headers=headers)
            assert answer.status_code == 403, each
            assert (await browser.get(each)).status_code in (404, 405, 422)
        assert await all_of(world.store, "acme") == before


async def test_a_fold_whose_summary_is_kept_apart_is_in_the_timeline():
    async with console(local=True) as world:
        browser = await world.opened()
        await with_claims(world, claimed("long words " * 30_000))
        page = await browser.get(SESSION)
        assert page.status_code == 200
        assert "entries are compacted" in page.text


async def test_a_fold_that_another_one_took_in_cannot_be_edited():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        old = await fold_of(world)
        await send(browser, f"{SESSION}/folds/{old.seq}/edit", text="In Riga.")
        again = await send(browser, f"{SESSION}/folds/{old.seq}/edit", text="In Oslo.")
        assert again.status_code == 422
        assert "cannot be edited" in again.text
        entries = await world.store.log("default").read("talk")
        assert sum(isinstance(CODEC.decode(each), FoldUndone) for each in entries) == 1


async def test_the_newest_compaction_is_one_click_from_its_session():
    async with console(local=True) as world:
        browser = await world.opened()
        await unfolded(world)
        assert "Newest compaction" not in (await browser.get(SESSION)).text
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        where = f'href="{SESSION}/folds/{fold.seq}/summary"'
        assert f"<a {where}>Newest compaction</a>" in (await browser.get(SESSION)).text
        page = await browser.get(f"{SESSION}/folds/{fold.seq}/summary")
        assert f'<a {where} aria-current="page">Newest compaction</a>' in page.text


async def test_a_message_that_a_summary_replaces_leads_to_it():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        where = f'href="{SESSION}/folds/{fold.seq}/summary">its summary</a>'
        page = await browser.get(f"{SESSION}?at=6")
        message = page.text.partition('<article class="message user" id="e6"')[2]
        message = message.partition("</article>")[0]
        assert where in message
        assert where not in (await browser.get(SESSION)).text  # no message of it is shown


async def test_an_administrator_is_offered_what_may_be_done():
    async with console() as world:
        await talked(world, "acme", "talk", turns=4)
        fold = await fold_of(world, "acme")
        browser = await world.signed_in("acme", "admin")
        page = await browser.get(f"{SESSION}/folds/{fold.seq}/summary")
        assert 'class="change' in page.text
        assert "A key with the role" not in page.text
        reader = await world.signed_in("acme", "read")
        page = await reader.get(f"{SESSION}/folds/{fold.seq}/summary")
        assert "can edit or undo it" in page.text
