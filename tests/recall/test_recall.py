"""Finding again what was said, wherever it lies."""

import json
from uuid import uuid4

import pytest

from refold.log import (
    Author,
    Cleared,
    FoldCompleted,
    FoldStarted,
    Message,
    Note,
    Opened,
    Requested,
    Rewound,
    Span,
)
from refold.log.artifact import INLINE_LIMIT
from refold.log.excerpt import best_excerpt
from refold.recall import Reader, recall_tools, search, search_sessions, terms_of
from refold.stores import MemoryStore, SqliteStore
from refold.view.framing import is_recall_tool

AUTHOR = Author()


def said(text, role="user"):
    return Message(json.dumps({"role": role, "content": text}).encode())


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "refold.db")
    async with made as store:
        yield store


@pytest.fixture
def log(store):
    return store.log()


async def begin(log, name, *values, form="openai-chat", title=None):
    drafts = [AUTHOR.draft(value) for value in (Opened(form, "balanced", title), *values)]
    await log.append(name, drafts, expected=0)


async def add(log, name, *values, scope="/"):
    await log.append(name, [AUTHOR.draft(value, scope=scope) for value in values], expected=None)


async def fold(log, name, *spans):
    one = uuid4()
    await add(log, name, FoldStarted(one, spans, "test"), FoldCompleted(one, spans, "a summary"))


def places(found):
    return [(hit.session, hit.seq) for hit in found]


async def test_any_word_finds_and_the_rarest_weighs_most(log):
    await begin(
        log, "s", *map(said, ["the kettle", "a lamp", "a cup", "kettle and teapot", "a plate"])
    )
    found = await search(log, "teapot or kettle", session="s")
    assert [hit.seq for hit in found if "kettle" in hit.excerpt] == [5, 2]
    assert places(await search(log, "teapot or kettle", session="s", limit=1)) == [("s", 5)]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert await search(log, "wardrobe", session="s") == []
    assert await search(log, "", session="s") == []
    assert await search(log, "kettle", session="s", limit=0) == []


async def test_an_answer_is_found_by_its_question(log):
    await begin(
        log,
        "s",
        said("Hello."),
        said("Which colour did we paint the kitchen?"),
        Requested((Span(2, 3),), [], "model", "digest"),
        said("Teal.", "assistant"),
        said("Thanks."),
    )
    found = await search(log, "kitchen colour", session="s")
    assert places(found) == [("s", 3), ("s", 5), ("s", 2)]
    assert found[1].score == found[2].score == found[0].score / 2
    assert (found[1].role, found[1].excerpt) == ("assistant", "Teal.")
    assert (found[1].before, found[1].after) == (
        "Which colour did we paint the kitchen?",
        "Thanks.",
    )
    assert (found[2].before, found[2].after) == ("", "Which colour did we paint the kitchen?")


async def test_neighbours_are_messages_however_far_apart(log):
    records = [Requested((Span(2, 2),), [], "model", "digest")] * 100
    await begin(log, "s", said("needle"), *records, said("far off"), *records, said("farther"))
    found = await search(log, "needle", session="s")
    assert [(hit.seq, hit.before, hit.after) for hit in found] == [
        (2, "", "far off"),
        (103, "needle", "farther"),
    ]


async def test_everything_in_the_log_is_found_and_says_where_it_stands(log):
    await begin(log, "s", said("needle cleared"), Cleared(), said("needle folded"))
    await fold(log, "s", Span(4, 4))
    head = await log.head("s")
    await add(log, "s", said("needle rewound"), Rewound(head), said("needle here"))
    found = await search(log, "needle", session="s")
    assert {hit.excerpt: hit.standing for hit in found} == {
        "needle cleared": "off the line",
        "needle folded": "folded",
        "needle rewound": "off the line",
        "needle here": "in view",
    }
    for_model = await search(log, "needle", session="s", reader=Reader.model())
    assert {hit.excerpt for hit in for_model} == {"needle folded", "needle here"}
    assert all("rewound" not in hit.before + hit.after for hit in for_model)
    assert all("cleared" not in hit.before + hit.after for hit in for_model)


async def test_what_was_forgotten_is_found_by_no_one(log):
    await begin(log, "s", said("one"), said("the needle"), said("three"))
    await log.fork("s", "fork")
    assert len(await search(log, "needle")) == 3
    await log.forget("s", Span(3, 3))
    for where in ("s", "fork", None):
        assert await search(log, "needle", session=where) == []
        [hit, *_] = await search(log, "three", session=where)
        assert hit.before == ""


