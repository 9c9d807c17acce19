"""A session as JSON lines: what goes out comes back, and what is not right is told by its line."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refold.errors import (
    ArtifactNotFound,
    RefoldError,
    SessionExists,
    SessionForgotten,
    TransferError,
    WrittenByNewer,
)
from refold.log import (
    Artifact,
    Cleared,
    Draft,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Log,
    Message,
    Note,
    Opened,
    Rewound,
    SessionInfo,
    Span,
    Store,
    Titled,
    export_session,
    import_session,
)
from refold.log.artifact import INLINE_LIMIT
from refold.log.transfer import check_lines
from refold.stores import MemoryStore, SqliteStore
from refold.testing.machine import LogMachine
from refold.testing.model import ModelSession
from refold.testing.strategies import author, fillers, large_message, odd_texts, plain_values

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


class Place:
    """A store, and any number of empty logs in it."""

    def __init__(self, store: Store, runner: asyncio.Runner) -> None:
        self.store = store
        self.run = runner.run
        self._tenants = count(1)
        self.run(store.open())

    def log(self) -> Log:
        return self.store.log(f"tenant {next(self._tenants)}")

    def export(self, log: Log, session: str) -> str:
        return self.run(exported(log, session))

    def import_(self, log: Log, text: str, name: str | None = None) -> SessionInfo:
        return self.run(import_session(log, feed(text), name=name))

    def begin(self, log: Log, session: str, drafts: list[Draft]) -> None:
        self.run(log.append(session, drafts, expected=0))

    def entries(self, log: Log, session: str):
        return self.run(log.read(session))


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def memory(runner) -> Iterator[Place]:
    store = MemoryStore()
    yield Place(store, runner)
    runner.run(store.close())


@pytest.fixture(scope="module")
def sqlite(runner, tmp_path_factory) -> Iterator[Place]:
    store = SqliteStore(tmp_path_factory.mktemp("jsonl") / "refold.db")
    yield Place(store, runner)
    runner.run(store.close())


@pytest.fixture(params=["memory", "sqlite"])
def place(request) -> Place:
    return request.getfixturevalue(request.param)


async def exported(log: Log, session: str) -> str:
    return "".join([line async for line in export_session(log, session)])


async def feed(text: str) -> AsyncIterator[str]:
    """Lines as a file gives them: only a line feed ends one."""
    for line in io.BytesIO(text.encode()):
        yield line.decode()


def headless(text: str) -> str:
    """Everything but the line that names the session."""
    return text.partition("\n")[2]


def rewritten(text: str, **options: Any) -> str:
    """The lines as a tool writes them that reads JSON and writes it again."""
    return "".join(json.dumps(json.loads(line), **options) + "\n" for line in text.split("\n")[:-1])


OPENED = Opened("openai-chat", "balanced", "A title")
ODD_BODIES = [
    b'{\n  "role": "user",\n  "content": "pretty"\n}',
    b'{\r\n "role": "user"\r\n}',
    b' {"role": "user"}\t',
    '{"content": "a\u2028b\u2029c\u0085d\x7f\u00a0"}'.encode(),
    '{"content": "Zürich 日本語 🙂"}'.encode(),
    b'{"content": "Z\\u00fcrich \\ud83d\\ude42 \\/ \\u0041"}',
    b'{"content": "\\ud800 alone, \\udc00 alone"}',
    b'{"n": 1e400, "m": -1E-999, "i": 123456789012345678901234567890, "z": -0, "f": 1.000}',
    b'{"same": 1, "same": 2, "same": 3}',
    b'{"a":1,"body":2,"text":"t","seq":9,"entries":3,"artifact":"x"}',
    b'{"say": ",\\"body\\":{}}"}',
    b'"a bare string"',
    b"null",
    b"[]",
    b"{}",
    json.dumps({"content": "x" * (INLINE_LIMIT + 1)}).encode(),
    json.dumps({"content": "ü\n" * INLINE_LIMIT}, ensure_ascii=False, indent=1).encode(),
    json.dumps(["many"] * INLINE_LIMIT).encode(),
    b'{"content": "' + b"\\u0041" * INLINE_LIMIT + b'"}',
]


@st.composite
def odd_drafts(draw: st.DrawFn, made: Draft) -> Draft:
    """The draft as a newer Refold, a delegate or a careless client would have made it."""
    return made._replace(
        kind=draw(st.sampled_from(("message", "note", "future", "future.kind-2", "pin", "title"))),
        version=draw(st.sampled_from((7, (1 << 63) - 1))),
        body=draw(
            st.sampled_from(ODD_BODIES) | odd_texts.map(lambda text: json.dumps(text).encode())
        ),
        scope=draw(st.sampled_from(("/", "/research", "/Zürich [1]/\u2028"))),
    )


artifacts = st.lists(
    st.sampled_from((b"", b"\x00\xff" * 9, b"big" * INLINE_LIMIT)).map(
        lambda data: Artifact.of(data, "image/png")
    ),
    max_size=3,
)


@st.composite
def histories(draw: st.DrawFn) -> list[Draft]:
    """The drafts of a session."""
    makes = author(draw(st.integers(0, 1 << 32)))
    drafts = [makes.draft(OPENED)]
    for _ in range(draw(st.integers(0, 6))):
        steps = st.sampled_from((Cleared(), Titled("Neu"), Rewound(len(drafts))))
        large = st.builds(large_message, fillers, st.just("end"))
        bodies = st.sampled_from(ODD_BODIES).map(Message)
        value = draw(st.one_of(plain_values, bodies, large, steps))
        draft = makes.draft(value, artifacts=draw(artifacts))
        if draw(st.booleans()):
            draft = draw(odd_drafts(draft))
        if draw(st.booleans()):
            first = draw(st.integers(1, len(drafts)))
            draft = draft._replace(rests_on=(Span(first, draw(st.integers(first, len(drafts)))),))
        drafts.append(draft)
    return drafts


@st.composite
def spans(draw: st.DrawFn) -> Span:
    first = draw(st.integers(1, 7))
    return Span(first, draw(st.integers(first, 7)))


def kept(place: Place, log: Log, drafts: list[Draft], forgotten: Span | None) -> str:
    place.begin(log, "origin", drafts)
    if forgotten:
        place.run(log.forget("origin", forgotten))
    return place.export(log, "origin")


@given(drafts=histories(), forgotten=st.none() | spans())
def test_what_was_imported_is_exported_the_same(memory, drafts, forgotten):
    log, other = memory.log(), memory.log()
    text = kept(memory, log, drafts, forgotten)
    copy, moved = memory.import_(log, text, "copy"), memory.import_(other, text)
    assert (copy.session, moved.session) == ("copy", "origin")
    assert memory.export(other, "origin") == text
    assert headless(memory.export(log, "copy")) == headless(text)


# Each example waits for the disk several times.
@settings(max_examples=min(settings().max_examples, 100))
@given(drafts=histories(), forgotten=st.none() | spans())
def test_stores_export_the_same(memory, sqlite, drafts, forgotten):
    log = sqlite.log()
    text = kept(sqlite, log, drafts, forgotten)
    assert text == kept(memory, memory.log(), drafts, forgotten)
    sqlite.import_(log, text, "copy")
    assert headless(sqlite.export(log, "copy")) == headless(text)
    assert sqlite.entries(log, "copy") == sqlite.entries(log, "origin")


@given(drafts=histories(), cut=st.integers(1, 7))
def test_importing_again_changes_nothing_and_completes(memory, drafts, cut):
    origin, log = memory.log(), memory.log()
    memory.begin(origin, "s", drafts)
    text = memory.export(origin, "s")
    memory.begin(log, "s", drafts[:cut])  # as an interrupted import leaves it
    first = memory.import_(log, text)
    assert memory.export(log, "s") == text
    assert memory.import_(log, text) == first
    assert memory.export(log, "s") == text


@given(drafts=histories(), indent=st.sampled_from((" ", "")))
def test_a_file_that_a_tool_wrote_anew_is_imported(memory, drafts, indent):
    origin, log = memory.log(), memory.log()
    drafts = [
        draft
        for draft in drafts
        if draft.body != ODD_BODIES[7]  # json writes 1e400 as Infinity
    ]
    drafts = [draft._replace(rests_on=()) for draft in drafts if draft.kind != "rewind"]
    memory.begin(origin, "s", drafts)
    text = rewritten(memory.export(origin, "s"), separators=("," + indent, ":" + indent))
    memory.import_(log, text)
    bodies = [json.loads(entry.body) for entry in memory.entries(log, "s")]
    assert bodies == [json.loads(draft.body) for draft in drafts]
    assert memory.import_(log, text).entries == len(drafts)


@given(drafts=histories(), data=st.data())
def test_a_damaged_file_is_imported_or_refused_and_never_breaks(memory, drafts, data):
    origin, log = memory.log(), memory.log()
    memory.begin(origin, "s", drafts)
    whole = memory.export(origin, "s")
    at = data.draw(st.integers(0, len(whole) - 1))
    junk = data.draw(st.sampled_from(("", "0", '"', "}", "\n", "\x00", "ü", "null", "-", ",")))
    length = data.draw(st.integers(0, 30))
    text = whole[:at] + junk + whole[at + length :]
    try:
        info = memory.import_(log, text)
    except RefoldError as error:
        assert error.fix  # noqa: PT017 - it may also be imported
        with pytest.raises(RefoldError):
            memory.run(log.info("s"))
    else:
        assert len(memory.entries(log, info.session)) == info.entries


@pytest.mark.parametrize("body", ODD_BODIES, ids=range(len(ODD_BODIES)))
def test_a_body_comes_back_byte_for_byte(place, body):
    log = place.log()
    makes = author()
    place.begin(log, "s", [makes.draft(OPENED), makes.draft(Message(body))])
    text = place.export(log, "s")
    assert text.count("\n") == 4
    assert "\r" not in text
    place.import_(log, text, "copy")
    assert place.entries(log, "copy")[1].body == body


def test_numbers_of_any_size_survive_a_tool_that_keeps_them(place):
    log = place.log()
    body = b'{"n": 1e400, "i": ' + b"9" * 5000 + b"}"
    makes = author()
    draft = makes.draft(Note(""))._replace(kind="future", body=body)
    place.begin(log, "s", [makes.draft(OPENED), draft])
    spaced = place.export(log, "s").replace('"body":', '"body" : ').replace(',"', ' , "')
    place.import_(log, spaced, "copy")
    assert place.entries(log, "copy")[1].body == body


def test_the_order_of_fields_and_blank_lines_do_not_matter(place):
    log = place.log()
    makes = author()
    body = b'{"a":1,"body":2}'
    place.begin(log, "s", [makes.draft(OPENED), makes.draft(Message(body))])
    text = place.export(log, "s")
    sorted_ = "\ufeff" + rewritten(text, sort_keys=True, separators=(",", ":")) + "\n \r\n"
    place.import_(log, sorted_.replace("\n", "\r\n"), "copy")
    assert [entry.body for entry in place.entries(log, "copy")][1] == body


class RebuildingMachine(LogMachine):
    """Any history: the log's lines are all it takes to rebuild the state."""

    def new_store(self) -> Store:
        return MemoryStore(clock=self.clock)

    def check_export(self, log: Log, session: ModelSession) -> None:
        text = self.run(exported(log, session.name))
        other = MemoryStore().log()
        self.run(import_session(other, feed(text)))
        assert self.run(exported(other, session.name)) == text
        here, there = self.run(log.visible(session.name)), self.run(other.visible(session.name))
        assert (here.outline, here.entries) == (there.outline, there.entries)
        assert (here.info.title, here.info.messages) == (there.info.title, there.info.messages)


