"""Soft, hard and the rest: one computation, for every profile, window and counter."""

import json
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from refold.cli.app import app
from refold.errors import ViewTooLarge
from refold.fold.compactor import from_the_log
from refold.models import budget_for, counter_for
from refold.models.experience import Setup
from refold.session import Session
from refold.settings import load_settings
from refold.stores import MemoryStore
from refold.view import PROFILES, Budget, Calibration, Trigger, calibrated, thresholds
from refold.view.budget import APART, PER_MESSAGE
from refold.view.project import project

MODELS = (
    "openai:gpt-4o",
    "anthropic:claude-sonnet-4-5",
    "google-gla:gemini-2.5-pro",
    "some:model-that-nobody-knows",
    "local:tiny",
)
"""Counted exactly, estimated three ways, and with a window that settings name."""


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    (tmp_path / "refold.toml").write_text('[models."local:tiny"]\nwindow = 2_048\noutput = 512\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def spreads():
    """Of exact, estimated and calibrated counters, and any other."""
    known = {counter_for(model).spread for model in MODELS}
    calibration = Calibration(prior=0.25)
    for reported in (1_100, 950, 1_300, 1_000):
        calibration = calibration.observed(1_000, reported)
        known.add(calibrated(counter_for(MODELS[3]), calibration).spread)
    return st.one_of(st.sampled_from(sorted(known)), st.floats(0, 1.9))


budgets = st.builds(
    Budget,
    window=st.one_of(st.none(), st.integers(2, 300), st.integers(2, 2_000_000)),
    instructions=st.integers(0, 5_000),
    tools=st.integers(0, 5_000),
    configured=st.one_of(st.none(), st.integers(2, 50_000)),
    # No provider ever named a limit of one token.
    learned=st.one_of(st.none(), st.integers(2, 50_000)),
    guessed=st.one_of(st.none(), st.integers(2, 50_000)),
    reserve=st.integers(0, 5_000),
    refused=st.integers(0, 3),
    restored=st.sampled_from([0, 3, 5]),
)


@given(st.sampled_from(list(PROFILES.values())), budgets, spreads())
def test_a_fold_starts_a_tenth_of_the_limit_before_a_request_waits_for_it(profile, budget, spread):
    marks = thresholds(profile, budget, spread)
    if marks.soft and marks.hard:
        assert marks.hard - marks.soft >= APART * marks.limit


@given(st.floats(0.05, 1), st.floats(0.05, 1), budgets, spreads(), st.sampled_from(list(PROFILES)))
def test_marks_are_as_set_whatever_counts_the_tokens(soft, hard, budget, spread, name):
    soft, hard = sorted((round(soft, 2), round(hard, 2)))
    if soft == hard:
        return
    trigger = Trigger(soft=soft, hard=hard)
    profile = PROFILES[name].model_copy(update={"trigger": trigger})
    marks = thresholds(profile, budget, spread)
    assert marks.hard == ceil(round(hard * marks.limit, 6))
    assert marks == thresholds(profile, budget, spread)
    # Less than a token of rounding apart from the share, in windows of a few tokens.
    assert 0 <= ceil(round(soft * marks.limit, 6)) - marks.soft <= 1
    # What is below the hard mark is never cut, however coarse the count.
    assert marks.room + marks.floor >= marks.hard


class Characters:
    """Counts a token for each character, so that a request can be of any size."""

    name = "characters"

    def __init__(self, spread):
        self.spread = spread

    def text(self, text, kind="text"):  # noqa: ARG002 - a counter takes it
        return len(text)

    def part(self, shape):
        return len(shape.text)


async def session_of(tokens, setup):
    """A session whose next request counts exactly so many tokens."""
    log = MemoryStore().log()
    session = await Session.open(log, "s", setup, format="openai-chat", write=from_the_log)
    turns = 8
    each = tokens // (2 * turns + 1)
    for _ in range(turns):
        await session.say(message("user", each))
        await session.say(message("assistant", each))
    await session.say(message("user", tokens - 2 * turns * each))
    return session


def message(role, tokens):
    return json.dumps({"role": role, "content": "x" * (tokens - PER_MESSAGE)}).encode()


def printed(model, profile):
    done = CliRunner().invoke(app, ["models", model, "--profile", profile, "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.output)
    return found["thresholds"][profile]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PROFILES)
async def test_what_refold_models_prints_is_what_a_session_does(name, model):
    marks = printed(model, name)
    profile = PROFILES[name]
    counter = Characters(counter_for(model).spread)
    setup = Setup(
        model, counter, budget_for(model, profile, models=load_settings().models), profile
    )

    async def reasons(tokens):
        session = await session_of(tokens, setup)
        return {one.what for one in session.decide().why}

    for mark, what in (("soft", "soft"), ("hard", "hard")):
        if marks[mark]:
            assert what in await reasons(marks[mark])
            assert what not in await reasons(marks[mark] - 1)
    if 0 < marks["fold"] < marks["limit"]:
        assert "tokens" in await reasons(marks["fold"] + 1)
        assert "tokens" not in await reasons(marks["fold"])
    fitting = await session_of(marks["room"], setup)
    plan = project(fitting.inputs, fitting._live.view.profile, setup.budget)
    assert plan.cause != "limit"
    over = await session_of(marks["room"] + 1, setup)
    try:
        plan = project(over.inputs, over._live.view.profile, setup.budget)
    except ViewTooLarge:
        return
    assert plan.cause in {"limit", "window", "rule"}
