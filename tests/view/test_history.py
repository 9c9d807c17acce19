"""What co-cli's own tests ask of its two history processors, of the `co-cli` profile.

A history of Pydantic AI messages goes in, and what the model is sent comes out.
"""

import json
from typing import Any

import pytest
from shown import Talk, changed, lines

from refold.view.profiles import CO_CLI, STATIC_MARKER

pytest.importorskip("pydantic_ai", reason="the library whose messages these are")

from co_cli_world import asked, called, chat, returned, said, work
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


def history(*messages):
    talk = Talk(CO_CLI)
    add(talk, *messages)
    return talk


def add(talk, *messages, scope="/"):
    for message in json.loads(ModelMessagesTypeAdapter.dump_json(list(messages))):
        talk.put(json.dumps(message).encode(), scope)


def sent(talk, **values) -> list[Any]:
    """What the model is sent, as the library reads it."""
    talk.profile = changed(talk.profile, **values)
    request = talk.request()
    assert request.wire.problems(request.messages) == []
    return ModelMessagesTypeAdapter.validate_json(request.body)


def marker(count):
    start = f"[Earlier conversation trimmed — {count} messages removed"
    return f"{start} to stay within context budget]"


def result(content, *, after=2):
    """What becomes of a result that this many messages follow."""
    looked = [asked("Look."), called("c1"), returned("c1", content=content)]
    messages = [*looked, *chat(after, first=4)]
    found = sent(history(*messages))
    assert len(found) == len(messages)
    return found[2].parts[0]


# The first processor: long tool results.


@pytest.mark.req("R013", "R014", "R017")
def test_a_result_of_2000_characters_stays_and_of_2001_is_cut():
    assert result("x" * 2000).content == "x" * 2000
    content = "".join(chr(97 + n % 26) for n in range(2001))
    assert result(content).content == content[:2000] + "\n[…truncated, 2001 chars total]"
    assert result("日" * 30_000).content == "日" * 2000 + "\n[…truncated, 30000 chars total]"


@pytest.mark.req("R015")
@pytest.mark.parametrize("key", ["text", "naïve"])
def test_an_object_is_measured_and_cut_as_the_compact_json_that_the_model_reads(key):
    frame = len(json.dumps({key: ""}, ensure_ascii=False, separators=(",", ":")))
    fits = {key: "é" * (2000 - frame)}
    assert result(fits).content == fits
    content = {key: "é" * (2001 - frame)}
    shown = ToolReturnPart("read", content, "c1").model_response_str()
    assert len(shown) == 2001
    assert result(content).content == shown[:2000] + "\n[…truncated, 2001 chars total]"


@pytest.mark.req("R013")
def test_the_last_two_messages_are_safe():
    long = "x" * 5000
    assert result(long, after=0).content == long
    assert result(long, after=1).content == long
    assert result(long, after=2).content != long


@pytest.mark.req("R013")
def test_the_last_two_messages_are_not_the_turn():
    messages = [asked("Look."), called("a"), returned("a", content="x" * 5000), *work(2, "b")]
    found = sent(history(*messages, called("c"), returned("c", content="y" * 5000)))
    assert found[2].parts[0].content.endswith("[…truncated, 5000 chars total]")
    assert found[-1].parts[0].content == "y" * 5000


@pytest.mark.req("R014")
def test_0_leaves_every_result():
    messages = [asked("Look."), called("c1"), returned("c1", content="x" * 9000), *chat(4, first=4)]
    assert sent(history(*messages), trim={"max_chars": 0}) == messages
    cut = sent(history(*messages), trim={"max_chars": 8999})
    assert cut[2].parts[0].content == "x" * 8999 + "\n[…truncated, 9000 chars total]"


