"""Reading what a model wrote: no word is lost, nothing raises, and it takes no time."""

import json
import re

import pytest
from draft_claims import all_of
from growth import check_growth
from hypothesis import given
from hypothesis import strategies as st
from project_paths import DATA

from refold.fold.write.draft import HEADINGS, from_text
from refold.fold.write.phrases import match_heading

WORD = re.compile(r"q[a-z]+z")


# ---- no word is lost, nothing raises, and it takes no time

words = st.from_regex(r"\Aq[a-y]{2,6}z\Z")
pieces = st.one_of(
    words,
    st.sampled_from(
        [
            *' \n\t.:[](){`"<>#。',
            *("\n\n", "\r\n", "\u2028", "\x00", "# ", "## ", "- ", "* ", "1. ", "> ", "[x]"),
            *("| ", " |", "|---|", "```", "~~~", "**", "__", "---", "===", "[12]", "(entry 3)"),
            *("## Goal\n", "Next:", "Title: ", "Obsolete: ", "<goal>", "</goal>", "None"),
            *("Summary", "Let me", "Error: ", "：\n"),  # noqa: RUF001 - as it is written
        ]
    ),
)


@given(st.lists(pieces, max_size=40).map("".join))
def test_no_word_is_lost(text):
    written = from_text(text)
    kept = all_of(written)
    for word in WORD.findall(text):
        assert word in kept, text
    assert all(one.text.strip() for one in written.claims)
    assert written.text == text


numbered = st.lists(st.integers(-3, 99).map("- word [{}]\n".format)).map("".join)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")) | numbered)
def test_nothing_raises(text):
    written = from_text(text)
    assert all(number > 0 for one in written.claims for number in one.cites)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
        lambda inner: st.lists(inner) | st.dictionaries(words | st.sampled_from(["goal"]), inner),
        max_leaves=20,
    )
)
def test_no_word_of_json_is_lost(value):
    text = json.dumps(value)
    kept = all_of(from_text(text))
    assert all(word in kept for word in WORD.findall(text)), text


HARD = {
    "letters": "a" * 10,
    "spaces": " " * 10,
    "words": "word and ",
    "brackets": "[12, ",
    "open": "([{<",
    "entries": "entry 12, ",
    "stars": "**",
    "rules": "- -",
    "pipes": "|-",
    "fences": "```\n",
    "tags": "<goal>",
    "thinking": "<think>\n",
    "colons": "goal:",
    "headings": "# goal\n",
    "hashes": "#",
    "numbers": "1234567890",
    "ranges": "1-",
    "sentences": "It is. [12] ",
    "json": '{"a":',
    "lists": "[",
    "objects": '{"a":[',
    "bullets": "- a [1]\n",
    "rows": "| a | b |\n",
    "quotes": '"',
    "Chinese": "错误。",
}


@pytest.mark.parametrize("name", HARD)
def test_the_time_grows_with_the_length_and_no_faster(name):
    check_growth(from_text, HARD[name], 50_000)


# ---- summaries that real models wrote


@pytest.fixture(scope="module")
def recorded():
    file = DATA / "pi_before-compaction.jsonl"
    if not file.is_file():
        pytest.skip("the recorded sessions are not here")
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [one["summary"] for one in lines if one["type"] == "compaction"]


def test_recorded_summaries_give_claims_by_subject(recorded):
    counts = []
    for text in recorded:
        written = from_text(text)
        assert written.title == "Coding Agent Refactoring"
        by = {subject: [o for o in written.claims if o.subject == subject] for subject in HEADINGS}
        counts.append({subject: len(found) for subject, found in by.items() if found})
        assert by["goal"][0].text.startswith("Refactor `coding-agent` to eliminate")
        kept = all_of(written)
        lines = [line for line in text.splitlines() if not match_heading(line.lstrip("# "))]
        for word in re.findall(r"\w[\w./-]+\w", "\n".join(lines[1:])):
            assert word in kept
    assert counts == [
        {"goal": 1, "decisions": 18, "files": 11, "next": 13, "notes": 3},
        {"goal": 5, "decisions": 7, "files": 7, "state": 3, "next": 5, "notes": 1},
    ]
