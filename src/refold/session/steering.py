"""Steering a session: what a person may do with its past. All of it is entries; nothing is lost."""

import gc
from contextlib import suppress
from uuid import UUID, uuid4

from refold.errors import Conflict, FoldError
from refold.fold.undo import taken_back, unfolded
from refold.log import (
    Cleared,
    Erased,
    Forgot,
    Mark,
    PartRef,
    Pinned,
    Rewound,
    SessionInfo,
    Span,
    Unpinned,
)
from refold.memory.forgetting import forget
from refold.models.setup import Setup
from refold.session.folds import Folds
from refold.session.follow import Following
from refold.session.standing import Standing
from refold.session.telling import Telling
from refold.view import thresholds


class Steering(Standing):
    """What a session can be told to do beside going on."""

    def __init__(self, following: Following, folds: Folds, telling: Telling) -> None:
        super().__init__(following, folds)
        self._telling = telling

    async def unfold(self, span: Span) -> None:
        """See these entries again; the folds over them go on standing for the rest."""
        following = self._following
        await following.catch_up()
        first = True
        while first or following.folded(span):
            first = False
            sheet = following.view.sheet
            outline, head = sheet.outline, sheet.head  # a fold may end while we read beneath these
            values = await unfolded(
                following.log, following.name, outline, span, uuid4, following.weight_of
            )
            try:
                await following.append(*values, expected=head)
            except Conflict:
                await following.catch_up()
        self._folds.hold()
        await self._telling.align()

    async def take_back(self, fold: UUID | None = None) -> None:
        """Take back a fold, the newest unless told: what it stood for is seen again."""
        following = self._following
        await following.catch_up()
        await following.append(*taken_back(following.view.sheet.outline, fold))
        self._folds.hold()
        await self._telling.align()

    async def rewind(self, to: int, *, mark: Mark | None = None) -> int:
        """See the session again as it was when entry `to` was the newest. Nothing is deleted.

        What is given is the entry that says so.
        """
        done = await self._following.append(Rewound(to), mark=mark)
        await self._telling.align()
        return done.first

    async def clear(self) -> None:
        """Begin the view anew; the log keeps everything."""
        await self._following.append(Cleared())
        await self._telling.align()

    async def pin(self, *parts: PartRef) -> None:
        """Keep these parts in the view, folded or not."""
        await self._following.append(Pinned(parts))

    async def unpin(self, *parts: PartRef) -> None:
        """Keep these parts no longer."""
        await self._following.append(Unpinned(parts))

    async def fork(self, new: str, *, at: int | None = None) -> SessionInfo:
        """Another session that begins as this one was at entry `at`, or is now."""
        return await self._following.log.fork(self._following.name, new, at=at)

    async def forget(self, span: Span) -> Erased:
        """Erase these entries for good, with every fold and record that rests on them."""
        following = self._following
        await following.catch_up()  # what is forgotten now cannot be told of later
        erased = await forget(following.log, following.name, span)
        await following.append(Forgot(span))
        await self._telling.align()
        return erased

    def must_fold_for(self, setup: Setup) -> bool:
        """Whether the view is too large for another model, so that a switch folds first."""
        view = self._following.view
        given = view.sheet.instructions
        marks = thresholds(setup.profile, setup.budget, setup.counter.spread, instructions=given)
        return view.size(setup.budget) + marks.floor >= (marks.hard or marks.limit)

    async def switch(self, setup: Setup) -> None:
        """Go on with another model; when its window is too small for the view, fold first.

        The same model with another budget folds at its next request, if it must.
        """
        other = setup.model != self._following.setup.model
        if other and self.must_fold_for(setup):
            await self._folds.settle()
        if other and self.must_fold_for(setup):
            with suppress(FoldError):  # then requests leave out what does not fit
                await self._folds.compact(cause="model switch", setup=setup)
        self._folds.switched(setup)
        await self._following.switch(setup)

    async def relieve(self) -> bool:
        """Under memory pressure: let go of what is not needed, and fold; whether that was done."""
        gc.collect()
        await self._folds.settle()
        try:
            await self._folds.compact(cause="memory pressure")
        except FoldError:
            return False
        return True
