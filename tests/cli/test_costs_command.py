"""`refold costs` and `refold store recount`: daily totals, and counting them from the log."""

import asyncio
import json

import pytest
from refold_commands import quick, terminal  # noqa: F401 - fixtures
from talks import Talk, setup, work

from refold.models.catalog import Usage
from refold.stores import open_store


@pytest.fixture
def stored(terminal):  # noqa: F811
    async def fill():
        async with open_store(f"sqlite:///{terminal.folder}/refold.db") as store:
            talk = await Talk.open(store.log(), setup(window=50_000), name="one")
            for number in range(3):
                for message in work(number):
                    if type(message).__name__ == "Responded":
                        request = await talk.request()
                        await talk.answer(message, usage=Usage(request.plan.account.sent, 10))
                    else:
                        await talk.say(message)
            await store.log().fork("one", "two")

    asyncio.run(fill())
    return terminal


def test_what_was_paid_each_day(stored):
    receipt = json.loads(stored.does("receipt", "--json"))
    costs = json.loads(stored.does("costs", "--json", "--days", "3"))
    assert (costs["sessions"], costs["complete"], len(costs["rows"])) == (1, True, 3)
    for name in ("paid", "whole", "requests", "input"):
        assert costs[name] == pytest.approx(receipt[name])
        assert sum(row[name] for row in costs["rows"].values()) == pytest.approx(receipt[name])
    text = stored.does("costs", "--by", "model")
    assert text.startswith("The last 7 days: ")
    assert f"${costs['billed']:,.4f}" in text
    days = [line.split() for line in stored.does("costs").splitlines() if line.startswith("  20")]
    assert [int(day[1]) for day in days] == [receipt["requests"]]  # a day without any has no line


def test_sessions_are_counted_again(stored):
    before = json.loads(stored.does("costs", "--json"))
    assert stored.does("store", "recount").strip() == "All sessions are counted."
    counted = json.loads(stored.does("store", "recount", "--anew", "--json"))
    assert counted == {"counted": 2, "left": 0}
    after = json.loads(stored.does("costs", "--json"))
    assert after["paid"] == pytest.approx(before["paid"])
    assert stored.does("store", "recount", "--anew") == "2 sessions counted; 0 left.\n"


def test_a_store_without_sessions(terminal):  # noqa: F811
    stored = terminal.fails("costs")
    assert "There is no store" in " ".join(stored)
