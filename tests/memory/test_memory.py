"""Memory: what is noted, and that daily files keep each note once, whole and harmless."""

import asyncio
import errno
import os
import re
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from remembered import Kept

from refold.errors import NotRemembered, RefoldError
from refold.fold.facts import STATE
from refold.fold.job import Job
from refold.fold.secrets import redact
from refold.fold.summary import Claim, Directive, Section, Summary
from refold.log import PartRef, Span
from refold.memory import DailyFiles, Note, remembering
from refold.memory.daily import HEADINGS, MARK, closing, harmless
from refold.memory.memory import noted

NOON = int(datetime(2026, 3, 14, 12, 5, tzinfo=UTC).timestamp() * 1000)
SECTION = re.compile(
    r"^## (?:Trimmed Context \(\d\d:\d\d\)|Context Overflow Recovery|Daily Summary)$", re.MULTILINE
)


def note(text="We chose SQLite.", reason: Any = "trimmed", fold=None, at=NOON, session="s"):
    return Note(session, at, reason, text, fold, 4)


def daily(folder, **how):
    return DailyFiles(folder, zone=UTC, **how)


def marks(text, one):
    return text.count(MARK.format(digest=one.digest))


def section(one):
    """A note as its file holds it."""
    heading = HEADINGS[one.reason].format(time="12:05")
    return f"\n{heading}\n\n{harmless(redact(one.text))}\n\n{MARK.format(digest=one.digest)}\n"


# What a file holds.


async def test_a_day_is_a_file_and_a_note_a_section(tmp_path):
    sink = daily(tmp_path)
    for reason in ("trimmed", "overflow", "daily"):
        await sink.write(note(f"Told when {reason}.", reason))
    file = tmp_path / "memory" / "2026-03-14.md"
    lines = [line for line in file.read_text().splitlines() if line and "<!--" not in line]
    assert lines == [
        "# Daily Memory: 2026-03-14",
        "## Trimmed Context (12:05)",
        "Told when trimmed.",
        "## Context Overflow Recovery",
        "Told when overflow.",
        "## Daily Summary",
        "Told when daily.",
    ]
    assert sink.path_of(note()) == file


async def test_nothing_is_made_before_there_is_a_note(tmp_path):
    daily(tmp_path)
    assert not list(tmp_path.iterdir())


async def test_days_are_those_of_the_zone(tmp_path):
    late = timezone(timedelta(hours=13))
    await DailyFiles(tmp_path, zone=late).write(note())
    [file] = (tmp_path / "memory").glob("*.md")
    assert file.name == "2026-03-15.md"
    assert "(01:05)" in file.read_text()


async def test_only_the_owner_may_read(tmp_path):
    before = os.umask(0)
    try:
        await daily(tmp_path).write(note())
    finally:
        os.umask(before)
    found = [tmp_path / "memory", *(tmp_path / "memory").iterdir()]
    assert [stat.S_IMODE(one.stat().st_mode) & 0o077 for one in found] == [0] * len(found)


async def test_secrets_are_taken_out(tmp_path, monkeypatch):
    monkeypatch.setattr("refold.memory.daily.redact", lambda text: text.replace("hunter2", "…"))
    sink = daily(tmp_path)
    await sink.write(note("The password is hunter2."))
    assert "The password is …." in sink.path_of(note()).read_text()


async def test_what_people_wrote_stays(tmp_path):
    sink = daily(tmp_path)
    file = sink.path_of(note())
    file.parent.mkdir()
    file.write_text("My own words, without an end of line")
    await sink.write(note())
    assert file.read_text() == f"My own words, without an end of line\n{section(note())}"


# Once.


@pytest.mark.parametrize("fold", [None, uuid4()])
async def test_the_same_note_is_written_once(tmp_path, fold):
    sink = daily(tmp_path)
    for _ in range(3):
        await sink.write(note(fold=fold))
    text = sink.path_of(note()).read_text()
    assert (marks(text, note(fold=fold)), text.count("SQLite")) == (1, 1)


async def test_a_fold_that_is_made_again_is_noted_once_whatever_it_says_and_whenever(tmp_path):
    sink = daily(tmp_path)
    fold = uuid4()
    await sink.write(note(fold=fold))
    await sink.write(note("In other words.", fold=fold, at=NOON + 3 * 24 * 3_600_000))
    assert [one.name for one in (tmp_path / "memory").glob("*.md")] == ["2026-03-14.md"]
    assert "other words" not in sink.path_of(note()).read_text()


