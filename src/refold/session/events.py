"""What those who watch a session are told of its folds, and the checkpoints written for people."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from uuid import UUID

from refold.errors import RefoldError
from refold.fold.checkpoints import Checkpoint, Workspace, checkpoints
from refold.fold.events import CompactionComplete, CompactionStart, FoldEvent
from refold.fold.summary import Summary, counts, parse
from refold.fold.undo import UNFOLD
from refold.log import CODEC, Entry, FoldCompleted, FoldFailed, FoldStarted, Forgotten
from refold.session.live_view import LiveView
from refold.view import Account, Event

Watch = Callable[[Event | FoldEvent], None]
"""Is told what happens."""

_TOLD_OF = {FoldStarted.KIND, FoldCompleted.KIND, FoldFailed.KIND}


@dataclass(frozen=True, slots=True)
class _Begun:
    """What is known of a fold from its beginning."""

    tokens: int
    at: float


class CompactionEvents:
    """Follows the folds of a session, wherever they are made: each begins once and ends once."""

    def __init__(self, live: LiveView, watch: Watch, workspace: Workspace | None) -> None:
        self.last: CompactionComplete | None = None
        """How the newest fold ended."""
        self._following = live
        self._watch = watch
        self._workspace = workspace
        self._begun: dict[UUID, _Begun] = {}
        self._parts: set[UUID] = set()
        """Folds that stand for the rest of one that was opened: no folds to tell of."""

    def begins(self, fold: UUID, cause: str) -> None:
        """A fold is about to be made."""
        size = self._following.view.size(self._following.setup.budget)
        self._begun[fold] = _Begun(size, monotonic())
        self._watch(CompactionStart.of(cause, self._account(size)))

    def fails(self, fold: UUID, reason: str) -> None:
        """A fold was not made."""
        self._end(fold, CompactionComplete(str(fold), reason))

    def tell(self, event: FoldEvent) -> None:
        """Something else happened to the folds."""
        self._watch(event)

    async def heard(self, entries: Sequence[Entry]) -> None:
        """Tell what the log says of folds, once their checkpoints are written."""
        for entry in entries:
            match CODEC.decode(entry) if entry.kind in _TOLD_OF else None:
                case FoldStarted(fold, trigger=trigger):
                    if trigger == UNFOLD:
                        self._parts.add(fold)
                    elif fold not in self._begun:
                        self.begins(fold, trigger)
                case FoldCompleted(fold, summary=summary) if fold not in self._parts:
                    await self._completed(fold, parse(summary))
                case FoldFailed(fold, reason):
                    self.fails(fold, reason)
                case Forgotten(FoldCompleted.KIND, {"fold": str(fold)}):
                    self.fails(UUID(fold), "what it stood for was forgotten")
                case _:
                    pass

    async def align(self) -> list[Checkpoint]:
        """Make the checkpoint files say what the log says; what they say then."""
        if self._workspace is None:
            return []
        found = await checkpoints(self._following.log, self._following.name)
        await asyncio.to_thread(self._workspace.align, found, self._following.name)
        return found

    def _account(self, size: int) -> Account:
        """Where the tokens of a request would go now."""
        inputs, budget = self._following.view.inputs, self._following.setup.budget
        parts = (part for row in inputs.rows for part in row.parts)
        told = sum(part.tokens for part in parts if part.kind == "system")
        beside = max(budget.instructions, inputs.instructions)
        return Account(told + beside, size - told, budget.tools)

    async def _completed(self, fold: UUID, summary: Summary) -> None:
        after = self._following.view.size(self._following.setup.budget)
        begun = self._begun.get(fold)
        found, problem = await self._written()
        checkpoint = next((one for one in found if one.fold == fold), None)
        event = CompactionComplete(
            str(fold),
            pre_tokens=begun.tokens if begun else after + summary.tokens,
            post_tokens=after,
            messages_removed=summary.messages,
            summary=summary.text,
            model=summary.by,
            usage=dict(summary.usage) or None,
            report=counts(summary.report) if summary.report else None,
            checkpoint_error=problem,
        )
        if checkpoint is not None and self._workspace is not None:
            path = str(self._workspace.path_of(checkpoint))
            event = replace(event, checkpoint=checkpoint.number, checkpoint_path=path)
        self._end(fold, event)

    async def _written(self) -> tuple[list[Checkpoint], str | None]:
        """The checkpoints, or why they could not be written: the fold stands all the same."""
        try:
            return await self.align(), None
        except (RefoldError, OSError) as error:
            return [], str(error)

    def _end(self, fold: UUID, event: CompactionComplete) -> None:
        begun = self._begun.pop(fold, None)
        took = int((monotonic() - begun.at) * 1000) if begun else 0
        self.last = replace(event, duration_ms=took)
        self._watch(self.last)
