"""What must hold of sessions, whatever happens in them: the promises, as checks."""

from collections import Counter
from typing import Any

import pytest
from session_acting import COUNTER, Acting
from sessions import Remembering

from refold.errors import InvalidEntry, Unrebuildable, ViewTooLarge
from refold.fold.compactor import MANUAL
from refold.fold.undo import UNFOLD
from refold.log import (
    CODEC,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Forgotten,
    Message,
    Requested,
)
from refold.log.entry import intersect, seqs, subtract, union
from refold.recall.text import rebuilt
from refold.view.budget import PER_MESSAGE
from refold.view.view_input import ViewInput
from refold.wire import WIRES

WIRE: dict[str, Any] = {name: Remembering(wire) for name, wire in WIRES.items()}
_ASKED_FOR = (UNFOLD, MANUAL, "model switch")
"""Triggers of folds that stand for what somebody chose, however much that leaves."""


class Promises(Acting):
    """Sessions that are held against the promises."""

    async def sent(self, *, forced=False):
        thread = self.thread
        before = thread.live.previous
        tighter = None
        if forced and before:  # a profile with an emergency of its own says by how much less
            own = thread.live.setup.profile.emergency.on
            tighter = before.plan.account.sent - 1 if own else int(0.9 * before.plan.account.sent)
        try:
            request = await thread.session.request(forced=forced)
        except ViewTooLarge:
            assert self.must_keep() > self.room(tighter)
            return None
        await self.read_on()
        messages = tuple(request.messages)
        thread.sent[thread.live.previous.seq] = messages
        assert WIRE[self.format].problems(messages) == []
        assert self.counted(messages) <= self.room(tighter)
        assert request.plan.account.sent <= request.plan.account.limit
        if request.plan.closed.terms.outline is thread.inputs.outline:  # no fold ended since
            self.check_verbatim(messages)
            self.check_dispositions(request.plan)
        return request

    def room(self, tighter=None):
        live = self.thread.live
        budget, inputs = live.setup.budget, live.view.inputs
        budget = budget._replace(learned=tighter)
        return budget.limit - budget.tools - max(budget.instructions, inputs.instructions)

    def counted(self, messages):
        describe = WIRE[self.format].describe
        return sum(sum(map(COUNTER.part, describe(one).shapes)) + PER_MESSAGE for one in messages)

    def must_keep(self):
        """About what no policy may leave out: folds, pins, fixed parts and their steps."""
        inputs = self.thread.inputs
        pinned = {pin.seq for pin in inputs.outline.pins}
        held = {inputs.steps[at] for at, row in enumerate(inputs.rows) if row.seq in pinned}
        held |= {inputs.steps[inputs.prompt]} if inputs.prompt is not None else set()
        total = 100 + sum(len(text) // 4 + 20 for one in inputs.foldings for _, text in one.shown)
        total += sum(len(one.text) // 4 + 20 for one in inputs.pinned)
        return total + sum(
            row.tokens + PER_MESSAGE
            for at, row in enumerate(inputs.rows)
            if inputs.steps[at] in held or row.has("system")
        )

    def check_verbatim(self, messages):
        """System content is there, and the latest prompt as long as its turn goes on."""
        describe = WIRE[self.format].describe
        shown = Counter(shape for one in messages for shape in describe(one).shapes)
        head = self.thread.inputs.head
        line = self.thread.inputs.outline.on_line(head)
        said = [
            describe(one.body)
            for one in self.thread.seen
            if one.kind == Message.KIND and one.id not in self.gone and among(one.seq, line)
        ]
        read = self.thread.live.setup.profile.window.read
        for one in said if not read else ():
            assert all(shown[shape] for shape in one.shapes if shape.kind == "system")
        if self.thread.inputs.prompt is None:
            return  # a person had all of it folded, once it was answered
        if said and said[-1].role != "assistant":
            prompts = [one for one in said if any(shape.kind == "prompt" for shape in one.shapes)]
            asked = prompts[-1].shapes if prompts else ()
            assert all(shown[shape] for shape in asked if shape.kind == "prompt")

    def check_dispositions(self, plan):
        """Exactly one for each part up to the head."""
        fates = Counter(seq for gone in plan.layout.omissions for seq in seqs((gone.span,)))
        messages = {one.seq for one in self.thread.seen if one.kind == Message.KIND}
        assert all(fates[seq] <= 1 for seq in messages)
        assert all(not fates[ref.seq] for ref in plan.layout.changes)
        assert all(ref.seq in messages for ref in plan.layout.changes)
        shown = {row.seq for row in self.thread.inputs.rows}
        assert all(fates[seq] or seq in shown for seq in messages if seq <= plan.head)

    def check_unfolded(self, span):
        thread = self.thread
        running = thread.live.running
        rows, folded = rows_of(thread.inputs), folded_in(thread.inputs)
        self.run(thread.session.unfold(span))
        if running:
            return
        inputs = thread.inputs
        assert folded_in(inputs) == subtract(folded, (span,))
        opened = {*seqs(intersect(folded, (span,)))}
        if not thread.live.setup.profile.window.read:
            assert rows_of(inputs) == rows | self.readable(opened)

    def check_taken_back(self, fold):
        thread = self.thread
        inputs, running = thread.inputs, thread.live.running
        newest = max(inputs.outline.folds, key=lambda one: one.seq)
        rows = rows_of(inputs)
        try:
            self.run(thread.session.take_back(fold and fold.fold))
        except InvalidEntry:  # a fold that was being made ended, and stands over this one
            assert running
            assert fold
            assert fold not in thread.inputs.outline.folds
            return
        if running:
            return
        inputs = thread.inputs
        spans = subtract((fold or newest).spans, folded_in(inputs))
        if not thread.live.setup.profile.window.read:
            assert rows_of(inputs) == rows | self.readable({*seqs(spans)})

    def readable(self, wanted):
        line = self.thread.inputs.outline.on_line(self.thread.inputs.head)
        return {
            one.seq
            for one in self.thread.seen
            if one.seq in wanted
            and one.kind == Message.KIND
            and one.id not in self.gone
            and among(one.seq, line)
        }

    def note_forgotten(self, span):
        """What rests on what is forgotten goes too, wherever it is shared."""
        named = self.thread.seen[span.first - 1 : span.last]
        now = {one.id for one in named if not one.forgotten} - self.gone
        for thread in self.threads * len(self.threads):
            gone = {one.seq for one in thread.seen if one.id in now}
            for one in thread.seen:
                rests = any(seq in gone for seq in seqs(one.rests_on))
                if rests and one.id not in self.gone and not one.forgotten:
                    gone.add(one.seq)
                    now.add(one.id)
        self.gone |= now

    async def held(self):
        await self.read_on()
        thread = self.thread
        visible = await self.log.visible(thread.name, last=self.setup.profile.window.read or None)
        outline = visible.outline
        assert len(outline.running) <= 1
        for at, one in enumerate(outline.folds):
            for two in outline.folds[:at]:
                assert not intersect(one.spans, two.spans)
        if not thread.session.head == thread.head == visible.info.entries:
            return  # another appended since
        inputs = thread.inputs
        fresh = ViewInput.of(visible, WIRE[self.format], COUNTER)
        assert sight_of(inputs) == sight_of(fresh)
        assert inputs.foldings == fresh.foldings
        assert (inputs.hidden, inputs.unread, inputs.prompt) == (
            fresh.hidden,
            fresh.unread,
            fresh.prompt,
        )
        self.check_none_vanishes(inputs)
        self.check_no_loop(thread)
        if not outline.running:
            thread.shots[thread.head] = sight_of(inputs), len(self.gone)

    def check_none_vanishes(self, inputs):
        rows = rows_of(inputs)
        line = inputs.outline.on_line(inputs.head)
        for one in self.thread.seen:
            if one.kind == Message.KIND and among(one.seq, line):
                folded = among(one.seq, folded_in(inputs)) or among(one.seq, inputs.unread)
                assert (one.seq in rows) + (one.seq in inputs.hidden) + folded == 1

    def check_no_loop(self, thread):
        """A fold that ended, however, is not begun again for nothing.

        One that keeps a share of the turns may leave so much that the next share goes too.
        """
        if thread.live.running:
            return
        fold = None
        by_share = thread.live.setup.profile.fold.keep.unit == "turns"
        for entry in reversed(thread.seen[thread.since :]):
            if entry.id in self.gone:
                return
            match CODEC.decode(entry):
                case FoldCompleted(one) | FoldFailed(one) if fold is None:
                    if by_share and entry.kind == FoldCompleted.KIND:
                        return
                    fold = one
                case FoldStarted(one, _, trigger) if one == fold:
                    if trigger not in _ASKED_FOR:
                        assert thread.session.decide().act == "continue", trigger
                    return
                case Requested():
                    pass
                case _ if entry.kind != "usage":
                    return

    def check_all(self):
        self.writer.release()
        self.run(self.quiet())
        for thread in self.threads:
            self.run(self.check_entries(thread))
            self.run(self.check_records(thread))
            self.check_ends(thread)
            self.run(thread.session.catch_up())  # another process may have ended its fold since
            assert self.told[thread.session]["start"] <= self.told[thread.session]["complete"]

    async def check_entries(self, thread):
        for entry, seen in zip(await self.log.read(thread.name), thread.seen, strict=True):
            assert entry.id == seen.id
            assert entry.forgotten == (entry.id in self.gone or seen.forgotten), entry
            assert entry.forgotten or entry == seen

    async def check_records(self, thread):
        for seq, messages in [*thread.sent.items()][-8:]:
            if thread.seen[seq - 1].id in self.gone:
                with pytest.raises(Unrebuildable):
                    await rebuilt(self.log, thread.name, seq)
            else:
                assert await rebuilt(self.log, thread.name, seq) == messages

    def check_ends(self, thread):
        started, ended = [], Counter()
        for entry in thread.seen:
            match CODEC.decode(entry):
                case FoldStarted(fold) | Forgotten(FoldStarted.KIND, {"fold": fold}):
                    started.append(str(fold))
                case FoldCompleted(fold) | FoldFailed(fold):
                    ended[str(fold)] += 1
                case Forgotten(FoldCompleted.KIND | FoldFailed.KIND, {"fold": fold}):
                    ended[str(fold)] += 1
                case _:
                    pass
        assert len({*started}) == len(started)
        assert all(ended[fold] == 1 for fold in started)
        assert ended.total() == len(started)


def among(seq, spans):
    return any(seq in span for span in spans)


def rows_of(inputs):
    return {row.seq for row in inputs.rows}


def folded_in(inputs):
    return union(span for fold in inputs.outline.folds for span in fold.spans)


def sight_of(inputs):
    outline = inputs.outline
    return [row.seq for row in inputs.rows], outline.folds, outline.pins
