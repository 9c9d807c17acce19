"""The board: facts of one branch, kept as notes of a session of its own in the log."""

import subprocess
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from boards import BRANCH, board_on, said, user
from hypothesis import example, given
from hypothesis import strategies as st

from refold.errors import InvalidInput, SessionNotFound
from refold.log import Author, Span
from refold.memory import Board, Branch, branch_of
from refold.memory.board import MAX_FACT, MAX_FACTS, PROFILE, Change, NewFact, as_fact
from refold.memory.memory import forget
from refold.stores import MemoryStore

pytestmark = pytest.mark.req("R095")


async def texts(board, **at):
    return [one.text for one in (await board.state(**at)).facts]


# ---- adding and pruning


async def test_a_fact_is_added_once_and_pruned_by_its_number(log):
    board = board_on(log)
    assert await texts(board) == []
    fact = await board.add("Tests need PostgreSQL 15.")
    assert await board.add("  tests need\nPostgreSQL 15 ") == fact
    await board.add("Builds are reproducible.")
    assert await texts(board) == ["Tests need PostgreSQL 15.", "Builds are reproducible."]
    assert await board.prune(fact.number) == fact
    assert await texts(board) == ["Builds are reproducible."]
    [hit] = await log.search("PostgreSQL")
    assert hit.entry.seq == fact.number  # pruned is not forgotten


async def test_what_is_not_there_cannot_be_pruned_and_nothing_is_no_fact(log):
    board = board_on(log)
    fact = await board.add("Tests need PostgreSQL 15.")
    with pytest.raises(InvalidInput, match=f"There are: {fact.number}"):
        await board.prune(99)
    with pytest.raises(InvalidInput, match="few words"):
        await board.add(" \n ")


async def test_a_full_board_loses_its_oldest_facts(log):
    board = board_on(log)
    facts = tuple(NewFact(f"Fact {nth}.") for nth in range(MAX_FACTS))
    await board.change(Change(add=facts, session="s", through=2))
    more = NewFact("One more."), NewFact("And another.")
    await board.change(Change(add=more, session="s", through=3))
    found = await texts(board)
    assert len(found) == MAX_FACTS
    assert found[0] == "Fact 2."
    assert found[-1] == "And another."


async def test_a_change_is_made_whole_or_not_at_all(log):
    board = board_on(log)
    first = await board.add("One.")
    head = await log.head(board.session)
    change = Change(add=(NewFact("Two.", (4,)),), prune=(first.number,), session="s", through=9)
    await board.change(change)
    stand = await board.state()
    assert [(one.text, one.session, one.entries) for one in stand.facts] == [("Two.", "s", (4,))]
    assert stand.read == {"s": 9}
    assert await log.head(board.session) == head + 3


async def test_a_full_board_keeps_what_people_put_there(log):
    board = board_on(log)
    for nth in range(3):
        await board.add(f"By hand {nth}.")
    for nth in range(MAX_FACTS):
        await board.change(Change(add=(NewFact(f"Fact {nth}."),), session="s", through=nth))
    found = await texts(board)
    assert len(found) == MAX_FACTS
    assert found[:4] == ["By hand 0.", "By hand 1.", "By hand 2.", "Fact 3."]


@example("One \x00\n word.")
@given(st.text(max_size=2 * MAX_FACT))
def test_a_fact_is_one_line_that_shows_all_it_holds(text):
    fact = as_fact(text)
    assert fact.isprintable()
    assert len(fact) <= MAX_FACT
    assert as_fact(fact) == fact


def test_secrets_do_not_reach_a_board():
    assert "hunter2hunter2" not in as_fact("The key: sk-ant-api03-hunter2hunter2hunter2hunter2")


# ---- as it stood


