"""The watchdog in sessions: what is read again after a fold is told, and kept in the view."""

import pytest
from shown import changed, turn, used
from talks import SMALL, Talk, Writer, chat, setup, texts

from refold.errors import ViewTooLarge
from refold.fold.material import Passage
from refold.fold.summary import parse
from refold.fold.watchdog import (
    COUNTED,
    KEPT_IN_VIEW,
    MAX_PIN_SHARE,
    OTHER,
    TOO_LARGE,
)
from refold.log import (
    FoldCompleted,
    PartRef,
    Pinned,
    Rewound,
    Span,
    Unpinned,
)
from refold.stores import open_store
from refold.testing.wire import Answered, Asked, Call, Responded, Return

FILE = "def total(values):\n    return sum(values)\n" * 8  # 80 tokens
WIDE = 40_000  # 4,000 tokens for pins, 1,000 for one


@pytest.fixture
async def log():
    async with open_store("memory:") as store:
        yield store.log()


def balanced(share=0.1, **groups):
    """Rereads pin what was read; in sessions as small as these they would also undo the folds."""
    return changed(SMALL, economics="off", watch={"share": share}, **groups)


async def folded(log, *said, share=0.1, window=WIDE, **how):
    """A session in which something was said and folded."""
    talk = await Talk.open(log, setup(balanced(share), window=window), **how)
    await talk.go(*chat(1), *said, *chat(2))
    await talk.session.compact()
    return talk


def reading(call, path="src/a.py", result=FILE, **args):
    return turn(f"Look at {path}.", used(call, "read", result, path=path, **args))


async def state(talk):
    outline = (await talk.log.visible("s", last=0)).outline
    return outline.pins, outline.watched


async def test_a_result_read_again_is_told_pinned_and_kept_through_the_next_fold(log):
    talk = await folded(log, *reading("c1"))
    assert FILE not in "\n".join(texts(await talk.request()))
    await talk.go(*reading("c2"))
    (event,) = talk.events("session.reread")
    assert (event.tool, event.what, event.times) == ("read", "src/a.py", 2)
    assert (event.pinned, event.remedy) == (True, KEPT_IN_VIEW)
    assert event.tokens >= len(FILE) // 4
    pinned, watched = await state(talk)
    assert pinned == watched
    assert len(watched) == 2
    await talk.go(*chat(3))
    await talk.session.compact()
    shown = texts(await talk.request())
    assert sum(FILE in one for one in shown) == 1
    (at,) = (nth for nth, one in enumerate(shown) if FILE in one)
    assert "[A result of read]" in shown[at]
    assert any("[A call of read]" in one and "src/a.py" in one for one in shown[: at + 1])
    await talk.all_rebuilt()


async def test_it_is_let_go_when_it_was_not_needed_until_the_fold_after(log):
    talk = await folded(log, *reading("c1"))
    await talk.go(*reading("c2"), *chat(3))
    await talk.session.compact()
    await talk.go(*chat(4))
    assert len((await state(talk))[1]) == 2
    await talk.session.compact()
    request = await talk.request()  # the pin goes with the fold, not after it
    assert await state(talk) == ((), ())
    assert FILE not in "\n".join(texts(request))


async def test_read_once_more_it_stays_and_only_the_newest_is_pinned(log):
    talk = await folded(log, *reading("c1"))
    await talk.go(*reading("c2"), *chat(3))
    for nth in range(3):
        await talk.session.compact()
        await talk.go(*reading(f"d{nth}"), *chat(4))
        _, watched = await state(talk)
        assert len(watched) == 2
    assert [one.times for one in talk.events("session.reread")] == [2, 3, 4, 5]
    request = await talk.request()
    assert sum(FILE in one for one in texts(request)) == 1


async def test_pinning_changes_nothing_that_was_sent(log):
    talk = await folded(log, *reading("c1"))
    before = [*(await talk.request()).messages]
    await talk.go(*reading("c2"))
    assert (await state(talk))[1]
    after = (await talk.request()).messages
    assert [*after][: len(before)] == before


async def test_a_session_without_folds_does_nothing(log):
    talk = await Talk.open(log, setup(balanced(), window=WIDE))
    watching = talk.session._rereads
    read = log.read

    async def never(*_, **__):
        raise AssertionError("Nothing need be read.")

    log.read = never
    await talk.go(*reading("c1"), *reading("c2"), *reading("c3"))
    log.read = read
    assert talk.events("session.reread") == []
    assert await state(talk) == ((), ())
    assert watching._watchdog.reads == ()


