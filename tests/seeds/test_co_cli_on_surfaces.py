"""The `co-cli` profile on every surface: what stands in the place of earlier messages."""

# ruff: noqa: F811, F401 - fixtures are imported

import json
import re

import pytest
from refold_commands import quick, terminal
from surfaces import capability, chat, passing_service, provider, service, surface, texts

MARKER = re.compile(r"\[Summary of (\d+) earlier messages\]\n(.*)", re.DOTALL)
SUMMARY = "Summary {nth}.\nFirst *line*, as written.\n\n1. one: `src/a.py`\n   - deeper {nth}"
AND_YOU = "And you? Tell me at length, at great length, at the greatest length that there is."


def prompts(count: int) -> list[str]:
    return [f"Prompt {nth}: {'and so on, ' * 9}" for nth in range(count)]


def writes(provider) -> None:
    """Have the model write another summary each time."""
    provider.summary = lambda _: SUMMARY.format(nth=len(provider.folds))


def markers(provider) -> list[tuple[int, str]]:
    """Each marker that was sent, once, with its count and its text."""
    sent = [text for asked in provider.asked for text in texts(asked)]
    found = dict.fromkeys(filter(None, map(MARKER.fullmatch, sent)))
    return list(dict.fromkeys((int(one[1]), one[2]) for one in found))


@pytest.fixture(params=["chat", "capability", "service"])
def summarizing(request):
    """The surfaces where a model can be asked for summaries."""
    return request.getfixturevalue(request.param)


@pytest.mark.req("R054", "R065", "R067", "R117")
async def test_the_marker_holds_what_the_model_wrote_at_every_fold(summarizing, provider):
    writes(provider)
    await summarizing.play(prompts(20), profile="co-cli", max_history_messages=10)
    shown = markers(provider)
    assert len(shown) >= 4
    assert [text for _, text in shown] == [
        SUMMARY.format(nth=nth) for nth in range(1, len(shown) + 1)
    ]
    # The first takes out what is between the first run of 2 and the newest 5; each later one takes
    # out the marker before it too.
    counts = [count for count, _ in shown]
    assert all(2 <= count <= 6 for count in counts), counts


@pytest.mark.req("R065")
async def test_the_summary_before_is_what_the_next_is_made_of(summarizing, provider):
    writes(provider)
    await summarizing.play(prompts(20), profile="co-cli", max_history_messages=10)
    first, *later = [json.dumps(asked.body) for asked in provider.folds]
    assert "Summary " not in first
    for nth, asked in enumerate(later, 1):
        assert f"Summary {nth}." in asked
        assert f"deeper {nth}" in asked
        assert f"Summary {nth - 1}." not in asked


@pytest.mark.req("R053", "R055")
async def test_the_messages_are_the_summarizers_history_where_it_is_set(summarizing, provider):
    writes(provider)
    summarizing.write("a.txt", "what the file holds")
    told = ["Hello.", AND_YOU, "read a.txt", *prompts(12)]
    settings = {"max_history_messages": 10, "fold.input": "messages"}
    await summarizing.play(told, profile="co-cli", **settings)
    first, second, *_ = [asked.messages for asked in provider.folds]
    said = [(one["role"], str(one.get("content") or "")) for one in first]
    assert ("user", AND_YOU) in said
    assert ("assistant", f"You said: {AND_YOU[:40]}") in said
    read = [str(one["content"]) for one in (*first, *second) if one["role"] == "tool"]
    assert any("what the file holds" in text for text in read)
    assert said[0][0] in ("system", "developer")
    assert said[-1][0] == "user"
    assert said[-1][1].startswith("Summarize the conversation above")
    assert not any("\n| " in text for _, text in said)
    assert [text for _, text in markers(provider)][:2] == [SUMMARY.format(nth=n) for n in (1, 2)]
    assert SUMMARY.format(nth=1) in [one.get("content") for one in second]
