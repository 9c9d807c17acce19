"""The lines that `refold wrap` ends with, from what its gateways have reported."""

import pytest

from refold.cli.wrap.receipt import Receipt, closing_lines, receipt_json


def request(session="g-1", *, usage=(1_000, 20, 400, 0), cost=0.5, failed=""):
    return {"session": session, "model": "m", "usage": usage, "cost": cost, "failed": failed}


def receipt(*requests, **summary):
    made = Receipt()
    for one in requests:
        made.add(one)
    if summary:
        made.summary = {"folds": 0, "cost": 1.0, "unmanaged": 1.0, **summary}
    return made


def said(made, *, keep=True):
    return list(closing_lines(made, keep=keep))


def test_three_lines():
    made = receipt(
        request(), request(), request("g-2"), folds=2, unmanaged=3.456, recall_tokens=614
    )
    assert said(made) == [
        "3 requests; session g-1, and 1 more for its side requests.",
        (
            "2 compactions; 3.0k tokens sent (40% from the provider's cache, 614 per request for "
            "the recall tools), 60 answered."
        ),
        "$1.00 at list prices; sending everything each time: $3.46.",
    ]


def test_that_more_was_paid_is_said_too():
    assert said(receipt(request(), folds=1, cost=2.0, unmanaged=1.5))[2] == (
        "$2.00 at list prices; sending everything each time: $1.50."
    )


def test_nothing_is_claimed_where_nothing_was_compacted():
    assert said(receipt(request(), unmanaged=9.0))[2] == (
        "$1.00 at list prices; a subscription may bill otherwise."
    )


def test_what_the_gateway_could_not_say_is_unknown():
    lines = said(receipt(request(), request(failed="upstream-error", usage=None, cost=0.0)))
    assert lines[0] == "2 requests (1 failed); session g-1."
    assert lines[1].startswith("compactions unknown; 1.0k tokens sent")
    assert lines[2].startswith("$0.50 at list prices")


@pytest.mark.parametrize("summary", [{}, {"cost": None}])
def test_a_model_without_a_price(summary):
    made = receipt(request(cost=None), **summary)
    assert said(made)[2] == "What it cost is unknown: the model has no list price here."
    assert receipt_json(made)["cost"] is None


def test_nothing_kept_and_nothing_came_through():
    assert said(receipt(request()), keep=False)[0] == "1 request; nothing was kept."
    assert said(receipt()) == [
        "No request came through the gateway, so nothing was kept or compacted."
    ]


def test_small_amounts_are_not_rounded_away():
    assert said(receipt(request(), cost=0.0018))[2].startswith("$0.0018 at")
    assert said(receipt(request(), cost=0.0))[2].startswith("$0.00 at")
