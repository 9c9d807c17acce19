"""Every route of the console, found in the application itself: a new one cannot be forgotten.

Each is called by every kind of key, by nobody, for another tenant's session, from another site and
by a name that merely points to this machine.
"""

import re
from types import SimpleNamespace

import pytest
from api_serving import all_of, talked
from console_world import CONSOLE, LOCAL, TEAM, console, events_of, form_token, sign_in

SESSION = "secret/talk"
PUBLIC = {
    ("GET", f"{CONSOLE}/"),
    ("GET", f"{CONSOLE}/assets/{{name}}"),
    ("GET", f"{CONSOLE}/open"),
    ("GET", f"{CONSOLE}/sign-in"),
    ("POST", f"{CONSOLE}/sign-in"),
    ("POST", f"{CONSOLE}/sign-out"),
}
"""What nobody needs to have signed in for. The last checks the form of who has."""
ROLES = (
    ["read"],
    ["use"],
    ["write"],
    ["admin"],
)
HEADERS = ("content-security-policy", "x-frame-options", "x-content-type-options", "cache-control")
REBOUND = (
    {"host": "evil.example"},
    {"host": "evil.example:8790"},
    {"host": "127.0.0.1.evil.example"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"x-forwarded-for": "10.0.0.1"},
)


def flat(routes, prefix=""):
    """All routes with their whole paths, also those of included routers."""
    for route in routes:
        if (inner := getattr(route, "original_router", None)) is not None:
            yield from flat(inner.routes, prefix + route.include_context.prefix)
        elif path := getattr(route, "path", ""):
            yield prefix + path, route


def routes_of(world):
    """Method and path of each route, and the role that it says it needs."""
    found = {}
    for path, route in flat(world.app.routes):
        if path.startswith(CONSOLE) and path != f"{CONSOLE}/{{rest:path}}":
            role = (getattr(route, "openapi_extra", None) or {}).get("x-role", "")
            found |= {(method, path): role for method in route.methods - {"HEAD"}}
    return found


async def facts_of(world):
    """A session of acme, and what the addresses of its parts are made of."""
    facts = await talked(world, "acme", SESSION, turns=4)
    outline = (await world.store.log("acme").outlined(SESSION)).outline
    folds = [(fold.seq, str(fold.fold)) for fold in outline.folds]
    return SimpleNamespace(record=facts.seq, fold=folds[-1][0], fold_id=folds[-1][1])


def filled(path, facts, session=SESSION):
    """The address of something that is there, for a path with parameters."""
    entry = {"/folds/": facts.fold, "/requests/": facts.record}
    seq = next((value for part, value in entry.items() if part in path), 2)
    values = {
        "session": session.replace("/", "%2F"),
        "seq": seq,
        "other": 7,
        "fold": facts.fold_id,
        "index": 0,
        "nth": 0,
        "run": "a" * 20,
        "day": "2026-11-19",
    }
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda match: str(values.get(match[1], 1)), path)


def fields_of(page, facts):
    """A form with whatever any of the changes takes."""
    return {
        "form_token": form_token(page) or "",
        "text": "In Riga.",
        "first": str(facts.fold - 3),
        "last": str(facts.fold - 3),
    }


async def test_every_route_is_public_by_intention_or_says_who_may_call_it():
    async with console() as world:
        found = routes_of(world)
        assert {each for each, role in found.items() if not role} == PUBLIC
        assert len(found) > 30
        for (method, path), role in found.items():
            if method == "GET" and role:
                assert role == "read", path
            elif "{session}" in path:  # whatever is sent to a session changes it
                assert role == "write", path


@pytest.mark.parametrize("roles", ROLES, ids=" ".join)
async def test_a_route_opens_to_those_who_have_its_role_and_to_nobody_else(roles):
    async with console() as world:
        facts, browser = await facts_of(world), await world.signed_in("acme", *roles)
        before = await all_of(world.store, "acme")
        page = await browser.get(CONSOLE)
        for (method, path), role in routes_of(world).items():
            if not role or path.endswith("/live") or (role == "write" and role in roles):
                continue  # streams never end, and changes are for the tests of each
            allowed = role in roles or "admin" in roles
            if allowed and method != "GET":
                continue
            where = filled(path, facts)
            answer = await browser.request(
                method, where, data=fields_of(page, facts), headers={"origin": TEAM}
            )
            assert (answer.status_code != 403) == allowed, (method, where)
            assert answer.status_code < 500, (method, where)
            if not allowed:
                assert "parcel" not in answer.text, (method, where)
            assert all(name in answer.headers for name in HEADERS), (method, where)
        assert await all_of(world.store, "acme") == before


