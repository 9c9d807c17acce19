"""The names and quotes of a summary: what is kept of them, and what is cut."""

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.fold.identifiers import identifiers, ledger
from refold.fold.material import Earlier, Passage
from refold.fold.summary import TRUNCATED, Name, Summary, clipped, fair_clip, one_line
from refold.wire import Kind, Shape
from refold.wire.pydantic_ai import PydanticAI


def plain(text):
    return " ".join(text.split())


def occurs(quote, text):
    """Whether it was said: whole, or its two ends where it was cut."""
    ends = plain(quote).split(TRUNCATED)
    return all(end.strip() in plain(text) for end in ends)


words = st.sampled_from(["src/app_main.py", "parseFrame", "max_tokens", "2048", "and", "HAT045"])
passages = st.lists(
    st.tuples(st.sampled_from(["prompt", "text", "return"]), st.lists(words, max_size=4)),
    max_size=30,
).map(
    lambda some: tuple(
        Passage(nth, "user", (Shape(cast("Kind", kind), " ".join(said)),))
        for nth, (kind, said) in enumerate(some, start=2)
    )
)


def same(one, two):
    """Whether ledgers are alike, but for what rounding may change."""
    names = [sorted((each.name, each.last) for each in names) for names in (one, two)]
    weights = [each.weight for each in one]
    return names[0] == names[1] and weights == pytest.approx(
        [each.weight for each in two], abs=0.01
    )


def summed_up(some, earlier=()):
    return Summary("test", ledger=ledger(some, earlier), messages=len(some))


@given(passages, st.integers(0, 30), st.integers(0, 30))
def test_merged_ledgers_are_the_ledger_of_everything(some, one, two):
    at, to = sorted((min(one, len(some)), min(two, len(some))))
    first = Earlier(90, summed_up(some[:at]), some[at - 1].seq if some[:at] else 0)
    second = Earlier(91, summed_up(some[at:to]), some[to - 1].seq if some[at:to] else 0)
    assert same(ledger(some[to:], (first, second)), ledger(some))
    assert same(ledger((*some[:at], *some[to:]), (second,)), ledger(some))


def test_names_that_people_wrote_and_newer_ones_weigh_more():
    old = Passage(2, "user", (Shape("prompt", "see old_name"),))
    new = Passage(3, "user", (Shape("prompt", "see new_name"),))
    found = Passage(4, "tool", (Shape("return", "tool_name"),))
    assert [one.name for one in ledger((old, new, found))] == ["new_name", "old_name", "tool_name"]


@given(st.text(), st.integers(0, 80))
def test_clipping_keeps_both_ends(text, room):
    short = clipped(text, room)
    assert len(short) <= max(room, len(TRUNCATED))
    assert occurs(short, text)
    assert "\n" not in one_line(text, room)


@given(st.lists(st.integers(0, 500), min_size=1), st.integers(0, 5_000), st.integers(1, 400))
def test_short_texts_stay_whole_beside_long_ones(lengths, room, most):
    clip = fair_clip(lengths, room, most)
    assert clip <= most
    if clip < most:
        assert sum(min(one, clip) for one in lengths) <= room


def test_long_lines_do_not_take_long():
    """A name is looked for where it can begin, not from each of a million characters on."""
    for text in ("x" * 300_000, "/-" * 100_000, "a/" * 100_000 + "/", "-" * 300_000):
        identifiers(text)
    assert identifiers("see a//b-c/dd.py and /-/x") == ["/b-c/dd.py", "/-/x"]


def test_a_name_needs_a_weight_to_be_kept():
    one = Name("max_tokens", 4.0, 2)
    assert ledger((Passage(2, "user", (Shape("prompt", "max_tokens"),)),)) == (one,)


def test_what_the_machinery_says_gives_no_names():
    delta = {
        "kind": "request",
        "parts": [
            {"part_kind": "tool-availability-delta", "tools_added": ["list_parcels"]},
            {"part_kind": "user-prompt", "content": "see parcel_id"},
        ],
    }
    call = {
        "kind": "response",
        "parts": [
            {
                "part_kind": "tool-call",
                "tool_name": "mcp__refold__recall_read",
                "args": {"at": "recall_items"},
                "tool_call_id": "1",
            }
        ],
    }
    messages = [PydanticAI().describe(json.dumps(message).encode()) for message in (delta, call)]
    some = [Passage(seq, one.role, one.shapes) for seq, one in enumerate(messages, start=2)]
    assert {each.name for each in ledger(some)} == {"parcel_id", "recall_items"}
