"""The runbook: its commands, in the order of the page, against a server of their own."""

import asyncio
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from itertools import count
from urllib.request import urlopen
from uuid import uuid4

import psycopg
import pytest
from needed import need_postgres
from runbook import PAGE, World, blocks, missing

from refold.engine.dbos import DbosEngine
from refold.errors import SessionNotFound
from refold.fold.compactor import context
from refold.fold.job import Job
from refold.log import Author, Message, Opened, SessionInfo, Span
from refold.stores.postgres import Pool, PostgresStore
from refold.testing.postgres import Cluster
from refold.view import PROFILES

GUIDE = PAGE.parent / "postgresql.md"
TENANTS = ("acme", "globex")
WORD = "wisteria"
LONG = 240.0
SESSIONS = int(os.environ.get("REFOLD_RUNBOOK_SESSIONS", "24"))


@pytest.fixture
async def world():
    need_postgres()
    with Cluster() as cluster:
        # A copy of the server is started with what is in its folder, not with our arguments.
        with (cluster.data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in cluster._settings.items())
        world = World(cluster)
        try:
            yield world
        finally:
            world.close()


async def until(true: Callable[[], bool]) -> None:
    """Wait for what another process does; a busy one may take its time."""
    async with asyncio.timeout(LONG):
        while not await asyncio.to_thread(true):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)


def listens(port: str) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", int(port))) == 0


def figures(world: World) -> str:
    """What the worker serves."""
    served = f"http://127.0.0.1:{world.env['METRICS_PORT']}/metrics"
    with urlopen(served) as answer:
        return answer.read().decode()


def message(text: str) -> bytes:
    return json.dumps({"role": "user", "content": text}).encode()


async def listed(store: PostgresStore, tenant: str) -> list[SessionInfo]:
    """All sessions of a tenant."""
    found, page = [], None
    while True:
        there = await store.log(tenant).sessions(limit=500, page=page)
        found += there.sessions
        page = there.next
        if page is None:
            return found


class Checks:
    """What the page claims, looked at after the command that it is claimed of."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.author = Author()
        self.store = PostgresStore(world.address("refold_app"))
        self.before: dict[tuple[str, str], list[bytes]] = {}

    async def close(self) -> None:
        await self.store.close()

    async def say(self, tenant: str, session: str, *texts: str, store=None) -> None:
        log = (store or self.store).log(tenant)
        try:
            await log.head(session)
        except SessionNotFound:
            opened = self.author.draft(Opened("openai-chat", "balanced"))
            await log.append(session, [opened], expected=0)
        drafts = [self.author.draft(Message(message(text))) for text in texts]
        await log.append(session, drafts, expected=None)

    async def all_said(self, store=None) -> dict[tuple[str, str], list[bytes]]:
        """Every body of every session."""
        store = store or self.store
        return {
            (tenant, one.session): [
                entry.body for entry in await store.log(tenant).read(one.session)
            ]
            for tenant in TENANTS
            for one in await listed(store, tenant)
        }

    async def migrated(self) -> None:
        await self.store.open()
        for tenant in TENANTS:
            for nth in range(SESSIONS):
                await self.say(tenant, f"support-{nth}", f"{tenant} {nth}", f"{WORD} {nth}")
        with (
            psycopg.connect(self.world.address("refold_app")) as db,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            db.execute("CREATE TABLE refold.mine ()")

    async def bound(self) -> None:
        async with PostgresStore(self.world.address("refold_acme")) as store:
            assert len(await listed(store, "acme")) == SESSIONS
            assert await listed(store, "globex") == []

    async def through_pgbouncer(self) -> None:
        port = self.world.env["PGBOUNCER_PORT"]
        address = self.world.address("refold_app", port=port)
        locks = self.world.address("refold_app", "refold_locks", port)
        await until(lambda: listens(port))  # it goes to the background a moment before
        async with PostgresStore(address, pool=Pool(prepare=False), locks=locks) as store:
            await self.say("acme", "pooled", "one", store=store)
            log = store.log("acme")
            assert [one.body for one in await log.read("pooled")][1:] == [message("one")]
            held = await log.locks().take("pooled")
            assert held is not None
            assert await self.store.log("acme").locks().take("pooled") is None
            held.release()

    async def restart(self) -> None:
        self.world.cluster.restart("fast")

    async def backed_up(self) -> None:
        await self.say("acme", "late", "before the point")
        self.before = await self.all_said()
        with psycopg.connect(self.world.address("refold_app")) as db:
            found = db.execute("SELECT clock_timestamp()::text").fetchone()
        assert found is not None
        self.world.env["POINT"] = found[0]
        await self.say("acme", "late", "after the point")
        await self.say("globex", "later", "after the point")

    async def restored(self) -> None:
        address = self.world.address("refold_app", port=self.world.env["RESTORED_PORT"])
        async with PostgresStore(address) as store:
            assert await self.all_said(store) == self.before
            await self.say("acme", "late", "it can be written", store=store)

    async def copied(self) -> None:
        async with PostgresStore(self.world.address("refold_app", "refold_copy")) as store:
            assert await self.all_said(store) == await self.all_said()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Others write, forget and read meanwhile; what they were told is done must be so."""
        self.before = await self.all_said()
        stop = asyncio.Event()

        async def write(tenant: str) -> None:
            for nth in count():
                if stop.is_set():
                    return
                name = f"support-{nth % 9}" if nth % 3 else f"new-{nth}"
                text = f"meanwhile {nth}"
                await self.say(tenant, name, text)
                said = self.before.setdefault((tenant, name), [b""])
                said.append(message(text))
                gone = f"support-{9 + nth // 30}"
                if nth % 30 == 10 and (tenant, gone) in self.before:
                    await self.store.log(tenant).forget(gone)
                    del self.before[tenant, gone]

        writers = [asyncio.create_task(write(tenant)) for tenant in TENANTS]
        yield
        stop.set()
        await asyncio.gather(*writers)

    async def split(self) -> None:
        said = await self.all_said()
        assert said.keys() == self.before.keys()
        assert all(said[name][1:] == before[1:] for name, before in self.before.items())
        assert sum(b"meanwhile" in body for bodies in said.values() for body in bodies) > 20
        with psycopg.connect(self.world.address("refold_app")) as db:
            parts = db.execute(
                "SELECT relname, relrowsecurity, pg_get_expr(relpartbound, oid) FROM pg_class"
                " WHERE relkind = 'r' AND relname ~ '^entries_'"
            ).fetchall()
            assert len(parts) == 32
            assert all(secured for _, secured, _ in parts)
            assert {re.findall(r"\d+", bound)[0] for *_, bound in parts} == {"32"}
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"SELECT FROM refold.{parts[0][0]}".encode())

    async def works(self) -> None:
        """The worker that the page starts makes a fold."""
        log = self.store.log("acme")
        await self.say("acme", "folded", *(f"{WORD} {nth}" for nth in range(9)))
        given = context(PROFILES["balanced"].fold, {})
        job = Job("folded", uuid4(), (Span(2, 8),), "soft", context=given)
        async with DbosEngine(log, self.world.address("refold_app")) as engine:
            assert await engine.start(job)
            ended = await engine.wait("folded", job.fold, timeout=LONG)
        assert ended is not None, (self.world.folder / "background").read_text()
        assert ended.completed
        await until(lambda: "completed" in figures(self.world))  # told a moment after the log was

    async def watched(self) -> None:
        """It serves its figures, and says no word of anybody's."""
        said = (self.world.folder / "metrics.txt").read_text()
        assert re.search(r'^db_client_connection_count{.*state="idle".*} \d', said, re.MULTILINE)
        assert re.search(
            r"^db_client_operation_duration_seconds_count{.*append.*} ", said, re.MULTILINE
        )
        assert re.search(
            r"^refold_fold_duration_seconds_count{.*completed.*} 1", said, re.MULTILINE
        )
        assert not any(name in said for name in (*TENANTS, "folded", "support-", WORD))

    async def exported(self) -> None:
        assert WORD in (self.world.folder / "support-8.jsonl").read_text()

    async def scrubbed(self) -> None:
        names = [one.session for one in await listed(self.store, "acme")]
        assert "support-7" not in names
        assert "support-8" in names


