"""The newest value of what changed: told with who gave it, and the value before it."""

import pytest
from folding import material_of, session_of
from shown import turn, used

from refold.fold.extractive import extractive_summary
from refold.fold.facts import VALUES
from refold.fold.values import assignments
from refold.log import Span
from refold.testing.wire import Asked


def changes(*said):
    """What a fold says of values that changed."""
    session = session_of(*said)
    summary = extractive_summary(material_of(session, (Span(2, session.head),)))
    return [claim.text for claim in summary.section(VALUES)]


def test_a_value_that_changed_is_told_with_who_gave_it_and_what_it_was():
    assert changes(
        *turn("Set READ_TIMEOUT to 45."),
        *turn("Check it.", used("a", "read_file", "READ_TIMEOUT = 45\nRETRIES = 3\n", path="s.py")),
        *turn("Now set READ_TIMEOUT to 60."),
    ) == ["READ_TIMEOUT: 60 (user 8), before: 45 (tool 6)"]


def test_a_value_that_never_changed_is_not_told():
    assert changes(*turn("Set READ_TIMEOUT to 45."), *turn("READ_TIMEOUT is 45.")) == []


def test_what_a_call_writes_is_the_newest_value():
    assert changes(
        *turn("Go.", used("a", "read", '{\n  "max_tokens": 8000,\n}', path="conf.json")),
        *turn(
            "Go on.",
            used(
                "b",
                "edit",
                "ok",
                path="conf.json",
                old_string='"max_tokens": 8000',
                new_string='"max_tokens": 4000',
            ),
        ),
    ) == ["max_tokens in conf.json: 4000 (assistant 7), before: 8000 (tool 4)"]


def test_a_call_that_failed_sets_nothing():
    change = {"path": "s.py", "old_string": "READ_TIMEOUT = 45", "new_string": "READ_TIMEOUT = 60"}
    assert (
        changes(
            *turn("Go.", used("a", "read", "READ_TIMEOUT = 45\n", path="s.py")),
            *turn("Go.", used("b", "edit", "Error: the text was not found", **change)),
        )
        == []
    )


def test_a_setting_that_a_tool_sets_by_name():
    assert changes(
        *turn("Go.", used("a", "set_option", "ok", name="theme", value="dark")),
        *turn("Go.", used("b", "get_option", "ok", name="theme", value="none")),
        *turn("Go.", used("c", "set_option", "ok", name="theme", value="light")),
    ) == ["theme: light (assistant 11), before: dark (assistant 3)"]


def test_the_fields_of_the_same_call_are_compared():
    order = '{"order_id": "SP-20447", "status": "%s", "updated_at": "%s"}'
    assert changes(
        *turn("Go.", used("a", "get_order", order % ("open", "9:00"), order="SP-20447")),
        *turn("Go.", used("b", "get_order", order % ("shipped", "9:01"), order="SP-20451")),
        *turn("Go.", used("c", "get_order", order % ("refunded", "9:02"), order="SP-20447")),
    ) == ["get_order(SP-20447) status: refunded (tool 12), before: open (tool 4)"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recall_read", {"at": "12.0"}),  # the past
        ("bash", {"command": "git show HEAD~3:s.py"}),
        ("grep", {"pattern": "READ_TIMEOUT"}),
        ("read_file", {"path": "tests/test_s.py"}),
        ("read_file", {"path": "s.py.bak"}),
    ],
)
def test_what_shows_other_values_than_those_in_force_changes_nothing(tool, arguments):
    assert (
        changes(
            *turn("Go.", used("a", "read", "READ_TIMEOUT = 45\n", path="s.py")),
            *turn("Go.", used("b", tool, "READ_TIMEOUT = 5\n", **arguments)),
        )
        == []
    )


@pytest.mark.parametrize(
    "text",
    [
        "# READ_TIMEOUT = 60",
        "// READ_TIMEOUT = 60",
        "READ_TIMEOUT = 60\nREAD_TIMEOUT = 90",  # two at once
        "-READ_TIMEOUT = 60\n+WRITE_TIMEOUT = 60",
        "READ_TIMEOUT = 60 if slow else 45",
        "if READ_TIMEOUT == 60:",
        "READ_TIMEOUT = compute(60)",
        "READ_TIMEOUT: int",
        "MY_READ_TIMEOUT = 60",
    ],
)
def test_what_is_no_plain_assignment_changes_nothing(text):
    assert (
        changes(
            *turn("Go.", used("a", "read", "READ_TIMEOUT = 45\n", path="s.py")),
            *turn("Go.", used("b", "read", f"{text}\n", path="s.py")),
        )
        == []
    )


def test_a_name_in_lower_case_means_the_same_in_one_file_only():
    assert (
        changes(
            *turn("Go.", used("a", "read", "max_tokens: 8000\n", path="a.yaml")),
            *turn("Go.", used("b", "read", "max_tokens: 4000\n", path="b.yaml")),
        )
        == []
    )


def test_a_secret_is_no_value():
    assert (
        changes(
            *turn("Go.", used("a", "read", 'API_KEY = "abc123"\n', path="s.py")),
            *turn("Go.", used("b", "read", 'API_KEY = "def456"\n', path="s.py")),
        )
        == []
    )


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Set READ_TIMEOUT to 60.", {"READ_TIMEOUT": "60"}),
        ("please raise `READ_TIMEOUT` from 45 to 60 seconds", {"READ_TIMEOUT": "60 seconds"}),
        ("READ_TIMEOUT should be 60, not 45.", {"READ_TIMEOUT": "60"}),
        ("fold.max_tokens = 4000", {"fold.max_tokens": "4000"}),
        ("Change log_level to `debug`", {"log_level": "debug"}),
        ("Setze READ_TIMEOUT auf 60", {"READ_TIMEOUT": "60"}),
        (
            "Set READ_TIMEOUT to 45 and WRITE_TIMEOUT to 9",
            {"READ_TIMEOUT": "45", "WRITE_TIMEOUT": "9"},
        ),
        ("Don't set READ_TIMEOUT to 60.", {}),
        ("Is READ_TIMEOUT = 60?", {}),
        ("If READ_TIMEOUT is 60, tell me.", {}),
        ("READ_TIMEOUT is wrong", {}),
        ("READ_TIMEOUT was 45", {}),
        ("Try READ_TIMEOUT = 45 or 60", {}),
        ("main.py is 300 lines long", {}),
        ("The timeout is 60.", {}),
    ],
)
def test_what_the_users_words_set(said, found):
    assert assignments(said) == found


def test_many_changes_are_bounded():
    said = [
        one
        for value in (1, 2)
        for nth in range(90)
        for one in turn(
            "Go.", used(f"{value}{nth}", "read", f"NAME_{nth} = {value}\n", path="s.py")
        )
    ]
    told = changes(*said, Asked("And now?"))
    assert len(told) == 30
    assert told[-1].startswith("NAME_89: 2 ")
