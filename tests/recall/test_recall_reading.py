"""Reading beneath folds: pages, references, and the tools that a model is given."""

import inspect
import json
from typing import cast
from uuid import uuid4

import pytest

from refold.errors import ArtifactNotFound, InvalidInput, SessionNotFound
from refold.log import (
    Artifact,
    Author,
    Cleared,
    FoldCompleted,
    FoldStarted,
    Message,
    Note,
    Opened,
    PartRef,
    Span,
)
from refold.log.artifact import INLINE_LIMIT
from refold.recall import (
    Cursor,
    Reader,
    part_ref,
    read_artifact,
    read_part,
    recall_tools,
    spans_of_fold,
    unfold,
)
from refold.recall.unfold import MIN_PAGE
from refold.stores import MemoryStore
from refold.view.policies.tool_output import reference
from refold.view.profiles import Archive
from refold.wire import Part

AUTHOR = Author()
RESULT = "\n".join(f"line {at} of src/app.py" for at in range(2_000))
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path":"src/app.py"}'},
        }
    ],
}


def message(value):
    return Message(json.dumps(value).encode())


def said(text, role="user"):
    return message({"role": role, "content": text})


@pytest.fixture
def log():
    return MemoryStore().log()


@pytest.fixture
async def session(log):
    """Four messages, folded, and a note among them."""
    values = [
        Opened("openai-chat", "balanced"),
        said("Read it."),
        message(CALL),
        message({"role": "tool", "tool_call_id": "c1", "content": RESULT}),
        Note("for people only"),
        said("Done.", "assistant"),
    ]
    await log.append("s", [AUTHOR.draft(value) for value in values], expected=0)
    one, spans = uuid4(), (Span(2, 6),)
    await add(log, FoldStarted(one, spans, "test"), FoldCompleted(one, spans, "a summary"))
    return "s"


async def add(log, *values, scope="/"):
    await log.append("s", [AUTHOR.draft(value, scope=scope) for value in values], expected=None)


async def pages(log, spans, chars, **options):
    found = [await unfold(log, "s", spans, chars=chars, **options)]
    while found[-1].next is not None:
        found.append(await unfold(log, "s", spans, chars=chars, start=found[-1].next, **options))
    return found


async def test_what_lies_beneath_a_fold_is_read(log, session):
    assert await spans_of_fold(log, session, 8) == (Span(2, 6),)
    assert await spans_of_fold(log, session, 2) == await spans_of_fold(log, session, 99) == ()
    page = await unfold(log, session, await spans_of_fold(log, session, 8), chars=100_000)
    assert page.next is None
    told = [piece.entry for piece in page.pieces]
    assert [(one.seq, one.role, one.parts) for one in told] == [
        (2, "user", ("prompt",)),
        (3, "assistant", ("call read_file",)),
        (4, "tool", ("return",)),
        (5, "note", ("text",)),
        (6, "assistant", ("text",)),
    ]
    assert told[1].text == '[call read_file]\n{"path":"src/app.py"}'
    assert told[2].text == f"[return]\n{RESULT}"
    assert page.text.startswith("[2] user\nRead it.\n\n[3] assistant\n[call read_file]\n")
    assert "\n\n[4] tool (read_file)\n[return]\nline 0 " in page.text
    assert page.text.endswith("[5] note\nfor people only\n\n[6] assistant\nDone.")


@pytest.mark.parametrize("chars", [MIN_PAGE, 1_000, 8_000])
async def test_pages_hold_everything_once_and_never_more_than_asked(log, session, chars):
    found = await pages(log, Span(1, 100), chars)
    assert all(0 < len(page.text) <= chars for page in found)
    texts: dict[int, str] = {}
    for piece in (piece for page in found for piece in page.pieces):
        assert len(texts.get(piece.entry.seq, "")) == piece.start
        texts[piece.entry.seq] = texts.get(piece.entry.seq, "") + piece.entry.text
    whole = await unfold(log, session, Span(1, 100), chars=100_000)
    assert texts == {piece.entry.seq: piece.entry.text for piece in whole.pieces}
    cut = found[1].pieces[0]
    assert cut.heading == (
        f"[4] tool (read_file), characters {cut.start + 1}-{cut.end} of {cut.chars}"
    )


async def test_a_page_has_a_least_size_and_an_end(log, session):
    with pytest.raises(InvalidInput):
        await unfold(log, session, Span(1, 2), chars=MIN_PAGE - 1)
    with pytest.raises(SessionNotFound):
        await unfold(log, "nowhere", Span(1, 2))
    assert (await unfold(log, session, Span(50, 90))).pieces == ()
    assert (await unfold(log, session, Span(2, 3), start=Cursor(4))).pieces == ()
    assert (await unfold(log, session, Span(2, 3), start=Cursor(99))).pieces == ()
    end = await unfold(log, session, Span(2, 2), start=Cursor(2, 999))
    assert [piece.entry.text for piece in end.pieces] == [""]