# Each example is a whole history: a quarter of them takes as long as other tests do.
RebuildingMachine.TestCase.settings = settings(max_examples=settings().max_examples)
TestStateIsRebuiltFromTheLines = pytest.mark.req("R101")(RebuildingMachine.TestCase)


def long_session(entries: int) -> list[Draft]:
    makes = author()
    return [makes.draft(OPENED), *(makes.draft(Note(f"note {n}")) for n in range(2, entries + 1))]


class Interrupted(Exception):
    """The process ended here."""


@pytest.mark.parametrize("lines", [1, 2, 101, 102, 103, 250, 302])
def test_an_import_that_was_cut_off_is_completed_by_repeating_it(place, lines):
    origin, log = place.log(), place.log()
    place.begin(origin, "s", long_session(301))
    text = place.export(origin, "s")

    async def cut() -> AsyncIterator[str]:
        for line in text.splitlines(keepends=True)[:lines]:
            yield line
        raise Interrupted

    with pytest.raises(Interrupted):
        place.run(import_session(log, cut()))
    place.import_(log, text)
    assert place.export(log, "s") == text


def test_a_session_that_went_on_is_brought_up_to_date(place):
    origin, log = place.log(), place.log()
    drafts = long_session(230)
    place.begin(origin, "s", drafts[:150])
    place.import_(log, place.export(origin, "s"))
    place.run(origin.append("s", drafts[150:], expected=150))
    text = place.export(origin, "s")
    assert place.import_(log, text).entries == 230
    assert place.export(log, "s") == text


