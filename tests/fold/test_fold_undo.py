"""Folds taken back, whole and in part, in a store."""

from typing import Any
from uuid import uuid4

import pytest
from folding import Kept
from shown import turn, used

from refold.errors import InvalidInput
from refold.fold.summary import parse
from refold.fold.undo import EDIT, UNFOLD, edit_summary, undo_fold, unfold_span
from refold.log import CODEC, FoldCompleted, FoldStarted, PartRef, Pinned, Span
from refold.log.entry import seqs, union
from refold.testing.wire import Asked


def turns(*numbers):
    for nth in numbers:
        step = used(f"c{nth}", "read", f"content of part_{nth}.py", path=f"part_{nth}.py")
        yield from turn(f"Please read part_{nth}.py.", step, reply=f"Read part_{nth}.py.")


async def a_session(*numbers):
    return await Kept.of(*turns(*numbers), Asked("And now?"))


def folded(outline):
    return {*seqs(span for one in outline.folds for span in one.spans)}


async def opened(kept, first, last):
    """Open a span; the messages that are seen since, and the entries folded no more."""
    seen, before = {*await kept.seen()}, folded(await kept.outline())
    values = await unfold_span(kept.log, "s", await kept.outline(), Span(first, last), uuid4)
    await kept.append(*values)
    return {*await kept.seen()} - seen, before - folded(await kept.outline())


async def test_the_newest_fold_is_taken_back_unless_told_which():
    kept = await a_session(*range(4))
    all_seen = await kept.seen()
    first = await kept.fold(spans=(Span(6, 9),))
    second = await kept.fold(spans=(Span(10, 13),))
    await kept.append(*undo_fold(await kept.outline()))
    assert [one.fold for one in (await kept.outline()).folds] == [first]
    await kept.append(*undo_fold(await kept.outline(), first))
    assert await kept.seen() == all_seen
    with pytest.raises(InvalidInput, match="No fold is in effect"):
        undo_fold(await kept.outline(), second)


async def test_a_fold_over_a_fold_taken_back_leaves_the_one_beneath():
    kept = await a_session(*range(4))
    first = await kept.fold()
    before = await kept.seen()
    await kept.say(*turns(4, 5))
    after = await kept.seen()
    await kept.fold()
    await kept.append(*undo_fold(await kept.outline()))
    assert [one.fold for one in (await kept.outline()).folds] == [first]
    assert await kept.seen() == after
    assert before == after[: len(before)]


async def test_opening_all_of_a_fold_leaves_none():
    kept = await a_session(*range(4))
    before = await kept.seen()
    await kept.fold()
    (span,) = (await kept.outline()).folds[0].spans
    await opened(kept, span.first, span.last)
    assert await kept.seen() == before
    assert not (await kept.outline()).folds


async def test_exactly_the_opened_part_is_seen_again():
    kept = await a_session(*range(5))
    await kept.fold()
    (span,) = (await kept.outline()).folds[0].spans
    text = (await kept.inputs()).foldings[0].shown
    seen, free = await opened(kept, span.first + 2, span.first + 4)
    assert seen == free == {span.first + 2, span.first + 3, span.first + 4}
    (rest,) = (await kept.outline()).folds
    assert rest.spans == (Span(span.first, span.first + 1), Span(span.first + 5, span.last))
    assert (await kept.inputs()).foldings[0].shown == text  # it goes on telling the same


async def test_a_span_beyond_a_fold_opens_what_is_folded_of_it():
    kept = await a_session(*range(4))
    await kept.fold(spans=(Span(6, 9),))
    seen, free = await opened(kept, 8, 12)
    assert seen == free == {8, 9}


async def folded_three_times():
    kept = await a_session(*range(3))
    for nth in range(3, 6):
        await kept.fold()
        await kept.say(*turns(nth))
    await kept.fold()
    return kept


async def messages(kept):
    return {one.seq for one in await kept.log.read("s") if one.kind == "message"}


async def test_a_part_of_a_fold_over_folds_is_opened_through_all_of_them():
    kept = await folded_three_times()
    seen, free = await opened(kept, 7, 8)
    assert seen == free == {7, 8}
    assert len((await kept.outline()).folds) == 1


async def test_a_fold_beneath_may_have_been_opened_while_the_one_over_it_was_made():
    kept = await a_session(*range(6))
    await kept.fold(spans=(Span(6, 13),))

    async def meanwhile():
        await opened(kept, 7, 8)

    await kept.fold(spans=(Span(6, 17),), meanwhile=meanwhile)
    assert {7, 8} <= folded(await kept.outline())
    seen, free = await opened(kept, 7, 8)
    assert seen == free == {7, 8}


