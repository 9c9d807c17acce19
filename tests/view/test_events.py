"""What a request says about itself: usage always, truncation when messages were left out."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import scripts
from shown import Talk, turn, used

from refold.errors import ViewTooLarge
from refold.testing.wire import Asked, Call, Responded, Told
from refold.view.plan import Truncation, UsageInfo, events
from refold.view.profiles import BALANCED, COPILOT, STATIC_MARKER
from refold.wire import WIRES

FORMATS = sorted(WIRES)


def reported(request, **options) -> list[Any]:
    return events(request.plan, len(request.messages), **options)


def long_talk(profile, *, turns=6, format="openai-chat"):  # noqa: A002
    talk = Talk(profile, Told("Be kind."), format=format)
    for nth in range(turns):
        talk.say(*turn(f"Do {nth}.", used(f"c{nth}", "read", f"{nth} " * 400, path="a")))
    talk.say(Asked("And now?"))
    return talk


@pytest.mark.req("R040", "R074", "R078", "R128")
def test_a_request_that_fits_reports_its_usage_only():
    request = long_talk(COPILOT).request(20_000, tools=700, instructions=30)
    [usage] = reported(request, initial=True)
    account = request.plan.account
    assert usage.as_json() == {
        "type": "session.usage_info",
        "tokenLimit": 20_000,
        "currentTokens": account.system + account.conversation + 700,
        "messagesLength": len(request.messages),
        "systemTokens": account.system,
        "conversationTokens": account.conversation,
        "toolDefinitionsTokens": 700,
        "isInitial": True,
    }
    assert account.system == 30 + len("Be kind.") // 4 + 1
    assert account.conversation > 1200
    assert (UsageInfo.INTERNAL, reported(request)[0].is_initial) == ("usage_info", False)


@pytest.mark.req("R040", "R074")
def test_tools_count_although_they_are_no_messages():
    few, many = (reported(long_talk(COPILOT).request(20_000, tools=n))[0] for n in (100, 5_100))
    assert many.current_tokens - few.current_tokens == 5_000
    assert many.conversation_tokens == few.conversation_tokens


@pytest.mark.req("R078", "R127", "R128")
def test_a_request_that_left_messages_out_says_how_many():
    whole = long_talk(COPILOT).request(1_000_000)
    request = long_talk(COPILOT).request(900)
    usage, truncation = reported(request)
    assert usage.messages_length == len(request.messages) < len(whole.messages)
    before, after = whole.plan.tokens, request.plan.tokens
    assert truncation.as_json() == {
        "type": "session.truncation",
        "tokenLimit": 900,
        "preTruncationTokensInMessages": before,
        "preTruncationMessagesLength": len(whole.messages),
        "postTruncationTokensInMessages": after,
        "postTruncationMessagesLength": len(request.messages),
        "tokensRemovedDuringTruncation": before - after,
        "messagesRemovedDuringTruncation": len(whole.messages) - len(request.messages),
        "performedBy": "BasicTruncator",
    }
    assert Truncation.INTERNAL == "history_truncated"


@pytest.mark.req("R078")
def test_cutting_a_result_removes_no_message():
    talk = Talk(COPILOT, Asked("Look."), *used("c", "read", "x" * 40_000))
    request = talk.request(3_000)
    assert request.plan.account.sent <= 3_000
    assert [type(one) for one in reported(request)] == [UsageInfo]


@pytest.mark.req("R078", "R127")
def test_delegated_work_that_is_no_longer_told_counts_as_removed():
    def talk():
        made = Talk(COPILOT, *turn("Begin."))
        made.say(*(Asked(f"{nth} " * 300) for nth in range(5)), scope="/a")
        made.say(Asked("And now?"))
        return made

    whole, request = talk().request(), talk().request(500)
    truncation = reported(request)[1]
    assert truncation.pre_messages == len(whole.messages)
    assert truncation.pre_tokens == whole.plan.tokens
    assert truncation.messages_removed == len(whole.messages) - len(request.messages)


@pytest.mark.req("R127")
def test_a_stand_in_for_results_goes_with_its_calls():
    calls = (Call("c1", "read", {}), Call("c2", "read", {}))
    said = [
        Asked("Go."),
        Responded("x" * 2_000, calls),
        Asked("Stop."),
        *turn("y" * 2_000),
        Asked("?"),
    ]
    whole, request = Talk(COPILOT, *said).request(), Talk(COPILOT, *said).request(600)
    truncation = reported(request)[1]
    assert b"Interrupted by user." in whole.body
    assert b"Interrupted by user." not in request.body
    assert truncation.pre_messages == len(whole.messages)
    assert truncation.pre_tokens == whole.plan.tokens


@pytest.mark.req("R078", "R127")
def test_a_marker_is_no_message_that_was_there_before():
    said = [*(one for nth in range(6) for one in turn(f"{nth} " * 400)), Asked("And now?")]
    whole, request = Talk(BALANCED, *said).request(), Talk(BALANCED, *said).request(900)
    truncation = reported(request)[1]
    assert STATIC_MARKER.split("{")[0] in request.body.decode()
    assert truncation.pre_messages == len(whole.messages)
    assert truncation.pre_tokens == whole.plan.tokens
    assert truncation.post_messages == len(request.messages)


@pytest.mark.req("R078")
def test_one_message_with_a_marker_in_its_place_was_removed():
    talk = Talk(BALANCED, Asked("x" * 2_000), Asked("And now?"))
    truncation = reported(talk.request(420))[1]
    assert (truncation.pre_messages, truncation.post_messages) == (2, 2)
    assert truncation.tokens_removed > 400


@pytest.mark.req("R078")
def test_a_balanced_view_says_it_once_because_it_truncates_once():
    talk = Talk(BALANCED, *(one for nth in range(12) for one in turn(f"{nth} " * 400)), Asked("?"))
    assert len(reported(talk.request(2_000))) == 2
    talk.say(Responded("Yes."), Asked("Go on."))
    request = talk.request(2_000)
    assert (len(reported(request)), request.plan.cause) == (1, "")


@pytest.mark.req("R077", "R078", "R127", "R128")
@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=30)
@given(st.data())
def test_figures_are_those_of_the_requests_with_and_without_a_limit(format, data):  # noqa: A002
    talk, free = Talk(COPILOT, format=format), Talk(COPILOT, format=format)
    for name, *rest in data.draw(scripts(format, steered=False)):
        if name == "message":
            talk.put(*rest)
            free.put(*rest)
    log = list(talk.session.entries)
    try:
        request = talk.request(data.draw(st.integers(50, 2_000)))
    except ViewTooLarge:
        return
    whole = free.request()
    usage, *truncations = reported(request)
    assert usage.current_tokens == request.plan.account.sent
    assert usage.messages_length == len(request.messages)
    assert bool(truncations) >= (len(request.messages) < len(whole.messages))
    for one in truncations:
        assert one.pre_tokens == whole.plan.tokens
        assert one.post_messages == len(request.messages)
        if not any(insert.kind == "return" for insert in whole.plan.layout.inserts):
            assert one.pre_messages == len(whole.messages)
    assert talk.session.entries == log