def test_an_older_file_leaves_a_session_that_went_on_as_it_is(place):
    log = place.log()
    drafts = long_session(3)
    place.begin(log, "s", drafts)
    older = place.export(log, "s")
    place.run(log.append("s", [author(9).draft(Note("later"))], expected=3))
    assert place.import_(log, older).entries == 4


def test_many_large_bodies_are_imported(place):
    origin, log = place.log(), place.log()
    makes = author()
    large = [makes.draft(Note(f"{n}", "x" * 3_000_000)) for n in range(5)]
    place.begin(origin, "s", [makes.draft(OPENED), *large])
    text = place.export(origin, "s")
    place.import_(log, text)
    assert place.export(log, "s") == text


def test_attached_artifacts_come_with_their_entries(place):
    origin, log = place.log(), place.log()
    makes = author()
    picture = Artifact.of(b"\x89PNG", "image/png")
    drafts = [makes.draft(OPENED), *(makes.draft(Note("see"), artifacts=[picture]) for _ in "ab")]
    place.begin(origin, "s", drafts)
    text = place.export(origin, "s")
    assert text.count('"data"') == 1
    place.import_(log, text)
    assert place.run(log.artifact(picture.hash)) == picture
    place.run(log.forget("s", Span(2, 2)))
    assert place.run(log.artifact(picture.hash)) == picture
    place.run(log.forget("s", Span(3, 3)))
    with pytest.raises(ArtifactNotFound):
        place.run(log.artifact(picture.hash))


