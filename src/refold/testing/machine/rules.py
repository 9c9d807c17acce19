"""Rules: appending, once, twice, elsewhere and at once."""

import asyncio
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.errors import Conflict, MarkConflict, SessionForgotten
from refold.log import (
    Appended,
    Artifact,
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    FoldUndone,
    Mark,
    Note,
    Opened,
    PartRef,
    Pinned,
    Requested,
    Rewound,
    Span,
    Titled,
    Unpinned,
    Value,
)
from refold.log.entry import spans_of
from refold.log.text import contains_all, terms, text_of
from refold.testing.conformance.totals import usage
from refold.testing.machine.base import KEYS, BaseMachine, picks
from refold.testing.model import ModelEntry, ModelLog
from refold.testing.strategies import WORDS, fillers, large_message, plain_values, texts


class Appending(BaseMachine):
    @rule(title=st.none() | texts)
    def open_session(self, title: str | None) -> None:
        buried = sorted(self.model.buried - {*self.model.sessions})
        name = buried[0] if buried and self.names % 2 else self.new_name()
        self.append(name, [Opened("openai-chat", "balanced", title)], pick=self.names)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, values=st.lists(plain_values, min_size=1, max_size=4), anywhere=st.booleans())
    def append_plain(self, pick: int, values: list[Value], anywhere: bool) -> None:  # noqa: FBT001
        self.append(self.session(pick).name, values, pick=pick, anywhere=anywhere)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, filler=fillers, text=texts, attach=st.booleans())
    def append_large(self, pick: int, filler: str, text: str, attach: bool) -> None:  # noqa: FBT001
        artifacts = [Artifact.of(b"attached to many", "text/plain")] if attach else []
        message = large_message(filler, text)
        self.append(self.session(pick).name, [message], pick=pick, artifacts=artifacts)

    @precondition(lambda self: self.appends)
    @rule(pick=picks, expected=st.none() | st.integers(0, 20))
    def append_again(self, pick: int, expected: int | None) -> None:
        name, drafts, life, first, mark = self.appends[pick % len(self.appends)]
        again = self.log(pick).append(name, drafts, expected=expected, mark=mark)
        session = self.model.sessions.get(name)
        if session is None or session.entries[0] is not life:
            self.refused(again, SessionForgotten, Conflict)
        else:
            assert self.run(again) == Appended(first.first, first.last, repeated=True)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, off=st.sampled_from((-1, 1, 7)))
    def append_elsewhere(self, pick: int, off: int) -> None:
        session = self.session(pick)
        drafts = [self.author.draft(Note("late"))]
        late = self.log(pick).append(session.name, drafts, expected=len(session.entries) + off)
        self.refused(late, Conflict)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, writers=st.integers(2, 4), anywhere=st.booleans())
    def append_at_once(self, pick: int, writers: int, anywhere: bool) -> None:  # noqa: FBT001
        session = self.session(pick)
        expected = None if anywhere else len(session.entries)
        drafted = [
            (Note(f"writer {at}"), self.author.draft(Note(f"writer {at}"))) for at in range(writers)
        ]

        async def race() -> list[Appended | BaseException]:
            calls = (
                self.log(pick + at).append(session.name, [draft], expected=expected)
                for at, (_, draft) in enumerate(drafted)
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        ends = self.run(race())
        won = [
            (end.first, one)
            for end, one in zip(ends, drafted, strict=True)
            if isinstance(end, Appended)
        ]
        lost = [end for end in ends if not isinstance(end, Appended)]
        assert all(isinstance(end, Conflict) for end in lost), lost
        assert len(won) == (writers if anywhere else 1)
        before = len(session.entries)
        assert sorted(first for first, _ in won) == list(range(before + 1, before + len(won) + 1))
        self.model.append(session.name, [one for _, one in sorted(won, key=lambda pair: pair[0])])

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, tokens=st.integers(100, 100_000), extra=st.booleans())
    def spend(self, pick: int, tokens: int, extra: bool) -> None:  # noqa: FBT001
        """Record a request and what it used."""
        name = self.session(pick).name
        self.append(name, [Requested((Span(1, 1),), [], "m", "digest")], pick=pick)
        record = len(self.model.sessions[name].entries)
        used = usage(record, tokens, key=("a", "b")[pick % 2], extra=extra, read_back=pick % 3)
        self.append(name, [used], pick=pick, anywhere=bool(pick % 2))


# Rules: folds begin, are made, fail and are taken back.


