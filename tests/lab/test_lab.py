"""The lab: replays whose figures are computed by hand, the comparison policies."""

import json
import math
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
)

from refold.errors import InvalidInput
from refold.fold.identifiers import identifiers
from refold.lab import (
    Measure,
    Prices,
    Reader,
    RecordedMessage,
    Recording,
    Retention,
    Settings,
    Share,
    Usage,
    baselines,
    compare,
    frontier,
    metrics,
    needles_kept,
    plant,
    play,
)
from refold.lab.metrics import rereads_lost
from refold.lab.policies import MASK, by_occurrence, by_recency, ledger, mask
from refold.transcripts import messages


def validated(recording) -> Any:
    return ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(recording.payloads) + b"]")


# A token is a word here; a message costs 2 beside its words, and a call 4.
def words(text):
    return len(text.split())


def user(text):
    return messages.request([messages.user_prompt(text)])


def says(text):
    return messages.response([messages.text(text)])


def calls(call, tool="read", **arguments):
    return messages.response([messages.tool_call(tool, call, arguments)])


def returns(call, text, tool="read"):
    return messages.request([messages.tool_return(tool, call, text)])


def recorded(*payloads):
    return Recording("made", tuple(map(RecordedMessage, payloads)))


READ = recorded(
    user("please read it"),  # 5
    calls("c1", path="a"),  # read {"path": "a"}: 9
    returns("c1", "one two three four five six seven eight"),  # 10
    says("it counts"),  # 4
    user("thanks"),  # 3
    says("welcome"),  # 3
)


class Latest:
    """The newest messages, by number."""

    def __init__(self, number):
        self.number = number

    def view(self, messages):
        return messages[-self.number :]


class Paying(Latest):
    def usage(self):
        return Usage(1100, 10, cache_read=1000, cache_write=100)


def everything(_):
    return Latest(99)


def test_a_replay_counts_every_request():
    reader = Reader(words)
    played = play(READ, Latest(99), reader)
    rows = [(r.at, len(r.view), r.sent, r.cached, r.new, r.output) for r in played.requests]
    assert rows == [(1, 1, 5, 0, 5, 7), (3, 3, 24, 5, 19, 2), (5, 5, 31, 24, 7, 1)]
    assert (metrics.sent(played), metrics.cached(played), metrics.peak(played)) == (60, 29, 31)
    assert metrics.cache_hits(played) == 29 / 60
    assert [metrics.fit(played, limit) for limit in (4, 5, 24, 30, 31)] == [0, 1, 2, 2, 3]


def test_a_changed_message_ends_the_cached_prefix():
    class Numbered:
        def view(self, messages):
            return [messages[0], user(f"request {len(messages)}"), *messages[1:]]

    played = play(READ, Numbered(), Reader(words))
    assert [r.cached for r in played.requests] == [0, 5, 5]
    assert [r.cached for r in play(READ, Latest(2), Reader(words)).requests] == [0, 0, 0]


def test_costs_follow_the_prices():
    played = play(READ, Latest(99), Reader(words))
    prices = Prices(input=1e6, output=10e6, cache_read=0.1e6, cache_write=2e6)
    assert metrics.cost(played, prices) == pytest.approx(29 * 0.1 + 31 * 2 + 10 * 10)
    assert metrics.cost(played, prices, cached=False) == pytest.approx(60 + 100)
    paying = play(READ, Paying(99), Reader(words))
    assert metrics.cost(paying, prices) - metrics.cost(played, prices) == pytest.approx(
        3 * (1000 * 0.1 + 100 * 2 + 10 * 10)
    )
    assert metrics.cost(paying, prices, cached=False) == pytest.approx(160 + 3 * (1100 + 100))


def test_broken_pairs_are_counted():
    class Without:
        def __init__(self, dropped):
            self.dropped = dropped

        def view(self, messages):
            return [one for at, one in enumerate(messages) if at != self.dropped]

    reader = Reader(words)
    for dropped, requests in ((1, 2), (2, 2), (0, 0), (3, 0)):
        assert metrics.orphaned(play(READ, Without(dropped), reader)) == requests
    swapped = recorded(user("x"), returns("c", "early"), calls("c"), says("y"))
    assert [r.orphans for r in play(swapped, Latest(99), reader).requests] == [1, 2]


def test_calls_that_were_never_answered_are_the_recordings_own():
    cut = recorded(user("x"), calls("c"), user("go on"), says("yes"), user("z"), says("so"))
    played = play(cut, Latest(99), Reader(words))
    assert (metrics.orphaned(played), metrics.unanswered(played)) == (0, 2)


def test_a_request_with_a_retry_answers_its_call():
    retry = messages.request(
        [
            {
                "part_kind": "retry-prompt",
                "tool_name": "read",
                "tool_call_id": "c",
                "content": "again",
            }
        ]
    )
    played = play(recorded(user("x"), calls("c"), retry, says("y")), Latest(99), Reader(words))
    assert (metrics.orphaned(played), metrics.unanswered(played)) == (0, 0)


