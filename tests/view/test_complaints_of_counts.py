"""What users of such tools complain about in their counts of tokens.

As in `test_complaints.py`: one check, which catches the naive tool and not Refold.
"""

import pytest
from shown import used
from talks import Talk, texts

from refold.models import counter_for
from refold.models.catalog import tokenizer
from refold.models.experience import Setup
from refold.testing.wire import Asked, Responded
from refold.view.profiles import BALANCED
from refold.view.tokens import Estimate

# 7. The count shown is a fraction of the real one: images, tools and other scripts are forgotten.


def miscounted(counted, true):
    """Too low by more than what is kept free for that, or much too high."""
    return not 0.95 * true <= counted <= 1.25 * true


SCHEMA = (
    '"description":"Looks for orders that a customer placed, by name or number, and returns the '
    'newest.","parameters":{"type":"object","properties":{"query":{"type":"string"},"limit":'
    '{"type":"integer"}},"required":["query"]}}'
)
TOOLS = [f'{{"name":"tool_{nth}",{SCHEMA}' for nth in range(40)]
IMAGE = 85 + 6 * 170
"""A large picture, as its provider publishes it: a base, and so much for each tile."""


def true_count(request):
    exact = tokenizer("o200k")
    if exact is None:
        pytest.skip("rs-bpe is not installed")
    shapes = [one for payload in request.messages for one in request.wire.describe(payload).shapes]
    told = sum(exact.count(one.text) + IMAGE * len(one.media) for one in shapes)
    return told + 3 * len(request.messages) + sum(map(exact.count, TOOLS))


def naive_count(request):
    return sum(len(text) // 4 for text in texts(request))


COUNTED = {
    "pictures": [Asked("What is this?", listed=True, media=True), Responded("A cat.")] * 12,
    "another script": [
        Asked("請求書の金額が合わない理由を調べてください。" * 40),
        Responded("はい。"),
    ]
    * 6,
    "tools alone": [Asked("Hello."), Responded("Hello.")],
    "results": [*used("c1", "read", '{"id":"0f3a-77","sum":12.50},' * 400), Responded("Done.")],
}


@pytest.mark.parametrize("what", COUNTED)
@pytest.mark.parametrize("counter", [counter_for("openai:gpt-4o"), Estimate()])
async def test_07_wrong_counts(log, what, counter):
    given = Setup.of("openai:gpt-4o", BALANCED, tools=TOOLS)
    given = Setup(given.model, counter, given.budget, given.profile)
    talk = await Talk.open(log, given)
    request = await talk.go(Asked("Begin."), *COUNTED[what])
    assert miscounted(naive_count(request), true_count(request))
    assert not miscounted(request.plan.account.sent, true_count(request))
