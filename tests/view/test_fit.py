"""What a request leaves out first, and last, when it would not fit otherwise."""

import json
from typing import Any

import pytest
from shown import Talk, turn, used

from refold.log import PartRef, Pinned
from refold.testing.wire import SPELLINGS, Answered, Asked, Call, Responded, Return, Told
from refold.view.budget import PER_MESSAGE
from refold.view.plan_builder import PlanBuilder
from refold.view.policies.fit import fit, mark_fitted
from refold.view.profiles import Profile
from refold.wire import Drop, Insert, Replace

PLAIN = Profile(name="plain")
LONG = 400
TALK = (
    *turn("One " + "a" * LONG, used("c1", "read", "b" * LONG), reply="c" * LONG),
    *turn("Two " + "d" * LONG, reply="e" * LONG),
    Asked("Three " + "f" * LONG),
    *used("c2", "read", "g" * LONG),
    *used("c3", "read", "h" * LONG),
)


def build(*said, format="pydantic-ai", pins=(), inserts=()):  # noqa: A002 - the glossary's word
    talk = Talk(PLAIN, *said, format=format)
    if pins:
        talk.session.add(Pinned(pins))
    builder = PlanBuilder(talk.inputs())
    builder.apply(inserts)
    return builder


def fitted(builder, room, aim=None):
    """The builder after fitting; its total lacks what was left out."""
    builder.apply(fit(builder, room, room if aim is None else aim))
    return builder


def letters(builder):
    """What is left, by the first letters of what was said."""
    texts = [
        builder.inputs.text(part)[:1]
        for row in builder.visible_rows()
        for part in builder.visible_parts(row)
        if part.kind != "call"
    ]
    return "".join(texts)


def in_ever_smaller_rooms(make, least=0):
    """What is left, room by room."""
    found = [letters(fitted(make(), room)) for room in range(make().total, least, -5)]
    return list(dict.fromkeys(found))


def test_what_fits_exactly_is_left_alone():
    builder = build(*TALK)
    assert list(fit(builder, builder.total, 0)) == []
    assert list(fit(builder, builder.total - 1, builder.total - 1)) != []


def test_the_past_goes_first_then_older_prompts_then_the_current_turn():
    assert in_ever_smaller_rooms(lambda: build(*TALK)) == [
        "ObcTeTgh",
        "OcTeTgh",
        "OTeTgh",
        "OTTgh",
        "OTgh",
        "Tgh",
        "Th",
        "T",
    ]


def test_results_that_came_with_the_latest_prompt_outlast_older_prompts():
    """Where results and words are one message of the user, the prompt's step is the newest."""

    def builder():
        return build(
            *turn("One " + "a" * LONG, reply="b" * LONG),
            *turn("Two " + "d" * LONG, reply="f" * LONG),
            Asked("Three " + "h" * LONG),
            Responded(None, (Call("c", "read", {}),)),
            Answered((Return("c", "read", "g" * LONG),), "Now?"),
            format="anthropic-messages",
        )

    assert in_ever_smaller_rooms(builder) == [
        "ObTfTgN",
        "OTfTgN",
        "OTTgN",
        "OTgN",
        "OgN",
        "gN",
        "N",
    ]


def test_without_a_prompt_the_past_goes_and_the_newest_results_last():
    def builder():
        return build(*used("c1", "read", "b" * LONG), *used("c2", "read", "c" * LONG))

    assert in_ever_smaller_rooms(builder) == ["bc", "c", ""]
    # The calls go with what answers them.
    assert [row.seq for row in fitted(builder(), builder().total - 1).visible_rows()] == [4, 5]
    assert not [*fitted(builder(), 1).visible_rows()]


def test_a_call_goes_with_its_results_where_they_came_with_the_only_prompt():
    asked = Responded(None, (Call("c", "read", {}),))
    answered = Answered((Return("c", "read", "g" * LONG),), "Now?")
    builder = fitted(build(asked, answered, format="anthropic-messages"), 1)
    assert [part.kind for row in builder.visible_rows() for part in builder.visible_parts(row)] == [
        "prompt"
    ]


