"""What is shown in the place of what was folded, to the letter."""

from uuid import UUID

import pytest
from folding import TIGHT, Kept, fold, session_of, sheet_of, spelled
from sessions import Quarter
from shown import lines, turn, used

from refold.fold.extractive import with_results
from refold.fold.material import Material, Passage
from refold.fold.replace import render_summary
from refold.fold.summary import Claim, Section, Summary, parse
from refold.fold.write.phrases import HEADINGS
from refold.log import FoldCompleted, FoldStarted, Message, PartRef, Span
from refold.recall import part_ref
from refold.testing.wire import Asked
from refold.view.budget import Budget
from refold.view.profiles import PROFILES, Fold, Profile
from refold.view.view import View
from refold.wire import WIRES, Shape

FORMATS = sorted(WIRES)
TOLD = Summary("a model", words="We chose SQLite.", messages=19)


def texts(summary):
    return [(one.kind, one.text) for one in summary.shown]


def request_of(session, profile=None):
    profile = profile or Profile(name="plain")
    return View(sheet_of(session), profile).request(Budget(window=1_000_000))


def talk(format="pydantic-ai", count=4):  # noqa: A002 - the glossary's word
    step = used("c", "read", "text")
    said = (
        one for nth in range(count) for one in turn(f"Ask {nth}.", *([step] if nth == 1 else []))
    )
    return session_of(*said, Asked("And now?"), format=format)


def by_hand(session, summary, *spans):
    session.add(FoldStarted(UUID(int=7), spans, "by hand"))
    session.add(FoldCompleted(UUID(int=7), spans, summary))
    return session


@pytest.mark.req("R065")
def test_a_summary_is_marked_with_how_many_messages_it_stands_for():
    summary = render_summary(TOLD, PROFILES["co-cli"].fold, Quarter())
    assert texts(summary) == [("prompt", "[Summary of 19 earlier messages]\nWe chose SQLite.")]
    assert summary.placement == "own"


@pytest.mark.req("R065")
async def test_the_number_is_that_of_the_messages_that_went():
    kept = await Kept.of(*turn("A."), *turn("B."), *turn("C."), Asked("Now?"))
    await kept.fold()
    (one,) = (await kept.inputs()).foldings
    assert one.shown[0][1].startswith("[Summary of 3 earlier messages]\n")  # not the head, nor two


@pytest.mark.req("R067")
def test_a_manual_fold_of_co_cli_is_a_request_and_a_response():
    summary = render_summary(TOLD, PROFILES["co-cli"].fold, Quarter(), manual=True)
    assert texts(summary) == [
        ("prompt", "[Compacted conversation summary]\nWe chose SQLite."),
        ("reply", "Understood. I have the conversation context."),
    ]


@pytest.mark.req("R049", "R067", "R070")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("manual", [False, True])
def test_what_stands_for_the_past_are_legal_messages_of_the_format(format, manual):  # noqa: A002
    session = talk(format)
    told = render_summary(TOLD, PROFILES["co-cli"].fold, Quarter(), manual=manual).as_json()
    last = session.head - 1
    by_hand(session, told, Span(4, last))
    request = request_of(session)
    assert request.wire.problems(request.messages) == []
    kinds = [
        (role, [one.kind for one in shapes])
        for role, shapes, _ in map(request.wire.describe, request.messages)
    ]
    assert kinds[2] == ("user", ["prompt"])
    assert (("assistant", ["text"]) in kinds[3:]) == manual
    assert "And now?" in lines(request)[-1]
    assert sum("We chose SQLite." in line for line in lines(request)) == 1


@pytest.mark.req("R068")
def test_a_full_replacement_holds_what_the_host_knows():
    host = {
        "plan": "1. Parse.",
        "todo": ["a test", "the docs"],
        "skills": ["pdf: how to"],
        "agent": "writer",
    }
    summary = render_summary(TOLD, PROFILES["copilot"].fold, Quarter(), host={**host, "other": "x"})
    ((_, text),) = texts(summary)
    for block in (
        "We chose SQLite.",
        "## Current plan\n1. Parse.",
        "## Todo\na test\nthe docs",
        "## Skills in use\npdf: how to",
        "## Active agent\nwriter",
    ):
        assert f"\n\n{block}" in text
    assert "other" not in text
    assert "[19 earlier messages are folded here." in text


@pytest.mark.req("R068", "R069")
async def test_a_full_replacement_is_made_from_what_a_job_carries():
    values = TIGHT.model_copy(update={"placement": "replacement"})
    kept = await Kept.of(*turn("A."), *turn("Fix it."), *turn("C."), Asked("Now?"), values=values)
    await kept.fold(host={"plan": "1. Parse.", "todo": None, "skills": []})
    ((_, text),) = (await kept.inputs()).foldings[0].shown
    assert "## Current plan\n1. Parse." in text
    assert "- (entry 4) Fix it." in text
    assert "Todo" not in text
    assert "Skills" not in text


@pytest.mark.req("R070")
def test_after_the_replacement_comes_everything_newer():
    session = talk()
    where, _ = fold(session)
    for payload in spelled("pydantic-ai", *turn("Newer.")):
        session.add(Message(payload))
    shown = lines(request_of(session))
    last = where.spans[-1].last
    newer = [one for one in session.messages() if one.seq > last]
    assert len(shown) == 2 + 1 + len(newer)  # the first run, the summary, and all since
    assert shown[2].startswith("user      prompt: [Summary of ")
    assert shown[-1].endswith("Done.")


MERGED = TIGHT.model_copy(update={"placement": "merge"})


