"""What a search finds."""

import json

import pytest

from refold.log import (
    Log,
    Message,
    Note,
    Requested,
    Span,
)
from refold.log.artifact import INLINE_LIMIT
from refold.testing.conformance.base import Conformance


class SearchingConformance(Conformance):
    """Words in, entries out."""

    async def test_what_was_appended_is_found(self, log: Log) -> None:
        await self.begin(log, "s")
        for at in range(3):
            await self.add(log, "s", Message(f'{{"content":"number {at} of them"}}'.encode()))
            hits = await log.search(f"number {at}")
            assert [(hit.session, hit.entry.seq) for hit in hits] == [("s", at + 2)]
            assert hits[0].excerpt == f"number {at} of them"
        assert [hit.entry.seq for hit in await log.search("THEM number")] == [4, 3, 2]
        assert [hit.entry.seq for hit in await log.search("number", limit=2)] == [4, 3]
        assert await log.search("number", limit=0) == []

    @pytest.mark.parametrize(
        ("text", "finding", "missing"),
        [
            ("see src/app/main_window.py:42", "main_window.py", "window_main"),
            ("see src/app/main_window.py:42", "src/app 42", "src/main"),
            ("Zürich café", "zurich CAFE", "zuric"),
            ("会議は東京で行われます", "東京", "京東"),
            ("한국어 문서", "한국어", "한국"),
            ("Straße", "STRASSE", "stras"),
            ("it's 50% off", "it's", "its"),
            ('say "AND" OR NOT near*', '"AND" near*', "nea"),
            ("x" * 200, "x" * 200, "x" * 10),
        ],
    )
    async def test_words_are_found(self, log: Log, text: str, finding: str, missing: str) -> None:
        await self.begin(log, "s")
        await self.add(log, "s", Note(text))
        assert [hit.entry.seq for hit in await log.search(finding)] == [2]
        assert await log.search(missing) == []

    async def test_only_what_people_say_is_searched(self, log: Log) -> None:
        await self.begin(log, "s")
        picture = "QUJD" * 100
        body = {"role": "user", "content": "words", "tool_call_id": "abc", "data": picture}
        await self.add(log, "s", Message(json.dumps(body).encode()))
        await self.add(log, "s", Requested((Span(2, 2),), ["words"], "model", "digest"))
        for nothing in ("user", "abc", picture, "message", "", "  ", "!?"):
            assert await log.search(nothing) == []
        assert [hit.entry.seq for hit in await log.search("words")] == [2]

    async def test_a_hit_is_read_in_its_session(self, log: Log) -> None:
        draft = self.author.draft(Note("needle one"))
        await self.begin(log, "a")
        await log.append("a", [draft], expected=1)
        await self.begin(log, "b", 1)
        await log.append("b", [draft._replace(body=b'{"text":"needle two"}')], expected=2)
        hits = await log.search("needle")
        assert {(hit.session, hit.excerpt) for hit in hits} == {
            ("a", "needle one"),
            ("b", "needle two"),
        }

    async def test_large_bodies_are_searched(self, log: Log) -> None:
        await self.begin(log, "s")
        body = json.dumps({"content": "hay " * INLINE_LIMIT + "needle"}).encode()
        await self.add(log, "s", Message(body))
        assert [hit.entry.seq for hit in await log.search("needle")] == [2]
