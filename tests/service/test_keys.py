"""The keys of the service: what opens, what no longer does, and what is kept of them."""

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.errors import ApiKeyNotFound, InvalidInput, MasterKeyWrong
from refold.service import keys as keyrings
from refold.service.keys import (
    EVERYBODY,
    TENANT,
    KeyRecords,
    Keyring,
    Quota,
    is_secret,
    secret_in,
    without_secrets,
)
from refold.service.vault import Sealing, Vault, new_master_key
from refold.stores import MemoryStore, open_store


class Clock:
    """A wall clock and a stop-watch that tests move."""

    def __init__(self):
        self.seconds = 1_700_000_000.0

    def now(self):
        return int(self.seconds * 1000)

    def tick(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    monkeypatch.setattr(keyrings, "_PAUSE", 0.0)


@pytest.fixture(params=["memory:", "sqlite"])
async def store(request, tmp_path):
    where = f"sqlite:///{tmp_path / 'keys.db'}" if request.param == "sqlite" else request.param
    async with open_store(where) as opened:
        yield opened


def keyring_on(store, clock):
    def tick():
        clock.seconds += 0.000_001  # no two moments are the same
        return clock.seconds

    return Keyring(store.log(TENANT), now=clock.now, tick=tick)


async def test_a_key_opens_what_it_was_made_for(store, clock):
    keyring = keyring_on(store, clock)
    assert not keyring.any
    made = await keyring.create("acme", ["use", "read"], name="support")
    assert keyring.any
    found = await keyring.find(made.secret)
    assert found is not None
    assert (found.tenant, found.roles, found.name) == ("acme", {"use", "read"}, "support")
    assert found.id == made.secret.split("_")[1]
    assert is_secret(made.secret)
    assert keyring.keys("acme") == [found]
    assert keyring.keys("other") == []


async def test_what_is_kept_opens_nothing(store, clock):
    made = await keyring_on(store, clock).create("acme", ["use"])
    kept = b"".join(one.body for one in await store.log(TENANT).read("keys"))
    own = made.secret.removeprefix(f"rfk_{made.key.id}_")
    assert own.encode() not in kept
    hashed = re.search(rb'"hash":"([0-9a-f]{64})"', kept)
    assert hashed is not None
    keyring = keyring_on(store, clock)
    for wrong in (
        hashed[1].decode(),
        f"rfk_{made.key.id}_{hashed[1].decode()[:43]}",
        made.secret[:-1],
        made.secret + "A",
        made.secret.swapcase(),
        "",
        "rfk_" + "é" * 60,
    ):
        assert await keyring.find(wrong) is None
    assert await keyring.find(made.secret) is not None


async def test_the_old_secret_is_valid_for_the_overlap(store, clock):
    keyring = keyring_on(store, clock)
    first = await keyring.create("acme", ["use"])
    second = await keyring.rotate(first.key.id, overlap=60)
    assert second.secret != first.secret
    assert await keyring.find(first.secret) == await keyring.find(second.secret) is not None
    third = await keyring.rotate(first.key.id, overlap=3_600)
    clock.seconds += 61
    assert await keyring.find(first.secret) is None  # the longer overlap is not the first's
    assert await keyring.find(second.secret) is not None
    clock.seconds += 3_600
    assert await keyring.find(second.secret) is None
    assert (await keyring.find(third.secret)) is not None


async def test_an_expired_key_opens_nothing(store, clock):
    keyring = keyring_on(store, clock)
    made = await keyring.create("acme", ["use"], until=clock.now() + 1_000)
    assert await keyring.find(made.secret) is not None
    clock.seconds += 1
    assert await keyring.find(made.secret) is None
    assert keyring.state(keyring.key(made.key.id)) == "expired"
    with pytest.raises(InvalidInput, match="is expired"):
        await keyring.rotate(made.key.id)
    with pytest.raises(InvalidInput, match="in the past"):
        await keyring.create("acme", ["use"], until=clock.now())


async def test_what_another_process_revokes_is_refused_within_a_second(store, clock):
    here, there = keyring_on(store, clock), keyring_on(store, clock)
    made = await there.create("acme", ["use"])
    assert await here.find(made.secret) is not None  # made a moment ago, elsewhere
    await there.revoke(made.key.id)
    clock.seconds += 1
    assert await here.find(made.secret) is None
    again = await there.revoke(made.key.id)
    assert again.revoked_at is not None
    assert here.state(here.key(made.key.id)) == "revoked"
    with pytest.raises(InvalidInput, match="is revoked"):
        await there.rotate(made.key.id)


async def test_keys_that_are_known_are_not_looked_up_each_time(store, clock, monkeypatch):
    keyring = keyring_on(store, clock)
    made = await keyring.create("acme", ["use"])
    looks = []
    monkeypatch.setattr(keyring._journal, "news", lambda: looks.append(1) or _nothing())
    for _ in range(50):
        assert await keyring.find(made.secret) is not None
    assert not looks
    await asyncio.gather(*[keyring.find(f"rfk_{'0' * 12}_{n:043}") for n in range(50)])
    assert len(looks) < 10  # who waits for a look shares it
    for _ in range(50):
        await keyring.find("no key at all")
    assert len(looks) < 10


async def _nothing():
    await asyncio.sleep(0)  # as a store on a server would
    return []


async def test_another_tenants_key_is_as_if_it_never_was(store, clock):
    keyring = keyring_on(store, clock)
    made = await keyring.create("acme", ["use"])
    for act in (keyring.rotate, keyring.revoke):
        with pytest.raises(ApiKeyNotFound) as others:
            await act(made.key.id, tenant="other")
        with pytest.raises(ApiKeyNotFound) as nobodys:
            await act("0" * 12, tenant="other")
        assert str(others.value) == str(nobodys.value)
    assert await keyring.find(made.secret) is not None


async def test_two_processes_write_at_once_and_nothing_is_lost(store, clock):
    rings = [keyring_on(store, clock) for _ in range(4)]
    made = await asyncio.gather(*[one.create(f"t{n}", ["use"]) for n, one in enumerate(rings)])
    fresh = keyring_on(store, clock)
    for one in made:
        assert await fresh.find(one.secret) is not None
    done = await asyncio.gather(*[one.revoke(made[0].key.id) for one in rings])
    assert {one.revoked_at for one in done} == {done[0].revoked_at}


@pytest.mark.parametrize("tenant", [TENANT, EVERYBODY, "", " a", "a\n"])
async def test_no_key_is_for_the_service_itself(clock, tenant):
    async with MemoryStore() as store:
        with pytest.raises(InvalidInput):
            await keyring_on(store, clock).create(tenant, ["admin"])


async def test_forgetting_the_keys_lets_nobody_in(store, clock):
    keyring = keyring_on(store, clock)
    made = await keyring.create("acme", ["use"])
    await store.log(TENANT).forget("keys")
    clock.seconds += 1
    assert await keyring.find(made.secret) is None
    assert keyring.any
    fresh = keyring_on(store, clock)
    await fresh.refresh()
    assert fresh.any


async def test_quotas_are_kept(store, clock):
    keyring = keyring_on(store, clock)
    await keyring.set_quota("acme", Quota(1_000, 2.5))
    fresh = keyring_on(store, clock)
    await fresh.refresh()
    assert fresh.quota("acme") == Quota(1_000, 2.5)
    assert fresh.quota("other") == Quota()
    with pytest.raises(InvalidInput):
        await keyring.set_quota("acme", Quota(-1))


def test_notes_of_a_newer_version_change_nothing():
    kept = KeyRecords()
    from refold.service.keys import JournalNote  # noqa: PLC0415 - only here

    for data in ({}, {"event": "key.split", "id": "a"}, {"event": "key.revoked", "id": 3}):
        kept.take(JournalNote(1, 0, data))
    assert kept == KeyRecords()


# Keys of providers.


def sealing(*masters):
    from refold.service.vault import _masters  # noqa: PLC0415 - as the environment is read

    return Sealing(_masters(",".join(masters)))


async def test_a_providers_key_is_encrypted_where_it_is_kept(store, clock):
    keyring, master = keyring_on(store, clock), new_master_key()
    vault = Vault(keyring, sealing(master))
    await vault.put("acme", "openai", "sk-very-secret-1")
    assert vault.key_of("acme", "openai") == "sk-very-secret-1"
    assert vault.key_of("other", "openai") is None
    assert vault.key_of("acme", "other") is None
    kept = b"".join(one.body for one in await store.log(TENANT).read("keys"))
    assert b"sk-very-secret-1" not in kept
    assert "sk-very" not in repr(vault.names()) + repr(keyring.records)


async def test_what_was_replaced_or_removed_is_gone_from_the_store(store, clock):
    keyring = keyring_on(store, clock)
    vault = Vault(keyring, sealing(new_master_key()))
    await vault.put("acme", "openai", "sk-1")
    first = keyring.records.upstreams["acme", "openai"].sealed.encode()
    await vault.put("acme", "openai", "sk-2")
    second = keyring.records.upstreams["acme", "openai"].sealed.encode()
    kept = b"".join(one.body for one in await store.log(TENANT).read("keys"))
    assert first not in kept
    assert second in kept
    await vault.remove("acme", "openai")
    kept = b"".join(one.body for one in await store.log(TENANT).read("keys"))
    assert second not in kept
    assert kept.count(b"upstream.set") == 2  # that it happened is still told
    assert vault.key_of("acme", "openai") is None
    with pytest.raises(ApiKeyNotFound):
        await vault.remove("acme", "openai")
    fresh = Vault(keyring_on(store, clock), sealing(new_master_key()))
    await fresh._keyring.refresh()
    assert fresh.names() == []


async def test_one_key_may_be_for_all_tenants(store, clock):
    vault = Vault(keyring_on(store, clock), sealing(new_master_key()))
    await vault.put(EVERYBODY, "openai", "sk-all")
    await vault.put("acme", "openai", "sk-own")
    assert vault.key_of("acme", "openai") == "sk-own"
    assert vault.key_of("other", "openai") == "sk-all"


async def test_the_master_key_is_rotated(store, clock):
    old, new = new_master_key(), new_master_key()
    await Vault(keyring_on(store, clock), sealing(old)).put("acme", "openai", "sk-1")
    await Vault(keyring_on(store, clock), sealing(old)).put("other", "openai", "sk-2")
    both = Vault(keyring_on(store, clock), sealing(new, old))
    assert await both.reseal() == 2
    assert await both.reseal() == 0
    alone = Vault(keyring_on(store, clock), sealing(new))
    await alone._keyring.refresh()
    assert alone.key_of("acme", "openai") == "sk-1"
    assert alone.key_of("other", "openai") == "sk-2"
    before = Vault(alone._keyring, sealing(old))
    with pytest.raises(MasterKeyWrong, match="another master key"):
        before.key_of("acme", "openai")


def test_the_wrong_master_key_says_what_to_do(monkeypatch):
    sealed = sealing(new_master_key()).seal("sk-1", "acme", "openai")
    with pytest.raises(MasterKeyWrong, match=r"not set.*refold keys master-key"):
        Sealing().open(sealed, "acme", "openai")
    with pytest.raises(MasterKeyWrong, match="not set"):
        Sealing().seal("sk-1")
    with pytest.raises(MasterKeyWrong, match=r"Add the old one.*reseal"):
        sealing(new_master_key()).open(sealed, "acme", "openai")
    monkeypatch.setenv("REFOLD_MASTER_KEY", "hunter2-hunter2")
    with pytest.raises(MasterKeyWrong, match="32 bytes") as raised:
        Sealing.from_environment()
    assert "hunter2" not in str(raised.value)


@given(st.text(), st.text(), st.text(), st.integers(0, 10**6))
def test_what_is_sealed_opens_only_as_it_was_bound(text, tenant, upstream, at):
    text, tenant, upstream = (
        one.encode(errors="replace").decode() for one in (text, tenant, upstream)
    )
    box = _BOX
    sealed = box.seal(text, tenant, upstream)
    assert box.open(sealed, tenant, upstream) == text
    for names in ((upstream, tenant), (tenant + upstream,), (tenant, upstream, ""), (tenant, "*")):
        if names != (tenant, upstream):
            with pytest.raises(MasterKeyWrong):
                box.open(sealed, *names)
    inside = sealed.rpartition(".")[2]
    at %= len(inside.rstrip("=")) - 1
    other = "A" if inside[at] != "A" else "B"
    changed = sealed[: -len(inside)] + inside[:at] + other + inside[at + 1 :]
    with pytest.raises(MasterKeyWrong, match="changed"):
        box.open(changed, tenant, upstream)


_BOX = Sealing([b"k" * 32])


# Where a key stands in a request, and what is shown of it.

SECRET = f"rfk_{'a' * 12}_{'B' * 43}"


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"authorization": f"Bearer {SECRET}"}, SECRET),
        ({"authorization": f"bearer {SECRET}"}, SECRET),
        ({"x-api-key": SECRET}, SECRET),
        ({"refold-key": SECRET, "authorization": "Bearer sk-theirs"}, SECRET),
        ({"refold-key": "wrong", "authorization": f"Bearer {SECRET}"}, "wrong"),
        ({"authorization": "Bearer sk-theirs"}, None),
        ({"x-api-key": "sk-ant-theirs"}, None),
        ({"cookie": SECRET}, None),
        ({}, None),
    ],
)
def test_where_a_key_stands(headers, found):
    assert secret_in(headers) == found


@pytest.mark.parametrize(
    "text",
    [
        f"no {SECRET} here",
        "Bearer abcdefghijkl0123",
        "sk-proj-0123456789abcdef failed",
        "postgresql://app:hunter2hunter2@db/refold",
        json.dumps({"key": SECRET}),
    ],
)
def test_secrets_are_not_shown(text):
    shown = without_secrets(text)
    for secret in (SECRET, "abcdefghijkl0123", "0123456789abcdef", "hunter2"):
        assert secret not in shown
    assert "…" in shown