@pytest.mark.req("R064")
@pytest.mark.parametrize("format", FORMATS)
def test_merged_a_summary_stands_in_front_of_the_first_prompt_that_stays(format):  # noqa: A002
    session = talk(format)
    summary = render_summary(TOLD, MERGED, Quarter())
    by_hand(session, summary.as_json(), Span(4, 7))
    shown = lines(request_of(session))
    wanted = "[Summary of 19 earlier messages]⏎We chose SQLite.⏎⏎Ask 2."
    assert [line for line in shown if "SQLite" in line] == [f"user      prompt: {wanted}"]


def test_the_latest_prompt_is_sent_as_it_was_said():
    session = talk()
    by_hand(session, render_summary(TOLD, MERGED, Quarter()).as_json(), Span(4, session.head - 1))
    shown = lines(request_of(session))
    assert shown[-1] == "user      prompt: And now?"
    assert sum("SQLite" in line for line in shown) == 1


@pytest.mark.parametrize("summary", ["They talked.", {"text": "They talked."}])
def test_a_summary_written_by_hand_is_a_text(summary):
    assert parse(summary).text == "They talked."
    shown = lines(request_of(by_hand(talk(), summary, Span(4, 7))))
    assert "user      prompt: [Summary of 4 earlier messages]⏎They talked." in shown


@pytest.mark.parametrize(
    "summary",
    [
        None,
        7,
        [],
        ["a"],
        {},
        {"text": 7},
        {"shown": "x"},
        {"shown": [1, {"kind": "odd"}]},
        {"by": 1},
    ],
    ids=repr,
)
def test_a_summary_of_an_unknown_shape_shows_nothing_and_breaks_nothing(summary):
    assert parse(summary) == Summary("hand")
    shown = lines(request_of(by_hand(talk(), summary, Span(4, 7))))
    assert not any("ummary" in line for line in shown)
    assert "Ask 1." not in " ".join(shown)


def test_a_summary_of_a_newer_version_is_read_as_far_as_it_is_known():
    told = TOLD.as_json()
    assert isinstance(told, dict)
    assert parse({**told, "mood": "good", "version": 2}).words == TOLD.words


def test_values_that_a_job_does_not_carry_are_the_usual_ones():
    assert texts(render_summary(TOLD, Fold(), Quarter())) == texts(
        render_summary(TOLD, Fold(), Quarter(), host={})
    )


@pytest.mark.req("R021")
def test_a_model_s_words_come_with_references_where_the_profile_says_so():
    result = Shape("return", "line of output\n" * 200, tool="read", call="a")
    passages = (
        Passage(4, "assistant", (Shape("call", '{"path": "src/app.py"}', tool="read", call="a"),)),
        Passage(5, "tool", (result, Shape("return", "short", tool="read", call="b"))),
    )
    written = Summary("model:x", words="They read a file.", messages=2)
    summary = with_results(written, Material(passages))
    inkeep, co_cli = PROFILES["inkeep"].fold, PROFILES["co-cli"].fold
    told = render_summary(summary, inkeep, Quarter()).text
    assert told.startswith("[Summary of 2 earlier messages]\nThey read a file.\n\n## Large results")
    assert part_ref(told) == PartRef(5, 0)
    literal = render_summary(summary, co_cli, Quarter()).text
    assert literal == "[Summary of 2 earlier messages]\nThey read a file."


@pytest.mark.parametrize("tokens", [150, 300, 600, 1_200, 2_400, 4_800])
def test_of_what_a_model_wrote_whole_lines_are_left_out_and_none_is_cut(tokens):
    facts = Section(
        "Files changed", tuple(Claim(f"src/file_{n}.ts, written twice") for n in range(90))
    )
    points = [
        Claim(f"Point {n} of it", (PartRef(n, 0),), f"these are the words of entry {n}", "tool")
        for n in range(2, 60)
    ]
    account = (
        Section(HEADINGS["goal"], tuple(points[:30])),
        Section(HEADINGS["state"], tuple(points[30:])),
    )
    summary = Summary("a model", sections=(facts, *account), messages=99)
    values = PROFILES["balanced"].fold.model_copy(update={"max_tokens": tokens})
    text = render_summary(summary, values, Quarter()).text
    log, _, told = text.partition("## The model's account")
    whole = {f'- tool {n}: "these are the words of entry {n}"' for n in range(2, 60)}
    quotes = [line for line in log.splitlines() if "words of" in line]
    assert {*quotes} <= whole
    lines = [line for line in told.splitlines() if "Point" in line]
    assert {*lines} <= {f"- Point {n} of it — no source" for n in range(2, 60)}
    assert quotes == sorted(quotes, key=lambda line: int(line.split()[2][:-1]))
    assert not lines or quotes  # the account is the first to go
    assert Quarter().text(text) <= tokens + 100
    if tokens > 4_000:
        assert len(quotes) == len(lines) == len(points)


@pytest.mark.parametrize("profile", ["balanced", "co-cli"])
def test_the_tools_that_read_what_was_folded_are_named_as_the_model_sees_them(profile):
    values = PROFILES[profile].fold
    names = ["mcp__refold__recall_search", "mcp__refold__recall_read"]
    plain = render_summary(TOLD, values, Quarter()).text
    hinted = render_summary(TOLD, values, Quarter(), host={"recall": names}).text
    assert not any(name in plain for name in names)
    assert all(hinted.count(name) == 1 for name in names)
    half = render_summary(TOLD, values, Quarter(), host={"recall": names[:1]}).text
    assert half == plain  # a match that nothing can read is no help
