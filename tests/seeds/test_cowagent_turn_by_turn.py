"""64 turns in `cowagent` on each surface, compared with the table in the documentation."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import re

import pytest
from refold_commands import quick
from requirement_report import ran
from surfaces import PLAYED, conversation, playing, turn_by_turn
from terminal.pieces import Pause

PROMPTS = [f"Prompt {nth}: and so on, and on, {'and on, ' * 20}and on." for nth in range(1, 65)]
AFTER_TRIM = {PROMPTS[nth - 1] for nth in (22, 32, 42, 52, 62)}
SUMMARY = re.compile(r"\[Summary of (\d+) earlier messages\]\nSummary (\d+): `a.py`")


def answer(asked):
    # What was trimmed a turn ago is being summarized.
    return [Pause(2), "Yes."] if asked.prompt in AFTER_TRIM else "Yes."


@pytest.fixture(scope="module", params=PLAYED)
def played(request, tmp_path_factory, quick):
    with playing(request.param, tmp_path_factory.mktemp("talk"), quick) as surface:
        provider = surface.provider
        provider.summary = lambda _: f"Summary {len(provider.folds)}: `a.py`"
        provider.otherwise = answer
        asyncio.run(surface.play(PROMPTS, profile="cowagent"))
    return request.param, surface


@pytest.fixture
def surface(played):
    ran(played[0])
    return played[1]


@pytest.fixture
def requests(surface):
    """The request of each turn; a prompt may begin with a summary."""
    sent = {}
    for asked in surface.provider.asked:
        newest = [one["content"] for one in conversation(asked) if one["role"] == "user"][-1]
        sent[newest[newest.index("Prompt ") :]] = asked
    return sent


def users(asked):
    return [one["content"] for one in conversation(asked) if one["role"] == "user"]


def first_prompt(asked):
    """The first message of the user, which a marker may stand before."""
    return next(text for text in users(asked) if "Prompt " in text)


@pytest.mark.req("R007", "R029", "R030", "R047", "R064", "R120")
def test_what_is_sent_is_what_the_table_says(requests):
    for row in turn_by_turn("cowagent"):
        asked = requests[PROMPTS[int(row["turn"]) - 1]]
        found = SUMMARY.match(first_prompt(asked))
        turns = sum("Prompt " in text for text in users(asked))
        assert (str(turns), found[2] if found else "") == (row["turns"], row["summary"]), row


@pytest.mark.req("R029", "R030")
def test_no_request_has_more_than_20_turns_and_none_is_split(surface):
    for asked in surface.provider.asked:
        roles = [one["role"] for one in conversation(asked)]
        assert len(roles) <= 39
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


@pytest.mark.req("R064", "R093")
def test_each_summary_is_in_the_daily_file_once(surface):
    for nth in range(1, len(surface.provider.folds) + 1):
        assert surface.notes.count(f"Summary {nth}: `a.py`") == 1


@pytest.mark.req("R064", "R065")
def test_the_summary_counts_what_was_dropped_with_it(requests):
    asked = requests[PROMPTS[22]]
    assert SUMMARY.match(first_prompt(asked))[1] == "20"
    assert first_prompt(asked).endswith(PROMPTS[10])
