"""The console in a real browser: what is pressed, opened and followed, and that nothing runs.

It needs Chromium and Playwright; where they are missing, the tests are skipped.
"""

import asyncio
from contextlib import asynccontextmanager, nullcontext
from urllib.parse import quote

import pytest
import uvicorn
from api_serving import FORMAT, SETUP, raw, said, talked
from console_world import ConsoleWorld
from replayable import stored
from test_console_hostile import HOSTILE, hostile_session
from test_console_money import paid, spend
from test_console_timeline import long_session

from refold.console.app import open_address
from refold.gateway.sessions import Opening
from refold.log import Author, Message
from refold.service.server import address_of, listen
from refold.stores import SqliteStore, open_store

pytestmark = pytest.mark.timeout(600)


@asynccontextmanager
async def served(make=None, **how):
    """A console that listens on a port of this machine."""
    world = make(**how) if make else ConsoleWorld(local=True, **how)
    sock = listen("127.0.0.1", 0)
    async with world.state:
        config = uvicorn.Config(world.app, log_config=None, lifespan="off", ws="none")
        server = QuietServer(config)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        world.where = address_of(sock)
        try:
            yield world
        finally:
            world.state.draining.set()
            server.should_exit = True
            await task
            await world.state.sessions.close()
            sock.close()


class QuietServer(uvicorn.Server):
    """A server that leaves signals to pytest."""

    def capture_signals(self):
        return nullcontext()


class Looked:
    """A page of a browser that has opened the console, and what went wrong in it."""

    def __init__(self, page):
        self.page = page
        self.wrong = []
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("requestfailed", self._failed)
        page.on("request", lambda request: self._asked(request.url))
        self.where = ""

    def _note(self, kind, text):
        if kind in ("error", "warning"):
            self.wrong.append(text)

    async def _dialog(self, dialog):
        self.wrong.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # what was under way ends with its page
            self.wrong.append(f"failed: {request.url}")

    def _asked(self, url):
        if not url.startswith(self.where):
            self.wrong.append(f"asked elsewhere: {url}")


@asynccontextmanager
async def looking(chromium, world, then="/console", **how):
    context = await chromium.new_context(viewport={"width": 1280, "height": 800}, **how)
    page = await context.new_page()
    looked = Looked(page)
    looked.where = world.where
    await page.goto(open_address(world.where, world.access.new_token(), then))
    yield page
    await page.wait_for_timeout(100)
    await context.close()
    assert looked.wrong == []


async def until(page, expression):
    """Playwright's own way of waiting needs `eval`, which the pages forbid."""
    for _ in range(2_400):
        if await page.evaluate(expression):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"It did not come to {expression}.")


async def shown(page, selector):
    return [text.strip() for text in await page.locator(selector).all_inner_texts()]


async def test_the_list_is_searched_filtered_and_walked_by_keys(chromium, address):
    async with served(store=open_store(address)) as world:
        await talked(world, "default", "about parcels", words="parcel")
        await talked(world, "default", "about cathedrals", words="cathedral")
        async with looking(chromium, world) as page:
            assert len(await shown(page, ".row")) == 2
            await page.keyboard.press("/")
            await page.keyboard.type("cathedral")
            await until(page, "document.querySelectorAll('.row').length === 1")
            assert "cathedral" in (await shown(page, ".hits"))[0]
            assert "q=cathedral" in page.url
            await page.keyboard.press("Escape")
            await page.keyboard.press("j")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/sessions/about%20cathedrals")


async def test_a_match_is_opened_by_one_click_right_after_typing(chromium, address):
    async with served(store=open_store(address)) as world:
        await talked(world, "default", "about parcels", words="parcel")
        async with looking(chromium, world) as page:
            await page.keyboard.press("/")
            await page.keyboard.type("parcel")
            match = page.locator(".hits > li > a").first
            await match.wait_for()
            box = await match.bounding_box()
            await page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
            await page.mouse.down()
            await page.wait_for_timeout(600)  # a slow finger: the list must stay what it is
            await page.mouse.up()
            await page.wait_for_url("**/sessions/about%20parcels?at=*")


async def test_a_result_that_an_address_points_to_is_open(chromium):
    async with served() as world:
        await stored(world.store.log("default"), "work")
        async with looking(chromium, world, "/console/sessions/work?at=8#e8") as page:
            await until(page, "!!document.querySelector('#e8 .content > details[open]')")
            assert await page.locator(".content > details[open]").count() == 1


