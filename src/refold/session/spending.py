"""What each request used and cost, recorded so that a receipt can be made of it later.

A request's usage is known when it is answered; so is what a request with the whole history would
have been. Both are written down in our own count, with the prices of that moment: a receipt scales
the counts by what the provider reported, and looks up nothing.
"""

from collections.abc import Iterable, Sequence
from math import inf

from pydantic import JsonValue

from refold.fold.debt import Ruled
from refold.log import PartRef, Used
from refold.models.catalog import Usage, cost_of, usage_with_full_history
from refold.models.receipt import Basis
from refold.session.live_view import LiveView
from refold.view import Plan, Previous, Request
from refold.view.budget import ASSUMED_WINDOW, PER_MESSAGE
from refold.view.framing import is_recall_tool
from refold.view.view_input import Row, weight
from refold.wire import Part, Shape


class Spending:
    """Writes down what the requests of one reader of a session use and cost."""

    def __init__(self, live: LiveView) -> None:
        self._live = live
        self._earlier_head = 0
        """The head that the request before the newest one was planned for."""
        self._earlier_whole = self._whole = inf
        """Tokens of the request before the newest one with the whole history, and of that one."""
        self._results = 0
        """Tokens that stand for results that never came."""
        self._messages: Sequence[bytes] | None = None
        """Of the newest request; None where another process sent it."""
        self._moved = False
        """Whether the newest request begins otherwise than the one before."""
        self.reread: set[PartRef] = set()
        """Calls that read again what is folded, and their results."""

    def planned(self, request: Request) -> None:
        """Take in a request before it is recorded and sent."""
        previous = self._live.previous
        self._earlier_head = previous.plan.head if previous else 0
        self._earlier_whole, self._whole = self._whole, self._tokens_of_all(request.plan)
        before, self._messages = self._messages, list(request.messages)
        # Nobody knows what another process sent, so the cache is not expected to hold it.
        self._moved = previous is not None and (
            before is None or self._messages[: len(before)] != before
        )

    @property
    def only_read_back(self) -> bool:
        """Whether the newest answer asked for nothing but what is folded."""
        previous, inputs = self._live.previous, self._live.view.inputs
        if previous is None:
            return False
        return self._read_back(inputs.rows[inputs.at(previous.plan.head + 1) :])[1]

    def carried(self, rows: Sequence[Row]) -> int:
        """Tokens that were read back, in these rows."""
        return self._read_back(rows)[0]

    def steps_read_back(self) -> list[Row]:
        """The steps in the view that only read back what is folded, but the newest."""
        inputs = self._live.view.inputs
        found: list[Row] = []
        for start in [*dict.fromkeys(inputs.steps)][:-1]:
            rows = [inputs.rows[index] for index in inputs.step(start)]
            parts = [part for row in rows for part in row.parts]
            calls = [part for part in parts if part.kind == "call"]
            ours = all(map(self._is_ours, calls))
            if calls and ours and not any(part.kind == "prompt" for part in parts):
                found += rows
        return found

    def used(
        self,
        request: Previous,
        reported: Usage | None,
        answer: Iterable[bytes],
        key: str | None = None,
        rule: Ruled | None = None,
    ) -> Used:
        """What the request cost, next to what it would have cost with the whole history."""
        live, inputs, plan = self._live, self._live.view.inputs, request.plan
        account, prices = plan.account, live.setup.prices
        usage = reported or Usage(account.sent, sum(map(live.weight_of, answer)))
        # Prompts that exceed the window could not have been sent by anybody.
        oversized = {
            ref.seq for ref, edit in plan.layout.changes.items() if edit.reason == "oversized"
        }
        unsendable = sum(weight(row) for row in inputs.rows if row.seq in oversized)
        whole = self._tokens_of_all(plan) - unsendable
        # A cache would hold all but what is new since the request before.
        new = inputs.rows[inputs.at(self._earlier_head + 1) :]
        cached = 0
        if self._earlier_head:
            # Of what is new, some may be folded already, and is no row any more.
            cached = int(min(whole - sum(map(weight, new)), self._earlier_whole))
        instead = usage_with_full_history(usage, account.sent, whole, cached)
        other = {**instead._asdict(), "cost": cost_of(instead, prices)}
        estimated = {} if reported else {"estimated": True}
        read_back, extra = self._read_back(new)
        budget = live.setup.budget
        window = (budget.window or ASSUMED_WINDOW) - budget.reserve
        basis = Basis(
            live.setup.model,
            whole,
            cached,
            account.sent,
            min(window, budget.learned or window),
            prices,
            added=live.setup.added,
            read_back=read_back,
            extra=extra,
            moved=self._moved,
            rule=rule,
        )
        cost = cost_of(usage, prices)
        counts: dict[str, JsonValue] = {**usage._asdict(), **estimated}
        return Used(request.seq, counts, cost, other, basis.as_json(), key)

    def _tokens_of_all(self, plan: Plan) -> int:
        """Tokens of a request with the whole history; a call that never returned needs a result."""
        live, counter = self._live, self._live.setup.counter
        results = sum(
            counter.part(Shape("return", insert.text, insert.tool)) + PER_MESSAGE
            for insert in plan.layout.inserts
            if insert.reason == "unanswered"
        )
        # Those of folded calls are not in the plan any more.
        self._results = max(self._results, results) if live.view.inputs.foldings else results
        return live.session_tokens + plan.account.sent - plan.tokens + self._results

    def _read_back(self, rows: Sequence[Row]) -> tuple[int, bool]:
        """Tokens that were only read back, and whether the answer before asked for nothing else."""
        calls = [part for row in rows for part in row.parts if part.kind == "call"]
        ours = [part for part in calls if self._is_ours(part)]
        named = {part.call for part in ours if part.call}
        tokens = 0
        for row in rows:
            parts = [part for part in row.parts if part.call in named or part in ours]
            tokens += sum(part.tokens for part in parts)
            tokens += PER_MESSAGE if parts and len(parts) == len(row.parts) else 0
        return tokens, bool(calls) and len(ours) == len(calls)

    def _is_ours(self, part: Part) -> bool:
        return is_recall_tool(part.tool) or part.ref in self.reread
