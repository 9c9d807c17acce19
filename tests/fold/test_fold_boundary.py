"""What a fold stands for, and what it leaves: on random sessions, and by the letter."""

from typing import Any
from uuid import UUID

import pytest
from folding import fold, session_of, sheet_of, spelled
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Remembering, Session, scripts

from refold.fold.material import Boundary, boundary, everything
from refold.log import FoldCompleted, FoldStarted, Message, Span
from refold.log.entry import intersect, subtract
from refold.testing.wire import Asked, Responded, Told
from refold.view.budget import PER_MESSAGE, Budget
from refold.view.cut import cut
from refold.view.profiles import PROFILES, Fold, Keep, Profile
from refold.view.view import View
from refold.view.view_input import weight
from refold.wire import WIRES

WIRE: dict[str, Any] = {name: Remembering(wire) for name, wire in WIRES.items()}
FORMATS = sorted(WIRES)
SHORT = {"messages": 4, "tokens": 60, "turns": 0.5, "none": 0}
KEEPS = {
    name: one.fold.keep.model_copy(
        update={
            "amount": SHORT[one.fold.keep.unit],
            "head_tokens": min(one.fold.keep.head_tokens, 100),
            "least": min(one.fold.keep.least, 2),
        }
    )
    for name, one in PROFILES.items()
}
"""What each profile keeps, for sessions of a few messages."""

each = pytest.mark.parametrize("format", FORMATS)
keeps = st.sampled_from([*KEEPS.values()])


def played(format, script):  # noqa: A002 - the glossary's word
    session = Session(format)
    for op in script:
        if op[0] == "message":
            session.add(Message(op[1]), op[2])
        elif op[0] == "steer":
            session.apply(op[1])
    return session


def rows_in(inputs, where):
    return {at for at, row in enumerate(inputs.rows) if any(row.seq in one for one in where.spans)}


@each
@settings(max_examples=60)
@given(keep=keeps, data=st.data())
def test_a_boundary_cuts_no_step_and_spares_what_must_stay(format, keep, data):  # noqa: A002
    session = played(format, data.draw(scripts(format)))
    inputs = sheet_of(session, WIRE[format])
    where = boundary(inputs, keep)
    going = rows_in(inputs, where)
    assert len(going) == where.messages
    for at in range(len(inputs.rows)):
        step = {*inputs.step(inputs.steps[at])}
        assert step <= going or not step & going
    assert inputs.prompt not in going
    assert not any(part.fixed for at in going for part in inputs.rows[at].parts)
    assert not subtract(where.spans, inputs.outline.on_line(inputs.head))
    for one in inputs.foldings:  # each is in it whole, or not at all
        told = not subtract(one.spans, where.spans)
        assert told == (one.seq in where.earlier) or not where.spans
        assert told or not intersect(one.spans, where.spans)


@each
@settings(max_examples=20)
@given(keep=keeps, data=st.data())
def test_a_view_is_legal_after_each_fold(format, keep, data):  # noqa: A002 - as above
    wire = WIRE[format]
    session = played(format, data.draw(scripts(format, steered=False)))
    more = data.draw(scripts(format, steered=False))
    values = Fold(keep=keep, placement=data.draw(st.sampled_from(["message", "replacement"])))
    for script in ([], more, more):
        for op in script:
            if op[0] == "message":
                session.add(Message(op[1]), op[2])
        fold(session, values, wire=wire)
        profile = Profile(name="plain", fold=values)
        request = View(sheet_of(session, wire), profile).request(Budget(window=10_000_000))
        assert wire.problems(request.messages) == []


@each
@settings(max_examples=40)
@given(keep=keeps.filter(lambda one: one.unit != "turns"), data=st.data())
def test_right_after_a_fold_there_is_nothing_to_fold(format, keep, data):  # noqa: A002
    """Complaint 1, death loops: what a fold leaves, it would leave again."""
    session = played(format, data.draw(scripts(format)))
    wire = WIRE[format]
    fold(session, Fold(keep=keep), wire=wire)
    inputs = sheet_of(session, wire)
    going = rows_in(inputs, boundary(inputs, keep))
    if keep.snap == "step":
        assert not going
    else:  # the tail may begin with the next turn now, and be a little shorter
        assert sum(weight(inputs.rows[at]) for at in going) < keep.amount


@each
@settings(max_examples=20)
@given(keep=keeps, data=st.data())
def test_kept_messages_do_not_vanish_at_later_folds(format, keep, data):  # noqa: A002
    """Complaint 5: the head stays the head, and what was told once is told again."""
    session = played(format, data.draw(scripts(format, steered=False)))
    more = data.draw(scripts(format, steered=False))
    wire, values = WIRE[format], Fold(keep=keep)
    head, folded = (), ()
    for _ in range(3):
        inputs = sheet_of(session, wire)
        where, _ = fold(session, values, wire=wire)
        if where.spans:
            assert not subtract(folded, where.spans)
            head = head or [row.seq for row in inputs.rows[: cut(inputs, keep).head]]
            folded = where.spans
        assert not any(seq in span for seq in head for span in folded)
        for op in more:
            if op[0] == "message":
                session.add(Message(op[1]), op[2])


@settings(max_examples=40)
@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_everything_is_all_but_what_means_something_for_the_rest(data, format):  # noqa: A002
    session = played(format, data.draw(scripts(format)))
    inputs = sheet_of(session, WIRE[format])
    going = rows_in(inputs, everything(inputs))
    left = [row for at, row in enumerate(inputs.rows) if at not in going]
    steps = {inputs.steps[inputs.at(row.seq)] for row in left}
    for start in steps:
        step = [inputs.rows[at] for at in inputs.step(start)]
        assert any(part.fixed for row in step for part in row.parts)


