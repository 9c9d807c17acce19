"""The breadcrumb: a summary that quotes the log, and says nothing of its own."""

import json
import re
from typing import Any

import pytest
from folding import TIGHT, fold, material_of, session_of, sheet_of, spelled
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Quarter, Remembering, Session, scripts
from shown import turn, used

from refold.fold.extractive import extractive_summary
from refold.fold.facts import (
    CHANGED,
    COMMANDS,
    EARLIER,
    ERRORS,
    NEXT,
    OPEN,
    READ,
    RESULTS,
    STATE,
    VALUES,
)
from refold.fold.identifiers import names, strings
from refold.fold.material import Earlier, Material, everything
from refold.fold.replace import render_summary
from refold.fold.summary import TRUNCATED, Summary, parse
from refold.log import CODEC, FoldCompleted, Message, Span
from refold.testing.wire import Asked, Responded
from refold.view.profiles import Fold
from refold.wire import WIRES

WIRE: dict[str, Any] = {name: Remembering(wire) for name, wire in WIRES.items()}
formats = st.sampled_from(sorted(WIRES))


@st.composite
def sessions(draw):
    name = draw(formats)
    session = Session(name)
    for op in draw(scripts(name, steered=False)):
        if op[0] == "message":
            session.add(Message(op[1]), op[2])
    return session


def whole(session):
    """The material of all that was said."""
    wire = WIRE[session.format]
    spans = everything(sheet_of(session, wire)).spans
    return material_of(session, spans, wire)


def plain(text):
    return " ".join(text.split())


def occurs(quote, text):
    """Whether it was said: whole, or its two ends where it was cut."""
    ends = plain(quote).split(TRUNCATED)
    return all(end.strip() in plain(text) for end in ends)


def texts(material):
    return {
        (one.seq, nth): f"{shape.tool} {shape.text}"
        for one in material.passages
        for nth, shape in enumerate(one.shapes)
    }


CALLED = (COMMANDS, ERRORS, RESULTS)
"""What names a call beside the result that it rests on."""


@settings(max_examples=60)
@given(sessions())
def test_every_claim_quotes_the_part_it_names(session):
    material = whole(session)
    summary = extractive_summary(material)
    said = texts(material)
    for one in summary.directives:
        assert occurs(one.text, said[one.source.seq, one.source.index])
        assert one.chars == len(material_text(material, one.source).strip())
    for section in summary.sections:
        for claim in section.claims:
            source = claim.sources[0]
            told = said[source.seq, source.index]
            for quote in claim.quote.split(" […] "):
                assert occurs(quote.removesuffix("…"), told)
            said_of_it = claim.text.partition(" […archived")[0]
            for quote in quotes(section.heading, said_of_it):
                everywhere = " ".join(said.values()) if section.heading in CALLED else told
                assert occurs(quote, unescaped(everywhere)) or occurs(quote, everywhere)


def material_text(material, ref):
    (passage,) = [one for one in material.passages if one.seq == ref.seq]
    return passage.shapes[ref.index].text


def unescaped(text):
    """Arguments are JSON in a part, and plain in a quote."""
    return text.replace('\\"', '"').replace("\\n", "\n")


def quotes(heading, claim):
    """What a claim takes from the log, without its own few words."""
    claim = claim.removeprefix("The model last said: ").removeprefix("The model called ")
    claim = claim.partition(" (no error from the same call in entry ")[0]
    if heading == VALUES:
        return re.findall(r"(?:: |before: )(.+?) \(\w+ \d+\)", claim)[:1]
    call = re.fullmatch(r"(\w+(?: tool)?)\((.*?)\)(?:: (.*))?", claim, re.DOTALL)
    if heading in {ERRORS, OPEN, RESULTS, STATE} and call:
        return [one for one in call.groups() if one and one != "a tool"]
    return [claim.strip('"')]


def values_of(text):
    """The texts within JSON, such as a call's arguments."""
    try:
        return [*strings(json.loads(text))]
    except ValueError:
        return []


@settings(max_examples=60)
@given(sessions())
def test_no_name_is_invented(session):
    material = whole(session)
    summary = render_summary(extractive_summary(material), Fold(placement="replacement"), Quarter())
    known = {
        name
        for one in material.passages
        for shape in one.shapes
        for text in (shape.tool or "", shape.text, *values_of(shape.text))
        for name in names(text)
    }
    assert {one.name for one in summary.ledger} <= known
    blocks = [one.split("\n", 1) for one in summary.text.split("\n\n")]
    for heading, *listed in blocks:
        if heading.startswith("## Names"):
            assert {*listed[0].split()} <= known


@settings(max_examples=40)
@given(sessions())
def test_a_breadcrumb_is_the_same_each_time(session):
    first, again = extractive_summary(whole(session)), extractive_summary(whole(session))
    assert first == again
    assert parse(json.loads(json.dumps(first.as_json()))) == first


