"""The flow: what is said goes into the log, and for each request a view comes out of it.

    say ─▶ log ─▶ request: fold if it is time, plan, record ─▶ model ─▶ answer ─▶ log

A session may be open in any number of processes at once; each takes in what the others append.
"""

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Self
from uuid import UUID, uuid4

from refold.engine import Engine, LocalEngine
from refold.errors import Conflict, FoldError, InvalidInput, PromptTooLarge, StoreClosed
from refold.fold.checkpoints import Workspace
from refold.fold.compactor import Compactor, Preview, Remember, Write, from_the_log
from refold.fold.trigger import Decision
from refold.fold.undo import undo_fold, unfold_span
from refold.log import (
    MAIN_SCOPE,
    Artifact,
    Author,
    Cleared,
    Erased,
    Forgot,
    Log,
    Mark,
    Message,
    Note,
    PartRef,
    Pinned,
    Rewound,
    SessionInfo,
    Span,
    Title,
    Unpinned,
)
from refold.memory.memory import forget
from refold.models.catalog import Usage
from refold.models.experience import Setup
from refold.session.compaction import Compacted, Folds, Hook, Host, previewed
from refold.session.events import CompactionEvents, Watch
from refold.session.explain import Filled, filled, used
from refold.session.forecast import Forecast, forecast
from refold.session.guards import RereadGuard
from refold.session.live_view import LiveView, begin, opened
from refold.session.overflow import LAST, Emergencies
from refold.view import Budget, Previous, Request, View, ViewInput, events, record, thresholds
from refold.view.project import check_prompt

# How a session stands: what it holds, and what its view shows.


class Standing:
    """What a session tells of itself, as far as it has read its log."""

    def __init__(self, live: LiveView, folds: Folds) -> None:
        self._following = live
        self._folds = folds

    @property
    def name(self) -> str:
        """Its name."""
        return self._following.name

    @property
    def setup(self) -> Setup:
        """For which model and by which profile it is managed now."""
        return self._following.setup

    @property
    def head(self) -> int:
        """The newest entry that this view has taken in."""
        return self._following.head

    @property
    def said(self) -> list[bytes]:
        """The messages that are not folded, as they were said."""
        return [row.payload for row in self._following.view.inputs.rows]

    @property
    def inputs(self) -> ViewInput:
        """What its view is planned over."""
        return self._following.view.inputs

    @property
    def record(self) -> int:
        """The entry that records the newest request; 0 before the first."""
        return self._following.previous.seq if self._following.previous else 0

    def said_by(self, seq: int) -> list[bytes]:
        """Those of them that were said by then."""
        return [row.payload for row in self._following.view.inputs.rows if row.seq <= seq]

    @property
    def answered(self) -> int:
        """The newest entry up to which everything was answered."""
        rows = self._following.view.inputs.rows
        return next((row.seq for row in reversed(rows) if row.role == "assistant"), 1)

    @property
    def shows_less(self) -> bool:
        """Whether the model is shown less than everything that was said: folds, or cuts."""
        view = self._following.view
        return bool(view.inputs.foldings) or (view.plan is not None and view.plan.shortened)

    @property
    def filled(self) -> Filled:
        """How many tokens the next request would have now, and of what."""
        return filled(self._following)

    @property
    def folding(self) -> bool:
        """Whether a fold is under way, here or in another process."""
        return self._folds.running is not None


# Steering a session: what a person may do with its past. All of it is entries; nothing is lost.


