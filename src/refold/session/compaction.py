"""The folds of a session: when they begin, and what is waited for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from pydantic import JsonValue

from refold.engine import Ended, Engine, LocalSteps
from refold.engine.protocol import CANCELLED, reason_of
from refold.errors import FoldCancelled, FoldNotMade, FoldUnderWay, NothingToFold, RefoldError
from refold.fold.compactor import MANUAL, Compactor, Preview, context, preview
from refold.fold.events import CompactionComplete
from refold.fold.job import Job
from refold.fold.material import Boundary, boundary, everything, needed
from refold.fold.summary import Summary, parse
from refold.fold.trigger import Decision, Pressure, Why, decide, sized
from refold.log import CODEC, MAIN_SCOPE, Entry, FoldCompleted, FoldFailed, FoldStarted, Span
from refold.models.catalog import Usage, cost_of
from refold.models.experience import Setup
from refold.session.events import CompactionEvents
from refold.session.guards import Guards, Recovering
from refold.session.live_view import LiveView
from refold.telemetry import Instrumented
from refold.view import Fold, Keep, View, ViewInput
from refold.view.budget import GAIN, PER_MESSAGE, effective_limit
from refold.view.plan import Plan

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter


# Folds that somebody asks for: what they stand for, and what came of them.


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a fold that was asked for did."""

    fold: UUID
    messages_removed: int
    tokens_removed: int
    summary: Summary
    checkpoint: int | None = None
    """The number of its checkpoint, where those are written."""
    checkpoint_path: str | None = None


def asked_for(inputs: ViewInput, values: Fold, least: int, *, everything_too: bool) -> Boundary:
    """What a fold that is asked for would stand for: all but the last turn.

    Where there is only one turn, or a profile shows nothing beside its summary: all of it, once
    the turn is over.
    """
    if len(inputs.rows) < least or inputs.scope != MAIN_SCOPE:
        return Boundary()
    over = bool(inputs.rows) and inputs.rows[-1].role == "assistant"
    over = over and not any(inputs.rows[at].has("call") for at in inputs.step(inputs.steps[-1]))
    alone = values.placement == "message" or len(inputs.turns) < 2  # noqa: PLR2004 - one turn
    if everything_too and over and alone:
        return everything(inputs)
    keep = values.keep.model_copy(update={"unit": "turns", "amount": 0, "least": 1})
    found = boundary(inputs, keep)
    return found if found.messages else boundary(inputs, Keep())


def compacted(fold: UUID, ended: Ended | None, event: CompactionComplete | None) -> Compacted:
    """What came of it. Raises FoldCancelled or FoldNotMade where nothing did."""
    if ended is None or not ended.completed or event is None or event.request_id != str(fold):
        reason = ended.reason if ended and ended.reason else "it came to no end"
        if reason == CANCELLED:
            raise FoldCancelled("The fold was cancelled.")
        raise FoldNotMade(f"The fold could not be made: {reason}.")
    return Compacted(
        fold,
        event.messages_removed,
        event.tokens_removed,
        parse(ended.summary),
        event.checkpoint,
        event.checkpoint_path,
    )


# When to fold: how full the view is, and what was tried before.


