"""The folds of a session: when they begin, who waits for them, and what comes of them.

Also what leaves the view without a fold, after a provider refused a request for its length.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID, uuid4

from pydantic import JsonValue

from refold.engine import Ended, Engine, LocalEngine, LocalSteps
from refold.engine.protocol import CANCELLED, reason_of
from refold.errors import (
    Conflict,
    FoldCancelled,
    FoldNotMade,
    FoldUnderWay,
    InvalidEntry,
    InvalidInput,
    NothingToFold,
    RefoldError,
)
from refold.fold.compactor import (
    AUTO,
    MANUAL,
    Compactor,
    Preview,
    Remember,
    context,
    folded_before,
    preview,
)
from refold.fold.economics import Worth
from refold.fold.events import CompactionWait
from refold.fold.job import Job
from refold.fold.material import Boundary, boundary, everything, left_out, needed, state_of
from refold.fold.summary import Summary, clipped, parse
from refold.fold.trigger import (
    Decision,
    Pressure,
    decide,
    decide_for_left_out,
    sized,
    smaller_than,
)
from refold.fold.undo import unfold_span
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Log,
    Span,
    Value,
)
from refold.log.entry import spans_of, subtract
from refold.memory import OVERFLOW, Leaving
from refold.models.catalog import Usage, cost_of
from refold.models.experience import Setup
from refold.session.events import CompactionEvents
from refold.session.explain import besides_messages, last_model
from refold.session.guards import Guards, Recovery
from refold.session.live_view import LiveView
from refold.session.savings import FoldRule, price_of, worth_of
from refold.session.spending import Spending
from refold.telemetry import Instrumented
from refold.view import Budget, Fold, Keep, Plan, Profile, Thresholds, ViewInput, Window
from refold.view.budget import GAIN, PER_MESSAGE, effective_limit
from refold.view.view_input import weight

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter

Hook = Callable[[Job], Awaitable[None]]
"""Runs before a fold is made, and may refuse it by raising an error."""
Host = Callable[[], Mapping[str, JsonValue]]
"""What the host knows of the current work: plan, todo, skills, agent."""

REREADS: Final = "rereads"
"""The trigger of what takes out of the view what was read back from folds that were undone."""
LAST_REFUSAL: Final = 2
"""The refusal after which the view is cleared."""
_END_KINDS: Final = {FoldCompleted.KIND, FoldFailed.KIND}
_MANUAL_CAUSES: Final = {MANUAL, "model switch", "memory pressure"}


def _wait_histogram(meter: "Meter") -> "Histogram":
    return meter.create_histogram(
        "refold.fold.wait.duration",
        "s",
        "How long requests waited for a fold, by the mark that they had reached.",
        explicit_bucket_boundaries_advisory=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    )


WAITS: Final = Instrumented(_wait_histogram)


@dataclass(frozen=True, slots=True)
class Compacted:
    """What `Session.compact` did, and with which summary."""

    fold: UUID
    messages_removed: int
    """For how many messages the summary stands, with those of the folds beneath it."""
    tokens_removed: int
    summary: Summary
    checkpoint: int | None = None
    """The number of its checkpoint, if checkpoints are written."""
    checkpoint_path: str | None = None
    folded: int = 0
    """Of the messages, those that an earlier fold had replaced already."""


def fold_values(setup: Setup, budget: Budget | None = None) -> Fold:
    budget = budget or setup.budget
    return sized(setup.profile, effective_limit(setup.profile, budget) - budget.floor)


def folds_what_is_left_out(profile: Profile) -> bool:
    """Whether requests are cut at once, and a fold of what was left out follows."""
    trigger = profile.trigger
    automatic = trigger.messages or trigger.turns or trigger.tokens
    return profile.fold.apply == "next turn" and bool(automatic) and profile.window.limits


def system_text(live: LiveView, max_chars: int) -> str:
    """The model's instructions and system content, up to `max_chars` characters.

    Before the process's first request, the instructions are those of the newest message with any.
    """
    if not max_chars:
        return ""
    inputs = live.view.inputs
    described = [
        inputs.wire.describe(row.payload)
        for row in inputs.rows
        if row.has("system") or row.instructions
    ]
    newest = next((one.instructions for one in reversed(described) if one.instructions), "")
    system = [shape.text for one in described for shape in one.shapes if shape.kind == "system"]
    return clipped(
        "\n\n".join(filter(None, [live.setup.instructions or newest, *system])), max_chars
    )


def automatic_boundary(live: LiveView, values: Fold, *, forced: bool = False) -> Boundary:
    """What an automatic fold replaces.

    After a refusal, that is whatever can be folded: if the profile's own cut leaves nothing,
    everything except the last turn, or except the open step.
    """
    inputs, profile = live.view.inputs, live.setup.profile
    if folds_what_is_left_out(profile) and not forced:
        where = left_out(inputs, live.view.plan)
        if where.messages:
            return where
    where = boundary(inputs, values.keep, profile.trigger)
    if where.messages or not forced:
        return where
    last_turn = values.keep.model_copy(update={"unit": "turns", "amount": 0, "least": 1})
    where = boundary(inputs, last_turn)
    return where if where.messages else boundary(inputs, Keep())


class CompactionSchedule:
    """Decides when to fold; a failed fold is not tried again at once."""

    def __init__(self, live: LiveView, rule: FoldRule) -> None:
        self._live = live
        self._rule = rule
        self._retry_at = 0
        """After a failure: the tokens of the whole session at which to try again."""
        self._held_at = 0
        """The tokens of the whole session when it failed."""

    def decide(self, *, running: bool, forced: bool, budget: Budget | None = None) -> Decision:
        live, view = self._live, self._live.view
        if live.session_tokens < self._held_at:  # cleared or rewound since: another past
            self._retry_at = self._held_at = 0
        setup, inputs, marks = live.setup, view.inputs, live.thresholds
        shown = sum(len(fold.shown) for fold in inputs.foldings if not fold.merged)
        pressure = Pressure(
            self._size() + marks.floor,
            len(inputs.rows) + shown,
            len(inputs.turns),
            marks.floor,
            gain=marks.limit,
            foldable=len(inputs.rows),
            whole=live.session_tokens,
            again=self._retry_at,
        )
        later = setup.profile.fold.apply == "next turn"
        decided = partial(
            decide,
            setup.profile.trigger,
            marks,
            limits=Window() if later else setup.profile.window,
            running=running,
            inline=setup.profile.fold.apply == "inline",
            forced=forced,
            set_limits=setup.profile.set_limits,
        )
        worth = self._worth(pressure.tokens, marks, budget) if not running else None
        decided = partial(decided, worth=worth)
        first = decided(pressure)._replace(worth=worth)
        if folds_what_is_left_out(setup.profile) and not (forced or first.by_share):
            messages = left_out(inputs, view.plan).messages
            return decide_for_left_out(pressure._replace(foldable=messages), first, running=running)
        if first.act == "continue":
            return first
        values = fold_values(setup, budget)
        # Costly, so only when there is a reason to fold.
        where = automatic_boundary(live, values, forced=forced)
        sent = where.tokens - view.omitted(where.spans, setup.budget)
        pressure = pressure._replace(gain=sent - values.max_tokens, foldable=where.messages)
        return decided(pressure)._replace(worth=worth)

    def _worth(self, tokens: int, marks: Thresholds, budget: Budget | None) -> Worth | None:
        """What a fold would cost and save; None where the profile does not look at that.

        Nothing is known of the cache before a session's first request, which is sent as it is.
        """
        trigger, rule = self._live.setup.profile.trigger, self._rule
        if not (trigger.savings or rule.on) or not self._live.previous:
            return None
        if tokens - marks.floor < trigger.at_least:
            return None
        values = fold_values(self._live.setup, budget)
        where = automatic_boundary(self._live, values)
        return worth_of(self._live, where, tokens, values, rule) if where.messages else None

    def record_result(self, *, failed: bool) -> None:
        """After a failure, the profile's fixed limits apply until a fold is made."""
        if failed:
            self.hold()
        else:
            self._retry_at, self._held_at = 0, self._live.session_tokens
        self._live.limit(on=failed)

    def hold(self) -> None:
        """Do not make the same fold again until there is more to gain."""
        self._held_at = self._live.session_tokens
        self._retry_at = self._held_at + int(GAIN * self._size())

    def _size(self) -> int:
        """The tokens of the next request's messages, with what fixed limits leave out."""
        live, view = self._live, self._live.view
        if live.setup.profile.window.limits:
            return view.size_without_limits(live.setup.budget)
        return view.size(live.setup.budget)