async def test_each_message_is_looked_at_once(log, monkeypatch):
    talk = await folded(log, *reading("c1"))
    await talk.go(*reading("c2"))
    looked = []
    monkeypatch.setattr(
        "refold.session.guards._passage",
        lambda inputs, row: (
            looked.append(row.seq)
            or Passage(row.seq, row.role, inputs.wire.describe(row.payload).shapes)
        ),
    )
    await talk.go(*reading("c3"), *reading("c4"))
    assert len(looked) == len({*looked})
    assert min(looked) > max(one.seq for one in (await state(talk))[0]) - 40


async def test_without_room_it_is_only_counted(log):
    talk = await folded(log, *reading("c1"), share=0)
    await talk.go(*reading("c2"))
    (event,) = talk.events("session.reread")
    assert (event.pinned, event.remedy) == (False, COUNTED)
    assert await talk.values(Pinned) == []


async def test_a_large_result_is_not_pinned(log):
    large = "x = 1\n" * 2_000  # 3,000 tokens, more than a quarter of the room
    talk = await folded(log, *reading("c1", result=large))
    await talk.go(*reading("c2", result=large))
    (event,) = talk.events("session.reread")
    assert (event.pinned, event.remedy) == (False, TOO_LARGE)
    assert event.tokens > MAX_PIN_SHARE * 0.1 * WIDE
    assert await talk.values(Pinned) == []


async def test_what_is_quoted_counts_against_the_room_too(log):
    def all_of(mark, numbers):
        size = FILE * 9  # 720 tokens
        return [one for nth in numbers for one in reading(f"{mark}{nth}", f"{nth}.py", size)]

    talk = await folded(log, *all_of("c", range(6)))
    await talk.go(*all_of("d", range(3)), *chat(3))
    await talk.session.compact()
    assert len((await state(talk))[1]) == 6
    await talk.go(*all_of("e", range(3, 6)))
    _, watched = await state(talk)
    assert len(watched) == 8
    assert [one.pinned for one in talk.events("session.reread")] == [True] * 6


async def test_another_piece_is_told_and_not_pinned(log):
    talk = await folded(log, *reading("c1"))
    await talk.go(*reading("c2", offset=100, result="the rest"))
    (event,) = talk.events("session.reread")
    assert (event.pinned, event.remedy) == (False, OTHER)
    assert await talk.values(Pinned) == []


async def test_a_change_of_the_file_lets_the_pin_go(log):
    talk = await folded(log, *reading("c1"))
    await talk.go(*reading("c2"))
    assert len((await state(talk))[1]) == 2
    await talk.go(*turn("Change it.", used("e", "edit", "done", path="src/a.py")))
    assert await state(talk) == ((), ())
    await talk.go(*reading("c3"))
    assert len(talk.events("session.reread")) == 1


async def test_pins_of_people_stay_whatever_the_watchdog_does(log):
    talk = await folded(log, *reading("c1"))
    prompt = await talk.say(Asked("Never touch src/legacy.py."))
    await talk.session.pin(PartRef(prompt.first, 0))
    await talk.go(Responded("I will not."), *reading("c2"))
    _, watched = await state(talk)
    await talk.session.pin(*watched)  # a person wants it too: now it is the person's
    await talk.go(*turn("Change it.", used("e", "edit", "done", path="src/a.py")))
    await talk.go(*reading("c3", result="another"), *reading("c4", result="another"))
    pinned, passing = await state(talk)
    assert {PartRef(prompt.first, 0), *watched} <= {*pinned}
    assert not {*watched} & {*passing}


async def test_what_a_person_has_pinned_is_not_pinned_again_and_again(log):
    talk = await folded(log, *reading("c1"))
    call, result = used("c2", "read", FILE, path="src/a.py")
    await talk.say(Asked("Look."))
    await talk.request()
    asked = await talk.answer(call)
    await talk.session.pin(PartRef(asked.first, 0))
    await talk.go(result, Responded("Yes."), *chat(3, 4))
    made = [one for one in await talk.values(Pinned) if one.watched]
    assert [len(one.parts) for one in made] == [1]


async def test_a_person_who_pins_in_between_is_not_overruled(log):
    talk = await folded(log, *reading("c1"))
    await talk.go(*reading("c2"))
    other = await Talk.open(log, setup(balanced(), window=WIDE), format=None)
    _, watched = await state(talk)
    live = talk.session._live
    append = live.append

    async def late(*values, **how):
        if any(isinstance(one, Unpinned) for one in values) and how.get("expected"):
            live.append = append
            await other.session.pin(*watched)  # just before
        return await append(*values, **how)

    live.append = late
    await talk.go(*turn("Change it.", used("e", "edit", "done", path="src/a.py")))
    assert await state(talk) == (watched, ())