async def test_the_list_follows_while_one_looks(chromium, address):
    async with served(store=open_store(address)) as world:
        await talked(world, "default", "first")
        async with looking(chromium, world) as page:
            assert len(await shown(page, ".row")) == 1
            await page.wait_for_timeout(300)
            await talked(world, "default", "second")
            await until(page, "document.querySelectorAll('.row').length === 2")


async def test_the_list_is_followed_however_late_a_script_comes(chromium):
    async with served() as world:
        context = await chromium.new_context()
        page = await context.new_page()

        async def late(route):
            await asyncio.sleep(0.5)
            await route.continue_()

        await page.route("**/hx-sse*", late)
        await page.goto(open_address(world.where, world.access.new_token()))
        await talked(world, "default", "first")
        await until(page, "document.querySelectorAll('.row').length === 1")
        await context.close()


async def test_a_fold_opens_in_place_and_a_session_opens_at_its_end(chromium, address):
    async with served(store=open_store(address)) as world:
        await talked(world, "default", "talk", turns=6)
        async with looking(chromium, world, "/console/sessions/talk") as page:
            await until(page, "window.scrollY > 0 || innerHeight > 700")
            fold = page.locator("details.fold")
            await fold.locator("summary").first.click()
            await fold.locator("article").first.wait_for()
            assert "Where is parcel 1 of default?" in (await shown(page, "details.fold"))[0]
            assert "The summary" in (await shown(page, "details.fold"))[0]


async def test_a_timeline_grows_while_one_looks_and_keeps_what_is_open(chromium, address):
    async with served(store=open_store(address)) as world:
        await talked(world, "default", "talk", turns=2)
        async with looking(chromium, world, "/console/sessions/talk") as page:
            await page.locator("details.fold summary").first.click()
            await page.locator("details.fold article").first.wait_for()
            async with world.state.sessions.lease(
                "default", "talk", Opening(FORMAT, SETUP)
            ) as kept:
                await kept.session.say(raw(said("user", "and a zebra?")))
                await page.get_by_text("and a zebra?").wait_for()
                await kept.session.request()
                await kept.session.answer(raw(said("assistant", "No zebra.")))
            await page.get_by_text("No zebra.").wait_for()
            assert await page.locator("details.fold").first.get_attribute("open") is not None
            assert await page.locator("details.fold article").count() > 0


async def test_a_long_session_scrolls_to_its_beginning(address, chromium):
    store = open_store(address)
    async with served(store=store) as world:
        await long_session(store, 300, folded=False)
        async with looking(chromium, world, "/console/sessions/long") as page:
            await until(page, "window.scrollY > 500")
            before = await page.evaluate(
                "document.querySelector('#e290').getBoundingClientRect().top"
            )
            for _ in range(12):
                if await page.locator("#e2").count():
                    break
                await page.mouse.move(600, 400)
                await page.mouse.wheel(0, -30_000)
                await page.wait_for_timeout(400)
            assert await page.locator("#e2").count() == 1
            seqs = await page.evaluate(
                "[...document.querySelectorAll('article')].map((x) => +x.id.slice(1))"
            )
            assert seqs == [*range(2, 303)]
            assert before is not None


async def test_what_is_put_above_leaves_the_page_where_it_is(chromium, tmp_path):
    store = SqliteStore(tmp_path / "s.db")
    async with served(store=store) as world:
        await long_session(store, 400, folded=False)
        async with looking(chromium, world, "/console/sessions/long") as page:
            await until(page, "window.scrollY > 500")
            await page.evaluate("document.querySelector('#e330').scrollIntoView()")
            first = await page.locator("article").first.get_attribute("id")
            where = "document.querySelector('#e330').getBoundingClientRect().top"
            await page.evaluate("document.querySelector('.earlier a').click()")
            await until(page, f"document.querySelector('article').id !== '{first}'")
            await page.wait_for_timeout(200)
            assert abs(await page.evaluate(where)) < 80  # below the heading


