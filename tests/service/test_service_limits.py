"""Limits: rates in a process, quotas over all of them, and how a refusal is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import asking, service_with
from starlette.responses import Response
from starlette.routing import Route

from refold.errors import InvalidSetting, LimitReached, QuotaUsedUp
from refold.models.catalog import Usage
from refold.service.callers import Bucket, Buckets, Caller, Limits, caller_of, gateway_caller
from refold.service.keys import TENANT, Quota
from refold.service.quotas import Quotas, Used
from refold.service.service import upstreams
from refold.settings.serve import LimitSettings, UpstreamSettings
from refold.stores import MemoryStore

ONE = Caller("acme", "k1", frozenset({"use"}))
TWO = Caller("acme", "k2", frozenset({"use"}))
OTHER = Caller("other", "k3", frozenset({"use"}))


class Clock:
    def __init__(self, seconds=1_700_000_000.0):
        self.seconds = seconds

    def __call__(self):
        return self.seconds


@given(
    st.integers(1, 600),
    st.lists(st.tuples(st.floats(0, 90), st.integers(0, 5)), max_size=40),
)
def test_no_more_is_let_through_than_a_minute_brings(per_minute, asked):
    clock = Clock(0.0)
    bucket, let = Bucket(per_minute, 0.0), 0
    for pause, times in asked:
        clock.seconds += pause
        for _ in range(times):
            if bucket.wait(1, clock()) == 0:
                bucket.take(1, clock())
                let += 1
    assert let <= per_minute + clock.seconds * per_minute / 60 + 1e-6


@given(st.integers(1, 600), st.integers(0, 5_000))
def test_who_waits_as_long_as_told_is_let_through(per_minute, overdrawn):
    bucket = Bucket(per_minute, 0.0)
    bucket.take(per_minute + overdrawn, 0.0)
    wait = bucket.wait(1, 0.0)
    assert wait > 0
    assert bucket.wait(1, wait / 2) > 0
    assert bucket.wait(1, wait) == pytest.approx(0, abs=1e-6)


def test_only_so_many_buckets_are_kept():
    buckets = Buckets(1, Clock(), max_buckets=100)
    for n in range(1_000):
        buckets.take(n)
    assert len(buckets._buckets) == 100
    assert buckets.wait(999) > 0


def test_keys_and_tenants_have_limits_of_their_own():
    clock = Clock()
    limits = Limits(LimitSettings(key_requests=2, tenant_requests=3), clock)
    limits.admit(ONE)
    limits.admit(ONE)
    with pytest.raises(LimitReached, match="with this key") as raised:
        limits.admit(ONE)
    assert raised.value.retry_after == pytest.approx(30)
    limits.admit(TWO)
    with pytest.raises(LimitReached, match="of this tenant"):
        limits.admit(TWO)
    limits.admit(OTHER)
    clock.seconds += 30
    limits.admit(TWO)


def test_tokens_are_taken_when_they_are_known():
    clock = Clock()
    limits = Limits(LimitSettings(key_tokens=1_000), clock)
    limits.admit_model(ONE).release()
    limits.used(ONE, 2_000)
    with pytest.raises(LimitReached, match="tokens with this key") as raised:
        limits.admit_model(ONE)
    assert raised.value.retry_after == pytest.approx(60, rel=0.01)
    limits.admit_model(TWO).release()
    clock.seconds += 61
    limits.admit_model(ONE).release()


def test_only_so_many_requests_of_a_key_are_under_way():
    limits = Limits(LimitSettings(streams=2))
    slots = [limits.admit_model(ONE), limits.admit_model(ONE)]
    with pytest.raises(LimitReached, match="under way"):
        limits.admit_model(ONE)
    limits.admit_model(TWO).release()
    slots[0].release()
    slots[0].release()
    assert limits.under_way == 1
    limits.admit_model(ONE)
    with pytest.raises(LimitReached):
        limits.admit_model(ONE)


async def quotas_on(store, clock, quota=None):
    """Another process's."""
    made = Quotas(store.log(TENANT), lambda _: quota or Quota(1_000, 5.0), now=clock)
    await made.exchange()
    return made