class Folding(BaseMachine):
    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 6), completes=st.booleans())
    def fold(self, pick: int, first: int, length: int, completes: bool) -> None:  # noqa: FBT001
        """Start a fold over some of the line, and end it or leave it running."""
        session = self.session(pick)
        line = session.line().seqs
        if not line:
            return
        start = first % len(line)
        spans = spans_of(line[start : start + length])
        fold = UUID(int=self.author.draft(Cleared()).id.int)
        self.append(session.name, [FoldStarted(fold, spans, "manual")], pick=pick)
        if completes:
            self.append(
                session.name, [FoldCompleted(fold, spans, {"text": "summary of beta"})], pick=pick
            )

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 6), text=texts)
    def step_fold(self, pick: int, first: int, length: int, text: str) -> None:
        """Record a step of making a fold, which goes with what it is about."""
        session = self.session(pick)
        start = first % len(session.entries) + 1
        span = Span(start, min(start + length - 1, len(session.entries)))
        running = sorted(session.running())
        fold = running[pick % len(running)] if running else UUID(int=pick)
        step = FoldStepped(fold, f"chunk {first}", {"text": text})
        self.append(session.name, [step], pick=pick, rests_on=(span,))

    @precondition(lambda self: any(one.running() for one in self.model.sessions.values()))
    @rule(pick=picks)
    def fail_fold(self, pick: int) -> None:
        running = [
            (one.name, fold)
            for one in self.model.sessions.values()
            for fold in sorted(one.running())
        ]
        name, fold = running[pick % len(running)]
        self.append(name, [FoldFailed(fold, "cancelled")], pick=pick)

    @precondition(lambda self: any(one.line().folds for one in self.model.sessions.values()))
    @rule(pick=picks)
    def undo_fold(self, pick: int) -> None:
        active_folds = [
            (one.name, fold)
            for one in self.model.sessions.values()
            for _, fold, _ in one.line().active_folds()
        ]
        name, fold = active_folds[pick % len(active_folds)]
        self.append(name, [FoldUndone(fold)], pick=pick)


# Rules: entries and sessions are forgotten.


class Forgetting(BaseMachine):
    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 4))
    def forget_span(self, pick: int, first: int, length: int) -> None:
        session = self.session(pick)
        start = first % len(session.entries) + 1
        erased = self.run(self.log(pick).forget(session.name, Span(start, start + length - 1)))
        named = session.entries[start - 1 : start - 1 + length]
        living, dead = _counts(self.model, named)
        self.model.forget(named)
        assert erased.entries == living
        assert erased.derived == _counts(self.model, named)[1] - dead - living

    @precondition(lambda self: len(self.model.sessions) > 1)
    @rule(pick=picks)
    def forget_session(self, pick: int) -> None:
        session = self.session(pick)
        self.run(self.log(pick).forget(session.name))
        self.model.forget(session.entries[session.own_from - 1 :])
        self.model.bury(session.name)

    @precondition(lambda self: len(self.model.sessions) > 1)
    @rule(pick=picks)
    def expire(self, pick: int) -> None:
        before = self.session(pick).used
        gone = self.run(self.log(pick).expire(before))
        old = sorted(name for name, one in self.model.sessions.items() if one.used < before)
        assert gone == old
        for name in old:
            self.model.bury(name)


def _counts(model: ModelLog, named: list[ModelEntry]) -> tuple[int, int]:
    """How many of the named are not forgotten, and how many of all entries are."""
    everything = {kept for session in model.sessions.values() for kept in session.entries}
    living = sum(not kept.forgotten for kept in named)
    return living, sum(kept.forgotten for kept in everything)


# Rules: looking at sessions, for words, and after a store was opened anew.


class Looking(BaseMachine):
    @rule(pick=picks)
    def reopen(self, pick: int) -> None:
        at = pick % len(self.stores)
        if self.PEERS == 1:
            return  # what only one store holds, as in memory, is gone when it is closed
        self.run(self.stores[at].close())
        self.stores[at] = self.new_store()
        self.run(self.stores[at].open())

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, last=st.none() | st.integers(0, 5))
    def look(self, pick: int, last: int | None) -> None:
        self.check_session(self.log(pick), self.session(pick), last)

    @rule(pick=picks, words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2))
    def look_for(self, pick: int, words: list[str]) -> None:
        query = " ".join(words)
        log = self.log(pick)
        everywhere = self.run(log.search(query, limit=1000))
        expected = {
            kept.draft.id
            for session in self.model.sessions.values()
            for kept in session.entries
            if _matches(kept, query)
        }
        assert {hit.entry.id for hit in everywhere} == expected
        assert len(everywhere) == len(expected)
        for hit in everywhere:
            assert hit.entry.id in {
                kept.draft.id for kept in self.model.sessions[hit.session].entries
            }
        listed = self.run(log.sessions(search=query, limit=1000)).sessions
        assert {info.session for info in listed} == {
            name
            for name, session in self.model.sessions.items()
            if any(_matches(kept, query) for kept in session.entries)
        }
        if self.model.sessions:
            session = self.session(pick)
            hits = self.run(log.search(query, session=session.name, limit=1000))
            assert [hit.entry.seq for hit in hits] == [
                seq
                for seq in range(len(session.entries), 0, -1)
                if _matches(session.entries[seq - 1], query)
            ]


