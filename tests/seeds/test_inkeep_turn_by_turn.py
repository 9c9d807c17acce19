"""64 turns in `inkeep` on each surface, compared with the table in the documentation."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import re

import pytest
from refold_commands import quick
from requirement_report import ran
from surfaces import PLAYED, answer, conversation, playing, texts, turn_by_turn
from terminal.chunks import counted, prompt_of

WINDOW = 12_000
PROMPTS = [f"Prompt {nth}: {'and so on, ' * 150}".strip() for nth in range(1, 65)]
PROMPTS[3] = "read a.txt"
RESULT = "A line of the file.\n" * 50


@pytest.fixture(scope="module", params=PLAYED)
def played(request, tmp_path_factory, quick):
    with playing(request.param, tmp_path_factory.mktemp("talk"), quick) as surface:
        surface.write("a.txt", RESULT)
        provider = surface.provider
        provider.summary = lambda _: f"Summary of all, number {len(provider.folds)}: `a.py`"
        asyncio.run(surface.play(PROMPTS, profile="inkeep", window=WINDOW))
    return request.param, provider


@pytest.fixture(scope="module", params=PLAYED)
def roomy(request, tmp_path_factory, quick):
    """The same in a window of which half holds more than 50 messages and 8,000 tokens."""
    with playing(request.param, tmp_path_factory.mktemp("talk"), quick) as surface:
        surface.write("a.txt", RESULT)
        surface.provider.summary = "Summary of all: `a.py`"
        asyncio.run(surface.play(PROMPTS, profile="inkeep", window=30_000))
    return request.param, surface.provider


@pytest.fixture
def provider(played):
    ran(played[0])
    return played[1]


def share(asked):
    return counted(prompt_of(asked)) / WINDOW


def folded(asked):
    return "Summary of all, number" in "\n".join(texts(asked))


@pytest.fixture
def phases(provider):
    main = provider.asked
    first = next(nth for nth, one in enumerate(main) if folded(one))
    return {
        "the last request before the first fold": main[first - 1],
        "the request with the first summary": main[first],
        "the largest request of all": max(main, key=share),
    }


@pytest.mark.req("R032", "R034", "R035", "R123", "R149")
def test_what_is_sent_is_what_the_table_says(phases):
    for row in turn_by_turn("inkeep"):
        stated = int(row["share"].removesuffix(" %")) / 100
        # The provider counts in its own way, and a chat has more to say of its tools.
        assert abs(share(phases[row["what happens"]]) - stated) <= 0.05, row


@pytest.mark.req("R032", "R141", "R149")
def test_everything_before_the_latest_prompt_is_summarized(phases):
    asked = phases["the request with the first summary"]
    messages = conversation(asked)
    assert len(messages) <= 2
    assert messages[-1]["content"].endswith(asked.prompt)
    assert not any(message["role"] == "tool" for message in messages)


@pytest.mark.req("R035", "R141")
def test_every_prompt_is_answered_in_its_turn(provider):
    said = list(dict.fromkeys(asked.prompt for asked in provider.asked))
    assert said == PROMPTS


@pytest.mark.req("R036", "R059")
def test_with_a_summarizer_more_than_50_messages_and_8000_tokens_are_read(roomy):
    surface, provider = roomy
    ran(surface)
    assert provider.folds
    longest = max(provider.asked, key=lambda asked: len(conversation(asked)))
    assert len(conversation(longest)) > 50
    assert counted(prompt_of(longest)) > 8_000
    read = "\n".join(text for asked in provider.folds for text in texts(asked))
    assert all(f"Prompt {nth}: and so on" in read for nth in (1, 2, 3, 5, 9, 30))