def test_notes_are_told_apart():
    fold = UUID(int=7)
    notes = [note(), note("Other."), note(session="t"), note(reason="daily"), note(fold=fold)]
    notes += [note(fold=UUID(int=8)), note(fold=fold, reason="overflow")]
    assert len({one.digest for one in notes}) == len(notes)
    assert note(at=1).digest == note(at=2).digest
    assert note("a", fold=fold).digest == note("b", fold=fold).digest


# Whatever is said.

_ODD = st.sampled_from(
    [
        "## Trimmed Context (10:00)",
        "  ## Daily Summary",
        "# Daily Memory: 2026-03-14",
        "\u2028## Context Overflow Recovery",
        "\r## Daily Summary",
        MARK.format(digest="0" * 32),
        MARK.format(digest=note().digest),
        f"\n{MARK.format(digest=note('b').digest)}\n",
        "<!--",
        "-->",
        "<script>",
        "```",
        "~~~~ text",
        "===",
        "---",
        "\\",
        "\ud800",
        "\x00",
        "é",
    ]
)
_TEXTS = st.lists(st.one_of(_ODD, st.text(max_size=20)), max_size=6).map("\n".join)
_NOTES = st.lists(
    st.builds(
        note,
        _TEXTS,
        st.sampled_from(["trimmed", "overflow", "daily"]),
        st.one_of(st.none(), st.integers(0, 5).map(lambda n: UUID(int=n))),
    ),
    max_size=8,
)


@given(_NOTES)
@example([note(f"a\n{MARK.format(digest=note('b').digest)}"), note("b")])
def test_any_notes_in_any_order_are_there_once_and_whole(tmp_path_factory, notes):
    folder = tmp_path_factory.mktemp("any")
    sink = daily(folder)
    first = {}
    for one in notes:
        asyncio.run(sink.write(one))
        first.setdefault(one.digest, one)
    if not first:
        return
    text = sink.path_of(note()).read_bytes().decode()
    # The file is its title and the notes, each in the form of a section, and nothing else.
    assert text == "# Daily Memory: 2026-03-14\n" + "".join(map(section, first.values()))
    assert len(SECTION.findall(text)) == len(first)
    assert all(marks(text, one) >= 1 for one in notes)
    found = [line for line in text.splitlines() if line.startswith("<!--")]
    assert found == [MARK.format(digest=digest) for digest in first]


@given(_TEXTS)
def test_words_cannot_pass_for_a_heading_a_mark_or_markup(text):
    lines = harmless(text).splitlines()
    begins = [line.lstrip()[:1] for line in lines]
    assert not {"#", "<"} & set(begins)
    assert not any(re.fullmatch(r"\s*(?:=+|-+)\s*", line) for line in lines)
    is_open = ""
    for line in lines:
        if found := re.match(r"\s*(`{3,}|~{3,})(.*)", line):
            if not is_open:
                is_open = found[1]
            elif found[1].startswith(is_open) and not found[2].strip():
                is_open = ""
    assert not is_open


@pytest.mark.parametrize(
    "text", ["Plain.", "- a list\n- of things", "Use `a < b`.", "a # b\nc - d"]
)
def test_plain_words_stay_as_they_are(text):
    assert harmless(text) == text


# What a process left half written.


@pytest.mark.parametrize("text", ["We chose SQLite: è vero. 😀", "```\ncode\n```"])
def test_wherever_a_note_was_cut_off_the_next_ones_are_whole(tmp_path, text):
    whole = section(note(text)).encode()
    mine = "# Daily Memory: 2026-03-14\n\nMy own.\n"
    sink = daily(tmp_path)
    file = sink.path_of(note())
    file.parent.mkdir()
    for cut in range(len(whole) + 1):
        file.write_bytes(mine.encode() + whole[:cut])
        asyncio.run(sink.write(note(text)))
        asyncio.run(sink.write(note("Another.")))
        asyncio.run(sink.write(note(text)))
        found = file.read_bytes().decode()
        assert found.startswith(mine)
        assert found.endswith(section(note("Another.")))
        assert (marks(found, note(text)), found.count(section(note(text)).rstrip())) == (1, 1)
        assert marks(found, note("Another.")) == 1


@given(st.text(max_size=40))
def test_after_closing_off_a_new_line_begins(text):
    assert (text + closing(text)).endswith("\n") or not text
    assert closing(text + closing(text)) == ""


# Where it cannot be written.


