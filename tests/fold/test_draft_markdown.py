"""Reading what a model wrote: Markdown as it comes."""

import pytest
from draft_claims import all_of, said

from refold.fold.write.draft import from_text
from refold.fold.write.phrases import match_heading

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
    found = match_heading(heading)
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
        ("errors", "what | fix", ()),
        ("errors", "E1 | padded", (4,)),
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
    assert said("## Obsolete\n- x = 1") == [("notes", "x = 1", ())]
    written = from_text("Obsolete: the old parser, since 2024")
    assert written.obsolete == ()
    assert "the old parser" in all_of(written)


def test_a_word_before_a_colon_is_no_heading_in_a_section():
    assert said("## Files\n- Plan: docs/plan.md\n- Next: x")[0] == (
        "files",
        "Plan: docs/plan.md",
        (),
    )