def _matches(kept: ModelEntry, query: str) -> bool:
    return not kept.forgotten and contains_all(terms(query), text_of(kept.draft))


# Rules: appending with marks, and finding by them.


class Marking(BaseMachine):
    @precondition(lambda self: self.model.sessions)
    @rule(
        pick=picks,
        values=st.lists(plain_values, min_size=1, max_size=3),
        key=st.sampled_from(KEYS),
        knows=st.booleans(),
    )
    def append_marked(
        self,
        pick: int,
        values: list[Value],
        key: bytes,
        knows: bool,  # noqa: FBT001
    ) -> None:
        name = self.session(pick).name
        after = self.model.newest_marks(name)[0] if knows else None
        mark = Mark(key, pick % len(values), after)
        self.append(name, values, pick=pick, anywhere=not knows, mark=mark)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, off=st.sampled_from((-1, 1, 7)), anywhere=st.booleans())
    def append_after_another_mark(self, pick: int, off: int, anywhere: bool) -> None:  # noqa: FBT001
        session = self.session(pick)
        newest, _ = self.model.newest_marks(session.name)
        mark = Mark(KEYS[0], 0, abs(newest + off))
        drafts = [self.author.draft(Note("late"))]
        expected = None if anywhere else len(session.entries)
        late = self.log(pick).append(session.name, drafts, expected=expected, mark=mark)
        self.refused(late, MarkConflict)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, writers=st.integers(2, 4))
    def append_marked_at_once(self, pick: int, writers: int) -> None:
        session = self.session(pick)
        mark = Mark(KEYS[pick % len(KEYS)], 0, self.model.newest_marks(session.name)[0])
        notes = [Note(f"writer {at}") for at in range(writers)]
        drafts = [self.author.draft(note) for note in notes]

        async def race() -> list[Appended | BaseException]:
            calls = (
                self.log(pick + at).append(session.name, [draft], expected=None, mark=mark)
                for at, draft in enumerate(drafts)
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        ends = self.run(race())
        won = [at for at, end in enumerate(ends) if isinstance(end, Appended)]
        lost = [end for end in ends if not isinstance(end, Appended)]
        assert all(isinstance(end, MarkConflict) for end in lost), lost
        assert len(won) == 1
        self.model.append(session.name, [(notes[won[0]], drafts[won[0]])])
        self.model.marks.append((mark.key, session.name, len(session.entries)))

    @rule(pick=picks)
    def look_for_marks(self, pick: int) -> None:
        self.check_marks(self.log(pick))


# Rules: control entries, request records, forks.


class Controlling(BaseMachine):
    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, to=picks, what=st.sampled_from(("rewind", "clear", "pin", "unpin", "title")))
    def steer(self, pick: int, to: int, what: str) -> None:
        session = self.session(pick)
        seq = to % len(session.entries) + 1
        values: dict[str, Value] = {
            "rewind": Rewound(seq),
            "clear": Cleared(),
            "pin": Pinned((PartRef(seq, 0),)),
            "unpin": Unpinned((PartRef(seq, 0),)),
            "title": Titled(f"title {seq}"),
        }
        self.append(session.name, [values[what]], pick=pick)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 5))
    def record_request(self, pick: int, first: int, length: int) -> None:
        """Append a request record over some entries, as a difference to the one before."""
        session = self.session(pick)
        start = first % len(session.entries) + 1
        span = Span(start, min(start + length - 1, len(session.entries)))
        record = session.line().record
        chain = () if record is None else (record,)
        self.append(session.name, [Requested((span,), ["keep"], "m", "d", chain=chain)], pick=pick)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, at=picks, whole=st.booleans())
    def fork(self, pick: int, at: int, whole: bool) -> None:  # noqa: FBT001
        session = self.session(pick)
        place = len(session.entries) if whole else at % len(session.entries) + 1
        name = self.new_name()
        made = self.run(self.log(pick).fork(session.name, name, at=None if whole else place))
        again = self.run(self.log(pick + 1).fork(session.name, name, at=place))
        assert made == again
        self.model.fork(session.name, name, place, made.updated_at)


# All rules together.


class LogMachine(Appending, Marking, Folding, Controlling, Forgetting, Looking):
    """Random histories of one tenant's log."""
