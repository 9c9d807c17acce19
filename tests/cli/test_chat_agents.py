"""The agent a chat runs, and what is said when there is none where it was looked for."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from refold.cli.chat.models.agents import agent_at, has_refold, plain_agent
from refold.errors import InvalidInput
from refold.integrations.pydantic_ai import Refold

MINE = """
from dataclasses import dataclass
from pydantic_ai import Agent
from beside_it import NAME

@dataclass
class Team:
    lead: Agent

support = Agent("test", name=NAME)
sales = Agent("test")
team = Team(support)
number = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "beside_it.py").write_text("NAME = 'Support'\n")
    (tmp_path / "mine_here.py").write_text(MINE)
    package = tmp_path / "package_here" / "inner"
    package.mkdir(parents=True)
    (package / "deep.py").write_text(MINE)
    (tmp_path / "one_here.py").write_text("from pydantic_ai import Agent\nonly = Agent('test')\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        if "_here" in name or name in ("beside_it", "other", "broken"):
            del sys.modules[name]


@pytest.mark.parametrize(
    "where",
    ["mine_here:support", "mine_here:team.lead", "package_here.inner.deep:support"],
)
def test_modules_of_this_folder(where):
    assert agent_at(where).name == "Support"


def test_a_file_anywhere_with_what_lies_beside_it(folder, monkeypatch):
    monkeypatch.chdir("/")
    assert agent_at(f"{folder}/mine_here.py:team.lead").name == "Support"
    assert isinstance(agent_at(f"{folder}/one_here.py"), Agent)


def test_a_file_does_not_take_the_place_of_a_module(folder):
    (folder / "json.py").write_text("from pydantic_ai import Agent\nagent = Agent('test')\n")
    import json  # noqa: PLC0415 - the real one

    assert isinstance(agent_at("./json.py:agent"), Agent)
    assert sys.modules["json"] is json


def test_the_only_agent_needs_no_name():
    assert isinstance(agent_at("one_here"), Agent)
    with pytest.raises(InvalidInput, match=r"2 agents.*mine_here:support, mine_here:sales"):
        agent_at("mine_here")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("mine_here:suport", "no suport. There is: mine_here:support"),
        ("mine_here:sale", "There is: mine_here:sales"),
        ("mine_here:number", "is a int, not a Pydantic AI agent"),
        ("mine_here:team.x.y", "has no team.x.y"),
        ("beside_it:NAME", "Make one there"),
        ("nowhere_here:agent", "There is no module nowhere_here"),
        ("mine_here.inner:agent", "mine_here"),
        ("no/such.py:agent", "There is no file 'no/such.py'"),
        ("./package_here:agent", "There is no file"),
        (":agent", "names no agent"),
        ("", "names no agent"),
        ("a b:agent", "is not a module's name"),
        ("..:agent", "is not a module's name"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(where, said):
    with pytest.raises(InvalidInput, match=said):
        agent_at(where)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nimport not_installed_here\n", "not_installed_here.*line 2.*Install what it needs"),
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero .line 2 of .*broken.py"),
        ("def (:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_module_that_fails_says_where(folder, text, said):
    (folder / "broken.py").write_text(text)
    for where in ("broken:agent", "broken.py:agent"):
        with pytest.raises(InvalidInput, match=said):
            agent_at(where)


async def test_a_plain_agent_has_no_tools_and_no_memory():
    agent = plain_agent(TestModel())
    assert has_refold(agent) is None
    assert "plain words" in str((await agent.run("hello")).all_messages()[0])
    mine = plain_agent(TestModel(), instructions="Only rhymes.")
    assert "Only rhymes." in str((await mine.run("hello")).all_messages()[0])


async def test_the_memory_of_an_agent_is_found():
    async with Refold() as memory:
        assert has_refold(Agent(TestModel(), capabilities=[memory])) is memory
        assert has_refold(Agent(TestModel())) is None


def test_nothing_is_left_in_the_path_twice(folder):
    agent_at("mine_here:support")
    agent_at("mine_here:sales")
    assert sys.path.count(str(Path(folder))) == 1
