"""What requests cost, what they would have cost unmanaged, and what a fold would save."""

from datetime import UTC, datetime, timedelta

import pytest
from shown import changed
from talks import COUNTER, PRICES, SMALL, Talk, Writer, chat, setup, texts, work

from refold.errors import PromptTooLarge
from refold.log import Author, Message
from refold.models.catalog import Prices
from refold.session import Usage
from refold.testing.wire import Asked, Responded
from refold.view.budget import PER_MESSAGE
from refold.wire import wire_for

BESIDE = 3 + 30
"""Tokens of `Be kind.`, which comes with each prompt, and of the tools."""


async def everything(talk):
    """The tokens of all that was said, counted anew."""
    wire = wire_for("pydantic-ai")
    shapes = [wire.describe(one.payload).shapes for one in await talk.values(Message)]
    return sum(PER_MESSAGE + sum(map(COUNTER.part, one)) for one in shapes)


async def test_cost_by_hand_without_a_cache(log):
    talk = await Talk.open(log, setup(window=50_000, tools=30))
    await talk.say(Asked("x" * 396))  # 100 tokens
    request = await talk.request()
    assert request.plan.account.sent == 100 + PER_MESSAGE + BESIDE == 137
    await talk.answer(Responded("y" * 196), usage=Usage(274, 50))  # 50 tokens
    await talk.say(Asked("z" * 36))  # 10 tokens
    await talk.request()
    await talk.answer(Responded("Yes."), usage=Usage(410, 5))
    first, second = await talk.costs()
    assert first.usage == {"input": 274, "output": 50, "cache_read": 0, "cache_write": 0}
    assert first.cost == pytest.approx((274 * 3 + 50 * 15) / 1e6)
    assert first.unmanaged == {**first.usage, "cost": first.cost}
    assert second.cost == pytest.approx((410 * 3 + 5 * 15) / 1e6)
    assert second.unmanaged["input"] == 410
    assert [one.request for one in (first, second)] == [*talk.sent]


async def test_cost_by_hand_with_a_cache(log):
    talk = await Talk.open(log, setup(window=50_000, tools=30))
    await talk.say(Asked("x" * 396))
    await talk.request()
    await talk.answer(Responded("y" * 196), usage=Usage(137, 50, cache_write=137))
    await talk.say(Asked("z" * 36))
    sent = (await talk.request()).plan.account.sent
    assert sent == 137 + 54 + 14 == 205
    await talk.answer(Responded("Yes."), usage=Usage(205, 5, cache_read=137, cache_write=68))
    first, second = await talk.costs()
    assert first.cost == pytest.approx((137 * 3.75 + 50 * 15) / 1e6)
    assert first.unmanaged["cache_write"] == 137
    assert second.cost == pytest.approx((137 * 0.3 + 68 * 3.75 + 5 * 15) / 1e6)
    assert second.unmanaged == {
        "input": 205,
        "output": 5,
        "cache_read": 137,
        "cache_write": 68,
        "cost": second.cost,
    }


@pytest.mark.parametrize("reopened", [False, True])
async def test_unmanaged_counts_what_was_folded(log, reopened):
    given = setup(window=50_000, tools=30)
    talk = await Talk.open(log, given, write=Writer())
    await talk.go(*work(*range(6)), usage=Usage(1_000, 10, cache_read=500))
    await talk.session.compact()
    await talk.go(*work(6), usage=Usage(1_000, 10, cache_read=500))
    await talk.session.compact()
    if reopened:
        talk = await Talk.open(log, given, format=None)
    known = await everything(talk) - PER_MESSAGE - 4  # the last reply was never sent
    await talk.say(Asked("And now?"))
    whole = await everything(talk) + BESIDE
    request = await talk.request()
    sent = request.plan.account.sent
    assert whole > 2 * sent
    usage = Usage(2 * sent, 10, cache_read=sent)
    await talk.answer(Responded("Done."), usage=usage)
    last = (await talk.costs())[-1]
    assert last.unmanaged["input"] == 2 * whole
    assert last.unmanaged["cache_read"] == 2 * (known + BESIDE)
    assert last.unmanaged["cache_write"] == 2 * (whole - known - BESIDE)
    assert last.unmanaged["output"] == 10
    new = whole - known - BESIDE
    by_hand = 2 * (known + BESIDE) * 0.3 + 2 * new * 3.75 + 10 * 15
    assert last.unmanaged["cost"] == pytest.approx(by_hand / 1e6)


async def test_unmanaged_follows_the_line_of_the_session(log):
    talk = await Talk.open(log, setup(window=50_000, tools=30), write=Writer())
    await talk.go(*work(0))
    middle, there = talk.session.head, await everything(talk)
    await talk.go(*work(1, 2))
    await talk.session.compact()
    await talk.session.rewind(middle)
    await talk.say(Asked("x" * 36))
    sent = (await talk.request()).plan.account.sent
    assert sent == there + 14 + BESIDE
    await talk.answer(Responded("Yes."), usage=Usage(sent, 1))
    assert (await talk.costs())[-1].unmanaged["input"] == sent