async def test_notes_are_for_people(log):
    await begin(log, "s", said("hay"), Note("a needle, said aside"), said("more hay"))
    [hit] = await search(log, "needle", session="s")
    assert (hit.seq, hit.role, hit.excerpt) == (3, "note", "a needle, said aside")
    assert (hit.before, hit.after) == ("hay", "more hay")
    assert await search(log, "needle", session="s", reader=Reader.model()) == []


async def test_large_bodies_are_found_where_the_word_is(log):
    await begin(log, "s", said("hay " * INLINE_LIMIT + "needle " + "hay " * INLINE_LIMIT))
    [hit] = await search(log, "needle", session="s", width=100)
    assert "needle" in hit.excerpt
    assert len(hit.excerpt) <= 102


async def test_a_delegate_finds_its_own_work_and_its_callers(log):
    await begin(log, "s", said("needle of the main agent"))
    await add(log, "s", said("needle of auth"), scope="/auth")
    await add(log, "s", said("needle of ui"), scope="/ui")
    await add(log, "s", said("the end of auth"), scope="/auth")
    everyone = await search(log, "needle", session="s")
    assert {hit.scope for hit in everyone} == {"/", "/auth", "/ui"}
    found = await search(log, "needle", session="s", reader=Reader.model("/auth"))
    assert {hit.scope for hit in found} == {"/", "/auth"}
    assert all("ui" not in hit.excerpt + hit.before + hit.after for hit in found)
    assert await search(log, "ui", session="s", reader=Reader.model("/auth")) == []


async def test_no_tenant_finds_anothers(store):
    one, other = store.log("one"), store.log("other")
    await begin(one, "s", said("the needle"))
    await begin(other, "s", said("the hay"))
    assert places(await search(one, "needle")) == [("s", 2)]
    assert await search(other, "needle") == []
    assert await search_sessions(other, "needle") == []


async def test_names_are_found_exactly_and_before_their_words(log):
    await begin(
        log,
        "s",
        said("history of messages, at most (max) forty"),
        said("nothing"),
        said("nothing"),
        said("set max_history_messages"),
        said("nothing"),
        said("nothing"),
        said("the app and its src"),
        said("nothing"),
        said("nothing"),
        said("see src/app.py"),
    )
    assert (await search(log, "max_history_messages", session="s"))[0].seq == 5
    assert (await search(log, "where is src/app.py?", session="s"))[0].seq == 11


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("paintings", "one painting"),
        ("painted", "painting"),
        ("running", "she runs"),
        ("hobbies", "a hobby"),
        ("hiking", "a hike"),
        ("boxes", "one box"),
        ("CAFÉS", "the cafe"),
        ("東京の天気", "明日の東京は雨"),
        ("who are you", "you are it"),
        ("what is x", "x marks it"),
    ],
)
async def test_words_are_found_in_their_other_forms(log, query, text):
    await begin(log, "s", said(text))
    assert places(await search(log, query)) == [("s", 2)]


def test_a_query_as_terms():
    assert terms_of("") == terms_of("?!") == ()
    assert terms_of("the of") == ((("the",),), (("of",),))
    assert terms_of("the API of R2-D2") == (
        (("api",),),
        (("r2", "d2"),),
        (("r2",),),
        (("d2",),),
    )
    assert terms_of("Caroline's")[0][0] == ("caroline",)
    assert (("passes",) in terms_of("pass")[0], ("pas",) in terms_of("pass")[0]) == (True, False)
    assert len(terms_of(" ".join(f"x{at}" for at in range(1000)))) == 32


async def test_sessions_are_ranked_by_how_much_they_say(log):
    await begin(log, "lamps", said("lamps"), said("bright lamps"), said("a kettle"))
    await begin(log, "kettles", said("a kettle"), said("kettles boil"), said("one more kettle"))
    await begin(log, "chairs", said("chairs"), title="About furniture")
    found = await search_sessions(log, "which kettle boils")
    assert [(one.info.session, one.matches) for one in found] == [("kettles", 3), ("lamps", 1)]
    assert found[0].score > found[1].score
    assert [one.info.session for one in await search_sessions(log, "furniture")] == ["chairs"]
    assert len(await search_sessions(log, "kettle", limit=1)) == 1
    assert await search_sessions(log, "") == []


async def test_a_message_of_no_known_format_is_found_too(log):
    await begin(log, "s", Message(b'{"anything": ["a needle"]}'), form="of its own")
    await begin(log, "t", Message(b'{"anything": ["a needle"]}'))
    assert [hit.excerpt for hit in await search(log, "needle")] == ["a needle"] * 2


