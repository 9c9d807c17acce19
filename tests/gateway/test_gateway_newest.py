"""What a turn costs in calls to the store, and when the store is asked where it belongs."""

from collections import Counter

import pytest
from gateway_world import CHAT, World, body_of

from refold.gateway.incoming import Chain, Continue, key_of
from refold.gateway.recent_answers import AnswerCache
from refold.stores import MemoryStore
from refold.testing.upstream import Reply


class Counting:
    """A log that counts what it is asked."""

    def __init__(self, log, calls):
        self._log, self._calls = log, calls

    def __getattr__(self, name):
        found = getattr(self._log, name)
        if not callable(found):
            return found
        if name != "locks":
            self._calls[name] += 1
        return found


class Store(MemoryStore):
    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def log(self, tenant="default"):
        return Counting(super().log(tenant), self.calls)


def echo(got):
    return Reply(f"You said: {got.body['messages'][-1]['content']}")


@pytest.fixture
async def world():
    world = World(echo, store=Store())
    yield world
    await world.aclose()


async def turn(world, *said):
    """Say all of it; the session, and what that took."""
    world.store.calls.clear()
    answer = await world.ask(CHAT, body_of(CHAT, *said))
    await world.quiet()
    assert answer.status_code == 200
    return answer.headers["refold-session"], dict(world.store.calls)


async def test_a_session_begins_with_one_look_and_three_appends(world):
    _, calls = await turn(world, "one")
    assert calls == {"marked": 1, "append": 3}


async def test_who_goes_on_where_it_was_answered_costs_three_appends(world):
    first, _ = await turn(world, "one")
    again, calls = await turn(world, "one", "You said: one", "two")
    assert again == first
    assert calls == {"append": 3}


async def test_when_others_went_on_there_the_log_disagrees_and_it_is_a_branch(world):
    first, _ = await turn(world, "one")
    other = World(echo, store=world.store)
    there, _ = await turn(other, "one", "You said: one", "two")
    here, calls = await turn(world, "one", "You said: one", "three")
    assert there == first
    assert here not in {first, ""}
    assert calls["marked"] == 1
    said = [one["content"] for one in await world.said(here)]
    assert said == ["one", "You said: one", "three", "You said: three"]
    await other.aclose()


async def test_a_session_that_was_forgotten_elsewhere_is_not_gone_on_with(world):
    first, _ = await turn(world, "one")
    await world.log.forget(first)
    again, _ = await turn(world, "one", "You said: one", "two")
    assert again != first


async def test_a_retry_of_what_was_guessed_is_looked_for(world):
    first, _ = await turn(world, "one")
    await turn(world, "one", "You said: one", "two")
    again, calls = await turn(world, "one", "You said: one", "two")
    assert again == first
    assert calls["marked"] == 1


def chain_of(*links, answered):
    return Chain(links, answered)


def test_newest_is_told_once():
    newest, chain = AnswerCache(), chain_of(b"a", b"b", b"c", answered=(1,))
    newest.put("t", key_of("answered", b"b"), "s", 7)
    assert newest.take("other", chain) is None
    assert newest.take("t", chain) == Continue("s", 7, 2)
    assert newest.take("t", chain) is None


def test_what_is_asked_again_is_looked_for():
    """By then somebody else may have got the same answer, to the letter."""
    newest, chain = AnswerCache(), chain_of(b"a", b"b", b"c", answered=(1,))
    assert newest.take("t", chain) is None
    newest.put("t", key_of("answered", b"b"), "of another", 7)
    assert newest.take("t", chain) is None
    assert newest.take("t", chain_of(b"a", b"b", b"d", answered=(1,))) == Continue(
        "of another", 7, 2
    )


def test_of_two_alike_neither_is_taken():
    newest, chain = AnswerCache(), chain_of(b"a", b"b", answered=(0,))
    for name in ("s", "other"):
        newest.put("t", key_of("answered", b"a"), name, 7)
    assert newest.take("t", chain) is None


def test_only_the_newest_answer_of_a_request_counts():
    newest = AnswerCache()
    newest.put("t", key_of("answered", b"a"), "s", 7)
    assert newest.take("t", chain_of(b"a", b"b", b"c", answered=(0, 1))) is None


def test_it_holds_no_more_than_so_many():
    newest = AnswerCache(max_answers=2)
    for at in range(3):
        newest.put("t", key_of("answered", bytes([at])), f"s{at}", 7)
    found = [newest.take("t", chain_of(bytes([at]), b"%d" % at, answered=(0,))) for at in range(3)]
    assert [one and one.session for one in found] == [None, "s1", "s2"]
