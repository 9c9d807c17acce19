"""Promises 2 and 3 on random sessions: every request legal, within the limit, and rebuilt."""

from collections import Counter
from hashlib import sha256
from typing import Any

import pytest
from amounts import amount
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Quarter, Remembering, Session, scripts

from refold.errors import ViewTooLarge
from refold.log import CODEC, Message, PartRef, Requested
from refold.view.budget import PER_MESSAGE, Budget, thresholds
from refold.view.profiles import PROFILES
from refold.view.project import project
from refold.view.record import Previous, hashes_of, planned, rebuild, record
from refold.view.view import View, assemble
from refold.view.view_input import ViewInput
from refold.wire import WIRES, Drop, Replace

FORMATS = sorted(WIRES)
WIRE: dict[str, Any] = {name: Remembering(wire) for name, wire in WIRES.items()}
COUNT = amount(few=4, quick=15, ci=100, nightly=420, thorough=16_800)  # of each of twelve


def _small(profile):
    """The same profile with limits that short sessions reach."""
    window = profile.window.model_copy(
        update={
            name: low
            for name, low in {
                "max_messages": 8,
                "max_turns": 3,
                "max_tokens": 400,
                "recent_messages": 6,
                "recent_tokens": 150,
            }.items()
            if getattr(profile.window, name)
        }
    )
    trim = profile.trim.model_copy(update={"max_chars": 40 if profile.trim.max_chars else 0})
    archive = profile.archive
    if archive.min_chars:
        archive = archive.model_copy(update={"min_chars": 60, "excerpt": 8, "names": 20})
    arguments = profile.arguments
    if arguments.max_chars:
        arguments = arguments.model_copy(update={"max_chars": 20, "keep": 5, "names": 0.5})
    rewrite = profile.rewrite.model_copy(update={"at_least": 0})
    return profile.model_copy(
        update={
            "window": window,
            "trim": trim,
            "archive": archive,
            "arguments": arguments,
            "rewrite": rewrite,
        }
    )


PROFILED = [*PROFILES.values(), *map(_small, PROFILES.values())]
budgets = st.builds(
    Budget,
    window=st.integers(150, 4000),
    reserve=st.integers(0, 40),
    tools=st.integers(0, 40),
    instructions=st.integers(0, 20),
    # Each is named: what is not is drawn from all integers, and leaves no room for any request.
    learned=st.none() | st.none() | st.integers(100, 4000),
    configured=st.none() | st.none() | st.integers(100, 4000),
    guessed=st.none() | st.integers(0, 4000),
    refused=st.sampled_from([0, 0, 0, 1, 2, 3]),
    restored=st.sampled_from([0, 0, 0, 3, 5]),
)


class Host:
    """Keeps a session and its view as an application would, with a record of each request."""

    def __init__(self, format, profile, counter, scope="/"):  # noqa: A002 - the glossary's word
        self.session = Session(format)
        self.wire = WIRE[format]
        self.counter = counter
        self.scope = scope
        self.view = View(self._input(), profile)
        self.known = self.session.head
        self.records = []
        self.previous = None

    def _input(self, earlier=None):
        return ViewInput.of(
            self.session.visible(), self.wire, self.counter, self.scope, earlier=earlier
        )

    def message(self, payload, scope):
        self.session.add(Message(payload), scope)

    def steer(self, operation):
        if self.session.apply(operation):
            self.view.reset(self._input(self.view.inputs))
            self.known = self.session.head

    def request(self, budget):
        self.view.extend(self.session.entries[self.known :])
        self.known = self.session.head
        return self.view.request(budget)

    def record(self, request):
        made, artifacts = record(request, "test:model", previous=self.previous)
        seq = self.session.add(made).seq
        self.known = self.session.head
        self.view.extend([self.session.entries[-1]])
        texts = {one.hash: one.data.decode(errors="surrogatepass") for one in artifacts}
        self.records.append((made, texts))
        self.previous = Previous(seq, made.chain, request.plan)
        return made


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=COUNT)
@given(st.data())
def test_every_request_is_legal_and_fits(format, data):  # noqa: A002
    profile = data.draw(st.sampled_from(PROFILED), "profile")
    budget = data.draw(budgets, "budget")
    counter = Quarter(data.draw(st.sampled_from([0.0, 0.0, 0.07]), "spread"))
    scope = data.draw(st.sampled_from(["/", "/", "/", "/a"]), "scope")
    host = Host(format, profile, counter, scope)
    for step in data.draw(scripts(format), "script"):
        if step[0] == "message":
            host.message(*step[1:])
        elif step[0] == "steer":
            host.steer(step[1])
        else:
            _check_request(host, budget)


