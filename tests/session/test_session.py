"""Sessions: opened, driven, opened again, by one or by several at once."""

import asyncio
from datetime import UTC, datetime

import pytest
from folding import spelled
from talks import SMALL, Talk, Writer, setup, texts, work

from refold.errors import InvalidInput, SessionNotFound, Unrebuildable
from refold.log import CODEC, Author, Forgotten, Message, PartRef, Requested, Span
from refold.memory.memory import forget
from refold.recall.text import rebuilt
from refold.session import Session, Usage
from refold.stores import open_store
from refold.testing.wire import Asked, Responded
from refold.view.record import WHOLE_EVERY


@pytest.fixture(params=["memory:", "sqlite"])
async def log(request, tmp_path):
    address = request.param if request.param == "memory:" else f"sqlite:///{tmp_path / 'a.db'}"
    async with open_store(address) as store:
        yield store.log()


# Opening, saying, asking, answering.


async def test_a_session_is_begun_and_found_again(log):
    talk = await Talk.open(log)
    assert (await log.info("s")).format == "pydantic-ai"
    assert (talk.session.name, talk.session.head) == ("s", 1)
    span = await talk.say(Asked("Hello."), Asked("Are you there?"))
    assert span == Span(2, 3)
    request = await talk.request()
    assert texts(request) == ["Hello.", "Are you there?"]
    span = await talk.answer(Responded("Yes."))
    assert span.first == 5
    again = await Session.open(log, "s", setup(), format=None)
    assert again.head == talk.session.head == span.last == await log.head("s")


async def test_a_session_that_must_be_there_and_is_not(log):
    with pytest.raises(SessionNotFound):
        await Session.open(log, "s", setup(), format=None)


async def test_another_format_is_refused_with_what_to_do(log):
    await Talk.open(log)
    with pytest.raises(InvalidInput, match="holds pydantic-ai messages, not openai-chat") as found:
        await Session.open(log, "s", setup(), format="openai-chat")
    assert "another session" in found.value.fix
    assert await log.head("s") == 1


async def test_two_that_begin_a_session_at_once_both_have_it(log):
    opened = await asyncio.gather(*(Session.open(log, "s", setup()) for _ in range(4)))
    assert {one.head for one in opened} == {1}


async def test_the_entries_are_made_by_the_given_author(log):
    then = datetime(2026, 1, 1, tzinfo=UTC)
    session = await Session.open(log, "s", setup(), author=Author(lambda: then))
    await session.say(*spelled("pydantic-ai", Asked("Hello.")))
    assert {entry.at for entry in await log.read("s")} == {int(then.timestamp() * 1000)}


async def test_an_answer_without_words_is_no_answer(log):
    talk = await Talk.open(log)
    with pytest.raises(InvalidInput):
        await talk.session.say()
    with pytest.raises(InvalidInput):
        await talk.session.answer()
    assert await log.head("s") == 1


async def test_an_answer_may_come_after_its_question_was_cleared(log):
    talk = await Talk.open(log)
    await talk.say(Asked("Hello."))
    await talk.request()
    await talk.session.clear()
    await talk.session.answer(usage=Usage(10, 5))
    await talk.answer(Responded("Hello."))
    assert texts(await talk.request())[-1] == "Hello."


# Opened again.


async def test_a_session_opened_again_sends_the_same_prefix(log):
    profile = SMALL.model_copy(update={"archive": SMALL.archive.model_copy(update={"recent": 0})})
    given = setup(profile, window=6_000)
    talk = await Talk.open(log, given)
    await talk.go(*work(*range(40)))
    assert (await talk.folds())[1] >= 1
    await talk.say(Asked("And now?"))
    before = await talk.request()
    assert before.plan.layout.changes or before.plan.layout.inserts
    again = await Talk.open(log, given, format=None)
    after = await again.request()
    assert list(after.messages) == list(before.messages)
    assert (after.plan.cause, after.plan.rewrites) == ("", before.plan.rewrites)


async def test_a_session_opened_again_goes_on_with_its_chain_of_records(log):
    talk = await Talk.open(log, setup(window=50_000))
    await talk.go(*work(1, 2))
    first = await talk.values(Requested)
    again = await Talk.open(log, setup(window=50_000), format=None)
    await again.go(*work(3))
    there = await again.values(Requested)
    assert [len(one.chain) for one in there] == list(range(len(first) + 2))
    assert there[-1].chain[-1] == (await again.where(Requested))[-2]
    await again.all_rebuilt()


# Several at once.


async def test_two_that_have_a_session_open_take_in_what_the_other_appends(log):
    one, two = await Talk.open(log), await Talk.open(log)
    await one.say(Asked("From one."))
    await two.say(Asked("From two."))
    assert texts(await one.request()) == ["From one.", "From two."]
    await one.answer(Responded("To both."))
    assert texts(await two.request()) == ["From one.", "From two.", "To both."]
    assert one.session.head < two.session.head == await log.head("s")


