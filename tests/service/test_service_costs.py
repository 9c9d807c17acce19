"""Costs: by day, model and key from the daily totals, to whom the roles allow it."""

from uuid import uuid4

import pytest
from api_serving import API, FORMAT, at, serving, talked

from refold.log import Author, FoldCompleted, FoldStarted, FoldStepped, Opened, Requested, Span
from refold.models.receipt import Receipt
from refold.session import Usage
from refold.stores.memory import MemoryLog
from refold.testing.conformance.totals import usage


@pytest.fixture
async def service():
    async with serving() as one:
        yield one


async def paid(service, tenant, session, *uses):
    """A session in which a request was answered with each of these usages."""
    log, author = service.store.log(tenant), Author()
    await log.append(session, [author.draft(Opened(FORMAT, "balanced"))], expected=0)
    for use in uses:
        record = author.draft(Requested((Span(1, 1),), [], "m", "digest"))
        at = (await log.append(session, [record], expected=None)).first
        await log.append(session, [author.draft(usage(at, **use))], expected=None)


def by(rows, name):
    return {row[name]: row["input"] for row in rows}


async def test_costs_by_day_model_and_key(service):
    await paid(service, "acme", "s", {"tokens": 1_000, "key": "k"}, {"tokens": 50, "model": "n"})
    await paid(service, "acme", "t", {"tokens": 2_000, "key": "k"})
    await paid(service, "other", "s", {"tokens": 70_000})
    async with service.client(await service.key("acme")) as client:
        costs = (await client.get(f"{API}/costs", params={"days": 3})).json()
    assert (costs["sessions"], costs["complete"]) == (2, True)
    assert costs["total"]["input"] == 3_050
    assert [day["input"] for day in costs["days"]] == [0, 0, 3_050]
    assert by(costs["models"], "model") == {"m": 3_000, "n": 50}
    assert by(costs["keys"], "key") == {"k": 3_000, "": 50}
    whole = Receipt.of(sum(each) for each in zip(*(
        Receipt(**{name: row[name] for name in ("paid", "whole", "requests")}).sums
        for row in costs["models"]
    ), strict=True))  # fmt: skip
    assert costs["total"]["debt"] == pytest.approx(whole.debt)


async def test_no_session_is_read_for_them(service, monkeypatch):
    await paid(service, "acme", "s", {"tokens": 1_000})

    read = MemoryLog.read

    async def never(log, *span, **how):
        assert log.tenant != "acme", "a session was read"
        return await read(log, *span, **how)

    monkeypatch.setattr(MemoryLog, "read", never)
    async with service.client(await service.key("acme")) as client:
        for path in ("costs", "usage", "receipt"):
            answer = await client.get(f"{API}/{path}")
            assert answer.status_code == 200, path


async def test_only_administrators_see_keys_and_the_quota(service):
    await paid(service, "acme", "s", {"tokens": 1_000, "key": "k"})
    async with service.client(await service.key("acme", "read")) as client:
        costs = (await client.get(f"{API}/costs")).json()
        assert (costs["keys"], costs["quota"]) == (None, None)
        assert costs["total"]["input"] == 1_000
        assert (await client.get(f"{API}/costs/tenants")).status_code == 403
    async with service.client(await service.key("acme", "admin")) as client:
        costs = (await client.get(f"{API}/costs")).json()
        assert costs["quota"]["tenant"] == "acme"
        assert (await client.get(f"{API}/costs/tenants")).status_code == 403


async def test_the_operator_sees_what_each_tenant_paid(service):
    await paid(service, "acme", "s", {"tokens": 1_000})
    await paid(service, "beta", "s", {"tokens": 3_000})
    for tenant in ("acme", "beta"):
        await service.key(tenant, "use")
    async with service.client(await service.key("default", "admin")) as client:
        costs = (await client.get(f"{API}/costs/tenants")).json()
    assert by(costs["tenants"], "tenant") == {"beta": 3_000, "acme": 1_000, "default": 0}
    assert costs["tenants"][0]["tenant"] == "beta"
    assert costs["total"]["input"] == 4_000


async def test_what_became_dearer_and_why(service):
    log, author, fold = service.store.log("acme"), Author(), uuid4()
    await paid(service, "acme", "cheap", {"tokens": 1_000})
    await paid(
        service, "acme", "dear", {"tokens": 1_000, "whole": 100, "read_back": 20, "added": 30}
    )
    spent = {"usage": {"input": 70, "output": 5}, "cost": 0.5}
    steps = (
        FoldStarted(fold, (Span(1, 1),), "manual"),
        FoldStepped(fold, "summary", {}, spent),
        FoldCompleted(fold, (Span(1, 1),), {"text": "short"}),
    )
    await log.append("dear", [author.draft(each) for each in steps], expected=None)
    async with service.client(await service.key("acme", "read")) as client:
        [session] = (await client.get(f"{API}/costs")).json()["dearer"]
        assert (session["session"], session["summaries_cost"]) == ("dear", 0.5)
        found = (await client.get(at("dear", "/costs"))).json()
        assert (await client.get(at("never", "/costs"))).status_code == 404
    assert [each["what"] for each in found["dearer"]] == ["summary", "request"]
    summary, request = found["dearer"]
    assert summary["causes"] == {"summary": 0.5}
    assert {"recall", "tools"} <= request["causes"].keys()
    for each in found["dearer"]:
        assert sum(each["causes"].values()) == pytest.approx(each["debt"], abs=1e-5)
    assert found["total"]["debt"] == pytest.approx(session["debt"])


async def test_the_key_of_a_request_is_in_its_usage(service):
    await talked(service, "acme", "s", turns=1)
    async with service.state.sessions.lease("acme", "s") as kept:
        await kept.session.say(b'{"role":"user","content":"More?"}')
        await kept.session.request()
        await kept.session.answer(
            b'{"role":"assistant","content":"No."}', usage=Usage(7, 1), key="k7"
        )
    async with service.client(await service.key("acme")) as client:
        keys = (await client.get(f"{API}/costs")).json()["keys"]
    assert by(keys, "key") == {"k7": 7, "": 100}
