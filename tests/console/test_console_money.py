"""The screen about money: its figures, who sees which, and what it says when there are none."""

import re

import pytest
from api_serving import talked
from console_world import CONSOLE, console

from refold.console.money import causes_of, chart
from refold.log import Author, Opened, Requested, Span
from refold.models.receipt import Receipt
from refold.service.keys import Quota
from refold.testing.conformance.totals import usage

MONEY = f"{CONSOLE}/money"


async def paid(world, tenant, session, *uses):
    log, author = world.store.log(tenant), Author()
    await log.append(session, [author.draft(Opened("openai-chat", "balanced"))], expected=0)
    await spend(log, session, *uses)


async def spend(log, session, *uses):
    """A request for each of these uses."""
    author = Author()
    for use in uses:
        record = author.draft(Requested((Span(1, 1),), [], "m", "digest"))
        at = (await log.append(session, [record], expected=None)).first
        await log.append(session, [author.draft(usage(at, **use))], expected=None)


async def test_the_page_has_the_figures_and_leads_to_what_became_dearer():
    async with console() as world:
        await paid(world, "acme", "saves", {"tokens": 90_000, "model": "house-model"})
        await paid(world, "acme", "wastes/it", {"tokens": 90_000, "whole": 10})
        browser = await world.signed_in("acme")
        page = (await browser.get(MONEY)).text
        assert "house-model" in page
        assert 'href="/console/sessions/wastes%2Fit/costs"' in page
        assert "sessions/saves/costs" not in page
        costs = (await browser.get(f"{CONSOLE}/sessions/wastes%2Fit/costs")).text
        assert 'href="/console/sessions/wastes%2Fit/requests/2"' in costs
        assert "lost" in costs.lower()


async def test_nobody_sees_the_keys_but_administrators():
    async with console() as world:
        await paid(world, "acme", "s", {"tokens": 9_000, "key": "k1234567"})
        await world.state.keyring.set_quota("acme", Quota(1_000_000, 5.0))
        page = (await (await world.signed_in("acme", "read")).get(MONEY)).text
        assert "k1234567" not in page
        assert "Quota" not in page
        page = (await (await world.signed_in("acme", "admin")).get(MONEY)).text
        assert "k1234567" in page
        assert "$5.00" in page


async def test_only_the_operator_sees_tenants():
    async with console() as world:
        await paid(world, "acme", "s", {"tokens": 9_000})
        await paid(world, "default", "s", {"tokens": 1_000})
        for tenant in ("acme", "beta"):
            await world.key(tenant, "read")
        operator = (await (await world.signed_in("default", "admin")).get(MONEY)).text
        assert "By tenant" in operator
        assert "acme" in operator
        for who in (("default", "read"), ("acme", "admin")):
            page = (await (await world.signed_in(*who)).get(MONEY)).text
            assert "By tenant" not in page
            assert "beta" not in page


async def test_another_tenants_money_is_not_seen():
    async with console() as world:
        await paid(world, "acme", "s", {"tokens": 9_000, "model": "secret-model"})
        page = (await (await world.signed_in("beta", "admin")).get(MONEY)).text
        assert "secret-model" not in page
        assert "Nothing was paid" in page


async def test_a_browser_of_this_machine_sees_the_money_of_its_store():
    async with console(local=True) as world:
        await talked(world, "default", "s")
        browser = await world.opened()
        page = await browser.get(f"{MONEY}?days=7")
        assert page.status_code == 200
        assert "By model" in page.text


@pytest.mark.parametrize("days", ["0", "31", "x"])
async def test_other_periods_are_refused(days):
    async with console() as world:
        browser = await world.signed_in("acme")
        assert (await browser.get(f"{MONEY}?days={days}")).status_code == 422


async def test_a_session_without_an_answer_says_so():
    async with console() as world:
        await paid(world, "acme", "s")
        browser = await world.signed_in("acme")
        page = (await browser.get(f"{CONSOLE}/sessions/s/costs")).text
        assert "No request of this session was answered yet" in page


def test_the_picture_has_a_bar_for_each_day_within_its_frame():
    days = {f"2026-11-{nth:02}": Receipt(paid=nth, whole=2.0 * nth) for nth in range(1, 31)}
    days["2026-12-01"] = Receipt(paid=5, whole=1)
    picture = chart(days)
    assert [bar.day for bar in picture.bars] == [*days]
    tops = [top for bar in picture.bars for top in (bar.paid, bar.whole)]
    assert all(0 < top <= picture.bottom for top in tops)
    assert picture.bars[-1].paid < picture.bars[-1].whole  # more was paid: it is higher
    assert sum(bool(bar.label) for bar in picture.bars) <= 11
    assert chart({"2026-11-01": Receipt()}).bars[0].paid == chart({}).bottom


async def test_a_day_lists_its_sessions_and_offers_to_replay_them():
    async with console() as world:
        await paid(world, "acme", "small", {"tokens": 1_000})
        await paid(world, "acme", "large/one", {"tokens": 90_000})
        await paid(world, "acme", "unused")
        await paid(world, "beta", "other", {"tokens": 9_000})
        browser = await world.signed_in("acme")
        month = (await browser.get(MONEY)).text
        [day] = {*re.findall(r"/console/money/(\d{4}-\d\d-\d\d)\" tabindex", month)}
        found = (await browser.get(f"{MONEY}/{day}")).text
        rows = re.findall(r'class="row" href="/console/sessions/([^"]+)/costs"', found)
        assert rows == ["large%2Fone", "small"]
        assert "/console/what-if?session=large%2Fone&amp;session=small" in found
        assert "other" not in re.findall(r"<bdi>([^<]*)</bdi>", found)


async def test_a_day_without_requests_says_so():
    async with console() as world:
        browser = await world.signed_in("acme")
        assert "Nothing was paid on this day" in (await browser.get(f"{MONEY}/2026-01-31")).text
        for day in ("2026-02-30", "yesterday", "0001-01-01"):
            assert (await browser.get(f"{MONEY}/{day}")).status_code == 422


def test_the_causes_of_a_loss_add_up_to_it():
    receipt = Receipt(paid=1.0, whole=0.9, summaries_cost=0.3, misses_cost=0.2)
    causes = causes_of(receipt)
    assert sum(amount for _, amount in causes) == pytest.approx(receipt.debt)
    assert [amount for _, amount in causes] == pytest.approx([0.3, 0.2, -0.4])