async def test_a_request_is_followed_from_the_picture_to_its_difference(chromium, address):
    async with served(store=open_store(address)) as world:
        await talked(world, "default", "talk", turns=4)
        async with looking(chromium, world, "/console/sessions/talk/window") as page:
            assert await page.locator(".chart a .hit").count() == 5
            await page.locator(".chart a .hit").last.click()
            await page.wait_for_url("**/requests/*")
            out = page.locator("details.out")
            await out.locator("summary").first.click()
            await out.locator("article").first.wait_for()
            assert "Where is parcel 1 of default?" in (await shown(page, "details.out"))[0]
            await page.get_by_text("What changed since it").click()
            await page.wait_for_url("**/since/*")
            assert "The prefix broke" in await page.locator(".break").inner_text()


async def test_chosen_sessions_are_replayed_while_the_list_goes_on(chromium, address, tmp_path):
    async with served(store=open_store(address)) as world:
        log = world.store.log("default")
        await stored(log, "one")
        await stored(log, "two", turns=24)  # long enough for names to come back
        async with looking(chromium, world) as page:
            await page.get_by_role("checkbox", name="Choose two").check()
            await page.wait_for_timeout(300)
            await stored(log, "a third")  # puts the others further down
            await until(page, "document.querySelectorAll('.row').length === 3")
            chosen = "[...document.querySelectorAll('.pick input:checked')].map((x) => x.value)"
            assert await page.evaluate(chosen) == ["two"]
            await page.keyboard.press("j")
            await page.keyboard.press("x")
            assert {*await page.evaluate(chosen)} == {"two", "a third"}
            await page.get_by_role("button", name="What if").click()
            await page.wait_for_url("**/what-if?session=*&session=*")
            assert await page.locator("[name='trigger.tokens']").get_attribute("placeholder") != "0"
            await page.locator("[name='trigger.tokens']").fill("5000")
            await page.locator("select").select_option("co-cli")
            await until(page, "document.querySelector('[name=profile]').value === 'co-cli'")
            await until(
                page, "document.querySelector('[name=\"trigger.tokens\"]').value === '5000'"
            )
            assert "form_token" not in page.url
            await page.get_by_role("button", name="Replay").click()
            await page.locator(".scatter svg circle").first.wait_for(timeout=150_000)
            assert await page.locator(".compared tbody tr").count() == 9
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                assert await page.evaluate(CONTRASTS) == []
            async with page.expect_download() as download:
                await page.get_by_text("Save as one file").click()
            offline = await chromium.new_context(offline=True)
            alone = await offline.new_page()
            await (await download.value).save_as(tmp_path / "what-if.html")
            await alone.set_content((tmp_path / "what-if.html").read_text())
            assert await alone.locator("circle").count() > 3
            await offline.close()


async def test_the_picture_is_saved_as_a_file(chromium, tmp_path):
    async with served() as world:
        await talked(world, "default", "talk", turns=2)
        async with looking(chromium, world, "/console/sessions/talk/window") as page:
            async with page.expect_download() as download:
                await page.get_by_text("Save as SVG").click()
            saved = await download.value
            await saved.save_as(tmp_path / "window.svg")
            assert (tmp_path / "window.svg").read_text().startswith("<svg")


async def test_hostile_words_run_nothing_in_a_browser(chromium, address):
    async with served(store=open_store(address)) as world:
        for kind in ("script", "attribute", "htmx", "direction", "comment", "stream"):
            await hostile_session(world, kind, HOSTILE[kind])
        async with looking(chromium, world) as page:
            await page.wait_for_timeout(150)
            for kind in ("script", "attribute", "htmx", "direction", "comment", "stream"):
                await look_through(page, world, kind, HOSTILE[kind])


async def look_through(page, world, session, words):
    """Open everything of a session that can be opened, also what comes meanwhile."""
    for path in ("/window", "/costs", ""):
        await page.goto(f"{world.where}/console/sessions/{session}{path}")
        await page.wait_for_timeout(150)
        for each in await page.locator("summary").all():
            if await each.is_visible():
                await each.click()
    articles = "document.querySelectorAll('.items > article').length"
    before = await page.evaluate(articles)
    log = world.store.log("default")
    await log.append(session, [Author().draft(Message(raw(said("user", words))))], expected=None)
    await until(page, f"{articles} > {before}")
    requests = await page.locator("p.request a").all()
    await requests[-1].click()
    await page.wait_for_url("**/requests/*")
    assert await page.locator("img:not([src^='/console/assets/'])").count() == 0
    assert await page.locator("script:not([src^='/console/assets/'])").count() == 0