def test_once_something_goes_the_past_goes_down_to_the_aim():
    builder = build(*TALK)
    assert letters(fitted(builder, builder.total - 1, builder.total - 150)) == "OTeTgh"
    one, exactly = build(*TALK), build(*TALK)
    fitted(one, one.total - 1)
    assert letters(fitted(exactly, one.total, one.total)) == "OcTeTgh"  # the aim itself will do


def test_what_only_the_room_demands_stops_as_soon_as_there_is_room():
    builder = build(Asked("Go."), *used("c", "read", "x" * 20_000))
    fitted(builder, 2_000, 10)
    assert letters(builder) == "Gx"
    assert builder.total > 1_000


def changes(builder) -> list[Any]:
    return [*builder.changes.values()]


def replaced(builder, room) -> list[Any]:
    """What fitting would cut, if nothing came of it."""
    proposed: list[Any] = [one for one in fit(builder, room, room) if isinstance(one, tuple)]
    return [one[1] for one in proposed if isinstance(one[-1], Replace)]


def test_the_newest_results_are_cut_largest_first_to_their_two_ends():
    first, second = (Call("a", "read", {}), Call("b", "read", {}))
    said = (
        Asked("Go."),
        Responded(None, (first, second)),
        Answered((Return("a", "read", "x" * 9_000), Return("b", "read", "y" * 20_000))),
    )
    builder = build(*said)
    part = builder.inputs.rows[-1].parts[1]
    mark = "\n[…20000 chars, cut to fit]\n"
    fitted(builder, builder.total - 1)
    assert builder.changes == {(part.seq, 1): Replace(2_000, mark, 2_000, "fitted")}
    fitted(builder, builder.total - 1)
    assert [one.head for one in changes(builder)] == [2_000, 2_000]
    fitted(builder, 400)
    assert [one.head for one in changes(builder)] == [200, 200]
    assert {one.text for one in changes(builder)} == {mark, mark.replace("20000", "9000")}
    fitted(builder, 100)
    assert letters(builder) == "G"


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
def test_a_result_is_cut_only_where_that_makes_it_shorter(more, is_cut):
    length = 2 * 200 + PER_MESSAGE + len("\n[…{length} chars, cut to fit]\n") + more
    builder = build(Asked("Go."), *used("c", "read", "x" * length))
    assert [one.reason for one in replaced(builder, 10)] == ["fitted"] * is_cut


def test_only_results_of_the_newest_step_are_cut():
    builder = build(Asked("Go." * 3_000), Responded("z" * 9_000))
    assert replaced(builder, 10) == []


def test_what_is_pinned_is_neither_cut_nor_left_out():
    builder = build(*TALK, *used("c4", "read", "i" * 9_000), pins=(PartRef(4, 0), PartRef(13, 0)))
    assert letters(fitted(builder, 10)) == "bTi"
    assert not any(isinstance(one, Replace) for one in changes(builder))


def test_a_pinned_prompt_stays_and_others_go():
    builder = build(*TALK, pins=(PartRef(2, 0),))
    assert letters(fitted(builder, 10)) == "OT"


def test_system_content_stays_wherever_it_stands():
    for format in ("openai-chat", "pydantic-ai"):  # noqa: A001 - the glossary's word
        builder = build(Told("Be kind."), *TALK, format=format)
        assert letters(fitted(builder, 10)) == "BT"


def test_system_content_within_a_step_stays_and_does_not_hold_the_step():
    asked, answered = used("c", "read", "r" * LONG)
    both: Any
    (both,) = SPELLINGS["pydantic-ai"].spell(answered)
    both["parts"].append({"content": "Be kind.", "part_kind": "system-prompt"})
    talk = Talk(PLAIN, Asked("Go."), asked)
    talk.put(json.dumps(both).encode())
    builder = fitted(PlanBuilder(talk.inputs()), 10)
    assert [*builder.inputs.step(1)] == [1, 2]
    assert letters(builder) == "GB"
    assert len([*builder.visible_rows()]) == 2