@settings(max_examples=60)
@given(
    sessions(),
    st.sampled_from(["message", "replacement", "merge"]),
    st.integers(200, 1_200),
    st.integers(0, 1_500),
    st.booleans(),
)
def test_never_more_is_shown_than_asked(session, placement, most, names, manual):
    values = Fold(placement=placement, max_tokens=most, ledger_tokens=names)
    host = {"plan": "Step by step. " * 200, "todo": ["one", "two"]}
    counter = Quarter()
    summary = render_summary(
        extractive_summary(whole(session)), values, counter, manual=manual, host=host
    )
    assert counter.text(summary.text) <= most
    long = Summary("a model", words="It went like this. " * 400, messages=9)
    shown = render_summary(long, values, counter, manual=manual, host=host)
    assert counter.text(shown.text) <= most
    assert "It went like this." in shown.text


def summary_of(*said, **how):
    session = session_of(*said, **how)
    return extractive_summary(whole(session))


def claims(summary, heading):
    return [one.text for one in summary.section(heading)]


def test_errors_come_with_what_came_of_them():
    summary = summary_of(
        Asked("Run it."),
        *used("a", "bash", "x\nValueError: no price\n", command="pytest"),
        *used("b", "bash", "Error: no disk", command="make"),
        *used("c", "bash", "2 passed", command="pytest"),
        Responded("Done."),
    )
    solved, unsolved = claims(summary, ERRORS)
    assert solved == (
        'The tool bash(pytest) returned: "ValueError: no price" '
        "(no error from the same call in entry 8)"
    )
    assert unsolved == 'The tool bash(make) returned: "Error: no disk"'


def test_an_error_names_the_files_that_were_changed_before_it_went_away():
    summary = summary_of(
        Asked("Fix it."),
        *used("a", "bash", "1 failed\nValueError: no price\n", command="pytest 2>&1 | tail -5"),
        *used("b", "edit", "ok", path="src/prices.py"),
        *used("c", "bash", "3 passed", command="pytest"),
    )
    (told,) = claims(summary, ERRORS)
    assert told == (
        'The tool bash(pytest 2>&1 | tail -5) returned: "ValueError: no price" '
        "(no error from the same call in entry 8, after changes to src/prices.py)"
    )


def test_of_an_error_that_changes_the_newest_stands():
    summary = summary_of(
        Asked("Fix it."),
        *used("a", "bash", "ValueError: no price", command="pytest"),
        *used("b", "bash", "KeyError: 'eur'", command="pytest"),
    )
    assert claims(summary, ERRORS) == ["The tool bash(pytest) returned: \"KeyError: 'eur'\""]


def test_what_a_traceback_ends_with_is_the_error():
    trace = 'Traceback (most recent call last):\n  File "a.py"\n    x()\nValueError: no price\n'
    summary = summary_of(Asked("Run."), *used("a", "bash", trace, command="python a.py"))
    assert claims(summary, ERRORS) == [
        'The tool bash(python a.py) returned: "ValueError: no price"'
    ]


@pytest.mark.parametrize("command", ["cat build.log", "cd src && grep -n Error app.py"])
def test_what_is_only_looked_at_is_no_error_and_no_result(command):
    found = "ERROR: no disk\nError: no price"
    summary = summary_of(
        Asked("Look."),
        *used("a", "bash", found, command=command),
        *used("b", "read_file", f"Log\n{found}", path="build.log"),
    )
    assert claims(summary, ERRORS) == []
    assert claims(summary, COMMANDS) == []
    assert claims(summary, READ) == ["build.log"]


def test_of_each_command_the_last_result_is_told():
    summary = summary_of(
        Asked("Run it."),
        *used("a", "bash", "1 failed, 2 passed", command="pytest"),
        *used("b", "bash", "Built in 3 s", command="make"),
        *used("c", "bash", "collected 3 items\n3 passed\nbye", command="pytest -q | tail -3"),
        *used("d", "bash", "collected 3 items\n3 passed in 1 s\nbye", command="pytest"),
    )
    assert claims(summary, COMMANDS) == [
        'make: "Built in 3 s"',
        'pytest -q | tail -3: "3 passed"',
        'pytest: "3 passed in 1 s"',
    ]


def test_a_file_that_was_changed_is_not_told_as_read_and_a_failed_change_is_none():
    summary = summary_of(
        Asked("Write."),
        *used("a", "read_file", "text", path="src/a.py"),
        *used("b", "edit", "ok", path="src/a.py"),
        *used("c", "read_file", "text", path="src/b.py"),
        *used("d", "edit", "Error: the text was not found", path="src/b.py"),
    )
    assert claims(summary, CHANGED) == ["src/a.py"]
    assert claims(summary, READ) == ["src/b.py"]


