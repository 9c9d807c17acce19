"""How a wire describes messages, and what its edits leave alone."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refold.errors import InvalidInput, InvalidMessage
from refold.testing.wire.base import (
    GONE,
    ODD_TEXTS,
    Conformance,
    around,
    editable,
    property_test,
    said_as,
)
from refold.testing.wire.script import Responded, Said, Thought, payloads
from refold.wire import Change, Replace, Shape

_EXTRA = b'"x_unknown" : {"price": 1.50, "much": 1e5,"caf\\u00e9":"\\ud800","x":[ ],"x":{ }}'
_NO_OBJECTS = (b"", b"[]", b"null", b'"text"', b"12", b"{", b'{"a":1} x', b"{}", b"{\x00}\x00")


class EditingConformance(Conformance):
    @property_test
    @given(data=st.data())
    def test_messages_are_described(self, data: st.DataObject) -> None:
        for payload in data.draw(self.conversations(legal=data.draw(st.booleans()))):
            role, shapes, _ = self.wire.describe(payload)
            calling = {shape.kind for shape in shapes} & {"call", "text", "thought"}
            assert role == "assistant" or not calling
            assert all(shape.call for shape in shapes if shape.kind in {"call", "return"})

    def test_every_sample_is_described(self) -> None:
        for payload in self.samples:
            assert self.shapes(payload), payload

    def test_what_is_no_message_is_refused(self) -> None:
        for payload in (*_NO_OBJECTS, *self.refused):
            with pytest.raises(InvalidMessage):
                self.wire.describe(payload)
            with pytest.raises(InvalidMessage):
                self.wire.edit(payload, {})
            with pytest.raises(InvalidMessage):
                self.wire.problems([payload])

    @property_test
    @given(data=st.data())
    def test_without_changes_not_a_byte_differs(self, data: st.DataObject) -> None:
        payload = data.draw(self.messages())
        assert self.wire.edit(payload, {}) == payload

    @property_test
    @given(data=st.data())
    def test_a_new_text_takes_the_place_of_the_old_one_alone(self, data: st.DataObject) -> None:
        payload = data.draw(self.messages())
        shapes = self.shapes(payload)
        assume(editable(shapes))
        nth = data.draw(st.sampled_from(editable(shapes)))
        change = said_as(shapes[nth], data.draw(st.sampled_from(ODD_TEXTS)))
        new = self.wire.edit(payload, {nth: change})
        assert new is not None
        told = self.shapes(new)
        assert told[nth] == shapes[nth]._replace(text=told[nth].text, media=())
        assert _same(told[nth].text, change.text)
        assert (told[:nth], told[nth + 1 :]) == (shapes[:nth], shapes[nth + 1 :])
        assert self.wire.describe(new)[::2] == self.wire.describe(payload)[::2]
        self._only_the_text(payload, nth)

    def _only_the_text(self, payload: bytes, nth: int) -> None:
        """Two texts without a letter in common show where they go, and what was there before."""
        shape = self.shapes(payload)[nth]
        new = [self.wire.edit(payload, {nth: said_as(shape, text)}) for text in ("AAAA", "BBBB")]
        places = [around(payload, one or b"") for one in new]
        start, end = min(start for start, _ in places), max(end for _, end in places)
        quoted = payload[start - 1 : end + 1]
        if shape.kind != "call" and quoted[:1] == quoted[-1:] == b'"':
            assert json.loads(quoted) == shape.text
        for other in set(range(len(self.shapes(payload)))) - {nth}:
            assert all(self.without(payload, other) in (one or b"") for one in new)

    @property_test
    @given(data=st.data())
    def test_a_text_may_keep_its_beginning_and_its_end(self, data: st.DataObject) -> None:
        payload = data.draw(self.messages())
        shapes = self.shapes(payload)
        texts = [nth for nth in editable(shapes) if shapes[nth].kind != "call"]
        assume(texts)
        nth = data.draw(st.sampled_from(texts))
        size = len(shapes[nth].text)
        head = data.draw(st.integers(0, size + 2))
        change = Replace(head, "[…]", data.draw(st.integers(0, max(0, size - head))), "suite")
        told = self.shapes(self.wire.edit(payload, {nth: change}))
        assert told[nth].text == change.applied(shapes[nth].text)
        if size:
            assert told[nth].media == (shapes[nth].media if change.head or change.tail else ())
        assert (told[:nth], told[nth + 1 :]) == (shapes[:nth], shapes[nth + 1 :])

    @property_test
    @given(data=st.data())
    def test_dropping_takes_those_parts_and_no_others(self, data: st.DataObject) -> None:
        payload = data.draw(self.messages())
        shapes = self.shapes(payload)
        gone = data.draw(st.sets(st.integers(0, len(shapes) - 1)))
        left = self.wire.edit(payload, dict.fromkeys(gone, GONE))
        assert self.shapes(left) == tuple(
            shape for nth, shape in enumerate(shapes) if nth not in gone
        )
        assert (left is None) == (len(gone) == len(shapes))
        if left is not None:
            json.loads(left)
            assert self.wire.describe(left)[::2] == self.wire.describe(payload)[::2]

    @property_test
    @given(data=st.data())
    def test_what_is_sealed_stays_to_the_byte(self, data: st.DataObject) -> None:
        payload = data.draw(self.messages())
        shapes = self.shapes(payload)
        new = self.wire.edit(payload, self._changes(data, payload, editable(shapes)))
        for nth in (nth for nth, shape in enumerate(shapes) if shape.sealed):
            assert self.without(payload, nth) in (new or b"")
            with pytest.raises(InvalidInput, match="sealed"):
                self.wire.edit(payload, {nth: Replace(0, "{}", 0, "suite")})

    @property_test
    @given(data=st.data())
    def test_signed_thoughts_are_sealed(self, data: st.DataObject) -> None:
        said: Said = Responded("So.", thought=Thought("Signed.", signed=True))
        for payload in data.draw(payloads(st.just([said]), self.spelling)):
            assert all(one.sealed for one in self.shapes(payload) if one.kind == "thought")

    @property_test
    @given(data=st.data())
    def test_what_nobody_knows_passes(self, data: st.DataObject) -> None:
        payload = data.draw(self.messages())
        more = b"{" + _EXTRA + b" ," + payload.lstrip()[1:]
        shapes = self.shapes(payload)
        changes = self._changes(data, payload, editable(shapes))
        new = self.wire.edit(more, changes)
        old = self.wire.edit(payload, changes)
        assert (new is None) == (old is None)
        if new is not None:
            assert _EXTRA in new
            assert _blank_unknown(self.shapes(new)) == _blank_unknown(self.shapes(old))

    def test_parts_that_are_not_there_cannot_be_changed(self) -> None:
        for payload in self.samples:
            for nth in (-1, len(self.shapes(payload))):
                with pytest.raises(InvalidInput):
                    self.wire.edit(payload, {nth: GONE})

    def _changes(self, data: st.DataObject, payload: bytes, parts: list[int]) -> dict[int, Change]:
        shapes = self.shapes(payload)
        kinds = data.draw(st.lists(st.integers(0, 2), min_size=len(parts), max_size=len(parts)))
        changed: dict[int, Change] = {}
        for nth, kind in zip(parts, kinds, strict=True):
            if kind:
                changed[nth] = GONE if kind == 1 else said_as(shapes[nth], '日本 \\ "x"')
        return changed


def _same(one: str, two: str) -> bool:
    return one == two or json.loads(one) == json.loads(two)


def _blank_unknown(shapes: Sequence[Shape]) -> list[Shape]:
    """What is not known at all may show as it is, with all its fields."""
    return [shape._replace(text="") if shape.kind == "other" else shape for shape in shapes]
