"""No tenant reaches another's things, and no key does more than its roles say, on any route.

Both are made from the OpenAPI document: a new route is tried without anybody thinking of it.
"""

import json
from types import SimpleNamespace
from urllib.parse import quote
from uuid import uuid4

import pytest
from api_serving import API, FORMAT, all_of, serving, talked

from refold.errors import QuotaUsedUp
from refold.models.catalog import Usage
from refold.service.keys import ROLES
from refold.stores import open_store

BODIES = {
    "open_session": {"name": "new", "format": FORMAT},
    "set_title": {"title": "Mine"},
    "append_messages": {"messages": [{"role": "user", "content": "hi"}]},
    "fork_session": {"name": "forked"},
    "rewind_session": {"to": 1},
    "forget_entries": {"first": 2, "last": 3},
    "start_fold": {"wait": True},
    "edit_summary": {"text": "In short."},
    "unfold_entries": {"first": 2, "last": 2},
    "create_key": {"roles": ["read"]},
    "rotate_key": {"overlap": 0},
    "set_upstream_key": {"key": "sk-mine"},
    "set_owner": {"key": "0" * 12},
    "set_tenant_quota": {"tokens": 5, "cost": None},
}
"""What each route that takes a body is sent."""
MADE_BY_NAME = {"set_upstream_key"}
"""Here a name is not looked for: the caller's own is made."""


def operations(app, *, operators=False):
    """Each route of tenants, or of the operator: its method, its path, what the document says."""
    for path, methods in app.openapi()["paths"].items():
        for method, told in methods.items():
            if ("x-tenant" in told) != operators:
                continue
            names = [one["name"] for one in told.get("parameters", ()) if one["in"] == "path"]
            yield (
                method.upper(),
                path,
                SimpleNamespace(
                    id=told["operationId"],
                    names=names,
                    role=told["x-role"],
                    body="requestBody" in told,
                    queries=[
                        one["name"] for one in told.get("parameters", ()) if one["in"] == "query"
                    ],
                ),
            )


def filled(path, names, ids):
    for name in names:
        path = path.replace(f"{{{name}}}", quote(str(ids[name]), safe=""))
    return path


async def asked(client, method, path, told, ids):
    body = {"json": BODIES[told.id]} if told.body else {}
    return await client.request(method, filled(path, told.names, ids), **body)


def alike(answer, ids):
    """An answer without the ids that were asked for."""
    text = answer.text
    for one in sorted((one for one in ids.values() if isinstance(one, str)), key=len):
        text = text.replace(one, "…")
    return answer.status_code, text, sorted(answer.headers.keys())


async def things(service, tenant, session):
    """The ids of everything that a tenant has."""
    facts = await talked(service, tenant, session)
    made = await service.state.keyring.create(tenant, ["read"])
    await service.state.vault.put(tenant, f"up-{tenant}", "sk-theirs")
    return {
        "session": session,
        "seq": facts.seq,
        "index": 0,
        "fold": facts.fold,
        "hash": facts.hash,
        "key": made.key.id,
        "upstream": f"up-{tenant}",
    }


def never(ids):
    """Ids of the same form, of things that never were."""
    return {
        **ids,
        "session": "no-such-one",
        "fold": str(uuid4()),
        "hash": "0" * 64,
        "key": "0" * 12,
        "upstream": "up-none",
    }


async def kept_of(service, tenant):
    keyring, vault = service.state.keyring, service.state.vault
    await keyring.refresh()
    return await all_of(service.store, tenant), keyring.keys(tenant), vault.names(tenant)