def test_a_stray_result_behind_a_fold_joins_no_step_before_it():
    """Else the head would end before that step, and the step be folded away."""
    prompt = b'{"role":"user","content":"And now?"}'
    done = b'{"role":"assistant","content":"Done."}'
    call = b'{"type":"tool_use","id":"c1","name":"read","input":{}}'
    asked = b'{"role":"assistant","content":[{"type":"text","text":"On it."},%b]}' % call
    returned = b'{"type":"tool_result","tool_use_id":"c1","content":""}'
    stray = b'{"role":"user","content":[%b]}' % returned
    session = Session("anthropic-messages")
    for payload in (prompt, asked, stray, done, prompt, done, prompt, stray, done, prompt, done):
        session.add(Message(payload), "/")
    keep = KEEPS["co-cli"]
    before = cut(sheet_of(session), keep)
    assert boundary(sheet_of(session), keep).spans == (Span(5, 9),)  # with the stray result
    fold(session, spans=(Span(5, 8),))  # by hand, without it
    assert cut(sheet_of(session), keep).head == before.head == 3


def test_a_late_result_joins_its_call_at_no_later_fold():
    """It goes with what closed the call's step: then nothing is left to join it."""
    call = _call("c1").replace("[{", '[{"type":"text","text":"On it."},{', 1)
    yes, done = (f'{{"role":"assistant","content":"{text}"}}' for text in ("Yes.", "Done."))
    prompt = '{"role":"user","content":"And now?"}'
    session = Session("anthropic-messages")
    for text in (prompt, call, prompt, yes, _result("c1"), done, prompt):
        session.add(Message(text.encode()), "/")
    keep, wire = KEEPS["co-cli"], WIRE["anthropic-messages"]
    for last in (4, 6):
        where, _ = fold(session, Fold(keep=keep), wire=wire)
        assert where.spans == (Span(4, last),)
        view = View(sheet_of(session, wire), Profile(name="plain", fold=Fold(keep=keep)))
        assert wire.problems(view.request(Budget(window=10_000_000)).messages) == []
        session.add(Message(prompt.encode()), "/")


def test_a_step_that_stays_keeps_the_delegated_work_that_holds_it_together():
    """A result in the main line answers a delegate's call: folding the call alone parts them."""
    session = Session("anthropic-messages")
    for text, scope in (
        ('{"role":"user","content":"One?"}', "/"),
        ('{"role":"assistant","content":"Done."}', "/"),
        ('{"role":"user","content":"Two?"}', "/"),
        (_call("open"), "/"),
        (_call("late"), "/b"),
        (_result("late", '{"type":"text","text":"Wait."}'), "/"),
        ('{"role":"assistant","content":"Done."}', "/"),
        (_call("next"), "/"),
        (_result("next"), "/"),
        ('{"role":"assistant","content":"Done."}', "/"),
    ):
        session.add(Message(text.encode()), scope)
    keep, wire = KEEPS["co-cli"], WIRE["anthropic-messages"]
    where = boundary(sheet_of(session, wire), keep)
    assert where.spans == (Span(4, 4),)
    fold(session, Fold(keep=keep), wire=wire)
    assert not boundary(sheet_of(session, wire), keep).spans


def pairs(count):
    return [one for nth in range(count) for one in (Asked(f"Ask {nth}."), Responded("Done."))]


def size(inputs, *rows):
    return sum(weight(inputs.rows[at]) for at in rows)


def test_everything_reaches_from_the_first_message_to_the_newest_entry():
    inputs = sheet_of(session_of(*pairs(2)))
    tokens = size(inputs, 0, 1, 2, 3)
    assert everything(inputs) == Boundary((Span(2, 5),), 4, tokens, (), tokens)
    assert everything(sheet_of(session_of())) == Boundary()


def test_everything_leaves_system_content_and_takes_what_is_around_it():
    session = session_of(Asked("Before."), Told("Be kind."), *pairs(1), format="openai-chat")
    inputs = sheet_of(session)
    tokens = size(inputs, 0, 2, 3)
    where = everything(inputs)
    assert where == Boundary((Span(2, 2), Span(4, 5)), 3, tokens, (), tokens)


def test_a_later_fold_takes_an_earlier_one_in_and_says_what_all_of_it_would_cost():
    keep = Keep(unit="messages", amount=2)
    session = session_of(*pairs(6))
    spans = boundary(sheet_of(session), keep).spans
    summary: Any = {"shown": [{"kind": "prompt", "text": "So far."}], "tokens": 99}
    session.add(FoldStarted(UUID(int=1), spans, "test"))
    session.add(FoldCompleted(UUID(int=1), spans, summary))
    for payload in spelled("pydantic-ai", *pairs(3)):
        session.add(Message(payload))
    inputs = sheet_of(session)
    where = boundary(inputs, keep)
    (earlier,) = inputs.foldings
    tokens = size(inputs, *rows_in(inputs, where))
    told = inputs.counter.text("So far.") + PER_MESSAGE
    assert where.earlier == (earlier.seq,)
    assert where[1:] == (6, tokens + told, (earlier.seq,), tokens + 99)
    assert not subtract(earlier.spans, where.spans)


def _call(name):
    return (
        f'{{"role":"assistant","content":[{{"type":"tool_use","id":"{name}",'
        '"name":"read_file","input":{}}]}'
    )


def _result(name, *more):
    result = f'{{"type":"tool_result","tool_use_id":"{name}","content":"x"}}'
    return f'{{"role":"user","content":[{",".join((result, *more))}]}}'
