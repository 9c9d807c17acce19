"""A summarizer that lies: nothing it made up is shown, and no session is stuck or loses a word."""

from collections import Counter as Counted

import pytest
from adversaries import Tale
from amounts import amount
from folding import spelled
from shown import changed
from summarizers import Scripted, writing
from talks import SMALL, Talk, setup, texts

from refold.fold.summary import parse
from refold.fold.write.phrases import HEADINGS
from refold.log import FoldCompleted, FoldStarted, Message
from refold.stores import MemoryStore

PROFILE = changed(SMALL, fold={"call_limit": 0.03})
CASES = amount(few=10, quick=30, ci=40, thorough=600)
AT_ONCE = 30


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


def model_told(summary):
    """What a model's sections say, and the title."""
    headings = {*HEADINGS.values()}
    claims = (one for part in summary.sections if part.heading in headings for one in part.claims)
    return "\n".join((summary.title, *(claim.text for claim in claims)))


@pytest.mark.parametrize("batch", range(CASES // AT_ONCE))
async def test_a_lie_is_in_no_view_and_holds_nothing_up(batch):
    kinds, problems = Counted(), []
    for seed in range(batch * AT_ONCE, (batch + 1) * AT_ONCE):
        lie, folds, sent = await told_by(seed)
        kinds[lie.kind] += 1
        told = "\n".join(map(model_told, folds))
        problems += [
            (seed, lie.kind, word, lie.answer, told) for word in lie.forbidden if word in told
        ]
        everything = "\n".join(sent)
        problems += [(seed, lie.kind, word, "sent") for word in lie.nowhere if word in everything]
    assert not problems
    assert len(kinds) > 4
