"""Merging what models wrote."""

import re

from hypothesis import given
from hypothesis import strategies as st

from refold.fold.material import Earlier
from refold.fold.summary import Claim, Section, Summary
from refold.fold.write.written import HEADINGS, Said, Written, known_from, merged
from refold.log import PartRef

# ---- merging


def test_what_was_said_earlier_stays_unless_it_is_obsolete_or_said_anew():
    earlier = [
        Said("decisions", "A", (1,)),
        Said("decisions", "B", (2,)),
        Said("files", "C.", (3,)),
    ]
    new = Written(said=(Said("files", "c", (9,)), Said("decisions", "D", (8,))), obsolete=(2, 77))
    both = merged([new], earlier)
    assert both.said == (
        Said("decisions", "A", (1,)),
        Said("decisions", "D", (8,)),
        Said("files", "c", (3, 9)),
    )
    assert both.obsolete == (2,)


def test_only_the_newest_chunk_tells_where_things_stand():
    chunks = [
        Written(said=(Said("state", "s1"), Said("next", "n1"), Said("goal", "g1"))),
        Written(said=(Said("state", "s2"), Said("decisions", "d2"), Said("goal", "g2"))),
        Written(said=(Said("files", "f3"), Said("goal", "G1!"))),
    ]
    earlier = [Said("state", "s0"), Said("questions", "q0"), Said("next", "n0")]
    assert [one.text for one in merged(chunks, earlier).said] == [
        "g2",
        "G1!",
        "d2",
        "f3",
        "s2",
        "n1",
        "q0",
    ]


def test_the_title_is_the_newest_one_and_short():
    chunks = [Written("first"), Written("second\nline " + "x" * 99), Written("  ")]
    title = merged(chunks, []).title
    assert title.startswith("second line")
    assert len(title) <= 60
    assert merged([], []) == Written()


subjects = st.sampled_from(sorted(HEADINGS))
claims = st.builds(Said, subjects, st.text("ab. C", min_size=1).filter(str.strip), st.just((1,)))
writtens = st.lists(
    st.builds(
        Written,
        st.text(max_size=3),
        st.lists(claims, max_size=4).map(tuple),
        st.lists(st.integers(1, 9), max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(writtens, st.lists(claims, max_size=6))
def test_merging_invents_nothing_and_says_nothing_twice(written, earlier):
    both = merged(written, earlier)
    given_texts = {one.text for run in [earlier, *(w.said for w in written)] for one in run}
    assert {one.text for one in both.said} <= given_texts
    keys = [(one.subject == "goal", one.text.casefold().strip()) for one in both.said]
    assert len(keys) == len(set(keys))
    lasting = [one for w in written for one in w.said if one.subject == "decisions"]
    plain = {re.sub(r"\W+", " ", one.text).strip().casefold() for one in both.said}
    assert all(re.sub(r"\W+", " ", one.text).strip().casefold() in plain for one in lasting)
    again = merged([Written(said=both.said)], [])
    assert again.said == both.said


def test_the_claims_of_earlier_folds_are_those_that_a_model_wrote():
    summary = Summary(
        "a-model",
        sections=(
            Section("Files changed", (Claim("from the log"),)),
            Section(HEADINGS["errors"], (Claim("E", (PartRef(4, 0), PartRef(4, 1))),)),
        ),
    )
    assert known_from([Earlier(9, summary), Earlier(12, Summary("breadcrumb"))]) == [
        Said("errors", "E", (4,))
    ]
