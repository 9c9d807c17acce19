"""Merging what models wrote."""

import re

from hypothesis import given
from hypothesis import strategies as st

from refold.fold.material import Earlier
from refold.fold.summary import Claim, Section, Summary
from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, earlier_claims, merged
from refold.log import PartRef

# ---- merging


def test_what_was_said_earlier_stays_unless_it_is_obsolete_or_said_anew():
    earlier = [
        DraftClaim("decisions", "A", (1,)),
        DraftClaim("decisions", "B", (2,)),
        DraftClaim("files", "C.", (3,)),
    ]
    new = Draft(
        claims=(DraftClaim("files", "c", (9,)), DraftClaim("decisions", "D", (8,))),
        obsolete=(2, 77),
    )
    both = merged([new], earlier)
    assert both.claims == (
        DraftClaim("decisions", "A", (1,)),
        DraftClaim("decisions", "D", (8,)),
        DraftClaim("files", "c", (9,)),
    )
    assert both.obsolete == (2,)


def test_only_the_newest_chunk_tells_where_things_stand():
    chunks = [
        Draft(
            claims=(DraftClaim("state", "s1"), DraftClaim("next", "n1"), DraftClaim("goal", "g1"))
        ),
        Draft(
            claims=(
                DraftClaim("state", "s2"),
                DraftClaim("decisions", "d2"),
                DraftClaim("goal", "g2"),
            )
        ),
        Draft(claims=(DraftClaim("files", "f3"), DraftClaim("goal", "G1!"))),
    ]
    earlier = [DraftClaim("state", "s0"), DraftClaim("questions", "q0"), DraftClaim("next", "n0")]
    assert [one.text for one in merged(chunks, earlier).claims] == [
        "g2",
        "G1!",
        "d2",
        "f3",
        "s2",
        "n1",
        "q0",
    ]


def test_the_title_is_the_newest_one_and_short():
    chunks = [Draft("first"), Draft("second\nline " + "x" * 99), Draft("  ")]
    title = merged(chunks, []).title
    assert title.startswith("second line")
    assert len(title) <= 60
    assert merged([], []) == Draft()


subjects = st.sampled_from(sorted(HEADINGS))
claims = st.builds(
    DraftClaim, subjects, st.text("ab. C", min_size=1).filter(str.strip), st.just((1,))
)
writtens = st.lists(
    st.builds(
        Draft,
        st.text(max_size=3),
        st.lists(claims, max_size=4).map(tuple),
        st.lists(st.integers(1, 9), max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(writtens, st.lists(claims, max_size=6))
def test_merging_invents_nothing_and_says_nothing_twice(written, earlier):
    both = merged(written, earlier)
    given_texts = {one.text for run in [earlier, *(w.claims for w in written)] for one in run}
    assert {one.text for one in both.claims} <= given_texts
    keys = [(one.subject == "goal", one.text.casefold().strip()) for one in both.claims]
    assert len(keys) == len(set(keys))
    lasting = [one for w in written for one in w.claims if one.subject == "decisions"]
    plain = {re.sub(r"\W+", " ", one.text).strip().casefold() for one in both.claims}
    assert all(re.sub(r"\W+", " ", one.text).strip().casefold() in plain for one in lasting)
    again = merged([Draft(claims=both.claims)], [])
    assert again.claims == both.claims


def test_the_claims_of_earlier_folds_are_those_that_a_model_wrote():
    summary = Summary(
        "a-model",
        sections=(
            Section("Files changed", (Claim("from the log"),)),
            Section(HEADINGS["errors"], (Claim("E", (PartRef(4, 0), PartRef(4, 1))),)),
        ),
    )
    assert earlier_claims([Earlier(9, summary), Earlier(12, Summary("breadcrumb"))]) == [
        DraftClaim("errors", "E", (4,))
    ]
