"""Reading what a model wrote: in the form that is asked for, with its citations."""

import pytest
from draft_claims import said
from pydantic import ValidationError

from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, Form, Point, from_form, from_text
from refold.fold.write.phrases import cited

# ---- the form that is asked for

ASKED = """Title: The parser of dates
## Goal
- "make it take ISO weeks" [1]
## Decisions
- `parse_week` was added to src/dates.py [4, 6] "I added parse_week to src/dates.py"
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


def test_the_form_that_is_asked_for_is_read_whole():
    written = from_text(ASKED)
    assert written == Draft(
        "The parser of dates",
        (
            DraftClaim("goal", '"make it take ISO weeks"', (1,), "make it take ISO weeks"),
            DraftClaim(
                "decisions",
                "`parse_week` was added to src/dates.py",
                (4, 6),
                "I added parse_week to src/dates.py",
            ),
            DraftClaim("files", "src/dates.py: changed", (6,)),
            DraftClaim("errors", "ValueError in test_weeks, solved by padding", (7, 8, 9)),
            DraftClaim("state", "All tests pass", (9,)),
            DraftClaim("next", "The assistant meant to update the docs", (9,)),
            DraftClaim("questions", "Whether weeks begin on Monday", (1,)),
        ),
        (3, 7),
        ASKED,
    )


def test_the_same_as_structured_output():
    form = Form(
        title="The parser\nof dates",
        goal=[Point(text="weeks", entry=1, quote=" make it take weeks ")],
        files=[Point(text="src/dates.py [6]", entry=-4), Point(text="  ")],
        state=[Point(text="", entry=9, quote="All of the tests pass")],
        obsolete=[3, 3, 0],
    )
    written = from_form(form)
    assert written.title == "The parser of dates"
    assert written.claims == (
        DraftClaim("goal", "weeks", (1,), "make it take weeks"),
        DraftClaim("files", "src/dates.py", (6,)),
        DraftClaim("state", "All of the tests pass", (9,), "All of the tests pass"),
    )
    assert written.obsolete == (3,)
    assert Form.model_validate_json(written.text) == form


def test_the_form_has_a_field_for_each_section_but_notes():
    assert set(Form.model_fields) == {*HEADINGS, "title", "obsolete"} - {"notes"}
    with pytest.raises(ValidationError):
        Form.model_validate({"goal": [{"entry": 1}]})


def test_json_in_place_of_markdown_is_read():
    point = Point(text="weeks", entry=1, quote="make it take ISO weeks")
    form = Form(title="t", goal=[point], obsolete=[2])
    for text in (form.model_dump_json(), f"Sure!\n```json\n{form.model_dump_json(indent=1)}\n```"):
        written = from_text(text)
        assert (written.title, written.obsolete) == ("t", (2,))
        assert written.claims == (DraftClaim("goal", "weeks", (1,), point.quote),)


def test_json_with_other_names_and_shapes_is_read():
    odd = '{"Next Steps": "one\\ntwo [4]", "x": {"y": [1, {"claim": "z", "sources": "5-6"}]}}'
    assert said(odd) == [
        ("next", "one", ()),
        ("next", "two", (4,)),
        ("notes", "x", ()),
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
        ("the factor is not in [1.0, 1.7]", ()),
        ("clamped to [1.0, 1.7] now", ()),
        ("it is not in [1, 7]", ()),
    ],
)
def test_what_may_be_something_else_stays_in_the_text(text, cites):
    assert cited(text) == (text, cites)


def test_of_a_long_range_only_the_ends_are_cited():
    assert cited("x [1-50]")[1] == tuple(range(1, 51))
    assert cited("x [1-51]")[1] == (1, 51)
    assert cited("x [15-12]")[1] == (15, 12)


# ---- quotes


@pytest.mark.parametrize(
    ("line", "text", "quote"),
    [
        ('done [4] "it is all done now"', "done", "it is all done now"),
        ('done [4]: "it is all done now".', "done", "it is all done now"),
        ("done [4] “it is all done now”", "done", "it is all done now"),
        ("done [4] «it is all done now»", "done", "it is all done now"),
        ('done [4] "a": "b", "c": "d"', "done", 'a": "b", "c": "d'),
        ('done — "it is all done now"', "done", "it is all done now"),
        ('It is done. "it is all done now" [4]', "It is done.", "it is all done now"),
        ('it says "it is all done now"', 'it says "it is all done now"', "it is all done now"),
        ('"it is all done now"', '"it is all done now"', "it is all done now"),
        ('it says "all done"', 'it says "all done"', ""),
        ("it is all done now", "it is all done now", ""),
    ],
)
def test_a_quote_behind_a_point_is_read_as_such(line, text, quote):
    (claim,) = from_text(f"## State\n- {line}").claims
    assert (claim.text, claim.quote) == (text, quote)
