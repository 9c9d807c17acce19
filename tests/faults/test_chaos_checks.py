"""What is looked for after chaos is found where it is planted."""

from uuid import UUID

import pytest
from chaos_checks import objections_to_calls, objections_to_log, objections_to_workers
from chaos_journal import CALLING, MAKING, Journal, Line, lines_of

from refold.log import (
    Author,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    Span,
)

FOLD, OTHER = UUID(int=7), UUID(int=8)
SPANS = (Span(2, 4),)
STARTED = FoldStarted(FOLD, SPANS, "soft")
STEPPED = FoldStepped(FOLD, "chunk 1", {"text": "so"})
COMPLETED = FoldCompleted(FOLD, SPANS, {"text": "so"})
FAILED = FoldFailed(FOLD, "it hung")


def entries(*values, at=10_000):
    """Entries of these values, all of one time in milliseconds."""
    author = Author()
    drafts = [author.draft(value) for value in values]
    return [
        Entry(seq, one.id, at, one.kind, one.version, one.body, one.scope, one.rests_on, (), ())
        for seq, one in enumerate(drafts, 5)
    ]


def call(at, worker="a", step="chunk 1"):
    return Line("begin", at, worker, CALLING, str(FOLD), step)


def making(what, at, worker="a"):
    return Line(what, at, worker, MAKING, str(FOLD))


@pytest.mark.parametrize("end", [COMPLETED, FAILED])
def test_a_fold_with_one_end_is_sound(end):
    assert list(objections_to_log(entries(STARTED, STEPPED, end))) == []


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([STARTED], "has 0 ends"),
        ([STARTED, FAILED, COMPLETED], "has 2 ends"),
        ([STARTED, COMPLETED, COMPLETED], "was installed 2 times"),
        ([STARTED, STARTED, FAILED], "began twice"),
        ([FAILED], "never began"),
        (
            [
                STARTED,
                COMPLETED,
                FoldStarted(OTHER, SPANS, "soft"),
                FoldCompleted(OTHER, (Span(3, 3),), {}),
            ],
            "two folds stand for",
        ),
    ],
)
def test_a_log_that_is_not_is_found(values, told):
    assert any(told in one for one in objections_to_log(entries(*values)))


def test_a_call_before_its_answer_was_recorded_is_sound():
    lines = [call(8.0), Line("gone", 8.5, "a"), call(9.5, "b")]
    assert list(objections_to_calls(lines, entries(STARTED, STEPPED))) == []


@pytest.mark.parametrize(
    ("lines", "values", "told"),
    [
        ([call(9.0), call(11.0, "b")], [STEPPED], "called again"),
        ([call(9.0, step="chunk 2")], [STEPPED], "by nobody"),
        ([call(9.0)], [STEPPED, STEPPED], "recorded twice"),
    ],
)
def test_a_call_too_many_is_found(lines, values, told):
    assert any(told in one for one in objections_to_calls(lines, entries(*values)))


@pytest.mark.parametrize(
    "lines",
    [
        [making("begin", 1), making("end", 2), making("begin", 3, "b"), making("end", 4, "b")],
        [making("begin", 1), Line("gone", 2, "a"), making("begin", 3, "b")],
        [making("begin", 1), making("end", 2), making("begin", 3), making("end", 4)],
    ],
)
def test_one_after_the_other_is_sound(lines):
    assert list(objections_to_workers(lines)) == []


@pytest.mark.parametrize(
    "lines",
    [
        [making("begin", 1), making("begin", 2, "b"), making("end", 3), making("end", 4, "b")],
        [making("begin", 1), making("begin", 2), making("end", 3), making("end", 4)],
        [making("begin", 1), making("begin", 2, "b")],
        [making("begin", 1), making("begin", 3, "b"), Line("gone", 4, "a")],
    ],
)
def test_two_at_once_are_found(lines):
    assert any("at once" in one for one in objections_to_workers(lines))


def test_a_line_that_a_kill_cut_is_none(tmp_path):
    path = tmp_path / "journal"
    assert lines_of(path) == []
    Journal(path, "a").write("begin", MAKING, FOLD)
    with path.open("ab") as file:
        file.write(b'\n["end", 17')
    Journal(path, "b").gone()
    assert [(line.what, line.worker) for line in lines_of(path)] == [("begin", "a"), ("gone", "b")]
