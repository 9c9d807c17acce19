"""The five profiles: the values that the seeds name, and what they do."""

import json

import pytest
from shown import Talk, changed, lines, turn, used

from refold.errors import InvalidSetting
from refold.log import Rewound
from refold.testing.wire import Answered, Asked, Responded, Return, Told
from refold.view.budget import PER_MESSAGE, Budget
from refold.view.profiles import (
    BALANCED,
    CO_CLI,
    COPILOT,
    INKEEP,
    PROFILES,
    STATIC_MARKER,
    profile,
)
from refold.view.view_input import render_tool_result


@pytest.mark.req("R116", "R117", "R118", "R119", "R120", "R121", "R122", "R123")
def test_the_values_are_those_of_the_seeds(snapshot):
    told = {
        one.name: one.model_dump(exclude_defaults=True)
        for one in PROFILES.values()
        if one is not BALANCED
    }
    assert told == snapshot
    chosen = {name: one.summarizer for name, one in PROFILES.items() if one.summarizer}
    assert chosen == {"balanced": "auto"}
    trigger = COPILOT.trigger
    assert (trigger.soft, trigger.hard, trigger.min_messages) == (0.8, 0.95, 4)
    assert (trigger.min_messages_manual, Budget().limit) == (2, 128_000)


def test_a_profile_is_found_by_its_name_or_the_error_names_them_all():
    assert [profile(name) for name in PROFILES] == list(PROFILES.values())
    with pytest.raises(InvalidSetting) as caught:
        profile("none")
    assert all(name in str(caught.value.fix) for name in PROFILES)


@pytest.mark.req("R010")
def test_a_tool_result_is_rendered_to_the_letter():
    rendered = render_tool_result(
        "search_knowledge_base", {"query": "API authentication methods"}, {"results": ["é", 1]}
    )
    assert (
        rendered
        == """## Tool: search_knowledge_base

**Input:**
{
  "query": "API authentication methods"
}

**Output:**
{
  "results": [
    "é",
    1
  ]
}"""
    )


# inkeep


@pytest.mark.req("R037", "R038")
def test_inkeep_shows_the_newest_50_messages():
    talk = Talk(INKEEP, *(one for nth in range(25) for one in turn(f"Ask {nth}.")))
    assert len(talk.texts()) == 50
    talk.say(Asked("And now?"))
    texts = talk.texts()
    assert texts[:2] == [STATIC_MARKER.format(count=2), "Ask 1."]
    assert len(texts) == 50


@pytest.mark.req("R037", "R038")
def test_inkeep_shows_at_most_8000_tokens_of_what_came_before():
    each = 4 * (970 - PER_MESSAGE) - 1  # eight of them, and the marker for the others
    talk = Talk(INKEEP, *(Asked(f"{nth}".ljust(each)) for nth in range(20)))
    for nth in range(20, 30):
        talk.say(Responded(f"{nth}".ljust(each)))
    talk.say(Asked("now " + "x" * 50_000), *used("c", "read", "y" * 50_000))
    shown = [shape for one in talk.shapes() for shape in one]
    words = [shape.text.split()[0] for shape in shown if shape.kind in {"text", "prompt"}]
    assert words[1:] == [*(str(nth) for nth in range(22, 30)), "now"]
    assert len(shown[-1].text) == 50_000


@pytest.mark.req("R037")
def test_the_8000_tokens_are_counted_as_they_are_sent():
    each = 167  # so that 47 fit, and 48 would if messages cost nothing beside their words
    text = "x" * (4 * (each - PER_MESSAGE) - 1)
    talk = Talk(INKEEP, *[Responded(text)] * 60, Asked("And now?"))
    assert talk.texts() == [STATIC_MARKER.format(count=13), *[text] * 47, "And now?"]


@pytest.mark.req("R123")
def test_inkeep_reads_at_most_10000_messages():
    talk = Talk(INKEEP)
    payload = json.dumps(
        {"parts": [{"content": "Hi.", "part_kind": "user-prompt"}], "kind": "request"}
    )
    for _ in range(10_005):
        talk.put(payload.encode())
    assert len(talk.inputs().rows) == 10_000
    reasons = {gone.reason for gone in talk.inputs().absent()}
    assert reasons == {"not read"}


@pytest.mark.req("R020", "R021")
def test_inkeep_leaves_a_reference_to_large_results_from_half_the_window_on():
    talk = Talk(INKEEP, *turn("Look.", used("c", "read", "The answer. " + "x" * 9_000)), Asked("?"))
    total = talk.request().plan.tokens
    for window, archived in ((total * 2 + 10, False), (total * 2 - 10, True)):
        again = Talk(INKEEP, *turn("Look.", used("c", "read", "The answer. " + "x" * 9_000)))
        again.say(Asked("?"))
        [text] = again.results(window)
        assert (len(text) < 300) == archived
    assert text.startswith("The answer. xxx")
    [seq] = [one.seq for one in talk.session.messages() if b"tool-return" in one.body]
    assert text.endswith(f"\n[…archived: 9012 chars, part {seq}.0]")


