"""Boards are sessions, and no list of conversations has them unless it is asked to."""

import asyncio
import json

import pytest
from api_serving import API, serving
from boards import BRANCH
from typer.testing import CliRunner

from refold.cli.app import app
from refold.log import Author, Opened
from refold.memory import Board
from refold.memory.board import conversations
from refold.stores import open_store


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/refold.db"
    return request.getfixturevalue("postgres_address")


async def filled(log):
    """A board between conversations."""
    for name in ("first", "second", None, "third"):
        if name is None:
            await Board(log, BRANCH).add("The tests run with make test.")
        else:
            await log.append(name, [Author().draft(Opened("openai-chat", "balanced"))], expected=0)


def board_in(names):
    return [name for name in names if name.startswith("refold-board")]


async def test_pages_are_full_without_boards(address):
    async with open_store(address) as store:
        log = store.log()
        await filled(log)
        names, page = [], None
        while True:
            listed = await conversations(log, limit=2, page=page)
            names.append([info.session for info in listed.sessions])
            if (page := listed.next) is None:
                break
        assert names == [["third", "second"], ["first"]]
        found = await conversations(log, search="refold-board")
        assert found.sessions == ()


async def test_the_api_lists_them_only_if_asked(address):
    async with serving(store=open_store(address)) as service:
        await filled(service.store.log("acme"))
        async with service.client(await service.key("acme", "read")) as client:
            usual = (await client.get(f"{API}/sessions")).json()["sessions"]
            whole = (await client.get(f"{API}/sessions", params={"internal": True})).json()
        assert [row["name"] for row in usual] == ["third", "second", "first"]
        assert len(board_in(row["name"] for row in whole["sessions"])) == 1


def test_the_command_lists_them_only_if_asked(tmp_path):
    store = f"sqlite:///{tmp_path}/refold.db"

    async def fill():
        async with open_store(store) as opened:
            await filled(opened.log())

    asyncio.run(fill())

    def names(*options):
        result = CliRunner().invoke(app, ["sessions", "--json", "--store", store, *options])
        assert result.exit_code == 0, result.output
        return [row["name"] for row in json.loads(result.stdout)]

    assert names() == ["third", "second", "first"]
    assert len(board_in(names("--all"))) == 1
