"""A summarizer that lies: it is told in its own name alone, and no session is stuck."""

from collections import Counter as Counted

import pytest
from adversaries import LIES, Tale
from amounts import amount, seeds
from folding import spelled
from shown import changed
from summarizers import Scripted, writing
from talks import SMALL, Talk, setup, texts

from refold.fold.summary import parse
from refold.log import FoldCompleted, FoldStarted, Message
from refold.stores import MemoryStore

ACCOUNT = "## The model's account"
PROFILE = changed(SMALL, fold={"call_limit": 0.03})
BATCHES = amount(few=1, quick=1, ci=5, nightly=24, thorough=100)
AT_ONCE = len(LIES)
"""A batch has every way to lie."""


def scripted(lie):
    answers = iter(lie.answer) if isinstance(lie.answer, list) else None
    last = lie.answer[-1] if answers else lie.answer
    return Scripted(
        (lambda _: next(answers, last)) if answers else last, window=6_000, hangs=last is None
    )


async def told_by(seed):
    """A session with such a summarizer; its lie, its talk, and all that was sent."""
    tale = Tale(seed)
    lie = tale.lie()
    sent = []
    async with MemoryStore() as store:
        talk = await Talk.open(store.log(), setup(PROFILE, 12_000), write=writing(scripted(lie)))
        said = [*tale.turns()]
        for one in said:
            request = await talk.go(one)
            sent += texts(request) if request else []
        assert [one.payload for one in await talk.values(Message)] == spelled("pydantic-ai", *said)
        begun, made, failed = await talk.folds()
        assert begun == made + failed
        assert made
        folds = [parse(one.summary) for one in await talk.values(FoldCompleted)]
        assert all(one.trigger for one in await talk.values(FoldStarted))
        await talk.session.close()
    return lie, folds, sent


def told_otherwise(summary, word):
    """Where a word stands that is not in a line of the model's account without a source."""
    above, _, account = summary.text.partition(ACCOUNT)
    lines = (line for line in account.splitlines() if word in line)
    return [
        *([summary.title] if word in summary.title else []),
        *([above] if word in above else []),
        *(line for line in lines if " — no source" not in line.partition(word)[2]),
    ]


@pytest.mark.parametrize("batch", range(BATCHES))
async def test_a_lie_stands_in_the_models_account_alone_and_holds_nothing_up(batch):
    kinds, problems = Counted(), []
    for seed in seeds(BATCHES * AT_ONCE)[batch * AT_ONCE :][:AT_ONCE]:
        lie, folds, sent = await told_by(seed)
        kinds[lie.kind] += 1
        problems += [
            (seed, lie.kind, word, lie.answer, place)
            for word in lie.forbidden
            for fold in folds
            for place in told_otherwise(fold, word)
        ]
        everything = "\n".join(sent)
        problems += [(seed, lie.kind, word, "sent") for word in lie.nowhere if word in everything]
    assert not problems
    assert len(kinds) == 11  # the ways to lie
