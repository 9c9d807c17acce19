"""The user's words in a fold: verbatim, chosen by code, and all of them where there is room."""

import re

import pytest
from folding import TIGHT, material_of, session_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Quarter
from shown import turn

from refold.fold.extractive import extractive_summary
from refold.fold.replace import render_summary
from refold.fold.summary import TRUNCATED
from refold.fold.user_words import least_missed, superseded
from refold.log import Span
from refold.testing.wire import SPELLINGS, Answered, Asked, Call, Responded, Return
from refold.view.profiles import BALANCED, PROFILES

FULL = BALANCED.fold


def summary_of(*prompts, reply="Done."):
    session = session_of(*(one for prompt in prompts for one in turn(prompt, reply=reply)))
    return extractive_summary(material_of(session, (Span(2, session.head),)))


def shown(*prompts, tokens=8_000, values=FULL):
    values = values.model_copy(update={"max_tokens": tokens, "placement": "replacement"})
    return render_summary(summary_of(*prompts), values, Quarter()).text


@pytest.mark.parametrize("format", SPELLINGS)
@pytest.mark.parametrize("tool", ["AskUserQuestion", "mcp__x__AskUserQuestion"])
def test_answers_to_an_agent_s_questions_are_the_user_s_words(format, tool):  # noqa: A002
    reply = 'User has answered your questions: "Which way?"="only by a flag".'
    session = session_of(
        Asked("Go."),
        Responded(None, (Call("c1", tool, {"questions": "Which way?"}),)),
        Answered((Return("c1", tool, reply),)),
        Responded("Done."),
        format=format,
    )
    summary = extractive_summary(material_of(session, (Span(2, session.head),)))
    said = ["Go.", reply] if tool == "AskUserQuestion" else ["Go."]
    assert [directive.text for directive in summary.directives] == said


def users_block(text):
    return text.partition("## The user's words")[2].partition("\n\n## ")[0]


def test_in_balanced_all_messages_stay_whole_if_they_fit():
    long = "Please read this with care. " * 300
    prompts = [f"Ask {nth}: what about it?" for nth in range(150)]
    text = users_block(shown(*prompts, long.strip()))
    assert "omitted" not in text
    assert TRUNCATED not in text
    assert all(f") {prompt}" in text for prompt in prompts)
    assert long.strip() in text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("abcdefgh ", min_size=8, max_size=400), min_size=1, max_size=60),
    st.integers(300, 3_000),
)
def test_none_is_omitted_or_clipped_while_tokens_are_free(texts, tokens):
    prompts = [f"{nth} {text.strip()} end" for nth, text in enumerate(texts)]
    text = shown(*prompts, tokens=tokens)
    block = users_block(text)
    free = tokens - Quarter().text(text)
    assert free >= 0
    missing = [prompt for prompt in prompts if f") {prompt}\n" not in f"{block}\n"]
    if missing:
        # What one of them would cost, and what headings and notes may take.
        assert free < min(map(Quarter().text, missing)) + 60


def test_what_the_other_blocks_leave_is_the_users():
    prompts = [f"Ask {nth}: what about part {nth}?" for nth in range(20)]
    assert "omitted" not in shown(*prompts, tokens=500)


def test_what_was_superseded_goes_before_what_stands():
    prompts = [
        "Look at the prices of the second quarter.",
        "Set READ_TIMEOUT to 45, please, so that slow clients get their answer.",
        *(f"Then look at part {nth}, and tell me what is in it." for nth in range(8)),
        "Set READ_TIMEOUT to 60, please, so that slow clients get their answer.",
    ]
    whole = shown(*prompts)
    assert prompts[1] in whole
    assert "(entry 4; READ_TIMEOUT has another value in entry 22) Set READ_TIMEOUT to 45" in whole
    size = Quarter().text(whole)
    less = next(
        text
        for text in (shown(*prompts, tokens=size - step) for step in range(0, size, 5))
        if "omitted" in text
    )
    assert "[1 earlier message of the user omitted]" in less
    assert prompts[1] not in less
    assert all(prompt in less for prompt in prompts if prompt != prompts[1])


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        (["Set READ_TIMEOUT to 45.", "Set READ_TIMEOUT to 60.", "Go."], {0}),
        (["Set READ_TIMEOUT to 45.", "Set WRITE_TIMEOUT to 60.", "Go."], set()),
        (["Set READ_TIMEOUT to 45.", "Set READ_TIMEOUT to 60.", "Set READ_TIMEOUT to 45."], {0, 1}),
        (["Set READ_TIMEOUT to 45 and RETRIES_MAX to 3.", "Set READ_TIMEOUT to 60."], set()),
        (["Never set READ_TIMEOUT above 60. READ_TIMEOUT is 45.", "READ_TIMEOUT = 60"], set()),
        (["READ_TIMEOUT must be 45.", "READ_TIMEOUT must be 60."], set()),
        (["Set READ_TIMEOUT to 45. " + "And do this. " * 60, "Set READ_TIMEOUT to 60."], set()),
        (["Go on.", "go  on.", "Stop."], {0}),
        (["Never push to main.", "Go.", "Never push to main."], {0}),
        (["Never push to main.", "Push to main never again?"], set()),
    ],
)
def test_what_counts_as_superseded(said, gone):
    assert superseded(said) == gone


def test_the_order_of_dropping():
    said = [
        "Read a.",
        "Never read b.",
        "Set READ_TIMEOUT to 45.",
        "Read c.",
        "Set READ_TIMEOUT to 60.",
    ]
    assert least_missed(said) == [2, 0, 3, 1, 4]


def test_prohibitions_stand_first_and_each_group_has_its_newest_last():
    text = users_block(
        shown(
            "Look at a.",
            "Never push to main.",
            "There is only one file left.",
            "I don't understand it.",
            "Always run the tests first.",
            "Look at b.",
        )
    )
    assert re.findall(r"\(entry (\d+)\)", text) == ["4", "10", "2", "6", "8", "12"]


@pytest.mark.req("R069")
def test_what_is_clipped_says_so_with_its_entry():
    paste = "Begin. " + "middle " * 2_000 + "Never touch b.csv. " + "middle " * 2_000 + "End."
    text = users_block(shown(paste, "Go on.", tokens=600))
    (line,) = [one for one in text.splitlines() if "Begin." in one]
    assert line.startswith(f"- (entry 2, {len(paste):,} characters in all) ")
    assert line.count(TRUNCATED) == 1
    assert "End." in line


def test_a_rule_behind_a_long_paste_is_found_and_shown():
    paste = "row of a table, and another\n" * 1_000 + "Never touch prices.csv."
    text = users_block(shown(paste, *(f"Ask {nth}." for nth in range(100)), tokens=400))
    assert "Never touch prices.csv." in text
    assert "entry 2, 28,023 characters in all" in text


@pytest.mark.req("R069")
def test_copilot_quotes_no_more_than_it_says():
    text = shown(*(f"Ask number {nth}." for nth in range(30)), values=PROFILES["copilot"].fold)
    assert "[10 earlier messages of the user omitted]" in text


def test_a_tight_fold_says_how_many_it_leaves_out():
    prompts = [f"Ask number {nth}: what is in part {nth}?" for nth in range(80)]
    text = shown(*prompts, tokens=300, values=TIGHT)
    (number,) = re.findall(r"\[(\d+) earlier messages of the user omitted\]", text)
    assert int(number) == sum(prompt not in text for prompt in prompts)
    assert prompts[-1] in text
