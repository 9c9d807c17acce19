"""Daily totals: what appends keep is what a count of the logs gives, whatever was done to them."""

import asyncio
from collections.abc import Iterable
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from refold.log import (
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    Log,
    Requested,
    Rewound,
    Span,
    Store,
    Total,
    Used,
    Value,
)
from refold.models.accounts import receipts
from refold.models.receipt import Receipt
from refold.stores.totals import booking_from_log
from refold.testing.conformance.base import Conformance

DAYS = (-(2**40), 2**40)
Name = tuple[int, str, str]
PRICES: JsonValue = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
_STEPS = 12


def usage(
    request: int,
    tokens: int = 1_000,
    *,
    model: str = "m",
    key: str | None = None,
    **basis: JsonValue,
) -> Used:
    """What a request used that sent so many tokens, of a history twice as long."""
    counts: JsonValue = {"input": tokens, "output": 10, "cache_read": tokens // 2, "cache_write": 0}
    facts: dict[str, JsonValue] = {
        "model": model,
        "whole": 2 * tokens,
        "before": tokens,
        "counted": tokens,
        "limit": 100_000,
        "prices": PRICES,
        **basis,
    }
    return Used(request, counts, tokens * 3e-6, None, facts, key)


async def counted(log: Log) -> dict[Name, Receipt]:
    """The totals as the logs give them, read from their beginnings."""
    found: dict[Name, Receipt] = {}
    for info in (await log.sessions(limit=1_000)).sessions:
        for line in (await booking_from_log(log, info.session, info.entries)).lines:
            name = line.day, line.model, line.key
            found[name] = found.get(name, Receipt()).plus(line.receipt)
    return found


def close(receipt: Receipt) -> object:
    return pytest.approx(receipt.sums, abs=1e-9)


async def check_totals(log: Log) -> None:
    """Count what must be counted again; then the totals are those of the logs."""
    assert await log.recount(1_000) == 0
    totals, found = await log.totals(*DAYS), await counted(log)
    rows = {(row.day, row.model, row.key): row.sums for row in totals.rows}
    assert [*rows] == sorted(rows)
    # A line whose sums came to nothing may be there or not.
    for name in rows.keys() | found.keys():
        assert rows.get(name, Receipt().sums) == close(found.get(name, Receipt()))
    whole = Receipt()
    async for _, receipt in receipts(log):
        whole = whole.plus(receipt)
    assert total(totals.rows).sums == close(whole)


def total(rows: Iterable[Total]) -> Receipt:
    whole = Receipt()
    for row in rows:
        whole = whole.plus(Receipt.of(row.sums))
    return whole


class TotalsConformance(Conformance):
    async def spend(self, log: Log, name: str, *tokens: int, **how: JsonValue) -> None:
        """A request and its answer for each of these amounts."""
        model, key = str(how.pop("model", "m")), how.pop("key", None)
        for each in tokens:
            record = Requested((Span(1, 1),), [], model, "digest")
            at = (await self.add(log, name, record)).first
            own_key = None if key is None else str(key)
            await self.add(log, name, usage(at, each, model=model, key=own_key, **how))

    async def test_an_append_keeps_the_totals(self, log: Log) -> None:
        await self.begin(log, "s")
        assert await log.totals(*DAYS) == ((), 0, 0)
        await self.spend(log, "s", 1_000, 3_000, key="k")
        await self.spend(log, "s", 500, model="other")
        found = await log.totals(*DAYS)
        assert (found.sessions, found.uncounted) == (1, 0)
        assert [(row.model, row.key) for row in found.rows] == [("m", "k"), ("other", "")]
        assert total(found.rows).requests == 3
        assert total(found.rows).input == 4_500
        assert total(found.rows).paid == pytest.approx(4_500 * 3e-6)
        await check_totals(log)

    async def test_totals_are_of_the_days_asked_for(self, log: Log) -> None:
        await self.begin(log, "s")
        await self.spend(log, "s", 1_000)
        [row] = (await log.totals(*DAYS)).rows
        assert (await log.totals(row.day, row.day)).rows == (row,)
        assert await log.totals(row.day + 1, row.day + 9) == ((), 0, 0)
        assert await log.totals(row.day - 9, row.day - 1) == ((), 0, 0)

    async def test_totals_of_tenants_are_apart(self, store: Store) -> None:
        mine, other = store.log(f"tenant {uuid4()}"), store.log(f"tenant {uuid4()}")
        for log, tokens in ((mine, 1_000), (other, 7_000)):
            await self.begin(log, "s")
            await self.spend(log, "s", tokens)
            await log.fork("s", "t")
        assert total((await mine.totals(*DAYS)).rows).input == 1_000
        assert total((await other.totals(*DAYS)).rows).input == 7_000
        assert await mine.recount(9) == 0
        assert (await other.totals(*DAYS)).uncounted == 1
        await mine.forget("s")
        assert total((await other.totals(*DAYS)).rows).input == 7_000

    async def test_a_summary_counts_with_the_model_it_was_made_for(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        await self.spend(log, "s", 1_000, key="k")
        fold = uuid4()
        spent: JsonValue = {"usage": {"input": 100, "output": 5}, "cost": 0.5}
        await self.add(log, "s", FoldStarted(fold, (Span(2, 3),), "manual"))
        await self.add(log, "s", FoldStepped(fold, "summary", {}, spent))
        await self.add(log, "s", FoldFailed(fold, "no"))
        [row] = (await log.totals(*DAYS)).rows
        receipt = Receipt.of(row.sums)
        assert (row.model, row.key) == ("m", "k")
        assert (receipt.summaries, receipt.unused, receipt.unused_cost) == (1, 1, 0.5)
        await check_totals(log)

    async def test_what_was_forgotten_is_not_counted(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        await self.begin(log, "kept")
        await self.spend(log, "s", 1_000)
        await self.spend(log, "kept", 400)
        await log.forget("s")
        found = await log.totals(*DAYS)
        assert (found.sessions, total(found.rows).input) == (1, 400)
        await check_totals(log)
        await log.expire(self.now())
        assert await log.totals(*DAYS) == ((), 0, 0)

    async def test_forgetting_a_span_counts_the_session_again(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        await self.spend(log, "s", 1_000)
        fold = uuid4()
        await self.add(log, "s", FoldStarted(fold, (Span(2, 3),), "manual"))
        await self.add(log, "s", FoldCompleted(fold, (Span(2, 3),), {"text": "short"}))
        assert total((await log.totals(*DAYS)).rows).folds == 1
        await log.forget("s", Span(3, 3))
        assert (await log.totals(*DAYS)).uncounted == 1
        await self.spend(log, "s", 2_000)
        await check_totals(log)
        await self.spend(log, "s", 300)
        assert total((await log.totals(*DAYS)).rows).input == 3_300
        await check_totals(log)

    async def test_what_a_fork_shares_counts_once(self, log: Log) -> None:
        await self.begin(log, "s", 2)
        await self.spend(log, "s", 1_000, 1_000)
        await log.fork("s", "t")
        await self.spend(log, "t", 50)
        await self.spend(log, "s", 7)
        await check_totals(log)
        assert total((await log.totals(*DAYS)).rows).input == 2_057
        await self.spend(log, "t", 1)
        await check_totals(log)

    async def test_what_forks_share_is_gone_with_the_session_that_paid(self, log: Log) -> None:
        await self.begin(log, "s")
        await self.spend(log, "s", 1_000)
        for source, name, tokens in (("s", "t", 20), ("s", "u", 3), ("t", "v", 400)):
            await log.fork(source, name)
            await self.spend(log, name, tokens)
        await log.forget("t")
        await check_totals(log)
        assert total((await log.totals(*DAYS)).rows).input == 1_403
        await log.forget("s")
        await check_totals(log)
        assert total((await log.totals(*DAYS)).rows).input == 403

    async def test_all_can_be_counted_again(self, log: Log) -> None:
        for name in ("a", "b", "c"):
            await self.begin(log, name)
            await self.spend(log, name, 100, 200)
        before = await log.totals(*DAYS)
        assert await log.recount(2, anew=True) == 1
        assert await log.recount(2) == 0
        after = await log.totals(*DAYS)
        assert after.sessions == before.sessions
        assert total(after.rows).sums == close(total(before.rows))

    async def test_the_dearest_sessions_come_first(self, log: Log) -> None:
        for name, waste in (("cheap", 0), ("dear", 40_000), ("dearest", 90_000)):
            await self.begin(log, name)
            await self.spend(log, name, 100_000, whole=100_000 - waste, before=0)
        day = (await log.totals(*DAYS)).rows[0].day
        found = await log.dearest(day, day)
        assert [row.session for row in found] == ["dearest", "dear"]
        assert Receipt.of(found[0].sums).debt > Receipt.of(found[1].sums).debt > 0
        assert [row.session for row in await log.dearest(day, day, limit=1)] == ["dearest"]
        assert await log.dearest(day + 1, day + 1) == []

    async def test_the_sessions_of_a_day_are_those_that_were_billed(self, log: Log) -> None:
        for name, tokens in (("small", 1_000), ("large", 50_000), ("unused", 0)):
            await self.begin(log, name)
            await self.spend(log, name, *([tokens] if tokens else []), whole=9 * tokens)
        day = (await log.totals(*DAYS)).rows[0].day
        found = await log.dearest(day, day, every=True)
        assert [row.session for row in found] == ["large", "small"]
        assert Receipt.of(found[0].sums).billed == pytest.approx(50_000 * 3e-6)
        assert len(await log.dearest(day, day, limit=1, every=True)) == 1
        assert await log.dearest(day + 1, day + 1, every=True) == []

    async def test_concurrent_appends_lose_nothing(self, log: Log) -> None:
        await self.begin(log, "s")
        await self.begin(log, "t")

        async def write(name: str, tokens: int) -> None:
            draft = self.author.draft(usage(0, tokens, key=str(tokens % 2)))
            await log.append(name, [draft], expected=None)

        await asyncio.gather(*(write("st"[at % 2], at) for at in range(1, 25)))
        assert total((await log.totals(*DAYS)).rows).input == sum(range(1, 25))
        assert total((await log.totals(*DAYS)).rows).requests == 24
        await check_totals(log)

    async def test_strange_usage_does_no_harm(self, log: Log) -> None:
        await self.begin(log, "s")
        huge: JsonValue = {"input": 10**400, "output": -5}
        await self.add(log, "s", Used(0, huge, 1e308, None, usage(0, 1).basis, "\0k"))
        await self.add(log, "s", Used(10**30, "none", None, None, [], "x" * 999))
        await self.spend(log, "s", 5, model="日本語\0")
        await self.begin(log, "t")
        strange: dict[str, JsonValue] = {
            "read_back": 10**4299,
            "whole": 10**400,
            "prices": {"input": 1e308},
        }
        for name, value in strange.items():
            await self.add(log, "t", usage(0, 1, model="m", key=None, **{name: value}))
            await self.add(log, "t", Used(0, {"input": 1}, 1e308, None, usage(0, 1).basis))
        for _ in range(2):
            found = total((await log.totals(*DAYS)).rows)
            assert (found.requests, found.unpriced, found.older) == (8, 4, 3)
            assert found.billed == pytest.approx(8 * 3e-6)
            await check_totals(log)
            await log.recount(9, anew=True)

    @given(data=st.data())
    @settings(
        max_examples=6,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.differing_executors,
        ],
    )
    async def test_totals_are_a_recount(self, store: Store, data: st.DataObject) -> None:
        """Whatever is written, forked, rewound and forgotten, in whatever order."""
        log, names = store.log(f"tenant {uuid4()}"), ["s0"]
        await self.begin(log, "s0", 3)
        for number in range(1, data.draw(st.integers(1, _STEPS)) + 1):
            name = data.draw(st.sampled_from(names))
            what = data.draw(st.sampled_from(("spend", "spend", "spend", *_RARE)))
            if what in ("begin", "fork"):
                names.append(f"s{number}")
                if what == "begin":
                    await self.begin(log, names[-1], 2)
                else:
                    at = data.draw(st.integers(1, await log.head(name)))
                    await log.fork(name, names[-1], at=at)
            elif what == "forget" and len(names) > 1:
                await log.forget(name)
                names.remove(name)
            else:
                await self._change(log, name, what, data)
        await check_totals(log)

    async def _change(self, log: Log, name: str, what: str, data: st.DataObject) -> None:
        head = await log.head(name)
        match what:
            case "spend":
                await self.spend(log, name, *data.draw(_AMOUNTS), **data.draw(_HOW))
            case "fold":
                if spans := (await log.outlined(name)).outline.on_line(head):
                    await self.add(log, name, *self._fold(data.draw(st.booleans()), spans))
            case "rewind":
                await self.add(log, name, Rewound(data.draw(st.integers(1, head))))
            case "clear":
                await self.add(log, name, Cleared())
            case "forget span":
                first = data.draw(st.integers(1, head))
                await log.forget(name, Span(first, data.draw(st.integers(first, head))))
            case "recount":
                await log.recount(data.draw(st.integers(0, 2)), anew=data.draw(st.booleans()))
            case _:
                pass

    def _fold(self, ends: bool, spans: tuple[Span, ...]) -> list[Value]:  # noqa: FBT001 - drawn
        fold = uuid4()
        spent: JsonValue = {"usage": {"input": 70, "output": 5}, "cost": 0.01}
        step = FoldStepped(fold, "summary", {}, spent)
        end = FoldCompleted(fold, spans, {"text": "short"}) if ends else FoldFailed(fold, "no")
        return [FoldStarted(fold, spans, "manual"), step, end]


_RARE = ("begin", "fork", "fold", "rewind", "clear", "forget span", "forget", "recount")
_AMOUNTS = st.lists(st.integers(1, 200_000), min_size=1, max_size=3)
_HOW: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {"model": st.sampled_from(("m", "n")), "key": st.sampled_from((None, "k", "l"))},
    optional={
        "extra": st.booleans(),
        "moved": st.booleans(),
        "read_back": st.integers(0, 5_000),
        "added": st.integers(0, 500),
    },
)
