"""Every word that the log has is found: by the command, by the API and by the model's tool."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json

import pytest
from api_serving import API, serving
from refold_commands import quick, terminal

from refold.log import Author, Message, Opened, Span
from refold.recall import recall_tools
from refold.stores import open_store

CHARS = 310_000
PLACES = {0: "ALPHA-11", 190_000: "MID-19000-K", 308_000: "RF-60418-K"}
COMBINED = "cafe\u0301bar"


def long_text():
    """A text of 310,000 characters, with a word of its own at each of the places."""
    text = ("some words of hay, " * (CHARS // 19 + 1))[:CHARS]
    for at, word in PLACES.items():
        text = f"{text[:at]} {word} {text[at + len(word) + 2 :]}"
    return f"{text} {COMBINED} \U0001f680"


WORDS = [*PLACES.values(), "cafébar", "\U0001f680"]


async def fill(address):
    order = {"id": "ZX-99812-Q", "state": "open"}
    returned = {"part_kind": "tool-return", "tool_name": "orders", "content": order}
    bodies = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hello"}]},
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": long_text()}]},
        {"kind": "request", "parts": [{**returned, "tool_call_id": "c1"}]},
    ]
    drafts = [Author().draft(Opened("pydantic-ai", "balanced"))]
    drafts += [Author().draft(Message(json.dumps(body).encode())) for body in bodies]
    async with open_store(address) as store:
        await store.log("acme").append("long", drafts, expected=0)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        found = f"sqlite:///{tmp_path}/refold.db"
    else:
        found = request.getfixturevalue("postgres_address")
    asyncio.run(fill(found))
    return found


def test_the_command_finds_every_word_and_shows_it(terminal, address):
    where = ("--store", address, "--tenant", "acme")
    for word in WORDS:
        for more in ((), ("--session", "long")):
            [hit] = json.loads(terminal.does("search", word, *more, *where, "--json"))
            assert (hit["session"], hit["seq"]) == ("long", 3)
            assert (COMBINED if "caf" in word else word) in hit["excerpt"]
            assert len(hit["excerpt"]) < 300
    assert "RF-60418-K" in terminal.does("search", "RF-60418-K", *where)
    [hit] = json.loads(terminal.does("search", "ZX-99812-Q", *where, "--json"))
    assert hit["seq"] == 4
    assert "ZX-99812-Q" in hit["excerpt"]
    assert terminal.run("forget", "long", "--span", "3", "--yes", *where).returncode == 0
    for word in WORDS:
        assert json.loads(terminal.does("search", word, *where, "--json")) == []


async def test_the_api_and_the_models_tool_find_every_word(address):
    async with serving(store=open_store(address)) as service:
        async with service.client(await service.key("acme")) as client:
            for word in [*WORDS, "ZX-99812-Q"]:
                answer = await client.get(f"{API}/search", params={"query": word})
                [hit] = [one for one in answer.json()["found"] if _holds(one["excerpt"], word)]
                assert hit["seq"] == (4 if word.startswith("ZX") else 3)
            found = await client.get(f"{API}/search/sessions", params={"query": "RF-60418-K"})
            assert [one["session"]["name"] for one in found.json()["found"]] == ["long"]
            listed = await client.get(f"{API}/sessions", params={"search": "RF-60418-K"})
            assert [one["name"] for one in listed.json()["sessions"]] == ["long"]
        log = service.store.log("acme")
        tools = {tool.name: tool for tool in recall_tools(log, "long", everywhere=True)}
        for word in [*WORDS, "ZX-99812-Q"]:
            for name in ("recall_search", "recall_everywhere"):
                answer = await tools[name].run({"query": word})
                assert _holds(answer, word), answer
        await log.fork("long", "fork")
        await log.forget("long", Span(3, 3))
        for word in WORDS:
            assert not _holds(await tools["recall_everywhere"].run({"query": word}), word)


def _holds(text, word):
    return (COMBINED if "caf" in word else word) in text