@pytest.mark.req("R016")
def test_all_but_the_content_of_a_long_result_is_untouched():
    messages = [
        asked("p" * 3000),
        ModelResponse(
            parts=[
                ThinkingPart("t" * 3000),
                TextPart("s" * 3000),
                ToolCallPart("read", {"path": "a" * 3000}, "c1"),
                ToolCallPart("list", {}, "c2"),
            ]
        ),
        ModelRequest(
            parts=[
                ToolReturnPart("read", "r" * 3000, "c1", metadata={"took": 1}),
                ToolReturnPart("list", "short", "c2"),
                UserPromptPart("u" * 3000),
            ]
        ),
        *chat(2, first=2),
    ]
    found = sent(history(*messages))
    cut = found[2].parts[0]
    assert (cut.tool_name, cut.tool_call_id) == ("read", "c1")
    assert len(cut.content) == 2000 + len("\n[…truncated, 3000 chars total]")
    cut.content = "r" * 3000
    assert found == messages


@pytest.mark.req("R017")
def test_what_is_cut_already_is_not_cut_again():
    once = result("x" * 70_000).content
    assert result(once).content == once
    assert result(once[10:]).content == once[10:]
    talks_of_it = "See […truncated, 9 chars total] there. " + "x" * 1970
    assert result(talks_of_it).content.startswith("See")
    assert result(talks_of_it).content.endswith("\n[…truncated, 2009 chars total]")
    assert result(once + "!").content == once[:2000] + "\n[…truncated, 2033 chars total]"


# The second processor: a window of messages. Here nothing summarizes.


@pytest.mark.req("R023")
def test_40_messages_stay():
    messages = chat(40)
    assert sent(history(*messages)) == messages


@pytest.mark.req("R023", "R024", "R025", "R027", "R049", "R066")
def test_of_41_messages_the_first_run_and_the_newest_20_stay():
    messages = chat(41)
    found = sent(history(*messages))
    assert found[:2] == messages[:2]
    assert found[3:] == messages[-20:]
    assert (found[2].kind, [part.part_kind for part in found[2].parts]) == (
        "request",
        ["user-prompt"],
    )
    assert found[2].parts[0].content == marker(19) == STATIC_MARKER.format(count=19)


@pytest.mark.req("R025", "R026")
def test_the_first_run_ends_with_the_first_words_of_the_model(snapshot):
    first = [asked("Find the bug."), *work(6), said("It is in parse().")]
    messages = [*first, *chat(34)]
    talk = history(*messages)
    found = sent(talk)
    assert found[:8] == first
    assert found[8].parts[0].content == marker(42 - 8 - 20)
    assert found[9:] == messages[-20:]
    assert lines(talk.request()) == snapshot


@pytest.mark.req("R025", "R046")
def test_a_first_run_whose_words_come_with_calls_is_kept_with_their_results():
    first = [asked("Find it."), called("a", "b", text="I look."), returned("a"), returned("b")]
    messages = [*first, *chat(38, first=2)]
    found = sent(history(*messages))
    assert found[:4] == first
    assert found[4].parts[0].content == marker(42 - 4 - 20)


@pytest.mark.req("R026")
def test_where_the_model_never_spoke_nothing_is_pinned():
    messages = [asked("First."), *work(20, "a"), asked("Second."), *work(20, "b")]
    found = sent(history(*messages))
    assert found[0].parts[0].content == marker(22 - 1)
    assert found[1:] == messages[21:]


@pytest.mark.req("R026")
def test_a_first_message_that_is_the_models_is_a_first_run():
    messages = [said("Welcome!"), *chat(40)]
    found = sent(history(*messages))
    assert found[1] == messages[0]
    assert found[2].parts[0].content == marker(41 - 1 - 20)
    assert found[3:] == messages[-20:]


@pytest.mark.req("R046", "R027")
def test_a_cut_that_would_part_a_call_from_its_result_moves():
    messages = [*chat(20), asked("Go on."), called("a", "b"), returned("a"), returned("b")]
    messages += chat(18, first=2)
    found = sent(history(*messages))
    assert messages[-20:][0] == messages[22]  # the cut would fall between the call and its results
    assert found[3:] == messages[-21:]
    assert found[2].parts[0].content == marker(42 - 2 - 21)