async def test_an_unknown_price_is_no_price(log):
    talk = await Talk.open(log, setup(window=50_000, prices=Prices(input=3.0)))
    await talk.go(*chat(1), usage=Usage(10, 5))
    await talk.go(*chat(2), usage=Usage(10))
    first, second = await talk.costs()
    assert first.cost is None
    assert first.unmanaged["cost"] is None
    assert second.cost == pytest.approx(30 / 1e6)


async def test_what_nobody_told_is_estimated_and_marked(log):
    talk = await Talk.open(log, setup(window=50_000, tools=30))
    await talk.say(Asked("x" * 396))
    await talk.request()
    await talk.answer(Responded("y" * 196))  # 50 tokens
    (estimated,) = await talk.costs()
    assert estimated.usage["estimated"] is True
    assert estimated.usage["input"] == 137
    assert 50 <= estimated.usage["output"] <= 50 + PER_MESSAGE
    output = estimated.usage["output"]
    assert estimated.cost == pytest.approx((137 * 3 + output * 15) / 1e6)


# Complaint 11: no preview of what is about to be lost, and no way back.


@pytest.mark.parametrize("folded_before", [False, True])
async def test_a_preview_changes_nothing_and_says_what_compact_then_does(log, folded_before):
    talk = await Talk.open(log, setup(window=20_000, tools=30, instructions=20))
    await talk.go(*work(*range(8)))
    if folded_before:
        await talk.session.compact()
        await talk.go(*work(8, 9))
    before = await talk.request()
    head = await log.head("s")
    found = await talk.session.preview()
    assert await log.head("s") == head
    assert list((await talk.request()).messages) == list(before.messages)
    done = await talk.session.compact()
    after = await talk.request()
    assert (found.before, found.after) == (before.plan.tokens, after.plan.tokens)
    assert found.freed == done.tokens_removed
    assert found.text == done.summary.text
    assert found.text in texts(after)
    assert found.kept == len(after.messages) - 1
    folded = (await talk.log.visible("s", last=0)).outline.folds
    assert found.spans == folded[-1].spans
    if not folded_before:
        assert found.messages == done.messages_removed == 24
    beside = before.plan.account.sent - before.plan.tokens
    assert found.cost_before == pytest.approx((found.before + beside) * 0.3 / 1e6)
    assert found.cost_after == pytest.approx((found.after + beside) * 0.3 / 1e6)
    assert found.cost_once == pytest.approx((found.after + beside) * PRICES.cache_write / 1e6)
    await talk.session.take_back()
    assert list((await talk.request()).messages) == list(before.messages)


async def test_a_preview_names_what_folding_adds_to_the_next_request(log):
    talk = await Talk.open(log, setup(window=20_000))
    await talk.go(*work(*range(8)))
    await talk.request()
    found = await talk.session.preview()
    kept, size = 600, found.request_after  # of the first turn
    low = (PRICES.cache_write * (size - kept) - PRICES.cache_read * found.request_before) / 1e6
    assert low < found.price < found.cost_once
    assert found.saves == found.cost_before - found.cost_after
    assert (found.pays_after - 1) * found.saves < found.price <= found.pays_after * found.saves
    assert f"paid back after {found.pays_after} requests" in found.price_text


async def test_a_preview_after_the_cache_has_expired_costs_nothing(log):
    time = [datetime(2026, 11, 16, tzinfo=UTC)]
    talk = await Talk.open(log, setup(window=20_000), author=Author(lambda: time[0]))
    await talk.go(*work(*range(8)))
    await talk.request()
    assert (await talk.session.preview()).price > 0
    time[0] += timedelta(hours=1)
    found = await talk.session.preview()
    assert found.price < 0
    assert "cheaper at once" in found.price_text


async def test_a_preview_counts_a_prompt_that_does_not_fit_as_the_line_that_is_sent(log):
    talk = await Talk.open(log, setup(window=20_000))
    await talk.go(*work(*range(4)))
    await talk.say(Asked("word " * 40_000))
    with pytest.raises(PromptTooLarge):
        await talk.request()
    await talk.go(*work(*range(4, 8)))
    before = await talk.request()
    found = await talk.session.preview()
    done = await talk.session.compact()
    after = await talk.request()
    assert (found.before, found.after) == (before.plan.tokens, after.plan.tokens)
    assert found.freed == done.tokens_removed > 0


async def test_a_preview_names_what_will_be_found_in_the_log_only(log):
    small = changed(SMALL, fold={"ledger_tokens": 40})
    talk = await Talk.open(log, setup(small, window=20_000))
    await talk.go(*work(*range(30), size=10))
    found = await talk.session.preview()
    assert found.lost > 10
    assert found.names
    done = await talk.session.compact()
    assert not any(name in done.summary.text for name in found.names)
    for name in found.names[:5]:
        assert await log.search(name)
