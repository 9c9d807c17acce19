"""What a fold would cost and save before the next request, as far as the session knows.

`refold.fold.economics` and `refold.fold.debt` decide; the figures for them are put together here:
what would be sent with and without the fold, whether the cache still has it, what the model's
tokens cost, and what folding has cost so far.
"""

from collections.abc import Sequence
from math import inf
from typing import Final

from refold.fold.debt import (
    Move,
    MovedBy,
    NextRequest,
    OpenFold,
    Ruled,
    Verdict,
    price_of_unfolding,
)
from refold.fold.economics import Outlook, Tariff, Worth, weigh
from refold.fold.material import Boundary
from refold.log import CODEC, MAIN_SCOPE, Entry, FoldStepped, Requested, Span, Used
from refold.models.accounts import Accounts
from refold.models.experience import Setup
from refold.models.receipt import Basis
from refold.session.live_view import LiveView
from refold.session.spending import Spending
from refold.view import Fold, Pace, Plan, Request
from refold.view.budget import ASSUMED_WINDOW, PER_MESSAGE
from refold.view.view_input import weight

_FIRST_SHARE: Final = 0.25
"""Of what it stands for, what a session's first fold is taken to show."""
_REREAD: Final = 1_000
"""Tokens that are likely to be read again after a fold, in a request of their own."""
_LOOK_BACK: Final = 64
"""Entries among which the newest answered request is looked for first."""
_ANSWER: Final = 1_200
"""Tokens of a summary by a model, about."""


def tariff_of(setup: Setup) -> Tariff:
    prices = setup.prices
    return Tariff.of(prices.input, prices.cache_read, prices.cache_write, prices.output)


def worth_of(
    live: LiveView, where: Boundary, size: int, values: Fold, rule: "FoldRule | None" = None
) -> Worth:
    """What folding this boundary is worth before a request of so many tokens."""
    trigger, tariff = live.setup.profile.trigger, tariff_of(live.setup)
    request, kept = _next_request(live, where, size, live.idle)
    after = size - where.tokens + _shown(live, where, values)
    outlook = Outlook(
        request,
        kept,
        after,
        summary=_summary(live, size, tariff, cold=request.cold),
        rereads=tariff.rates.cost(after + _REREAD, after),
    )
    pace = live.previous.plan.pace if live.previous else Pace()
    patience = trigger.savings or inf
    if rule is None or not rule.on:
        return weigh(outlook, pace, tariff, patience)
    return weigh(outlook, pace, tariff, patience, lambda move: rule.may(move, request))


def price_of(
    live: LiveView, where: Boundary, before: int, after: int, summary: float | None = None
) -> float | None:
    """Dollars that folding this boundary adds to the next request; None if no price is known.

    Args:
        live: The session's view.
        where: What is folded.
        before: Tokens of the next request without the fold.
        after: The same with it.
        summary: What the summary costs; by default, about what the session's model would take.
    """
    tariff = tariff_of(live.setup)
    if not tariff.in_dollars:
        return None
    request, kept = _next_request(live, where, before, live.idle_now)
    if summary is None:
        summary = _summary(live, before, tariff, cold=request.cold)
    return Move(kept, after, summary).price(request, tariff.rates)


def _next_request(
    live: LiveView, where: Boundary, size: int, idle: float
) -> tuple[NextRequest, int]:
    """The next request without a fold, and how many tokens of its beginning a fold leaves."""
    seconds = live.setup.profile.trigger.cache_seconds
    floor, previous = live.thresholds.floor, live.previous
    head = _tokens_before(live, where)
    cold = previous is None or live.other_model or bool(seconds and idle > seconds)
    sent = previous.plan.account.sent if previous else 0
    if previous and any(fold.seq > previous.seq for fold in live.view.inputs.foldings):
        sent = floor + head
    return NextRequest(size, min(sent, size), live.session_tokens + floor, cold), floor + head


def _tokens_before(live: LiveView, where: Boundary) -> int:
    """Tokens of the messages before what is folded: they stay, in the cache too."""
    return _tokens_to(live, where.spans[0].first) if where.spans else 0


def _tokens_to(live: LiveView, seq: int) -> int:
    inputs = live.view.inputs
    return sum(map(weight, inputs.rows[: inputs.at(seq)]))


