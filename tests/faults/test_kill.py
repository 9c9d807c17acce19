"""Many processes write to one file, and are killed while they write. Nothing may be lost."""

from random import Random

import pytest
import writers
from amounts import seed_of, set_amount
from crowd import Crowd
from inspection import check, entries_of
from scenarios import TODAY, drafts, message, open_store

from refold.errors import SessionForgotten

KILLS = set_amount("REFOLD_KILLS", few=20, quick=60, ci=60, nightly=200, thorough=1_000)
LOOK_EVERY = 20


def look(nursery, path, heads):
    """What a process that opens the store now finds: nothing that was there is gone."""
    found, integrity = nursery.run("look", path=path)
    assert integrity == [["ok"]]
    assert heads.keys() <= found.keys()
    assert all(found[session] >= head for session, head in heads.items())


async def test_no_kill_loses_or_doubles_an_entry(nursery, tmp_path):
    path = tmp_path / "refold.db"
    opening = drafts("shared", writers.OPENING)
    async with open_store(path) as store:
        await store.log().append(writers.SHARED, opening, expected=0)
    random = Random(seed_of("kills"))  # noqa: S311 - which is killed when; the rest is up to the machine
    crowd = Crowd(
        lambda writer, number: nursery.start("write", path=path, writer=writer, number=number),
        random,
    )
    crowd.listen(writers.WRITERS * 10)
    while crowd.figures["kills"] < KILLS:
        crowd.listen(random.randint(1, 60))
        crowd.kill_one()
        if crowd.figures["kills"] % LOOK_EVERY == 0:
            look(nursery, path, crowd.heads)
    crowd.stop()

    await check(path)
    found = await entries_of(path)
    acknowledged = crowd.check(found)
    assert sum(map(len, found.values())) == acknowledged + len(opening)
    figures = {**crowd.figures, "acknowledged": acknowledged}
    print("\n" + ", ".join(f"{value} {name}" for name, value in figures.items()))  # noqa: T201
    assert crowd.figures["in mid-write"] > KILLS / 4


async def test_what_is_appended_after_another_process_indexed_is_found(tmp_path):
    """A writer's memory of its session is older than what the other has noted there."""
    path = tmp_path / "refold.db"
    async with open_store(path) as ours, open_store(path) as theirs:
        log = ours.log()
        await log.append("one", drafts("opening", writers.OPENING), expected=0)
        for number in range(1, 4):
            await log.append("one", drafts(f"{number}", message(f"w{number}")), expected=number)
            assert len(await theirs.log().search(f"w{number}")) == 1
    await check(path)


async def test_nothing_is_appended_to_what_another_process_forgot(tmp_path):
    """Also while a fork still reads the forgotten session's entries."""
    path = tmp_path / "refold.db"
    async with open_store(path) as ours, open_store(path) as theirs:
        log = ours.log()
        await log.append("one", drafts("opening", writers.OPENING, message("x")), expected=0)
        await log.append("one", drafts("known", message("known")), expected=2)
        await theirs.log().fork("one", "fork", at=2)
        await log.append("one", drafts("more", message("more")), expected=3)
        await theirs.log().expire(int(TODAY.timestamp() * 1000))
        with pytest.raises(SessionForgotten):
            await log.append("one", drafts("late", message("late")), expected=4)
    await check(path)