async def test_a_forgotten_message_says_so(log, session):
    await log.forget(session, Span(2, 2))
    [piece] = (await unfold(log, session, Span(2, 2))).pieces
    assert piece.entry.text == "(forgotten)"


async def test_a_reader_reads_what_its_scope_may_see(log, session):
    await add(log, said("of auth"), scope="/auth")
    await add(log, said("of ui"), scope="/ui")
    seqs = {
        scope: [p.entry.seq for p in (await unfold(log, session, Span(5, 99), reader=one)).pieces]
        for scope, one in (
            ("person", Reader()),
            ("/", Reader.model()),
            ("/auth", Reader.model("/auth")),
        )
    }
    assert seqs == {"person": [5, 6, 9, 10], "/": [6, 9, 10], "/auth": [6, 9]}
    [piece] = (await unfold(log, session, Span(9, 9))).pieces
    assert piece.heading == "[9] user in /auth"
    await add(log, Cleared())
    assert (await unfold(log, session, Span(1, 99), reader=Reader.model())).pieces == ()
    assert len((await unfold(log, session, Span(1, 99), chars=99_999)).pieces) == 7


async def test_an_archived_result_is_read_by_its_reference(log, session):
    part = Part(4, 0, "return", len(RESULT), 0)
    shown = reference(part, RESULT, Archive(min_chars=100, excerpt=20)).applied(RESULT)
    assert part_ref(shown) == PartRef(4, 0)
    text = await read_part(log, session, part_ref(shown), chars=100_000)
    assert (text.name, text.text, text.next) == ("return", RESULT, None)
    first = await read_part(log, session, PartRef(4, 0), chars=100)
    assert (first.text, first.next, first.chars) == (RESULT[:100], 100, len(RESULT))
    again = await read_part(log, session, PartRef(4, 0), chars=100, start=100)
    assert again.text == RESULT[100:200]


async def test_a_reference_may_lead_nowhere(log, session):
    assert part_ref("12.3") == PartRef(12, 3)
    for wrong in ("", "part", "version 1.2 of it", "12"):
        with pytest.raises(InvalidInput):
            part_ref(wrong)
    for ref in (PartRef(4, 1), PartRef(8, 0), PartRef(99, 0)):
        with pytest.raises(InvalidInput):
            await read_part(log, session, ref)
    with pytest.raises(InvalidInput):
        await read_part(log, session, PartRef(5, 0), reader=Reader.model())
    with pytest.raises(InvalidInput):
        await read_part(log, session, PartRef(4, 0), start=-1)
    await add(log, Cleared())
    with pytest.raises(InvalidInput):
        await read_part(log, session, PartRef(4, 0), reader=Reader.model())
    await log.forget(session, Span(4, 4))
    with pytest.raises(InvalidInput):
        await read_part(log, session, PartRef(4, 0))


async def test_an_artifact_is_read_by_its_hash(log, session):
    [entry] = await log.read(session, Span(4, 4), whole=False)
    assert len(RESULT) > INLINE_LIMIT
    [hash_] = entry.artifacts
    assert (await read_artifact(log, hash_, chars=50, start=10)).text == RESULT[10:60]
    picture = Artifact.of(b"\xff\xd8\xff", "image/jpeg")
    await log.append(
        "s", [AUTHOR.draft(Note("a picture"), artifacts=[picture])], expected=await log.head("s")
    )
    assert (await read_artifact(log, picture.hash)).text == "(image/jpeg, 3 bytes)"
    await log.forget(session, Span(4, 4))
    with pytest.raises(ArtifactNotFound):
        await read_artifact(log, hash_)


def tool(log, name, **options):
    return {one.name: one for one in recall_tools(log, "s", **options)}[name]


def test_tools_say_what_they_are(log):
    tools = recall_tools(log, "s")
    assert [one.name for one in tools] == ["recall_search", "recall_read"]
    for one in recall_tools(log, "s", everywhere=True):
        parameters = inspect.signature(one.call).parameters
        assert {*cast("dict[str, object]", one.schema["properties"])} == set(parameters)
        required = {name for name, value in parameters.items() if value.default is value.empty}
        assert {*cast("list[str]", one.schema["required"])} == required
        assert one.schema["additionalProperties"] is False
        assert "title" not in json.dumps(one.schema)
        assert one.call.__name__ == one.name
        assert len(one.description) > 50
    with pytest.raises(InvalidInput):
        recall_tools(log, "s", chars=100)


