"""The profile `balanced`: what it shortens, and that it leaves alone what was sent.

Mostly with fixed numbers: those that it comes with are measured, and may move.
"""

import json

import pytest
from shown import Talk, changed, turn, used

from refold.testing.wire import Answered, Asked, Call, Responded, Return
from refold.view.profiles import BALANCED, STATIC_MARKER
from refold.wire import Replace

STEADY = changed(
    BALANCED,
    rewrite={"target": 0.5, "target_tokens": 0, "at_least": 0, "low_water": 0.5},
    archive={"min_chars": 600, "excerpt": 120, "names": 200, "recent": 0.2},
    arguments={"max_chars": 400, "keep": 120, "names": 0.1},
)


def worked(talk, count, size=1_200):
    for nth in range(count):
        text = f"result {nth} of src/module_{nth}.py " + f"{nth} word " * (size // 7)
        talk.say(*turn(f"Ask {nth}.", used(f"c{nth}", "read", text, path=f"src/module_{nth}.py")))
    talk.say(Asked("And now?"))
    return talk


def test_balanced_archives_old_results_with_a_reference_that_names_what_they_held():
    talk = worked(Talk(STEADY), 20)
    assert not any("archived" in text for text in talk.texts(100_000))
    again = worked(Talk(STEADY), 20)
    shown = again.results(10_000)
    archived = [text for text in shown if "[…archived: " in text]
    assert 10 < len(archived) < 20
    assert shown[: len(archived)] == archived  # the oldest
    seqs = [one.seq for one in again.session.messages() if b"tool-return" in one.body]
    assert f"part {seqs[0]}.0" in archived[0]
    assert "src/module_0.py" in archived[0]


GREEDY = changed(
    STEADY,
    archive={"min_chars": 20, "excerpt": 20},
    arguments={"max_chars": 20, "keep": 10, "names": 1},
)


@pytest.mark.parametrize("profile", [BALANCED, STEADY, GREEDY], ids=["own", "steady", "greedy"])
@pytest.mark.parametrize("size", [30, 60, 151, 180, 250, 401, 500, 601, 900, 6_000])
def test_an_edit_of_balanced_never_makes_a_part_longer(profile, size):
    talk = Talk(changed(profile, rewrite={"at_least": 0}))
    for nth in range(24):
        name = f"src/a_long_name_for_a_module_{nth}.py "
        text = (name * 200)[: size if nth % 3 else 6_000]  # the long ones make it worth a rewrite
        call = Call(f"c{nth}", "write", {"path": name, "text": text, "lines": [text, 1.50]})
        answer = Answered((Return(call.id, "write", text),))
        talk.say(*turn("Go.", (Responded(None, (call,)), answer)))
    talk.say(Asked("And now?"))
    request = talk.request(60_000)
    assert request.plan.cause == "target"
    inputs = talk.inputs()
    rows = {row.seq: row for row in inputs.rows}
    replaced = set()
    for ref, change in request.plan.layout.changes.items():
        if isinstance(change, Replace):
            part = rows[ref.seq].parts[ref.index]
            replaced.add(part.kind)
            text = inputs.text(part)
            new = change.text if part.kind == "call" else change.applied(text)
            assert len(new) < len(text)
    assert replaced == {"call", "return"}


def clipped(arguments, profile=STEADY):
    """The arguments of an old call, as they are sent when there is little room."""
    talk = Talk(profile, Asked("Write."), format="openai-chat")
    call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": arguments}}
    talk.put(json.dumps({"role": "assistant", "tool_calls": [call]}).encode())
    talk.say(Answered((Return("c", "write", "ok"),)), *turn("Go on. " * 400), Asked("And now?"))
    [sent] = [one.text for each in talk.shapes(4_000) for one in each if one.kind == "call"]
    return sent


def test_clipped_arguments_stay_json_and_all_else_in_them_as_it_was_written():
    long = "def main(): ...\n" * 500
    given = '{"path": "a.py", "size":1.50, "big":1e400,"text":%s, "more":[{"x":%s}, null]}'
    sent = clipped(given % (json.dumps(long), json.dumps(long)))
    text = json.loads(sent)["text"]
    assert text.startswith("def main(): ...")
    assert "[…clipped: 8000 chars, part 3.0" in text
    assert sent == given % ((json.dumps(text, ensure_ascii=False),) * 2)


def test_a_value_that_a_mark_would_make_longer_is_left():
    sent = json.loads(clipped(json.dumps({"short": "s" * 30, "long": "x" * 9_000}), GREEDY))
    assert sent["short"] == "s" * 30
    assert "[…clipped: 9000 chars" in sent["long"]


@pytest.mark.parametrize(
    "given",
    [
        '{"text": "' + "x" * 8_000,
        json.dumps(["x" * 8_000]),
        json.dumps({f"key {nth}": "short" for nth in range(400)}),
    ],
    ids=["no JSON", "no object", "no long value"],
)
def test_arguments_without_a_value_to_clip_are_left(given):
    assert clipped(given) == given


def test_balanced_refers_to_the_later_of_two_equal_results():
    talk = Talk(STEADY)
    same, other = "same " * 100, "other " * 100
    talk.say(*turn("One.", used("c1", "read", same, path="a"), used("c2", "run", other, path="b")))
    talk.say(
        *turn("Two.", used("c3", "read", same, path="a"), used("c4", "run", "new " * 100, path="b"))
    )
    worked(talk, 20)
    shown = talk.results(10_000)
    seqs = [one.seq for one in talk.session.messages() if b"tool-return" in one.body]
    assert shown[0] == f"[…the same result comes again: part {seqs[2]}.0]"
    assert shown[1] == f"[…the same call is made again: part {seqs[3]}.0]"


def test_balanced_leaves_equal_results_of_the_current_turn():
    talk = worked(Talk(STEADY), 20)
    talk.say(*used("c1", "look", "same " * 100), *used("c2", "look", "same " * 100))
    assert talk.results(10_000)[-2:] == ["same " * 100] * 2


def test_balanced_stops_at_the_low_water_mark():
    counts = [
        sum("archived" in text for text in worked(Talk(profile), 20).results(10_000))
        for profile in (changed(STEADY, rewrite={"low_water": low}) for low in (0.8, 0.6, 0.4))
    ]
    assert 0 < counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("format", ["anthropic-messages", "openai-chat", "pydantic-ai"])
def test_a_small_turn_changes_no_byte_of_what_was_sent(format):  # noqa: A002
    talk = worked(Talk(STEADY, format=format), 20)
    first = talk.request(10_000)
    assert first.plan.cause == "target"
    sent = list(first.messages)
    for nth in range(3):
        talk.say(Responded("Yes."), *used(f"d{nth}", "read", "short"), Asked("Go on."))
        request = talk.request(10_000)
        assert list(request.messages)[: len(sent)] == sent
        assert (request.plan.cause, request.plan.rewrites) == ("", 1)
        sent = list(request.messages)


def test_balanced_marks_what_it_had_to_leave_out():
    talk = Talk(STEADY, *(one for nth in range(30) for one in turn(f"{nth} " * 200)), Asked("?"))
    texts = talk.texts(2_000)
    gone = 61 - (len(texts) - 1)
    assert STATIC_MARKER.format(count=gone) in texts
    assert texts[-1] == "?"
