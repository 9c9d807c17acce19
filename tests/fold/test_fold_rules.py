"""What the user said for good outlives what was asked for once."""

import pytest
from folding import TIGHT, material_of, session_of
from sessions import Quarter
from shown import turn

from refold.fold.extractive import extractive_summary
from refold.fold.replace import render_summary
from refold.fold.user_words import least_missed, rules_in
from refold.log import Span

RULES = (
    "Never push to main.",
    "Always run the tests first.",
    "Don't touch src/old.py.",
    "From now on write in British English.",
    "Please ask me before you deploy.",
    "Lösche niemals die Datenbank.",
    "Ne modifie jamais ce fichier.",
    "No borres nunca los datos.",
    "不要删除数据库。",
)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_found_in_a_longer_message(rule):
    assert rules_in(f"Look at part 3. {rule} Then tell me.") == [rule]


def test_what_is_asked_for_once_is_no_rule():
    assert rules_in("Look at part 3. Then tell me what it says about the parser.") == []


def test_a_pasted_text_is_no_rule():
    assert rules_in("must " * 1_000) == []


def test_what_is_missed_least_goes_first():
    said = ["Read a.", "Never read b.", "Read c.", "Read d."]
    assert least_missed(said) == [0, 2, 1, 3]
    assert least_missed([]) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_outlives_hundreds_of_errands_in_little_room(rule):
    errands = [one for nth in range(300) for one in turn(f"Read part {nth}.", reply="Done.")]
    session = session_of(*turn(f"Hello. {rule}", reply="Good."), *errands)
    summary = extractive_summary(material_of(session, (Span(2, session.head),)))
    values = TIGHT.model_copy(update={"placement": "replacement", "max_tokens": 400})
    text = render_summary(summary, values, Quarter()).text
    assert rule in text
    assert "Read part 299." in text
    assert text.index(rule) < text.index("Read part 299.")
    assert Quarter().text(text) <= 400


def test_of_a_long_message_the_rule_is_quoted():
    long = "Some words on the work. " * 60 + RULES[0] + " More words on the work." * 60
    session = session_of(*turn(long, reply="Good."))
    summary = extractive_summary(material_of(session, (Span(2, session.head),)))
    values = TIGHT.model_copy(update={"placement": "replacement", "max_tokens": 600})
    text = render_summary(summary, values, Quarter()).text
    assert RULES[0] in text
    assert "characters in all" in text