def _marks(host, budget):
    """The one computation of what a request is measured against."""
    inputs, spread = host.view.inputs, host.counter.spread
    return thresholds(host.view.profile, budget, spread, instructions=inputs.instructions)


def _certain(host, budget):
    return _marks(host, budget._replace(guessed=None))


def _check_request(host, budget):
    before = host.view.plan
    try:
        request = host.request(budget)
    except ViewTooLarge:
        assert _must_keep(host.view.inputs) > _certain(host, budget).room
        host.view.plan = before
        return
    inputs, plan = host.view.inputs, request.plan
    messages = list(request.messages)
    assert host.wire.problems(messages) == []
    counted = _counted(host, messages)
    if _must_keep(inputs) > _marks(host, budget).room:  # a guess refuses nothing
        assert counted <= _certain(host, budget).room
    else:
        assert counted <= _marks(host, budget).room
    assert plan.account.sent <= plan.account.limit
    _check_verbatim(host, messages)
    _check_dispositions(host, plan)
    _check_rendering(host, request)
    again = project(inputs, host.view.profile, budget, plan)
    assert again.layout == plan.layout
    assert project(inputs, host.view.profile, budget, before) == plan
    host.record(request)


def _counted(host, messages):
    """What the messages cost, read anew."""
    return sum(
        sum(map(host.counter.part, host.wire.describe(one).shapes)) + PER_MESSAGE
        for one in messages
    )


