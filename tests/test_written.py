"""Reading what a model wrote, in whatever form, and merging it."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from refold.fold.material import Earlier
from refold.fold.summary import Claim, Section, Summary
from refold.fold.write.citations import cited
from refold.fold.write.subjects import known
from refold.fold.write.written import (
    HEADINGS,
    Form,
    Point,
    Said,
    Written,
    from_form,
    from_text,
    known_from,
    merged,
)
from refold.log import PartRef

DATA = Path(os.environ.get("REFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))
WORD = re.compile(r"q[a-z]+z")


def said(text):
    """The claims of a text, as triples."""
    return [(one.subject, one.text, one.cites) for one in from_text(text).said]


def all_of(written):
    return "\n".join((written.title, *(one.text for one in written.said)))


# ---- the form that is asked for

ASKED = """Title: The parser of dates
## Goal
- "make it take ISO weeks" [1]
## Decisions
- `parse_week` was added to src/dates.py [4, 6]
## Files
- src/dates.py: changed [6]
## Errors
- ValueError in test_weeks, solved by padding [7-9]
## State
- All tests pass [9]
## Next
- The assistant meant to update the docs [9]
## Questions
- Whether weeks begin on Monday [1]
Obsolete: 3, 7
"""


@pytest.mark.req("R057")
def test_the_form_that_is_asked_for_is_read_whole():
    written = from_text(ASKED)
    assert written == Written(
        "The parser of dates",
        (
            Said("goal", '"make it take ISO weeks"', (1,)),
            Said("decisions", "`parse_week` was added to src/dates.py", (4, 6)),
            Said("files", "src/dates.py: changed", (6,)),
            Said("errors", "ValueError in test_weeks, solved by padding", (7, 8, 9)),
            Said("state", "All tests pass", (9,)),
            Said("next", "The assistant meant to update the docs", (9,)),
            Said("questions", "Whether weeks begin on Monday", (1,)),
        ),
        (3, 7),
        ASKED,
    )


def test_the_same_as_structured_output():
    form = Form(
        title="The parser\nof dates",
        goal=[Point(text="weeks", entries=[1, 1, -4])],
        files=[Point(text="src/dates.py [6]"), Point(text="  ")],
        obsolete=[3, 3, 0],
    )
    written = from_form(form)
    assert written.title == "The parser of dates"
    assert written.said == (Said("goal", "weeks", (1,)), Said("files", "src/dates.py", (6,)))
    assert written.obsolete == (3,)
    assert Form.model_validate_json(written.text) == form


def test_the_form_has_a_field_for_each_section_but_notes():
    assert set(Form.model_fields) == {*HEADINGS, "title", "obsolete"} - {"notes"}
    with pytest.raises(ValidationError):
        Form.model_validate({"goal": [{"entries": [1]}]})


def test_json_in_place_of_markdown_is_read():
    form = Form(title="t", goal=[Point(text="weeks", entries=[1])], obsolete=[2])
    for text in (form.model_dump_json(), f"Sure!\n```json\n{form.model_dump_json(indent=1)}\n```"):
        written = from_text(text)
        assert (written.title, written.obsolete) == ("t", (2,))
        assert written.said == (Said("goal", "weeks", (1,)),)


def test_json_with_other_names_and_shapes_is_read():
    odd = '{"Next Steps": "one\\ntwo [4]", "x": {"y": [1, {"claim": "z", "sources": "5-6"}]}}'
    assert said(odd) == [
        ("next", "one", ()),
        ("next", "two", (4,)),
        ("notes", "x:", ()),
        ("notes", "y: 1", ()),
        ("notes", "z", (5, 6)),
    ]


def test_json_that_was_cut_off_is_read_as_far_as_it_goes():
    assert said('{"goal": [{"text": "all of it", "entries": [1]}, {"text": "and half') == [
        ("goal", "all of it", (1,)),
        ("goal", "and half", ()),
    ]


def test_fields_of_the_same_name_are_all_read():
    assert [one[1] for one in said('{"goal": "a", "goal": "b"}')] == ["a", "b"]


# ---- Markdown as it comes


@pytest.mark.parametrize(
    "heading",
    [
        "# Goal",
        "### 1. Goal:",
        "**Goal**",
        "**Goal:**",
        "__Goal__:",
        "Goal:",
        "Goal\n====",
        "Goal\n----",
        "<goal>",
        "## Ziel",
        "## Objectif",
        "## Objetivo",
        "## 目标",
        "## 目標",
        "## Цель",
        "## Primary Request and Intent",
        "## User's goal",
    ],
)
def test_a_heading_is_understood_however_it_is_written(heading):
    assert [one[0] for one in said(f"{heading}\n\n- weeks\n")] == ["goal"]


@pytest.mark.parametrize(
    ("heading", "subject"),
    [
        ("Key Decisions Made", "decisions"),
        ("Completed Work (WP1-WP13)", "decisions"),
        ("Files Created/Modified", "files"),
        ("Errors and fixes", "errors"),
        ("Fehler und Lösungen", "errors"),
        ("Current Task: File Reorganization", "state"),
        ("Aktueller Stand", "state"),
        ("Next Steps (WP14-WP20)", "next"),
        ("Prochaines étapes", "next"),
        ("下一步", "next"),
        ("Preguntas abiertas", "questions"),
        ("Pending Tasks", "next"),
    ],
)
def test_headings_of_real_models(heading, subject):
    found = known(heading)
    assert found
    assert found.slot == subject


def test_a_heading_that_says_more_than_a_subject_is_kept_with_the_first_claim():
    assert said("## Next Steps (WP14)\n- one\n- two\n## Weather\n- rain\n### Empty") == [
        ("next", "Next Steps (WP14): one", ()),
        ("next", "two", ()),
        ("notes", "Weather: rain", ()),
        ("notes", "Empty", ()),
    ]


def test_an_unknown_heading_beneath_a_known_one_is_of_its_subject():
    assert said("## Next\n### WP14\n- one\n## Other things\n- two")[0][0] == "next"


def test_a_table_is_read_row_by_row():
    text = "## Errors\n| what | fix |\n|---|:-:|\n| E1 | padded [4] |\n| E2 | none |"
    assert said(text) == [
        ("errors", "what | fix: E1 | padded", (4,)),
        ("errors", "E2 | none", ()),
    ]


def test_a_block_of_code_is_one_claim_as_it_stands():
    text = "## Files\n```py\n# Goal\nx = y[12]\n\n- z\n```\n- after"
    assert said(text) == [
        ("files", "```py\n# Goal\nx = y[12]\n\n- z\n```", ()),
        ("files", "after", ()),
    ]


def test_a_fence_that_nothing_closes_takes_nothing_with_it():
    assert [one[0] for one in said("## Goal\n- a\n```\n## Next\n- b")] == ["goal", "next"]


def test_a_fence_around_everything_is_taken_off_with_fences_inside():
    inside = "## Goal\n- a\n```py\nx = 1\n```\n## Next\n- b"
    assert said(f"Here is the summary:\n\n```markdown\n{inside}\n```") == said(inside)
    assert said("```\n## Goal\n- a\n```") == [("goal", "a", ())]


def test_items_may_go_on_and_nest():
    assert [one[1] for one in said("- one\n  goes on\n  - two [3]\n1) three\n   a. four")] == [
        "one goes on",
        "two",
        "three",
        "four",
    ]


def test_a_long_paragraph_is_read_sentence_by_sentence():
    first = "The assistant read the file and saw that it was far longer than anybody had said."
    text = f"{first} [12] It cut v1.2 of it (entry 15). Then the tests passed, all of them. " * 2
    found = said(text.strip())
    assert found[0] == ("notes", first, (12,))
    assert found[1] == ("notes", "It cut v1.2 of it.", (15,))
    assert len(found) == 6


def test_thinking_is_left_out():
    assert said("<think>\n## Goal\n- no\n</think>\n## Goal\n- yes") == [("goal", "yes", ())]
    assert said("no no\n</think>\n\n- yes") == [("notes", "yes", ())]
    assert said("<analysis>no</analysis>\n<summary>\n- yes\n</summary>") == [("notes", "yes", ())]
    assert said("<thinking>\nhm, cut off in the middle of") == []
    assert said("<think>hm\n## Goal\n- yes") == [("goal", "yes", ())]
    assert said("- `<think>` parts are dropped </think>") != []


def test_courtesies_are_left_out_and_only_at_the_ends():
    text = (
        "Sure! Here is the summary:\n- a\n- Let me know was said [3]\n\nLet me know if I can help."
    )
    assert [one[1] for one in said(text)] == ["a", "Let me know was said"]
    assert said("Here is the summary:") == []


def test_a_section_that_says_none_is_empty():
    assert said("## Errors\nNone.\n## Questions\n- n/a\n## Goal\n- None of the tests run") == [
        ("goal", "None of the tests run", ())
    ]


def test_obsolete_claims_are_named_in_many_ways():
    assert from_text("Obsolete: 3, 7").obsolete == (3, 7)
    assert from_text("**Obsolete:** [3], #7 and 9").obsolete == (3, 7, 9)
    assert from_text("## Obsolete\n- 3\n- 7: it was renamed\n").obsolete == (3, 7)
    assert from_text("Obsolete: none").obsolete == ()
    written = from_text("Obsolete: the old parser, since 2024")
    assert written.obsolete == ()
    assert "the old parser" in all_of(written)


def test_a_word_before_a_colon_is_no_heading_in_a_section():
    assert said("## Files\n- Plan: docs/plan.md\n- Next: x")[0] == (
        "files",
        "Plan: docs/plan.md",
        (),
    )


# ---- citations


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        ("done [12]", (12,)),
        ("done [12, 15]", (12, 15)),
        ("done [12][15]", (12, 15)),
        ("done [12; 15]", (12, 15)),
        ("done [12-15]", (12, 13, 14, 15)),
        ("done [12–14, 20]", (12, 13, 14, 20)),  # noqa: RUF001 - as it is written
        ("done (entries 12-14)", (12, 13, 14)),
        ("done (entry 12)", (12,)),
        ("done [entry 12, entry 15]", (12, 15)),
        ("done [#12]", (12,)),
        ("done 【12】", (12,)),
        ("完成【12】", (12,)),
        ("完成[12]", (12,)),
        ("done [Eintrag 12]", (12,)),
        ("done (see entries 12 and 15)", (12, 15)),
        ("done [^12]", (12,)),
        ("done [12.0]", (12,)),
    ],
)
def test_a_citation_is_taken_out_of_the_text(text, cites):
    assert cited(text) == (text[:4] if text[0] == "d" else text[:2], cites)


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        ("as entry 12 says", (12,)),
        ("merged (#12)", (12,)),
        ("see arr[12] there", ()),
        ("a [12](link)", ()),
        ("on [2024-01-15]", ()),
        ("all (12) of them", ()),
        ("[x] done", ()),
        ("v[0]", ()),
    ],
)
def test_what_may_be_something_else_stays_in_the_text(text, cites):
    assert cited(text) == (text, cites)


def test_of_a_long_range_only_the_ends_are_cited():
    assert cited("x [1-50]")[1] == tuple(range(1, 51))
    assert cited("x [1-51]")[1] == (1, 51)
    assert cited("x [15-12]")[1] == (15, 12)


# ---- no word is lost, nothing raises, and it takes no time

words = st.from_regex(r"\Aq[a-y]{2,6}z\Z")
pieces = st.one_of(
    words,
    st.sampled_from(
        [
            *' \n\t.:[](){`"<>#。',
            *("\n\n", "\r\n", "\u2028", "\x00", "# ", "## ", "- ", "* ", "1. ", "> ", "[x]"),
            *("| ", " |", "|---|", "```", "~~~", "**", "__", "---", "===", "[12]", "(entry 3)"),
            *("## Goal\n", "Next:", "Title: ", "Obsolete: ", "<goal>", "</goal>", "None"),
            *("Summary", "Let me", "Error: ", "：\n"),  # noqa: RUF001 - as it is written
        ]
    ),
)


@given(st.lists(pieces, max_size=40).map("".join))
def test_no_word_is_lost(text):
    written = from_text(text)
    kept = all_of(written)
    for word in WORD.findall(text):
        assert word in kept, text
    assert all(one.text.strip() for one in written.said)
    assert written.text == text


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_nothing_raises(text):
    written = from_text(text)
    assert all(number > 0 for one in written.said for number in one.cites)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
        lambda inner: st.lists(inner) | st.dictionaries(words | st.sampled_from(["goal"]), inner),
        max_leaves=20,
    )
)
def test_no_word_of_json_is_lost(value):
    text = json.dumps(value)
    kept = all_of(from_text(text))
    assert all(word in kept for word in WORD.findall(text)), text


HARD = {
    "letters": "a" * 10,
    "spaces": " " * 10,
    "words": "word and ",
    "brackets": "[12, ",
    "open": "([{<",
    "entries": "entry 12, ",
    "stars": "**",
    "rules": "- -",
    "pipes": "|-",
    "fences": "```\n",
    "tags": "<goal>",
    "thinking": "<think>\n",
    "colons": "goal:",
    "headings": "# goal\n",
    "hashes": "#",
    "numbers": "1234567890",
    "ranges": "1-",
    "sentences": "It is. [12] ",
    "json": '{"a":',
    "lists": "[",
    "objects": '{"a":[',
    "bullets": "- a [1]\n",
    "rows": "| a | b |\n",
    "quotes": '"',
    "Chinese": "错误。",
}


@pytest.mark.parametrize("name", HARD)
def test_the_time_grows_with_the_length_and_no_faster(name):
    def took(size):
        text = HARD[name] * (size // len(HARD[name]))
        start = time.process_time()
        from_text(text)
        return time.process_time() - start

    took(1_000)
    short = max(min(took(50_000), took(50_000)), 0.02)
    assert took(500_000) < 40 * short  # ten times as long: quadratic would be a hundred


# ---- summaries that real models wrote


@pytest.fixture(scope="module")
def recorded():
    file = DATA / "pi_before-compaction.jsonl"
    if not file.is_file():
        pytest.skip("the recorded sessions are not here")
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [one["summary"] for one in lines if one["type"] == "compaction"]


def test_recorded_summaries_give_claims_by_subject(recorded):
    counts = []
    for text in recorded:
        written = from_text(text)
        assert written.title == "Coding Agent Refactoring"
        by = {subject: [o for o in written.said if o.subject == subject] for subject in HEADINGS}
        counts.append({subject: len(found) for subject, found in by.items() if found})
        assert by["goal"][0].text.startswith("Refactor `coding-agent` to eliminate")
        kept = all_of(written)
        lines = [line for line in text.splitlines() if not known(line.lstrip("# "))]
        for word in re.findall(r"\w[\w./-]+\w", "\n".join(lines[1:])):
            assert word in kept
    assert counts == [
        {"goal": 1, "decisions": 17, "files": 11, "next": 13, "notes": 3},
        {"goal": 5, "decisions": 7, "files": 7, "state": 3, "next": 5, "notes": 1},
    ]


# ---- merging


def test_what_was_said_earlier_stays_unless_it_is_obsolete_or_said_anew():
    earlier = [
        Said("decisions", "A", (1,)),
        Said("decisions", "B", (2,)),
        Said("files", "C.", (3,)),
    ]
    new = Written(said=(Said("files", "c", (9,)), Said("decisions", "D", (8,))), obsolete=(2, 77))
    both = merged([new], earlier)
    assert both.said == (
        Said("decisions", "A", (1,)),
        Said("decisions", "D", (8,)),
        Said("files", "c", (3, 9)),
    )
    assert both.obsolete == (2,)


def test_only_the_newest_chunk_tells_where_things_stand():
    chunks = [
        Written(said=(Said("state", "s1"), Said("next", "n1"), Said("goal", "g1"))),
        Written(said=(Said("state", "s2"), Said("decisions", "d2"), Said("goal", "g2"))),
        Written(said=(Said("files", "f3"), Said("goal", "G1!"))),
    ]
    earlier = [Said("state", "s0"), Said("questions", "q0"), Said("next", "n0")]
    assert [one.text for one in merged(chunks, earlier).said] == [
        "g2",
        "G1!",
        "d2",
        "f3",
        "s2",
        "n1",
        "q0",
    ]


def test_the_title_is_the_newest_one_and_short():
    chunks = [Written("first"), Written("second\nline " + "x" * 99), Written("  ")]
    title = merged(chunks, []).title
    assert title.startswith("second line")
    assert len(title) <= 60
    assert merged([], []) == Written()


subjects = st.sampled_from(sorted(HEADINGS))
claims = st.builds(Said, subjects, st.text("ab. C", min_size=1).filter(str.strip), st.just((1,)))
writtens = st.lists(
    st.builds(
        Written,
        st.text(max_size=3),
        st.lists(claims, max_size=4).map(tuple),
        st.lists(st.integers(1, 9), max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(writtens, st.lists(claims, max_size=6))
def test_merging_invents_nothing_and_says_nothing_twice(written, earlier):
    both = merged(written, earlier)
    given_texts = {one.text for run in [earlier, *(w.said for w in written)] for one in run}
    assert {one.text for one in both.said} <= given_texts
    keys = [(one.subject == "goal", one.text.casefold().strip()) for one in both.said]
    assert len(keys) == len(set(keys))
    lasting = [one for w in written for one in w.said if one.subject == "decisions"]
    plain = {re.sub(r"\W+", " ", one.text).strip().casefold() for one in both.said}
    assert all(re.sub(r"\W+", " ", one.text).strip().casefold() in plain for one in lasting)
    again = merged([Written(said=both.said)], [])
    assert again.said == both.said


def test_the_claims_of_earlier_folds_are_those_that_a_model_wrote():
    summary = Summary(
        "a-model",
        sections=(
            Section("Files changed", (Claim("from the log"),)),
            Section(HEADINGS["errors"], (Claim("E", (PartRef(4, 0), PartRef(4, 1))),)),
        ),
    )
    assert known_from([Earlier(9, summary), Earlier(12, Summary("breadcrumb"))]) == [
        Said("errors", "E", (4,))
    ]
