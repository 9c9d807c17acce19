"""What a wire makes, and what it says a provider would refuse."""

from typing import Final

from hypothesis import assume, given
from hypothesis import strategies as st

from refold.testing.wire import script
from refold.testing.wire.base import ODD_TEXTS, Conformance, insert, property_test, returns
from refold.testing.wire.script import (
    Answered,
    Asked,
    Call,
    Fault,
    Responded,
    Return,
    Said,
    payloads,
    scripts,
)
from refold.wire import Described, Shape

_ALWAYS: Final[tuple[Fault, ...]] = (
    script.unanswered,
    script.half_answered,
    script.orphaned,
    script.late,
    script.split,
    script.answered_twice,
    script.called_twice,
    script.before_the_call,
    script.stray,
    script.dangling,
)
"""Wherever they are made, no provider takes the result."""

_CALLING = (
    Responded(None, (Call("one", "search", {}),)),
    Responded("Two at once.", (Call("one", "search", {}), Call("two", "read_file", {"a": 1}))),
)


class LegalityConformance(Conformance):
    @property_test
    @given(data=st.data())
    def test_what_is_made_says_what_was_inserted(self, data: st.DataObject) -> None:
        texts = data.draw(st.lists(st.sampled_from(ODD_TEXTS), min_size=1, max_size=3))
        made = self.wire.make([insert("prompt", text) for text in texts])
        wanted = [Described("user", (Shape("prompt", text),)) for text in texts]
        assert list(map(self.wire.describe, made)) == wanted
        made = self.wire.make([insert("reply", text) for text in texts])
        wanted = [Described("assistant", (Shape("text", text),)) for text in texts]
        assert list(map(self.wire.describe, made)) == wanted

    @property_test
    @given(data=st.data())
    def test_returns_are_made_for_their_calls(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(ODD_TEXTS))
        wanted = [Shape("call", "", "search", "one"), Shape("call", "", "read_file", "two")]
        made = self.wire.make(returns(wanted, text))
        told = [shape for one in made for shape in self.shapes(one)]
        assert [(one.kind, one.text, one.call) for one in told] == [
            ("return", text, "one"),
            ("return", text, "two"),
        ]
        assert all(one.tool in {call.tool, None} for one, call in zip(told, wanted, strict=True))
        assert all(self.wire.describe(one).role in {"user", "tool"} for one in made)

    def test_a_lone_surrogate_does_no_harm(self) -> None:
        for kind in ("prompt", "reply", "return"):
            [made] = self.wire.make([insert(kind, "half \ud83d of it")])
            assert self.shapes(made)[0].text == "half \ud83d of it"
            assert self.wire.edit(made, {}) == made

    @property_test
    @given(data=st.data())
    def test_returns_that_are_made_answer_legally(self, data: st.DataObject) -> None:
        said: list[Said] = [Asked("Go."), data.draw(st.sampled_from(_CALLING))]
        before = data.draw(payloads(st.just(said), self.spelling))
        shapes = (shape for payload in before for shape in self.shapes(payload))
        calls = [shape for shape in shapes if shape.kind == "call"]
        assert self.wire.problems(before)
        made = self.wire.make(returns(calls))
        assert self.wire.problems([*before, *made]) == []
        asked = Asked("Well?", listed=data.draw(st.booleans()))
        [after] = data.draw(payloads(st.just([asked]), self.spelling))
        joined = self.wire.join(returns(calls), after)
        if joined is None:
            assert self.wire.problems([*before, *made, after]) == []
        else:
            assert self.wire.problems([*before, joined]) == []
            assert [one.kind for one in self.shapes(joined)[: len(calls)]] == ["return"] * len(
                calls
            )
            assert self.shapes(joined)[len(calls) :] == self.shapes(after)

    def test_nothing_is_joined_to_what_the_model_says(self) -> None:
        for payload in self.samples:
            if self.wire.describe(payload).role == "assistant":
                assert self.wire.join([insert("return", "x")], payload) is None

    @property_test
    @given(data=st.data())
    def test_legal_conversations_have_no_problems(self, data: st.DataObject) -> None:
        assert self.wire.problems(data.draw(self.conversations())) == []

    @property_test
    @given(data=st.data())
    def test_every_planted_fault_is_found(self, data: st.DataObject) -> None:
        fault = data.draw(st.sampled_from([one for one in _ALWAYS if one not in self.forgiven]))
        said = data.draw(scripts(max_moves=6))
        assume(any(isinstance(one, Answered) for one in said))
        wrong = st.just(fault(said, data.draw(st.integers(0, 20))))
        messages = data.draw(payloads(wrong, self.spelling))
        found = self.wire.problems(messages)
        assert found, fault.__name__
        assert all(0 <= one.at < len(messages) for one in found)

    @property_test
    @given(data=st.data())
    def test_faults_that_the_format_forgives_are_none(self, data: st.DataObject) -> None:
        for fault in self.forgiven:
            wrong = st.just(fault(data.draw(scripts(max_moves=6)), data.draw(st.integers(0, 20))))
            assert self.wire.problems(data.draw(payloads(wrong, self.spelling))) == []

    @property_test
    @given(data=st.data())
    def test_an_id_may_come_again_unless_the_provider_minds(self, data: st.DataObject) -> None:
        call, answer = Call("again", "search", {}), Return("again", "search", "found")
        step: list[Said] = [Responded(None, (call,)), Answered((answer,))]
        twice: list[Said] = [Asked("Go."), *step, Responded("And?"), Asked("Go on."), *step]
        found = self.wire.problems(data.draw(payloads(st.just(twice), self.spelling)))
        assert bool(found) == self.wire.unique_calls

    def test_nothing_has_no_problems(self) -> None:
        assert self.wire.problems([]) == []

    def test_the_faults_of_the_format_are_found(self) -> None:
        for what, messages in self.faults.items():
            assert self.wire.problems(messages), what

    @property_test
    @given(data=st.data())
    def test_any_conversation_is_judged(self, data: st.DataObject) -> None:
        for problem in self.wire.problems(data.draw(self.conversations(legal=False))):
            assert problem.what.endswith(".")