class CompactionSchedule:
    """Decides about the folds of one session; what failed is not tried again at once."""

    def __init__(self, live: LiveView) -> None:
        self._following = live
        self._again = 0
        """After a failure: the tokens of the whole session from which on it is tried again."""
        self._held_at = 0
        """The tokens of the whole session when it failed."""
        self._rewritten = 0
        """The tokens of the newest request that changed what had been sent."""

    def decide(self, *, running: bool, forced: bool) -> Decision:
        """Whether to fold before the next request, and why."""
        live, view = self._following, self._following.view
        if live.whole < self._held_at:  # cleared or rewound since: another past
            self._again = self._held_at = 0
        setup, inputs = live.setup, view.inputs
        marks = live.thresholds
        shown = sum(len(fold.shown) for fold in inputs.foldings if not fold.merged)
        pressure = Pressure(
            self._size() + marks.floor,
            len(inputs.rows) + shown,
            len(inputs.turns),
            marks.floor,
            gain=marks.limit,
            foldable=len(inputs.rows),
            whole=live.whole,
            again=self._again,
        )
        facts = {
            "running": running,
            "inline": setup.profile.fold.apply == "inline",
            "forced": forced,
        }
        first = decide(setup.profile.trigger, marks, pressure, **facts)
        if first.act == "continue":
            return first
        more = self._rewritten and self._rewritten + int(GAIN * marks.room)
        if first.act == "start" and pressure.tokens < more:
            # The provider's cache was given up a moment ago: not twice in a row for one cause.
            return Decision("continue", (*first.why, Why("rewritten", self._rewritten)))
        values = fold_values(setup)
        where = boundary(inputs, values.keep)  # looked for only when there is a reason to
        sent = where.tokens - view.omitted(where.spans, setup.budget)
        real = pressure._replace(gain=sent - values.max_tokens, foldable=where.messages)
        return decide(setup.profile.trigger, marks, real, **facts)

    def rewritten(self, tokens: int) -> None:
        """A request of so many tokens changed what had been sent, to make room."""
        self._rewritten = tokens

    def go_on(self, *, failed: bool) -> None:
        """After a failure, fixed limits apply until a fold is made."""
        live = self._following
        self._rewritten = self._rewritten if failed else 0
        self._again = self._later() if failed else 0
        self._held_at = live.whole
        live.view.profile = live.profile(limits=failed)

    def hold(self) -> None:
        """Do not make the same fold again at once."""
        self._again = self._later()
        self._held_at = self._following.whole

    def _later(self) -> int:
        """The tokens of the whole session at which there is more to gain than now."""
        return self._following.whole + int(GAIN * self._size())

    def _size(self) -> int:
        """The tokens of the next request's messages, with what fixed limits leave out."""
        live, view = self._following, self._following.view
        if self._again and live.setup.profile.window.limits:
            view = View(view.inputs, live.profile())
        return view.size(live.setup.budget)


def fold_values(setup: Setup) -> Fold:
    """What a fold keeps and shows, for this model."""
    limit = effective_limit(setup.profile, setup.budget)
    return sized(setup.profile.fold, limit - setup.budget.floor)


Hook = Callable[[Job], Awaitable[None]]
"""Runs before a fold is made, and may refuse it by raising an error."""
Host = Callable[[], Mapping[str, JsonValue]]
"""What the host knows of the work under way: plan, todo, skills, agent."""


