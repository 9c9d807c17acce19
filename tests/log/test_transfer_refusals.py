"""A session as JSON lines: what is not right is told by its line, and nothing is imported."""

# ruff: noqa: F811, F401 - fixtures are imported

import json

import pytest
from transfer_stores import (
    OPENED,
    LogStore,
    any_store,
    feed,
    lines,
    long_session,
    memory,
    runner,
    sqlite,
)

from refold.errors import (
    RefoldError,
    SessionExists,
    SessionForgotten,
    TransferError,
    WrittenByNewer,
)
from refold.log import Note
from refold.log.transfer import check_lines
from refold.testing.strategies import author


def refused(
    any_store: LogStore, lines: list[str], kind: type[RefoldError] = TransferError
) -> RefoldError:
    """The error of importing the lines, after which nothing is there."""
    log = any_store.log()
    text = "".join(f"{line}\n" for line in lines)
    with pytest.raises(kind) as caught:
        any_store.import_(log, text)
    assert any_store.run(log.sessions()).sessions == ()
    with pytest.raises(kind) as checked:
        any_store.run(check_lines(feed(text)))
    assert checked.value.what == caught.value.what
    assert caught.value.fix
    return caught.value


def test_a_file_that_was_cut_short(any_store, lines):
    for end in range(1, len(lines)):
        error = refused(any_store, lines[:end])
        assert error.what == (
            f"The file ends after line {end} without its last line: it was cut short."
        )
    assert refused(any_store, []).what == "The file is empty: it was cut short."


def test_a_line_that_was_cut_short(any_store, lines):
    error = refused(any_store, [*lines[:3], lines[3][:-9]])
    assert error.what == "Line 4 of the file is not a line of an exported session."


def test_a_missing_line(any_store, lines):
    error = refused(any_store, [*lines[:3], *lines[4:]])
    assert error.what == "Line 4 of the file holds entry 4 where entry 3 should be."


def test_lines_out_of_order(any_store, lines):
    lines[2], lines[3] = lines[3], lines[2]
    assert refused(any_store, lines).what.startswith(
        "Line 3 of the file holds entry 3 where entry 2"
    )


def test_a_missing_artifact(any_store, lines):
    hash_ = json.loads(lines[5])["artifact"]
    error = refused(any_store, [*lines[:5], *lines[6:]])
    assert (
        error.what
        == f"Line 6 of the file refers to artifact {hash_}, which no line before it holds."
    )


def test_an_artifact_with_other_data(any_store, lines):
    lines[5] = lines[5].replace('"data":"', '"data":"AAAA')
    error = refused(any_store, lines)
    assert error.what == "Line 6 of the file holds an artifact that is not what its hash says."


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        "{}",
        "[]",
        "17",
        '"text"',
        "{",
        '{"seq":2}',
        '{"seq":2,"body":{}} {}',
        '{"seq":2 "body":{}}',
        '{"artifact":"x"}',
        '{"entries":"many"}',
        "[" * 100_000,
        '{"seq":2,"body":' + "[" * 100_000,
    ],
)
def test_a_line_of_garbage(any_store, lines, line):
    lines[2] = line
    assert refused(any_store, lines).what.startswith("Line 3 of the file ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "no uuid"),
        ("at", "today"),
        ("at", 1 << 63),
        ("version", 0),
        ("version", 1 << 63),
        ("kind", 7),
        ("kind", "No Kind"),
        ("kind", "session"),
        ("scope", "no path"),
        ("scope", "/\ud800"),
        ("rests_on", [[2, 1]]),
        ("rests_on", [[1, 2]]),
        ("rests_on", [1]),
        ("artifacts", "x"),
        ("forgotten", "perhaps"),
        ("body", None),
    ],
)
def test_a_field_that_cannot_be(any_store, lines, field, value):
    fields = json.loads(lines[2])
    fields = {**fields, field: value}
    if value is None:
        del fields[field]
    lines[2] = json.dumps(fields)
    assert refused(any_store, lines).what.startswith("Line 3 of the file ")


@pytest.mark.parametrize("body", ["NaN", "-Infinity", '{"x": Infinity}'])
def test_a_body_that_is_not_json(any_store, lines, body):
    lines[2] = lines[2].partition('"body":')[0] + f'"body":{body}}}'
    assert refused(any_store, lines).what.startswith("Line 3 of the file is not a line")
    lines[2] = lines[2].partition('"body":')[0] + f'"text":{json.dumps(body)}}}'
    assert refused(any_store, lines).what.startswith(
        "Line 3 of the file cannot be imported: The body"
    )