def test_a_tombstone_stays_one_and_carries_no_word(place):
    log = place.log()
    makes = author()
    fold = UUID(int=1)
    spans_ = (Span(2, 2),)
    values = [
        OPENED,
        Message(b'"secret"'),
        FoldStarted(fold, spans_, "manual"),
        FoldCompleted(fold, spans_, {"text": "of the secret"}),
    ]
    place.begin(log, "s", [makes.draft(value) for value in values])
    place.run(log.forget("s", Span(2, 2)))
    text = place.export(log, "s")
    assert "secret" not in text
    place.import_(log, text, "copy")
    assert [entry.forgotten for entry in place.entries(log, "copy")] == [False, True, False, True]


def test_a_fold_that_was_taken_back_and_then_forgotten(place):
    log = place.log()
    makes = author()
    fold = UUID(int=1)
    spans_ = (Span(2, 2),)
    values = [
        OPENED,
        Note("secret"),
        FoldStarted(fold, spans_, "manual"),
        FoldCompleted(fold, spans_, {"text": "of the secret"}),
        FoldUndone(fold),
    ]
    place.begin(log, "s", [makes.draft(value) for value in values])
    place.run(log.forget("s", Span(2, 2)))
    text = place.export(log, "s")
    place.import_(log, text, "copy")
    assert headless(place.export(log, "copy")) == headless(text)


def test_a_fork_is_exported_whole(place):
    log, other = place.log(), place.log()
    drafts = long_session(3)
    place.begin(log, "s", drafts)
    place.run(log.fork("s", "fork", at=2))
    place.run(log.append("fork", [author(9).draft(Note("on its own"))], expected=2))
    info = place.import_(other, place.export(log, "fork"))
    assert (info.entries, info.forked_from) == (3, None)
    assert place.entries(other, "fork") == place.entries(log, "fork")


@pytest.fixture
def lines(memory) -> list[str]:
    """The lines of a session: its header, five entries with an artifact, its end."""
    log = memory.log()
    makes = author()
    picture = Artifact.of(b"picture", "image/png")
    drafts = [makes.draft(OPENED), *(makes.draft(Note(f"note {n}")) for n in range(3))]
    memory.begin(log, "s", [*drafts, makes.draft(Note("see"), artifacts=[picture])])
    return memory.export(log, "s").split("\n")[:-1]


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


def test_checking_says_what_a_file_holds(memory):
    log = memory.log()
    makes = author()
    memory.begin(log, "s", [makes.draft(OPENED), makes.draft(Message(b"{}"))])
    contents = memory.run(check_lines(feed(memory.export(log, "s")), name="n"))
    assert (contents.session, contents.entries, contents.messages) == ("n", 2, 1)
