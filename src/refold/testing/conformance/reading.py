import json
from uuid import uuid4

import pytest

from refold.errors import InvalidEntry, SessionForgotten, SessionNotFound
from refold.log import (
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Log,
    Matches,
    Message,
    Note,
    PartRef,
    Pinned,
    Requested,
    Rewound,
    Span,
    Store,
    Unpinned,
)
from refold.log.artifact import INLINE_LIMIT
from refold.log.text import Term, words
from refold.testing.conformance.base import Conformance


class SearchingConformance(Conformance):
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
            ("x" * 3000, "x" * 3000, "x" * 10),
            ("ticket RF-60418-K was closed", "RF-60418-K", "RF-60418-L"),
            ("see src/a_b.py:12", "src/a_b.py:12", "src/a_b.py:13"),
            ("cafe\u0301s of Zu\u0308rich", "cafés zürich", "cafe"),
            ("release \U0001f680 at noon \u2705", "\U0001f680", "\U0001f681"),
            ("release \U0001f680 at noon \u2705", "noon \u2705", "\u274c"),
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

    async def test_what_a_tool_was_given_or_returned_is_searched(self, log: Log) -> None:
        await self.begin(log, "s")
        order = {"id": "RF-60418-K", "type": "refund", "total": 7315, "paid": True, "9f3c": ""}
        returned = {"part_kind": "tool-return", "tool_name": "orders", "content": order}
        call = {"part_kind": "tool-call", "tool_name": "orders", "args": {"order_id": "AB-77"}}
        plain = {"part_kind": "tool-return", "tool_name": "count", "content": 4711}
        used = {"type": "tool_use", "id": "toolu_1", "input": {"kind": "parcel"}}
        written = {"text": "one\nMARK-8\tinto Z\u00fcrich \U0001f680"}
        spelled = {"function": {"name": "write", "arguments": json.dumps(written)}}
        rows = json.dumps({"at": "x\nMARK-9"}) + "\n" + json.dumps({"at": "Malm\u00f6"})
        for body in ({"parts": [returned]}, {"parts": [call, plain]}, {"content": [used]}):
            await self.add(log, "s", Message(json.dumps(body).encode()))
        for word in ("RF-60418-K", "refund", "7315", "total", "true", "9f3c"):
            assert [hit.entry.seq for hit in await log.search(word)] == [2], word
        for word in ("AB-77", "4711"):
            assert [hit.entry.seq for hit in await log.search(word)] == [3], word
        assert [hit.entry.seq for hit in await log.search("parcel")] == [4]
        assert await log.search("toolu_1") == []
        # JSON in a string, as some formats have arguments and many tools answer.
        await self.add(log, "s", Message(json.dumps({"tool_calls": [spelled]}).encode()))
        await self.add(log, "s", Message(json.dumps({"role": "tool", "content": rows}).encode()))
        for word in ("MARK-8", "into", "zürich", "\U0001f680"):
            assert [hit.entry.seq for hit in await log.search(word)] == [5], word
        for word in ("MARK-9", "malmö"):
            assert [hit.entry.seq for hit in await log.search(word)] == [6], word

    async def test_the_deepest_message_that_is_accepted_is_searched(self, log: Log) -> None:
        await self.begin(log, "s")
        for depth in (100_000, 10_000, *range(1_000, 100, -20)):
            deep = b'{"content":' + b"[" * depth + b'"a needle"' + b"]" * depth + b"}"
            try:
                await self.add(log, "s", Message(deep))
            except InvalidEntry:
                continue
            break
        assert [hit.entry.seq for hit in await log.search("needle")] == [2]

    async def test_every_word_of_a_very_long_entry_is_found(self, log: Log) -> None:
        await self.begin(log, "s")
        count = 300_000
        said = [f"w{nth:x}" for nth in range(count)]
        needles = {0: "ALPHA-1", count // 2: "MID-60418-K", count - 1: "OMEGA-9"}
        for nth, needle in needles.items():
            said[nth] = needle
        await self.add(log, "s", Message(json.dumps({"content": " ".join(said)}).encode()))
        await self.add(log, "s", Message(b'{"content":"w1 and little else"}'))
        await log.fork("s", "fork", at=2)
        for session, word in zip((None, "s", "fork"), needles.values(), strict=True):
            [hit] = await log.search(word, session=session)
            assert hit.entry.seq == 2
            assert word in hit.excerpt.replace("…", " ").split()
            assert len(hit.excerpt) < 200
        [hit] = await log.search("ALPHA-1 OMEGA-9 w77 MID-60418-K")
        assert hit.entry.seq == 2
        assert await log.search("w1 absent") == []
        # Words of every part of it, and runs of ten wherever a store may cut it.
        runs = [words(" ".join(said[nth : nth + 10])) for nth in range(9_995, count - 10, 10_000)]
        terms: list[Term] = [((f"w{nth:x}",),) for nth in range(5, count - 1, 9_973)]
        terms += [(tuple(run),) for run in runs]
        absent: list[Term] = [((f"w{count:x}",),), (("w3", "w2"),)]
        for session in (None, "fork"):
            found = await log.matches([*terms, *absent], session=session)
            assert found.holding == (1,) * len(terms) + (0, 0)
            [match] = found.matches
            assert (match.seq, match.words) == (2, count + 4)
        await log.forget("s", Span(2, 2))
        for word in needles.values():
            assert await log.search(word) == []
        assert (await log.matches([(("w5",),)])).holding == (0,)

    async def test_a_long_text_without_spaces_is_found(self, log: Log) -> None:
        await self.begin(log, "s")
        text = "日本語の文章" * 20_000 + "東京" + "日本語の文章" * 20_000 + "京都"
        await self.add(log, "s", Message(json.dumps({"content": text}).encode()))
        for word in ("東京", "京都", "文章日本"):
            [hit] = await log.search(word)
            assert word in hit.excerpt
        assert await log.search("都京") == []

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

    async def test_any_term_matches(self, log: Log) -> None:
        await self.begin(log, "s")
        await self.add(log, "s", Note("apples and pears"), Message(b'{"content":"pears"}'))
        await self.add(log, "s", Message(b'{"content":"no fruit in max_history_messages"}'))
        terms: list[Term] = [
            (("apple",), ("apples",)),
            (("pears",),),
            (("max", "history", "messages"),),
            (("history", "max"),),
            (),
            ((),),
        ]
        found = await log.matches(terms)
        assert found == await log.matches(terms, session="s")
        assert (found.holding, found.messages, found.sessions) == ((1, 2, 1, 0, 0, 0), 2, 1)
        assert {match[:2] + match[3:] for match in found.matches} == {
            ("s", 2, "note", "/", 0, 3, (0, 1)),
            ("s", 3, "message", "/", 1, 1, (1,)),
            ("s", 4, "message", "/", 2, 6, (2,)),
        }
        entries = await log.read("s")
        assert all(entries[match.seq - 1].at == match.at for match in found.matches)

    async def test_the_rarest_and_newest_match_first(self, log: Log) -> None:
        await self.begin(log, "s")
        for at in range(6):
            rare = " needle" if at == 1 else ""
            await self.add(log, "s", Note(f"hay{rare}"))
        terms: list[Term] = [(("hay",),), (("needle",),)]
        found = await log.matches(terms, max_matches=3)
        assert found.holding == (6, 1)
        assert {match.seq: match.terms for match in found.matches} == {3: (0, 1), 7: (0,), 6: (0,)}
        assert (await log.matches(terms, session="s", max_matches=3)).matches == found.matches
        assert (await log.matches(terms, max_matches=0)).matches == ()
        assert (await log.matches([])).matches == ()

    async def test_each_entry_matches_once(self, log: Log) -> None:
        await self.begin(log, "a", 2)
        await log.fork("a", "b", at=2)
        await self.add(log, "b", Message(b'{"content":"message of the fork"}'))
        await log.fork("b", "c")
        await self.begin(log, "d", 1)
        terms: list[Term] = [(("message",),)]
        found = await log.matches(terms)
        assert sorted((match.session, match.seq, match.nth) for match in found.matches) == [
            ("a", 2, 1),
            ("a", 3, 2),
            ("b", 3, 2),
            ("d", 2, 1),
        ]
        assert (found.holding, found.messages, found.sessions) == ((4,), 4, 4)
        within = await log.matches(terms, session="c")
        assert {(match.session, match.seq, match.nth) for match in within.matches} == {
            ("c", 2, 1),
            ("c", 3, 2),
        }
        assert (within.holding, within.messages, within.sessions) == ((2,), 2, 1)

    async def test_a_deep_fork_matches_once(self, log: Log) -> None:
        await self.begin(log, "0")
        for at in range(40):
            await self.add(log, f"{at}", Message(f'{{"content":"message {at}"}}'.encode()))
            await log.fork(f"{at}", f"{at + 1}")
        terms: list[Term] = [(("message",),)]
        found = await log.matches(terms)
        places = [(match.session, match.seq, match.nth) for match in found.matches]
        assert sorted(places, key=lambda place: place[1]) == [
            (f"{at}", at + 2, at + 1) for at in range(40)
        ]
        assert (found.holding, found.messages, found.sessions) == ((40,), 40, 41)
        assert (await log.matches(terms, session="40")).holding == (40,)
        before = (await log.info("40")).updated_at
        for at in range(35, 40):
            await log.fork(f"{at}", f"again {at}")
        await log.expire(before)
        found = await log.matches(terms)
        assert sorted(match.seq for match in found.matches) == list(range(2, 42))
        assert found.sessions == 6

    async def test_what_is_gone_matches_nothing(self, store: Store, log: Log) -> None:
        await self.begin(log, "a", 2)
        await log.fork("a", "b")
        assert len((await log.matches([(("message",),)])).matches) == 2
        other = await store.log(f"not {log.tenant}").matches([(("message",),)])
        assert other == Matches((), (0,), 0, 0)
        await log.forget("a", Span(3, 3))
        found = await log.matches([(("message",),)])
        assert [(match.session, match.seq) for match in found.matches] == [("a", 2)]
        await log.expire(self.now())
        assert await log.matches([(("message",),)]) == Matches((), (0,), 0, 0)
        await self.begin(log, "c", 1)
        await log.fork("c", "d")
        await log.expire((await log.info("d")).updated_at)
        found = await log.matches([(("message",),)])
        assert [match.session for match in found.matches] == ["d"]
        assert (found.messages, found.sessions) == (1, 1)
        with pytest.raises(SessionNotFound):
            await log.matches([], session="nowhere")

    async def test_large_bodies_match(self, log: Log) -> None:
        await self.begin(log, "s")
        body = json.dumps({"content": "hay " * INLINE_LIMIT + "needle"}).encode()
        await self.add(log, "s", Message(body))
        [match] = (await log.matches([(("needle",),)])).matches
        assert (match.seq, match.words) == (2, INLINE_LIMIT + 1)


# What a view is made of.


class ViewingConformance(Conformance):
    async def test_a_view_needs_everything_at_first(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        visible = await log.visible("s")
        assert [entry.seq for entry in visible.entries] == [1, 2, 3, 4, 5]
        assert visible.info == await log.info("s")

    async def test_an_outline_comes_without_entries(self, log: Log) -> None:
        with pytest.raises(SessionNotFound):
            await log.outlined("s")
        await self.begin(log, "s", 6)
        for _ in range(2):
            await self.fold(log, "s", Span(2, 4))
            await log.append("s", self.drafts(Note("n")), expected=None)
            outlined, visible = await log.outlined("s"), await log.visible("s")
            assert (outlined.info, outlined.outline) == (visible.info, visible.outline)
        await log.forget("s")
        with pytest.raises(SessionForgotten):
            await log.outlined("s")

    async def test_a_revision_tells_that_nothing_was_forgotten(self, log: Log) -> None:
        await self.begin(log, "s", 6)
        await log.fork("s", "t", at=4)
        befores = {name: (await log.outlined(name)).revision for name in ("s", "t")}
        if None in befores.values():
            with pytest.raises(InvalidEntry):
                await log.append("s", self.drafts(Note("n")), expected=None, revision=0)
            return
        for name, before in befores.items():
            done = await log.append(name, self.drafts(Note("n")), expected=None, revision=before)
            assert done.revision == (await log.outlined(name)).revision == before
        await log.forget("s", Span(3, 3))
        for name, before in befores.items():
            head = await log.head(name)
            assert (await log.outlined(name)).revision != before
            with pytest.raises(InvalidEntry, match="forgotten since"):
                await log.append(name, self.drafts(Note("m")), expected=None, revision=before)
            assert await log.head(name) == head

    async def test_entries_are_read_as_they_are_now(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        await log.outlined("s")
        assert [one.forgotten for one in await log.read("s", Span(2, 3))] == [False, False]
        await log.forget("s", Span(3, 3))
        assert [one.forgotten for one in await log.read("s", Span(2, 3))] == [False, True]

    async def test_a_fold_stands_for_its_spans(self, log: Log) -> None:
        await self.begin(log, "s", 8)
        await self.fold(log, "s", Span(2, 4), Span(6, 7))
        assert await self.visible_seqs(log, "s") == [1, 5, 8, 9, 10, 11]
        await self.fold(log, "s", Span(2, 9))
        assert await self.visible_seqs(log, "s") == [1, 10, 11, 12, 13]
        folds = (await log.visible("s")).outline.folds
        assert [fold.seq for fold in folds] == [13]

    async def test_a_fold_can_be_taken_back(self, log: Log) -> None:
        await self.begin(log, "s", 5)
        first = await self.fold(log, "s", Span(2, 4))
        second = await self.fold(log, "s", Span(2, 6))
        with pytest.raises(InvalidEntry, match="does not stand"):
            await self.add(log, "s", FoldUndone(first))
        await self.add(log, "s", FoldUndone(second))
        assert await self.visible_seqs(log, "s") == [1, 5, 6, 7, 8, 9, 10, 11]
        await self.add(log, "s", FoldUndone(first))
        assert await self.visible_seqs(log, "s") == list(range(1, 13))

    async def test_each_start_of_a_fold_has_one_end(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        fold = uuid4()
        span = (Span(2, 3),)
        for early in (FoldCompleted(fold, span, "s"), FoldFailed(fold, "x")):
            with pytest.raises(InvalidEntry, match="not running"):
                await self.add(log, "s", early)
        await self.add(log, "s", FoldStarted(fold, span, "manual"))
        with pytest.raises(InvalidEntry, match="started already"):
            await self.add(log, "s", FoldStarted(fold, span, "manual"))
        assert [one.fold for one in (await log.visible("s")).outline.running] == [fold]
        await self.add(log, "s", FoldFailed(fold, "cancelled"))
        assert (await log.visible("s")).outline.running == ()
        with pytest.raises(InvalidEntry, match="not running"):
            await self.add(log, "s", FoldCompleted(fold, span, "late"))

    async def test_a_fold_covers_only_what_is_on_the_line(self, log: Log) -> None:
        await self.begin(log, "s", 5)
        fold = uuid4()
        await self.add(log, "s", FoldStarted(fold, (Span(2, 6),), "manual"))
        await self.add(log, "s", Rewound(3))
        with pytest.raises(InvalidEntry, match="not on the session's line"):
            await self.add(log, "s", FoldCompleted(fold, (Span(2, 6),), "stale"))
        for spans in ((), (Span(2, 99),)):
            with pytest.raises(InvalidEntry):
                await self.add(log, "s", FoldStarted(uuid4(), spans, "manual"))

    async def test_rewinding_goes_back_and_forth(self, log: Log) -> None:
        await self.begin(log, "s", 5)
        await self.add(log, "s", Rewound(3), Note("another way"))
        assert await self.visible_seqs(log, "s") == [1, 2, 3, 8]
        await self.add(log, "s", Rewound(6))
        assert await self.visible_seqs(log, "s") == [1, 2, 3, 4, 5, 6]
        assert await log.head("s") == 9
        for nowhere in (0, 10, 99):
            with pytest.raises(InvalidEntry):
                await self.add(log, "s", Rewound(nowhere))

    async def test_rewinding_behind_a_fold_takes_it_away(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        await self.fold(log, "s", Span(2, 4))
        await self.add(log, "s", Rewound(5))
        assert await self.visible_seqs(log, "s") == [1, 2, 3, 4, 5]
        await self.add(log, "s", Rewound(7))
        assert await self.visible_seqs(log, "s") == [1, 5, 6, 7]

    async def test_clearing_begins_anew_and_loses_nothing(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        await self.add(log, "s", Pinned((PartRef(2, 0),)), Cleared(), Note("new"))
        assert await self.visible_seqs(log, "s") == [1, 7]
        assert len(await log.read("s")) == 7
        await self.add(log, "s", Rewound(5))
        assert await self.visible_seqs(log, "s") == [1, 2, 3, 4, 5]

    async def test_pins_stay_under_folds(self, log: Log) -> None:
        await self.begin(log, "s", 6)
        await self.add(log, "s", Pinned((PartRef(3, 0), PartRef(3, 1), PartRef(5, 0))))
        await self.fold(log, "s", Span(2, 8))
        assert await self.visible_seqs(log, "s") == [1, 3, 5, 9, 10]
        await self.add(log, "s", Unpinned((PartRef(3, 0), PartRef(5, 0))))
        assert await self.visible_seqs(log, "s") == [1, 3, 9, 10, 11]
        with pytest.raises(InvalidEntry):
            await self.add(log, "s", Pinned((PartRef(99, 0),)))

    async def test_a_view_can_be_bounded(self, log: Log) -> None:
        await self.begin(log, "s", 20)
        await self.add(log, "s", Pinned((PartRef(4, 0),)))
        visible = await log.visible("s", last=3)
        assert [entry.seq for entry in visible.entries] == [1, 4, 20, 21, 22]

    async def test_a_request_record_comes_with_its_chain(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        chain: tuple[int, ...] = ()
        for _ in range(3):
            record = Requested((Span(2, 3),), ["keep"], "model", "digest", chain=chain)
            await self.add(log, "s", record)
            chain = (*chain, await log.head("s"))
        await self.fold(log, "s", Span(2, 7))
        assert await self.visible_seqs(log, "s") == [1, 5, 6, 7, 8, 9]
        assert (await log.visible("s")).outline.record == 7
