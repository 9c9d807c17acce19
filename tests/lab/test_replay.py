"""Recorded sessions under every profile: nothing orphaned, nothing over the limit.

`python -m benchmarks replay` does the same with the whole recordings, and says what they cost.
"""

from dataclasses import replace

import pytest
from project_paths import DATA

from refold.lab import Reader, metrics, o200k, play, profiled, read_openai_chat, read_pi
from refold.models import counter_for
from refold.view.budget import Budget
from refold.view.profiles import PROFILES
from refold.wire import wire_for

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the recordings are not here: set REFOLD_DATA to their folder"
)


def recordings(name):
    if name == "tau":
        return read_openai_chat(DATA / "tau_gpt-4o-airline.json")[:15]
    whole = read_pi(DATA / f"pi_{name}.jsonl")
    return [replace(whole, messages=whole.messages[:160])]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("name", "window"), [("before-compaction", 20_000), ("large-session", 20_000), ("tau", 8_000)]
)
def test_every_request_is_legal_and_fits(name, window, profile):
    reader = Reader(o200k())
    wire = wire_for("pydantic-ai")
    budget = Budget(window=window)
    make = profiled([PROFILES[profile]], budget, counter_for("openai:gpt-4o"))[profile]
    for recording in recordings(name):
        played = play(recording, make(reader), reader)
        assert metrics.orphaned(played) == metrics.unanswered(played) == 0
        assert metrics.peak(played) <= window
        assert not any(wire.problems(request.view) for request in played.requests[::7])