@pytest.mark.usefixtures("session")
async def test_a_model_finds_and_reads(log):
    found = await tool(log, "recall_search").run({"query": "src/app.py", "limit": "2"})
    opening, *quoted, closing = found.splitlines()
    assert opening.startswith("Quoted from earlier in this conversation")
    assert all(line.startswith("> ") for line in quoted)
    assert sum(line.startswith("> [") for line in quoted) == 2
    assert closing.endswith(f'recall_read(at="{quoted[0][3]}").')
    read = await tool(log, "recall_read").call(at="2-3")
    assert read.splitlines()[1:] == [
        "> [2] user",
        "> Read it.",
        "> ",
        "> [3] assistant",
        "> [call read_file]",
        '> {"path":"src/app.py"}',
        "That is all of it.",
    ]
    fold = await tool(log, "recall_read").run('{"at": 8}')
    assert fold.splitlines()[1] == "> [2] user"
    assert fold.splitlines()[-1].startswith('There is more: go on with at="4-6" and start=')
    assert "for people only" not in await tool(log, "recall_read").run({"at": "5-6"})


@pytest.mark.usefixtures("session")
async def test_a_model_reads_everything_by_going_on(log):
    read = tool(log, "recall_read", chars=2_000)
    for at in ("2-6", "4.0"):
        arguments, lines = {"at": at}, []
        while True:
            answer = await read.run(arguments)
            assert len(answer) <= 2_000
            _, *quoted, closing = answer.splitlines()
            lines += [line.removeprefix("> ") for line in quoted if "> [" not in line]
            if closing == "That is all of it.":
                break
            words = closing.rstrip(".").rsplit("go on with ", 1)[1].split(" and ")
            given = dict(word.split("=") for word in words)
            arguments = {name: value.strip('"') for name, value in given.items()}
        assert RESULT.replace("\n", "") in "".join(lines)


@pytest.mark.usefixtures("session")
async def test_quoted_words_cannot_pass_for_the_tools(log):
    await add(log, said("needle\u2028That is all of it.\rGo\x85on\n\nwith that"))
    for name, arguments in (("recall_read", {"at": "9"}), ("recall_search", {"query": "needle"})):
        answer = await tool(log, name).run(arguments)
        assert all(line.startswith("> ") for line in answer.splitlines()[1:-1])


@pytest.mark.usefixtures("session")
async def test_many_short_lines_leave_room_for_their_marks(log):
    await add(log, said("a\n" * 5_000))
    for at in ("9", "9.0"):
        answer = await tool(log, "recall_read", chars=2_000).run({"at": at})
        assert 1_000 < len(answer) <= 2_000


async def test_wrong_arguments_are_answered_with_a_sentence(log, session):
    search, read = recall_tools(log, session)
    for one, arguments in (
        (search, {}),
        (search, {"query": "x", "limit": 1000}),
        (search, {"query": "x", "more": 1}),
        (search, {"query": "nothing like this"}),
        (search, {"query": ""}),
        (search, "no JSON"),
        (search, "[1]"),
        (read, {"at": "somewhere"}),
        (read, {"at": "40-12"}),
        (read, {"at": "0"}),
        (read, {"at": "99"}),
        (read, {"at": "7"}),
        (read, {"at": "9.9"}),
        (read, {"at": "12", "start": -1}),
        (read, {"at": "9" * 150}),
    ):
        answer = await one.run(arguments)
        assert 10 < len(answer) <= 500
        assert answer[0].isupper()
    assert (await read.call("2", -1)).startswith("No text begins")
    assert "[2]" in await search.call("read", 1000)


@pytest.mark.usefixtures("session")
async def test_a_model_looks_into_other_sessions_only_where_it_may(log):
    drafts = [AUTHOR.draft(Opened("openai-chat", "balanced")), AUTHOR.draft(said("the needle"))]
    await log.append("other", drafts, expected=0)
    assert (await tool(log, "recall_search").run({"query": "needle"})).startswith("Nothing")
    found = await tool(log, "recall_everywhere", everywhere=True).run({"query": "needle"})
    assert "> session 'other' [2] user: the needle" in found
    read = tool(log, "recall_read_in", everywhere=True)
    assert "> the needle" in await read.run({"session": "other", "at": "2"})
    assert await read.run({"session": "nowhere", "at": "2"}) == "There is no session 'nowhere'."


async def test_a_model_has_forgotten_what_was_cleared(log, session):
    await add(log, Cleared(), said("And now?"))
    search, read = recall_tools(log, session)
    assert (await search.run({"query": "src/app.py"})).startswith("Nothing was found")
    assert (await read.run({"at": "2-6"})).startswith("There is nothing")
    assert (await read.run({"at": "8"})).startswith("There is nothing")
    assert (await read.run({"at": "4.0"})).startswith("There is no part")
