"""Why each part is, or is not, in what the model sees."""

import asyncio
import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import pytest
from explaining import chat, explained, explanation, invented, requests
from hypothesis import given
from hypothesis import strategies as st
from project_paths import DATA
from rich.cells import cell_len
from sessions import Quarter

from refold.log import Message, Span
from refold.stores import MemoryStore
from refold.transcripts import read_pi
from refold.transcripts.recording import write
from refold.view.budget import Budget
from refold.view.explain import explain
from refold.view.explanation import Inserted, sentence
from refold.view.plan import SENTENCES, Layout, Omission, Reason
from refold.view.profiles import PROFILES
from refold.view.project import project
from refold.view.timeline import stretches
from refold.view.view_input import ViewInput
from refold.wire import wire_for


@given(requests())
def test_every_message_has_a_line_and_every_part_one_disposition(request):
    if (found := explained(request)) is None:
        return
    session, told, inputs, plan = found
    assert [line.seq for line in told.lines] == [entry.seq for entry in session.messages()]
    for line, entry in zip(told.lines, session.messages(), strict=True):
        described = inputs.wire.describe(entry.body).shapes
        assert [part.ref.index for part in line.parts] == list(range(len(described)))
        for part, shape in zip(line.parts, described, strict=True):
            change = plan.disposition(part.ref)
            assert part.disposition.edit == type(change).__name__.lower()
            assert (part.disposition.reason, part.kind) == (change.reason, shape.kind)
    assert told.unlisted == ()


@given(requests())
def test_the_figures_add_up(request):
    if (found := explained(request)) is None:
        return
    _, told, _, plan = found
    assert sum(total.before for total in told.totals) == sum(line.before for line in told.lines)
    assert sum(total.after for total in told.totals) == sum(line.after for line in told.lines)
    assert sum(total.parts for total in told.totals) == sum(len(line.parts) for line in told.lines)
    sent = sum(line.after for line in told.lines) + sum(one.tokens for one in told.inserts)
    assert sent == plan.tokens
    assert len(told.inserts) == len(plan.layout.inserts)


@given(requests(), st.integers(1, 40))
def test_runs_and_stretches_hold_each_message_once_in_order(request, room):
    if (found := explained(request)) is None:
        return
    told = found[1]
    assert [line for run in told.runs for line in run.lines] == list(told.lines)
    assert all(a.lines[0].dispositions != b.lines[0].dispositions for a, b in pairwise(told.runs))
    assert all(len({line.dispositions for line in run.lines}) == 1 for run in told.runs)
    placed = stretches(told.lines, told.inserts, room)
    ours = [one for one in placed if not isinstance(one, Inserted)]
    assert [line for one in ours for line in one.lines] == list(told.lines)
    inserts = [one for one in placed if isinstance(one, Inserted)]
    inserts += [insert for one in ours for insert in one.inserts]
    assert Counter(inserts) == Counter(told.inserts)
    for one in ours:
        if one.sort == "gap":
            assert len({line.reason for line in one.lines}) == 1
            assert one.lines[0].reason


def test_a_long_session_is_told_by_turns_and_gaps():
    session = chat(*(("assistant" if n % 2 else "user", f"word {n}") for n in range(40)))
    session.apply(("fold", 4, 9))
    told, *_ = explanation(session, PROFILES["balanced"], Budget())
    found: Any = stretches(told.lines, (), 25)
    assert [(one.first, one.last) for one in found if one.sort == "gap"] == [(6, 15)]
    assert {one.turns for one in found if one.sort == "turn"} == {1}
    fewer: Any = stretches(told.lines, (), 9)
    assert len(fewer) <= 9
    assert sum(one.turns for one in fewer) == 20
    assert [one.turns for one in fewer[-3:]] == [1, 1, 1]


def test_the_first_that_speaks_of_an_entry_counts():
    told, inputs, plan = explanation(chat(*[("user", "hi")] * 4), PROFILES["balanced"], Budget())
    gone = (Omission(Span(2, 3), "window"), Omission(Span(2, 4), "fitted"))
    told = explain(inputs, replace(plan, layout=Layout(gone)), Budget())
    assert [line.reason for line in told.lines] == ["window", "window", "fitted", ""]


def test_every_reason_has_a_sentence():
    assert SENTENCES.keys() == set(get_args(Reason))
    assert all(sentence(reason) != reason for reason in get_args(Reason))
    assert sentence("forgotten") != "forgotten"
    assert sentence("fitted", added=True) != sentence("fitted")


def test_a_marker_has_a_sentence_of_its_own():
    session = chat(*(("assistant" if n % 2 else "user", f"word {n}") for n in range(60)))
    told, *_ = explanation(session, PROFILES["co-cli"], Budget())
    found: Any = told.as_json()["inserts"]
    [marker] = found
    assert marker["sentence"] == sentence("window", added=True) != sentence("window")
    assert marker["sentence"] in " ".join(told.as_text(160).split())


def test_messages_that_nobody_can_read_have_a_line():
    session = chat(("user", "hello"), ("user", "secret"), ("user", "bye"))
    session.entries[2] = session.entries[2]._replace(forgotten=True, body=b"{}")
    session.add(Message(b'["no message"]'))
    told, *_ = explanation(session, PROFILES["balanced"], Budget())
    assert [line.reason for line in told.lines] == ["", "forgotten", "", "unreadable"]
    assert "◌ forgotten" in told.as_text()
    assert told.sent == 2


def test_entries_that_were_not_read_are_named():
    session = chat(*(("user", f"hello {n}") for n in range(6)))
    session.apply(("fold", 0, 2))
    told, *_ = explanation(session, PROFILES["balanced"], Budget(), read=False)
    [gone] = told.unlisted
    assert (gone.span.first, gone.span.last, gone.reason) == (2, 4, "folded")
    assert re.search(
        r"^ +2-4  folded: a summary stands for it +≡ +\?$", told.as_text(), re.MULTILINE
    )
    assert re.search(r"^2-4 ≡ entries", told.as_text(every=True), re.MULTILINE)


def test_json(snapshot):
    told: Any = invented().as_json()
    assert json.loads(json.dumps(told)) == told
    assert told["account"]["sent"] == sum(
        told["account"][key] for key in ("system", "conversation", "tools")
    )
    assert told == snapshot


@pytest.mark.parametrize("name", ["before-compaction", "large-session"])
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_recorded_sessions(name, profile):
    path = DATA / f"pi_{name}.jsonl"
    if not path.exists():
        pytest.skip("the recorded sessions are not here")

    async def visible():
        log = MemoryStore().log()
        await write(read_pi(path), log, name)
        return await log.visible(name)

    found = asyncio.run(visible())
    inputs = ViewInput.of(found, wire_for(found.info.format), Quarter())
    plan = project(inputs, PROFILES[profile], Budget())
    told = explain(inputs, plan, Budget(), entries=found.entries)
    for width in (60, 80, 160):
        lines = told.as_text(width).splitlines()
        assert len(lines) <= 125
        assert max(map(cell_len, lines)) <= width
        every = told.as_text(width, every=True).splitlines()
        assert max(map(cell_len, every)) <= width
    assert len(told.lines) == found.info.messages
    after = sum(line.after for line in told.lines) + sum(one.tokens for one in told.inserts)
    assert after == plan.tokens