def test_overhead_is_by_the_nearest_rank(monkeypatch):
    ticks = iter([0, 0.001, 1, 1.002, 2, 2.009])
    monkeypatch.setattr("refold.lab.replay.perf_counter", lambda: next(ticks))
    p50, p95 = metrics.overhead(play(READ, Latest(99), Reader(words)))
    assert (round(p50), round(p95)) == (2, 9)


def test_intervals_are_wilsons():
    low, high = Share(8, 10).interval
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert Share(10, 10).interval[1] == 1.0
    assert Share(0, 0).interval == (0.0, 1.0)
    assert metrics.pooled([Share(1, 2), Share(3, 5)]) == Share(4, 7)


FILLER = "word " * 50


def old_name():
    return recorded(
        user("See src/app/parser.ts please"),
        says(FILLER),  # 52
        user(FILLER),
        calls("c", path="src/app/parser.ts"),  # old: last seen 104 tokens ago
        returns("c", "export parseTree"),
        says("it exports parseTree from src/app/parser.ts"),  # new
    )


@pytest.mark.parametrize(("gap", "of"), [(103, 1), (104, 0), (-1, 3)])
def test_an_identifier_is_old_after_the_gap(gap, of):
    reader = Reader(words)
    uses = list(Retention(reader, gap).reuses(old_name()))
    assert len(uses) == of
    assert not uses or (uses[0].at, uses[0].identifier) == (3, "src/app/parser.ts")


def test_retention_counts_what_the_view_still_holds():
    reader = Reader(words)
    retention = Retention(reader, 100)
    assert retention.measure(play(old_name(), Latest(99), reader)) == Share(1, 1)
    assert retention.measure(play(old_name(), Latest(2), reader)) == Share(0, 1)


def test_identifiers_are_names_and_not_words():
    text = "Put renderFrame of ui.tsx (commit 603f272), line 2048, in packages/tui/src/main.ts."
    assert set(identifiers(text)) == {
        "renderFrame",
        "ui.tsx",
        "603f272",
        "2048",
        "packages/tui/src/main.ts",
    }
    assert identifiers("max_tokens TextEditor HAT045 20480") == [
        "TextEditor",
        "max_tokens",
        "20480",
        "HAT045",
    ]
    assert identifiers("Read it again, please: nothing here is a name.") == []


def long_session(turns=30):
    payloads = []
    for turn in range(turns):
        payloads += [
            user(f"question {turn} " + "ask " * 10),
            messages.response(
                [
                    messages.text("let me see"),
                    messages.tool_call("read", f"c{turn}", {"path": f"src/file{turn}.py"}),
                ]
            ),
            returns(f"c{turn}", "line " * 30),
            says(f"answer {turn} " + "tell " * 10),
        ]
    return recorded(*payloads)


def test_needles_are_planted_and_missed():
    reader = Reader(words)
    planted = plant(long_session(), reader, each=5)
    assert {len(set(needles)) for needles in planted.needles.values()} == {5}
    assert len(validated(planted.recording)) == 120
    whole = needles_kept(planted, play(planted.recording, Latest(999), reader), reader)
    assert whole == dict.fromkeys(("user", "assistant", "tool"), Share(5, 5))
    recent = needles_kept(planted, play(planted.recording, Latest(60), reader), reader)
    assert all(1 <= share.found <= 3 for share in recent.values())
    masked = baselines()["mask, rolling"](reader)
    kept = needles_kept(planted, play(planted.recording, masked, reader), reader)
    assert [share.found for share in kept.values()] == [5, 5, 2]
    with pytest.raises(InvalidInput, match="places"):
        plant(READ, reader, each=2)


def test_reading_again_what_is_gone_is_counted():
    reader = Reader(words)
    again = recorded(
        user("x"),
        calls("c1", path="a"),
        returns("c1", FILLER),
        calls("c2", path="b"),
        returns("c2", FILLER),
        calls("c3", path="a"),
        returns("c3", FILLER),
        calls("c4", "write", path="b"),
        returns("c4", "ok", "write"),
        says("done"),
    )
    assert rereads_lost(play(again, Latest(99), reader), reader) == Share(0, 1)
    assert rereads_lost(play(again, Latest(2), reader), reader) == Share(1, 1)

    class Masked:
        def view(self, messages):
            return [returns("c1", MASK) if one == messages[2] else one for one in messages]

    class First(Latest):
        def view(self, messages):
            return messages if len(messages) < 3 else Masked().view(messages)

    assert rereads_lost(play(again, First(0), reader), reader) == Share(1, 1)


SMALL = Settings(threshold=400, tail=100, summary=40)