class Folds:
    """Starts the folds of one session and follows them to their end."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        live: LiveView,
        engine: Engine,
        events: CompactionEvents,
        *,
        before: Hook | None = None,
        host: Host = dict,
        compactor: Compactor | None = None,
    ) -> None:
        self._live = live
        self.spending = Spending(live)
        self.rule = FoldRule(live, self.spending)
        self._engine = engine
        self._events = events
        self._before = before
        self.host = host
        self._compactor = compactor
        self._schedule = CompactionSchedule(live, self.rule)
        self._guards = Guards(events.report)
        self._recovery = Recovery(live, engine)
        self._manual: set[UUID] = set()
        self._tokens_before: dict[UUID, int] = {}
        """What the folded messages took up in the view, in tokens."""

    @property
    def running(self) -> UUID | None:
        """The fold that is being made, here or in another process."""
        running = self._live.running
        return running[0].fold if running else None

    async def recover(self) -> None:
        await self._recovery.recover()

    def decide(self, *, forced: bool = False, budget: Budget | None = None) -> Decision:
        running = self.running is not None
        return self._schedule.decide(running=running, forced=forced, budget=budget)

    async def make_room(self, *, forced: bool = False, budget: Budget | None = None) -> bool:
        """Before a request: start a fold if it is due, or wait for the running one.

        With `forced` the provider refused the request before, and `budget` is what it leaves.
        Returns whether it has waited.
        """
        self._recovery.poll(self.running)
        if not forced and self.running is None and self.rule.must_unfold:
            await self._unfold_all()
        decision = self.decide(forced=forced, budget=budget)
        self._guards.decided(decision)
        later = self._live.setup.profile.fold.apply == "next turn"
        if decision.act == "continue" or (decision.act == "start" and later):
            return False
        await self._act(decision, budget)
        return decision.act == "wait"

    async def _unfold_all(self) -> None:
        """Undo all folds, and take what was read back because of them out of the view.

        The newest step stays: the model has just asked for it.
        """
        live, price = self._live, self.rule.unfolding
        try:
            while live.view.inputs.foldings:  # a fold beneath the others may show only then
                outline, head = live.view.inputs.outline, live.head
                span, weigh = Span(1, head), live.weight_of
                values = await unfold_span(live.log, live.name, outline, span, uuid4, weigh)
                await live.append(*values, expected=head)
        except (Conflict, InvalidInput):  # the next request looks again
            await live.catch_up()
            return
        self.rule.undone(price)
        self._guards.unfolded("reading back what was folded cost as much as undoing the folds")
        rows = self.spending.steps_read_back()
        if rows:
            spans = spans_of(row.seq for row in rows)
            summary = Summary(REREADS, messages=len(rows), tokens=sum(map(weight, rows)))
            shown: dict[str, JsonValue] = {"shown": []}  # so that its tokens count
            body = cast("dict[str, JsonValue]", summary.as_json()) | shown
            fold = uuid4()
            with suppress(InvalidEntry):  # it was rewound meanwhile
                await live.append(
                    FoldStarted(fold, spans, REREADS), FoldCompleted(fold, spans, body)
                )

    async def after_turn(self) -> None:
        """Start a fold that takes effect from the next turn on, where the profile says so."""
        if self._live.setup.profile.fold.apply == "next turn":
            decision = self.decide()
            if decision.act != "continue":
                await self._act(decision._replace(act="start"))

    async def compact(
        self,
        focus: str | None = None,
        *,
        cause: str = MANUAL,
        setup: Setup | None = None,
        extractive: bool = False,
    ) -> Compacted:
        """Fold because somebody asked for it, and wait for the end.

        With `setup`, the summary is made to suit another model; with `extractive`, without one.

        Raises FoldUnderWay, NothingToFold, FoldCancelled or FoldNotMade; then nothing has changed.
        """
        await self._live.catch_up()
        if self.running is not None:
            raise FoldUnderWay("A fold of this session is being made.")
        where = self._manual_boundary(cause)
        try:
            values = fold_values(setup or self._live.setup)
            fold = await self._begin(where, cause, focus, values, at_once=extractive)
        except RefoldError:
            raise
        except Exception as error:
            raise FoldNotMade(f"The fold was refused: {reason_of(error)}.") from error
        if fold is None:
            raise FoldUnderWay("A fold of this session is being made elsewhere.")
        self._events.report(CompactionWait(cause))
        ended = await self._engine.wait(self._live.name, fold)
        await self._live.catch_up()
        return self._result(fold, ended, where)

    def _result(self, fold: UUID, ended: Ended | None, where: Boundary) -> Compacted:
        event = self._events.last
        if ended is None or not ended.completed or event is None or event.fold != str(fold):
            reason = ended.reason if ended and ended.reason else "it came to no end"
            if reason == CANCELLED:
                raise FoldCancelled("The fold was canceled.")
            what = reason.removeprefix(f"{FoldNotMade.__name__}: ")
            what = what if what != reason else f"The fold could not be made: {reason}"
            raise FoldNotMade(f"{what.rstrip('.')}.")
        summary = parse(ended.summary)
        return Compacted(
            fold,
            event.messages_removed,
            event.tokens_removed,
            summary,
            event.checkpoint,
            event.checkpoint_path,
            folded_before(where, summary),
        )

    async def preview(self) -> Preview:
        live = self._live
        await live.catch_up()
        where = self._manual_boundary(MANUAL)
        view, setup, inputs = live.view, live.setup, live.view.inputs
        sent = where._replace(tokens=where.tokens - view.omitted(where.spans, setup.budget))
        job_context = context(
            smaller_than(fold_values(setup), sent.tokens),
            self.host(),
            where.whole,
            model=setup.model,
            summarizer=setup.profile.summarizer,
        )
        job = Job(live.name, uuid4(), where.spans, MANUAL, context=job_context)
        offers = await self._compactor.offers(job) if self._compactor else ()
        summary = parse(await Compactor(live.log, setup.counter)(job, LocalSteps()))
        size = view.size(setup.budget, prompt_follows=True)
        result = preview(sent, summary, size, len(inputs.rows), setup.counter)
        result = result._replace(besides=besides_messages(live))
        before, after = result.request_before, result.request_after
        by_log = self._compactor is not None and not offers
        unknown = bool(offers) and offers[0].dollars is None
        summary = 0.0 if by_log else offers[0].dollars if offers else None
        return result._replace(
            price=None if unknown else price_of(live, sent, before, after, summary),
            cost_before=cost_of(Usage(before, cache_read=before), setup.prices),
            cost_after=cost_of(Usage(after, cache_read=after), setup.prices),
            cost_once=cost_of(Usage(after, cache_write=after), setup.prices),
            offers=offers,
            by_log=by_log,
        )

    def _manual_boundary(self, cause: str) -> Boundary:
        live, trigger = self._live, self._live.setup.profile.trigger
        if trigger.after_request and live.previous is None:
            raise NothingToFold(
                "No request of this session was built yet, so the instructions that the model "
                "works under are not known.",
                "Send a message first.",
            )
        min_messages = trigger.min_messages_manual
        where = manual_boundary(
            live.view.inputs,
            fold_values(live.setup),
            min_messages,
            everything_too=cause == MANUAL,
        )
        if not where.spans:
            raise NothingToFold("There is nothing to summarize yet.")
        return where

    async def settle(self) -> None:
        """Wait for the running fold, as long as a request would."""
        live = self._live
        await live.catch_up()
        if self.running is not None:
            self._events.report(CompactionWait("under way"))
            await self._engine.wait(live.name, self.running, live.setup.profile.fold.wait)
            await live.catch_up()

    def switch(self, setup: Setup) -> None:
        if self._compactor is not None:
            self._compactor.counter = setup.counter

    async def cancel(self) -> bool:
        await self._live.catch_up()
        fold = self.running
        if fold is None:
            return False
        ended = await self._engine.cancel(self._live.name, fold)
        await self._live.catch_up()
        return ended is not None and not ended.completed

    def hold(self) -> None:
        self._schedule.hold()

    async def observe(self, entries: Sequence[Entry]) -> None:
        """Take note of how folds ended, so that a failed one is not tried again at once."""
        self.rule.observe(entries)
        self.switch(self._live.setup)  # another program's requests may have changed the counter
        await self._events.observe(entries)
        for entry in entries:
            match CODEC.decode(entry) if entry.kind in _END_KINDS else None:
                case FoldCompleted(fold, summary=summary):
                    self._completed(fold, parse(summary))
                case FoldFailed(fold, reason) if fold not in self._manual:
                    self._guards.failed(reason)
                    self._schedule.record_result(failed=True)
                case _:
                    pass

    def _completed(self, fold: UUID, summary: Summary) -> None:
        self._schedule.record_result(failed=False)
        before = self._tokens_before.pop(fold, None)
        counter = self._live.setup.counter
        shown = sum(counter.text(message.text) + PER_MESSAGE for message in summary.shown)
        freed = None if before is None or fold in self._manual else before - shown
        if not self._guards.completed(summary, freed):
            self.hold()  # it freed nothing, so another one right away would not either

    async def _act(self, decision: Decision, budget: Budget | None = None) -> None:
        cause = decision.why[0].what
        # Who chose no summarizer does not wait for one either.
        profile = self._live.setup.profile
        at_once = decision.act == "wait" and profile.summarizer == AUTO and profile.fold.breadcrumb
        fold = self.running or await self._try_begin(cause, at_once=at_once, budget=budget)
        if fold is None or decision.act != "wait":
            return
        if not await self._wait(fold, cause):
            await self._replace_slow(fold, cause)

    async def _wait(self, fold: UUID, cause: str) -> bool:
        """Wait for a fold, as long as a request may; whether it has ended."""
        live = self._live
        self._events.report(CompactionWait(cause))
        start = perf_counter()
        try:
            ended = await self._engine.wait(live.name, fold, live.setup.profile.fold.wait)
            await live.catch_up()
        finally:
            if (waits := WAITS.installed()) is not None:
                waits.record(perf_counter() - start, {"refold.fold.trigger": cause})
        return ended is not None

    async def _replace_slow(self, slow: UUID, cause: str) -> None:
        """Cancel a fold that took too long, and make an extractive one where the profile allows.

        Otherwise the next request does not wait for it again.
        """
        live = self._live
        if not live.setup.profile.fold.breadcrumb or await self._is_manual(slow):
            self._schedule.record_result(failed=True)
            return
        await self._engine.cancel(live.name, slow)
        await live.catch_up()
        if automatic_boundary(live, fold_values(live.setup), forced=cause == "forced").messages:
            fold = await self._try_begin(cause, at_once=True)
            if fold is not None and not await self._wait(fold, cause):
                self._schedule.record_result(failed=True)

    async def _is_manual(self, fold: UUID) -> bool:
        """Whether somebody asked for the running fold, here or in another process."""
        live = self._live
        seq = next((running.seq for running in live.running if running.fold == fold), None)
        entries = await live.log.read(live.name, Span(seq, seq)) if seq else []
        values = map(CODEC.decode, entries)
        return any(isinstance(x, FoldStarted) and x.trigger in _MANUAL_CAUSES for x in values)

    async def _try_begin(
        self, cause: str, *, at_once: bool = False, budget: Budget | None = None
    ) -> UUID | None:
        """Begin a fold that nobody asked for: if that fails, the request goes on without it."""
        values = fold_values(self._live.setup, budget)
        where = automatic_boundary(self._live, values, forced=cause == "forced")
        try:
            return await self._begin(where, cause, None, values, at_once=at_once)
        except Exception:  # noqa: BLE001 - whatever it is, it was reported as an event
            self._schedule.record_result(failed=True)
            return None

    async def _begin(
        self, where: Boundary, cause: str, focus: str | None, values: Fold, *, at_once: bool = False
    ) -> UUID | None:
        live, setup = self._live, self._live.setup
        fold = uuid4()
        sent = where.tokens - live.view.omitted(where.spans, setup.budget)
        summarizer = setup.profile.summarizer
        if summarizer == AUTO and not live.has_summarizer:
            summarizer = ""
        job_context = context(
            smaller_than(values, sent),
            self.host(),
            where.whole,
            model=setup.model,
            summarizer=summarizer,
            at_once=at_once,
            system="" if at_once else system_text(live, values.system_chars),
            shared=setup.profile.delegates == "shared",
        )
        needs = needed(where.spans, live.view.inputs.outline) if self.running is None else None
        job = Job(live.name, fold, where.spans, cause, focus, job_context, live.head, needs)
        if self.running is None:
            size = live.view.size(setup.budget) + live.thresholds.floor
            self.rule.began(where, size, values)
        self._events.report_start(fold, cause)
        # A fold of what requests already leave out frees nothing, but is still useful.
        self._tokens_before = {fold: sent} if sent > 0 else {}
        if cause in _MANUAL_CAUSES:
            self._manual.add(fold)
        try:
            if hooks := setup.profile.hooks.pre_compact:
                from refold.session.hooks import run_hooks  # noqa: PLC0415 - few have any

                await run_hooks(hooks, job)
            if self._before is not None:
                await self._before(job)
            started = await self._engine.start(job)
        except BaseException as error:
            self._events.report_failure(fold, reason_of(error))
            raise
        if not started:
            self._events.report_failure(fold, "another fold is under way")
            return None
        await live.catch_up()
        return fold


async def preview_of(log: Log, session: str, setup: Setup) -> Preview:
    """What a fold of a session would do now, read from its log; nothing is written."""
    return await (await _folds_of(log, session, setup)).preview()


async def worth_now(log: Log, session: str, setup: Setup) -> Worth | None:
    """Whether a fold would pay before the next request; None where the profile doesn't weigh it."""
    folds = await _folds_of(log, session, setup)
    await folds.rule.resume()
    return folds.decide().worth