async def test_opening_again_and_again_comes_to_an_end():
    kept = await folded_three_times()
    below = folded(await kept.outline())
    wanted = sorted(below & await messages(kept))
    for seq in wanted:
        seen, free = await opened(kept, seq, seq)
        assert seen == free == {seq}
    assert {*await kept.seen()} == await messages(kept)


async def test_folds_that_stood_beneath_and_were_not_opened_stand_again_when_the_rest_is_undone():
    kept = await a_session(*range(6))
    first = await kept.fold(spans=(Span(6, 9),))
    await kept.fold(spans=(Span(10, 13),))
    await kept.fold(spans=(Span(6, 17),))
    await opened(kept, 11, 12)
    await kept.append(*undo_fold(await kept.outline()))
    assert [one.fold for one in (await kept.outline()).folds] == [first]


async def test_what_goes_on_says_what_it_continues():
    kept = await a_session(*range(5))
    await kept.fold()
    (origin,) = (await kept.outline()).folds
    await opened(kept, 8, 8)
    await opened(kept, 10, 10)
    (rest,) = (await kept.outline()).folds
    started, completed = map(CODEC.decode, await kept.log.read("s", Span(rest.seq - 1, rest.seq)))
    assert isinstance(started, FoldStarted)
    assert started.trigger == UNFOLD
    assert isinstance(completed, FoldCompleted)
    assert parse(completed.summary).continues == origin.seq
    assert union(completed.spans) == rest.spans


@pytest.mark.parametrize("summary", ["They talked.", {"text": "They talked."}, None])
async def test_summaries_written_by_hand_go_on_too(summary):
    kept = await a_session(*range(4))
    fold = uuid4()
    await kept.append(FoldStarted(fold, (Span(6, 12),), "by hand"))
    await kept.append(FoldCompleted(fold, (Span(6, 12),), summary))
    seen, _ = await opened(kept, 9, 10)
    assert seen == {9, 10}
    (folding,) = (await kept.inputs()).foldings
    told = [text for _, text in folding.shown]
    assert told == (["[Summary of 5 earlier messages]\nThey talked."] if summary else [])


async def test_pins_stay_beside_what_is_opened():
    kept = await a_session(*range(4))
    await kept.append(Pinned((PartRef(7, 0),)))
    await kept.fold(spans=(Span(6, 13),))
    assert [one.seq for one in (await kept.inputs()).pinned] == [7]
    await opened(kept, 9, 10)
    assert [one.seq for one in (await kept.inputs()).pinned] == [7]
    seen, _ = await opened(kept, 6, 8)
    assert seen == {6, 7, 8}
    assert (await kept.inputs()).pinned == []


async def test_what_is_not_folded_cannot_be_opened():
    kept = await a_session(*range(4))
    await kept.fold(spans=(Span(6, 9),))
    with pytest.raises(InvalidInput, match="No fold replaces entries 12 to 13") as error:
        await unfold_span(kept.log, "s", await kept.outline(), Span(12, 13), uuid4)
    assert "refold explain" in error.value.fix


async def edited(kept, fold, text) -> list[Any]:
    values = await edit_summary(kept.log, "s", await kept.outline(), fold, text, uuid4)
    await kept.append(*values)
    return [*values]


async def test_an_edited_summary_is_shown_as_the_users_words_and_folds_the_same():
    kept = await a_session(*range(4))
    fold = await kept.fold()
    before = folded(await kept.outline())
    _, started, completed = await edited(kept, fold, " Use port 8080.\x1b[31m\n")
    assert (started.trigger, folded(await kept.outline())) == (EDIT, before)
    ((_, shown),) = (await kept.inputs()).foldings[0].shown
    assert "replaced by these words of the user" in shown
    assert shown.splitlines()[1].startswith("Use port 8080.")
    assert "\x1b" not in shown
    summary = parse(completed.summary)
    assert (summary.by, summary.sections, summary.report) == ("hand", (), None)
    assert summary.ledger  # the next fold chooses among the names again


async def test_the_next_fold_keeps_what_a_person_wrote():
    kept = await a_session(*range(4))
    fold = await kept.fold()
    await edited(kept, fold, "The release is on Friday.")
    await kept.say(*turns(4, 5))
    await kept.fold()
    text = "\n".join(text for _, text in (await kept.inputs()).foldings[0].shown)
    assert "The release is on Friday." in text


async def test_an_edited_fold_over_a_fold_leaves_the_one_beneath_when_it_is_undone():
    kept = await a_session(*range(4))
    first = await kept.fold()
    await kept.say(*turns(4, 5))
    second = await kept.fold()
    before = folded(await kept.outline())
    await edited(kept, second, "In short.")
    assert folded(await kept.outline()) == before
    await kept.append(*undo_fold(await kept.outline()))
    assert [one.fold for one in (await kept.outline()).folds] == [first]
    with pytest.raises(InvalidInput, match="No such fold is in effect"):
        await edited(kept, second, "In short.")
