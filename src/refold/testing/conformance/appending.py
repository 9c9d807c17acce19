"""What appending to a log means."""

import asyncio
import json
from uuid import uuid4

import pytest

from refold.errors import (
    ArtifactNotFound,
    Conflict,
    IdReused,
    InvalidEntry,
    InvalidInput,
    SessionNotFound,
)
from refold.log import (
    CODEC,
    Appended,
    Artifact,
    Cleared,
    FoldCompleted,
    Log,
    Message,
    Note,
    Opened,
    Rewound,
    Span,
    Unknown,
)
from refold.log.artifact import INLINE_LIMIT
from refold.testing.conformance.base import Conformance


class AppendingConformance(Conformance):
    async def test_the_first_entry_opens_the_session(self, log: Log) -> None:
        assert await self.begin(log, "s") == Appended(1, 1)
        info = await log.info("s")
        assert (info.session, info.format, info.profile) == ("s", "openai-chat", "balanced")
        assert (info.entries, info.messages, info.title) == (1, 0, None)

    async def test_a_session_begins_with_its_opening_and_has_one(self, log: Log) -> None:
        with pytest.raises(InvalidEntry, match="would begin"):
            await log.append("s", self.drafts(Note("x")), expected=0)
        await self.begin(log, "s")
        with pytest.raises(InvalidEntry, match="opened once"):
            await self.begin(log, "s", expected=1)

    async def test_a_session_that_is_not_there_says_so(self, log: Log) -> None:
        for call in (
            log.head("s"),
            log.info("s"),
            log.read("s"),
            log.visible("s"),
            log.fork("s", "t"),
            log.forget("s"),
            log.search("x", session="s"),
            log.append("s", self.drafts(Note("x")), expected=None),
            log.append("s", self.drafts(Note("x")), expected=3),
        ):
            with pytest.raises(SessionNotFound):
                await call

    async def test_entries_come_back_as_they_were_written(self, log: Log) -> None:
        await self.begin(log, "s")
        bodies = [
            b'{"role":"user","content":"hi"}',
            b'{ "role" : "user",\n  "content": "caf\\u00e9 \\ud83d", "x": 1.50, "x": 2 }',
            '{"role":"user","content":"café — 日本語 \u2028"}'.encode(),
            b"[]",
            b'"just text"',
        ]
        drafts = self.drafts(*map(Message, bodies))
        await log.append("s", drafts, expected=1)
        entries = await log.read("s")
        assert [entry.body for entry in entries[1:]] == bodies
        assert [(entry.id, entry.at, entry.kind) for entry in entries[1:]] == [
            (draft.id, draft.at, draft.kind) for draft in drafts
        ]

    async def test_scopes_are_kept(self, log: Log) -> None:
        await self.begin(log, "s")
        draft = self.author.draft(Note("x"), scope="/research/web")
        await log.append("s", [draft], expected=1)
        assert (await log.read("s"))[1].scope == "/research/web"

    async def test_an_append_is_all_or_nothing(self, log: Log) -> None:
        await self.begin(log, "s")
        drafts = self.drafts(Note("fine"), FoldCompleted(uuid4(), (Span(1, 1),), "no start"))
        with pytest.raises(InvalidEntry):
            await log.append("s", drafts, expected=1)
        assert await log.head("s") == 1
        assert await log.append("s", drafts[:1], expected=1) == Appended(2, 2)

    async def test_an_append_of_nothing_is_refused(self, log: Log) -> None:
        await self.begin(log, "s")
        with pytest.raises(InvalidInput, match="nothing"):
            await log.append("s", [], expected=1)
        draft = self.author.draft(Note("x"))
        with pytest.raises(InvalidInput, match="twice"):
            await log.append("s", [draft, draft], expected=1)

    async def test_the_head_must_be_where_it_is_expected(self, log: Log) -> None:
        await self.begin(log, "s")
        for expected in (0, 2, 99):
            with pytest.raises(Conflict) as caught:
                await log.append("s", self.drafts(Note("x")), expected=expected)
            assert (caught.value.expected, caught.value.found) == (expected, 1)
        assert await log.head("s") == 1

    async def test_without_an_expectation_it_goes_to_the_head(self, log: Log) -> None:
        await self.begin(log, "s")
        for seq in (2, 3):
            appended = await log.append("s", self.drafts(Note("x")), expected=None)
            assert appended == Appended(seq, seq)

    async def test_appending_again_returns_the_first_result(self, log: Log) -> None:
        await self.begin(log, "s")
        one, two = self.drafts(Note("one")), self.drafts(Note("two"), Note("three"))
        await log.append("s", one, expected=1)
        await log.append("s", two, expected=2)
        await log.append("s", self.drafts(Rewound(1), Cleared()), expected=4)
        for expected in (None, 1, 2, 6, 77):
            assert await log.append("s", one, expected=expected) == Appended(2, 2, repeated=True)
            assert await log.append("s", two, expected=expected) == Appended(3, 4, repeated=True)
        assert await log.head("s") == 6

    async def test_the_opening_can_be_appended_again_too(self, log: Log) -> None:
        drafts = self.drafts(Opened("f", "p"), Note("x"))
        assert await log.append("s", drafts, expected=0) == Appended(1, 2)
        assert await log.append("s", drafts, expected=0) == Appended(1, 2, repeated=True)
        assert await log.append("s", drafts[:1], expected=0) == Appended(1, 1, repeated=True)

    async def test_an_id_stands_for_one_content(self, log: Log) -> None:
        await self.begin(log, "s")
        one, two, new = self.drafts(Note("one"), Note("two"), Note("new"))
        await log.append("s", [one, two], expected=1)
        for drafts in (
            [one._replace(body=b'{"text":"other"}')],
            [one._replace(kind="message")],
            [one._replace(at=one.at + 1)],
            [two, one],
            [two, new],
            [new, one],
        ):
            with pytest.raises(IdReused):
                await log.append("s", drafts, expected=3)
        assert await log.head("s") == 3

    async def test_kinds_of_newer_versions_survive(self, log: Log) -> None:
        await self.begin(log, "s")
        newer = self.drafts(Note("x"), Cleared())
        strange = newer[0]._replace(kind="hologram.shown", body=b'{"deep" : [1, {"x":null}]}')
        later = newer[1]._replace(version=7, body=b'{"only":"some"}')
        await log.append("s", [strange, later], expected=1)
        entries = await log.read("s")
        assert [(entry.kind, entry.version, entry.body) for entry in entries[1:]] == [
            (draft.kind, draft.version, draft.body) for draft in (strange, later)
        ]
        assert CODEC.decode(entries[1]) == Unknown("hologram.shown", 1, strange.body)
        assert CODEC.decode(entries[2]) == Unknown("clear", 7, later.body)
        assert (await self.visible_seqs(log, "s")) == [1, 2, 3]

    async def test_drafts_that_make_no_sense_are_refused(self, log: Log) -> None:
        await self.begin(log, "s")
        draft = self.author.draft(Note("x"))
        for wrong in (
            draft._replace(kind="Not A Kind"),
            draft._replace(kind=""),
            draft._replace(scope="research"),
            draft._replace(version=0),
            draft._replace(rests_on=(Span(1, 2),)),
            draft._replace(kind="rewind", body=b'{"to":"there"}'),
        ):
            with pytest.raises(InvalidEntry):
                await log.append("s", [wrong], expected=1)
        assert await log.head("s") == 1

    async def test_names_are_what_a_store_can_carry(self, log: Log) -> None:
        for name in ("", " s", "s\n", "a\0b", "x" * 201):
            with pytest.raises(InvalidInput):
                await self.begin(log, name)
        for name in ("a/b", "..", "naïve 日本語", "[x]", "'; --", "%_", "x" * 200):
            await self.begin(log, name)
            assert (await log.info(name)).session == name

    async def test_many_sessions_at_once(self, log: Log) -> None:
        async def talk(name: str) -> None:
            await self.begin(log, name)
            for head in range(1, 11):
                await log.append(name, self.drafts(Note(f"{name} {head}")), expected=head)

        await asyncio.gather(*(talk(f"s{at}") for at in range(20)))
        for at in range(20):
            entries = await log.read(f"s{at}", Span(2, 11))
            texts = [json.loads(entry.body)["text"] for entry in entries]
            assert texts == [f"s{at} {head}" for head in range(1, 11)]

    async def test_many_writers_of_one_session_leave_no_gap(self, log: Log) -> None:
        await self.begin(log, "s")
        drafts = [self.author.draft(Note(str(at))) for at in range(30)]
        results = await asyncio.gather(
            *(log.append("s", [draft], expected=None) for draft in drafts)
        )
        assert sorted(result.first for result in results) == list(range(2, 32))
        ids = {entry.seq: entry.id for entry in await log.read("s")}
        assert all(
            ids[result.first] == draft.id for result, draft in zip(results, drafts, strict=True)
        )

    async def test_of_rivals_for_one_place_one_wins(self, log: Log) -> None:
        await self.begin(log, "s")
        results = await asyncio.gather(
            *(log.append("s", self.drafts(Note(str(at))), expected=1) for at in range(10)),
            return_exceptions=True,
        )
        assert sum(isinstance(result, Appended) for result in results) == 1
        assert sum(isinstance(result, Conflict) for result in results) == 9
        assert await log.head("s") == 2

    async def test_a_cancelled_append_can_be_repeated(self, log: Log) -> None:
        await self.begin(log, "s")
        drafts = self.drafts(Note("x"))
        task = asyncio.create_task(log.append("s", drafts, expected=1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        appended = await log.append("s", drafts, expected=1)
        assert (appended.first, appended.last) == (2, 2)
        assert await log.head("s") == 2

    async def test_large_bodies_are_lifted_out_and_put_back(self, log: Log) -> None:
        await self.begin(log, "s")
        text = 'line "one"\n' * INLINE_LIMIT
        many = [f"é{at}" for at in range(INLINE_LIMIT)]
        values = [{"content": text}, {"a": text, "b": [text, "é"]}, {"lines": many}]
        bodies = [
            json.dumps(value, ensure_ascii=odd).encode()
            for value in values
            for odd in (True, False)
        ]
        await log.append("s", self.drafts(*map(Message, bodies)), expected=1)
        assert [entry.body for entry in (await log.read("s"))[1:]] == bodies
        lean = (await log.read("s", whole=False))[1:]
        assert all(entry.holes and len(entry.body) < INLINE_LIMIT for entry in lean)
        assert (await log.artifact(lean[0].holes[0].hash)).data == text.encode()

    async def test_a_body_that_stands_twice_is_stored_once(self, log: Log) -> None:
        await self.begin(log, "s")
        body = json.dumps({"content": "x" * 2 * INLINE_LIMIT}).encode()
        await log.append("s", self.drafts(Message(body), Message(body)), expected=1)
        first, second = (entry.artifacts for entry in await log.read("s", Span(2, 3), whole=False))
        assert first == second
        await log.forget("s", Span(2, 2))
        assert (await log.read("s"))[2].body == body
        await log.forget("s", Span(3, 3))
        with pytest.raises(ArtifactNotFound):
            await log.artifact(first[0])

    async def test_artifacts_come_with_an_entry(self, log: Log) -> None:
        await self.begin(log, "s")
        picture = Artifact.of(bytes(range(256)), "image/png")
        draft = self.author.draft(Note("see"), artifacts=[picture])
        for _ in range(2):
            await log.append("s", [draft], expected=1)
        assert (await log.read("s"))[1].attached == (picture.hash,)
        assert await log.artifact(picture.hash) == picture
        with pytest.raises(ArtifactNotFound):
            await log.artifact("0" * 64)

    async def test_a_span_reads_what_there_is_of_it(self, log: Log) -> None:
        await self.begin(log, "s", 9)
        for first, last in ((1, 1), (3, 7), (10, 10), (9, 99), (11, 20), (1, 10)):
            expected = [seq for seq in range(1, 11) if first <= seq <= last]
            assert [e.seq for e in await log.read("s", Span(first, last))] == expected
