"""A session's view, kept in step with its log, whoever appends to it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from refold.errors import Conflict, InvalidInput, InvalidMessage, SessionNotFound
from refold.fold.trigger import while_folding
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
    Opened,
    Running,
    SessionInfo,
    Span,
    Title,
    Value,
)
from refold.log.entry import intersect, placed
from refold.models.experience import Setup
from refold.recall.text import last_record
from refold.view import Previous, Profile, Thresholds, View, ViewInput, thresholds
from refold.view.budget import PER_MESSAGE
from refold.view.view_input import MOVING, weight
from refold.wire import wire_for

Heard = Callable[[Sequence[Entry]], Awaitable[None]]
"""Is told of what was appended, after the view has taken it in."""


async def begin(  # noqa: PLR0913, PLR0917 - the last has a default
    log: Log,
    name: str,
    format: str | None,  # noqa: A002 - the glossary's word
    profile: str,
    author: Author,
    title: str | Title | None = None,
    owner: str | None = None,
) -> SessionInfo:
    """The session of that name; a new one where there is none and a format is given."""
    try:
        info = await log.info(name)
    except SessionNotFound:
        if format is None:
            raise
        wire_for(format)  # a session has its format for life: one that nobody knows begins none
        with suppress(Conflict):  # another process began it in this moment
            begun = opened(format, profile, title, owner)
            await log.append(name, [author.draft(begun)], expected=0)
        info = await log.info(name)
    check_format(name, info.format, format)
    return info


def opened(
    format: str,  # noqa: A002 - see above
    profile: str,
    title: str | Title | None,
    owner: str | None = None,
) -> Opened:
    """The first entry of a session."""
    match title:
        case Title(text, source):
            return Opened(format, profile, text, source, owner)
        case _:
            return Opened(format, profile, title, owner=owner)


def check_format(name: str, held: str, wanted: str | None) -> None:
    """Check that a session holds messages of the format that is wanted, if one is."""
    if wanted not in (None, held):
        raise InvalidInput(
            f"Session {name!r} holds {held} messages, not {wanted}.",
            "A session has one format for life: open another session, or import into one.",
        )


class LiveView:
    """The view of one reader of a session, and what it needs to stay in step."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        log: Log,
        name: str,
        setup: Setup,
        *,
        folding: bool,
        scope: str = MAIN_SCOPE,
        author: Author | None = None,
    ) -> None:
        self.log = log
        self.name = name
        self.setup = setup
        self._while_folding = while_folding(setup.profile)
        self.folding = folding
        self.scope = scope
        self.author = author or Author()
        self.view: View
        self.previous: Previous | None = None
        self.running: tuple[Running, ...] = ()
        self.whole = 0
        """Tokens of everything on the session's line, folded or not."""
        self.heard: Heard | None = None
        self._opened: Opened | None = None
        """How a session begins that nobody has begun yet."""
        self._taking_in = asyncio.Lock()

    @property
    def head(self) -> int:
        """The newest entry that the view has taken in."""
        return self.view.inputs.head

    @property
    def thresholds(self) -> Thresholds:
        """At how many tokens this session acts: as it is planned, and as its folds begin."""
        setup, given = self.setup, self.view.inputs.instructions
        spread = setup.counter.spread
        return thresholds(self.profile(), setup.budget, spread, instructions=given)

    def weight_of(self, payload: bytes) -> int:
        """What a message costs in a request; nothing when nobody can read it."""
        try:
            shapes = self.view.inputs.wire.describe(payload).shapes
        except InvalidMessage:
            return 0
        return sum(map(self.setup.counter.part, shapes)) + PER_MESSAGE

    def folded(self, span: Span) -> bool:
        """Whether a fold stands for something of the span."""
        return any(intersect(one.spans, (span,)) for one in self.view.inputs.outline.folds)

    async def open(self) -> None:
        """Read what the view needs, and go on from the newest request record."""
        inputs = await self._sheet()
        previous = await last_record(self.log, self.name, inputs.outline.record)
        # The newest record may be of another reader; then the next request begins anew.
        self.previous = previous if previous and previous.plan.scope == self.scope else None
        self.view = View(inputs, self.profile(), self.previous and self.previous.plan)

    def begin(self, opened: Opened) -> None:
        """Follow a session that is nowhere yet: what is appended first begins it."""
        apart = self.setup.profile.delegates == "apart"
        inputs = ViewInput(wire_for(opened.format), self.setup.counter, self.scope, apart=apart)
        self._opened = opened
        self.view = View(inputs, self.profile())

    def profile(self, *, limits: bool = False) -> Profile:
        """The profile that plans: with its fixed limits, or for a session that folds."""
        return self.setup.profile if limits or not self.folding else self._while_folding

    async def switch(self, setup: Setup) -> None:
        """Go on for another model, or for the same with another budget."""
        before, self.setup = self.setup, setup
        if (before.counter, before.profile) == (setup.counter, setup.profile):
            return  # everything that was read and counted stands
        self._while_folding = while_folding(setup.profile)
        self.view.profile = self.profile()
        async with self._taking_in:
            known = self.head
            self.view.reset(await self._sheet())
            await self._tell(await self._since(known))

    async def append(
        self,
        *values: Value,
        artifacts: Iterable[Artifact] = (),
        expected: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        """Append, wherever the head is unless told, and take it in."""
        attached = tuple(artifacts)
        drafts = [
            self.author.draft(one, scope=self.scope, artifacts=attached if not nth else ())
            for nth, one in enumerate(values)
        ]
        if self._opened is not None:
            drafts.insert(0, self.author.draft(self._opened))
            mark, expected = mark and mark._replace(nth=mark.nth + 1), 0
        if mark is None:
            done = await self.log.append(self.name, drafts, expected=expected)
        else:
            done = await self.log.append(self.name, drafts, expected=expected, mark=mark)
        begun, self._opened = self._opened, None
        async with self._taking_in:
            if done.first == self.head + 1 and not done.repeated:
                await self._take_in([placed(one, done.first + at) for at, one in enumerate(drafts)])
            else:
                await self._catch_up()
        return replace(done, first=done.first + 1) if begun else done

    async def catch_up(self) -> None:
        """Take in what others appended."""
        async with self._taking_in:  # tasks that share a session take in each entry once
            await self._catch_up()

    async def _catch_up(self) -> None:
        head = await self.log.head(self.name)
        if head > self.head:
            await self._take_in(await self.log.read(self.name, Span(self.head + 1, head)))
        elif head < self.head:  # it was forgotten, and another begun by its name
            await self.open()

    async def _take_in(self, entries: Sequence[Entry]) -> None:
        if any(entry.kind == Forgot.KIND for entry in entries):
            await self.open()  # nothing that was read before may be sent again
            entries = [*entries, *await self._since(entries[-1].seq)]
        elif any(entry.kind in MOVING for entry in entries):
            self.view.reset(await self._sheet())
            # The sheet holds what was appended meanwhile too: it is told of now or never.
            entries = [*entries, *await self._since(entries[-1].seq)]
        else:
            known = len(self.view.inputs.rows)
            self.view.extend(entries)
            self.whole += sum(map(weight, self.view.inputs.rows[known:]))
            for entry in entries:
                self._track(entry)
        await self._tell(entries)

    async def _since(self, seq: int) -> list[Entry]:
        """The entries after this one that the view holds."""
        return await self.log.read(self.name, Span(seq + 1, self.head)) if self.head > seq else []

    async def _tell(self, entries: Sequence[Entry]) -> None:
        if self.heard is not None and entries:
            await self.heard(entries)

    async def _sheet(self) -> ViewInput:
        read = self.setup.profile.window.read or None
        visible = await self.log.visible(self.name, last=read)
        known = self.view.inputs if hasattr(self, "view") else None
        wire = known.wire if known else wire_for(visible.info.format)
        apart = self.setup.profile.delegates == "apart"
        counter = self.setup.counter
        inputs = ViewInput.of(visible, wire, counter, self.scope, apart=apart, known=known)
        self.running = visible.outline.running
        self.whole = sum(map(weight, inputs.rows)) + sum(one.tokens for one in inputs.foldings)
        return inputs

    def _track(self, entry: Entry) -> None:
        match CODEC.decode(entry) if entry.kind in _TRACKED else None:
            case FoldStarted(fold):
                self.running = (*self.running, Running(entry.seq, fold))
            case FoldFailed(fold):
                self.running = tuple(one for one in self.running if one.fold != fold)
            case _:
                pass


_TRACKED = {FoldStarted.KIND, FoldFailed.KIND}