async def test_a_session_is_told_what_stood_when_it_began(log):
    ticks = count()
    start = datetime(2026, 3, 4, tzinfo=UTC)
    author = Author(clock=lambda: start + timedelta(seconds=next(ticks)))
    board = Board(log, BRANCH, author)
    first = await board.add("One.")
    second = await board.add("Two.")
    await board.prune(first.number)
    assert await texts(board, before=first.at - 1) == []
    assert await texts(board, before=first.at) == ["One."]
    assert await texts(board, before=second.at) == ["One.", "Two."]
    assert await texts(board) == ["Two."]
    assert "no instructions" in (await board.state()).text
    assert (await board.state(before=first.at - 1)).text == ""


# ---- a session like any other, and yet none to talk in


async def test_a_board_belongs_to_its_branch_and_its_tenant():
    async with MemoryStore() as store:
        ours, theirs = store.log("us"), store.log("them")
        await board_on(ours).add("Ours.")
        assert await texts(board_on(theirs)) == []
        assert await texts(Board(ours, Branch("0123456789ab next", "garden, next"))) == []
        info = await ours.info(board_on(ours).session)
        assert (info.profile, info.title) == (PROFILE, "Board of garden, main")


async def test_a_name_that_no_store_could_carry_is_shortened(log):
    one = Board(log, Branch("x" * 500, "long"))
    other = Board(log, Branch("x" * 501, "long"))
    await one.add("One.")
    assert await texts(one) == ["One."]
    assert await texts(other) == []


# ---- forgetting


async def test_forgetting_reaches_the_facts_that_rest_on_what_goes(log):
    board = board_on(log)
    [first, second] = await said(log, user("The gate code is 4711."), user("The pond is deep."))
    add = (NewFact("The gate code is 4711.", (first,)), NewFact("The pond is deep.", (second,)))
    await board.change(Change(add=add, session="monday", through=second))
    [gone, _] = (await board.state()).facts
    await board.prune(gone.number)  # its words are still in the log
    erased = await forget(log, "monday", Span(first, first))
    assert erased.derived == 1
    assert not await log.search("4711")
    assert await texts(board) == ["The pond is deep."]
    await forget(log, "monday")
    assert await texts(board) == []
    assert not await log.search("pond")


async def test_forgetting_reaches_what_a_fork_has_read(log):
    board = board_on(log)
    [first] = await said(log, user("The gate code is 4711."))
    await log.fork("monday", "tuesday")
    [later] = await said(log, user("The pond is deep."), session="tuesday")
    add = (NewFact("The gate code is 4711.", (first,)), NewFact("The pond is deep.", (later,)))
    await board.change(Change(add=add, session="tuesday", through=later))
    await forget(log, "monday", Span(first, first))
    assert await texts(board) == ["The pond is deep."]


async def test_facts_of_other_sessions_and_of_people_stay(log):
    board = board_on(log)
    await said(log, user("Hello."))
    await said(log, user("Hello."), session="other")
    await board.add("By hand.")
    await board.change(Change(add=(NewFact("Of another.", (2,)),), session="other", through=2))
    await forget(log, "monday")
    assert await texts(board) == ["By hand.", "Of another."]
    with pytest.raises(SessionNotFound):
        await forget(log, "never was")


# ---- which branch


def git(folder, *words):
    told = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", folder, *told, *words], check=True, capture_output=True)


def test_clones_of_a_branch_have_one_board_and_branches_have_their_own(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    git(one, "init", "-b", "main")
    empty = branch_of(one)
    git(one, "commit", "--allow-empty", "-m", "first")
    git(tmp_path, "clone", one, other)
    (other / "within").mkdir()
    assert branch_of(one).key == branch_of(other / "within").key != empty.key
    assert branch_of(one).title == "one, main"
    git(other, "checkout", "-b", "next")
    assert branch_of(other).title == "other, next"
    assert branch_of(other).key != branch_of(one).key
    git(other, "checkout", "--detach")
    assert branch_of(other).title == "other, no branch"


def test_a_folder_without_git_has_a_board_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    assert branch_of(tmp_path).key != branch_of(tmp_path / "a").key
    assert branch_of(tmp_path / "a").title == "a"
    there = branch_of(tmp_path / "a")
    monkeypatch.setenv("PATH", str(tmp_path))  # no git at all
    assert branch_of(tmp_path / "a") == there
