"""What users of such tools complain about most: it happens to a naive one, and it does not here.

Each complaint has one check. The naive tool (`naive.py`) is caught by it, Refold is not. Those
about summaries and about counts are in `test_complaints_of_summaries.py` and
`test_complaints_of_counts.py`.
"""

import re
from itertools import pairwise, takewhile

import pytest
from naive import Clipping, Naive, PlaceholderOnly, Rolling, Undoing
from shown import changed, turn, used
from summarizers import Scripted, writing
from talks import SMALL, Talk, chat, setup, texts, work

from refold.log import Message
from refold.testing.wire import Answered, Asked, Call, Responded, Return
from refold.view.profiles import COPILOT

DOWN = RuntimeError("The model is down.")


async def opened(log, summarizer, given=None, **how):
    return await Talk.open(log, given or setup(), write=writing(summarizer), **how)


async def requests_of(talk, *said):
    """The requests that are made while this is said."""
    found = []
    for one in said:
        if isinstance(one, Responded):
            found.append(await talk.request())
            await talk.answer(one)
        else:
            await talk.say(one)
    return found


# 1. Compaction frees nothing, and is made again at every request, hundreds of times.


def in_vain(freed, requests):
    """More than every sixth request was held up by a compaction that was of no use."""
    return sum(one < 500 for one in freed) > len(requests) / 6


def freed_by(talk):
    ends = talk.events("session.compaction_complete")
    return [one.tokens_removed if one.success else 0 for one in ends]


WENT_ON = "## State\n- They went on."
LONG = "## State\n" + "- They read a file and went on.\n" * 1_200
DOCUMENT = Asked("A long document. " * 2_100)
LOOPS = {
    "the instructions alone are too long": ([*chat(*range(30))], 8_500, WENT_ON),
    "what stays is too long": (
        [*chat(*range(12)), DOCUMENT, *[Responded("A note.")] * 24],
        0,
        WENT_ON,
    ),
    "every summary fails": ([*work(*range(50), size=1_600)], 0, DOWN),
    "every summary is longer than what it replaces": ([*work(*range(50), size=1_600)], 0, LONG),
}


@pytest.mark.parametrize("profile", [SMALL, changed(COPILOT, fold={"apply": "inline"})])
@pytest.mark.parametrize("why", LOOPS)
async def test_01_death_loops(log, why, profile):
    said, instructions, answer = LOOPS[why]
    naive = Naive(Scripted(answer), 10_000, instructions=instructions, keep=16)
    requests = await requests_of(naive, *said)
    assert in_vain(naive.freed, requests)
    summarizer = Scripted(answer)
    talk = await opened(log, summarizer, setup(profile, 10_000, instructions=instructions))
    requests = await requests_of(talk, *said)
    assert not in_vain(freed_by(talk), requests)
    assert summarizer.calls <= len(requests) / 6


# 2. What is to be summarized is longer than the summarizer's window: the call itself overflows.


def overflows(summarizer, request, numbers):
    """Prompts that are too long, and results that were neither shown to anyone nor are there."""
    fitting = [one for one in summarizer.prompts if summarizer.counter.text(one) <= 1_500]
    seen = "\n".join((*fitting, *texts(request)))
    long = len(summarizer.prompts) - len(fitting)
    return long, [nth for nth in numbers if f"value_{nth} = {nth}" not in seen]


@pytest.mark.parametrize("naive", [Naive, Clipping])
async def test_02_compaction_overflows(log, naive):
    numbers = range(60)
    caught = naive(Scripted(window=1_500), 6_000)
    assert any(overflows(caught.summarizer, await caught.go(*work(*numbers)), numbers))
    summarizer = Scripted(window=1_500)
    talk = await opened(log, summarizer, setup(window=6_000))
    request = await talk.go(*work(*numbers))
    assert overflows(summarizer, request, numbers) == (0, [])
    assert summarizer.calls > 3


# 3. After a compaction the agent does not know the rules any more, nor what it is working on.


def forgotten(requests, *words):
    """What was to be kept in mind, and is missing in some request."""
    told = ["\n".join(texts(one)) for one in requests]
    return {one for one in words if any(one not in text for text in told)}