async def refused(sink, match):
    with pytest.raises(NotRemembered, match=match) as raised:
        await sink.write(note())
    assert isinstance(raised.value, RefoldError)
    assert (raised.value.code, bool(raised.value.fix)) == ("not-remembered", True)
    return raised.value


async def test_a_folder_that_is_not_there(tmp_path):
    error = await refused(daily(tmp_path / "absent"), "There is no folder")
    assert "Create it" in error.fix
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("kind", ["link", "file"])
async def test_links_and_files_in_the_place_of_the_folder(tmp_path, kind):
    (tmp_path / "elsewhere").mkdir()
    here = tmp_path / "memory"
    if kind == "link":
        here.symlink_to(tmp_path / "elsewhere")
    else:
        here.write_text("mine")
    await refused(daily(tmp_path), "is a link, or no folder")
    assert not list((tmp_path / "elsewhere").iterdir())


async def test_a_link_in_the_place_of_the_file(tmp_path):
    sink = daily(tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / "precious").write_text("mine")
    sink.path_of(note()).symlink_to(tmp_path / "precious")
    error = await refused(sink, "cannot be written")
    assert "links" in error.fix
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
async def test_what_is_no_file_in_the_place_of_the_file(tmp_path, make):
    (tmp_path / "memory").mkdir()
    make(daily(tmp_path).path_of(note()))
    await refused(daily(tmp_path), "is not a file|cannot be written")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        error = await refused(daily(tmp_path), "cannot be written")
    finally:
        tmp_path.chmod(0o700)
    assert "writable" in error.fix


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EIO])
async def test_what_the_system_refuses_leaves_the_file_as_it_was(tmp_path, monkeypatch, number):
    sink = daily(tmp_path)
    await sink.write(note("First."))
    before = sink.path_of(note()).read_bytes()
    real = os.write

    def half(file, data):
        if len(data) < 20:
            raise OSError(number, os.strerror(number))
        return real(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    error = await refused(sink, os.strerror(number))
    assert ("disk space" in error.fix) == (number == errno.ENOSPC)
    assert sink.path_of(note()).read_bytes() == before
    monkeypatch.undo()
    await sink.write(note())
    assert marks(sink.path_of(note()).read_text(), note()) == 1


async def test_who_never_lets_go_is_not_waited_for_for_ever(tmp_path):
    import fcntl  # noqa: PLC0415 - here only

    await daily(tmp_path).write(note("First."))
    with (tmp_path / "memory" / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        error = await refused(daily(tmp_path, patience=0.05), "Another process has held")
    assert "end it" in error.fix
    await daily(tmp_path).write(note())


# Summaries, noted.


def job(trigger="turns"):
    return Job("s", UUID(int=9), (Span(2, 9),), trigger)


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [("turns", "trimmed"), ("tokens", "trimmed"), ("overflow", "overflow"), ("forced", "overflow")],
)
async def test_a_models_words_are_noted(trigger, reason):
    sink = Kept()
    told = Summary("model:x", words=" We chose SQLite. ", messages=40)
    await remembering(sink, now=lambda: 5)(told, job(trigger))
    assert sink.notes == [Note("s", 5, reason, "We chose SQLite.", UUID(int=9), 40)]


async def test_nothing_to_say_is_not_noted():
    sink = Kept()
    await remembering(sink)(Summary("breadcrumb"), job())
    assert sink.notes == []


async def test_who_cannot_keep_a_note_says_so():
    with pytest.raises(NotRemembered):
        await remembering(Kept(fails=True))(Summary("x", words="So."), job())


@given(st.integers(0, 30), st.integers(0, 3), st.booleans())
def test_without_a_model_a_note_is_a_few_lines_from_the_log(count, omitted, last):
    said = tuple(Directive(f"Ask\n{nth}", PartRef(nth + 1, 0), 5) for nth in range(count))
    state = (Section(STATE, (Claim("The model called x"), Claim('The model last said: "So."'))),)
    told = Summary("breadcrumb", directives=said, omitted=omitted, sections=state if last else ())
    lines = noted(told).splitlines()
    assert len(lines) <= 10
    asked = [line for line in lines if line.startswith("- The user:")]
    assert asked == [f'- The user: "Ask {nth}"' for nth in range(count - len(asked), count)]
    assert (lines[-1:] == ['- The model last said: "So."']) == last
    left = count - len(asked) + omitted
    assert (f"- [{left} earlier messages of the user]" in lines) == bool(left)
    assert len(lines) == 10 or len(asked) == count


def test_a_note_is_a_value():
    assert replace(note(), text="Other.") == note("Other.")
