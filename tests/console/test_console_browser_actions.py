"""What a person does in a real browser: compact, look at the evidence, change it, watch an agent.

Everything that writes or reads a store runs over both kinds.
"""

import asyncio
import re

import pytest
from api_serving import all_of, raw, said, talked
from console_world import ConsoleWorld
from test_console_browser import looking, served, shown, until
from test_console_folds import claimed, fold_of, unfolded, with_claims
from test_console_requests import CHAT, GatewayWorld, ask

from refold.log import Author, Message
from refold.stores import open_store
from refold.testing.upstream import Reply

pytestmark = pytest.mark.timeout(600)
TALK = "/console/sessions/talk"


async def text_of(page, selector="main"):
    return " ".join((await page.locator(selector).inner_text()).split())


async def test_a_compaction_is_previewed_and_then_made(chromium, address):
    store = open_store(address)
    async with served(store=store) as world:
        await unfolded(world)
        before = await all_of(store, "default")
        async with looking(chromium, world, TALK) as page:
            await page.get_by_role("link", name="Compact", exact=True).click()
            await page.wait_for_url("**/folds/new")
            words = await text_of(page)
            assert "Goes 4 messages" in words
            assert "Stays 4 messages" in words
            assert "What is sent instead" in words
            assert await all_of(store, "default") == before
            await page.get_by_label("What the summary must keep").fill("where the parcels are")
            await page.get_by_role("button", name="Compact now").click()
            await page.wait_for_url("**/folds/*/summary", timeout=400_000)
            fold = await fold_of(world)
            assert page.url.endswith(f"/folds/{fold.seq}/summary")
            assert "Each claim beside its evidence" in await text_of(page)


async def test_a_summary_is_edited_some_of_it_is_shown_again_and_all_is_undone(chromium, address):
    store = open_store(address)
    async with served(store=store) as world:
        await talked(world, "default", "talk", turns=4)
        old = await fold_of(world)
        async with looking(chromium, world, TALK) as page:
            await page.get_by_role("link", name="Newest compaction").click()
            await page.get_by_role("link", name="Edit…").click()
            await page.get_by_label("The whole summary").fill("Ines has them.\nAsk her.")
            await page.get_by_role("button", name="Save as a new fold").click()
            await page.wait_for_url(re.compile(rf"/folds/(?!{old.seq}/)\d+/summary"))
            assert "in a person's words" in await text_of(page)
            new = await fold_of(world)
            assert new.spans == old.spans
            assert "Ines has them.\nAsk her." in (await shown(page, ".summary pre"))[0]
            last = new.spans[-1].last
            await page.get_by_text("Show some entries again").click()
            await page.get_by_label("From entry").fill(str(last - 1))
            await page.get_by_role("button", name="Show them again").click()
            await page.wait_for_url(f"**#e{last - 1}")
            left = await fold_of(world)
            assert all(last - 1 not in span for span in left.spans)
            await page.get_by_role("link", name="Newest compaction").click()
            await page.get_by_role("link", name="Undo…").click()
            await page.get_by_role("button", name="Undo it").click()
            await page.get_by_text("It is no longer in effect.").wait_for()
            await page.get_by_role("link", name=f"entries {left.spans[0].first} to").click()
            await page.wait_for_url(f"**#e{left.spans[0].first}")
            await page.get_by_text("sent again").first.wait_for()
            assert (await world.store.log("default").outlined("talk")).outline.folds == ()
            assert await page.locator("details.fold").count() == 0
            assert "Newest compaction" not in await text_of(page, ".tabs")


async def test_a_compaction_under_way_is_watched_and_canceled(chromium, address):
    never = asyncio.Event()

    async def wait(*_, **__):
        await never.wait()

    async with served(store=open_store(address), write=wait) as world:
        await unfolded(world)
        async with looking(chromium, world, f"{TALK}/folds/new") as page:
            await page.get_by_role("button", name="Compact now").click()
            await page.wait_for_url("**/folds/under-way/*")
            assert await page.get_by_role("status").inner_text()
            await page.wait_for_timeout(1_300)  # it asks each second
            await page.get_by_role("button", name="Cancel it").click()
            await page.get_by_text("was not made, and nothing changed").wait_for()
        assert (await world.store.log("default").outlined("talk")).outline.running == ()


async def test_a_page_that_watches_opens_the_summary_when_it_is_there(chromium):
    go = asyncio.Event()

    async def wait(*given, **more):
        from refold.fold.compactor import from_the_log  # noqa: PLC0415 - as the world has it

        await go.wait()
        return await from_the_log(*given, **more)

    async with served(write=wait) as world:
        await unfolded(world)
        async with looking(chromium, world, f"{TALK}/folds/new") as page:
            await page.get_by_role("button", name="Compact now").click()
            await page.wait_for_url("**/folds/under-way/*")
            go.set()
            await page.wait_for_url("**/folds/*/summary")


