"""What every answer of the console says to the browser, its assets, and how large they are."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest
import vendor
from api_serving import talked
from console_world import CONSOLE, LOCAL, console

import refold.console
from refold.console.app import open_address
from refold.console.pages import asset

ROOT = Path(__file__).parents[2]
ROOM = Path(refold.console.__file__).parent
ASSETS, TEMPLATES = ROOM / "assets", ROOM / "templates"
SCRIPTS = sorted(path for path in ASSETS.iterdir() if path.suffix in (".js", ".css", ".svg"))
MAX_COMPRESSED = 60_000


def directives(answer):
    policy = answer.headers["content-security-policy"]
    return dict(each.strip().split(" ", 1) for each in policy.split(";"))


async def answers(world):
    """One answer of each sort: pages, parts, redirects, errors, assets."""
    browser, stranger = await world.opened(), world.browser(LOCAL)
    yield await browser.get(CONSOLE)
    yield await browser.get(CONSOLE, headers={"HX-Request": "true"})
    yield await browser.get(f"{CONSOLE}/no-such-page")
    yield await browser.get(f"{CONSOLE}/sessions/none")
    yield await stranger.get(CONSOLE)
    yield await stranger.get(CONSOLE, headers={"HX-Request": "true"})
    yield await stranger.get(f"{CONSOLE}/sign-in")
    yield await stranger.get(open_address(LOCAL, "none"))
    yield await stranger.get(open_address(LOCAL, world.access.new_token()))
    yield await browser.get(CONSOLE, headers={"host": "evil.example"})
    yield await browser.post(f"{CONSOLE}/sign-out", headers={"origin": "http://evil.example"})


async def test_every_answer_forbids_scripts_of_others_frames_and_copies():
    async with console(local=True) as world:
        await talked(world, "default", "support-42")
        async for answer in answers(world):
            policy = directives(answer)
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert policy["form-action"] == "'self'"
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_code():
    async with console(local=True) as world:
        await talked(world, "default", "support-42")
        async for answer in answers(world):
            found = re.findall(r'(?:src|href|action|hx-[a-z]+)="([^"]*)"', answer.text)
            assert [each for each in found if each.startswith(("http", "//", "data:"))] == []
            assert re.findall(r"<script[^>]*>[^<]", answer.text) == []
            assert re.findall(r"<style|\sstyle=|\son[a-z]+=", answer.text) == []


async def test_an_address_with_a_slash_at_its_end_leads_to_the_sessions():
    async with console(local=True) as world:
        answer = await (await world.opened()).get(f"{CONSOLE}/")
        assert (answer.status_code, answer.headers["location"]) == (307, CONSOLE)


async def test_what_is_nowhere_is_a_page_too():
    async with console(local=True) as world:
        browser = await world.opened()
        for path in ("no-such-page", "sessions/none", "assets/none.js", "assets/..%2fpages.py"):
            answer = await browser.get(f"{CONSOLE}/{path}")
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert "All sessions" in answer.text
            assert "/api/" not in answer.text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
async def test_an_asset_is_served_whole_and_may_be_kept(path):
    async with console(local=True) as world:
        browser, found = world.browser(LOCAL), asset(path.name)
        assert found
        packed = await browser.get(f"{CONSOLE}/assets/{path.name}?v={found.version}")
        assert packed.content == path.read_bytes()
        assert packed.headers["content-encoding"] == "gzip"
        assert "immutable" in packed.headers["cache-control"]
        assert packed.headers["x-content-type-options"] == "nosniff"
        other = {"accept-encoding": "identity"}
        plain = await browser.get(f"{CONSOLE}/assets/{path.name}?v=older", headers=other)
        assert plain.content == path.read_bytes()
        assert "content-encoding" not in plain.headers
        assert plain.headers["cache-control"] == "no-store"


def test_scripts_and_styles_are_small():
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in SCRIPTS}
    assert sum(sizes.values()) <= MAX_COMPRESSED, sizes


def test_what_others_wrote_is_unchanged_and_licensed(tmp_path):
    pinned = vendor.packages()
    assert [*vendor.problems(pinned)] == []
    named = {file.path for package in pinned for file in package.files}
    ours = {"charts.js", "console.css", "console.js", "icon.svg"}
    assert {path.name for path in ASSETS.iterdir() if path not in named} == ours
    for package in pinned:
        assert any(file.path.name.endswith("LICENSE.txt") for file in package.files)
    changed = tmp_path / "htmx.min.js"
    file = pinned[0].files[0]
    changed.write_bytes(file.path.read_bytes() + b" ")
    other = pinned[0]._replace(files=(file._replace(path=changed),))
    assert [*vendor.problems([other])] == [
        f"{changed} is not the file of htmx.org {other.version} that is pinned."
    ]


def test_scripts_run_in_order_before_htmx_begins():
    """Deferred, htmx may begin before its extension is there: then nothing is followed."""
    page = (TEMPLATES / "base.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script [^>]*asset\('([^']+)'\)[^>]*>", page)
    assert scripts == ["htmx.min.js", "hx-sse.min.js", "console.js"]
    assert not re.search(r"<script[^>]*(defer|async|module)", page)
    assert page.index("<script") > page.index("</main>")


def test_templates_use_htmx_4_without_eval():
    check = ROOT / "tests" / "console" / "htmx-upgrade-check.txt"
    done = subprocess.run(
        [sys.executable, check, TEMPLATES, ASSETS / "console.js", "--no-color"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for path in TEMPLATES.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"hx-on|js:|javascript:|\|\s*safe|autoescape|hx-trigger=\"[^\"]*\[", text
        )