async def test_other_sites_cannot_frame_or_read_it(chromium):
    async with served() as world:
        await talked(world, "default", "talk")
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(open_address(world.where, world.access.new_token()))
        assert await page.locator(".row").count() == 1
        server = await asyncio.start_server(evil(world.where), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for host in ("127.0.0.1", "localhost"):  # another port, another site
            await page.goto(f"http://{host}:{port}/")
            await page.wait_for_timeout(500)
            assert await page.evaluate("document.title") == "refused"
            frame = page.frames[1]
            assert await frame.locator(".row").count() == 0
        server.close()
        await context.close()


def evil(where):
    """A page of another site that frames the console and tries to read it."""
    html = f"""<iframe src="{where}/console"></iframe><script>
    fetch("{where}/console", {{credentials: "include"}})
      .then(() => document.title = "read", () => document.title = "refused");
    </script>"""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(html)}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n{html}".encode())
        await writer.drain()
        writer.close()

    return answer


async def test_money_leads_to_the_request_that_became_dearer(chromium, address):
    store = open_store(address)
    async with served(store=store) as world:
        await paid(world, "default", "dear", {"tokens": 90_000, "whole": 10}, {"tokens": 50})
        async with looking(chromium, world) as page:
            await page.get_by_role("link", name="Money").click()
            await page.get_by_role("link", name="7 days").click()
            await page.wait_for_url("**/money?days=7")
            assert await page.locator(".chart svg title").count() == 7
            await page.keyboard.press("j")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/sessions/dear/costs")
            assert "$" in (await shown(page, ".lost"))[0]
            assert await page.locator(".row").first.inner_text() == "Request 2"


async def test_yesterdays_cost_and_what_another_profile_would_have_cost(chromium, address):
    """In five clicks: the screen of money, a day, its sessions replayed, with which profile."""
    store = open_store(address)
    async with served(store=store) as world:
        await stored(world.store.log("default"), "review", turns=40)
        await spend(world.store.log("default"), "review", {"tokens": 50_000})
        async with looking(chromium, world) as page:
            await page.get_by_role("link", name="Money").click()
            await page.get_by_role("link", name="Today").click()
            await page.wait_for_url("**/money/2*")
            assert "$" in (await shown(page, ".sums dd"))[0]
            await page.get_by_role("link", name="What if…").click()
            await page.locator("select").select_option("copilot")
            await until(page, "document.querySelector('[name=profile]').value === 'copilot'")
            await page.get_by_role("button", name="Replay").click()
            await page.locator(".compared tbody tr").first.wait_for(timeout=400_000)
            ours = await shown(page, ".compared .ours th")
            assert {"copilot", "balanced"} <= {name.removeprefix("* ") for name in ours}


@pytest.mark.parametrize("width", [390, 2560])
async def test_money_fits_the_window(chromium, width):
    async with served() as world:
        uses = [{"tokens": 90_000, "whole": 10, "model": "a-long-name-of-a-provider/and-a-model"}]
        name = "dear " * 29 + "dear"
        await paid(world, "default", name, *uses)
        await paid(world, "default", "saves", {"tokens": 50_000})
        async with looking(chromium, world, "/console/money") as page:
            await page.set_viewport_size({"width": width, "height": 900})
            for path in ("/money", f"/sessions/{quote(name)}/costs"):
                await page.goto(f"{world.where}/console{path}")
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_words_stand_out_from_what_is_behind_them(chromium, scheme):
    """WCAG AA: 4.5 to 1 for all text that is shown."""
    async with served() as world:
        await talked(world, "default", "talk", turns=4)
        async with looking(chromium, world, color_scheme=scheme) as page:
            record = (await world.store.log("default").outlined("talk")).outline.record
            pages = ("", "/sessions/talk", f"/sessions/talk/requests/{record}")
            await paid(world, "default", "dear", {"tokens": 90_000, "whole": 10})
            more = ("/money", "/sessions/dear/costs", "/what-if?session=talk")
            for path in (*pages, *more):
                await page.goto(f"{world.where}/console{path}")
                low = await page.evaluate(CONTRASTS)
                assert low == [], path


CONTRASTS = """() => {
  const channel = (x) => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const parse = (color) => {
    const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
    const context = canvas.getContext("2d");
    context.fillStyle = color; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("main *, header *")) {
    const words = [...element.childNodes].some((x) => x.nodeType === 3 && x.textContent.trim());
    if (!words || !element.checkVisibility() || element.closest("svg")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([element.className, element.textContent.slice(0, 30), ratio]);
  }
  return found;
}"""