async def _folds_of(log: Log, session: str, setup: Setup) -> Folds:
    live = LiveView(log, session, setup, can_fold=True)
    await live.open()
    live.other_model = await last_model(log, session) != setup.model
    compactor = Compactor(log, setup.counter)
    events = CompactionEvents(live, lambda _: None, None)
    return Folds(live, LocalEngine(log, compactor), events)


def manual_boundary(
    inputs: ViewInput, values: Fold, min_messages: int, *, everything_too: bool
) -> Boundary:
    """What a fold that is asked for stands for: all but the last turn.

    Where there is only one turn, or a profile shows nothing besides its summary: all of it, once
    the turn is over.
    """
    rows = inputs.rows
    if len(rows) < min_messages or inputs.scope != MAIN_SCOPE:
        return Boundary()
    over = bool(rows) and rows[-1].role == "assistant"
    over = over and not any(rows[index].has("call") for index in inputs.step(inputs.steps[-1]))
    alone = values.placement == "message" or len(inputs.turns) < 2  # noqa: PLR2004 - one turn
    if everything_too and over and alone:
        return everything(inputs)
    keep = values.keep.model_copy(update={"unit": "turns", "amount": 0, "least": 1})
    where = boundary(inputs, keep)
    return where if where.messages else boundary(inputs, Keep())


