"""The lines that `refold wrap` ends with, from what its gateways have reported."""

import pytest

from refold.cli.wrap.traffic import Traffic, closing_lines


def request(session="g-1", *, usage=(1_000, 20, 400, 0), cost=0.5, failed=""):
    return {"session": session, "model": "m", "usage": usage, "cost": cost, "failed": failed}


def traffic(*requests, **summary):
    made = Traffic()
    for one in requests:
        made.add(one)
    if summary:
        same = {"requests": 3, "compared": 3, "unpriced": 0}
        made.summary = {"folds": 0, "billed": 1.0, "paid": 1.0, "whole": 1.0, **same, **summary}
    return made


def said(made, *, keep=True):
    return list(closing_lines(made, keep=keep))


def test_three_lines():
    made = traffic(request(), request(), request("g-2"), folds=2, whole=3.456, recall_tokens=614)
    assert said(made) == [
        "3 requests; session g-1, and 1 more for its side requests.",
        (
            "2 compactions; 3.0k tokens sent (40% from the provider's cache, 614 per request for "
            "the recall tools), 60 answered."
        ),
        (
            "$1.00 at list prices, against $3.46 with the full history in each request. "
            "The account: refold receipt"
        ),
    ]


def test_that_more_was_paid_is_said_too():
    assert said(traffic(request(), folds=1, billed=2.0, whole=1.5))[2].startswith(
        "$2.00 at list prices, against $1.50 with the full history in each request."
    )


def test_what_cannot_be_compared_is_not():
    some = traffic(request(), folds=1, billed=2.0, paid=0.5, whole=0.75, compared=2)
    assert said(some)[2] == (
        "$2.00 at list prices. For the 2 requests whose full history would fit: $0.50, against "
        "$0.75 with the full history in each request."
    )


def test_nothing_is_claimed_where_nothing_was_compacted():
    assert said(traffic(request(), whole=9.0))[2] == (
        "$1.00 at list prices; a subscription may bill otherwise."
    )


def test_what_the_gateway_could_not_say_is_unknown():
    lines = said(traffic(request(), request(failed="upstream-error", usage=None, cost=0.0)))
    assert lines[0] == "2 requests (1 failed); session g-1."
    assert lines[1].startswith("compactions unknown; 1.0k tokens sent")
    assert lines[2].startswith("$0.50 at list prices")


@pytest.mark.parametrize("summary", [{}, {"unpriced": 1}])
def test_a_model_without_a_price(summary):
    made = traffic(request(cost=None), **summary)
    assert said(made)[2] == "What it cost is unknown: the model has no list price here."


def test_nothing_kept_and_nothing_came_through():
    assert said(traffic(request()), keep=False)[0] == "1 request; nothing was kept."
    assert said(traffic()) == [
        "No request came through the gateway, so nothing was kept or compacted."
    ]


def test_small_amounts_are_not_rounded_away():
    assert said(traffic(request(), billed=0.0018))[2].startswith("$0.0018 at")
    assert said(traffic(request(), billed=0.0))[2].startswith("$0.00 at")
