"""A session as JSON lines: what goes out comes back."""

# ruff: noqa: F811, F401 - fixtures are imported

import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transfer_stores import (
    OPENED,
    LogStore,
    any_store,
    exported,
    feed,
    headless,
    long_session,
    memory,
    rewritten,
    runner,
    sqlite,
)

from refold.errors import ArtifactNotFound, RefoldError
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
    Rewound,
    Span,
    Store,
    Titled,
    import_session,
)
from refold.log.artifact import INLINE_LIMIT
from refold.log.transfer import check_lines
from refold.stores import MemoryStore
from refold.testing.machine import LogMachine
from refold.testing.model import ModelSession
from refold.testing.strategies import author, fillers, large_message, odd_texts, plain_values

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


def export_history(
    any_store: LogStore, log: Log, drafts: list[Draft], forgotten: Span | None
) -> str:
    any_store.begin(log, "origin", drafts)
    if forgotten:
        any_store.run(log.forget("origin", forgotten))
    return any_store.export(log, "origin")


@given(drafts=histories(), forgotten=st.none() | spans())
def test_what_was_imported_is_exported_the_same(memory, drafts, forgotten):
    log, other = memory.log(), memory.log()
    text = export_history(memory, log, drafts, forgotten)
    copy, moved = memory.import_(log, text, "copy"), memory.import_(other, text)
    assert (copy.session, moved.session) == ("copy", "origin")
    assert memory.export(other, "origin") == text
    assert headless(memory.export(log, "copy")) == headless(text)


# Each example waits for the disk several times.
@settings(max_examples=min(settings().max_examples, 100))
@given(drafts=histories(), forgotten=st.none() | spans())
def test_stores_export_the_same(memory, sqlite, drafts, forgotten):
    log = sqlite.log()
    text = export_history(sqlite, log, drafts, forgotten)
    assert text == export_history(memory, memory.log(), drafts, forgotten)
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
def test_a_body_comes_back_byte_for_byte(any_store, body):
    log = any_store.log()
    makes = author()
    any_store.begin(log, "s", [makes.draft(OPENED), makes.draft(Message(body))])
    text = any_store.export(log, "s")
    assert text.count("\n") == 4
    assert "\r" not in text
    any_store.import_(log, text, "copy")
    assert any_store.entries(log, "copy")[1].body == body


def test_numbers_of_any_size_survive_a_tool_that_keeps_them(any_store):
    log = any_store.log()
    body = b'{"n": 1e400, "i": ' + b"9" * 5000 + b"}"
    makes = author()
    draft = makes.draft(Note(""))._replace(kind="future", body=body)
    any_store.begin(log, "s", [makes.draft(OPENED), draft])
    spaced = any_store.export(log, "s").replace('"body":', '"body" : ').replace(',"', ' , "')
    any_store.import_(log, spaced, "copy")
    assert any_store.entries(log, "copy")[1].body == body


def test_the_order_of_fields_and_blank_lines_do_not_matter(any_store):
    log = any_store.log()
    makes = author()
    body = b'{"a":1,"body":2}'
    any_store.begin(log, "s", [makes.draft(OPENED), makes.draft(Message(body))])
    text = any_store.export(log, "s")
    sorted_ = "\ufeff" + rewritten(text, sort_keys=True, separators=(",", ":")) + "\n \r\n"
    any_store.import_(log, sorted_.replace("\n", "\r\n"), "copy")
    assert [entry.body for entry in any_store.entries(log, "copy")][1] == body


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
TestStateIsRebuiltFromTheLines = RebuildingMachine.TestCase


class Interrupted(Exception):
    """The process ended here."""


@pytest.mark.parametrize("lines", [1, 2, 101, 102, 103, 250, 302])
def test_an_import_that_was_cut_off_is_completed_by_repeating_it(any_store, lines):
    origin, log = any_store.log(), any_store.log()
    any_store.begin(origin, "s", long_session(301))
    text = any_store.export(origin, "s")

    async def cut() -> AsyncIterator[str]:
        for line in text.splitlines(keepends=True)[:lines]:
            yield line
        raise Interrupted

    with pytest.raises(Interrupted):
        any_store.run(import_session(log, cut()))
    any_store.import_(log, text)
    assert any_store.export(log, "s") == text


