"""The word index of the PostgreSQL store: what it finds, how, and beside whom."""

import asyncio
import json
from functools import partial
from random import Random

import pytest
from amounts import seed_of, set_amount

from refold.errors import WrittenByNewer
from refold.log import Message, Note, Opened, Span
from refold.log.text import UNICODE
from refold.stores import MemoryStore
from refold.stores.postgres import PostgresStore, search
from refold.testing.strategies import TickingClock, author

SEARCHES = set_amount("REFOLD_SEARCHES", few=2, quick=2, ci=2, nightly=20, thorough=100)
WORDS = (
    *("alpha", "Beta", "src/app_main.py", "max_history_messages", "R2-D2", "it's", "naïve"),
    *("日本語", "東京で", "한국어", "हिन्दी", "Straße", "ﬁne", "½", "x" * 64, "y" * 200, "ß" * 40),
    *("nul\x00inside", "\x00", "tab\tand\nline", "\u200b", "🙂", "\ufffd", "İstanbul"),
    *("'; DROP TABLE", "%_\\", "a:b", "100%", "{}", "$1", "\ud800alone"),
)
QUERIES = (
    *WORDS,
    "alpha beta",
    "app main",
    "history max",
    "日",
    "本日",
    "京で",
    "",
    "  ",
    "!?",
    "y",
)


@pytest.fixture
async def store(postgres_address):
    async with PostgresStore(postgres_address, clock=TickingClock()) as opened:
        yield opened


def say(text):
    return Message(json.dumps({"content": text}).encode())


def texts(random, count, longest=12):
    """Texts of these words, the last of them perhaps a very long one."""
    for at in range(count):
        size = random.randrange(12) if at < count - 1 else longest
        yield " ".join(random.choices((*WORDS, *map(str, range(50))), k=size))


async def lives(log, seed):
    """Sessions, forks of them and what is left when some is forgotten: the same for each store."""
    random = Random(seed)  # noqa: S311 - the same in every run
    makes = author(seed, TickingClock())
    for name in ("a", "b", "c"):
        written = texts(random, 40, longest=20_000 if name == "b" else 12)
        values = Opened("f", "p", f"title of {name}"), *map(say, written)
        drafts = [makes.draft(value) for value in values]
        await log.append(name, drafts, expected=0)
    await log.fork("a", "fork of a", at=20)
    await log.append("fork of a", [makes.draft(Note("alpha of the fork"))], expected=20)
    await log.fork("fork of a", "deeper")
    await log.search("alpha")
    await log.forget("b", Span(5, 9))
    await log.forget("c")
    await log.append("a", [makes.draft(say(text)) for text in texts(random, 5)], expected=41)


@pytest.mark.parametrize("chunk", [search.CHUNK_WORDS, 3])
@pytest.mark.parametrize("seed", range(SEARCHES))
async def test_it_finds_what_every_store_finds(store, seed, chunk, monkeypatch):
    """Also where the words of almost every entry are in several chunks."""
    monkeypatch.setattr(search, "CHUNK_WORDS", chunk)
    monkeypatch.setattr(search, "_LETTERS", 50 * chunk)
    seed = seed_of(f"search {seed}")
    random = Random(seed)  # noqa: S311 - others in each run
    async with MemoryStore(clock=TickingClock()) as memory:
        logs = store.log("x"), memory.log("x")
        for log in logs:
            await lives(log, seed)
        terms = [(tuple(query.lower().split()),) for query in QUERIES]
        terms += [(("alpha",), ("beta",)), ((),), (), (("app", "main"), ("日", "本", "語"))]
        for session in (None, "a", "fork of a", "deeper", "b"):
            for query in random.sample(QUERIES, 8):
                ours, theirs = [await log.search(query, session=session, limit=7) for log in logs]
                assert ours == theirs, query
            for most in (5, 2_000):
                ours, theirs = [
                    await log.matches(terms, session=session, max_matches=most) for log in logs
                ]
                assert (ours.holding, ours.messages, ours.sessions) == (
                    theirs.holding,
                    theirs.messages,
                    theirs.sessions,
                )
                assert sorted(ours.matches) == sorted(theirs.matches)
        for query in random.sample(QUERIES, 8):
            shown = [
                [one.session for one in (await log.sessions(search=query)).sessions] for log in logs
            ]
            assert shown[0] == shown[1], query


async def test_the_index_answers_whatever_other_tenants_hold(store, owner):
    """20,000 entries of two tenants: words are looked up, and no line is gone through."""
    log = store.log("one")
    await log.append("s", [author().draft(Opened("f", "p"))], expected=0)
    await owner.execute(
        "INSERT INTO refold.words (tenant, session, seq, size, line)"
        " SELECT tenant, n % 50, n, 4, format('all w%s v%s end', n % 1000, n % 7)"
        " FROM generate_series(1, 10000) AS n, unnest('{one,two}'::text[]) AS tenant"
    )
    plans = []
    owner.add_notice_handler(lambda notice: plans.append(notice.message_primary))
    await owner.execute("LOAD 'auto_explain'")
    for name, value in (
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
        ("auto_explain.log_analyze", "on"),
        ("client_min_messages", "log"),
        ("refold.tenant", "one"),
    ):
        await owner.execute("SELECT set_config(%s, %s, false)", (name, value))
    for run, count in (("w7", 10), ("w7 v0", 2), ("v1 w7", 0)):
        plans.clear()
        found = await (
            await owner.execute("SELECT * FROM refold.places(ARRAY[%s])", (run,))
        ).fetchall()
        [plan] = [one for one in plans if "word_keys(tenant, line) @>" in one]
        assert len(found) == count
        assert "Bitmap Index Scan" in plan
        assert "Seq Scan" not in plan
        assert "pkey" not in plan
    within = (
        "SELECT * FROM refold.held_within('{w7,v0,w7 v0}', '{7,8}', '{1,1}', %s) ORDER BY 1, 2, 3"
    )
    few = await (await owner.execute(within, ([10_000, 10_000],))).fetchall()
    assert few
    plans.clear()
    assert few == await (await owner.execute(within, ([10_000, 90_000],))).fetchall()
    assert any("Bitmap Index Scan" in plan for plan in plans)


async def test_nobody_finds_the_words_of_others(store):
    makes = author()
    for tenant in ("one", "two"):
        log = store.log(tenant)
        drafts = [makes.draft(Opened("f", "p")), makes.draft(Note(f"shared word of {tenant}"))]
        await log.append("s", drafts, expected=0)
        assert len(await log.search("shared")) == 1
    for tenant, other in (("one", "two"), ("two", "one")):
        [hit] = await store.log(tenant).search("shared word")
        assert hit.excerpt.endswith(tenant)
        assert await store.log(tenant).search(other) == []


async def test_not_even_tenants_of_one_sign_see_each_other(store, owner):
    """The sign of a tenant in the index is short, so two may have the same."""
    found = await owner.execute(
        "SELECT min(n)::text, max(n)::text FROM generate_series(1, 300000) AS n"
        " GROUP BY hashtext(n::text) HAVING count(*) > 1 LIMIT 1"
    )
    one, two = await found.fetchone()
    await begin_session(store.log(one), "shared word")
    assert len(await store.log(one).search("shared word")) == 1
    assert await store.log(two).search("shared word") == []
    for tenant, count in ((one, 1), (two, 0)):
        await owner.execute("SELECT set_config('refold.tenant', %s, false)", (tenant,))
        for last in (100, 100_000):
            found = await owner.execute(
                "SELECT * FROM refold.held_within('{shared word}',"
                " ARRAY(SELECT key FROM refold.sessions), '{1}', ARRAY[%s::bigint])",
                (last,),
            )
            assert len(await found.fetchall()) == count


async def begin_session(log, *texts):
    makes = author()
    await log.append("s", [makes.draft(Opened("f", "p"))], expected=0)
    await log.append("s", [makes.draft(Note(text)) for text in texts], expected=1)
    return makes


async def words_of(owner):
    return sorted(
        line for (line,) in await (await owner.execute("SELECT line FROM refold.words")).fetchall()
    )


async def test_an_append_does_not_wait_for_the_index_and_a_forget_does(store, owner):
    log = store.log()
    makes = await begin_session(log, "first words")
    async with owner.transaction():
        await owner.execute("LOCK TABLE refold.words IN SHARE MODE")
        searching = asyncio.create_task(log.search("words"))
        await waiting_for_lock(owner)
        await asyncio.wait_for(log.append("s", [makes.draft(Note("more words"))], expected=2), 10)
        forgetting = asyncio.create_task(log.forget("s", Span(2, 2)))
        await waiting_for_lock(owner, 2)
        assert not searching.done()
        assert not forgetting.done()
    assert {hit.entry.seq for hit in await searching} <= {2, 3}
    assert (await forgetting).entries == 1
    assert [hit.entry.seq for hit in await log.search("words")] == [3]
    assert await words_of(owner) == ["more words"]


async def waiting_for_lock(owner, count=1):
    """Wait until so many others wait for a lock."""
    while True:
        found = await owner.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        if (await found.fetchone())[0] >= count:
            return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("span", [Span(2, 2), None])
async def test_what_is_forgotten_between_reading_and_writing_is_not_indexed(store, owner, span):
    log = store.log()
    await log.search("nothing")
    await begin_session(log, "secret", "harmless")
    forgets = [partial(log.forget, "s", span)]

    class Forgetful:
        read = store.read

        async def write(self, tenant, work):
            while forgets:
                await forgets.pop()()
            return await store.write(tenant, work)

    await search.index(Forgetful(), log.tenant)
    assert await words_of(owner) == (["harmless"] if span else [])


async def test_any_number_may_index_at_once(store):
    log = store.log()
    makes = await begin_session(log, *("several words" for _ in range(450)))
    for at in range(30):
        drafts = [makes.draft(Opened("f", "p")), makes.draft(Note("several words"))]
        await log.append(f"other {at}", drafts, expected=0)
    found = await asyncio.gather(*(log.search("several words", limit=1_000) for _ in range(6)))
    assert [len(hits) for hits in found] == [480] * 6