def _shown(live: LiveView, where: Boundary, values: Fold) -> int:
    """Tokens that the fold will show: as many as the newest one, or a share of what it replaces."""
    counter = live.setup.counter
    shown = [
        sum(counter.text(text) + PER_MESSAGE for _, text in fold.shown)
        for fold in live.view.inputs.foldings
        if fold.seq in where.earlier
    ]
    first = min(values.max_tokens, int(_FIRST_SHARE * where.tokens))
    return max(shown, default=first)


def _summary(live: LiveView, size: int, tariff: Tariff, *, cold: bool) -> float:
    """What a model takes for the summary; one that a request waits for is written by the log."""
    profile = live.setup.profile
    if (
        cold
        or not live.has_summarizer
        or not (profile.summarizer or profile.fold.writer == "model")
    ):
        return 0.0
    return tariff.rates.cost(size, size) + tariff.output * _ANSWER


class FoldRule:
    """Whether what folds have cost so far allows another: the open fold of one session.

    Its state is made of the log's entries as they come, and recorded with each request.
    """

    def __init__(self, live: LiveView, spending: Spending) -> None:
        self._live = live
        self._spending = spending
        self._accounts = Accounts(live.setup.profile.trigger.cache_seconds or inf)
        self._moves = Ruled()
        """Of folds that were begun or undone since the newest request was answered."""
        self._recorded = 0.0
        """Of the newest fold, what is recorded as not decided by the rule."""
        self._running_outside = False
        """Whether the rule has not decided the newest fold."""
        self._spent = 0.0
        """On the summary of the newest fold."""

    @property
    def on(self) -> bool:
        """Whether it decides."""
        return self._live.setup.profile.keeps_account and self._live.scope == MAIN_SCOPE

    @property
    def _counts(self) -> bool:
        """Whether an account is kept: not of what has no price."""
        return self.on and bool(self._live.setup.prices.input)

    @property
    def state(self) -> OpenFold:
        """The state before the next request, with what was begun since the newest one."""
        rule = self._accounts.rule
        state = rule.if_reread if self._spending.only_read_back else rule.now
        return state.with_moves(self._moves)

    def may(self, move: Move, request: NextRequest) -> tuple[Verdict, float]:
        """Whether a fold may be made before the next request, and the debt."""
        state = self.state if self._counts else OpenFold()
        owed = state.debt + state.unpaid
        if request.whole > self._limit:  # nobody could send everything
            return Verdict(allowed=True, why="over the window"), owed
        rates = tariff_of(self._live.setup).rates
        strict = self._live.setup.profile.economics == "strict"
        return state.may(move, request, rates, strict=strict), owed

    @property
    def must_unfold(self) -> bool:
        """Whether reading back what is folded has cost as much as sending it again would."""
        live = self._live
        if not self._counts or not live.view.inputs.foldings:
            return False
        marks = live.thresholds
        whole = live.session_tokens + marks.floor
        if whole > self._limit or (marks.hard and whole >= marks.hard) or self._is_limited(whole):
            return False  # it would be folded at once
        return self.state.must_unfold(self.unfolding)

    def _is_limited(self, whole: int) -> bool:
        """Whether somebody has set a limit that the whole history would exceed."""
        live = self._live
        limits, marks = live.setup.profile.set_limits, live.thresholds
        tokens = live.setup.profile.trigger.tokens
        return (
            bool(limits & {"messages", "turns"})
            or ("tokens" in limits and whole - marks.floor > tokens)
            or ("soft" in limits and whole >= marks.soft)
        )

    def undone(self, price: float) -> None:
        """All folds were undone because of rereads, for this price."""
        self._moves = self._moves._replace(unfolding=price, undone=True, reopened=False)

    def began(self, where: Boundary, size: int, values: Fold) -> None:
        """A fold begins; what it was stated to cost counts from here on."""
        if not self._counts or not where.spans:
            return
        live = self._live
        request, kept = _next_request(live, where, size, live.idle)
        summary = _summary(live, size, tariff_of(live.setup), cold=request.cold)
        move = Move(kept, size - where.tokens + _shown(live, where, values), summary)
        verdict, _ = self.may(move, request)
        self._running_outside = not verdict.allowed
        if self._running_outside:
            self._moves = self._moves._replace(reopened=True)
        self._spent = self._recorded = 0.0
        self._state(verdict.price)

    def _state(self, price: float) -> None:
        if self._running_outside:
            # Where there was no debt meanwhile, nothing of it counts any more.
            recorded = min(self._recorded, self._accounts.rule.now.outside)
            outside = max(self._moves.outside, price - recorded)
            self._moves = self._moves._replace(outside=outside)
        else:
            self._moves = self._moves._replace(stated=max(self._moves.stated, price))

    def planned(self, before: Plan | None, newest: int, request: Request) -> None:
        """Take in a request before it is sent; `newest` is the record of the one before."""
        if not self._counts or before is None:
            return
        live = self._live
        folds = [fold for fold in live.view.inputs.foldings if fold.seq > newest]
        undone = self._moves.undone
        moved_by: MovedBy = "fold" if folds or undone else "cut" if request.plan.cause else ""
        self._moves = self._moves._replace(moved_by=moved_by)
        if not folds or undone:
            return
        # The fold may show more than was expected when it was begun.
        inputs, floor, size = live.view.inputs, live.thresholds.floor, request.plan.account.sent
        new = sum(map(weight, inputs.rows[inputs.at(before.head + 1) :]))
        seconds = live.setup.profile.trigger.cache_seconds
        cold = live.other_model or bool(seconds and live.idle > seconds)
        sent = before.account.sent
        whole = live.session_tokens + floor
        kept = floor + _tokens_to(live, min(span.first for fold in folds for span in fold.spans))
        move = Move(min(kept, sent), size, self._spent)
        next_request = NextRequest(sent + new, sent, whole, cold)
        self._state(max(self._spent, move.price(next_request, tariff_of(live.setup).rates)))

    def ruled(self) -> Ruled | None:
        """What is recorded of the newest request, which was answered now."""
        if not self._counts:
            return None
        accounts, inputs = self._accounts, self._live.view.inputs
        return self._moves._replace(
            state=accounts.rule.as_tuple(),
            chain=accounts.chain,
            unfolding=max(self.unfolding, self._moves.unfolding),
            carried=self._spending.carried(inputs.rows) if inputs.foldings else 0,
        )

    def observe(self, entries: Sequence[Entry]) -> None:
        """Take in new entries of the log."""
        if not self._counts:
            return
        for entry in entries:
            before = self._accounts.rule.spent
            self._accounts.add(entry)
            if entry.kind == FoldStepped.KIND:
                self._spent += max(0.0, self._accounts.rule.spent - before)
            elif entry.kind == Used.KIND and entry.scope == MAIN_SCOPE:
                self._recorded += self._moves.outside
                # A fold that is under way is still to take effect.
                stated = self._moves.stated if self._live.running else 0.0
                self._moves = Ruled(stated=stated)

    async def resume(self) -> None:
        """Continue from the newest request that the log has of this session."""
        live = self._live
        if not self._counts or live.previous is None:
            return
        start = min(live.head - _LOOK_BACK, (live.previous.chain or (live.previous.seq,))[-1])
        entries = await live.log.read(live.name, Span(max(1, start), live.head))
        answered = [
            index
            for index, entry in enumerate(entries)
            if entry.kind == Used.KIND and entry.scope == MAIN_SCOPE
        ]
        if answered:
            asked = [
                index
                for index, entry in enumerate(entries[: answered[-1]])
                if entry.kind == Requested.KIND and entry.scope == MAIN_SCOPE
            ]
            used = CODEC.decode(entries[answered[-1]])
            basis = Basis.parse(used.basis) if isinstance(used, Used) else None
            if basis and basis.rule:
                self._accounts.resume(basis.rule)
            self.observe(entries[asked[-1] if asked else answered[-1] :])

    @property
    def _limit(self) -> int:
        """Tokens that a request can have in the model's window."""
        budget = self._live.setup.budget
        window = (budget.window or ASSUMED_WINDOW) - budget.reserve
        return min(window, budget.learned or window)

    @property
    def unfolding(self) -> float:
        """Q: what undoing the folds would cost."""
        live, foldings = self._live, self._live.view.inputs.foldings
        if not foldings:
            return 0.0
        floor = live.thresholds.floor
        first = min((span.first for fold in foldings for span in fold.spans), default=1)
        rates = tariff_of(live.setup).rates
        return price_of_unfolding(
            rates, live.session_tokens + floor, floor + _tokens_to(live, first)
        )
