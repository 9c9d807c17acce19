"""No page shows another tenant's session, and none opens without the role to read.

The pages are those that can be reached by a link, so a new one is tried without anybody thinking
of it.
"""

import re

import pytest
from api_serving import talked
from console_world import CONSOLE, TEAM, console
from test_console_hostile import crawl

from refold.console import (
    difference,
    folds,
    money,
    requests,
    sessions,
    timeline,
    what_if,
    window,
)

PART = {"HX-Request": "true"}
SESSION = "/console/sessions/secret%2Ftalk"
STREAMS = ["/console/live", f"{SESSION}/live?first=1"]


async def addresses(world):
    """Every address that the tenant acme reaches, streams included."""
    facts = await talked(world, "acme", "secret/talk", turns=4)
    found = await crawl(await world.signed_in("acme"))
    # What no link of this session leads to.
    more = ["/entries/2/parts/0", "/entries/2/body", f"/requests/{facts.seq}/curl"]
    more += [f"/requests/{facts.seq}/inserts/0", "/before/3", "/cost.json", "/window.svg"]
    return [each.removeprefix("part ") for each in found] + [SESSION + x for x in more] + STREAMS


async def test_every_page_is_reached_by_a_link():
    async with console() as world:
        where = [each.partition("?")[0] for each in await addresses(world)]
        routers = (difference, folds, money, requests, sessions, timeline, what_if, window)
        routes = [route for each in routers for route in each.router.routes]
        paths = {f"{CONSOLE}{route.path}" for route in routes if "GET" in route.methods}
        for path in paths:
            form = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
            never = path.endswith(("/branches/{seq}", "/under-way/{fold}")) or "/{run}" in path
            assert never or any(form.fullmatch(each) for each in where), path


async def test_another_tenants_session_is_one_that_never_was():
    async with console() as world:
        theirs = await addresses(world)
        browser = await world.signed_in("beta")
        tried = 0
        for each in theirs:
            if "secret" not in each:
                continue
            tried += 1
            answer = await browser.get(each)
            other = await browser.get(each.replace("secret%2Ftalk", "never%2Fwas"))
            assert answer.status_code == other.status_code == 404, each
            assert answer.text.replace("secret/talk", "never/was") == other.text
            assert "parcel" not in answer.text
        assert tried > 20
        listed = await browser.get(f"{CONSOLE}?q=parcel")
        assert "secret" not in listed.text


@pytest.mark.parametrize(("roles", "status"), [(["use"], 403), (["write"], 403), ([], 303)])
async def test_no_page_opens_without_the_role_to_read(roles, status):
    async with console() as world:
        where = await addresses(world)
        browser = await world.signed_in("acme", *roles) if roles else world.browser()
        for each in where:
            answer = await browser.get(each)
            assert answer.status_code == status, each
            assert "parcel" not in answer.text
            part = await browser.get(each, headers=PART)
            assert "parcel" not in part.text


@pytest.mark.parametrize("roles", [["read"], ["admin"], ["use", "read"]])
async def test_these_roles_read(roles):
    async with console() as world:
        await talked(world, "acme", "talk")
        browser = await world.signed_in("acme", *roles)
        assert (await browser.get(f"{CONSOLE}/sessions/talk")).status_code == 200


async def test_no_page_changes_anything():
    async with console() as world:
        log = world.store.log("acme")
        where = await addresses(world)
        before = [await log.read("secret/talk"), await log.sessions()]
        browser = await world.signed_in("acme", "admin")
        for each in where:
            if each not in STREAMS:
                await browser.get(each)
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                answer = await browser.request(method, each, headers={"origin": TEAM})
                assert answer.status_code in (404, 405), (method, each)
        assert [await log.read("secret/talk"), await log.sessions()] == before