@pytest.mark.req("R037")
def test_inkeep_sees_older_messages_again_after_a_rewind():
    talk = Talk(INKEEP, *(one for nth in range(40) for one in turn(f"Ask {nth}.")))
    assert "Ask 5." not in talk.texts()
    talk.session.add(Rewound(2 * 20 + 1))
    talk.reset()
    assert talk.texts()[0] == "Ask 0."


# copilot


def copilot(*said, format="openai-chat"):  # noqa: A002
    return Talk(COPILOT, Told("Be kind."), *said, format=format)


PAST = [
    *turn("First " + "a" * 400, used("c1", "read", "b" * 400), reply="c" * 400),
    *turn("Second " + "d" * 400, used("c2", "read", "e" * 400), reply="f" * 400),
    Asked("Third."),
    *used("c3", "read", "g" * 400),
]


@pytest.mark.req("R052", "R075")
@pytest.mark.parametrize("window", [600, 300])
def test_copilot_drops_replies_with_their_results_first_and_then_older_prompts(window, snapshot):
    request = copilot(*PAST).request(window)
    assert request.wire.problems(request.messages) == []
    assert request.plan.account.sent <= window
    assert lines(request) == snapshot


@pytest.mark.req("R052", "R075")
def test_copilot_drops_one_after_the_other_in_two_passes():
    kept: list[str] = []
    for window in range(900, 110, -1):
        shapes = [shape for one in copilot(*PAST).shapes(window) for shape in one]
        kept.append("".join(shape.text[0] for shape in shapes if shape.kind != "call"))
    assert list(dict.fromkeys(kept)) == [  # "[" begins the marker
        "BFbcSefTg",
        "BF[cSefTg",
        "BF[SefTg",
        "BF[SfTg",
        "BF[STg",
        "BF[Tg",
        "B[Tg",
        "B[T",
    ]


@pytest.mark.req("R076")
def test_copilot_cuts_to_a_target_below_the_limit():
    talk = copilot(*(one for nth in range(30) for one in turn(f"{nth} " * 100)), Asked("And now?"))
    whole = copilot(*(one for nth in range(30) for one in turn(f"{nth} " * 100)), Asked("And now?"))
    limit = whole.request().plan.account.sent - 20
    request = talk.request(limit)
    assert request.plan.account.sent <= 0.95 * limit
    assert request.plan.account.sent > 0.85 * limit


@pytest.mark.req("R050", "R051")
def test_copilot_removes_orphaned_results_even_when_all_fits():
    talk = copilot(Asked("Go."), Answered((Return("lost", "read", "Whose?"),)))
    assert talk.texts() == ["Be kind.", "Go."]
    talk = copilot(*turn("Go."), Answered((Return("lost", "read", "Whose?"),)), Asked("And?"))
    assert talk.texts() == ["Be kind.", "Go.", "Done.", "And?"]


@pytest.mark.req("R077")
def test_copilot_leaves_out_of_one_request_only():
    talk = copilot(*PAST)
    log = list(talk.session.entries)
    whole = talk.texts()
    assert len(talk.texts(300)) < len(whole)
    assert talk.texts() == whole
    assert talk.session.entries == log


# A setting applies in every profile.


@pytest.mark.req("R150")
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_limit_of_messages_applies_in_every_profile(name):
    limited = changed(PROFILES[name], window={"max_messages": 10})
    talk = Talk(limited, *(one for nth in range(20) for one in turn(f"Ask {nth}.")), Asked("?"))
    texts = talk.texts()
    assert texts[:2] == ["Ask 0.", "Done."]
    assert texts[3:] == ["Ask 18.", "Done.", "Ask 19.", "Done.", "?"]
    assert texts[2] == STATIC_MARKER.format(count=41 - 2 - 5)


@pytest.mark.req("R150")
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_limit_of_characters_applies_in_every_profile(name):
    """In `balanced` at the next rewrite: there it changes what was sent only then."""
    trim = {**CO_CLI.trim.model_dump(), "max_chars": 100}
    limited = changed(PROFILES[name], trim=trim, rewrite={"at_least": 0})
    talk = Talk(limited, Asked("Look."))
    for nth in range(3):
        talk.say(*used(f"c{nth}", "read", "x" * 1_000))
    talk.say(*turn("And now?"), Asked("And then?"))
    shown = talk.results(1_200 if PROFILES[name].rewrite.sticky else 1_000_000)
    assert len(shown) == 3
    assert all(text.startswith("x" * 100 + "\n[…truncated, 1000") for text in shown)