@pytest.mark.req("R027")
def test_at_least_four_of_the_newest_messages_stay():
    messages = chat(9)
    found = sent(history(*messages), window={"max_messages": 5})
    assert found[3:] == messages[-4:]
    assert found[2].parts[0].content == marker(3)
    messages = chat(30)
    assert sent(history(*messages), window={"max_messages": 29})[3:] == messages[-14:]


@pytest.mark.req("R023")
def test_a_first_run_that_reaches_the_newest_messages_leaves_nothing_to_drop():
    messages = [asked("Find it."), *work(40), said("Found.")]
    assert sent(history(*messages)) == messages


@pytest.mark.req("R052")
def test_the_latest_prompt_stays_however_long_its_turn_is(snapshot):
    messages = [*chat(4), asked("Now the real task."), *work(40)]
    talk = history(*messages)
    found = sent(talk)
    assert found[2].parts[0].content == marker(2 + 20)
    assert (found[3], found[4:]) == (messages[4], messages[-20:])
    assert lines(talk.request()) == snapshot


@pytest.mark.req("R052")
def test_system_content_stays_where_nothing_is_pinned():
    first = ModelRequest(parts=[SystemPromptPart("Be kind."), UserPromptPart("First.")])
    found = sent(history(first, *work(20, "a"), asked("Second."), *work(20, "b")))
    assert [part.content for part in found[0].parts] == ["Be kind."]
    assert found[1].parts[0].content == marker(20)


@pytest.mark.req("R023")
def test_0_keeps_every_message():
    messages = chat(120)
    assert sent(history(*messages), window={"max_messages": 0}) == messages


@pytest.mark.req("R023")
def test_what_was_dropped_stays_dropped_until_there_are_too_many_again():
    talk = history(*chat(41))
    before = sent(talk)
    assert len(before) == 2 + 1 + 20
    add(talk, *chat(17, first=42))
    grown = sent(talk)
    assert grown[:2] + grown[3:23] == before[:2] + before[3:]
    assert (len(grown), grown[2].parts[0].content) == (40, marker(19))
    add(talk, *chat(1, first=59))
    again = sent(talk)
    assert (len(again), again[2].parts[0].content) == (23, marker(59 - 2 - 20))


@pytest.mark.req("R024")
def test_delegated_work_goes_with_the_middle():
    talk = history(*chat(10))
    add(talk, said("early"), scope="/a")
    add(talk, *chat(30, first=11))
    add(talk, said("late"), scope="/a")
    assert len(sent(talk)) == 42
    add(talk, *chat(1))
    told = [part.content for message in sent(talk) for part in message.parts]
    assert ("[/a]\nearly" in told, "[/a]\nlate" in told) == (False, True)


# After an interrupt.


@pytest.mark.req("R048")
def test_calls_that_an_interrupt_left_unanswered_get_one_request_that_says_so():
    messages = [asked("Look."), called("a", "b"), asked("Never mind.")]
    found = sent(history(*messages))
    assert (found[:2], found[3:]) == (messages[:2], messages[2:])
    assert found[2].kind == "request"
    assert [
        (part.part_kind, part.tool_name, part.tool_call_id, part.content) for part in found[2].parts
    ] == [("tool-return", "read", one, "Interrupted by user.") for one in ("a", "b")]


@pytest.mark.req("R048")
def test_calls_at_the_very_end_are_answered_too_and_results_that_came_are_kept():
    assert sent(history(asked("Look."), called("a")))[-1].parts[0].content == "Interrupted by user."
    messages = [asked("Look."), called("a", "b"), returned("b"), asked("Go on.")]
    found = [part for message in sent(history(*messages)) for part in message.parts]
    returns = {one.tool_call_id: one.content for one in found if one.part_kind == "tool-return"}
    assert returns == {"a": "Interrupted by user.", "b": "ok"}
