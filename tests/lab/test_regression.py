"""`refold ci` from code: which changes are problems, and how their requests differ."""

import json

import pytest
from lab_files import claude, claude_call, claude_result, claude_said, lines

from refold.errors import InvalidInput
from refold.lab.measure import EVERYTHING, Job, measured
from refold.lab.regression import (
    Expectations,
    Part,
    Prompt,
    check,
    prompt_in,
    read_expectations,
    write_expectations,
)
from refold.lab.report import CaseOptions, case_of
from refold.lab.session_files import read_session_file
from refold.view.profiles import PROFILES

RULE = "Never push to main."
BALANCED = PROFILES["balanced"]


def session(turns=24):
    records = []
    for turn in range(turns):
        text = f"What does part {turn} do? {RULE if turn == 1 else ''}"
        content = f"def work_{turn}(): ...\n" * 40
        records += [
            claude("user", f"u{turn}", None, text, minute=turn),
            claude_said(
                f"a{turn}", None, f"m{turn}", claude_call(f"c{turn}", file_path=f"{turn}.py")
            ),
            claude_result(f"r{turn}", None, f"c{turn}", content),
            claude_said(
                f"b{turn}", None, f"n{turn}", {"type": "text", "text": f"Like {turn // 3}.py."}
            ),
        ]
    return lines(*records)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a session, and the values that are expected of it."""
    folder = tmp_path_factory.mktemp("ci")
    (folder / "talks").mkdir()
    (folder / "talks" / "one.jsonl").write_bytes(session())
    begun = Expectations(sessions=("talks",), window=9_000, lifetime="none")
    result = check(folder / "refold-ci.json", begun, profile=BALANCED)
    return folder, result.now


def checked(written, *, profile=BALANCED, **parts):
    folder, before = written
    return check(folder / "refold-ci.json", before, profile=profile, **parts)


def with_values(**tables):
    return BALANCED.model_copy(
        update={
            name: getattr(BALANCED, name).model_copy(update=values)
            for name, values in tables.items()
        }
    )


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_the_same_requests_pass(written):
    result = checked(written)
    assert result.passed
    assert result.now == written[1]
    assert result.differences == {}
    [expected] = result.now.expected.values()
    assert (expected.requests, expected.illegal, expected.rules_lost) == (48, 0, 0)
    assert expected.moved > 0


def test_a_policy_that_loses_names_and_rules_fails_and_shows_the_requests(written):
    result = checked(
        written,
        profile=with_values(fold={"ledger_tokens": 0, "max_tokens": 1, "user_messages": 0}),
    )
    kinds = {problem.kind for problem in result.problems}
    assert "rules" in kinds
    assert any(RULE in problem.text for problem in result.problems)
    [(session_, shown)] = result.differences.items()
    assert session_ == "talks/one.jsonl"
    assert shown[0].startswith("request ")
    assert any(line.startswith("-user") for line in shown)
    assert any(line.startswith("+user") for line in shown)


def test_a_longer_prompt_fails_on_cost(written):
    result = checked(written, instructions=Prompt("Be kind. " * 200, "prompt.md"))
    assert "cost" in {problem.kind for problem in result.problems}
    assert "The instructions changed (0 tokens before, 6" in result.notes[0]


def test_a_cheaper_policy_passes_and_says_so(written):
    folder, before = written
    dear = {
        name: one.model_copy(update={"cost": 2 * one.cost}) for name, one in before.expected.items()
    }
    result = checked((folder, before.model_copy(update={"expected": dear})))
    assert result.passed
    assert any(one.startswith("All together: $") for one in result.notes)


def test_a_prefix_that_moves_at_each_request_fails(written):
    rolling = PROFILES["co-cli"]
    result = checked(written, profile=rolling)
    assert "prefix" in {problem.kind for problem in result.problems}


def test_requests_that_do_not_fit_fail(written):
    result = checked(written, tools=Prompt("tool " * 8_800, "tools.json"))
    assert {"illegal", "sessions"} & {problem.kind for problem in result.problems}


def test_a_session_that_is_gone_or_new_fails(written):
    folder, before = written
    [one] = before.expected.values()
    result = checked((folder, before.model_copy(update={"expected": {"talks/two.jsonl": one}})))
    assert {(problem.session, problem.text) for problem in result.problems} == {
        ("talks/one.jsonl", "there are no expected values for it"),
        ("talks/two.jsonl", "it is not there any more"),
    }


def test_values_of_the_profile_are_kept_where_they_differ(written):
    now = checked(written, profile=with_values(trigger={"savings": 3.0})).now
    assert (now.profile, now.values) == ("balanced", {"trigger.savings": 3.0})


def test_a_difference_from_another_version_says_so(written):
    folder, before = written
    other = {
        name: one.model_copy(update={"digest": "0", "cost": 0.0})
        for name, one in before.expected.items()
    }
    result = checked((folder, before.model_copy(update={"expected": other})))
    [shown] = result.differences.values()
    assert "a version of Refold that sent other requests" in shown[-1]


def test_the_file_reads_back_as_it_was_written(written, tmp_path):
    file = tmp_path / "refold-ci.json"
    write_expectations(file, written[1])
    assert read_expectations(file) == written[1]
    assert len(file.read_text().splitlines()) < 50


@pytest.mark.parametrize("text", ["", "[]", '{"refold_ci": 2, "sessions": []}'])
def test_a_broken_file_says_what_to_do(tmp_path, text):
    file = tmp_path / "refold-ci.json"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"refold-ci\.json cannot be read"):
        read_expectations(file)
    with pytest.raises(InvalidInput, match="There are no expected values"):
        read_expectations(tmp_path / "other.json")


def test_a_prompt_that_is_gone_says_so(tmp_path):
    with pytest.raises(InvalidInput, match=r"prompt\.md cannot be read"):
        prompt_in(tmp_path, Part(file="prompt.md", tokens=1, sha256=""))


def test_sending_everything_never_moves_the_prefix(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_bytes(session(4))
    [recording] = read_session_file(path).recordings
    job = Job(0, case_of(recording, CaseOptions()), (EVERYTHING,), traced=True)
    [outcome] = measured(job)
    assert (outcome.trace.moved, outcome.trace.lost) == (0, ())
    assert len(outcome.trace.requests) == 8
    assert json.dumps(outcome.trace.lines)
