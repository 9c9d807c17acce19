"""A board and agents: new conversations are told of it, and a model fills it by its one tool."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportOptionalMemberAccess=false

import pytest
from agent_memories import path
from boards import BRANCH
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from refold import Refold
from refold.errors import InvalidInput, NotRemembered, SessionNotFound
from refold.log import Span

pytestmark = pytest.mark.req("R095")


class Answering:
    """Answers the same each time, and keeps what it was asked."""

    def __init__(self, text="The tests run with `make test`."):
        self.instructions = []
        self._text = text
        self.model = FunctionModel(self._answer, model_name="answering")

    def _answer(self, messages, info):  # noqa: ARG002 - as a model is called
        self.instructions.append(info.instructions)
        return ModelResponse([TextPart(self._text)])


class Reading:
    """Calls the tool with these arguments, one call after the other, and ends."""

    def __init__(self, *calls, ends=True):
        self._calls = calls
        self._ends = ends
        self.tools = []
        self.requests = 0
        self.settings = []
        self.model = FunctionModel(self._answer, model_name="reading")

    def _answer(self, messages, info):
        self.requests += 1
        self.tools.append([one.name for one in info.function_tools])
        self.settings.append(info.model_settings)
        returned = [
            one for said in messages for one in said.parts if isinstance(one, ToolReturnPart)
        ]
        if returned and self._ends:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("context_board", call) for call in self._calls])


def fact(text="The tests run with `make test`.", entries=(4,)):
    return {"action": "add", "text": text, "entries": [*entries]}


async def test_a_new_conversation_is_told_and_an_older_one_goes_on_as_it_began(path):
    answering = Answering()
    async with Refold(path, board=BRANCH) as memory:
        agent = Agent(answering.model, instructions="Be brief.", capabilities=[memory])
        await agent.run("How do the tests run?", conversation_id="first")
        done = await memory.consolidate("first", Reading(fact()).model)
        assert [one.text for one in done.added] == ["The tests run with `make test`."]
        await agent.run("And now?", conversation_id="first")
        await agent.run("Hello.", conversation_id="second")
        await memory.board.add("Another.")
    async with Refold(path, board=BRANCH) as memory:  # another process
        agent = Agent(answering.model, instructions="Be brief.", capabilities=[memory])
        await agent.run("Go on.", conversation_id="second")
    first, again, new, later = answering.instructions
    assert first == again == "Be brief."
    assert new.startswith("Be brief.\n\nNotes that earlier sessions")
    assert new.endswith("- The tests run with `make test`.")
    assert later == new  # to the letter, so that a cache still holds


@pytest.mark.req("R096")
async def test_consolidation_changes_the_board_and_a_fold_the_sessions_view(path):
    """Each holds a part of what was said, and neither touches what the other changes."""
    prompts, sent = [f"Question {nth}: {'and so on, ' * 40}" for nth in range(12)], []

    def answer(messages, info):  # noqa: ARG001 - as a model is called
        sent.append(str(messages))
        return ModelResponse([TextPart("The tests run with `make test`.")])

    model = FunctionModel(answer)
    async with Refold(path, board=BRANCH) as memory:
        agent = Agent(model, capabilities=[memory])
        for prompt in prompts:
            await agent.run(prompt, conversation_id="first")
        await memory.consolidate("first", Reading(fact()).model)
        await agent.run("And now?", conversation_id="first")
        board = await memory.board.state()
        assert [one.text for one in board.facts] == ["The tests run with `make test`."]
        assert prompts[5] not in board.text
        assert all(prompt in sent[-1] for prompt in prompts)
        await (await memory.session("first", model)).compact()
        await agent.run("And then?", conversation_id="first")
        assert await memory.board.state() == board
        assert any(prompt not in sent[-1] for prompt in prompts)


async def test_delegated_work_is_not_told(path):
    answering = Answering()
    async with Refold(path, board=BRANCH) as memory:
        await memory.board.add("A fact.")
        helper = Agent(answering.model, name="helper", capabilities=[memory])
        agent = Agent(TestModel(call_tools=["ask"]), capabilities=[memory])

        @agent.tool_plain
        async def ask() -> str:
            return (await helper.run("Help.")).output

        await agent.run("Go.", conversation_id="first")
    assert answering.instructions == [None]


async def test_who_reads_has_one_tool_and_says_what_it_is_for(path):
    reading = Reading(fact())
    async with Refold(path, board=BRANCH) as memory:
        await Agent(Answering().model, capabilities=[memory]).run("How?", conversation_id="first")
        await memory.consolidate("first", reading.model)
    assert reading.tools == [["context_board"]] * 2
    headers = reading.settings[0]["extra_headers"]
    assert headers == {"X-Interaction-Type": "memory-consolidation"}


async def test_who_never_ends_is_ended_and_what_it_added_stays(path):
    reading = Reading(fact(), {"action": "prune", "number": 99}, ends=False)
    async with Refold(path, board=BRANCH) as memory:
        await Agent(Answering().model, capabilities=[memory]).run("How?", conversation_id="first")
        done = await memory.consolidate("first", reading.model)
    assert len(done.added) == 1
    assert reading.requests == 12


async def test_a_model_that_fails_is_told_of_and_nothing_is_lost(path):
    def fails(messages, info):  # noqa: ARG001 - as a model is called
        raise ConnectionError("nobody there")

    async with Refold(path, board=BRANCH) as memory:
        await Agent(Answering().model, capabilities=[memory]).run("How?", conversation_id="first")
        with pytest.raises(NotRemembered, match="nobody there"):
            await memory.consolidate("first", FunctionModel(fails))
        done = await memory.consolidate("first", Reading(fact()).model)
        assert len(done.added) == 1


async def test_without_a_board_or_a_conversation_the_error_says_what_to_do(path):
    async with Refold(path) as memory:
        assert memory.board is None
        with pytest.raises(InvalidInput, match="branch_of"):
            await memory.consolidate("first", TestModel())
    async with Refold(path, board=BRANCH) as memory:
        with pytest.raises(SessionNotFound):
            await memory.consolidate("first", TestModel())


async def test_what_is_forgotten_in_a_conversation_is_gone_from_its_instructions(path):
    answering = Answering()
    async with Refold(path, board=BRANCH) as memory:
        agent = Agent(answering.model, capabilities=[memory])
        await agent.run("How do the tests run?", conversation_id="first")
        await memory.consolidate("first", Reading(fact()).model)
        await agent.run("Hello.", conversation_id="second")
        session = await memory.session("first", answering.model)
        await session.forget(Span(4, 4))
        await agent.run("Go on.", conversation_id="second")
    assert "make test" in answering.instructions[1]
    assert answering.instructions[2] is None
