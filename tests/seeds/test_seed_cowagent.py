"""cowagent's own scenarios, played through real sessions, and one that every profile plays."""

import pytest
from shown import changed, turn, used
from talks import WORDS, Talk, Writer, chat, setup, texts, until, work

from refold.log import Span
from refold.testing.wire import Asked, Responded
from refold.view.profiles import COWAGENT, PROFILES

ROOMY = 1_000_000


# cowagent: more than twenty turns, or more than fifty thousand tokens.


async def test_above_twenty_turns_the_oldest_half_is_folded(log):
    write = Writer()
    talk = await Talk.open(log, setup(COWAGENT, ROOMY), write=write)
    await talk.go(*work(*range(20), size=20))
    assert write.asked == 0
    await talk.go(*work(20, size=20))
    await talk.settled()
    assert write.asked == 1
    assert write.material.messages == 40
    await talk.say(Asked("And now?"))
    shown = texts(await talk.request())
    assert len(shown) == 11 * 4 + 1
    assert shown[0] == (f"[Summary of 40 earlier messages]\n{WORDS}\n\nPlease read src/part_10.py.")
    assert shown[-1] == "And now?"
    await talk.all_rebuilt()


async def test_the_summary_of_trimmed_turns_takes_effect_from_the_next_turn_on(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COWAGENT, ROOMY), write=write)
    await talk.go(*chat(*range(20)))
    await talk.say(Asked("Number 21."))
    during = texts(await talk.request())
    assert await talk.folds() == (0, 0, 0)
    assert during[0] == "Question 10?"  # trimmed at once
    assert len(during) == 21
    await talk.answer(Responded("It is over."))
    await until(lambda: write.asked)
    assert not any("[Summary of" in text for text in texts(await talk.request()))
    write.go.set()
    await talk.settled()
    await talk.say(Asked("Number 22."))
    shown = texts(await talk.request())
    assert shown[0] == f"[Summary of 20 earlier messages]\n{WORDS}\n\nQuestion 10?"
    assert shown[-1] == "Number 22."
    assert not any("Question 9?" in text for text in shown)


async def test_above_fifty_thousand_tokens_the_oldest_half_is_folded(log):
    write = Writer()
    talk = await Talk.open(log, setup(COWAGENT, ROOMY), write=write)
    long = "y" * 3_960  # 995 tokens with its message
    for nth in range(6):
        step = [used(f"c{nth}{at}", "read", long) for at in range(8)]
        await talk.go(*turn(f"Turn {nth}.", *step))
        await talk.settled()
    assert write.asked == 0
    await talk.go(*turn("Turn 6.", *[used(f"d{at}", "read", long) for at in range(8)]))
    await talk.settled()
    assert write.asked == 1
    shown = texts(await talk.go(*chat(7)))
    assert shown[0].endswith("\n\nTurn 3.")
    assert "Turn 6." in shown


# Every profile: the log is the truth.


@pytest.mark.parametrize("name", [*PROFILES])
async def test_replaying_a_completed_fold_gives_the_same_view(log, name):
    given = setup(changed(PROFILES[name], reserve=0), 20_000)
    talk = await Talk.open(log, given, write=Writer())
    await talk.go(*work(*range(6)))
    await talk.session.compact()
    before = await talk.go(*work(6, 7))
    again = await Talk.open(log, given, format=None, write=Writer())
    after = await again.request()
    assert [*after.messages][: len(before.messages)] == [*before.messages]
    assert len(after.messages) == len(before.messages) + 1
    (fold,) = (await log.visible("s", last=0)).outline.folds
    assert all(isinstance(span, Span) for span in fold.spans)
    request = await again.go(*work(8))
    assert any("value_8" in text for text in texts(request))
    await again.all_rebuilt()
