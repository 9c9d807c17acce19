"""What counts say of one conversation: the same in each program that has it open."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false
# Tests know which of many kinds of parts they look at.

from agents import Scripted, agent_with, said
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from refold import Refold
from refold.log import CODEC, Requested
from refold.models import counter_for
from refold.session.explain import explain_past, explanation
from refold.stores import MemoryStore

ratios = st.floats(0.5, 2.5)


def model_that_reports(ratio: float) -> Scripted:
    """It says that it took this many tokens for each one that the plain counter counts."""

    def reply(_, messages):
        plain = sum(counter_for("").text(text) + 8 for text in said(messages))
        return ModelResponse(
            [TextPart("An answer. " * 40)], usage=RequestUsage(input_tokens=round(ratio * plain))
        )

    return Scripted(reply)


async def ask(memory, *reported, session="c"):
    for ratio in reported:
        agent = agent_with(memory, model_that_reports(ratio))
        await agent.run("What is this? " * 80, conversation_id=session)


async def figures(memory, session="c"):
    """What the chat's status line shows of it: its tokens, and where it acts."""
    opened = await memory.session(session, Scripted(lambda *_: "").model)
    await opened.catch_up()
    return opened.filled, opened.setup.counter.name, opened.setup.counter.spread


async def explained(memory, session="c"):
    """What `refold sessions` and `refold explain` show of it."""
    found = await explanation(memory.log, session)
    return found.account.sent


@settings(max_examples=12)
@given(st.lists(ratios, min_size=1, max_size=8), st.lists(ratios, max_size=4))
async def test_two_programs_show_the_same_of_a_conversation(reported, others):
    store = MemoryStore()
    async with Refold(store, recall=False) as one:
        await ask(one, *others, session="other")  # it knows the model from elsewhere
        await ask(one, *reported)
        async with Refold(store, recall=False) as restarted:
            shown = await figures(one)
            assert await figures(restarted) == shown
            assert await explained(one) == shown[0].total
            # Either goes on, and the other one, still open, shows the same.
            for memory in (restarted, one):
                await ask(memory, reported[-1])
                assert await figures(one) == await figures(restarted)


async def test_a_restarted_program_goes_on_with_what_was_learned():
    store = MemoryStore()
    async with Refold(store, recall=False) as one:
        await ask(one, *[1.5] * 5)
        before = await figures(one)
    assert before[1].startswith("estimate for other * 1.")
    async with Refold(store, recall=False) as restarted:
        await ask(restarted, 1.5)
        filled, *counter = await figures(restarted)
        assert tuple(counter) == before[1:]
        assert filled.total > before[0].total
        requests = [one.seq for one in await restarted.log.read("c") if one.kind == Requested.KIND]
        records = [CODEC.decode(one) for one in await restarted.log.read("c")]
        corrections = [one.plan.get("correction") for one in records if isinstance(one, Requested)]
        assert corrections[0] is None
        assert corrections[-1] == corrections[-2]
        sent = (await explain_past(restarted.log, "c", requests[-1])).account.sent
        assert sent < filled.total
        # A conversation that is new benefits, too.
        await ask(restarted, 1.5, session="next")
        assert (await figures(restarted, "next"))[1:] == before[1:]
