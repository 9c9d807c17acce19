"""The view of a session, kept in step with its log, which other processes may append to."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from refold.errors import Conflict, InvalidInput, InvalidMessage, SessionNotFound
from refold.fold.trigger import while_folding, while_not_folding
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Appended,
    Artifact,
    Author,
    Entry,
    FoldFailed,
    FoldStarted,
    Forgot,
    Log,
    Mark,
    Message,
    Opened,
    Origin,
    Requested,
    Running,
    SessionInfo,
    Span,
    Title,
    Used,
    Value,
    Visible,
)
from refold.log.entry import intersect, placed
from refold.models.experience import Setup
from refold.recall.text import last_record
from refold.view import Previous, Profile, Thresholds, View, ViewInput, thresholds
from refold.view.budget import PER_MESSAGE
from refold.view.record import correction_in
from refold.view.tokens import corrected
from refold.view.view_input import MOVING, weight
from refold.wire import wire_for

OnEntries = Callable[[Sequence[Entry]], Awaitable[None]]
"""Receives new entries, after the view has taken them in."""
_TRACKED: Final = {FoldStarted.KIND, FoldFailed.KIND}
_ANSWERING: Final = {Requested.KIND, Used.KIND}


async def begin(  # noqa: PLR0913, PLR0917 - the last has a default
    log: Log,
    name: str,
    format: str | None,  # noqa: A002 - the glossary's word
    profile: str,
    author: Author,
    title: str | Title | None = None,
    owner: str | None = None,
    origin: Origin | None = None,
) -> SessionInfo:
    """The session of that name; a new one where there is none and a format is given."""
    try:
        info = await log.info(name)
    except SessionNotFound:
        if format is None:
            raise
        wire_for(format)  # a session has its format for life, so an unknown one is refused
        with suppress(Conflict):  # another process began it at this moment
            entry = opening_entry(format, profile, title, owner, origin)
            await log.append(name, [author.draft(entry)], expected=0)
        info = await log.info(name)
    check_format(name, info.format, format)
    return info


def opening_entry(
    format: str,  # noqa: A002 - see above
    profile: str,
    title: str | Title | None,
    owner: str | None = None,
    origin: Origin | None = None,
) -> Opened:
    match title:
        case Title(text, source):
            return Opened(format, profile, text, source, owner, origin)
        case _:
            return Opened(format, profile, title, owner=owner, origin=origin)


def check_format(name: str, actual: str, expected: str | None) -> None:
    if expected not in (None, actual):
        raise InvalidInput(
            f"Session {name!r} holds {actual} messages, not {expected}.",
            "A session's format never changes: open another session, or import into one.",
        )


class LiveView:
    """The view of one reader of a session, and what it needs to stay in step."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        log: Log,
        name: str,
        setup: Setup,
        *,
        can_fold: bool,
        finds: bool = False,
        scope: str = MAIN_SCOPE,
        author: Author | None = None,
    ) -> None:
        self.log = log
        self.name = name
        self.setup = setup
        self._summarizer_known = False
        """Whether it is known if there is a summarizer: then requests say what they omit."""
        self._set_profiles()
        self.limited = False
        """Whether all fixed limits apply, because folds fail."""
        self.can_fold = can_fold
        self.has_summarizer = True
        """Whether a model may be at hand for summaries."""
        self.finds = finds
        """Whether a model summarizes what a delegated agent's tools return."""
        self.scope = scope
        self.author = author or Author()
        self.view: View
        self.previous: Previous | None = None
        """The record of the newest request."""
        self.running: tuple[Running, ...] = ()
        self.session_tokens = 0
        """Tokens of everything on the session's line, folded or not."""
        self.on_entries: OnEntries | None = None
        self.other_model = False
        """Whether another model answered last: what it has cached is no use to this one."""
        self._said_at = self._answered_at = 0
        """When the newest message came, and the newest answer or request, in milliseconds."""
        self._opening: Opened | None = None
        """The first entry of a session that does not exist yet."""
        self._taking_in = asyncio.Lock()

    @property
    def head(self) -> int:
        return self.view.inputs.head

    @property
    def thresholds(self) -> Thresholds:
        """The token counts at which this session rewrites, folds and cuts."""
        setup, instructions = self.setup, self.view.inputs.instructions
        spread = setup.counter.spread
        return thresholds(self.profile(), setup.budget, spread, instructions=instructions)

    @property
    def idle(self) -> float:
        """Seconds between the newest answer, or request, and the newest message."""
        return max(0, self._said_at - self._answered_at) / 1000 if self._answered_at else 0.0

    @property
    def idle_now(self) -> float:
        """Seconds since the newest answer, or request."""
        return max(0, self.author.now() - self._answered_at) / 1000 if self._answered_at else 0.0

    def profile(self) -> Profile:
        """The profile to plan by: with all of its fixed limits, or for a session that folds."""
        limited = self.limited or not (self.can_fold or self.finds)
        return self._while_not_folding if limited else self._while_folding

    def limit(self, *, on: bool) -> None:
        """Apply all fixed limits of the profile from now on, or those of a session that folds."""
        self.limited = on
        self.view.profile = self.profile()

    def allow_folds(self, *, on: bool) -> None:
        """Fold from now on, or not; if not, fixed limits apply at once, with a marker."""
        if not self._summarizer_known:
            self._summarizer_known = True
            self._set_profiles()
        self.can_fold = on
        self.view.profile = self.profile()

    def _set_profiles(self) -> None:
        profile = self.setup.profile
        self._while_folding = while_folding(profile)
        known = self._summarizer_known
        self._while_not_folding = while_not_folding(profile) if known else profile

    def weight_of(self, payload: bytes) -> int:
        """What a message costs in a request; 0 if it cannot be read."""
        try:
            shapes = self.view.inputs.wire.describe(payload).shapes
        except InvalidMessage:
            return 0
        return sum(map(self.setup.counter.part, shapes)) + PER_MESSAGE

    def is_folded(self, span: Span) -> bool:
        return any(intersect(fold.spans, (span,)) for fold in self.view.inputs.outline.folds)

    async def open(self) -> None:
        """Read what the view needs, and continue from the newest request record."""
        visible = await self._visible()
        self._count_as_recorded(visible.entries)
        inputs = self._inputs_of(visible)
        previous = await last_record(self.log, self.name, inputs.outline.record)
        # The newest record may be another reader's; then the next request is planned afresh.
        self.previous = previous if previous and previous.plan.scope == self.scope else None
        self.view = View(inputs, self.profile(), self.previous and self.previous.plan)
        self._note_times(visible.entries)

    def begin(self, opening: Opened) -> None:
        """Follow a session that does not exist yet: the first append begins it."""
        isolated = self.setup.profile.delegates == "apart"
        wire, counter = wire_for(opening.format), self.setup.counter
        inputs = ViewInput(wire, counter, self.scope, isolated=isolated)
        self._opening = opening
        self.view = View(inputs, self.profile())

    async def switch(self, setup: Setup) -> None:
        """Continue with another model, or the same with another budget."""
        before, self.setup = self.setup, setup
        self.other_model |= before.model != setup.model
        if (before.counter, before.profile) == (setup.counter, setup.profile):
            return  # everything that was read and counted is still valid
        self._set_profiles()
        self.view.profile = self.profile()
        async with self._taking_in:
            head = self.head
            self.view.reset(await self._read_inputs())
            await self._notify(await self._since(head))

    async def append(
        self,
        *values: Value,
        artifacts: Iterable[Artifact] = (),
        expected: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        """Append, by default wherever the head is, and take it in."""
        attached = tuple(artifacts)
        drafts = [
            self.author.draft(value, scope=self.scope, artifacts=() if index else attached)
            for index, value in enumerate(values)
        ]
        if self._opening is not None:
            drafts.insert(0, self.author.draft(self._opening))
            mark, expected = mark and mark._replace(nth=mark.nth + 1), 0
        if mark is None:
            appended = await self.log.append(self.name, drafts, expected=expected)
        else:
            appended = await self.log.append(self.name, drafts, expected=expected, mark=mark)
        opened, self._opening = self._opening is not None, None
        async with self._taking_in:
            if appended.first == self.head + 1 and not appended.repeated:
                entries = [placed(x, seq) for seq, x in enumerate(drafts, appended.first)]
                await self._take_in(entries)
            else:
                await self._catch_up()
        return replace(appended, first=appended.first + 1) if opened else appended

    async def catch_up(self) -> None:
        async with self._taking_in:  # tasks that share a session take in each entry once
            await self._catch_up()

    async def _catch_up(self) -> None:
        head = await self.log.head(self.name)
        if head > self.head:
            entries = await self.log.read(self.name, Span(self.head + 1, head))
            await self._take_in(entries, recount=self._count_as_recorded(entries))
        elif head < self.head:  # it was forgotten, and another one begun under its name
            await self.open()

    async def _take_in(self, entries: Sequence[Entry], *, recount: bool = False) -> None:
        if any(entry.kind == Forgot.KIND for entry in entries):
            await self.open()  # nothing that was read before may be sent again
            entries = [*entries, *await self._since(entries[-1].seq)]
        elif recount or any(entry.kind in MOVING for entry in entries):
            self.view.reset(await self._read_inputs())
            # This read what was appended meanwhile too: it is reported now or never.
            entries = [*entries, *await self._since(entries[-1].seq)]
        else:
            rows = len(self.view.inputs.rows)
            self.view.extend(entries)
            self.session_tokens += sum(map(weight, self.view.inputs.rows[rows:]))
            for entry in entries:
                self._track(entry)
        self._note_times(entries)
        await self._notify(entries)

    def _note_times(self, entries: Sequence[Entry]) -> None:
        inputs = self.view.inputs
        for entry in entries:
            if entry.kind in _ANSWERING:
                self._answered_at = entry.at
            elif entry.kind == Message.KIND:
                self._said_at = entry.at
                index = inputs.at(entry.seq)
                if index < len(inputs.rows) and inputs.rows[index].role == "assistant":
                    self._answered_at = entry.at

    async def _since(self, seq: int) -> list[Entry]:
        return await self.log.read(self.name, Span(seq + 1, self.head)) if self.head > seq else []

    async def _notify(self, entries: Sequence[Entry]) -> None:
        if self.on_entries is not None and entries:
            await self.on_entries(entries)

    def _count_as_recorded(self, entries: Sequence[Entry]) -> bool:
        """Count as the newest request of these was counted; whether that changes the counter.

        So all programs show the same of a session, whatever each has learned of its model.
        """
        records = (entry for entry in reversed(entries) if entry.kind == Requested.KIND)
        before, newest = self.setup, next(map(CODEC.decode, records), None)
        if isinstance(newest, Requested) and newest.model == before.model:
            counter = corrected(before.counter, correction_in(newest))
            self.setup = replace(before, counter=counter)
        return self.setup.counter != before.counter

    async def _visible(self) -> Visible:
        return await self.log.visible(self.name, last=self.setup.profile.window.read or None)

    async def _read_inputs(self) -> ViewInput:
        return self._inputs_of(await self._visible())

    def _inputs_of(self, visible: Visible) -> ViewInput:
        inputs = self.describe(visible)
        self.running = visible.outline.running
        folded = sum(fold.tokens for fold in inputs.foldings)
        self.session_tokens = sum(map(weight, inputs.rows)) + folded
        return inputs

    def describe(self, visible: Visible) -> ViewInput:
        """The view's input from what is visible in the log; known rows are not described again."""
        earlier = self.view.inputs if hasattr(self, "view") else None
        return ViewInput.of(
            visible,
            earlier.wire if earlier else wire_for(visible.info.format),
            self.setup.counter,
            self.scope,
            isolated=self.setup.profile.delegates == "apart",
            earlier=earlier,
        )

    def _track(self, entry: Entry) -> None:
        match CODEC.decode(entry) if entry.kind in _TRACKED else None:
            case FoldStarted(fold):
                self.running = (*self.running, Running(entry.seq, fold))
            case FoldFailed(fold):
                self.running = tuple(each for each in self.running if each.fold != fold)
            case _:
                pass
