"""A limit that a person sets holds, in every profile and on every surface.

What the model was sent decides, not what the log holds.
"""

# ruff: noqa: F811, F401 - fixtures are imported

import json
from itertools import pairwise

import pytest
from refold_commands import quick, terminal
from surfaces import (
    capability,
    chat,
    conversation,
    passing_service,
    provider,
    service,
    surface,
    texts,
)
from terminal.pieces import Refuse

from refold.log import FoldCompleted, FoldStarted
from refold.view.profiles import STATIC_MARKER

MARKED = STATIC_MARKER.partition("{")[0]
PROFILES = ["balanced", "co-cli", "copilot"]


def prompts(count: int, words: int = 3) -> list[str]:
    return [f"Prompt {nth}: {'and so on ' * words}".strip() for nth in range(count)]


def counts(provider) -> list[int]:
    return [len(conversation(one)) for one in provider.asked]


def tokens(asked) -> int:
    return sum(len(json.dumps(one)) // 4 for one in conversation(asked))


@pytest.mark.req("R023", "R116", "R117", "R150")
@pytest.mark.parametrize("profile", PROFILES)
async def test_so_many_messages_are_sent_at_most(surface, provider, profile):
    await surface.play(prompts(16), profile=profile, max_history_messages=10)
    assert max(counts(provider)) == 10
    assert len(counts(provider)) == 16


@pytest.mark.req("R027", "R117")
@pytest.mark.parametrize("limit", [10, 60])
async def test_the_tail_of_co_cli_follows_its_limit(surface, provider, limit):
    await surface.play(prompts(40), profile="co-cli", max_history_messages=limit)
    most = max(counts(provider))
    assert limit - 1 <= most <= limit
    # After a fold: the first run of two, the marker, and max(4, N // 2).
    after = [now for before, now in pairwise(counts(provider)) if now < before]
    assert after
    assert {*after} <= {2 + 1 + limit // 2, 2 + 1 + limit // 2 + 1}


@pytest.mark.req("R029", "R116", "R120", "R150")
@pytest.mark.parametrize("profile", PROFILES)
async def test_so_many_turns_are_sent_at_most(surface, provider, profile):
    await surface.play(prompts(16), profile=profile, agent_max_context_turns=5)
    sent = [[text for text in texts(one) if text.startswith("Prompt ")] for one in provider.asked]
    assert max(map(len, sent)) == 5
    assert all(one[-1] == said for one, said in zip(sent, prompts(16), strict=True))


@pytest.mark.req("R031", "R116", "R119", "R150")
@pytest.mark.parametrize("profile", PROFILES)
async def test_so_many_tokens_are_sent_at_most(surface, provider, profile):
    await surface.play(prompts(24, words=150), profile=profile, agent_max_context_tokens=5_000)
    assert 4_000 < max(map(tokens, provider.asked)) < 5_600  # as the provider counts them


@pytest.mark.req("R014", "R017", "R116", "R150")
@pytest.mark.parametrize("profile", PROFILES)
async def test_long_results_are_cut_as_it_is_set(surface, provider, profile):
    surface.write("a.txt", "x" * 1_000)
    told = ["read a.txt", "And now?", "Well?"]
    await surface.play(told, profile=profile, tool_output_trim_chars=100)
    during, *later = [
        [one["content"] for one in asked.messages if one["role"] == "tool"]
        for asked in provider.asked[1:]
    ]
    assert len(during[0]) >= 1_000
    marker = f"\n[…truncated, {len(during[0])} chars total]"
    assert later == [[during[0][:100] + marker]] * 2


def refuses_above(limit: int):
    """A provider that refuses longer requests, and does not say what its limit is."""
    refused = []
    error = {"message": "Your input exceeds the context window of this model.", "code": None}

    def answer(asked):
        if len(json.dumps(asked.body)) // 4 > limit:
            refused.append(asked)
            return [Refuse(400, json.dumps({"error": {**error, "type": "invalid_request_error"}}))]
        return "Yes."

    return answer, refused


@pytest.mark.req("R045", "R080")
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_refusal_that_names_no_limit_leads_to_a_fold(surface, provider, profile):
    provider.otherwise, refused = refuses_above(12_000)
    await surface.play(prompts(30, words=240), profile=profile, window=200_000)
    answered = [one for one in provider.asked if one not in refused]
    assert [texts(one)[-1] for one in answered] == prompts(30, words=240)
    # The smaller budget is kept: later turns do not each begin with a refusal.
    assert 1 <= len(refused) <= 4
    # The refusal itself begins a fold, wherever there is a summarizer, and it is made.
    started = await surface.entries(FoldStarted)
    forced = {one.fold for one in started if one.trigger == "forced"}
    made = forced & {one.fold for one in await surface.entries(FoldCompleted)}
    assert bool(made) == (profile == "balanced" or getattr(surface, "key", "") != "pass")
    # Something stands for what is no longer sent.
    assert any("earlier messages" in one or MARKED in one for one in texts(answered[-1]))


@pytest.mark.req("R066")
async def test_every_request_that_leaves_messages_out_says_so(surface, provider):
    provider.summary = [Refuse(500, "{}")]
    await surface.play(prompts(30), profile="co-cli", max_history_messages=10)
    assert max(counts(provider)) <= 10
    for nth, asked in enumerate(provider.asked):
        said = [text for text in texts(asked) if text.startswith("Prompt ")]
        [*markers] = [text for text in texts(asked) if text.startswith(MARKED)]
        assert len(markers) == (len(said) < nth + 1)