def test_changed_files_are_named_once_where_they_were_changed_last():
    summary = summary_of(
        Asked("Write."),
        *used("a", "write_file", "ok", path="src/a.py"),
        *used("b", "edit", "ok", file_path="src/b.py"),
        *used("c", "read_file", "text", path="src/c.py"),
        *used("d", "write_file", "ok", path="src/a.py"),
    )
    assert claims(summary, CHANGED) == ["src/b.py", "src/a.py"]
    assert [one.sources[0].seq for one in summary.section(CHANGED)] == [5, 9]


def test_calls_without_an_answer_are_told():
    call, _ = used("a", "deploy", "", url="https://example.org")
    summary = summary_of(Asked("Deploy."), call, Asked("Stop."), Responded("Stopped."))
    assert claims(summary, OPEN) == ["deploy(https://example.org)"]


def test_where_it_stood_and_what_comes_next():
    summary = summary_of(
        Asked("Fix it."),
        *used("a", "grep", "found", pattern="parse"),
        Responded("The parser is fixed. Next I will run the tests. Wish me luck."),
    )
    assert claims(summary, STATE) == [
        "The model called grep(parse)",
        'The model last said: "The parser is fixed. Next I will run the tests. Wish me luck."',
    ]
    assert claims(summary, NEXT) == ['"Next I will run the tests."']


def test_the_title_is_what_the_user_asked_for_last():
    assert summary_of(*turn("Fix the parser."), *turn("Add a  test.")).title == "Add a test."
    assert summary_of(Responded("Hello.")).title == ""


def test_complaint_3_the_users_words_survive_fold_after_fold():
    session = session_of(*turn("Never touch the file prices.csv."))
    wanted = []
    for nth in range(3):
        asked = f"Rule {nth}: keep number {nth} in mind."
        wanted.append(asked)
        for payload in spelled("pydantic-ai", *turn(asked), *turn(f"And {nth}?"), Asked("Go on.")):
            session.add(Message(payload))
        _, summary = fold(session, TIGHT.model_copy(update={"placement": "replacement"}))
        assert summary is not None
        for one in wanted:
            (line,) = [each for each in summary.text.splitlines() if each.endswith(one)]
            seq = int(re.findall(r"entry (\d+)", line)[0])
            assert one.encode() in session.entries[seq - 1].body
    order = [summary.text.index(one) for one in wanted]
    assert order == sorted(order)


def test_a_message_that_was_opened_again_is_quoted_once():
    session = session_of(*turn("First."), *turn("Second."), *turn("Third."))
    fold(session, spans=(Span(4, 5), Span(6, 7)))
    (standing,) = session.outline().folds
    told = CODEC.decode(session.entries[standing.seq - 1])
    assert isinstance(told, FoldCompleted)
    earlier = Earlier(standing.seq, parse(told.summary), 7)
    again = material_of(session_of(*turn("First."), *turn("Second.")), (Span(2, 5),))
    summary = extractive_summary(Material(again.passages, (earlier,)))
    assert [one.text for one in summary.directives] == ["First.", "Second.", "Third."]


@pytest.mark.parametrize("told", [Summary("a model", words="We chose SQLite."), "We chose SQLite."])
def test_complaint_5_what_a_model_or_a_person_wrote_before_is_not_lost(told):
    summary = told if isinstance(told, Summary) else parse(told)
    for _ in range(3):
        material = Material((), (Earlier(9, summary, 8),))
        summary = extractive_summary(material)
        assert claims(summary, EARLIER) == ["We chose SQLite."]


def test_a_long_paste_is_clipped_at_both_ends_and_told_where_it_is():
    paste = "Begin. " + "middle " * 2_000 + "End."
    session = session_of(Asked(paste), Responded("Read."))
    values = Fold(placement="replacement", user_clip=200)
    text = render_summary(extractive_summary(whole(session)), values, Quarter()).text
    (line,) = [one for one in text.splitlines() if "Begin." in one]
    assert line.startswith(f"- (entry 2, {len(paste):,} characters in all) Begin. middle")
    assert line.endswith("End.")
    assert TRUNCATED == "...<truncated>..."
    assert line.count(TRUNCATED) == 1
    assert len(line) < 300


def test_of_many_messages_the_newest_are_quoted_and_a_note_counts_the_others():
    session = session_of(*(one for nth in range(30) for one in turn(f"Ask number {nth}.")))
    values = Fold(placement="replacement", user_messages=20)
    text = render_summary(extractive_summary(whole(session)), values, Quarter()).text
    assert "[10 earlier messages of the user omitted]" in text
    assert "Ask number 9." not in text
    assert all(f"Ask number {nth}." in text for nth in range(10, 30))
    none = render_summary(
        extractive_summary(whole(session)),
        values.model_copy(update={"user_messages": 0}),
        Quarter(),
    )
    assert "[30 earlier messages of the user omitted]" in none.text
