"""`refold receipt`: sums of one session and of a tenant."""

import asyncio
import json

import pytest
from refold_commands import quick, terminal  # noqa: F401 - fixtures
from talks import Talk, Writer, setup, work

from refold.models.catalog import Usage
from refold.stores import open_store


def usage(request, before):
    """As if all that was sent before were cached."""
    sent = request.plan.account.sent
    return Usage(sent, 10, min(before, sent), max(0, sent - before))


async def talked(store, name, turns, *, folds=True):
    talk = await Talk.open(store.log(), setup(window=50_000), name=name, write=Writer())
    before = 0
    for number in range(turns):
        if folds and number == turns // 2:
            await talk.session.compact()
            before = 100
        for message in work(number):
            if type(message).__name__ == "Responded":
                request = await talk.request()
                await talk.answer(message, usage=usage(request, before))
                before = request.plan.account.sent
            else:
                await talk.say(message)


@pytest.fixture
def stored(terminal):  # noqa: F811
    async def fill():
        async with open_store(f"sqlite:///{terminal.folder}/refold.db") as store:
            await talked(store, "one", 20)
            await talked(store, "two", 4, folds=False)

    asyncio.run(fill())
    return terminal


def test_a_session(stored):
    text = stored.does("receipt", "one")
    assert text.startswith("Session 'one': ")
    assert "less than sending everything" in text
    assert "an account of the same conversation" in " ".join(text.split())
    sums = json.loads(stored.does("receipt", "one", "--json"))
    assert sums["debt"] == pytest.approx(sums["paid"] - sums["whole"])
    assert sums["debt"] < 0 < sums["highest"]
    assert f"${sums['paid']:,.4f}" in text
    assert "sessions" not in sums


def test_a_tenant_and_a_time(stored):
    both = json.loads(stored.does("receipt", "--json"))
    assert {*both["sessions"]} == {"one", "two"}
    assert both["paid"] == pytest.approx(sum(one["paid"] for one in both["sessions"].values()))
    same = json.loads(stored.does("receipt", "--json", "--since", "1h"))
    assert same["requests"] == both["requests"]
    assert stored.does("receipt", "--since", "2999-01-01").startswith("0 sessions: 0 requests")


def test_what_is_no_time(stored):
    _, fix = stored.fails("receipt", "--since", "soon")
    assert "--since 2026-11-30" in fix
