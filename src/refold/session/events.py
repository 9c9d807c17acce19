"""The events of a session's folds, and the checkpoints written for people."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Final
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
"""Receives the events of a session."""

_REPORTED: Final = {FoldStarted.KIND, FoldCompleted.KIND, FoldFailed.KIND}


class CompactionEvents:
    """Follows the folds of a session, wherever they are made: each begins once and ends once."""

    def __init__(self, live: LiveView, watch: Watch, workspace: Workspace | None) -> None:
        self.last: CompactionComplete | None = None
        """How the newest fold ended."""
        self.report = watch
        self._live = live
        self._workspace = workspace
        self._started: dict[UUID, tuple[int, float]] = {}
        """The tokens of the view when a fold started, and when that was."""
        self._remainders: set[UUID] = set()
        """Folds that stand for the rest of an unfolded one: they are not reported."""

    def report_start(self, fold: UUID, cause: str) -> None:
        inputs, budget = self._live.view.inputs, self._live.setup.budget
        size = self._live.view.size(budget)
        self._started[fold] = size, monotonic()
        system = inputs.system_tokens
        instructions = max(budget.instructions, inputs.instructions)
        account = Account(system + instructions, size - system, budget.tools)
        self.report(CompactionStart.of(cause, account))

    def report_failure(self, fold: UUID, reason: str) -> None:
        self._report_end(fold, CompactionComplete(str(fold), reason))

    async def observe(self, entries: Sequence[Entry]) -> None:
        """Report what the log says of folds, once their checkpoints are written."""
        for entry in entries:
            match CODEC.decode(entry) if entry.kind in _REPORTED else None:
                case FoldStarted(fold, trigger=trigger):
                    if trigger == UNFOLD:
                        self._remainders.add(fold)
                    elif fold not in self._started:
                        self.report_start(fold, trigger)
                case FoldCompleted(fold, summary=summary) if fold not in self._remainders:
                    await self._report_completed(fold, parse(summary))
                case FoldFailed(fold, reason):
                    self.report_failure(fold, reason)
                case Forgotten(FoldCompleted.KIND, {"fold": str(fold)}):
                    self.report_failure(UUID(fold), "what it stood for was forgotten")
                case _:
                    pass

    async def sync_checkpoints(self) -> list[Checkpoint]:
        """Make the checkpoint files match the log; returns the checkpoints."""
        if self._workspace is None:
            return []
        current = await checkpoints(self._live.log, self._live.name)
        await asyncio.to_thread(self._workspace.align, current, self._live.name)
        return current

    async def _report_completed(self, fold: UUID, summary: Summary) -> None:
        after = self._live.view.size(self._live.setup.budget)
        started = self._started.get(fold)
        current: list[Checkpoint] = []
        problem = None
        try:
            current = await self.sync_checkpoints()
        except (RefoldError, OSError) as error:  # the fold stands all the same
            problem = str(error)
        event = CompactionComplete(
            str(fold),
            pre_tokens=started[0] if started else after + summary.tokens,
            post_tokens=after,
            messages_removed=summary.messages,
            summary=summary.text,
            model=summary.by,
            usage=dict(summary.usage) or None,
            report=counts(summary.report) if summary.report else None,
            checkpoint_error=problem,
        )
        checkpoint = next((each for each in current if each.fold == fold), None)
        if checkpoint is not None and self._workspace is not None:
            path = str(self._workspace.path_of(checkpoint))
            event = replace(event, checkpoint=checkpoint.number, checkpoint_path=path)
        self._report_end(fold, event)

    def _report_end(self, fold: UUID, event: CompactionComplete) -> None:
        _, start = self._started.pop(fold, (0, None))
        milliseconds = 0 if start is None else int((monotonic() - start) * 1000)
        self.last = replace(event, duration_ms=milliseconds)
        self.report(self.last)