class Steering(Standing):
    """What a session can be told to do beside going on."""

    def __init__(self, live: LiveView, folds: Folds, telling: CompactionEvents) -> None:
        super().__init__(live, folds)
        self._telling = telling

    async def unfold(self, span: Span) -> None:
        """See these entries again; the folds over them go on standing for the rest."""
        live = self._following
        await live.catch_up()
        first = True
        while first or live.folded(span):
            first = False
            inputs = live.view.inputs
            outline, head = (
                inputs.outline,
                inputs.head,
            )  # a fold may end while we read beneath these
            values = await unfold_span(live.log, live.name, outline, span, uuid4, live.weight_of)
            try:
                await live.append(*values, expected=head)
            except Conflict:
                await live.catch_up()
        self._folds.hold()
        await self._telling.align()

    async def take_back(self, fold: UUID | None = None) -> None:
        """Take back a fold, the newest unless told: what it stood for is seen again."""
        live = self._following
        await live.catch_up()
        await live.append(*undo_fold(live.view.inputs.outline, fold))
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
        live = self._following
        await live.catch_up()  # what is forgotten now cannot be told of later
        erased = await forget(live.log, live.name, span)
        await live.append(Forgot(span))
        await self._telling.align()
        return erased

    def must_fold_for(self, setup: Setup) -> bool:
        """Whether the view is too large for another model, so that a switch folds first."""
        view = self._following.view
        given = view.inputs.instructions
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


TIGHTER = (0.9, 0.7, 0.5, 0.25)
"""Of what a provider refused for its length, the share that is tried next, refusal by refusal."""
_JSON: Final = "application/json"
_REWRITES: Final = frozenset({"limit", "target"})
"""Why a request changes what was sent before: to make room."""


class _Sent(NamedTuple):
    """The newest request, and the sheet that it was made of."""

    request: Request
    inputs: ViewInput