async def test_the_fold_of_one_is_seen_by_the_other(log):
    one, two = await Talk.open(log), await Talk.open(log)
    await one.go(*work(*range(6)))
    before = await two.request()
    done = await one.session.compact()
    after = await two.request()
    assert len(after.messages) < len(before.messages)
    assert done.summary.text in texts(after)
    assert [event.success for event in two.events("session.compaction_complete")] == [True]
    for talk in (one, two):
        await talk.all_rebuilt()


async def test_tasks_that_share_one_session_take_in_each_entry_once(log):
    talk, other = await Talk.open(log, setup(window=50_000)), await Talk.open(log)

    async def speak(nth):
        who = other if nth % 3 else talk
        await who.say(Asked(f"From {nth}."))
        return await talk.session.request()

    requests = await asyncio.gather(*(speak(nth) for nth in range(9)))
    last = await talk.request()
    assert sorted(texts(last)) == [f"From {nth}." for nth in range(9)]
    for request in requests:
        assert len({*texts(request)}) == len(request.messages)


# Every request can be made again.


async def test_every_record_is_rebuilt_whatever_was_done_to_the_view(log):
    talk = await Talk.open(log, setup(window=3_000))
    session = talk.session
    await talk.go(*work(*range(8)))
    await session.compact()
    await talk.go(*work(8, 9))
    await session.unfold(Span(4, 6))
    await talk.go(*work(10))
    await session.pin(PartRef(2, 0))
    await session.compact("what was found")
    await talk.go(*work(11))
    await session.take_back()
    await talk.go(*work(12, 13))
    middle = session.head
    await talk.go(*work(14, 15))
    await session.rewind(middle)
    last = await talk.go(*work(16))
    assert "Read part_13." in texts(last)
    assert "Read part_14." not in texts(last)
    fork = await session.fork("t")
    assert fork.entries == session.head
    other = await Talk.open(log, setup(window=3_000), name="t", format=None)
    await other.go(*work(17))
    await session.clear()
    await talk.say(Asked("Anew."))
    assert texts(await talk.request()) == ["Anew."]
    assert await talk.all_rebuilt() > 25
    await other.all_rebuilt()
    for seq, messages in talk.sent.items():
        if seq <= fork.entries:
            assert await rebuilt(log, "t", seq) == messages


async def test_records_are_rebuilt_after_more_than_one_whole_one(log):
    talk = await Talk.open(log, setup(window=4_000))
    await talk.go(*work(*range(WHOLE_EVERY // 2 + 4), size=120))
    assert sum(not one.chain for one in await talk.values(Requested)) >= 2
    assert await talk.all_rebuilt() > WHOLE_EVERY


async def test_a_request_asked_for_twice_is_the_same_twice(log):
    talk = await Talk.open(log)
    await talk.go(*work(1))
    await talk.say(Asked("And now?"))
    one, two = await talk.request(), await talk.request()
    assert list(one.messages) == list(two.messages)
    assert two.plan.cause == ""
    await talk.all_rebuilt()


# Forgetting.


async def test_what_is_forgotten_beneath_a_fold_takes_the_fold_with_it(log):
    talk = await Talk.open(log, setup(window=4_000), write=Writer())
    await talk.go(*work(*range(4)))
    secret = await talk.say(Asked("The password is swordfish."))
    await talk.go(Responded("I did not hear that."), *work(4, 5))
    await talk.session.compact()
    folded = await talk.go(*work(6))
    assert any("files and went on" in text for text in texts(folded))
    assert "Read part_0." in texts(folded)
    assert "Read part_2." not in texts(folded)
    sent = [seq for seq in talk.sent if seq > secret.last]
    erased = await talk.session.forget(secret)
    assert erased.derived >= len(sent)
    request = await talk.go(*work(7))
    assert not any("swordfish" in text or "files and went on" in text for text in texts(request))
    assert "Read part_2." in texts(request)
    assert "Read part_7." not in texts(request)
    for seq in sent:
        with pytest.raises(Unrebuildable):
            await rebuilt(log, "s", seq)
        (left,) = [CODEC.decode(one) for one in await log.read("s", Span(seq, seq))]
        assert isinstance(left, Forgotten)
        assert left.state == "unrebuildable"
    again = await Talk.open(log, setup(window=4_000), format=None)
    assert texts(await again.request())[:-1] == texts(request)
    assert await log.search("swordfish") == []
    assert len(await talk.values(Message)) > 20


async def test_who_has_a_session_or_a_fork_of_it_open_sends_nothing_that_is_forgotten(log):
    talk = await Talk.open(log)
    await talk.go(*work(0))
    secret = await talk.say(Asked("The password is swordfish."))
    await talk.answer(Responded("I did not hear that."))
    await talk.session.fork("fork")
    fork = await Talk.open(log, name="fork", format=None)
    await fork.session.fork("before", at=secret.first - 1)
    other = await Talk.open(log, format=None)
    before = await Talk.open(log, name="before", format=None)
    for each in (fork, other):
        assert any("swordfish" in text for text in texts(await each.request()))
    head = await log.head("before")
    await forget(log, "s", secret)
    for each in (fork, other, talk):
        assert not any("swordfish" in text for text in texts(await each.request()))
    assert await log.head("before") == head
    await before.request()
    await forget(log, "s")
    assert not any("part_0" in text for text in texts(await fork.request()))
