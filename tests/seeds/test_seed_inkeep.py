"""Inkeep's own scenarios, played through real sessions: a chat that plans a project."""

from folding import spelled
from shown import turn, used
from talks import SAID, Talk, Writer, chat, of_500, setup, texts, work

from refold.log import Author, Message
from refold.recall import recall_tools
from refold.testing.wire import Asked, Responded
from refold.view.profiles import INKEEP, STATIC_MARKER

ROOMY = 1_000_000


# Inkeep: planning a software project, until half of the window is used.

PLANNED = "The shop needs a catalogue and a basket; they chose small services and looked at logins."
STAGES = ("requirements", "architecture", "catalogue", "login", "review")


def planning():
    """Twenty messages, each stage with a long tool result."""
    for nth, stage in enumerate(STAGES):
        result = f"{stage}_report: " + f"finding about {stage}. " * 150
        step = used(f"p{nth}", "inspect", result, stage=stage)
        yield from turn(f"Let us talk about {stage}.", step, reply=f"Noted: {stage}.")


async def test_a_planning_chat_that_reaches_half_of_the_window(log):
    write = Writer(PLANNED)
    talk = await Talk.open(log, setup(INKEEP, 10_000), write=write)
    whole = [*planning()]
    assert len(whole) == 20
    await talk.go(*whole)
    assert write.asked == 0
    assert max(one.current_tokens for one in talk.events("session.usage_info")) < 5_000
    await talk.say(Asked("And what does the login need? " + "Think of everything. " * 80))
    latest = texts(await talk.request())
    assert write.asked == 1
    assert latest[0].startswith(f"[Summary of 20 earlier messages]\n{PLANNED}\n\n## Large results")
    assert latest[1].startswith("And what does the login need?")
    assert len(latest) == 2
    # What the tools returned is kept to the letter, and found and read again.
    search, read = recall_tools(log, "s")
    for stage in STAGES:
        found = await search.run({"query": f"{stage}_report"})
        assert stage in found
    (there,) = [one.seq for one in await log.read("s") if b"login_report" in one.body]
    assert "finding about login." in await read.run({"at": f"{there}.0"})
    # The agent goes on as before.
    await talk.answer(Responded("A second factor."))
    request = await talk.go(*work(*range(4)))
    assert PLANNED in texts(request)[0]
    assert await talk.folds() == (1, 1, 0)
    await talk.all_rebuilt()


async def test_fixed_limits_apply_while_nothing_can_be_summarized(log):
    write = Writer(fails=True)
    talk = await Talk.open(log, setup(INKEEP, 40_000), write=write)
    request = await talk.go(*of_500(40))
    assert len(request.messages) == 39
    await talk.say(Asked(SAID))
    request = await talk.request()
    assert write.asked == 1
    # 8,000 tokens before the latest, with the marker for what is left out.
    assert texts(request) == [STATIC_MARKER.format(count=25), *texts_of(40)[-15:], SAID]
    await talk.go(Responded("Yes."), *chat(*range(20)))
    await talk.say(Asked("And now?"), Asked("Well?"))
    request = await talk.request()
    assert len(request.messages) == 50
    assert write.asked == 1
    await talk.all_rebuilt()


def texts_of(count):
    return [one.text for one in of_500(count)]


async def test_without_a_summarizer_fixed_limits_apply_from_the_start(log):
    talk = await Talk.open(log, setup(INKEEP, ROOMY))
    await talk.go(*chat(*range(40)))
    await talk.say(Asked("And now?"), Asked("Well?"))
    request = await talk.request()
    assert len(request.messages) == 50
    assert await talk.folds() == (0, 0, 0)


async def test_with_a_summarizer_all_of_it_is_sent_without_a_limit_of_messages_or_tokens(log):
    write = Writer(PLANNED)
    talk = await Talk.open(log, setup(INKEEP, ROOMY), write=write)
    said = of_500(60)  # more than 50 messages, and more than 8,000 tokens before the latest
    request = await talk.go(*said, Asked("And now?"), Responded("Yes."))
    assert texts(request) == [*texts_of(60), "And now?"]
    assert write.asked == 0


async def test_an_earlier_summary_is_found_beyond_10000_messages(log):
    write = Writer(PLANNED)
    talk = await Talk.open(log, setup(INKEEP, 10_000), write=write)
    await talk.go(*planning())
    await talk.say(Asked("And the login? " + "Think of everything. " * 120))
    assert PLANNED in texts(await talk.request())[0]
    (latest,) = spelled("pydantic-ai", Asked("More."))
    drafts = [Author().draft(Message(latest)) for _ in range(INKEEP.window.read)]
    await log.append("s", drafts, expected=None)
    again = await Talk.open(log, setup(INKEEP, ROOMY), format=None, write=write)
    shown = texts(await again.request())
    assert PLANNED in shown[0]
    assert shown[1:] == ["More."] * INKEEP.window.read