@pytest.mark.parametrize(("width", "beside"), [(1280, True), (390, False)])
async def test_a_claim_is_beside_its_evidence_where_there_is_room(chromium, width, beside):
    async with served() as world:
        fold = await with_claims(world, claimed())
        async with looking(chromium, world, f"{TALK}/folds/{fold.seq}/summary") as page:
            await page.set_viewport_size({"width": width, "height": 800})
            claim = page.locator("#claims ~ .evidence").first
            left, right = claim.locator(":scope > div").first, claim.locator("blockquote").first
            assert "The parcel is in Riga." in await left.inner_text()
            assert "Where is parcel 0?" in await right.inner_text()
            one, other = await left.bounding_box(), await right.bounding_box()
            assert (abs(one["y"] - other["y"]) < 20) == beside
            assert (other["x"] >= one["x"] + one["width"]) == beside
            found = await text_of(page)
            assert "no entry has The parcel is in Riga." in found
            assert "Nothing in the log bears it out." in found
            await right.get_by_role("link").click()
            await page.wait_for_url("**?at=2#e2")
            assert "Where is parcel 0?" in await text_of(page, "#e2")


async def test_who_may_only_read_is_told_so_and_sees_no_form(chromium):
    async with served(make=ConsoleWorld) as world:
        await talked(world, "acme", "talk", turns=4)
        secret = await world.key("acme", "read")
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(f"{world.where}{TALK}/folds/new")
        await page.get_by_label("A key of this service").fill(secret)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url("**/folds/new")
        assert await page.locator("form.change").count() == 0
        await page.get_by_role("link", name="Newest compaction").click()
        assert "A key with the role write can edit or undo it." in await text_of(page)
        assert await page.locator("form.change").count() == 0
        [cookie] = await context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (
            *(True, "Strict"),
            "/console",
        )
        assert await page.evaluate("document.cookie") == ""
        await page.get_by_role("button", name="Sign out").click()
        await page.wait_for_url("**/sign-in")
        await page.goto(f"{world.where}{TALK}")
        assert "/sign-in" in page.url
        await context.close()


# An agent at work while one watches.


async def test_an_agent_is_watched_while_it_is_answered(chromium, address):
    answer = asyncio.Event()
    texts = iter(["The first parcel is in Riga.", "The second is in Oslo."])

    def reply(_):
        return Reply(next(texts), pause=answer.wait)

    def world_of(**how):
        return GatewayWorld(reply, **how)

    async with served(make=world_of, store=open_store(address)) as world:
        messages = [said("user", "Where is the first parcel?")]
        asking = asyncio.create_task(ask(world, CHAT, body_of(messages)))
        async with looking(chromium, world) as page:
            await until(page, "document.querySelectorAll('.row').length === 1")
            await page.locator(".row").click()
            await page.get_by_text("Where is the first parcel?").last.wait_for()
            assert "in Riga" not in await text_of(page)
            answer.set()
            session, _ = await asking
            await page.get_by_text("The first parcel is in Riga.").wait_for()
            messages += [
                said("assistant", "The first parcel is in Riga."),
                said("user", "And the second?"),
            ]
            again, seq = await ask(world, CHAT, body_of(messages))
            assert again == session
            await page.get_by_text("The second is in Oslo.").wait_for()
            await page.locator(f"#e{seq} a").first.click()
            await page.wait_for_url(f"**/requests/{seq}")
            assert "And the second?" in await text_of(page)


def body_of(messages):
    return {"model": "some-model", "stream": True, "messages": messages}


async def test_nothing_is_followed_while_the_page_is_hidden(chromium):
    async with served() as world:
        await talked(world, "default", "talk", turns=1)
        log = world.store.log("default")
        async with looking(chromium, world, TALK) as page:
            draft = Author().draft(Message(raw(said("user", "and a lion?"))))
            await log.append("talk", [draft], expected=None)
            await page.get_by_text("and a lion?").wait_for()  # it is followed
            await hide(page, hidden=True)
            draft = Author().draft(Message(raw(said("user", "and a zebra?"))))
            await log.append("talk", [draft], expected=None)
            await page.wait_for_timeout(1_200)
            assert "zebra" not in await text_of(page)
            await hide(page, hidden=False)
            draft = Author().draft(Message(raw(said("user", "and an okapi?"))))
            await log.append("talk", [draft], expected=None)
            await page.get_by_text("and an okapi?").wait_for()
            assert "zebra" in await text_of(page)


async def hide(page, *, hidden):
    await page.evaluate(
        """(hidden) => {
          Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )
