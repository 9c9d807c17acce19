"""The watchdog: what is read again after a fold is noticed, counted, and kept in the view."""

import json

import pytest
from folding import material_of, session_of
from hypothesis import given
from hypothesis import strategies as st
from shown import used

from refold.fold.events import FoldEvent
from refold.fold.material import Passage
from refold.fold.summary import Read, Summary, parse
from refold.fold.watchdog import (
    KEPT_IN_VIEW,
    MAX_READS,
    Pins,
    ReadAgain,
    Watchdog,
    pins,
    reads_of,
    rereads,
)
from refold.log import (
    CODEC,
    Author,
    Cleared,
    Draft,
    Entry,
    PartRef,
    Pinned,
    Span,
    Unpinned,
)
from refold.log.outline import Outline, advance, replay
from refold.testing.wire import Answered, Asked, Call, Responded, Return
from refold.wire import Shape

FILE = "def total(values):\n    return sum(values)\n" * 8  # 80 tokens
WIDE = 40_000  # 4,000 tokens for pins, 1,000 for one


def spoken(*said):
    """What is said, as the passages of a fold."""
    session = session_of(Asked("Go on."), *said)
    return material_of(session, (Span(2, session.head),)).passages


def step(call, tool="read", result=FILE, **args):
    return used(call, tool, result, **(args or {"path": "src/a.py"}))


def both(before, *after):
    """What is read again of `before` in `after`, with a fold between the two."""
    session = session_of(Asked("Go."), *(one for part in before for one in part))
    material = material_of(session, (Span(2, session.head),))
    later = spoken(*(one for part in after for one in part))
    moved = [one._replace(seq=one.seq + session.head) for one in later[1:]]
    return rereads(reads_of(material), moved)


# What is a read, and what is the same one.


def test_the_same_file_read_again_is_noticed():
    (found,) = both([step("c1")], step("c2"))
    assert (found.tool, found.what, found.times, found.same) == ("read", "src/a.py", 2, True)
    assert found.old == PartRef(4, 0)
    assert (found.read.call, found.read.part) == (PartRef(7, 0), PartRef(8, 0))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (step("c1"), step("c2", path="src/b.py")),
        (step("c1"), step("c2", tool="stat")),
        (step("c1", tool="grep", pattern="a", path="src"), step("c2", path="src")),
        (step("c1", "grep", pattern="a", path="s"), step("c2", "grep", pattern="b", path="s")),
        (step("c1", tool="write_file"), step("c2", tool="write_file")),
        (step("c1", path="a.py"), step("c2", path="a.py", result="something else")),
    ],
)
def test_another_read_is_none_again(before, after):
    assert both([before], after) == []


@pytest.mark.parametrize(
    "args",
    [{"query": "x"}, {"pattern": "x", "path": "src"}, {"command": "ls"}, {"url": "x"}, {"n": 1}],
)
def test_searches_are_read_again_while_nothing_changed(args):
    (found,) = both([step("c1", "find", **args)], step("c2", "find", **args))
    assert found.same
    between = step("c2", "edit", path="elsewhere.py")
    assert both([step("c1", "find", **args)], between, step("c3", "find", **args)) == []


def test_the_order_of_arguments_says_nothing():
    one, two = {"path": "a", "offset": 1}, {"offset": 1, "path": "a"}
    assert both([step("c1", **one)], step("c2", **two))[0].same


def test_another_piece_of_a_file_is_the_file_again():
    (found,) = both([step("c1", path="a.py")], step("c2", path="./a.py", offset=100, result="end"))
    assert (found.same, found.times) == (False, 2)


@pytest.mark.parametrize("path", ["src/a.py", "./src/a.py", "src\\a.py", "src/x/../a.py"])
def test_a_file_that_changed_is_read_anew(path):
    edit = step("c2", tool="edit_file", path=path, result="done")
    assert both([step("c1")], edit, step("c3")) == []
    assert both([step("c1"), edit], step("c3")) == []
    other = step("c2", tool="edit_file", path="src/ab.py", result="done")
    assert len(both([step("c1")], other, step("c3"))) == 1


def test_read_anew_and_then_once_more_is_not_after_the_fold():
    edit = step("c2", tool="edit", path="src/a.py", result="done")
    assert both([step("c1")], edit, step("c3"), step("c4")) == []


def test_a_folder_in_which_something_changed_is_listed_anew():
    edit = step("c2", tool="create", path="src/deep/new.py", result="done")
    listing = step("c1", tool="ls", path="src/"), step("c3", tool="ls", path="src")
    assert both([listing[0]], edit, listing[1]) == []
    assert len(both([listing[0]], listing[1])) == 1


def test_what_is_recalled_twice_is_noticed_without_a_fold_between():
    twice = step("c1", "recall_read", at="12.0"), step("c2", "recall_read", at="12.0")
    (found,) = both([], *twice)
    assert (found.tool, found.same, found.times) == ("recall_read", True, 2)
    edit = step("c3", tool="edit", path="src/a.py", result="done")
    assert len(both([twice[0]], edit, twice[1])) == 1
    assert both([], twice[0], step("c2", "recall_read", at="13")) == []


def test_a_file_that_returns_something_else_is_new_in_all_its_pieces():
    pieces = step("c1"), step("c2", path="src/a.py", offset=9)
    assert len(both(pieces, step("c3", path="src/a.py", offset=9))) == 1
    assert both(pieces, step("c3", result="new"), step("c4", path="src/a.py", offset=9)) == []


def test_a_call_is_answered_once():
    call = Shape("call", '{"path": "a"}', "read", "c")
    back = Shape("return", "text", "read", "c")
    said = [Passage(2, "assistant", (call,)), Passage(3, "tool", (back,))]
    known = Watchdog()
    known.take([*said, Passage(4, "tool", (back,))])
    assert [one.part for one in known.reads] == [PartRef(3, 0)]


def test_each_time_is_counted():
    again = [step(f"c{nth}") for nth in range(2, 6)]
    assert [one.times for one in both([step("c1")], *again)] == [2, 3, 4, 5]


def test_calls_at_once_are_told_apart():
    calls = tuple(Call(f"d{nth}", "read", {"path": f"{nth}.py"}) for nth in range(3))
    results = tuple(Return(f"d{nth}", "read", f"text {nth}") for nth in (2, 0, 1))
    at_once = (Responded(None, calls), Answered(results))
    found = both([at_once], step("e1", path="0.py", result="text 0"))
    assert [(one.what, one.same) for one in found] == [("0.py", True)]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12), st.integers(0, 12))
def test_it_does_not_matter_in_how_many_pieces_it_is_told(said, cut):
    steps = [
        step(f"c{at}", "edit" if edits else "read", path=f"{nth}.py")
        for at, (nth, edits) in enumerate(said)
    ]
    whole = spoken(*(one for part in steps for one in part))
    before = [Read(*one[:5], PartRef(1, 0), 1) for one in reads_of(_material(steps[:cut]))]
    at_once = rereads(before, whole)
    dog = Watchdog(before)
    assert [found for one in whole for found in dog.take([one])] == at_once


def _material(steps):
    session = session_of(Asked("Go."), *(one for part in steps for one in part))
    return material_of(session, (Span(2, session.head),))


# What a fold remembers.


def test_a_fold_remembers_numbers_and_no_words():
    reads = reads_of(_material([step("c1"), step("c2", "grep", pattern="secret")]))
    kept = Summary("breadcrumb", reads=reads).as_json()
    assert parse(kept).reads == reads
    assert len(reads) == 2

    def words(value):
        if isinstance(value, dict):
            return [word for one in value.values() for word in words(one)]
        if isinstance(value, list):
            return [word for one in value for word in words(one)]
        return [value] if isinstance(value, str) else []

    assert words(kept) == ["breadcrumb"]


def test_a_fold_remembers_the_newest_and_no_more():
    every = [step(f"c{nth}", path=f"{nth}.py") for nth in range(MAX_READS + 20)]
    reads = reads_of(_material(every))
    assert len(reads) == MAX_READS
    assert reads[-1].part == max(one.part for one in reads)
    assert len(json.dumps(Summary("x", reads=reads).as_json())) < 50_000


def test_a_fold_forgets_the_pieces_of_a_file_that_returned_something_else():
    pieces = step("c1"), step("c2", path="src/a.py", offset=9)
    assert len(reads_of(_material(pieces))) == 2
    assert len(reads_of(_material([*pieces, step("c3", result="new")]))) == 1


def test_reads_without_a_result_are_none():
    assert reads_of(_material([(Responded(None, (Call("c", "read", {"path": "a"}),)),)])) == ()


# Which pins stay.


def some(nth, folds=0):
    return Read(nth, nth, 1, 1, PartRef(2 * nth, 0), PartRef(2 * nth + 1, 0), 1, folds)


numbers = st.lists(st.integers(1, 12), unique=True, max_size=8)


@given(numbers, numbers, numbers, st.integers(0, 3_000))
def test_pins_never_cost_more_than_their_room(watched, alive, wanted, room):
    costs = {part: 37 * part.seq for nth in range(30) for part in [PartRef(nth + 1, 0)]}
    pinned = {part for nth in watched for part in (some(nth).call, some(nth).part)}
    reads = [some(nth) for nth in sorted({*alive, *wanted})]

    def cost(parts):
        return sum(costs[one] for one in parts)

    now = pins(pinned, reads, [some(nth) for nth in wanted], cost, room)
    after = (pinned - {*now.unpin}) | {*now.pin}
    assert cost(after) <= room
    assert not pinned & {*now.pin}
    assert {*now.unpin} <= pinned
    assert all((one.call in after) == (one.part in after) for one in reads)
    assert after <= {part for one in reads for part in (one.call, one.part)}
    assert pins(after, reads, [], cost, room) == Pins()


def test_what_went_through_a_fold_is_let_go_at_the_next():
    pinned = [some(1).call, some(1).part]
    assert pins(pinned, [some(1)], [], lambda _: 1, 10) == Pins()
    assert pins(pinned, [some(1, folds=1)], [], lambda _: 1, 10).unpin == tuple(pinned)


def test_of_what_is_read_twice_at_once_the_newest_is_pinned():
    twice = [some(1), some(2)._replace(how=1)]
    now = pins([], twice[1:], twice, lambda parts: len([*parts]), 10)
    assert now.pin == (twice[1].call, twice[1].part)


def test_the_oldest_goes_first():
    def cost(parts):
        return 5 * len([*parts])

    pinned = [part for nth in (1, 2, 3, 4) for part in (some(nth).call, some(nth).part)]
    now = pins(pinned, [*map(some, range(1, 6))], [some(5)], cost, 40)
    assert now == Pins((some(5).call, some(5).part), (some(1).call, some(1).part))


# The log: who pinned.


def outlined(*values):
    author = Author()
    entries = [_entry(author.draft(one), seq) for seq, one in enumerate(values, 5)]
    found = Outline()
    for entry in entries:
        found = advance(found, entry)
    assert found == replay(entries)
    return found


def _entry(draft: Draft, seq):
    return Entry(seq, draft.id, draft.at, draft.kind, draft.version, draft.body)


A, B = PartRef(2, 0), PartRef(3, 0)


def test_the_outline_knows_which_pins_no_person_made():
    assert outlined(Pinned((A, B), watched=True)).watched == (A, B)
    assert outlined(Pinned((A,)), Pinned((A, B), watched=True)).watched == (B,)
    assert outlined(Pinned((A, B), watched=True), Pinned((A,))).watched == (B,)
    gone = outlined(Pinned((A, B), watched=True), Unpinned((A,)))
    assert (gone.pins, gone.watched) == ((B,), (B,))
    assert outlined(Pinned((A,), watched=True), Cleared()).watched == ()


def test_a_pin_of_a_person_is_written_as_ever():
    assert json.loads(CODEC.encode(Pinned((A,)))) == {"parts": [{"seq": 2, "index": 0}]}
    entry = _entry(Author().draft(Pinned((A,), watched=True)), 5)
    assert CODEC.decode(entry) == Pinned((A,), watched=True)


def test_the_event_has_words_and_its_telemetry_none():
    event: FoldEvent = ReadAgain("read", "src/secret.py", 3, 120, True, KEPT_IN_VIEW)  # noqa: FBT003
    assert event.as_json() == {
        "type": "session.reread",
        "tool": "read",
        "what": "src/secret.py",
        "times": 3,
        "tokens": 120,
        "pinned": True,
        "remedy": KEPT_IN_VIEW,
    }
    assert event.telemetry() == {
        "type": "session_reread",
        "times": 3,
        "tokens": 120,
        "pinned": True,
    }


def test_shapes_without_a_tool_or_with_broken_arguments_are_no_trouble():
    call = Shape("call", '{"path": ', tool=None, call="x")
    back = Shape("return", "text", call="x")
    stray = Shape("return", "text", call="nobody")
    assert rereads((), [Passage(2, "assistant", (call,)), Passage(3, "tool", (back, stray))]) == []
