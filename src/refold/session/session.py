"""The flow of a conversation: messages go into the log, and each request is planned from it.

    say ─▶ log ─▶ request: fold if due, plan, record ─▶ model ─▶ answer ─▶ log

A session can be open in several processes at once; each one takes in what the others append.
"""

import gc
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID, uuid4

from pydantic import JsonValue

from refold.engine import Engine, LocalEngine
from refold.errors import (
    Conflict,
    FoldError,
    InvalidInput,
    PromptTooLarge,
    StoreClosed,
    ViewTooLarge,
)
from refold.fold.checkpoints import Workspace, workspace_of
from refold.fold.compactor import Compactor, Preview, Remember, Write, from_the_log
from refold.fold.trigger import Decision
from refold.fold.undo import edit_summary, undo_fold, unfold_span
from refold.log import (
    MAIN_SCOPE,
    Artifact,
    Author,
    Cleared,
    Erased,
    Log,
    Mark,
    Message,
    Note,
    Origin,
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
from refold.session.compaction import (
    LAST_REFUSAL,
    Compacted,
    Emergencies,
    Folds,
    Hook,
    Host,
)
from refold.session.events import CompactionEvents, Watch
from refold.session.explain import Filled, Forecast, filled, forecast
from refold.session.findings import DelegateFindings
from refold.session.guards import MemoryPressure, RereadGuard
from refold.session.live_view import LiveView, begin, opening_entry
from refold.session.permissions import grant
from refold.view import Budget, Previous, Request, View, ViewInput, record, thresholds
from refold.view import events as events_of
from refold.view.project import check_prompt

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

TIGHTER = (0.9, 0.7, 0.5, 0.25)
"""After the first, second … refusal in a row: the share of the refused request's tokens that the
next one may have. Its length is how often a request is tried again."""
_JSON: Final = "application/json"

LateMessages = Callable[[], Awaitable[Sequence[bytes]]]


class Session:
    """One conversation: its log, its view, its folds. Open it with `Session.open`."""

    def __init__(  # noqa: PLR0913 - called by `open` alone
        self,
        live: LiveView,
        folds: Folds,
        events: CompactionEvents,
        engine: LocalEngine | None,
        watch: Watch,
        *,
        emergencies: Emergencies,
        findings: DelegateFindings | None = None,
    ) -> None:
        self._live = live
        self._folds = folds
        self._events = events
        self._emergencies = emergencies
        self._findings = findings
        self._engine = engine
        self._watch = watch
        self._rereads = RereadGuard(live, watch)
        self.restore_turns = 0
        """How many earlier turns the next request shows, as text; 0: what was shown before."""
        self._pressure = MemoryPressure()
        self._requests = 0
        self._refusals = 0
        """How often in a row the provider refused the request for its length."""
        self._spending = folds.spending
        self._sent: tuple[Request, ViewInput] | None = None
        """The newest request, and what it was planned over."""
        self.late_messages: LateMessages | None = None
        """Asked for what the user said while a request waited for a fold."""
        self._waited = False
        """Whether the session waited for a fold since the newest request."""
        self._stored_extras: set[str] = set()
        """The hashes of the newest request's extras: those are in the log already."""

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
        origin: Origin | None = None,
        new: bool = False,
    ) -> Self:
        """Open a session, or begin one.

        Args:
            log: The log that holds the session.
            name: Its name.
            setup: The model and the profile to manage it for.
            format: The format of its messages. None: the session must exist, in any format.
            scope: Whose view this is: the main agent's, or a delegation's, which never folds.
            engine: Makes the folds; without one the session makes them itself.
            watch: Receives events: usage, truncations, folds.
            before: Runs before each fold and may refuse it.
            host: What the host knows of the current work, for the summaries.
            workspace: Where to write checkpoints for people; by default, where the profile says.
            write: Writes the summaries of folds made here; by default they come from the log.
            remember: Stores what those summaries say for other sessions.
            author: Makes the entries; tests give it a clock.
            title: What a new session is about; a `Title` is forgotten with its entry.
            owner: The id of the key that begins a new session.
            origin: Which program begins a new session, and where it works.
            new: No session of that name exists yet: the first append begins it.
        """
        author = author or Author()
        if not new:
            await begin(log, name, format, setup.profile.name, author, title, owner, origin)
        can_fold = engine is not None or write is not None or setup.profile.fold.breadcrumb
        compactor = Compactor(log, setup.counter, write or from_the_log, remember)
        own: LocalEngine | None = None
        if engine is None:
            engine = own = LocalEngine(log, compactor, leave=True)
        can_fold = can_fold and scope == MAIN_SCOPE
        if workspace is None and can_fold and setup.profile.workspace.keep == "always":
            workspace = workspace_of(setup.profile.workspace, log, name)
        finds = write is not None and scope != MAIN_SCOPE and bool(setup.profile.trigger.generation)
        live = LiveView(
            log, name, setup, can_fold=can_fold, finds=finds, scope=scope, author=author
        )
        events = CompactionEvents(live, watch, workspace)
        delegate: DelegateFindings | None = None
        if finds and write is not None:
            delegate = DelegateFindings(live, events, write, before=before, host=host)
        counted = compactor if own is not None else None
        host = _host(workspace, host)
        folds = Folds(
            live,
            engine,
            events,
            before=before,
            host=host,
            compactor=counted,
        )
        if new and format is not None:
            live.begin(opening_entry(format, setup.profile.name, title, owner, origin))
        else:
            try:
                await folds.recover()
                await live.open()
                folds.switch(live.setup)
                await folds.rule.resume()
            except BaseException:
                if own is not None:  # it may be finishing a fold that a dead process left
                    await own.close()
                raise
        await events.sync_at_opening(new=new)
        live.on_entries = folds.observe
        emergencies = Emergencies(live, folds, events, remember, compactor)
        return cls(live, folds, events, own, watch, emergencies=emergencies, findings=delegate)

    # From a message to the next request, and back.

    async def say(self, *payloads: bytes, mark: Mark | None = None) -> Span:
        """Append messages as JSON bytes: prompts, tool results."""
        _check(payloads)
        appended = await self._live.append(*map(Message, payloads), mark=mark)
        span = Span(appended.first, appended.last)
        self._spending.reread |= await self._rereads.check(span)
        return span

    async def request(
        self,
        *,
        forced: bool = False,
        extras: Mapping[str, bytes] | None = None,
        hashes: Callable[[Request], Mapping[str, str | bytes]] = lambda _: {},
        caught_up: bool = False,
    ) -> Request:
        """What to send to the model now. Send it, then call `answer`.

        The request's record is in the log when this returns. The request after a refusal folds, or
        does what the profile's emergency says, and sends less than the refused one; less again with
        each further refusal.

        Args:
            forced: The provider refused the previous request for its length.
            extras: What is sent besides the messages, by name; the record holds its hashes.
            hashes: Makes more hashes for the record, by name; bytes are kept, too, like `extras`.
            caught_up: Skip reading what others appended, because `say` has just done so.
        """
        live = self._live
        if not caught_up:
            await live.catch_up()
        self._refusals = self._refusals + 1 if forced else 0
        self._sent = None
        if live.can_fold and self._pressure.due(live.setup.profile.trigger, live.view.inputs):
            await self.relieve()
        budget = self._budget()
        if forced and self._emergencies.on:
            await self._emergencies.refused(self._refusals)
        else:
            check_prompt(live.view.inputs, live.view.profile, budget)
            if live.can_fold:
                self._waited |= await self._folds.make_room(forced=forced, budget=budget)
            elif self._findings is not None:
                await self._findings.make_room(forced=forced, budget=budget)
        if self._waited:
            self._waited = False
            await self._say_late()
        await self._rereads.unpin_after_fold()
        request = await self._rereads.plan_or_unpin(lambda: live.view.request(budget))
        await self._emergencies.trimmed(request.plan)
        self._spending.planned(request)
        before = live.previous
        self._folds.rule.planned(before and before.plan, before.seq if before else 0, request)
        more = hashes(request)
        kept = {name: value for name, value in more.items() if isinstance(value, bytes)}
        named = {name: value for name, value in more.items() if isinstance(value, str)}
        await self._record(request, {**(extras or {}), **kept}, named)
        self._sent, self.restore_turns = (request, live.view.inputs), 0
        first = self._requests == 0
        self._requests += 1
        for event in events_of(request.plan, len(request.messages), initial=first):
            self._watch(event)
        return request

    async def _say_late(self) -> None:
        """Add what the user said while the request waited for a fold."""
        if self.late_messages is not None and (late := await self.late_messages()):
            await self.say(*late)

    def _budget(self) -> Budget:
        """What limits the request; after a refusal, less than the refused one, folded or not."""
        budget = self._live.setup.budget._replace(restored=self.restore_turns)
        previous = self._live.previous
        if not self._refusals or previous is None:
            return budget
        sent = previous.plan.account.sent
        tighter = int(TIGHTER[min(self._refusals, len(TIGHTER)) - 1] * sent)
        refused = self._refusals if self._emergencies.on else 0
        if 0 < refused <= LAST_REFUSAL:  # the profile says by how much less
            tighter = sent - 1
        learned = min(tighter, budget.learned or tighter)
        return budget._replace(learned=learned, refused=refused)

    async def _record(
        self, request: Request, extras: Mapping[str, bytes], hashes: Mapping[str, str]
    ) -> None:
        live = self._live
        stored = {name: Artifact.of(data, _JSON) for name, data in extras.items()}
        named = {name: artifact.hash for name, artifact in stored.items()}
        all_hashes = {**live.setup.hashes, **named, **hashes}
        value, artifacts = record(
            request, live.setup.model, previous=live.previous, hashes=all_hashes
        )
        new = [each for each in stored.values() if each.hash not in self._stored_extras]
        appended = await live.append(value, artifacts=(*artifacts, *new))
        self._stored_extras = {*named.values()}
        live.previous = Previous(appended.first, value.chain, request.plan)
        live.other_model = False

    async def answer(
        self,
        *payloads: bytes,
        usage: Usage | None = None,
        note: Note | None = None,
        notes: Sequence[Note] = (),
        mark: Mark | None = None,
        key: str | None = None,
    ) -> Span:
        """Append what the model answered, and what the request used and cost.

        Without `usage`, it is estimated from our own count and marked so. A `note` adds what else
        is known of the answer, such as that it was cut off; `notes` come right after the answer.
        `key` is the id of the service's key that the request came with.
        """
        live = self._live
        _check(payloads)
        notes = [*notes, *([note] if note else [])]
        sent, rule = live.previous, self._folds.rule
        used = [self._spending.used(sent, usage, payloads, key, rule.ruled())] if sent else []
        appended = await live.append(*map(Message, payloads), *notes, *used, mark=mark)
        rows = live.view.inputs.rows
        if live.can_fold and rows and not rows[-1].has("call"):
            await self._folds.after_turn()
        return Span(appended.first, appended.last)

    async def note(self, note: Note, *, mark: Mark | None = None) -> int:
        """Append a note that no model sees; returns its entry."""
        return (await self._live.append(note, mark=mark)).first

    async def allow(self, tool: str, *, allowed: bool = True) -> int:
        """Write down that the user allows a tool that needs permission, or no longer does."""
        return await self.note(grant(tool, allowed=allowed))

    async def next_messages(self) -> Sequence[bytes]:
        """The messages that the model would be sent now; nothing is sent or recorded."""
        live = self._live
        await live.catch_up()
        inputs = live.view.inputs
        if not self._refusals and self._sent is not None and self._sent[1] is inputs:
            request = self._sent[0]
            if not (inputs.rows and inputs.rows[-1].has("call")):
                later = inputs.rows[inputs.at(request.plan.head + 1) :]
                return [*request.messages, *(row.payload for row in later)]
        # Else a long past would be shortened only to be folded at once. A prompt that no request
        # can hold is no reason to fold: the next one has only a line in its place.
        if live.can_fold and self._prompt_fits():
            self._waited |= await self._folds.make_room()
        return (await self._rereads.plan_or_unpin(self._next_request)).messages

    def _prompt_fits(self) -> bool:
        view = self._live.view
        try:
            check_prompt(view.inputs, view.profile, self._live.setup.budget)
        except PromptTooLarge:
            return False
        return True

    def _next_request(self) -> Request:
        view = self._live.view
        copy = View(view.inputs, view.profile, view.plan)
        budget = self._live.setup.budget._replace(restored=self.restore_turns)
        return copy.request(budget, prompt_follows=True)

    async def forecast(
        self, spans: Sequence[Span], said: bytes, *, unfold: bool = False
    ) -> Forecast:
        """How these entries would appear in the next request, after the user says this.

        With `unfold`, as if the folds over them were unfolded. Nothing is sent or written.
        """
        return await forecast(self._live, spans, said, unfold=unfold)

    async def catch_up(self) -> None:
        """Take in what others appended."""
        await self._live.catch_up()

    # The session's state, as far as its log has been read.

    @property
    def name(self) -> str:
        """The name that its log is stored under."""
        return self._live.name

    @property
    def setup(self) -> Setup:
        """The model and the profile that it is managed for now."""
        return self._live.setup

    @property
    def head(self) -> int:
        """The newest entry that this view has taken in."""
        return self._live.head

    @property
    def inputs(self) -> ViewInput:
        """What its view is planned over."""
        return self._live.view.inputs

    @property
    def messages(self) -> list[bytes]:
        """The messages that are not folded, as they were said."""
        return [row.payload for row in self.inputs.rows]

    @property
    def record(self) -> int:
        """The entry that records the newest request; 0 before the first."""
        return self._live.previous.seq if self._live.previous else 0

    @property
    def answered(self) -> int:
        """The newest entry up to which everything was answered."""
        rows = reversed(self.inputs.rows)
        return next((row.seq for row in rows if row.role == "assistant"), 1)

    @property
    def workspace(self) -> Workspace | None:
        """Where its checkpoints are written and descriptions of the current work are read."""
        return self._events.workspace

    def trace_with(self, tracer: "Tracer") -> None:
        """Record the spans of its folds with this tracer, rather than the program's own."""
        self._events.spans.tracer = tracer

    @property
    def shows_less(self) -> bool:
        """Whether the model is sent less than the full history, by folds or cuts."""
        plan = self._live.view.plan
        return bool(self.inputs.foldings) or (plan is not None and plan.shortened)

    @property
    def filled(self) -> Filled:
        """How many tokens the next request would have now, and of what."""
        return filled(self._live)

    # Folds.

    @property
    def folding(self) -> bool:
        """Whether a fold is running, here or in another process."""
        return self._folds.running is not None

    def decide(self, *, forced: bool = False) -> Decision:
        """Whether the next request would fold, and why."""
        return self._folds.decide(forced=forced)

    def allow_folds(self, *, summarizer: bool, on: bool = True) -> None:
        """Set whether a model is available for summaries now; without `on`, nothing folds.

        Without one, a profile whose summaries only models write does not fold by itself: its fixed
        limits apply. Where a model is only asked if there is one, the log writes them.
        """
        live = self._live
        live.has_summarizer = summarizer
        on = on and (summarizer or live.setup.profile.fold.breadcrumb)
        live.allow_folds(on=on and live.scope == MAIN_SCOPE)

    async def compact(self, focus: str | None = None, *, extractive: bool = False) -> Compacted:
        """Fold now; `extractive`: from the log alone, whatever the profile says.

        Raises FoldUnderWay, NothingToFold, FoldCancelled or FoldNotMade.
        """
        result = await self._folds.compact(focus, extractive=extractive)
        await self._report_usage()
        return result

    async def _report_usage(self) -> None:
        """After a fold that no request follows: report how full the window is now."""
        with suppress(ViewTooLarge):
            request = await self._rereads.plan_or_unpin(self._next_request)
            self._watch(events_of(request.plan, len(request.messages))[0])

    async def preview(self) -> Preview:
        """What `compact` would do: what goes, what stays, what is lost, what it saves."""
        return await self._folds.preview()

    async def cancel(self) -> bool:
        """Cancel the running fold; whether there was one to cancel."""
        return await self._folds.cancel()

    async def unfold(self, span: Span) -> None:
        """Show these entries again; the folds over them keep standing for the rest."""
        live = self._live
        await live.catch_up()
        while True:
            inputs = live.view.inputs
            outline, head = inputs.outline, inputs.head  # a fold may end while we read below these
            values = await unfold_span(live.log, live.name, outline, span, uuid4, live.weight_of)
            try:
                await live.append(*values, expected=head)
            except Conflict:
                await live.catch_up()
            if not live.is_folded(span):
                break
        self._folds.hold()
        await self._events.sync_checkpoints()

    async def take_back(self, fold: UUID | None = None) -> None:
        """Undo a fold, by default the newest: the messages it stood for are shown again.

        Raises `InvalidEntry` for a fold that another one was made over.
        """
        live = self._live
        await live.catch_up()
        while True:
            inputs = live.view.inputs
            values = undo_fold(inputs.outline, fold)
            try:
                await live.append(*values, expected=inputs.head)
                break
            except Conflict:  # the newest fold may be another one by now
                await live.catch_up()
        self._folds.hold()
        await self._events.sync_checkpoints()

    async def edit_summary(self, fold: UUID, text: str) -> UUID:
        """Replace a fold's summary by a person's words; returns the fold that supersedes it.

        The model is shown them as the user's words. The old fold stays in the log.
        """
        live, made = self._live, uuid4()
        await live.catch_up()
        while True:
            inputs = live.view.inputs
            outline, head = inputs.outline, inputs.head
            values = await edit_summary(live.log, live.name, outline, fold, text, lambda: made)
            try:
                await live.append(*values, expected=head)
                break
            except Conflict:
                await live.catch_up()
        await self._events.sync_checkpoints()
        return made

    async def relieve(self) -> bool:
        """Under memory pressure: collect garbage and fold; whether a fold was made."""
        gc.collect()
        await self._folds.settle()
        try:
            await self._folds.compact(cause="memory pressure")
        except FoldError:
            return False
        await self._report_usage()
        return True

    # Steering: each is an entry of the log, and only `forget` loses anything.

    async def rewind(self, to: int, *, mark: Mark | None = None) -> int:
        """Show the session as it was when entry `to` was the newest. Nothing is deleted.

        Returns the entry that records it.
        """
        appended = await self._live.append(Rewound(to), mark=mark)
        await self._events.sync_checkpoints()
        return appended.first

    async def clear(self) -> None:
        """Start the view afresh; the log keeps everything."""
        await self._live.append(Cleared())
        await self._events.sync_checkpoints()

    async def pin(self, *parts: PartRef) -> None:
        """Keep these parts in the view, folded or not."""
        await self._live.append(Pinned(parts))

    async def unpin(self, *parts: PartRef) -> None:
        """Stop keeping these parts in the view."""
        await self._live.append(Unpinned(parts))

    async def fork(self, new: str, *, at: int | None = None) -> SessionInfo:
        """Begin another session as this one was at entry `at`, or is now."""
        return await self._live.log.fork(self._live.name, new, at=at)

    async def forget(self, span: Span) -> Erased:
        """Erase these entries for good, with every fold, record, fact and title made of them."""
        live = self._live
        await live.catch_up()  # what is forgotten now cannot be reported later
        erased = await forget(live.log, live.name, span)
        await live.catch_up()
        await self._events.sync_checkpoints()
        return erased

    def must_fold_for(self, setup: Setup) -> bool:
        """Whether the view is too large for another model, so that a switch folds first."""
        view = self._live.view
        instructions = view.inputs.instructions
        marks = thresholds(
            setup.profile, setup.budget, setup.counter.spread, instructions=instructions
        )
        return view.size(setup.budget) + marks.floor >= (marks.hard or marks.limit)

    async def switch(self, setup: Setup) -> None:
        """Continue with another model; if its window is too small for the view, fold first.

        The same model with another budget folds at its next request, if it must.
        """
        other = setup.model != self._live.setup.model and self._live.can_fold
        if other and self.must_fold_for(setup):
            await self._folds.settle()
        if other and self.must_fold_for(setup):
            with suppress(FoldError):  # then requests leave out what does not fit
                await self._folds.compact(cause="model switch", setup=setup)
        self._folds.switch(setup)
        await self._live.switch(setup)

    # The end.

    @property
    def busy(self) -> bool:
        """Whether this session makes a fold itself, which would be lost with it."""
        return self._engine is not None and self._engine.busy

    async def drain(self) -> None:
        """Wait until it makes no fold any more and watchers have received how it ended."""
        if self._engine is not None:
            await self._engine.drain()
        with suppress(StoreClosed):
            await self._live.catch_up()

    async def close(self) -> None:
        """Stop; a fold that is made here is left to the next process that opens the session.

        An engine that was given to the session may serve others: its owner closes it.
        """
        if self._engine is not None:
            await self._engine.close()
        with suppress(StoreClosed):
            await self._live.catch_up()  # watchers receive how each fold ended


def _host(workspace: Workspace | None, host: Host) -> Host:
    """What is known about the work, from the host or, where it says nothing, the workspace."""
    if workspace is None:
        return host

    def known() -> Mapping[str, JsonValue]:
        with suppress(OSError):
            return {**workspace.work(), **host()}
        return host()

    return known


def _check(payloads: Iterable[object]) -> None:
    if not all(isinstance(payload, bytes) for payload in payloads):
        raise InvalidInput(
            "A message is not given as bytes.", "Pass its JSON: json.dumps(message).encode()."
        )