class Emergencies:
    """What leaves the view without a fold: after a refusal, or by fixed limits.

    Where the profile has an emergency, the first refusal of a request has everything remembered
    and the next request cut hard. The second clears the view but for the latest prompt. The log
    keeps everything. `compactor` makes the summaries that are remembered.
    """

    def __init__(
        self,
        live: LiveView,
        folds: Folds,
        events: CompactionEvents,
        remember: Remember | None,
        compactor: Compactor,
    ) -> None:
        self._live = live
        self._folds = folds
        self._events = events
        self._leaving = None
        self._unnoted = False
        """Whether folds were to write the notes on what was left out so far."""
        if remember is not None and live.scope == MAIN_SCOPE:
            self._leaving = Leaving(live.log, live.name, live.setup.counter, remember, compactor)

    @property
    def on(self) -> bool:
        """Whether a refusal is an emergency in this profile, and this view may be cleared."""
        return self._live.setup.profile.emergency.on and self._live.scope == MAIN_SCOPE

    async def refused(self, times: int) -> None:
        if times == 1:
            await self._remember_all()
        elif times == LAST_REFUSAL:
            await self._clear()

    async def trimmed(self, plan: Plan) -> None:
        """Before a request is sent: remember what fixed limits take out of it."""
        live = self._live
        if self._leaving is None or live.setup.profile.window.rolling:
            return
        if folds_what_is_left_out(live.setup.profile) and live.can_fold and not live.limited:
            self._unnoted = True
            return
        before = live.previous.plan if live.previous and not self._unnoted else None
        self._unnoted = False
        try:
            await self._leaving.trimmed(before, plan)
        except Exception as error:  # noqa: BLE001 - reported; the request goes on
            self._report(error)

    async def _remember_all(self) -> None:
        if self._leaving is None:
            return
        live, setup = self._live, self._live.setup
        values, summarizer = fold_values(setup), setup.profile.summarizer
        job_context = context(values, self._folds.host(), model=setup.model, summarizer=summarizer)
        try:
            await self._leaving.all_of(live.view.inputs, job_context, setup.profile.fold.wait)
        except Exception as error:  # noqa: BLE001 - reported; the request goes on
            self._report(error)

    def _report(self, error: Exception) -> None:
        fold = uuid4()
        self._events.report_start(fold, OVERFLOW)
        self._events.report_failure(fold, f"it was not remembered: {reason_of(error)}")

    async def _clear(self) -> None:
        await self._folds.cancel()  # what it would show is not needed any more
        values = _cleared(self._live.view.inputs)
        if values:
            with suppress(InvalidEntry):  # it was rewound meanwhile: that is planned afresh
                await self._live.append(*values)


def _cleared(inputs: ViewInput) -> list[Value]:
    where = everything(inputs)
    prompt = inputs.rows[inputs.prompt] if inputs.prompt is not None else None
    stays = (Span(prompt.seq, prompt.seq),) if prompt else ()
    messages, spans = where.messages - len(stays), subtract(where.spans, stays)
    if messages <= 0 or not spans:
        return []
    tokens = max(0, where.whole - (weight(prompt) if prompt else 0))
    state = [
        *(note for fold in inputs.foldings if fold.seq in where.earlier for note in fold.state),
        *(
            note
            for row in inputs.rows
            if any(row.seq in span for span in spans)
            for note in state_of(inputs.wire, row.payload, inputs.wire.describe(row.payload).shapes)
        ),
    ]
    summary = Summary(
        OVERFLOW, messages=messages, tokens=tokens, over=where.earlier, state=tuple(state)
    )
    fold = uuid4()
    return [FoldStarted(fold, spans, OVERFLOW), FoldCompleted(fold, spans, summary.as_json())]