async def test_who_has_not_signed_in_is_led_away_from_every_route():
    async with console() as world:
        facts, browser = await facts_of(world), world.browser()
        before = await all_of(world.store, "acme")
        for (method, path), role in routes_of(world).items():
            if not role:
                continue
            where = filled(path, facts)
            answer = await browser.request(method, where, headers={"origin": TEAM})
            assert answer.status_code == 303, (method, where)
            assert answer.headers["location"].startswith(f"{CONSOLE}/sign-in?next="), where
            assert answer.text == ""
            assert answer.headers["x-frame-options"] == "DENY"
        assert await all_of(world.store, "acme") == before


async def test_to_another_tenant_a_session_is_one_that_never_was():
    async with console() as world:
        facts, browser = await facts_of(world), await world.signed_in("beta", "admin")
        before = await all_of(world.store, "acme")
        page = await browser.get(CONSOLE)
        tried = 0
        for (method, path), role in routes_of(world).items():
            if "{session}" not in path or not role:
                continue
            theirs, never = (filled(path, facts, name) for name in (SESSION, "never/was"))
            how = {"data": fields_of(page, facts), "headers": {"origin": TEAM}}
            answer = await browser.request(method, theirs, **how)
            other = await browser.request(method, never, **how)
            assert answer.status_code == other.status_code, (method, theirs)
            assert answer.status_code in {404, 422}, (method, theirs)
            assert answer.text.replace(SESSION, "never/was") == other.text, (method, theirs)
            tried += 1
        assert tried > 20
        for (method, path), role in routes_of(world).items():
            if role and method == "GET" and "{session}" not in path and "/live" not in path:
                answer = await browser.get(filled(path, facts))
                assert "secret" not in answer.text, path
                assert "parcel" not in answer.text, path
        assert await all_of(world.store, "acme") == before


@pytest.mark.parametrize("how", ["no token", "another browser's", "another site", "no origin"])
async def test_no_form_of_another_site_changes_anything(how):
    async with console() as world:
        facts = await facts_of(world)
        browser = await world.signed_in("acme", "read", "write", "admin")
        other = await world.signed_in("acme", "read", "write", "admin")
        before = await all_of(world.store, "acme")
        fields = fields_of(await (other if "another b" in how else browser).get(CONSOLE), facts)
        if how == "no token":
            del fields["form_token"]
        sites = {"no origin": {}, "another site": {"origin": "https://evil.example"}}
        tried = 0
        for method, path in routes_of(world):
            if method == "GET" or path == f"{CONSOLE}/sign-in":
                continue
            answer = await browser.request(
                *(method, filled(path, facts)),
                data=fields,
                headers=sites.get(how, {"origin": TEAM}),
            )
            assert answer.status_code == 403, (method, path)
            tried += 1
        assert tried >= 6
        assert await all_of(world.store, "acme") == before
        assert (await browser.get(CONSOLE)).status_code == 200


async def test_no_other_method_does_anything():
    async with console() as world:
        facts = await facts_of(world)
        browser = await world.signed_in("acme", "read", "write", "admin")
        before = await all_of(world.store, "acme")
        page, found = await browser.get(CONSOLE), routes_of(world)
        for path in {path for _, path in found}:
            for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE"):
                if (method, path) not in found:
                    answer = await browser.request(
                        *(method, filled(path, facts)),
                        data=fields_of(page, facts),
                        headers={"origin": TEAM},
                    )
                    assert answer.status_code in {404, 405}, (method, path)
        assert await all_of(world.store, "acme") == before


async def test_a_name_that_points_to_this_machine_reaches_no_route():
    async with console(local=True) as world:
        facts, browser = await facts_of(world), await world.opened()
        for headers in REBOUND:
            for method, path in routes_of(world):
                answer = await browser.request(method, filled(path, facts), headers=headers)
                assert answer.status_code == 403, (method, path, headers)
                assert "parcel" not in answer.text


async def test_a_list_of_one_tenant_streams_nothing_of_another():
    async with console() as world:
        await facts_of(world)
        await talked(world, "beta", "own", words="cathedral")
        browser = world.browser(LOCAL)
        await sign_in(browser, await world.key("beta", "read"), origin=LOCAL)
        [event] = await events_of(world, browser, f"{CONSOLE}/live", 1)
        assert "own" in event
        assert "secret" not in event