async def test_other_words_replace_ours(store, owner, monkeypatch):
    log = store.log()
    await begin_session(log, "old words")
    assert len(await log.search("old")) == 1
    monkeypatch.setattr(search, "UNICODE", UNICODE + 1)
    monkeypatch.setattr(search, "index_words", lambda text: ["new", *text.split()] if text else [])
    assert len(await log.search("new")) == 1
    assert await words_of(owner) == ["new old words"]
    assert await store.log("untouched").search("new") == []
    monkeypatch.setattr(search, "UNICODE", UNICODE - 1)
    monkeypatch.setattr(search, "index_words", lambda _: ["older"])
    assert await log.search("older") == []
    assert await words_of(owner) == ["new old words"], "an older Python takes them as they are"


async def test_words_of_a_newer_version_are_refused(store, owner):
    log = store.log()
    await begin_session(log, "words")
    await log.search("words")
    await owner.execute("UPDATE refold.facts SET value = 99 WHERE name = 'words_version'")
    with pytest.raises(WrittenByNewer):
        await log.search("words")


async def test_large_entries_are_indexed_a_few_at_a_time(store, monkeypatch):
    """What a statement must write stays small, however much there is to index."""
    log = store.log()
    makes = await begin_session(log, *(f"large {nth} " + "word " * 40 for nth in range(30)))
    for at in range(5):
        drafts = [makes.draft(Opened("f", "p")), makes.draft(Note("large " + "other " * 40))]
        await log.append(f"other {at}", drafts, expected=0)
    monkeypatch.setattr(search, "_LETTERS", 500)
    written = []
    added = search._write

    async def write(tx, batches):
        written.append([one.words.letters for one in batches])
        return await added(tx, batches)

    monkeypatch.setattr(search, "_write", write)
    assert len(await log.search("large", limit=100)) == 35
    assert max(map(sum, written)) < 500 + 250
    assert all(written), "each goes on"


async def test_a_long_entry_is_found_by_words_of_different_chunks(store, owner, monkeypatch):
    monkeypatch.setattr(search, "CHUNK_WORDS", 3)
    monkeypatch.setattr(search, "_LETTERS", 1)
    log = store.log()
    await begin_session(log, "one two three four five six seven", "four one", "six five")
    for query, found in {
        "seven": [2],
        "four": [3, 2],
        "one seven": [2],
        "one four": [3, 2],
        "three-four": [2],
        "three-four-five-six-seven": [2],
        "two-one": [],
        "six five": [4, 2],
        "one-two six-seven": [2],
        "one eight": [],
    }.items():
        for session in (None, "s"):
            hits = await log.search(query, session=session)
            assert [hit.entry.seq for hit in hits] == found, query
    for session in (None, "s"):
        matched = await log.matches([(("seven",), ("one",)), (("six", "five"),)], session=session)
        assert matched.holding == (2, 1)
        assert {one.seq: (one.words, one.terms) for one in matched.matches} == {
            2: (7, (0,)),
            3: (2, (0,)),
            4: (2, (1,)),
        }
    chunks = "SELECT seq, chunk, size, line FROM refold.word_chunks ORDER BY seq, chunk"
    rows = await owner.execute(chunks)
    assert await rows.fetchall() == [
        (2, 1, 7, "one two three"),
        (2, 2, 7, "four five six"),
        (2, 3, 7, "seven"),
    ]
    await log.forget("s", Span(2, 2))
    assert await log.search("seven") == []
    rows = await owner.execute("SELECT count(*) FROM refold.word_chunks")
    assert await rows.fetchone() == (0,)
    rows = await owner.execute("SELECT count(*) FROM refold.erasures WHERE part = 'word_chunks'")
    assert await rows.fetchone() == (1,)


async def test_chunks_are_looked_up_by_the_index(store, owner):
    """2,000 chunks of two tenants: words are looked up, and no line is gone through."""
    log = store.log("one")
    await log.append("s", [author().draft(Opened("f", "p"))], expected=0)
    await owner.execute(
        "INSERT INTO refold.word_chunks (tenant, session, seq, chunk, size, line)"
        " SELECT tenant, 1, n / 2, n % 2, 4, format('all w%s v%s end', n % 1000, n % 7)"
        " FROM generate_series(2, 2001) AS n, unnest('{one,two}'::text[]) AS tenant"
    )
    plans = []
    owner.add_notice_handler(lambda notice: plans.append(notice.message_primary))
    await owner.execute("LOAD 'auto_explain'")
    for name, value in (
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
        ("client_min_messages", "log"),
        ("refold.tenant", "one"),
    ):
        await owner.execute("SELECT set_config(%s, %s, false)", (name, value))
    for run, count in (("w7", 2), ("end all", 1000), ("end all w7", 2), ("w7 all", 0)):
        plans.clear()
        found = await owner.execute("SELECT * FROM refold.long_places(ARRAY[%s])", (run,))
        assert len(await found.fetchall()) == count
        [plan] = [one for one in plans if "word_keys" in one and "WITH held" in one]
        assert "Bitmap Index Scan on word_chunks_keys" in plan
        assert "Seq Scan" not in plan
