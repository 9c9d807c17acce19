"""Stores as each format wrote them, kept so that every later version is seen to open them.

    python tests/stores/store_formats.py NAME

writes formats/NAME.db, NAME.sql and NAME.json: an SQLite file, a dump of a PostgreSQL database, and
what both hold. Run it with each change of a format, under a new name. Never write an old one again.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from refold.errors import Unrebuildable
from refold.log import Artifact, Author, Log, Note, PartRef, Requested, Span, export_session
from refold.log.artifact import INLINE_LIMIT
from refold.recall.text import rebuilt
from refold.session import Session, Setup, Usage
from refold.stores import SqliteStore
from refold.stores.postgres import PostgresStore, migrate
from refold.testing.postgres import Cluster
from refold.view import Budget
from refold.view.profiles import BALANCED
from refold.view.tokens import Calibration, Estimate, calibrated

FORMATS = Path(__file__).with_name("formats")
FOLDED, FORK, CLEARED, PAID = "books", "books-again", "cleared", "paid"
FORGOTTEN, SEARCHED = "swordfish", "Tallinn"
PAGE = f"The {SEARCHED} branch closes its books at noon. " * 12


def setup() -> Setup:
    """A small window, so that a few messages lead to a fold."""
    return Setup("test:model", Estimate(), Budget(window=3_000), BALANCED)


def learned() -> Setup:
    """The same, with a counter that was corrected by what a provider reported."""
    calibration = Calibration().observed(1_000, 1_300).observed(1_000, 1_300).observed(1_000, 1_300)
    return replace(setup(), counter=calibrated(Estimate(), calibration))


def message(role: str, text: str, **more: object) -> bytes:
    return json.dumps({"role": role, "content": text, **more}).encode()


async def fill(log: Log) -> None:
    """Sessions with every kind of entry that a host brings about."""
    session = await Session.open(log, FOLDED, setup(), format="openai-chat", title="The books")
    for number in range(10):
        await turn(session, number)
    await session.say(message("user", f"The password is {FORGOTTEN}."))
    secret = session.head
    await session.request()
    await session.answer(message("assistant", "I see."))
    await session.compact()
    await session.pin(PartRef(2, 0))
    await turn(session, 10)
    await session.unpin(PartRef(2, 0))
    first = session.inputs.foldings[0].spans[0].first
    await session.unfold(Span(first, first + 2))
    await session.fork(FORK, at=session.head)
    before = session.head
    await turn(session, 11)
    await session.rewind(before)
    await session.note(Note("What a host wrote down."))
    large = Artifact.of(b"A" * (INLINE_LIMIT + 1), "text/plain")
    draft = Author().draft(Note("With an attachment."), artifacts=[large])
    await log.append(FOLDED, [draft], expected=None)
    await session.forget(Span(secret, secret))
    await session.close()
    fork = await Session.open(log, FORK, learned(), format=None)
    await turn(fork, 12)
    await fork.close()
    cleared = await Session.open(log, CLEARED, setup(), format="openai-chat")
    await cleared.say(message("user", "Hello."))
    await cleared.clear()
    await cleared.close()
    paid = await Session.open(log, PAID, setup(), format="openai-chat")
    await turn(paid, 13)
    await paid.close()


async def turn(session: Session, number: int) -> None:
    await session.say(message("user", f"Read page {number}."))
    await session.request()
    call = {"id": f"c{number}", "type": "function"}
    call |= {"function": {"name": "read", "arguments": json.dumps({"page": number})}}
    await session.answer(message("assistant", "", tool_calls=[call]))
    await session.say(message("tool", f"{number}: {PAGE}", tool_call_id=f"c{number}"))
    await session.request()
    await session.answer(message("assistant", f"Page {number} is read."), usage=Usage(900, 20))


async def contents(log: Log) -> dict[str, Any]:
    """What a log holds, in a form that does not depend on the version that reads it."""
    names = [each.session for each in (await log.sessions()).sessions]
    return {name: await _session(log, name) for name in names}


async def _session(log: Log, name: str) -> dict[str, Any]:
    entries = await log.read(name)
    outline = (await log.visible(name)).outline
    return {
        "entries": [
            [entry.seq, str(entry.id), entry.time.isoformat(), entry.kind] for entry in entries
        ],
        "export": _digest([line.encode() async for line in export_session(log, name)][1:]),
        "requests": {
            str(entry.seq): await _request(log, name, entry.seq)
            for entry in entries
            if entry.kind == Requested.KIND
        },
        "folds": [[fold.seq, *map(str, fold.spans)] for fold in outline.folds],
        "found": sorted(hit.entry.seq for hit in await log.search(SEARCHED, session=name)),
    }


async def _request(log: Log, name: str, seq: int) -> str | None:
    """A digest of the messages that were sent; None where some of them are forgotten."""
    try:
        return _digest(await rebuilt(log, name, seq))
    except Unrebuildable:
        return None


def _digest(pieces: Iterable[bytes]) -> str:
    return sha256(b"\n".join(pieces)).hexdigest()


async def write(name: str) -> None:
    path = FORMATS / f"{name}.db"
    held: dict[str, Any] = {}
    async with SqliteStore(path) as store:
        await fill(store.log())
        held["sqlite"] = await contents(store.log())
    with Cluster() as cluster:
        address = cluster.database("refold")
        await migrate(address, partitions=1)
        async with PostgresStore(address) as store:
            await fill(store.log())
            held["postgres"] = await contents(store.log())
        dump = cluster.run("pg_dump", "--no-owner", "--inserts", "--dbname", address)
    path.with_suffix(".sql").write_text(dump, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(held) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