@pytest.mark.timeout(1_800)
async def test_every_command_does_what_the_page_says(world):
    checks = Checks(world)
    left_out = set()
    try:
        for block in blocks(PAGE.read_text("utf-8")):
            if name := missing(block):
                left_out.add(name)
                continue
            async with checks.writing() if block.then == "split" else nullcontext():
                await world.run(block)
            if block.then is not None:
                await getattr(checks, block.then)()
    finally:
        await checks.close()
    if left_out and os.environ.get("REFOLD_POSTGRES") == "required":
        pytest.fail(f"not installed: {left_out}")


@pytest.mark.timeout(1_800)
async def test_the_guide_leads_from_nothing_to_a_worker(world):
    for block in blocks(GUIDE.read_text("utf-8")):
        await world.run(block)
    async with PostgresStore(world.env["REFOLD_STORE"]) as store:
        log = store.log()
        # Records of requests have digests, in which any four digits may stand.
        messages = [one for one in await log.read("support-42") if one.kind == Message.KIND]
        assert [b"4711" in one.body for one in messages].count(True) == 1
        async with asyncio.timeout(LONG):  # until the worker has begun, and made it
            while not (await log.visible("novel")).outline.folds:  # noqa: ASYNC110 - of a server
                await asyncio.sleep(0.1)
    await until(lambda: 'refold_fold_outcome="completed"' in figures(world))


def test_no_command_of_the_page_is_left_out():
    page = "```bash\none\n```\n<!-- then: a -->\n\n<!-- run: as the server -->\n```bash\ntwo\n```\n"
    assert [(one.text, one.runs, one.then) for one in blocks(page)] == [
        ("one\n", "here", "a"),
        ("two\n", "server", None),
    ]
    with pytest.raises(AssertionError, match="nobody runs"):
        blocks("```console\n$ three\n```\n")
    with pytest.raises(AssertionError, match="left out"):
        blocks("```bash\none\n```\n\n<!-- then: a -->\n")


def test_each_check_is_asked_for():
    asked = {block.then for block in blocks(PAGE.read_text("utf-8"))} - {None}
    there = {name for name in vars(Checks) if not name.startswith("_")}
    assert there - asked == {"close", "say", "all_said", "writing"}