@pytest.mark.parametrize("window", [4_000, 20_000])
async def test_03_forgotten_task(log, window):
    rule = "Never commit to the main branch."
    task = "Now rename value_1 everywhere, but leave src/part_2.py alone."
    before = [*chat(1), *turn(rule, reply="Understood."), *work(*range(40), size=window * 2 // 25)]
    steps = [one for nth in range(40, 80) for one in [*work(nth, size=window * 2 // 25)][1:3]]
    naive = Naive(Scripted(), window)
    await naive.go(*before, Asked(task))
    assert forgotten(await requests_of(naive, *steps), rule, task) == {rule, task}
    talk = await opened(log, Scripted(), setup(window=window))
    await talk.go(*before, Asked(task))
    assert forgotten(await requests_of(talk, *steps), rule, task) == set()
    assert (await talk.folds())[1] >= 2


# 5. Messages that were kept at the first compaction are gone after the second, and nobody knows.


def lost(said, found):
    """Messages that nobody can read any more."""
    there = {*found}
    return [one for one in said if one not in there]


async def unfolded(talk):
    """What the model is shown once every fold is taken back."""
    while (await talk.log.visible("s", last=0)).outline.folds:
        await talk.session.take_back()
    whole = changed(SMALL, fold={"breadcrumb": False}, archive={"min_chars": 0})
    reader = await Talk.open(talk.log, setup(whole, 1_000_000), format=None)
    return (await reader.request()).messages


@pytest.mark.parametrize("answer", [WENT_ON, "", DOWN], ids=["said", "empty", "down"])
async def test_05_silent_loss(log, answer):
    talk = await opened(log, Scripted(answer), setup(window=3_000))
    await talk.go(*work(*range(60)))
    said = [one.payload for one in await talk.values(Message)]
    assert len(said) == 240
    naive = PlaceholderOnly(Scripted(answer), 3_000)
    await naive.go(*work(*range(60)))
    assert lost(said, naive.kept)
    assert lost(said, await unfolded(talk)) == []
    assert (await talk.folds())[1] >= 3


# 6. A cut between a call and its result: the provider refuses every request from then on.


def orphans(requests):
    return [problem for one in requests for problem in one.wire.problems(one.messages)]


def read_together(nth):
    """Three files are read at once."""
    calls = [Call(f"c{nth}{at}", "read", {"path": f"src/{at}.py"}) for at in "abc"]
    returns = [Return(one.id, "read", f"value_{nth}\n" + "x" * 300) for one in calls]
    return Responded(None, tuple(calls)), Answered(tuple(returns))


@pytest.mark.parametrize("keep", range(1, 7))
async def test_06_orphaned_results(log, keep):
    step = [*read_together(1), *used("c", "read", "y" * 600)]
    said = [*chat(1), Asked("Go on."), *step * 12, Responded("Done.")]
    naive = Naive(Scripted(), 2_000, keep=keep)
    found = await requests_of(naive, *said)
    # An even count is lucky here: each step has two messages.
    assert bool(orphans(found)) == bool(keep % 2)
    by_count = changed(SMALL, fold={"keep": {"unit": "messages", "amount": keep, "least": keep}})
    talk = await opened(log, Scripted(), setup(by_count))
    assert orphans(await requests_of(talk, *said)) == []
    assert (await talk.folds())[1] >= 2


# 8. The beginning is rewritten at every turn, so no cache helps; the summarizer reads all anew.


def beginning(pair):
    """The bytes of a request that are as the request before has them."""
    alike = takewhile(
        lambda both: both[0] == both[1], zip(*(one.messages for one in pair), strict=False)
    )
    return sum(len(payload) for payload, _ in alike)


def costly(requests, summarizer, numbers):
    """What is paid for again: most of each request, or what the summarizer had read before."""
    sent = sum(len(payload) for one in requests for payload in one.messages)
    known = sum(map(beginning, pairwise(requests)))
    read = [sum(f"value_{nth} = {nth}" in one for one in summarizer.prompts) for nth in numbers]
    found = ["uncached"] if known < 0.75 * sent else []
    return [*found, *(["read twice"] if max(read) > 1 else [])]


async def test_08_cache_cost(log):
    numbers = range(80)
    naive = Rolling(Scripted(lambda prompt: f"They wrote {len(prompt)} characters."), keep=20)
    requests = await requests_of(naive, *work(*numbers))
    assert costly(requests, naive.summarizer, numbers) == ["uncached", "read twice"]
    summarizer = Scripted()
    talk = await opened(log, summarizer, setup(window=4_000))
    requests = await requests_of(talk, *work(*numbers))
    assert costly(requests, summarizer, numbers) == []
    assert summarizer.calls >= 2


# 11. What a compaction took away cannot be had back, and nobody could see before what would go.


def cannot_go_back(before, after):
    return [*before.messages] != [*after.messages]


def unforeseen(preview, lost, removed):
    """Whether the preview was silent, or wrong, about what goes."""
    named = {*preview.names}
    return preview.messages != removed or not named or not named <= lost or preview.lost < len(lost)


def orders(request):
    return {*re.findall(r"order_\d+_\d+", "\n".join(texts(request)))}


def listed(*numbers):
    """Turns in which orders are listed, a good many."""
    for nth in numbers:
        names = "\n".join(f"order_{nth}_{at}" for at in range(20))
        step = used(f"c{nth}", "orders", names, day=nth)
        yield from turn(f"List the orders of day {nth}.", step)


async def test_11_no_undo_and_no_preview(log):
    naive = Undoing(Scripted(), 20_000)
    await naive.go(*listed(*range(40)))
    before, preview = await naive.request(), await naive.preview()
    await naive.compact()
    gone = orders(before) - orders(await naive.request())
    assert unforeseen(preview, gone, preview.messages)
    await naive.take_back()
    assert cannot_go_back(before, await naive.request())

    talk = await opened(log, Scripted(), setup(window=20_000))
    await talk.go(*listed(*range(40)))
    before, preview = await talk.request(), await talk.session.preview()
    done = await talk.session.compact()
    gone = orders(before) - orders(await talk.request())
    assert not unforeseen(preview, gone, done.messages_removed)
    await talk.session.take_back()
    assert not cannot_go_back(before, await talk.request())