async def test_every_route_answers_of_anothers_ids_as_of_ids_that_never_were():
    async with serving() as service:
        theirs = await things(service, "beta", "secret-talk")
        own = await things(service, "acme", "my-talk")
        nothing = never(theirs)
        before = await kept_of(service, "beta")
        tried = 0
        routes = sorted(operations(service.app), key=lambda one: one[2].id in MADE_BY_NAME)
        async with service.client(await service.key("acme")) as client:
            for method, path, told in routes:
                foreign = [name for name in told.names if theirs[name] != nothing[name]]
                for name in foreign:
                    with_theirs = {**own, name: theirs[name]}
                    without = {**own, name: nothing[name]}
                    one = await asked(client, method, path, told, with_theirs)
                    other = await asked(client, method, path, told, without)
                    tried += 1
                    if told.id in MADE_BY_NAME:
                        assert one.status_code == other.status_code == 200
                        continue
                    assert alike(one, with_theirs) == alike(other, without), (method, path)
                    expected = {404} if name != "fold" else {200, 422}
                    assert one.status_code in expected, (method, path, one.text)
        assert await kept_of(service, "beta") == before
        assert tried >= 30


async def test_nothing_of_another_is_in_any_list_search_or_count():
    async with serving() as service:
        await talked(service, "beta", "secret-talk", words="xylophone")
        async with service.client(await service.key("acme")) as client:
            for method, path, told in operations(service.app):
                if method != "GET" or told.names:
                    continue
                params = {"query": "xylophone"} if "query" in told.queries else {}
                answer = await client.get(path, params=params)
                assert answer.status_code == 200, (path, answer.text)
                for word in ("secret-talk", "xylophone", "beta"):
                    assert word not in answer.text, path
            for path in (f"{API}/search", f"{API}/sessions"):
                one = await client.get(path, params={"query": "x", "search": "secret-talk"})
                assert "secret-talk" not in one.text
            usage = (await client.get(f"{API}/usage")).json()["days"]
            assert not any(one["requests"] for one in usage)
            named = {"query": "xylophone", "session": "secret-talk"}
            one = await client.get(f"{API}/search", params=named)
            other = await client.get(f"{API}/search", params={**named, "session": "no-such-one"})
            assert alike(one, named) == alike(other, {"session": "no-such-one"})


async def test_a_name_that_another_uses_is_free():
    async with serving() as service:
        await talked(service, "beta", "talk")
        before = await kept_of(service, "beta")
        async with service.client(await service.key("acme")) as client:
            new = {"name": "talk", "format": FORMAT}
            assert (await client.post(f"{API}/sessions", json=new)).status_code == 201
            forked = await client.post(f"{API}/sessions/talk/fork", json={"name": "again"})
            assert forked.status_code == 201
            assert (await client.delete(f"{API}/sessions/talk")).status_code == 200
        assert await kept_of(service, "beta") == before


async def test_every_route_needs_a_key_with_its_role():
    async with serving() as service:
        secrets = {role: await service.key("acme", role) for role in ROLES}
        nothing = never({"seq": 1, "index": 0})
        for method, path, told in operations(service.app):
            async with service.client() as nobody:
                answer = await asked(nobody, method, path, told, nothing)
                assert (answer.status_code, answer.json()["code"]) == (401, "key-needed"), path
            for role, secret in secrets.items():
                async with service.client(secret) as client:
                    answer = await asked(client, method, path, told, nothing)
                if role in (told.role, "admin"):
                    assert answer.status_code not in {401, 403}, (role, path)
                else:
                    assert (answer.status_code, answer.json()["code"]) == (403, "role-needed"), path


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return open_store(f"sqlite:///{tmp_path}/refold.db")
    return open_store(request.getfixturevalue("postgres_address"))


async def test_the_routes_across_tenants_are_for_admins_of_the_default_tenant(store):
    async with serving(store=store) as service:
        await talked(service, "beta", "secret-talk")
        secrets = [await service.key(tenant, role) for tenant in ("acme", "beta") for role in ROLES]
        secrets += [await service.key("default", role) for role in ROLES if role != "admin"]
        tried = [*operations(service.app, operators=True)]
        assert len(tried) == 5
        for method, path, told in tried:
            assert told.role == "admin"
            async with service.client() as nobody:
                answer = await asked(nobody, method, path, told, {"tenant": "acme"})
                assert (answer.status_code, answer.json()["code"]) == (401, "key-needed"), path
            for secret in secrets:
                async with service.client(secret) as client:
                    for tenant in ("acme", "beta", "nobody"):
                        answer = await asked(client, method, path, told, {"tenant": tenant})
                        assert (answer.status_code, answer.json()["code"]) == (403, "role-needed")
                        assert "secret-talk" not in answer.text
        assert service.state.keyring.quota("acme").tokens is None
        async with service.client(await service.key("default", "admin")) as client:
            for method, path, told in tried:
                answer = await asked(client, method, path, told, {"tenant": "acme"})
                assert answer.status_code == 200, (path, answer.text)


