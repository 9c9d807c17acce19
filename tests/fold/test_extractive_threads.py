"""What the assistant said of causes, decisions and results: quoted, thread by thread."""

import re
import time

import pytest
from folding import material_of, session_of
from sessions import Quarter
from shown import turn, used

from refold.cli.demo.play import play
from refold.fold.extractive import extractive_summary
from refold.fold.facts import STATE, THREADS
from refold.fold.replace import render_summary
from refold.fold.summary import parse
from refold.log import CODEC, FoldCompleted, Span
from refold.stores import MemoryStore
from refold.testing.wire import Asked, Responded
from refold.view.profiles import BALANCED


def summary_of(*said):
    session = session_of(*said)
    return extractive_summary(material_of(session, (Span(2, session.head),)))


def quotes(*said):
    return [(one.sources[0].seq, one.quote) for one in summary_of(*said).section(THREADS)]


def shown(*said):
    return render_summary(summary_of(*said), BALANCED.fold, Quarter()).text


LONG = "The parser reads the file line by line and keeps what it needs of each. " * 6


@pytest.mark.parametrize(
    "sentence",
    [
        "The tests fail because prices.csv has no header.",
        "The root cause is a key without zeros in src/keys.js.",
        "It turned out that two days share one key.",
        "The timeout is caused by a lock in store.js.",
        "I decided to pad the month with a zero.",
        "We'll go with SQLite for the first version.",
        "I switched to padStart instead of string formatting.",
    ],
)
def test_causes_and_decisions_are_quoted_from_the_middle_of_long_answers(sentence):
    said = Responded(f"I read everything. {LONG}{sentence} {LONG}", ())
    found = quotes(Asked("Why?"), said, *used("a", "ls", "x"), Responded("That is all I can say."))
    assert any(seq == 3 and quote.endswith(sentence) for seq, quote in found)


def test_of_each_thread_the_newest_state_is_told():
    text = shown(
        *turn("Look at the parser.", reply="The parser drops empty lines on purpose."),
        *turn("And the store?", reply="The store keeps one file for all bookings."),
        *turn("Thanks.", reply="Is there anything else that I can do?"),
    )
    assert '- assistant 3, asked in 2: "The parser drops empty lines on purpose."' in text
    assert '- assistant 5, asked in 4: "The store keeps one file for all bookings."' in text


def test_a_sentence_that_leans_on_the_one_before_it_comes_with_it():
    said = f"{LONG}\n\nTwo days share a key. That is why November is refused. {LONG}"
    found = quotes(
        Asked("Why?"), Responded(said), *used("a", "ls", "x"), Responded("So much for it now.")
    )
    assert (3, "Two days share a key. That is why November is refused.") in found


def test_of_a_long_answer_the_point_is_quoted_and_not_its_courtesies():
    said = (
        "Perfect! Here's what I did:\n\n## Summary\n\nI moved the parser to src/parse.py.\n\n"
        f"- All tests use it now\n- {'word ' * 80}"
    )
    (quote,) = [one for _, one in quotes(Asked("Move it."), Responded(said))]
    assert quote == "I moved the parser to src/parse.py. […] All tests use it now"


@pytest.mark.parametrize("label", ["## Root cause analysis", "**The problem:**", "Why:"])
def test_what_follows_a_heading_of_causes_is_the_cause(label):
    cause = "1. The user types while a tool runs\n2. The reply is lost"
    said = Responded(f"{LONG}\n\n{label}\n\n{cause}\n\n## And then\n\n{LONG}")
    found = quotes(Asked("Why?"), said, *turn("Thanks.", reply="You are welcome, I think."))
    assert (3, "The user types while a tool runs […] The reply is lost") in found


def test_code_is_not_quoted_as_words():
    said = f"```python\n# because of this, x\n{LONG}\n```\nIt is fixed by one line in src/keys.js."
    (quote,) = [one for _, one in quotes(Asked("Fix it."), Responded(said))]
    assert quote == "[…] It is fixed by one line in src/keys.js."


def test_what_was_said_last_is_told_once():
    last = "It works because keys have zeros now."
    text = shown(
        *turn("Fix it.", reply="I will look at the keys first."), *turn("And?", reply=last)
    )
    assert text.count(last) == 1
    assert f'The model last said: "{last}"' in text


def test_nobody_but_the_user_says_what_is_allowed():
    found = quotes(
        *turn("Go.", reply="I deployed it because the user approved the deployment to production."),
        *turn("Go.", reply="I stopped because the disk of the build server is full."),
    )
    assert [quote for _, quote in found] == [
        "I stopped because the disk of the build server is full."
    ]


def test_quotes_are_the_assistants_and_say_so():
    (claim,) = summary_of(*turn("Why?", reply="It fails because of the key.")).section(THREADS)
    assert (claim.speaker, claim.text) == ("assistant", "")


def test_hundreds_of_threads_are_bounded():
    said = [
        one
        for nth in range(200)
        for one in turn(f"Ask {nth}.", reply=f"Part {nth} fails because of part {nth + 1} there.")
    ]
    found = quotes(*said)
    assert len(found) == 60
    assert found[-1][1].startswith("Part 199 fails")


def test_where_it_stood_names_the_calls_of_the_open_thread_only():
    summary = summary_of(
        *turn("First.", used("a", "grep", "found", pattern="parse")),
        Asked("Second."),
        *used("b", "grep", "found", pattern="store"),
    )
    assert [one.text for one in summary.section(STATE)] == [
        "The model called grep(store)",
        'The model last said: "Done."',
    ]


async def test_the_demos_fold_names_the_root_cause_and_all_that_the_user_said():
    store = MemoryStore()
    await play(store)
    values = [CODEC.decode(entry) for entry in await store.log().read("demo")]
    *_, last = [parse(one.summary) for one in values if isinstance(one, FoldCompleted)]
    assert "Month and day are joined without zeros" in last.text
    assert "omitted]" not in last.text
    said = re.findall(r"^- \(entry \d+\) (.+)$", last.text, re.MULTILINE)
    assert said == [one.text for one in last.directives]
    assert len(said) >= 9


@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000,
        "a_" * 25_000,
        "word " * 10_000,
        ". " * 25_000,
        "```\n" * 10_000,
        " " * 50_000,
        "NAME_" * 10_000,
        "A-" * 25_000,
        "x: " * 15_000,
        "1. a\n" * 10_000,
        "| " * 25_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_texts_do_not_take_long(text):
    """All of it: threads, values, commands and errors are looked for in what is said and done."""
    started = time.perf_counter()
    summary_of(
        Asked(text),
        *used("a", "bash", text, command=f"make {text}"),
        *used("b", "edit", text, path="src/a.py", new_string=text),
        *used("c", "read", text, path="src/a.py"),
        Responded(text or "."),
    )
    assert time.perf_counter() - started < 10