class Folds:
    """Decides about the folds of one session and follows them to their end."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        live: LiveView,
        engine: Engine,
        telling: CompactionEvents,
        *,
        before: Hook | None = None,
        host: Host = dict,
        folder: Compactor | None = None,
    ) -> None:
        self._folder = folder
        self.host = host
        self._following = live
        self._engine = engine
        self._telling = telling
        self._before = before
        self._asked: set[UUID] = set()
        self._guards = Guards(telling.tell)
        self._taken: dict[UUID, int] = {}
        """What is folded took up in the view, in tokens."""
        self._timing = CompactionSchedule(live)
        self._recovering = Recovering(live, engine)

    @property
    def running(self) -> UUID | None:
        """The fold that is under way, here or in another process."""
        running = self._following.running
        return running[0].fold if running else None

    async def recover(self) -> None:
        """Have folds whose process died finished or closed; what takes longer goes on meanwhile."""
        await self._recovering.recover()

    def decide(self, *, forced: bool = False) -> Decision:
        """Whether to fold before the next request, and why."""
        return self._timing.decide(running=self.running is not None, forced=forced)

    async def make_room(self, *, forced: bool = False) -> None:
        """Fold if it is time to, before a request: begin, or wait for what is under way."""
        self._recovering.look(self.running)
        decision = self.decide(forced=forced)
        self._guards.decided(decision)
        later = self._following.setup.profile.fold.apply == "next turn"
        if decision.act == "continue" or (decision.act == "start" and later):
            return
        await self._act(decision)

    async def after_turn(self) -> None:
        """Begin a fold that takes effect from the next turn on, where the profile says so."""
        if self._following.setup.profile.fold.apply == "next turn":
            decision = self.decide()
            if decision.act != "continue":
                await self._act(decision._replace(act="start"))

    async def compact(
        self, focus: str | None = None, *, cause: str = MANUAL, setup: Setup | None = None
    ) -> Compacted:
        """Fold because somebody asked for it, and wait for the end.

        With `setup`, the summary is made to suit another model.

        Raises FoldUnderWay, NothingToFold, FoldCancelled or FoldNotMade; then nothing has changed.
        """
        await self._following.catch_up()
        if self.running is not None:
            raise FoldUnderWay("A fold of this session is being made.")
        where = self.asked(cause)
        if not where.spans:
            raise NothingToFold("There is nothing that a summary could stand for yet.")
        try:
            fold = await self._begin(where, cause, focus, self.values(setup))
        except RefoldError:
            raise
        except Exception as error:
            raise FoldNotMade(f"The fold was refused: {reason_of(error)}.") from error
        if fold is None:
            raise FoldUnderWay("A fold of this session is being made elsewhere.")
        ended = await self._engine.wait(self._following.name, fold)
        await self._following.catch_up()
        return compacted(fold, ended, self._telling.last)

    def asked(self, cause: str = MANUAL) -> Boundary:
        """What a fold that somebody asks for would stand for."""
        live = self._following
        least = live.setup.profile.trigger.min_messages_manual
        return asked_for(live.view.inputs, self.values(), least, everything_too=cause == MANUAL)

    async def settle(self) -> None:
        """Wait for the fold that is under way, as long as a request would."""
        live = self._following
        await live.catch_up()
        if self.running is not None:
            wait = live.setup.profile.fold.wait
            await self._engine.wait(live.name, self.running, wait)
            await live.catch_up()

    def switched(self, setup: Setup) -> None:
        """Summaries are measured by another model's counter from now on."""
        if self._folder is not None:
            self._folder.counter = setup.counter

    async def cancel(self) -> bool:
        """Give up the fold that is under way; whether there was one to give up."""
        await self._following.catch_up()
        fold = self.running
        if fold is None:
            return False
        ended = await self._engine.cancel(self._following.name, fold)
        await self._following.catch_up()
        return ended is not None and not ended.completed

    async def heard(self, entries: Sequence[Entry]) -> None:
        """Take note of how folds ended: what could not be folded is not tried again at once."""
        await self._telling.heard(entries)
        for entry in entries:
            match CODEC.decode(entry) if entry.kind in _ENDS else None:
                case FoldCompleted(fold, summary=summary):
                    self._completed(fold, parse(summary))
                case FoldFailed(fold, reason) if fold not in self._asked:
                    self._guards.failed(reason)
                    self._timing.go_on(failed=True)
                case _:
                    pass

    def _completed(self, fold: UUID, summary: Summary) -> None:
        """A fold stands; one that freed nothing is not followed by another at once."""
        self._timing.go_on(failed=False)
        taken = self._taken.pop(fold, None)
        counter = self._following.setup.counter
        shown = sum(counter.text(one.text) + PER_MESSAGE for one in summary.shown)
        freed = None if taken is None or fold in self._asked else taken - shown
        if not self._guards.completed(summary, freed):
            self.hold()

    def values(self, setup: Setup | None = None) -> Fold:
        """What a fold keeps and shows, for the session's model or another."""
        return fold_values(setup or self._following.setup)

    async def _act(self, decision: Decision) -> None:
        live = self._following
        fold = self.running
        if fold is None:
            where = boundary(live.view.inputs, self.values().keep)
            fold = await self._tried(where, decision.why[0].what)
        if fold is None or decision.act != "wait":
            return
        if not await self._waited(fold, decision.why[0].what):
            await self._at_once(fold, decision.why[0].what)

    async def _waited(self, fold: UUID, cause: str) -> bool:
        """Wait for a fold, as long as a request may; whether it has ended."""
        live = self._following
        start = perf_counter()
        try:
            ended = await self._engine.wait(live.name, fold, live.setup.profile.fold.wait)
            await live.catch_up()
        finally:
            if (waits := WAITS.installed()) is not None:
                waits.record(perf_counter() - start, {"refold.fold.trigger": cause})
        return ended is not None

    async def _at_once(self, slow: UUID, cause: str) -> None:
        """A fold took too long: give it up, and let the log write one, where it can.

        Where it cannot, the next request does not wait for it too.
        """
        live = self._following
        if not live.setup.profile.fold.breadcrumb or await self._is_asked_for(slow):
            self._timing.go_on(failed=True)
            return
        await self._engine.cancel(live.name, slow)
        await live.catch_up()
        where = boundary(live.view.inputs, self.values().keep)
        if where.messages:
            fold = await self._tried(where, cause, at_once=True)
            if fold is not None and not await self._waited(fold, cause):
                self._timing.go_on(failed=True)

    async def _is_asked_for(self, fold: UUID) -> bool:
        """Whether somebody asked for the fold that is under way, here or in another process."""
        live = self._following
        begun = next((one.seq for one in live.running if one.fold == fold), None)
        entries = await live.log.read(live.name, Span(begun, begun)) if begun else []
        values = map(CODEC.decode, entries)
        return any(isinstance(one, FoldStarted) and one.trigger in _ASKED for one in values)

    def rewritten(self, plan: Plan) -> None:
        """A request changed what had been sent, to make room."""
        self._timing.rewritten(plan.account.sent)

    def hold(self) -> None:
        """Somebody took a fold back: do not make it again at once."""
        self._timing.hold()

    async def _tried(self, where: Boundary, cause: str, *, at_once: bool = False) -> UUID | None:
        """Begin a fold that nobody asked for: if that fails, the request goes on without it."""
        try:
            return await self._begin(where, cause, None, self.values(), at_once=at_once)
        except Exception:  # noqa: BLE001 - whatever it is, those who watch were told
            self._timing.go_on(failed=True)
            return None

    async def _begin(
        self,
        where: Boundary,
        cause: str,
        focus: str | None,
        values: Fold,
        *,
        at_once: bool = False,
    ) -> UUID | None:
        live = self._following
        fold = uuid4()
        setup = live.setup
        given = context(
            values,
            self.host(),
            where.whole,
            model=setup.model,
            summarizer=setup.profile.summarizer,
            at_once=at_once,
        )
        spans, outline = where.spans, live.view.inputs.outline
        needs = needed(spans, outline) if self.running is None else None
        job = Job(live.name, fold, spans, cause, focus, given, live.head, needs)
        self._telling.begins(fold, cause)
        omitted = live.view.omitted(where.spans, live.setup.budget)
        self._taken = {fold: where.tokens - omitted}
        if cause in _ASKED:
            self._asked.add(fold)
        try:
            if self._before is not None:
                await self._before(job)
            started = await self._engine.start(job)
        except BaseException as error:
            self._telling.fails(fold, reason_of(error))
            raise
        if not started:
            self._telling.fails(fold, "another fold is under way")
            return None
        await live.catch_up()
        return fold


def _wait_histogram(meter: "Meter") -> "Histogram":
    return meter.create_histogram(
        "refold.fold.wait.duration",
        "s",
        "How long requests waited for a fold, by the mark that they had reached.",
        explicit_bucket_boundaries_advisory=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    )


WAITS: Final = Instrumented(_wait_histogram)
_ENDS = {FoldCompleted.KIND, FoldFailed.KIND}
_ASKED = {MANUAL, "model switch", "memory pressure"}


# A preview of the fold that a person could ask for, with what requests would cost then.


async def previewed(live: LiveView, folds: Folds) -> Preview:
    """What a fold would do, with the summary that the log itself gives."""
    await live.catch_up()
    where = folds.asked()
    if not where.spans:
        raise NothingToFold("There is nothing that a summary could stand for yet.")
    setup, inputs = live.setup, live.view.inputs
    given = context(folds.values(), folds.host(), where.whole)
    job = Job(live.name, uuid4(), where.spans, MANUAL, context=given)
    summary = parse(await Compactor(live.log, setup.counter)(job, LocalSteps()))
    view, budget = live.view, setup.budget
    size = view.size(budget, prompt_follows=True)
    sent = where._replace(tokens=where.tokens - view.omitted(where.spans, budget))
    found = preview(sent, summary, size, len(inputs.rows), setup.counter)
    beside = setup.budget.tools + max(setup.budget.instructions, inputs.instructions)
    before, after = found.before + beside, found.after + beside
    return found._replace(
        cost_before=cost_of(_again(before), setup.prices),
        cost_after=cost_of(_again(after), setup.prices),
        cost_once=cost_of(Usage(after, cache_write=after), setup.prices),
    )


def _again(tokens: int) -> Usage:
    """One more request whose prefix is cached."""
    return Usage(tokens, cache_read=tokens)