async def test_an_operator_sees_all_tenants_and_sets_their_quotas(store):
    async with serving(store=store) as service:
        await talked(service, "acme", "talk")
        await talked(service, "acme", "other")
        await talked(service, "beta", "talk")
        for tenant in ("acme", "beta"):
            await service.key(tenant, "use")
        async with service.client(await service.key("default", "admin")) as client:
            listed = (await client.get(f"{API}/tenants")).json()
            rows = {each["tenant"]: each for each in listed["tenants"]}
            assert [*rows] == ["acme", "beta", "default"]
            assert listed["next"] is None
            counts = {name: (row["sessions"], row["keys"]) for name, row in rows.items()}
            assert counts == {"acme": (2, 1), "beta": (1, 1), "default": (0, 1)}
            assert rows["acme"]["usage"]["input"] == 2 * rows["beta"]["usage"]["input"] > 0
            assert all(row["whole"] for row in rows.values())

            names, after = [], ""
            while after is not None:
                page = (
                    await client.get(f"{API}/tenants", params={"limit": 1, "after": after})
                ).json()
                names += [row["tenant"] for row in page["tenants"]]
                after = page["next"]
            assert names == ["acme", "beta", "default"]

            usage = (await client.get(f"{API}/usage/tenants", params={"days": 2})).json()
            assert len(usage["days"]) == 2
            assert (
                sum(day["input"] for day in usage["days"]) == 3 * usage["tenants"]["beta"]["input"]
            )
            assert usage["whole"]

            path = f"{API}/tenants/acme/quota"
            changed = await client.put(path, json={"tokens": 100, "cost": 1.5})
            assert changed.json() == (await client.get(path)).json()
            assert (changed.json()["tokens"], changed.json()["cost"]) == (100, 1.5)
            service.state.quotas.spent("acme", Usage(90, 10), 0.5)
            used = (await client.get(path)).json()
            assert (used["used_tokens"], used["used_cost"]) == (100, 0.5)
            with pytest.raises(QuotaUsedUp):
                service.state.quotas.check("acme")
            await client.put(path, json={"tokens": None, "cost": None})
            service.state.quotas.check("acme")
            for wrong in ({"tokens": -1, "cost": None}, {"tokens": 1}, {"tokens": "x", "cost": 0}):
                answer = await client.put(path, json=wrong)
                assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")
            answer = await client.put(f"{API}/tenants/*/quota", json={"tokens": 1, "cost": None})
            assert answer.status_code == 422


async def test_what_changes_something_needs_more_than_reading():
    async with serving() as service:
        for method, path, told in operations(service.app):
            of_owner = told.id in {"forget_session", "forget_entries", "set_owner"}
            of_keys = path.removeprefix(API).split("/")[1] in {"keys", "upstreams", "quota"}
            expected = "admin" if of_owner or of_keys else "read" if method == "GET" else "write"
            assert told.role == expected, (method, path)


@pytest.mark.parametrize("secret", ["rfk_", "rfk_000000000000_" + "A" * 43, "x" * 10_000, "ö"])
async def test_what_is_no_key_opens_nothing_and_is_not_repeated(secret):
    async with serving() as service:
        await service.key("acme")
        async with service.client() as client:
            fields = [("Authorization", f"Bearer {secret}"), ("Refold-Key", secret)]
            for name, value in fields:
                headers = {name: value.encode()}
                answer = await client.get(f"{API}/sessions", headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "key-needed")
                assert secret not in json.dumps(answer.json()["detail"])
