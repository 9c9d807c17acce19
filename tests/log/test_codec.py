"""Bodies across versions, and drafts with ids that grow."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import ClassVar
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.errors import InvalidEntry, InvalidInput
from refold.log import (
    CODEC,
    Author,
    Codec,
    Entry,
    FoldCompleted,
    FoldStarted,
    Message,
    Note,
    Opened,
    PartRef,
    Pinned,
    Requested,
    Span,
    Titled,
    Unknown,
    Value,
)
from refold.log.kinds import KINDS
from refold.testing.strategies import author, json_values, payloads


@dataclass(frozen=True, slots=True)
class Kettle(Note):
    """A kind that has had three shapes."""

    KIND: ClassVar[str] = "kettle"
    VERSION: ClassVar[int] = 3


UPCASTERS = {
    ("kettle", 1): lambda body: {"words": body["said"]},
    ("kettle", 2): lambda body: {"text": body["words"].upper()},
}


def entry(kind: str, version: int, body: bytes) -> Entry:
    return Entry(1, uuid4(), 0, kind, version, body)


def test_older_bodies_are_lifted_step_by_step():
    codec = Codec([Kettle], UPCASTERS)
    for version, body in ((1, b'{"said":"hot"}'), (2, b'{"words":"hot"}'), (3, b'{"text":"HOT"}')):
        assert codec.decode(entry("kettle", version, body)) == Kettle("HOT")


def test_a_missing_upcaster_is_known_at_once():
    with pytest.raises(InvalidEntry, match="Version 2 of 'kettle'"):
        Codec([Kettle], {("kettle", 1): UPCASTERS["kettle", 1]})


def test_what_is_newer_or_unknown_comes_back_untouched():
    codec = Codec([Kettle], UPCASTERS)
    for kind, version in (("kettle", 4), ("teapot", 1)):
        body = b'{ "odd" : [1, 2.50] }'
        assert codec.decode(entry(kind, version, body)) == Unknown(kind, version, body)


def test_fields_of_a_newer_writer_do_not_disturb():
    assert CODEC.decode(entry("title", 1, b'{"title":"x","colour":"red"}')) == Titled("x")


def test_a_body_that_is_wrong_is_named_without_its_words():
    with pytest.raises(InvalidEntry) as caught:
        CODEC.decode(entry("fold.start", 1, b'{"fold":"secret words","spans":[],"trigger":"x"}'))
    assert "fold:" in caught.value.what
    assert "secret" not in str(caught.value)


spans = st.builds(
    lambda first, more: Span(first, first + more), st.integers(1, 9), st.integers(0, 9)
)
some_spans = st.lists(spans, max_size=3).map(tuple)
parts = st.lists(st.builds(PartRef, st.integers(1, 9), st.integers(0, 3)), max_size=3).map(tuple)
values = st.one_of(
    st.builds(Opened, st.text(), st.text(), st.none() | st.text()),
    st.builds(Message, payloads()),
    st.builds(Note, st.text(), json_values),
    st.builds(FoldStarted, st.uuids(), some_spans, st.text()),
    st.builds(FoldCompleted, st.uuids(), some_spans, json_values),
    st.builds(Pinned, parts),
    st.builds(Requested, some_spans, json_values, st.text(), st.text()),
)


@given(values)
def test_values_survive_their_bodies(value: Value):
    draft = author().draft(value)
    assert CODEC.decode(entry(draft.kind, draft.version, draft.body)) == value


def test_kinds_have_names_of_their_own():
    assert len({kind.KIND for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"{'a':1}", b"nothing", b'{"a":NaN}', b"[Infinity]", b'"\xff"', b"[" * 10**5],
)
def test_a_message_that_is_not_json_is_refused(body: bytes):
    with pytest.raises(InvalidEntry, match="not JSON"):
        Author().draft(Message(body))


def test_ids_are_uuid7_and_grow():
    times = iter([5, 5, 5, 4, 6, 6, 1, 7])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    writer = Author(lambda: start + timedelta(milliseconds=next(times)), Random(1))  # noqa: S311 - the same every time
    drafts = [writer.draft(Note("x")) for _ in range(8)]
    ids = [draft.id for draft in drafts]
    assert ids == sorted(set(ids))
    assert {(one.version, one.variant) for one in ids} == {(7, "specified in RFC 4122")}
    assert ids[0].int >> 80 == drafts[0].at == int(start.timestamp() * 1000) + 5


def test_two_authors_do_not_meet():
    ids = {Author().draft(Note("x")).id for _ in range(1_000)}
    assert len(ids) == 1_000


def test_a_clock_tells_its_time_zone():
    with pytest.raises(InvalidInput, match="time zone"):
        Author(lambda: datetime(2026, 1, 1)).draft(Note("x"))  # noqa: DTZ001 - that is the point