class Session(Steering):
    """One conversation: its log, its view, its folds. Open it with `Session.open`."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        live: LiveView,
        folds: Folds,
        telling: CompactionEvents,
        engine: LocalEngine | None,
        watch: Watch,
        *,
        emergencies: Emergencies,
    ) -> None:
        super().__init__(live, folds, telling)
        self._emergencies = emergencies
        self._engine = engine
        self._watch = watch
        self._watching = RereadGuard(live, watch)
        self._known = 0
        self._requests = 0
        self._refused = 0
        self._last: _Sent | None = None
        self._beside: set[str] = set()
        """The hashes of what went beside the messages of the newest request."""

    @classmethod
    async def open(  # noqa: PLR0913 - two are needed, the others are choices
        cls,
        log: Log,
        name: str,
        setup: Setup,
        *,
        format: str | None = "pydantic-ai",  # noqa: A002 - the glossary's word
        scope: str = MAIN_SCOPE,
        engine: Engine | None = None,
        watch: Watch = lambda _: None,
        before: Hook | None = None,
        host: Host = dict,
        workspace: Workspace | None = None,
        write: Write | None = None,
        remember: Remember | None = None,
        author: Author | None = None,
        title: str | Title | None = None,
        owner: str | None = None,
        new: bool = False,
    ) -> Self:
        """Open a session, or begin one.

        Args:
            log: Where it is kept.
            name: Its name.
            setup: For which model and by which profile it is managed.
            format: Of its messages. None: it must be there already, whatever its format.
            scope: Whose view this is: the main agent's, or a delegation's, which never folds.
            engine: Makes the folds; without one they are made here.
            watch: Is told what happens: usage, truncations, folds.
            before: Runs before each fold and may refuse it.
            host: What the host knows of the work under way, for the summaries.
            workspace: Where checkpoints are written for people.
            write: Writes the summaries of folds that are made here; else the log itself does.
            remember: Keeps what those summaries say for other sessions.
            author: Makes the entries; tests give it a clock.
            title: What it is about, where it is begun now; a `Title` is forgotten with its entry.
            owner: The id of the key that begins it, where it is begun now.
            new: Nobody has a session of that name yet: what is said first begins it.
        """
        author = author or Author()
        if not new:
            await begin(log, name, format, setup.profile.name, author, title, owner)
        can_fold = engine is not None or write is not None or setup.profile.fold.breadcrumb
        folding = scope == MAIN_SCOPE and can_fold
        folder = Compactor(log, setup.counter, write or from_the_log, remember)
        own = folder if engine is None else None
        mine: LocalEngine | None = None
        if engine is None:
            engine = mine = LocalEngine(log, folder)
        live = LiveView(log, name, setup, folding=folding, scope=scope, author=author)
        telling = CompactionEvents(live, watch, workspace)
        folds = Folds(live, engine, telling, before=before, host=host, folder=own)
        if new and format is not None:
            live.begin(opened(format, setup.profile.name, title, owner))
        else:
            try:
                await folds.recover()
                await live.open()
            except BaseException:
                if mine is not None:  # it may be finishing a fold that a dead process left
                    await mine.close()
                raise
        live.heard = folds.heard
        emergencies = Emergencies(live, folds, telling, remember, folder)
        return cls(live, folds, telling, mine, watch, emergencies=emergencies)

    async def catch_up(self) -> None:
        """Take in what others appended."""
        await self._following.catch_up()

    async def say(self, *payloads: bytes, mark: Mark | None = None) -> Span:
        """Append messages, each the bytes of its JSON: what the user says, what tools returned."""
        _check(payloads)
        done = await self._following.append(*map(Message, payloads), mark=mark)
        said = Span(done.first, done.last)
        await self._watching.said(said)
        return said

    async def shown(self) -> Sequence[bytes]:
        """The messages that the model would be sent now, though nothing is sent or recorded."""
        live = self._following
        await live.catch_up()
        if not self._refused and (since := self._since()) is not None:
            return since
        # Else a long past would be shortened only to be folded at once. A prompt that no request
        # can hold is no reason to fold: the next one has only a line in its place.
        if live.folding and self._prompt_fits():
            await self._folds.make_room()
        return (await self._watching.fitting(self._looked_at)).messages

    def _looked_at(self) -> Request:
        view, setup = self._following.view, self._following.setup
        looked_at = View(view.inputs, view.profile, view.plan)
        return looked_at.request(setup.budget, prompt_follows=True)

    def _prompt_fits(self) -> bool:
        view = self._following.view
        try:
            check_prompt(view.inputs, view.profile, self._following.setup.budget)
        except PromptTooLarge:
            return False
        return True

    def _since(self) -> Sequence[bytes] | None:
        """What was sent last and said since, if nothing else happened and no call is open."""
        inputs, last = self._following.view.inputs, self._last
        if (
            last is None
            or last.inputs is not inputs
            or (inputs.rows and inputs.rows[-1].has("call"))
        ):
            return None
        later = inputs.rows[inputs.at(last.request.plan.head + 1) :]
        return [*last.request.messages, *(row.payload for row in later)]

    async def note(self, note: Note, *, mark: Mark | None = None) -> int:
        """Append what no model sees; where it is."""
        return (await self._following.append(note, mark=mark)).first

    async def request(
        self,
        *,
        forced: bool = False,
        beside: Mapping[str, bytes] | None = None,
        hashes: Callable[[Request], Mapping[str, str]] = lambda _: {},
        caught_up: bool = False,
    ) -> Request:
        """What to send to the model now. Send it, then call `answer`.

        The request after a refusal folds, and sends less than what was refused; the more often it
        was refused, the less.

        Args:
            forced: The provider refused the request before for its length.
            beside: What is sent beside the messages, by name; the record has it by its hash.
            hashes: More hashes for the record, by name, of what is made of the request.
            caught_up: Something was said just now, so what others appended is known.
        """
        live = self._following
        if not caught_up:
            await live.catch_up()
        self._refused = self._refused + 1 if forced else 0
        self._last = None
        budget = self._budget()
        if not (forced and self._emergencies.on):
            check_prompt(live.view.inputs, live.view.profile, budget)
        if forced and self._emergencies.on:
            await self._emergencies.refused(self._refused)
        elif live.folding:
            await self._folds.make_room(forced=forced)
        await self._watching.looked()
        self._known = live.previous.plan.head if live.previous else 0
        request = await self._watching.fitting(lambda: live.view.request(budget))
        if request.plan.cause in _REWRITES:
            self._folds.rewritten(request.plan)
        await self._emergencies.trimmed(request.plan)
        await self._record(request, beside or {}, hashes(request))
        self._last = _Sent(request, live.view.inputs)
        first = self._requests == 0
        self._requests += 1
        for event in events(request.plan, len(request.messages), initial=first):
            self._watch(event)
        return request

    async def _record(
        self, request: Request, beside: Mapping[str, bytes], hashes: Mapping[str, str]
    ) -> None:
        """Say in the log what is sent; what goes beside the messages is stored when it is new."""
        live = self._following
        setup, previous = live.setup, live.previous
        kept = {name: Artifact.of(data, _JSON) for name, data in beside.items()}
        named = {name: one.hash for name, one in kept.items()}
        all_hashes = {**setup.hashes, **named, **hashes}
        made, artifacts = record(request, setup.model, previous=previous, hashes=all_hashes)
        new = [one for one in kept.values() if one.hash not in self._beside]
        done = await live.append(made, artifacts=(*artifacts, *new))
        self._beside = {one.hash for one in kept.values()}
        live.previous = Previous(done.first, made.chain, request.plan)

    def _budget(self) -> Budget:
        """What limits the request; after a refusal less than what was refused, folded or not."""
        live = self._following
        budget, previous = live.setup.budget, live.previous
        if not self._refused or previous is None:
            return budget
        share = TIGHTER[min(self._refused, len(TIGHTER)) - 1]
        tighter = int(share * previous.plan.account.sent)
        refused = self._refused if self._emergencies.on else 0
        if 0 < refused <= LAST:  # the profile says by how much less
            tighter = previous.plan.account.sent - 1
        learned = min(tighter, budget.learned or tighter)
        return budget._replace(learned=learned, refused=refused)

    async def answer(
        self,
        *payloads: bytes,
        usage: Usage | None = None,
        note: Note | None = None,
        mark: Mark | None = None,
    ) -> Span:
        """Append what the model answered, and what the request used and cost.

        Without `usage`, that is estimated from our own count, and marked so. A `note` says what is
        to be known of the answer beside: that it was cut off.
        """
        live = self._following
        _check(payloads)
        values = [Message(payload) for payload in payloads]
        notes = [note] if note else []
        asked = live.previous
        spent = [used(live, asked, self._known, usage, payloads)] if asked else []
        done = await live.append(*values, *notes, *spent, mark=mark)
        rows = live.view.inputs.rows
        if live.folding and rows and not rows[-1].has("call"):
            await self._folds.after_turn()
        return Span(done.first, done.last)

    def decide(self, *, forced: bool = False) -> Decision:
        """Whether the next request would fold, and why."""
        return self._folds.decide(forced=forced)

    async def compact(self, focus: str | None = None) -> Compacted:
        """Fold now. Raises FoldUnderWay, NothingToFold, FoldCancelled or FoldNotMade."""
        return await self._folds.compact(focus)

    async def cancel(self) -> bool:
        """Give up the fold that is under way; whether there was one to give up."""
        return await self._folds.cancel()

    async def preview(self) -> Preview:
        """What `compact` would do: what goes, what stays, what is lost, what it saves."""
        return await previewed(self._following, self._folds)

    @property
    def busy(self) -> bool:
        """Whether this session makes a fold itself, which would be lost with it."""
        return self._engine is not None and self._engine.busy

    async def drain(self) -> None:
        """Return when it makes no fold any more; whoever watches was told how it ended."""
        if self._engine is not None:
            await self._engine.drain()
        with suppress(StoreClosed):
            await self._following.catch_up()

    async def forecast(
        self, spans: Sequence[Span], said: bytes, *, unfold: bool = False
    ) -> Forecast:
        """How these entries would be in the next request, after the user said this.

        With `unfold`, as if the folds over them were opened. Nothing is sent or written.
        """
        return await forecast(self._following, spans, said, unfold=unfold)

    async def close(self) -> None:
        """Stop; a fold that is under way here is given up, and the log says so.

        An engine that was given to the session may serve others: who made it closes it.
        """
        if self._engine is not None:
            await self._engine.close()
        with suppress(StoreClosed):
            await self._following.catch_up()  # whoever watches is told how each fold ended


def _check(payloads: Iterable[object]) -> None:
    if not all(isinstance(payload, bytes) for payload in payloads):
        raise InvalidInput(
            "A message is not given as bytes.", "Pass its JSON: json.dumps(message).encode()."
        )
