"""Agents that ask beside their conversation, and what a session is called."""

import pytest
from gateway_world import CHAT, World

from refold.gateway.sessions import AgentIdentity
from refold.models import ModelSettings
from refold.session.explain import explanation
from refold.testing.upstream import Reply

MAIN = "You are a careful engineer. Read before you write."
NOTES = "Extract what is worth remembering from this conversation, as a list."


def tools(*names):
    return [{"type": "function", "function": {"name": one, "parameters": {}}} for one in names]


class Agent:
    """A conversation, in which another may ask."""

    def __init__(self, world):
        self.world = world
        self.history = []

    async def ask(self, text, instructions=MAIN, names=("read", "write"), *, beside=False):
        """Ask; the session that answered. What is asked beside is not part of the conversation."""
        said = [*self.history, {"role": "user", "content": text}]
        system = [{"role": "system", "content": instructions}] if instructions else []
        body = {"model": "m", "messages": system + said, "tools": tools(*names)}
        answer = await self.world.ask(CHAT, body)
        if not beside:
            self.history = [*said, answer.json()["choices"][0]["message"]]
        return answer.headers["refold-session"]


@pytest.fixture
async def world():
    one = World(lambda got: Reply(f"Answer {len(got.body['messages'])}."))
    yield one
    await one.aclose()


async def test_a_conversation_keeps_its_session_while_another_agent_asks_beside_it(world):
    agent = Agent(world)
    mine = await agent.ask("Hello.")
    for turn in range(3):
        beside = await agent.ask("Take notes.", NOTES, ["remember"], beside=True)
        assert beside != mine
        assert (await world.log.info(beside)).forked_from == mine
        assert await agent.ask(f"Go on, {turn}.") == mine


@pytest.mark.parametrize(
    ("instructions", "names"),
    [
        (NOTES, ("read", "write")),
        (MAIN, ("remember",)),
        (MAIN + " It is Monday.", ("remember",)),
        (MAIN[:30] + " and kind", ("remember",)),
        ("", ("remember",)),
    ],
)
async def test_an_agent_may_change_its_tools_or_its_instructions(world, instructions, names):
    agent = Agent(world)
    mine = await agent.ask("Hello.")
    assert await agent.ask("Go on.", instructions, names) == mine


def test_who_begins_otherwise_and_has_other_tools_is_another():
    one = AgentIdentity.of("You are a careful engineer.", "a")
    assert not one.is_like(AgentIdentity.of("Extract what is worth remembering.", "b"))
    assert one.is_like(AgentIdentity.of("You are a careful gardener.", "b"))
    assert one.is_like(AgentIdentity.of("Extract what is worth remembering.", "a"))


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (["<system-reminder>\nBe kind.\n</system-reminder>", "Mend the door."], "Mend the door."),
        (["<context cwd='x'>a</context>\n", "<b>Bold</b> words"], "<b>Bold</b> words"),
        (["<context>only this</context>"], "<context>only this</context>"),
        (["  ", "<unclosed> words"], "<unclosed> words"),
        (["a\nb\x1b[31m"], "a b [31m"),
    ],
)
async def test_a_session_is_called_by_what_a_person_said_first(world, said, title):
    blocks = [{"type": "text", "text": one} for one in said]
    body = {"model": "m", "messages": [{"role": "user", "content": blocks}]}
    answer = await world.ask(CHAT, body)
    assert (await world.log.info(answer.headers["refold-session"])).title == title


async def test_what_is_explained_counts_the_tools_and_the_instructions_of_the_newest_request(world):
    agent = Agent(world)
    names = [f"tool_{nth}" for nth in range(40)]
    mine = await agent.ask("Hello.", MAIN * 20, names)
    past = await explanation(world.log, mine)
    async with world.gateway.sessions.using("default", mine) as session:
        request = await session.request()
    assert past.account._replace(conversation=0) == request.plan.account._replace(conversation=0)
    assert past.account.tools > 200


async def test_the_window_that_a_program_set_is_that_of_its_newest_request():
    world = World(lambda _: Reply("Hello."), models={"m": ModelSettings(window=40_000)})
    mine = await Agent(world).ask("Hello.")
    assert (await explanation(world.log, mine)).budget.window == 40_000
    await world.aclose()