def _must_keep(inputs):
    """What no policy may leave out, with the steps that it is part of."""
    pinned = {(pin.seq, pin.index) for pin in inputs.outline.pins}
    told = (text for fold in inputs.foldings for _, text in fold.shown)
    total = sum(len(text) // 4 + 20 for text in told)
    total += sum(len(quote.text) // 4 + 10 for quote in inputs.pinned)
    total += 60  # markers
    quoted = [
        quote for quote in inputs.quotes if {(s.seq, s.index) for s in quote.sources} & pinned
    ]
    total += sum(len(quote.text) // 4 + 10 for quote in quoted)
    held = set()
    for at, row in enumerate(inputs.rows):
        for part in row.parts:
            if (
                part.fixed
                or (part.seq, part.nth) in pinned
                or (at == inputs.prompt and part.kind == "prompt")
            ):
                step = inputs.step(inputs.steps[at]) if part.kind != "system" else ()
                held |= {(row.seq, part.nth)}
                held |= {
                    (inputs.rows[one].seq, p.nth) for one in step for p in inputs.rows[one].parts
                }
    return total + sum(
        part.tokens + PER_MESSAGE
        for row in inputs.rows
        for part in row.parts
        if (part.seq, part.nth) in held
    )


def _check_verbatim(host, messages):
    inputs = host.view.inputs
    shown = Counter(shape for one in messages for shape in host.wire.describe(one).shapes)
    for at, row in enumerate(inputs.rows):
        for shape in host.wire.describe(row.payload).shapes:
            if shape.kind == "system" or (shape.kind == "prompt" and at == inputs.prompt):
                assert shown[shape]
    logged = {
        shape
        for entry in host.session.messages()
        for shape in host.wire.describe(entry.body).shapes
    }
    assert all(shape in logged for shape in shown if shape.sealed)


def _check_dispositions(host, plan):
    """Exactly one for each part up to the head."""
    assert plan.head == host.session.head
    for entry in host.session.messages():
        fates = [gone for gone in plan.layout.omissions if entry.seq in gone.span]
        assert len(fates) <= 1
        for nth, _ in enumerate(host.wire.describe(entry.body).shapes):
            change = plan.layout.changes.get(PartRef(entry.seq, nth))
            assert change is None or not fates
    refs = set(plan.layout.changes)
    parts = {
        PartRef(entry.seq, nth)
        for entry in host.session.messages()
        for nth, _ in enumerate(host.wire.describe(entry.body).shapes)
    }
    assert refs <= parts
    assert all(isinstance(one, Drop | Replace) for one in plan.layout.changes.values())


def _check_rendering(host, request):
    """The messages are the plan's, however they were put together."""
    whole = assemble(host.wire, host.view.inputs.rows, request.plan.layout)
    assert list(request.messages) == whole
    assert request.digest == sha256(request.body).hexdigest()


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=COUNT)
@given(st.data())
def test_every_request_is_rebuilt_from_its_record(format, data):  # noqa: A002
    profile = data.draw(st.sampled_from(PROFILED), "profile")
    host = Host(format, profile, Quarter())
    made = []
    for step in data.draw(scripts(format), "script"):
        if step[0] == "message":
            host.message(*step[1:])
        elif step[0] == "steer":
            host.steer(step[1])
        else:
            budget = data.draw(budgets, "budget")  # limits, prices and counts change all the time
            host.view.inputs.counter = host.counter = Quarter(
                data.draw(st.sampled_from([0.0, 0.3]), "spread")
            )
            try:
                request = host.request(budget)
            except ViewTooLarge:
                continue
            made.append((host.record(request), request))
    stored = {entry.seq: value for entry, value in _records(host)}
    texts = {name: text for _, known in host.records for name, text in known.items()}
    for value, request in made:
        chain = [*(stored[seq] for seq in value.chain), value]
        assert rebuild(chain, host.session.entries, texts) == tuple(request.messages)
        assert hashes_of(chain) <= texts.keys()
        assert _comparable(planned(chain, texts)) == _comparable(request.plan)


def _records(host):
    for entry in host.session.entries:
        if entry.kind == Requested.KIND:
            yield entry, CODEC.decode(entry)


def _comparable(plan):
    return (
        sorted(plan.layout.omissions),
        dict(plan.layout.changes),
        plan.layout.inserts,
        plan.head,
        plan.account,
        plan.rewrites,
    )


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=COUNT)
@given(st.data())
def test_a_balanced_view_changes_what_was_sent_only_in_rewrites_and_few(format, data):  # noqa: A002
    profile = data.draw(st.sampled_from([PROFILES["balanced"], _small(PROFILES["balanced"])]))
    budget = data.draw(budgets, "budget")._replace(guessed=None, restored=0)
    host = Host(format, profile, Quarter())
    sent, growth = [], 0
    for step in data.draw(scripts(format, steered=False), "script"):
        if step[0] == "message":
            host.message(*step[1:])
            continue
        try:
            request = host.request(budget)
        except ViewTooLarge:
            return
        bounds = _marks(host, budget)
        closed = request.plan.closed
        assert closed
        if not request.plan.cause:
            now = list(request.messages)[: len(sent)]
            assert now == sent, (now[-1], sent[-1])
        done = host.view.inputs.rows[: closed.rows]
        sent = assemble(host.wire, done, closed.layout)
        told = (*request.plan.layout.inserts, *host.view.inputs.quotes)
        growth = sum(row.tokens + PER_MESSAGE for row in host.view.inputs.rows) + sum(
            host.counter.text(one.text) + PER_MESSAGE for one in told
        )
        if _must_keep(host.view.inputs) <= bounds.low_water:
            assert request.plan.rewrites <= 1 + growth / max(1, 0.1 * bounds.target)