@pytest.mark.parametrize("name", [*baselines()])
def test_comparison_policies_hold_their_size_and_their_pairs(name):
    reader = Reader(words)
    played = play(long_session(), baselines(SMALL)[name](reader), reader)
    for request in played.requests:
        ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(request.view) + b"]")
    assert (metrics.peak(played) > 400) == (name == "none" or name.startswith("mask"))
    assert (metrics.orphaned(played) > 0) == (name == "sliding window, naive")
    assert played.requests[-1].view[-1] == long_session().payloads[-2]


@pytest.mark.parametrize("name", [*baselines()])
def test_comparison_policies_send_the_last_message_however_large(name):
    reader = Reader(words)
    large = recorded(user("x"), calls("c"), returns("c", "line " * 900), says("y"))
    played = play(large, baselines(SMALL)[name](reader), reader)
    assert played.requests[-1].view[-1] == large.payloads[2]
    assert (metrics.orphaned(played) > 0) == (name == "sliding window, naive")


def test_masks_cover_old_returns_only_and_at_once_or_rolling():
    reader = Reader(words)

    def changes(name):
        played = play(long_session(), baselines(Settings(threshold=1500))[name](reader), reader)
        views = [[reader.read(one).text for one in r.view] for r in played.requests]
        grown = [view.count(MASK) for view in views]
        return grown[-1], len(set(grown))

    assert changes("mask, rolling") == (20, 21)
    masked, steps = changes("mask, batched")
    assert 10 <= masked <= 18
    assert 2 <= steps < 10


def test_a_return_that_is_smaller_than_a_mask_stays():
    reader = Reader(words)
    small, large = returns("c", "ok"), returns("c", "line " * 30)
    assert mask(small, reader) == small
    assert reader.read(mask(large, reader)).text == MASK


def test_a_fold_leaves_head_summary_and_tail():
    reader = Reader(words)
    session = long_session()
    played = play(session, baselines(SMALL)["head and tail only"](reader), reader)
    view = played.requests[-1].view
    assert view[0] == session.payloads[0]
    assert reader.tokens(view[1]) == 40 + 2
    tail = len(view) - 2
    assert view[2:] == session.payloads[-1 - tail : -1]
    folds = [r.own_usage for r in played.requests if r.own_usage.output]
    assert len(folds) > 1
    assert all(fold.cache_read > 400 and fold.output == 40 for fold in folds)


def test_a_ledger_names_what_was_folded_as_far_as_there_is_room():
    reader = Reader(words)
    few = Settings(threshold=400, tail=100, summary=10)
    played = play(long_session(), baselines(few)["head / ledger / tail"](reader), reader)
    summary = reader.read(played.requests[-1].view[1]).text.split()
    assert len(summary) == 10
    assert all(line.startswith("src/file") for line in summary)


def test_ledgers_put_first_what_is_said_often_or_of_late():
    reader = Reader(words)
    tools = [returns("c", f"a_tool b_user{' c_twice' * 9}")] * 2
    said = [user("b_user " * 5), *tools]
    assert ledger(reader, 2, by_occurrence)(said) == "b_user\nc_twice\n"
    early, late = [user("e_early")] * 3, [user("filler")] * 900
    ranked = ledger(reader, 2, by_recency)([*early, *late, user("d_late")])
    assert ranked == "d_late\ne_early\n"


def test_the_frontier_keeps_the_users_own_messages_and_calls_no_model():
    reader = Reader(words)
    session = long_session()
    policy = frontier(Settings(threshold=900, tail=100, summary=40))(reader)
    played = play(session, policy, reader)
    view = set(played.requests[-1].view)
    assert all(payload in view for payload in session.payloads[::4])
    assert not all(payload in view for payload in session.payloads[2::4])
    assert all(r.own_usage == Usage(0) for r in played.requests)


def test_a_report_compares_with_its_first_policy():
    report = compare(
        [READ, Recording("other", old_name().messages)],
        {"none": everything, "last two": lambda _: Latest(2)},
        measure=Measure(gap=100, limit=30),
        count=words,
    )
    names = [(row.recording, row.policy) for row in report.rows]
    assert names == [
        (recording, policy)
        for recording in ("made", "other", "all recordings")
        for policy in ("none", "last two")
    ]
    none, two, *_, all_none, all_two = report.rows
    assert (none.sent, none.fits, two.orphaned) == (60, 2, 0)
    assert all_none.sent == 60 + report.rows[2].sent
    assert all_two.retained == Share(0, 1)
    data = json.loads(report.json())
    assert [row["sent_ratio"] for row in data["rows"][:2]] == [1.0, pytest.approx(two.sent / 60)]
    assert data["rows"][0]["cache_hits"] == pytest.approx(29 / 60)
    table = report.table().splitlines()
    assert len(table) == 7
    assert len({len(line) for line in table}) == 1
    assert math.isclose(float(table[2].split()[3]), two.sent / 60, abs_tol=0.01)
