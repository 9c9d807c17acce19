"""kill -9 of what makes a fold, in mid-fold, while a slow summarizer is waited for."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import re
from collections import Counter

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from service_processes import (
    DAY,
    YEAR,
    SlowModel,
    kill,
    refold_over,
    talk,
    talk_until_it_folds,
    until,
)

from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStarted, FoldStepped, Message
from refold.stores import open_store


async def values(store, session):
    async with open_store(store) as opened:
        return [CODEC.decode(entry) for entry in await opened.log().read(session)]


def kinds(found):
    return Counter(type(value) for value in found)


async def check_ended_once(store, session, model, paid_before, messages):
    """One fold began and was completed; nothing is lost; what was recorded was not paid again."""

    async def ended():
        found = await values(store, session)
        return found if kinds(found)[FoldCompleted] + kinds(found)[FoldFailed] else None

    found = await until(ended)
    await asyncio.sleep(1.0)  # a second end would come now
    found = await values(store, session)
    assert (kinds(found)[FoldStarted], kinds(found)[FoldCompleted]) == (1, 1)
    assert kinds(found)[FoldFailed] == 0
    assert kinds(found)[Message] == len(messages)
    steps = [value.name for value in found if isinstance(value, FoldStepped)]
    assert len(steps) == len(set(steps)), "each result is recorded once"
    calls = Counter(model.summaries)
    assert [calls[one] for one in paid_before] == [1, 1], "a recorded call is not paid again"
    parts = [re.search(r"part (\d+) of \d+", one)[1] for one in model.summaries]
    assert len(parts) == len(steps) + 1, f"only the call that was cut is made again: {parts}"


async def test_another_worker_ends_what_a_killed_one_began(dbos_address, tmp_path):
    model = SlowModel(before_slow=2)
    async with refold_over(tmp_path, dbos_address, model) as refold:
        # The clocks of three machines: a dead worker is known by its lock, not by any of them.
        for name, seconds in (("ahead", YEAR), ("behind", -DAY)):
            (tmp_path / name).write_text(str(seconds))
        (_, client), first = await asyncio.gather(
            refold.serve("--no-worker"), refold.worker(clock=tmp_path / "ahead")
        )
        messages, session = await talk_until_it_folds(client)
        await asyncio.wait_for(model.waiting.wait(), 60)
        await kill(first)
        # The dead worker's lock is not free for long enough yet; requests are answered meanwhile.
        second, (messages, same) = await asyncio.gather(
            refold.worker(clock=tmp_path / "behind"), talk(client, 1, messages, length=10)
        )
        messages, _ = await talk(client, 1, messages, length=10)
        assert same == session
        model.released.set()
        await check_ended_once(dbos_address, session, model, model.summaries[:2], messages)
        assert second.returncode is None
        messages, same = await talk(client, 1, messages, length=10)
        assert same == session


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'refold.db'}"
    return request.getfixturevalue("dbos_address")


async def test_a_service_that_was_killed_ends_its_fold_when_it_is_back(store, tmp_path):
    model = SlowModel(before_slow=2)
    async with refold_over(tmp_path, store, model) as refold:
        process, client = await refold.serve()
        messages, session = await talk_until_it_folds(client)
        await asyncio.wait_for(model.waiting.wait(), 60)
        messages, _ = await talk(client, 1, messages, length=10)
        await kill(process)
        _, client = await refold.serve()
        messages, same = await talk(client, 1, messages, length=10)
        assert same == session
        model.released.set()
        await check_ended_once(store, session, model, model.summaries[:2], messages)
