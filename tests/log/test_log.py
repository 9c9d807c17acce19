"""The pure parts of the log: spans, artifacts, lineages, words, outlines."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refold.errors import InvalidInput, WrittenByNewer
from refold.log import Cleared, Entry, Message, Opened, Outline, PartRef, Span, Titled
from refold.log.admit import Facts, Write, admit, admit_plain
from refold.log.artifact import INLINE_LIMIT, lift, lower
from refold.log.entry import intersect, seqs, spans_of, subtract, take_last, union
from refold.log.excerpt import excerpt
from refold.log.outline import (
    CONTROL_KINDS,
    MAX_SEGMENTS,
    REPLAYED_KINDS,
    Segment,
    advance,
    dump,
    load,
    plan_fork,
    replay,
    within,
)
from refold.log.protocol import State
from refold.log.text import contains_all, index_words, placed_words, terms, text_of, words
from refold.stores import MemoryStore
from refold.terminal_text import whole_words
from refold.testing.machine import LogMachine
from refold.testing.strategies import author, large_message, plain_values

numbers = st.sets(st.integers(1, 40))


@given(numbers, numbers, st.integers(0, 50))
def test_spans_are_sets_of_seqs(left, right, count):
    a, b = spans_of(left), spans_of(right)
    assert list(seqs(a)) == sorted(left)
    assert list(seqs(union((*a, *b)))) == sorted(left | right)
    assert list(seqs(intersect(a, b))) == sorted(left & right)
    assert list(seqs(subtract(a, b))) == sorted(left - right)
    assert list(seqs(take_last(a, count))) == sorted(left)[max(0, len(left) - count) :]
    assert all(one.last + 1 < two.first for one, two in pairwise(a))


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 1), (-1, -1)])
def test_impossible_spans_are_refused(first, last):
    with pytest.raises(InvalidInput):
        Span(first, last)
    with pytest.raises(InvalidInput):
        PartRef(0, first)


text_pieces = st.sampled_from(
    ['"', "\\", "\n", "é", "日", "\U0001f600", "\x7f", "\u2028", "/", "x"]
)
large_texts = (
    st.lists(text_pieces, min_size=1, max_size=5).map("".join).map(lambda t: t * INLINE_LIMIT)
)


@settings(max_examples=100)
@given(
    st.lists(large_texts | st.text(max_size=9), max_size=3),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_bodies_are_lifted_and_put_back_byte_for_byte(texts, ascii_only, indent):
    body = json.dumps({"parts": texts}, ensure_ascii=ascii_only, indent=indent).encode()
    lean, holes, artifacts = lift(body)
    json.loads(lean)
    assert len(lean) <= INLINE_LIMIT
    assert lower(lean, holes, {one.hash: one.data for one in artifacts}.__getitem__) == body
    plain = {one.data.decode() for one in artifacts if one.media_type == "text/plain"}
    assert plain <= set(texts)


def test_odd_spellings_are_lifted_as_they_are():
    odd = b'"' + b"\\u0041\\/" * INLINE_LIMIT + b"\\ud800" + b'"'
    lean, holes, [artifact] = lift(odd)
    assert (lean, holes[0].form) == (b'""', "raw")
    assert lower(lean, holes, lambda _: artifact.data) == odd


lengths = st.lists(st.integers(1, 50), min_size=1, max_size=80)


@given(lengths, st.data())
def test_a_fork_reads_what_its_source_did(lengths, data):
    segments, first = [], 1
    for source, length in enumerate(lengths, 1):
        segments.append(Segment(source, first, first + length - 1))
        first += length
    at = data.draw(st.integers(1, first - 1))
    child = 1000
    fork = plan_fork(segments, at, child)
    assert len(fork.segments) <= MAX_SEGMENTS
    copied = {seq: one.source for one in fork.copies for seq in range(one.first, one.last + 1)}
    held = {}
    for one in fork.segments:
        for seq in range(one.first, one.last + 1):
            assert seq not in held
            held[seq] = copied[seq] if one.source == child else one.source
    expected = {
        seq: one.source
        for one in within(segments, Span(1, at))
        for seq in range(one.first, one.last + 1)
    }
    assert held == expected


def test_a_fork_copies_the_cheapest_neighbors():
    segments = [Segment(1, 1, 1_000_000)]
    segments += [Segment(at, 1_000_000 + at - 1, 1_000_000 + at - 1) for at in range(2, 40)]
    fork = plan_fork(segments, segments[-1].last, 1000)
    assert fork.segments[0] == segments[0]
    assert sum(map(len, fork.copies)) <= 2 * (len(segments) - MAX_SEGMENTS)


@given(st.text(), st.text())
def test_a_text_is_found_by_its_own_words(text, other):
    whole = f"{other} {text} {other}"
    query = terms(text)
    assert contains_all(query, whole) == bool(query)
    assert words(" ".join(words(text))) == words(text)


@given(st.text() | st.text("aé\u0301ßİ½ｶﾞ東か\u3099ﬁ각\u1100\u1161\u11a8\u093f🙂1_ -Σς"))
def test_words_have_places_in_their_text(text):
    placed = list(placed_words(text))
    assert [one.word for one in placed] == index_words(text)
    assert all(0 <= one.start < one.end <= len(text) for one in placed)
    assert [one.start for one in placed] == sorted(one.start for one in placed)
    assert index_words(" ".join(index_words(text))) == index_words(text)


@given(
    st.lists(st.text("ab-é東🙂\u0301", min_size=1, max_size=6), min_size=1, max_size=20),
    st.integers(0, 30_000),
    st.integers(0, 30_000),
    st.sampled_from(["hay ", "hay\n\n", "干", "hay"]),
    st.data(),
)
def test_an_excerpt_shows_the_word_wherever_it_is(said, before, after, hay, data):
    text = f"{hay * before} {' '.join(said)} {hay * after}"
    for query in [one for one in said if terms(one)][:3]:
        shown = excerpt(text, query, data.draw(st.integers(60, 300)))
        assert contains_all(terms(query), shown), (query, shown)
        assert len(shown) <= 302


def test_excerpts_show_the_place():
    text = f"{'before ' * 100}the Needle itself{' after' * 100}"
    shown = excerpt(text, "needle", 60)
    assert "the Needle itself" in shown
    assert (shown[0], shown[-1]) == ("…", "…")
    assert excerpt("short\n text", "absent", 60) == "short text"


def test_an_excerpt_has_no_halves_of_words():
    text = " ".join(f"before{n} and" for n in range(90)) + " needle " + "afterwards " * 90
    for width in range(60, 200, 7):
        shown = excerpt(text, "needle", width)
        assert "needle" in shown
        assert set(shown.strip("…").split()) <= set(text.split())
    assert whole_words("a/path" * 20, 50) == ("a/path" * 20)[:50]


def test_the_text_of_a_message_is_what_it_says():
    body = {
        "role": "assistant",
        "content": [{"type": "text", "text": "hello"}, {"type": "image", "data": "QUJD" * 99}],
        "tool_call_id": "call_1",
        "name": "read_file",
    }
    draft = author().draft(Message(json.dumps(body).encode()))
    assert text_of(draft) == "hello\nread_file"
    assert text_of(draft._replace(forgotten=True)) == ""
    assert text_of(author().draft(Opened("openai-chat", "balanced", "a title"))) == "a title"


@given(
    value=plain_values | st.sampled_from([Titled("x"), Cleared(), large_message("x", "")]),
    expected=st.sampled_from([None, 4, 5, 6]),
    change=st.sampled_from(
        [{}, {}, {}, {"scope": "/a"}, {"rests_on": (Span(1, 2),)}, {"forgotten": True}, {"at": 3}]
    ),
)
def test_a_plain_append_is_decided_as_any_other(value, expected, change):
    state = State(5, 2, "f", "p", 10, 20, Outline(), not_before=7)
    draft = author().draft(value)._replace(**change)
    after = admit_plain(state, draft, expected)
    if after is not None:
        outcome = admit("s", [draft], expected, Facts(state))
        assert isinstance(outcome, Write)
        assert (outcome.state, outcome.artifacts) == (after, ())
        [entry] = outcome.entries
        assert entry == Entry(6, *draft[:6])
    plain = value.KIND in {"message", "note"} and len(draft.body) <= INLINE_LIMIT
    assert (after is not None) == (
        plain and expected in {None, 5} and change in ({}, {"scope": "/a"})
    )


class AdvancingMachine(LogMachine):
    """Moving an outline entry by entry comes to the same as replaying all of them."""

    def new_store(self):
        return MemoryStore(clock=self.clock)

    def check_export(self, log, session):
        entries = self.run(log.read(session.name))
        controls = [entry for entry in entries if entry.kind in CONTROL_KINDS]
        outline = Outline()
        for at, entry in enumerate(controls, 1):
            known = controls[:at]
            outline = replay(known) if entry.kind in REPLAYED_KINDS else advance(outline, entry)
            assert outline == replay(map(_as_stored, known))
        assert load(dump(outline)) == outline


def _as_stored(entry: Entry) -> Entry:
    return entry._replace(body=b"") if entry.kind == "request" else entry


AdvancingMachine.TestCase.settings = settings(max_examples=settings().max_examples)
TestOutlines = AdvancingMachine.TestCase


def test_outlines_of_other_versions():
    data = json.loads(dump(Outline(title="x")))
    assert load(json.dumps({**data, "version": 0}).encode()) is None
    with pytest.raises(WrittenByNewer, match="newer"):
        load(json.dumps({**data, "version": 2, "shape": "new"}).encode())
