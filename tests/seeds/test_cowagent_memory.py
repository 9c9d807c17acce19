"""The profile `cowagent` as a whole: what leaves the view is remembered, and summed up once."""

import json
from datetime import UTC

import pytest
from remembered import Kept, opened
from shown import turn, used
from talks import WORDS, Writer, chat, texts, work

from refold.errors import NotRemembered
from refold.fold.summary import Summary
from refold.log import FoldFailed, Message
from refold.memory import DailyFiles
from refold.testing.wire import Asked, Responded


class Scripted:
    """Summarizes each time in other words, and tells what it was told before."""

    def __init__(self, seen=None):
        self.asked = 0
        self.seen = seen
        self.before = []

    async def __call__(self, material, job, steps):  # noqa: ARG002 - a writer takes it
        self.asked += 1
        self.before.append([one.summary.words for one in material.earlier])
        asked = [
            shape.text
            for one in material.passages
            for shape in one.shapes
            if shape.kind == "prompt"
        ]
        return Summary("model:x", words=f"Summary {self.asked}: {asked[0]} to {asked[-1]}")


# With a model that summarizes.


async def test_the_summary_is_noted_before_the_turns_leave_the_view(log):
    seen = []

    class Looking(Kept):
        async def write(self, note):
            await super().write(note)
            seen.append((await log.visible("s", last=0)).outline.folds)

    sink = Looking()
    talk = await opened(log, sink, write=Writer())
    await talk.go(*work(*range(21), size=20))
    await talk.settled()
    assert [(one.reason, one.text, one.messages) for one in sink.notes] == [("trimmed", WORDS, 40)]
    assert seen == [()]
    [fold] = (await log.visible("s", last=0)).outline.folds
    assert sink.notes[0].fold == fold.fold


async def test_what_cannot_be_remembered_is_not_folded(log):
    sink = Kept(fails=True)
    talk = await opened(log, sink, write=Writer())
    await talk.go(*chat(*range(21)))
    await talk.settled()
    [failed] = await talk.values(FoldFailed)
    assert failed.reason == "NotRemembered: The disk is gone."
    [told] = talk.events("session.compaction_complete")
    assert told.error == failed.reason
    assert not (await log.visible("s", last=0)).outline.folds


async def test_the_summary_stands_in_the_first_prompt_from_the_next_turn_on(log):
    sink, write = Kept(), Writer(slow=True)
    talk = await opened(log, sink, write=write)
    await talk.go(*chat(*range(21)))
    await talk.say(Asked("Number 21."))
    during = texts(await talk.request())
    assert (len(during), during[0], sink.notes) == (23, "Question 10?", [])
    write.go.set()
    await talk.answer(Responded("So."))
    await talk.settled()
    await talk.say(Asked("Number 22."))
    shown = texts(await talk.request())
    assert shown[0] == f"[Summary of 20 earlier messages]\n{WORDS}\n\nQuestion 10?"
    assert len(sink.notes) == 1


async def test_sixty_turns_with_a_daily_file(log, tmp_path):
    sink, write = DailyFiles(tmp_path, zone=UTC), Scripted()
    talk = await opened(log, sink, write=write)
    most = 0
    for nth in range(60):
        await talk.go(*work(nth, size=20))
        await talk.settled()
        shown = texts(await talk.request())
        asked = [text for text in shown if "Please read" in text]
        most = max(most, len(asked))
        # One summary at most, and only in front of the first prompt that stays.
        assert [text.count("[Summary of") for text in asked][1:] == [0] * (len(asked) - 1)
        assert sum(text.count("[Summary of") for text in shown) == (nth >= 20)
        # Whole turns: what is called is answered.
        assert len(shown) == 4 * len(asked)
    assert most == 20
    # At 21 turns, ten go; then at each 21st again.
    assert write.asked == 4
    assert write.before == [[], *([f"Summary {one}: {_span(one)}"] for one in (1, 2, 3))]
    [file] = (tmp_path / "memory").glob("*.md")
    text = file.read_text()
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(sections) == 4
    assert all(line.startswith("## Trimmed Context (") for line in sections)
    assert [text.count(f"Summary {one}: {_span(one)}") for one in (1, 2, 3, 4)] == [1] * 4
    assert shown[0].startswith("[Summary of 40 earlier messages]\nSummary 4: ")
    assert len(await talk.values(Message)) == 60 * 4
    await talk.all_rebuilt()


def _span(nth):
    """The prompts of the ten turns that the nth summary is about."""
    return f"Please read src/part_{10 * nth - 10}.py. to Please read src/part_{10 * nth - 1}.py."


def heavy(nth, tokens):
    """A turn of about so many tokens of results."""
    return turn(f"Ask {nth}.", *(used(f"c{nth}.{k}", "read", "x" * tokens) for k in range(4)))


async def test_few_turns_are_reduced_to_text_also_where_a_model_summarizes(log):
    sink, write = Kept(), Writer()
    talk = await opened(log, sink, write=write)
    for nth in range(3):
        await talk.go(*heavy(nth, 18_000))
    await talk.settled()
    assert (write.asked, sink.notes) == (0, [])
    await talk.say(Asked("And now?"))
    shown = texts(await talk.request())
    # What was complete when there was too much; the third turn was under way.
    assert shown[:5] == ["Ask 0.", "Done.", "Ask 1.", "Done.", "Ask 2."]
    assert len(shown) == 4 + 10 + 1
    assert (write.asked, sink.notes) == (0, [])


