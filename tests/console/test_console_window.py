"""The window over time: what each request was made of, the limit, folds, and the cache."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from api_serving import FORMAT, SETUP, raw, said, talked
from console_world import CONSOLE, console

from refold.console import window
from refold.console.window import chart, history
from refold.gateway.sessions import Opening
from refold.log import Span
from refold.models.catalog import Prices
from refold.session import Usage

SVG = "{http://www.w3.org/2000/svg}"


def at(session, rest=""):
    return f"{CONSOLE}/sessions/{session}/window{rest}"


def picture(text):
    return ET.fromstring(re.findall(r"<svg [^>]*role=.*?</svg>", text, re.DOTALL)[0])  # noqa: S314 - ours


async def test_each_request_is_a_bar_that_says_what_it_was_and_leads_to_it():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=4)
        page = await browser.get(at("talk"))
        assert page.status_code == 200
        root = picture(page.text)
        links = [each.get("href", "") for each in root.iter(f"{SVG}a")]
        requests = [each for each in links if "/requests/" in each]
        found = await history(world.store.log("default"), "talk")
        assert requests == [
            f"/console/sessions/talk/requests/{each.seq}" for each in found.requests
        ]
        assert len(requests) == 5
        assert [each for each in links if "/folds/" in each] == ["/console/sessions/talk/folds/19"]
        titles = [each.text or "" for each in root.iter(f"{SVG}title")]
        assert any("of 111,616" in each and "messages" in each for each in titles)


async def test_the_layers_are_what_the_records_say_and_a_summary_is_one():
    async with console(local=True) as world:
        await talked(world, "default", "talk", turns=4)
        found = await history(world.store.log("default"), "talk")
        assert all(sum(x.layers.values()) == x.account.sent for x in found.requests)
        assert [each.summaries > 0 for each in found.requests] == [False] * 4 + [True]
        assert found.compactions[0].before == 4
        later = await history(world.store.log("default"), "talk", last=found.requests[1].seq)
        assert [each.seq for each in later.requests] == [x.seq for x in found.requests[:2]]


async def test_the_cache_is_the_providers_own_count():
    async with console(local=True) as world:
        async with world.state.sessions.lease("default", "s", Opening(FORMAT, SETUP)) as kept:
            for usage in (Usage(100, 10, 0, 90), Usage(120, 10, 90, 20)):
                await kept.session.say(raw(said("user", "hm")))
                await kept.session.request()
                await kept.session.answer(raw(said("assistant", "yes")), usage=usage)
        found = await history(world.store.log("default"), "s")
        assert [each.cache for each in found.requests] == [
            {"read": 0, "written": 90, "fresh": 10},
            {"read": 90, "written": 20, "fresh": 10},
        ]
        assert found.requests[1].cached == 0.75


async def test_the_picture_is_a_file_of_its_own():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=2)
        answer = await browser.get(at("talk", ".svg"))
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        root = ET.fromstring(answer.text)  # noqa: S314 - ours
        assert "talk" in (next(root.iter(f"{SVG}title")).text or "")
        assert list(root.iter(f"{SVG}a")) == []
        assert "class=" not in answer.text
        assert "Instructions" in answer.text


async def test_what_was_paid_adds_up():
    async with console(local=True) as world:
        browser, prices = await world.opened(), Prices(input=1e6, output=0, cache_read=1e5)
        setup = replace(SETUP, prices=prices)
        async with world.state.sessions.lease("default", "s", Opening(FORMAT, setup)) as kept:
            for usage in (Usage(3), Usage(4, 0, 2)):
                await kept.session.say(raw(said("user", "hm")))
                await kept.session.request()
                await kept.session.answer(raw(said("assistant", "yes")), usage=usage)
        found = await history(world.store.log("default"), "s")
        assert [each.cost for each in found.requests] == pytest.approx([3, 2.2])
        costs = (await browser.get("/console/sessions/s/cost.json")).json()
        assert costs["seq"] == [each.seq for each in found.requests]
        assert costs["paid"] == pytest.approx([3, 5.2])
        assert len(costs["everything"]) == 2


async def test_a_long_history_has_pages_that_read_a_bounded_number_of_entries(monkeypatch):
    monkeypatch.setattr(window, "MAX_REQUESTS", 3)
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=6)
        seen, page = [], await browser.get(at("talk"))
        while True:
            shown = re.findall(r'requests/(\d+)" tabindex', page.text)
            assert len(shown) <= 3
            seen = shown + seen
            found = re.search(r'href="([^"]*window\?last=\d+)">Earlier', page.text)
            if not found:
                break
            page = await browser.get(found[1])
        assert len(seen) == len({*seen}) == 7
        monkeypatch.setattr(window, "MAX_ENTRIES", 4)
        short = await browser.get(at("talk"))
        assert len(re.findall(r'requests/(\d+)" tabindex', short.text)) == 1


async def test_a_session_without_requests_says_so():
    async with console(local=True) as world:
        browser = await world.opened()
        await talked(world, "default", "talk", turns=1)
        await world.store.log("default").fork("talk", "other", at=2)
        page = await browser.get(at("other"))
        assert "appears here" in page.text
        assert "<svg" not in page.text.partition('class="keys"')[0]


async def test_a_request_that_cannot_be_rebuilt_is_left_out():
    async with console(local=True) as world:
        browser = await world.opened()
        facts = await talked(world, "default", "talk", turns=2)
        before = await history(world.store.log("default"), "talk")
        await world.store.log("default").forget("talk", Span(2, 2))
        found = await history(world.store.log("default"), "talk")
        assert len(found.requests) < len(before.requests)
        assert (await browser.get(at("talk"))).status_code == 200
        assert facts


@pytest.mark.parametrize("count", [0, 1, 3, 240])
@pytest.mark.parametrize("limit", [0, 1_000, 1_000_000])
def test_any_number_of_requests_fits_the_picture(count, limit):
    requests = [sent(nth, limit) for nth in range(count)]
    made = chart(requests, [window.Compaction(9, MOMENT, count // 2)])
    assert len(made.bars) == count
    for bar in made.bars:
        assert window.LEFT <= bar.x <= bar.x + bar.width <= window.WIDTH - window.RIGHT + 0.1
    numbers = [float(x) for x in re.findall(r"V(-?[\d.]+)", "".join(x.path for x in made.layers))]
    assert all(window.TOP - 0.1 <= y <= window.TOP + window.HEIGHT + 0.1 for y in numbers)
    assert bool(made.limit) == bool(count and 0 < limit <= 3_000)


MOMENT = window.moment(0)


def sent(nth, limit):
    account = window.Account(system=100, conversation=300 + nth, tools=200, limit=limit)
    return window.Sent(nth + 1, MOMENT, "m", "/", account, 50, Usage(600, 1, 300, 100))