async def test_another_process_goes_on(log):
    first = await folded(log, *reading("c1"))
    await first.go(*reading("c2"))
    second = await Talk.open(log, setup(balanced(), window=WIDE), format=None)
    await second.go(*reading("c3"))
    (event,) = second.events("session.reread")
    assert (event.times, event.pinned) == (3, True)
    _, watched = await state(second)
    assert len(watched) == 2
    await second.go(*turn("Change it.", used("e", "edit", "done", path="src/a.py")))
    assert await state(second) == ((), ())
    await first.go(*chat(5))
    assert len(first.events("session.reread")) == 1  # what others said is theirs to tell


@pytest.mark.parametrize("asks", ["request", "next_messages"])
async def test_pins_give_way_where_a_request_would_not_fit(log, asks):
    talk = await folded(log, *reading("c1"), share=0.5, window=4_000)
    await talk.go(*reading("c2"))
    assert len((await state(talk))[1]) == 2
    await talk.say(Asked("word " * 3_110))
    asked = talk if asks == "request" else await Talk.open(log, talk.session.setup, format=None)
    await getattr(asked.session, asks)()
    assert await state(talk) == ((), ())
    await talk.request()
    await talk.say(Asked("word " * 4_000))
    with pytest.raises(ViewTooLarge):
        await talk.session.request()


async def test_a_step_that_grows_beyond_the_room_is_let_go(log):
    talk = await folded(log, *reading("c1"))
    calls = (Call("d1", "read", {"path": "src/a.py"}), Call("d2", "read", {"path": "big.py"}))
    await talk.say(Asked("Both."))
    await talk.request()
    await talk.answer(Responded(None, calls))
    await talk.say(Answered((Return("d1", "read", FILE),)))
    assert len((await state(talk))[1]) == 2
    await talk.say(Answered((Return("d2", "read", "y = 2\n" * 4_000),)))
    assert await state(talk) == ((), ())


async def test_what_is_seen_again_is_not_read_again(log):
    talk = await folded(log, *reading("c1"))
    await talk.session.unfold(Span(2, 12))
    await talk.go(*reading("c2"))
    assert talk.events("session.reread") == []


async def test_after_a_rewind_it_looks_anew(log):
    talk = await folded(log, *reading("c1"))
    there = talk.session.head
    await talk.go(*turn("Change it.", used("e", "edit", "done", path="src/a.py")))
    await talk.session.rewind(there)
    await talk.go(*reading("c2"))
    assert [one.times for one in talk.events("session.reread")] == [2]
    assert await talk.values(Rewound)


async def test_a_summary_of_a_model_remembers_too(log):
    talk = await folded(log, *reading("c1"), write=Writer())
    (fold,) = await talk.values(FoldCompleted)
    assert len(parse(fold.summary).reads) == 1
    await talk.go(*reading("c2"))
    assert len(talk.events("session.reread")) == 1


async def test_what_goes_wrong_costs_a_pin_and_no_message(log, monkeypatch):
    talk = await folded(log, *reading("c1"))
    live = talk.session._live
    append = live.append

    async def refused(*values, **how):
        if any(isinstance(one, Pinned) for one in values):
            raise ViewTooLarge(kept=1, limit=1)
        return await append(*values, **how)

    monkeypatch.setattr(live, "append", refused)
    await talk.go(*reading("c2"))
    assert await talk.values(Pinned) == []
    assert [one.pinned for one in talk.events("session.reread")] == [False]
    assert any(FILE in one for one in texts(await talk.request()))


# What it is for: an agent that looks up the same files again and again.


async def looked_up(log, name, share):
    """How often a file that was needed was in the view, and what all requests sent."""
    given = setup(balanced(share), window=60_000)
    talk = await Talk.open(log, given, name=name)
    found = sent = 0
    for nth in range(48):
        at = nth % 4
        if nth and nth % 8 == 0:
            await talk.session.compact()
        await talk.say(Asked(f"What of file {at}?"))
        request = await talk.request()
        sent += request.plan.account.sent
        text = f"# file {at}\n{FILE}"
        if nth >= 4 and any(text in one for one in texts(request)):
            found += 1
            await talk.answer(Responded("As above."))
        else:
            call, result = used(f"c{nth}", "read", text, path=f"{at}.py")
            await talk.answer(call)
            await talk.go(result, Responded("Read."))
    return found, sent


async def test_an_agent_that_needs_the_same_files_after_each_fold_reads_them_less(log):
    without, cost_without = await looked_up(log, "a", 0)
    found, cost = await looked_up(log, "b", 0.1)
    assert found > without
    assert cost < 1.1 * cost_without
