"""Words that are forgotten leave the title too: over a running `refold serve`, in lists and files.

The title of a gateway's session is made of the first prompt, so it is forgotten with that.
"""

import json
import os
from contextlib import asynccontextmanager

import httpx2
import pytest
from forked_serve import start_serve
from hostile_clones import model_server

from refold.log import Author, Message, Opened, Span, Titled
from refold.memory.memory import forget
from refold.stores import open_store
from refold.stores.postgres.maintenance import scrubbed

WORD = "xylographerquixotry"
API = "/api/v1/sessions"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'served.db'}"
    return request.getfixturevalue("postgres_address")


@asynccontextmanager
async def serving(store, upstream, folder):
    process = await start_serve(
        *("--port", "0", "--json", "--no-worker"),
        *("--store", store, "--upstream", f"{upstream}/v1"),
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
    )
    try:
        address = json.loads(await process.stdout.readline())["address"]
        async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def test_a_gateways_title_is_forgotten_with_its_prompt(store, tmp_path):
    prompt = f"The <b>password</b> is {WORD},\n\tand here is what I want you to do with all of it."
    with model_server() as upstream:
        async with serving(store, upstream.address, tmp_path) as client:
            messages = [
                {"role": "system", "content": "You help."},
                {"role": "user", "content": prompt},
            ]
            body = {"model": "gpt-small", "messages": messages}
            answer = await client.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200
            [listed] = (await client.get(API)).json()["sessions"]
            name = listed["name"]
            assert WORD in listed["title"]
            forked = await client.post(f"{API}/{name}/fork", json={"name": "fork"})
            assert forked.status_code in (200, 201), forked.text

            found = (await client.get("/api/v1/search", params={"query": WORD})).json()["found"]
            [seq] = [hit["seq"] for hit in found if hit["role"] == "user"]
            gone = await client.post(f"{API}/{name}/forget", json={"first": seq, "last": seq})
            assert gone.status_code == 200, gone.text
            for answer in (
                await client.get(API),
                await client.get(f"{API}/{name}"),
                await client.get(f"{API}/fork"),
                await client.get("/api/v1/search", params={"query": WORD}),
                await client.get(API, params={"search": WORD}),
            ):
                assert WORD not in answer.text.replace(f'"query":"{WORD}"', "")
    assert [
        file for file in tmp_path.glob("served.db*") if WORD.encode() in file.read_bytes()
    ] == []


@pytest.mark.parametrize("later", [False, True])
async def test_a_title_that_names_no_source_goes_with_most_of_its_words(tmp_path, later):
    """As an older version made it, or a client that knows of no entry."""
    async with open_store(f"sqlite:///{tmp_path / 'refold.db'}") as store:
        log, author = store.log(), Author()
        title = f"The word is {WORD} and noth…"
        said = json.dumps({"role": "user", "content": f"The word is {WORD} and nothing else."})
        values = [Opened("openai-chat", "balanced", None if later else title)]
        values += [Message(said.encode()), Message(b'{"role": "user", "content": "The end."}')]
        values += [Titled(title), Titled("Mine")] if later else []
        await log.append("s", [author.draft(value) for value in values], expected=0)
        await forget(log, "s", Span(3, 3))
        assert (await log.info("s")).title == ("Mine" if later else title)
        erased = await forget(log, "s", Span(2, 2))
        assert (erased.entries, erased.derived) == (1, 1)
        assert (await log.info("s")).title == ("Mine" if later else None)
        assert await log.search(WORD) == []
        files = list(tmp_path.glob("refold.db*"))
        assert [file for file in files if WORD.encode() in file.read_bytes()] == []


async def test_a_copy_deep_in_a_lineage_loses_its_title_too(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'refold.db'}") as store:
        log, author = store.log(), Author()
        said = json.dumps({"role": "user", "content": f"The word is {WORD}."}).encode()
        values = (Opened("openai-chat", "balanced", f"The word is {WORD}", 2), Message(said))
        await log.append("0", [author.draft(value) for value in values], expected=0)
        for nth in range(40):  # beyond the depth at which forks are copied
            await log.fork(str(nth), str(nth + 1))
            note = author.draft(Message(b'{"role": "user", "content": "more"}'))
            await log.append(str(nth + 1), [note], expected=None)
        await log.forget("40", Span(2, 2))
        assert {one.title for one in (await log.sessions(limit=50)).sessions} == {None}
        files = list(tmp_path.glob("refold.db*"))
        assert [file for file in files if WORD.encode() in file.read_bytes()] == []


async def test_the_tables_of_postgresql_lose_the_title_when_they_are_scrubbed(
    postgres, postgres_address, postgres_database
):
    async with open_store(postgres_address) as store:
        log, author = store.log(), Author()
        said = json.dumps({"role": "user", "content": f"The word is {WORD}."}).encode()
        values = (Opened("openai-chat", "balanced", f"The word is {WORD}", 2), Message(said))
        await log.append("s", [author.draft(value) for value in values], expected=0)
        await log.forget("s", Span(2, 2))
        assert (await log.info("s")).title is None
    await scrubbed(postgres.address(postgres_database))
    base = postgres.data / "base"
    assert [
        one for one in base.rglob("*") if one.is_file() and WORD.encode() in one.read_bytes()
    ] == []
