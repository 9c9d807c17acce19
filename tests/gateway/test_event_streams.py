"""Event streams are cut into events as the standard says, whatever the chunks they come in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.gateway.dialects.events import Event, Events, EventTooLarge

LINES = st.sampled_from(
    b"data: {}|data:x|data|data:  two|event: ping|event:|: quiet|id: 7|retry: 3|nonsense|"
    b"data: a: b|dat|event: \xff|data: \xe2\x80\xa8|".split(b"|")
)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINE_STREAMS = st.lists(st.tuples(LINES, ENDINGS).map(b"".join)).map(b"".join)
WILD = st.lists(st.sampled_from([b"\n", b"\r", b"d", b"data:", b" ", b"\xef\xbb\xbf"])).map(
    b"".join
)
STREAMS = st.builds(bytes.__add__, st.sampled_from([b"", b"\xef\xbb\xbf"]), LINE_STREAMS | WILD)


def told_by(stream):
    """What the standard reads from a stream: the events with data, by name."""
    found, name, data = [], b"", None
    *lines, _unended = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    for line in lines:
        if not line:
            if data:
                found.append((name.decode(errors="replace"), data[:-1]))
            name, data = b"", None
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if field == b"data":
            data = (data or b"") + value + b"\n"
        elif field == b"event":
            name = value
    return [one for one in found if one[1]]


def cut(draw, stream):
    places = sorted(draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


def fed(chunks):
    events = Events()
    return [event for chunk in chunks for event in events.feed(chunk)], events.rest()


@given(STREAMS, st.data())
def test_any_chunks_give_the_events_of_the_whole_and_every_byte(stream, data):
    whole, rest = fed([stream])
    assert b"".join(event.raw for event in whole) + rest == stream
    assert fed(cut(data.draw, stream)) == (whole, rest)
    assert fed([bytes([byte]) for byte in stream]) == (whole, rest)


@given(STREAMS)
def test_events_are_those_of_the_standard(stream):
    if re.search(rb"\n\r\Z", stream):
        stream += b"x"  # only the next byte tells whether the line ended
    events, _ = fed([stream])
    assert [(event.name, event.data) for event in events if event.data] == told_by(stream)


def test_each_event_is_told_when_its_blank_line_is_there():
    events = Events()
    assert events.feed(b"event: a\nda") == []
    assert events.feed(b"ta: 1\n") == []
    assert events.feed(b"\n") == [Event(b"event: a\ndata: 1\n\n", "a", b"1")]
    assert events.feed(b": alive\n\ndata: 2\r\n\r\n: ") == [
        Event(b": alive\n\n", "", b""),
        Event(b"data: 2\r\n\r\n", "", b"2"),
    ]
    assert events.feed(b"\ndata: 3\r\r") == [Event(b": \ndata: 3\r\r", "", b"3")]
    assert events.rest() == b""


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_without_end_is_refused_and_nothing_is_lost(size):
    events, told, given = Events(limit=50), b"", b""
    stream = b"data: short\n\ndata: " + b"x" * 100 + b"\n\n"
    refused = False
    for at in range(0, len(stream), size):
        given += stream[at : at + size]
        try:
            told += b"".join(event.raw for event in events.feed(stream[at : at + size]))
        except EventTooLarge:
            refused = True
            break
    assert refused
    assert told + events.rest() == given


def test_an_event_as_large_as_the_limit_is_taken():
    assert len(Events(limit=13).feed(b"data: short\n\n")) == 1
    with pytest.raises(EventTooLarge):
        Events(limit=12).feed(b"data: short\n\n")