def test_all_that_is_left_out_says_why():
    builder = fitted(build(*TALK), 10)
    assert {one.reason for one in builder.changes.values()} == {"fitted"}
    assert {part.kind for row in builder.inputs.rows for part in row.parts} > {"prompt", "return"}


def quote(before, letter="t", *sources, reason="delegated"):
    return Insert(before, "prompt", letter * LONG, reason, sources=sources)


def inserted(builder):
    return [(one.before, one.text[0]) for one in builder.inserts]


def test_what_is_told_in_the_users_place_goes_before_anything_that_was_said():
    """The oldest first, all that is told in one place together."""
    inserts = (
        quote(7, "y"),
        quote(5, "w"),
        quote(7, "z", reason="late"),
        quote(5, "x"),
    )
    builder = build(*TALK, inserts=inserts)
    fitted(builder, builder.total - 1)
    assert inserted(builder) == [(7, "y"), (7, "z")]
    fitted(builder, builder.total - 1)
    assert inserted(builder) == []
    assert letters(builder) == "ObcTeTgh"


def test_what_is_told_stays_where_it_is_pinned_or_the_users_own():
    source = PartRef(4, 0)
    inserts = (
        quote(7, "p", source),
        quote(7, "q", PartRef(5, 0)),
        quote(7, "o", reason="opening"),
    )
    builder = build(*TALK, inserts=inserts, pins=(source,))
    fitted(builder, 10)
    assert inserted(builder) == [(7, "p"), (7, "o")]


def summary(before, letter, seq):
    return Insert(before, "prompt", letter * LONG, "summary", sources=(PartRef(seq, 0),))


def test_summaries_go_the_oldest_first_and_each_leaves_a_line_in_its_place():
    inserts = (summary(9, "y", 20), summary(3, "x", 21), summary(3, "w", 21))
    builder = build(Asked("Go."), Responded("Done."), Asked("And?"), inserts=inserts)
    fitted(builder, builder.total - 20)
    line = "[Earlier conversation left out to stay within context budget]"
    left = Insert(3, "prompt", line, "fitted", sources=(PartRef(21, 0),))
    assert builder.inserts == [inserts[0], left]
    fitted(builder, 60)
    assert builder.inserts == [left, Insert(9, "prompt", line, "fitted", sources=(PartRef(20, 0),))]


def test_a_summary_shorter_than_the_line_for_it_stays():
    line = "[Earlier conversation left out to stay within context budget]"
    for length, kept in ((len(line), True), (len(line) + 4, False)):
        short = Insert(2, "prompt", "s" * length, "summary", sources=(PartRef(20, 0),))
        builder = fitted(build(Asked("Go."), inserts=(short,)), 1)
        assert (builder.inserts == [short]) == kept


def test_summaries_outlast_all_but_the_newest_results():
    builder = build(*TALK, inserts=(summary(2, "s", 20),))
    sizes = range(builder.total, 200, -5)
    found = []
    for room in sizes:
        one = fitted(build(*TALK, inserts=(summary(2, "s", 20),)), room)
        found.append(letters(one) + inserted(one)[0][1])
    assert list(dict.fromkeys(found))[-3:] == ["Ths", "Th[", "T["]


def test_one_marker_stands_where_the_first_message_was_left_out():
    builder = build(*TALK)
    assert list(mark_fitted(builder, "{count} gone")) == []
    fitted(builder, builder.total - 150)
    assert [one.seq for one in builder.inputs.rows if builder.lost(one, "fitted")] == [3, 4, 5]
    assert list(mark_fitted(builder, "{count} gone")) == [Insert(3, "prompt", "3 gone", "fitted")]
    assert list(mark_fitted(builder, "")) == []


def test_a_marker_tells_only_of_what_was_left_out_to_fit():
    builder = build(*TALK)
    builder.apply([(part, Drop("window")) for part in builder.inputs.rows[0].parts])
    assert list(mark_fitted(builder, "{count} gone")) == []


def test_nothing_said_and_too_much_told_leaves_nothing():
    builder = build(inserts=(quote(2),))
    assert builder.inputs.rows == []
    assert fitted(builder, 10).inserts == []
    assert list(fit(build(inserts=(quote(2, reason="opening"),)), 10, 10)) == []
