"""What a request came to use and cost, beside what it would have without us."""

from collections.abc import Iterable

from refold.log import Used
from refold.models.spending import Usage, cost_of, unmanaged
from refold.session.follow import Following
from refold.view import Previous
from refold.view.row import weight


def used(
    following: Following,
    request: Previous,
    known: int,
    told: Usage | None,
    answer: Iterable[bytes],
) -> Used:
    """The entry that says so; without what the provider told, by our own count, and marked so.

    `known` is the head of the request before.
    """
    account, prices = request.plan.account, following.setup.prices
    usage = told or Usage(account.sent, sum(map(following.weight_of, answer)))
    beside = account.sent - request.plan.tokens
    whole = following.whole + beside - _unsendable(following, request)
    # All but what is new since the request before, as a cache would have it.
    sheet = following.view.sheet
    before = whole - sum(map(weight, sheet.rows[sheet.at(known + 1) :]))
    instead = unmanaged(usage, account.sent, whole, before if known else 0)
    other = {**instead._asdict(), "cost": cost_of(instead, prices)}
    marked = {} if told else {"estimated": True}
    return Used(request.seq, {**usage._asdict(), **marked}, cost_of(usage, prices), other)


def _unsendable(following: Following, request: Previous) -> int:
    """The tokens of prompts that are too long for the window: nobody could have sent them."""
    sheet = following.view.sheet
    seqs = {
        ref.seq for ref, edit in request.plan.layout.changes.items() if edit.reason == "oversized"
    }
    return sum(weight(row) for row in sheet.rows if row.seq in seqs) if seqs else 0