async def test_what_one_process_lets_through_counts_in_the_others():
    clock = Clock()
    async with MemoryStore() as store:
        here, there = await quotas_on(store, clock), await quotas_on(store, clock)
        here.add("acme", Used(600, 0.5))
        there.add("acme", Used(300, 0.5))
        there.add("other", Used(10, 5.0))
        for one in (here, there, here):
            await one.exchange()
        assert here.used("acme") == there.used("acme") == Used(900, 1.0)
        here.check("acme")
        here.add("acme", Used(100, 0.0))
        await here.exchange()
        await there.exchange()
        assert there.used("acme") == Used(1_000, 1.0)  # each says all it used, no more than once
        with pytest.raises(QuotaUsedUp, match="tokens") as raised:
            there.check("acme")
        with pytest.raises(QuotaUsedUp, match="dollars"):
            here.check("other")
        begun_again = await quotas_on(store, clock)
        assert begun_again.used("acme") == Used(1_000, 1.0)
        clock.seconds += raised.value.retry_after
        for one in (here, there):
            one.check("acme")
            await one.exchange()
            assert one.used("acme") == Used()


async def test_without_a_quota_nothing_is_written():
    clock = Clock()
    async with MemoryStore() as store:
        one = await quotas_on(store, clock, Quota(0, 0.0))
        one.add("acme", Used(10**9, 10.0))
        await one.exchange()
        one.check("acme")
        assert (await store.log(TENANT).sessions()).sessions == ()


async def test_what_could_not_be_told_is_told_later(monkeypatch):
    clock = Clock()
    async with MemoryStore() as store:
        here, there = await quotas_on(store, clock), await quotas_on(store, clock)
        here.add("acme", Used(5, 0.0))
        with monkeypatch.context() as patched:
            patched.setattr(here._today().journal, "add", _broken)
            with pytest.raises(LimitReached):
                await here.exchange()
        await here.exchange()
        await there.exchange()
        assert there.used("acme") == Used(5, 0.0)


async def _broken(*_, **__):
    raise LimitReached("It does not answer.", 1)


# Over HTTP.


async def who(request):
    return Response((await caller_of(request)).tenant)


async def modelled(request):
    caller = await gateway_caller(request)
    service = request.app.state.service
    service.charge(caller, Usage(60, 40), 0.25)
    return Response("done")


ROUTES = (Route("/who", who), Route("/modelled", modelled))


async def test_a_refusal_says_when_to_ask_again():
    async with asking(service_with(limits={"key_requests": 2}), ROUTES) as client:
        assert [(await client.get("/who")).status_code for _ in range(2)] == [200, 200]
        answer = await client.get("/who")
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 31
        assert answer.json()["code"] == "limit-reached"
        answer = await client.post("/v1/chat/completions", json={})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["error"]["type"] == "rate_limit_exceeded"
        answer = await client.post("/v1/messages", json={})
        assert answer.json()["error"]["type"] == "rate_limit_error"
        answer = await client.get("/api/v1/sessions")
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_tenant_that_used_up_its_quota_waits_for_the_next_day():
    service = service_with(limits={"day_tokens": 1_000, "day_cost": 0.5})
    async with asking(service, ROUTES) as client:
        answers = [(await client.get("/modelled")).status_code for _ in range(3)]
        assert answers == [200, 200, 429]  # half a dollar is used up
        assert service.quotas.used("default") == Used(200, 0.5)
        answer = await client.get("/modelled")
        assert answer.json()["code"] == "quota-used-up"
        assert 1 <= int(answer.headers["retry-after"]) <= 86_400
        assert (await client.get("/who")).status_code == 200
        await service.keyring.set_quota("default", Quota(None, 10.0))
        assert (await client.get("/modelled")).status_code == 200


# Upstreams in the settings.


def test_an_upstreams_key_may_be_in_a_variable(monkeypatch):
    one = UpstreamSettings(name="a", base_url="http://a", key="A_KEY")
    monkeypatch.delenv("A_KEY", raising=False)
    with pytest.raises(InvalidSetting, match="A_KEY, which is not set"):
        upstreams((one,))
    monkeypatch.setenv("A_KEY", "sk-1")
    [found] = upstreams((one,))
    assert found.key == "sk-1"
    assert "sk-1" not in repr(found)
    for key in ("pass", "stored"):
        [found] = upstreams((one.model_copy(update={"key": key}),))
        assert found.key == key