async def test_a_session_that_goes_while_it_is_searched_is_not_found(log, monkeypatch):
    await begin(log, "s", said("needle"))
    await begin(log, "gone", said("needle"))
    matches = type(log).matches

    async def late(self, *args, **options):
        found = await matches(self, *args, **options)
        await self.forget("gone")
        return found

    monkeypatch.setattr(type(log), "matches", late)
    assert places(await search(log, "needle")) == [("s", 2)]
    await begin(log, "gone", said("needle"))
    assert [one.info.session for one in await search_sessions(log, "needle")] == ["s"]


def test_an_excerpt_is_taken_where_most_of_the_terms_are():
    text = "kettle " + "hay " * 100 + "kettle and teapot " + "hay " * 100
    piece = best_excerpt(text, terms_of("kettle teapot"), 80)
    assert "kettle and teapot" in piece
    assert piece.startswith("…")
    assert piece.endswith("…")
    assert len(piece) <= 82
    assert best_excerpt("short\n text", terms_of("text"), 80) == "short text"


async def test_a_model_does_not_find_its_own_searches(log):
    call = {"part_kind": "tool-call", "tool_name": "recall_search", "args": '{"query": "kettle"}'}
    result = {"part_kind": "tool-return", "tool_name": "recall_search", "content": "[2] a kettle"}
    other = {"part_kind": "tool-return", "tool_name": "read_file", "content": "kettle = 1"}
    prompt = {"part_kind": "user-prompt", "content": "Where is the kettle?"}
    messages = [
        {"kind": "request", "parts": [prompt]},
        {"kind": "response", "parts": [call | {"tool_call_id": "a"}]},
        {"kind": "request", "parts": [result | {"tool_call_id": "a"}]},
        {"kind": "request", "parts": [other | {"tool_call_id": "b"}]},
    ]
    values = [Message(json.dumps(one).encode()) for one in messages]
    await begin(log, "s", *values, form="pydantic-ai")
    found = await search(log, "kettle", session="s", reader=Reader.model())
    assert {hit.seq for hit in found} == {2, 5}
    assert {hit.seq for hit in await search(log, "kettle", session="s")} == {2, 3, 4, 5}


@pytest.mark.parametrize("tool", ["mcp__refold__recall_search", "Grep"])
async def test_a_result_that_names_its_call_alone_is_known_by_that(log, tool):
    call = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {"query": "kettle"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "> the kettle is RK-2207"}
    reminder = {"type": "text", "text": "A kettle is a pot."}
    messages = [
        {"role": "user", "content": "the kettle is RK-2207"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, reminder]},
    ]
    values = [Message(json.dumps(message).encode()) for message in messages]
    await begin(log, "s", *values, form="anthropic-messages")
    found = await search(log, "kettle", session="s", reader=Reader.model())
    assert {hit.seq for hit in found} == ({2, 3, 4} if tool == "Grep" else {2})


async def test_outside_of_its_own_history_a_model_gets_folded_matches_first(log):
    words = ["the kettle is RK-2207", "a lamp", "kettle kettle kettle", "a plate"]
    await begin(log, "s", *map(said, words))
    await fold(log, "s", Span(2, 2))
    search_inside, *_ = recall_tools(log, "s")
    search_outside, _, history = recall_tools(log, "s", outside=True)
    inside = await search_inside.run({"query": "kettle"})
    assert inside.index("[4]") < inside.index("[2]")
    outside = await search_outside.run({"query": "kettle", "limit": 1})
    assert "[2] user: the kettle is RK-2207" in outside
    assert "[4]" not in outside.replace("after it", "")
    listed = await history.run({})
    assert "[2] folded: the kettle is RK-2207" in listed
    assert "[4] in view: kettle kettle kettle" in listed
    assert "RK-2207" not in await history.run({"start": 4})


async def test_a_long_history_is_listed_in_pieces(log):
    await begin(log, "s", *(said(f"Page {nth} says this. " + "word " * 50) for nth in range(60)))
    _, _, history = recall_tools(log, "s", outside=True, chars=2_000)
    listed, start, pages = "", 0, 0
    while True:
        page = await history.run({"start": start})
        assert len(page) <= 2_000
        listed += page
        pages += 1
        if "That is all of it." in page:
            break
        start = int(page.rpartition("start=")[2].rstrip("."))
    assert pages > 2
    assert [listed.count(f"Page {nth} says") for nth in range(60)] == [1] * 60


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("recall_search", True),
        ("mcp__refold__recall_read", True),
        ("refold-recall_history", True),
        ("refold_recall_search", True),
        ("total_recall", False),
        ("recall", False),
        ("Bash", False),
        (None, False),
    ],
)
def test_recall_tools_are_known_behind_an_agents_prefix(name, holds):
    assert is_recall_tool(name) is holds
