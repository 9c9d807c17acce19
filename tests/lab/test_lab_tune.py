"""`refold lab tune`: what is proposed, and when nothing is."""

from dataclasses import replace

import pytest
from lab_files import FILES

from refold.errors import InvalidInput
from refold.lab import tune as tuning
from refold.lab.measure import Outcome, measured
from refold.lab.metrics import Share
from refold.lab.replay import Mark
from refold.lab.report import CaseOptions, case_of
from refold.lab.session_files import read_session_file
from refold.lab.tune import CANDIDATES, changed, tune
from refold.view.profiles import PROFILES

BALANCED = PROFILES["balanced"]
BEST = "trigger.savings=0.5"


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "one.jsonl"
    path.write_bytes(FILES["Claude Code"])
    [recording] = read_session_file(path).recordings
    return case_of(recording, CaseOptions())


@pytest.fixture
def replayed(monkeypatch, case):
    """`replayed(rule)`: replays cost, keep and are refused what a rule says of session and name."""
    [real] = measured(tuning.Job(0, case, (), case.adapt(BALANCED), case.budget(BALANCED)))

    def use(rule):
        def each(jobs):
            for job in jobs:
                share, names, more = rule(job.session, job.profile.name)
                account = real.row.account._replace(own=1e5 * (1 + job.session) * share, rereads=0)
                row = replace(
                    real.row, account=account, retained=Share(names, 100), edits=Share(9, 10)
                )
                outcome = Outcome(job.session, job.profile.name, row, 0, (Mark(1, 9, 5),))
                yield job, [replace(outcome, **more)]

        monkeypatch.setattr(tuning, "each_measured", each)

    return use


def of(case, count=12):
    return tune([case] * count, BALANCED)


def test_what_is_cheaper_everywhere_is_proposed(replayed, case):
    replayed(lambda session, name: (0.8 + session / 1000 if BEST in name else 1, 95, {}))
    found = of(case)
    assert dict(found.proposal) == {"trigger.savings": 0.5}
    assert (found.chosen_on, found.measured_on, found.short) == (6, 6, 0)
    low, high = found.comparison.cost.low, found.comparison.cost.high
    assert 0.8 < low <= found.comparison.cost.value <= high < 0.82


def test_what_is_cheaper_only_where_it_was_chosen_is_not_proposed(replayed, case):
    learning = {11, 8, 7, 4, 3, 0}  # the longest first, in pairs
    replayed(lambda session, name: (0.5 if BEST in name and session in learning else 1, 95, {}))
    found = of(case)
    assert found.trials[1].cost < found.trials[0].cost
    assert found.proposal is None
    assert "may be nothing" in found.why_not


def test_what_saves_next_to_nothing_is_not_proposed(replayed, case):
    replayed(lambda _, name: (0.99 if BEST in name else 1, 95, {}))
    assert of(case).why_not == "it saves only 1.0% there"


def test_what_loses_names_is_not_chosen(replayed, case):
    replayed(lambda _, name: (0.5, 93, {}) if BEST in name else (1, 95, {}))
    found = of(case)
    assert found.proposal is None
    assert found.comparison is None
    assert "no candidate" in found.why_not


def test_what_loses_names_on_other_sessions_is_not_proposed(replayed, case):
    learning = {11, 8, 7, 4, 3, 0}
    replayed(
        lambda session, name: (
            (0.5, 95 if session in learning else 90, {}) if BEST in name else (1, 95, {})
        )
    )
    found = of(case)
    assert "fewer of the names" in found.why_not


@pytest.mark.parametrize("more", [{"refused": 1}, {"error": "It failed."}])
def test_what_is_refused_or_fails_is_not_chosen(replayed, case, more):
    replayed(lambda _, name: (0.5, 95, more) if BEST in name else (1, 95, {}))
    assert of(case).comparison is None


def test_the_best_values_are_also_tried_together(replayed, case):
    def rule(_, name):
        share = 1.0
        share *= 0.9 if BEST in name else 1
        share *= 0.95 if "fold.keep.amount=4000" in name else 1
        return share, 95, {}

    replayed(rule)
    found = of(case)
    assert dict(found.proposal) == {"trigger.savings": 0.5, "fold.keep.amount": 4_000}


def test_with_few_long_sessions_nothing_is_tried(replayed, case):
    replayed(lambda *_: (1, 95, {"marks": ()}))
    found = of(case)
    assert (found.short, found.trials) == (12, ())
    replayed(lambda session, _: (1, 95, {} if session < 9 else {"marks": ()}))
    assert "9 sessions that are long enough to fold are too few" in of(case).why_not


def test_every_candidate_is_a_profile_of_its_own():
    made = [changed(BALANCED, {key: each}) for key, values in CANDIDATES.items() for each in values]
    assert len({one.name for one in made}) == len({str(one.model_dump()) for one in made})
    assert all(one != replace_name(BALANCED, one.name) for one in made)
    assert changed(BALANCED, {}) == BALANCED


def replace_name(profile, name):
    return profile.model_copy(update={"name": name})


def test_a_value_that_a_profile_does_not_use_is_not_tried(replayed, case):
    replayed(lambda *_: (1, 95, {}))
    found = tune([case] * 12, PROFILES["co-cli"])
    assert not any("trigger.savings" in trial.values for trial in found.trials)


def test_progress_ends_at_what_it_said(replayed, case):
    replayed(lambda *_: (1, 95, {}))
    seen = []
    tune([case] * 12, BALANCED, lambda *one: seen.append(one))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= of for done, of in seen)


def test_a_wrong_value_is_refused_as_any_setting_is():
    with pytest.raises((ValueError, InvalidInput)):
        changed(BALANCED, {"trigger.savings": -1})