def test_a_session_that_went_on_is_brought_up_to_date(any_store):
    origin, log = any_store.log(), any_store.log()
    drafts = long_session(230)
    any_store.begin(origin, "s", drafts[:150])
    any_store.import_(log, any_store.export(origin, "s"))
    any_store.run(origin.append("s", drafts[150:], expected=150))
    text = any_store.export(origin, "s")
    assert any_store.import_(log, text).entries == 230
    assert any_store.export(log, "s") == text


def test_an_older_file_leaves_a_session_that_went_on_as_it_is(any_store):
    log = any_store.log()
    drafts = long_session(3)
    any_store.begin(log, "s", drafts)
    older = any_store.export(log, "s")
    any_store.run(log.append("s", [author(9).draft(Note("later"))], expected=3))
    assert any_store.import_(log, older).entries == 4


def test_many_large_bodies_are_imported(any_store):
    origin, log = any_store.log(), any_store.log()
    makes = author()
    large = [makes.draft(Note(f"{n}", "x" * 3_000_000)) for n in range(5)]
    any_store.begin(origin, "s", [makes.draft(OPENED), *large])
    text = any_store.export(origin, "s")
    any_store.import_(log, text)
    assert any_store.export(log, "s") == text


def test_attached_artifacts_come_with_their_entries(any_store):
    origin, log = any_store.log(), any_store.log()
    makes = author()
    picture = Artifact.of(b"\x89PNG", "image/png")
    drafts = [makes.draft(OPENED), *(makes.draft(Note("see"), artifacts=[picture]) for _ in "ab")]
    any_store.begin(origin, "s", drafts)
    text = any_store.export(origin, "s")
    assert text.count('"data"') == 1
    any_store.import_(log, text)
    assert any_store.run(log.artifact(picture.hash)) == picture
    any_store.run(log.forget("s", Span(2, 2)))
    assert any_store.run(log.artifact(picture.hash)) == picture
    any_store.run(log.forget("s", Span(3, 3)))
    with pytest.raises(ArtifactNotFound):
        any_store.run(log.artifact(picture.hash))


FOLD = UUID(int=1)


def folded(secret, *after):
    """A session in which a secret was folded."""
    spans_ = (Span(2, 2),)
    ended = FoldCompleted(FOLD, spans_, {"text": "of the secret"})
    makes = author()
    values = [OPENED, secret, FoldStarted(FOLD, spans_, "manual"), ended, *after]
    return [makes.draft(value) for value in values]


def test_a_tombstone_stays_one_and_carries_no_word(any_store):
    log = any_store.log()
    any_store.begin(log, "s", folded(Message(b'"secret"')))
    any_store.run(log.forget("s", Span(2, 2)))
    text = any_store.export(log, "s")
    assert "secret" not in text
    any_store.import_(log, text, "copy")
    assert [entry.forgotten for entry in any_store.entries(log, "copy")] == [
        False,
        True,
        False,
        True,
    ]


def test_a_fold_that_was_taken_back_and_then_forgotten(any_store):
    log = any_store.log()
    any_store.begin(log, "s", folded(Note("secret"), FoldUndone(FOLD)))
    any_store.run(log.forget("s", Span(2, 2)))
    text = any_store.export(log, "s")
    any_store.import_(log, text, "copy")
    assert headless(any_store.export(log, "copy")) == headless(text)


def test_a_fork_is_exported_whole(any_store):
    log, other = any_store.log(), any_store.log()
    drafts = long_session(3)
    any_store.begin(log, "s", drafts)
    any_store.run(log.fork("s", "fork", at=2))
    any_store.run(log.append("fork", [author(9).draft(Note("on its own"))], expected=2))
    info = any_store.import_(other, any_store.export(log, "fork"))
    assert (info.entries, info.forked_from) == (3, None)
    assert any_store.entries(other, "fork") == any_store.entries(log, "fork")


def test_checking_says_what_a_file_holds(memory):
    log = memory.log()
    makes = author()
    memory.begin(log, "s", [makes.draft(OPENED), makes.draft(Message(b"{}"))])
    contents = memory.run(check_lines(feed(memory.export(log, "s")), name="n"))
    assert (contents.session, contents.entries, contents.messages) == ("n", 2, 1)