async def test_of_five_turns_or_more_the_first_half_is_summarized(log):
    sink, write = Kept(), Writer()
    talk = await opened(log, sink, write=write)
    for nth in range(6):
        await talk.go(*heavy(nth, 9_000))
    await talk.settled()
    assert (write.asked, [one.reason for one in sink.notes]) == (1, ["trimmed"])
    await talk.say(Asked("And now?"))
    shown = texts(await talk.request())
    assert shown[0] == f"[Summary of 30 earlier messages]\n{WORDS}\n\nAsk 3."


# Without one, fixed limits apply.


async def test_what_fixed_limits_take_out_is_noted_in_the_logs_own_words(log):
    sink = Kept()
    talk = await opened(log, sink)
    await talk.go(*chat(*range(20)))
    assert sink.notes == []
    await talk.say(Asked("Question 20?"))
    shown = texts(await talk.request())
    assert shown[0] == "Question 10?"
    [note] = sink.notes
    assert (note.reason, note.messages) == ("trimmed", 20)
    assert note.text.splitlines()[-2:] == [
        '- The user: "Question 9?"',
        '- The model last said: "Answer 9."',
    ]
    assert len(note.text.splitlines()) <= 10
    await talk.answer(Responded("Answer 20."))
    await talk.go(*chat(*range(21, 30)))
    assert len(sink.notes) == 1
    await talk.go(*chat(30))
    assert [one.messages for one in sink.notes] == [20, 20]
    assert "Question 9?" not in sink.notes[1].text


async def test_what_the_token_limit_takes_out_is_noted_and_what_becomes_text_is_not(log):
    sink = Kept()
    talk = await opened(log, sink)
    for nth in range(3):
        await talk.go(*heavy(nth, 18_000))
    await talk.go(*chat(3))
    assert sink.notes == []
    for nth in range(4, 9):
        await talk.go(*heavy(nth, 12_000))
    assert len(sink.notes) >= 1
    assert '"Ask 0."' in sink.notes[0].text


async def test_after_a_fold_that_failed_fixed_limits_apply_and_are_noted(log):
    sink = Kept()
    talk = await opened(log, sink, write=Writer(fails=True))
    await talk.go(*chat(*range(21)))
    await talk.settled()
    assert (sink.notes, len(await talk.values(FoldFailed))) == ([], 1)
    await talk.say(Asked("Question 21?"))
    shown = texts(await talk.request())
    assert shown[0] == "Question 10?"
    [note] = sink.notes
    assert '"Question 9?"' in note.text


async def test_what_could_not_be_noted_is_tried_again_ever_less_often(log):
    talk = await opened(log, Kept(fails=True))
    await talk.go(*chat(*range(21)))
    for _ in range(30):
        await talk.request()
    assert len(talk.events("session.compaction_complete")) == 5  # 1, then after 1, 3, 7 and 15


async def test_what_could_not_be_noted_is_noted_with_the_next(log):
    sink = Kept(fails=True)
    talk = await opened(log, sink)
    await talk.go(*chat(*range(21)))
    [told] = talk.events("session.compaction_complete")
    assert told.error == "it was not remembered: NotRemembered: The disk is gone."
    sink.fails = False
    await talk.go(*chat(21))
    [note] = sink.notes
    assert note.messages == 20
    await talk.go(*chat(22))
    assert len(sink.notes) == 1


async def test_the_same_limits_after_a_crash_are_noted_once(log, tmp_path):
    sink = DailyFiles(tmp_path, zone=UTC)
    talk = await opened(log, sink)
    await talk.go(*chat(*range(20)))
    await talk.say(Asked("Question 20?"))

    async def dies(*_, **__):
        raise KeyboardInterrupt

    real, talk.session._live.append = talk.session._live.append, dies
    with pytest.raises(KeyboardInterrupt):
        await talk.request()
    again = await opened(log, sink)
    await again.request()
    [file] = (tmp_path / "memory").glob("*.md")
    assert file.read_text().count("## Trimmed") == 1
    assert real is not dies


async def test_what_is_in_memory_is_there_after_a_clear(log, tmp_path):
    sink = DailyFiles(tmp_path, zone=UTC)
    talk = await opened(log, sink, write=Writer("We chose SQLite."))
    await talk.go(*chat(*range(21)))
    await talk.settled()
    await talk.session.clear()
    await talk.say(Asked("What did we choose?"))
    assert texts(await talk.request()) == ["What did we choose?"]
    [file] = (tmp_path / "memory").glob("*.md")
    assert "We chose SQLite." in file.read_text()


async def test_an_error_says_what_to_do(log, tmp_path):
    talk = await opened(log, DailyFiles(tmp_path / "absent"), write=Writer())
    await talk.go(*chat(*range(21)))
    await talk.settled()
    [told] = talk.events("session.compaction_complete")
    assert told.error.startswith("NotRemembered: There is no folder")
    assert NotRemembered("x").fix
    assert json.dumps(told.as_json())
