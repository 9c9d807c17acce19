"""The status line: whole where there is room, shorter where there is not, unknown as unknown."""

from dataclasses import replace

import pytest

from refold.cli.chat.status import Status, line
from refold.session import Filled

FULL = Status(
    "s",
    "anthropic:claude-sonnet-4-5",
    window=200_000,
    assumed=128_000,
    filled=Filled(1_200, 3_400, 95_000, 4_600),
    exact=True,
    cost=1.234,
    saved=3.21,
)


def text(status, width):
    return "".join(piece.text for piece in line(status, width))


def test_all_of_it_where_there_is_room():
    assert text(FULL, 120) == (
        "anthropic:claude-sonnet-4-5  █████░░░░░ 50% of 200k  "
        "system 1.2k tools 3.4k folds 4.6k talk 90k  $1.23 ($3.21 saved)"
    )


def test_it_never_is_longer_than_the_line_and_the_share_goes_last():
    for width in range(1, 140):
        shown = text(FULL, width)
        assert len(shown) <= width
        assert ("50%" in shown) == (width >= 22)


def test_what_is_unknown_is_said_to_be():
    nothing = Status("s", "local:x", assumed=128_000)
    assert text(nothing, 80) == "local:x  nothing said yet, window unknown  cost unknown"
    some = Status("s", "local:x", assumed=128_000, filled=Filled(0, 0, 500))
    assert text(some, 80) == (
        "local:x  ▏░░░░░░░░░ ~500, window unknown (assuming 128k)  talk 500  cost unknown"
    )


@pytest.mark.parametrize("tokens", [1, 999, 1_000, 9_999, 10_000, 999_999, 1_000_000])
def test_however_full_it_is_a_line_of_eighty_columns_tells_the_cost(tokens):
    some = Status("s", "local:scripted", assumed=128_000, filled=Filled(0, 0, tokens))
    assert text(some, 80).endswith("(assuming 128k)  cost unknown")


def test_a_count_that_is_not_the_models_own_is_about():
    about = Status("s", "m", window=1_000, filled=Filled(0, 0, 500), cost=0.0)
    assert "~50% of 1.0k" in text(about, 80)


def test_a_fold_under_way_comes_first_with_its_time_and_how_to_cancel_it():
    shown = text(replace(FULL, folding=3.4, doing="thinking"), 100)
    assert shown.startswith("Compacting conversation history 3 s (Esc cancels)")
    assert "50% of 200k" in shown
    assert text(replace(FULL, folding=3.4, doing=""), 50).startswith(
        "Compacting conversation history"
    )


def test_it_says_when_it_costs_more():
    worse = Status("s", "m", window=1_000, filled=Filled(0, 0, 10), cost=0.05, saved=-0.02)
    assert text(worse, 80).endswith("$0.050 ($0.020 more than without)")


def test_what_a_turn_is_at_comes_first():
    assert text(replace(FULL, folding=None, doing="read_file"), 130).startswith(
        "read_file  anthropic:"
    )


def test_an_overfull_window_is_drawn_full():
    over = Status("s", "m", window=1_000, filled=Filled(0, 0, 5_000), cost=0.0)
    assert "██████████ ~500% of 1.0k" in text(over, 80)


def test_a_running_turn_says_for_how_long_how_much_and_how_to_interrupt_it():
    running = replace(FULL, doing="thinking", seconds=72.9, tokens=1_240)
    assert text(running, 80) == (
        "thinking 1 min 12 s · 1.2k tokens · esc to interrupt  █████░░░░░ 50% of 200k"
    )
    calling = replace(running, window=None, doing="read_file", seconds=3.0, tokens=0)
    assert text(calling, 78) == (
        "read_file 3 s · esc to interrupt  ████████░░ 78% of 128k (assumed)"
    )


@pytest.mark.parametrize(
    "model",
    ["anthropic:claude-sonnet-4-5-20250929", "openrouter:meta-llama/llama-4-maverick-instruct"],
)
@pytest.mark.parametrize("window", [200_000, None])
def test_eighty_columns_keep_fill_cost_and_savings_after_a_fold(model, window):
    folded = replace(FULL, model=model, window=window, cost=12.34, saved=3.21)
    shown = text(folded, 80)
    assert shown.endswith("$12.34 ($3.21 saved)")
    assert "█" in shown
    assert ("50% of 200k" if window else "of 128k (assumed)") in shown
    assert model.partition(":")[2][:20] in shown or not window


def test_a_narrow_line_of_a_running_turn_keeps_what_goes_on():
    running = replace(FULL, doing="thinking", seconds=5.0, tokens=10)
    for width in range(8, 140):
        shown = text(running, width)
        assert len(shown) <= width
        assert shown.startswith("thinking")


def test_how_to_interrupt_is_said_before_of_what_the_window_is_full():
    waiting = replace(FULL, window=None, doing="waiting for another terminal", seconds=75.0)
    assert text(waiting, 78) == (
        "waiting for another terminal 1 min 15 s · esc to interrupt  ████████░░ 78%"
    )
