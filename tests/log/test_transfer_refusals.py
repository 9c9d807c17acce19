"""A session as JSON lines: what is not right is told by its line, and nothing is imported."""

# ruff: noqa: F811, F401 - fixtures are imported

import json

import pytest
from transferring import OPENED, Place, feed, lines, long_session, memory, place, runner, sqlite

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


def refused(place: Place, lines: list[str], kind: type[RefoldError] = TransferError) -> RefoldError:
    """The error of importing the lines, after which nothing is there."""
    log = place.log()
    text = "".join(f"{line}\n" for line in lines)
    with pytest.raises(kind) as caught:
        place.import_(log, text)
    assert place.run(log.sessions()).sessions == ()
    with pytest.raises(kind) as checked:
        place.run(check_lines(feed(text)))
    assert checked.value.what == caught.value.what
    assert caught.value.fix
    return caught.value


def test_a_file_that_was_cut_short(place, lines):
    for end in range(1, len(lines)):
        error = refused(place, lines[:end])
        assert error.what == (
            f"The file ends after line {end} without its last line: it was cut short."
        )
    assert refused(place, []).what == "The file is empty: it was cut short."


def test_a_line_that_was_cut_short(place, lines):
    error = refused(place, [*lines[:3], lines[3][:-9]])
    assert error.what == "Line 4 of the file is not a line of an exported session."


def test_a_missing_line(place, lines):
    error = refused(place, [*lines[:3], *lines[4:]])
    assert error.what == "Line 4 of the file holds entry 4 where entry 3 should be."


def test_lines_out_of_order(place, lines):
    lines[2], lines[3] = lines[3], lines[2]
    assert refused(place, lines).what.startswith("Line 3 of the file holds entry 3 where entry 2")


def test_a_missing_artifact(place, lines):
    hash_ = json.loads(lines[5])["artifact"]
    error = refused(place, [*lines[:5], *lines[6:]])
    assert (
        error.what
        == f"Line 6 of the file refers to artifact {hash_}, which no line before it holds."
    )


def test_an_artifact_with_other_data(place, lines):
    lines[5] = lines[5].replace('"data":"', '"data":"AAAA')
    error = refused(place, lines)
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
def test_a_line_of_garbage(place, lines, line):
    lines[2] = line
    assert refused(place, lines).what.startswith("Line 3 of the file ")


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
def test_a_field_that_cannot_be(place, lines, field, value):
    fields = json.loads(lines[2])
    fields = {**fields, field: value}
    if value is None:
        del fields[field]
    lines[2] = json.dumps(fields)
    assert refused(place, lines).what.startswith("Line 3 of the file ")


@pytest.mark.parametrize("body", ["NaN", "-Infinity", '{"x": Infinity}'])
def test_a_body_that_is_not_json(place, lines, body):
    lines[2] = lines[2].partition('"body":')[0] + f'"body":{body}}}'
    assert refused(place, lines).what.startswith("Line 3 of the file is not a line")
    lines[2] = lines[2].partition('"body":')[0] + f'"text":{json.dumps(body)}}}'
    assert refused(place, lines).what.startswith("Line 3 of the file cannot be imported: The body")


def test_an_entry_that_no_log_would_take(place, lines):
    fields = json.loads(lines[3])
    lines[3] = json.dumps({**fields, "kind": "rewind", "body": {"to": 9}})
    error = refused(place, lines)
    assert error.what == (
        "Line 4 of the file cannot be imported: Nothing is at 9: the session has entries 1 to 2."
    )


def test_the_same_entry_twice(place, lines):
    lines[3] = json.dumps({**json.loads(lines[2]), "seq": 3})
    log = place.log()
    with pytest.raises(TransferError, match=r"^Line 4 of the file repeats the id "):
        place.import_(log, "".join(f"{line}\n" for line in lines))
    assert place.run(log.sessions()).sessions == ()


def test_a_wrong_count(place, lines):
    error = refused(place, [*lines[:-1], '{"entries":7}'])
    assert error.what == "Line 8 of the file counts 7 entries, but 5 came before it."
    assert refused(place, [lines[0], '{"entries":0}']).what.startswith(
        "Line 2 of the file counts 0"
    )


def test_lines_after_the_end(place, lines):
    error = refused(place, [*lines, lines[2]])
    assert error.what == "Line 9 of the file comes after the end of the session."


@pytest.mark.parametrize(
    "first", ['{"session":"s"}', '{"refold":"1","session":"s"}', '{"refold":true}', '{"refold":0}']
)
def test_a_file_of_something_else(place, lines, first):
    error = refused(place, [first, *lines[1:]])
    assert error.what == "Line 1 of the file does not begin an exported session."
    assert "refold export" in error.fix


def test_a_newer_format(place, lines):
    error = refused(place, ['{"refold":2,"session":"s"}', *lines[1:]], WrittenByNewer)
    assert error.what == ("Line 1 of the file names format 2; this Refold reads formats up to 1.")
    assert error.fix == "Upgrade Refold."


@pytest.mark.parametrize("name", ["", " s", "a\nb", "x" * 201])
def test_a_name_that_cannot_be(place, lines, name):
    error = refused(place, [json.dumps({"refold": 1, "session": name}), *lines[1:]])
    assert error.what.startswith("Line 1 of the file cannot be imported: ")
    with pytest.raises(TransferError, match="is no name for a session"):
        place.import_(place.log(), "\n".join(lines), name)


def test_another_session_of_that_name_is_left_as_it_is(place, lines):
    log = place.log()
    place.begin(log, "s", [author(9).draft(OPENED), author(9).draft(Note("mine"))][:1])
    before = place.export(log, "s")
    with pytest.raises(SessionExists) as caught:
        place.import_(log, "".join(f"{line}\n" for line in lines))
    assert caught.value.what == (
        "There is another session 's' already: line 2 of the file is not in it."
    )
    assert caught.value.fix == "Import it under another name."
    assert place.export(log, "s") == before


@pytest.mark.parametrize("changed", [3, 150, 290])
def test_a_session_that_differs_from_an_entry_on_is_left_as_it_is(place, changed):
    origin, log = place.log(), place.log()
    drafts = long_session(300)
    place.begin(origin, "s", drafts)
    drafts[changed - 1] = drafts[changed - 1]._replace(body=b'{"text":"other"}')
    place.begin(log, "s", drafts[:290])
    before = place.export(log, "s")
    with pytest.raises(SessionExists, match=f"line {changed + 1} of the file is not in it"):
        place.import_(log, place.export(origin, "s"))
    assert place.export(log, "s") == before


def test_a_forgotten_session_does_not_come_back_under_its_name(place, lines):
    log = place.log()
    text = "".join(f"{line}\n" for line in lines)
    place.import_(log, text)
    place.run(log.forget("s"))
    with pytest.raises(SessionForgotten) as caught:
        place.import_(log, text)
    assert caught.value.fix == "Import it under another name."
    assert place.import_(log, text, "again").entries == 5
