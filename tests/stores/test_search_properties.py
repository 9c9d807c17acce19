"""Any word of any entry, of any size, is found on every store, and what is shown holds it."""

import asyncio
import json
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refold.log import Author, Entry, Message, Opened
from refold.log.artifact import INLINE_LIMIT
from refold.log.text import index_words, text_of
from refold.recall import search
from refold.recall.text import shapes_of, wire_of
from refold.stores import MemoryStore, SqliteStore
from refold.testing.wire.spellings import SPELLINGS, messages

LETTERS = "ab7-_./: éü\u0301東京か\u3099🚀ßẞ한ı\u093f\n"
KNOWN = {"prompt", "text", "thought", "call", "return"}
WORDS = st.text(LETTERS, min_size=1, max_size=12).filter(index_words)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request, tmp_path, monkeypatch):
    """Runs work with a store; on PostgreSQL with chunks of very few words."""
    if request.param == "memory":
        store = MemoryStore()
    elif request.param == "sqlite":
        store = SqliteStore(tmp_path / "refold.db")
    else:
        address = request.getfixturevalue("postgres_address")
        from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - if installed
        from refold.stores.postgres import search as index  # noqa: PLC0415 - if installed

        monkeypatch.setattr(index, "CHUNK_WORDS", 50)
        monkeypatch.setattr(index, "_LETTERS", 2_000)
        store = PostgresStore(address)
    with asyncio.Runner() as runner:
        runner.run(store.open())
        try:
            yield lambda work: runner.run(work(store.log(f"tenant {uuid4()}")))
        finally:
            runner.run(store.close())


@given(
    said=st.lists(WORDS, min_size=1, max_size=8),
    before=st.sampled_from([0, 3, 60, INLINE_LIMIT]),
    after=st.sampled_from([0, 3, 60, INLINE_LIMIT]),
    width=st.integers(80, 300),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_word_of_any_entry_is_found(opened, said, before, after, width):
    text = f"{'hay ' * before}{' '.join(said)}{' hay' * after}"

    async def look(log):
        body = {"role": "user", "content": text}
        values = Opened("openai-chat", "balanced"), Message(json.dumps(body).encode())
        drafts = [Author().draft(value) for value in values]
        await log.append("s", drafts, expected=0)
        for word in said:
            for session in (None, "s"):
                [hit] = await log.search(word, session=session)
                assert hit.entry.seq == 2
                [hit] = await search(log, word, session=session, width=width, neighbors=False)
                assert not {*index_words(word)}.isdisjoint(index_words(hit.excerpt))
                assert len(hit.excerpt) <= width + 2

    opened(look)


@pytest.mark.parametrize("name", sorted(SPELLINGS))
@given(data=st.data())
def test_what_is_shown_of_a_message_is_searched(name, data):
    """Each word that people or models read of a message is one that finds it."""
    draft = Author().draft(Message(data.draw(messages(name))))
    _, shapes = shapes_of(wire_of(name), Entry(2, *draft[:6]))
    # What a wire does not know it shows as it is, with the names of its fields.
    # JSON in a string has its ends of lines escaped.
    shown = [shape.text.replace("\\n", "\n") for shape in shapes if shape.kind in KNOWN]
    assert set(index_words("\n".join(shown))) <= set(index_words(text_of(draft)))