def test_an_entry_that_no_log_would_take(any_store, lines):
    fields = json.loads(lines[3])
    lines[3] = json.dumps({**fields, "kind": "rewind", "body": {"to": 9}})
    error = refused(any_store, lines)
    assert error.what == (
        "Line 4 of the file cannot be imported: Nothing is at 9: the session has entries 1 to 2."
    )


def test_the_same_entry_twice(any_store, lines):
    lines[3] = json.dumps({**json.loads(lines[2]), "seq": 3})
    log = any_store.log()
    with pytest.raises(TransferError, match=r"^Line 4 of the file repeats the id "):
        any_store.import_(log, "".join(f"{line}\n" for line in lines))
    assert any_store.run(log.sessions()).sessions == ()


def test_a_wrong_count(any_store, lines):
    error = refused(any_store, [*lines[:-1], '{"entries":7}'])
    assert error.what == "Line 8 of the file counts 7 entries, but 5 came before it."
    assert refused(any_store, [lines[0], '{"entries":0}']).what.startswith(
        "Line 2 of the file counts 0"
    )


def test_lines_after_the_end(any_store, lines):
    error = refused(any_store, [*lines, lines[2]])
    assert error.what == "Line 9 of the file comes after the end of the session."


@pytest.mark.parametrize(
    "first", ['{"session":"s"}', '{"refold":"1","session":"s"}', '{"refold":true}', '{"refold":0}']
)
def test_a_file_of_something_else(any_store, lines, first):
    error = refused(any_store, [first, *lines[1:]])
    assert error.what == "Line 1 of the file is not the start of an exported session."
    assert "refold export" in error.fix


def test_a_newer_format(any_store, lines):
    error = refused(any_store, ['{"refold":2,"session":"s"}', *lines[1:]], WrittenByNewer)
    assert error.what == ("Line 1 of the file names format 2; this Refold reads formats up to 1.")
    assert error.fix == "Upgrade Refold."


@pytest.mark.parametrize("name", ["", " s", "a\nb", "x" * 201])
def test_a_name_that_cannot_be(any_store, lines, name):
    error = refused(any_store, [json.dumps({"refold": 1, "session": name}), *lines[1:]])
    assert error.what.startswith("Line 1 of the file cannot be imported: ")
    with pytest.raises(TransferError, match="is not a valid name for a session"):
        any_store.import_(any_store.log(), "\n".join(lines), name)


def test_another_session_of_that_name_is_left_as_it_is(any_store, lines):
    log = any_store.log()
    any_store.begin(log, "s", [author(9).draft(OPENED), author(9).draft(Note("mine"))][:1])
    before = any_store.export(log, "s")
    with pytest.raises(SessionExists) as caught:
        any_store.import_(log, "".join(f"{line}\n" for line in lines))
    assert caught.value.what == (
        "There is another session 's' already: line 2 of the file is not in it."
    )
    assert caught.value.fix == "Import it under another name."
    assert any_store.export(log, "s") == before


@pytest.mark.parametrize("changed", [3, 150, 290])
def test_a_session_that_differs_from_an_entry_on_is_left_as_it_is(any_store, changed):
    origin, log = any_store.log(), any_store.log()
    drafts = long_session(300)
    any_store.begin(origin, "s", drafts)
    drafts[changed - 1] = drafts[changed - 1]._replace(body=b'{"text":"other"}')
    any_store.begin(log, "s", drafts[:290])
    before = any_store.export(log, "s")
    with pytest.raises(SessionExists, match=f"line {changed + 1} of the file is not in it"):
        any_store.import_(log, any_store.export(origin, "s"))
    assert any_store.export(log, "s") == before


def test_a_forgotten_session_does_not_come_back_under_its_name(any_store, lines):
    log = any_store.log()
    text = "".join(f"{line}\n" for line in lines)
    any_store.import_(log, text)
    any_store.run(log.forget("s"))
    with pytest.raises(SessionForgotten) as caught:
        any_store.import_(log, text)
    assert caught.value.fix == "Import it under another name."
    assert any_store.import_(log, text, "again").entries == 5
