"""Generated worlds: lies do not stand, truth does, and what is missed is counted."""

import json

import pytest
from ground_attacks import ORDERS, THINGS, attacks, leaks, noticed, swapped, texts
from ground_worlds import world, worlds
from hypothesis import given
from hypothesis import strategies as st
from project_paths import DATA

from refold.fold.ground import ground
from refold.fold.ground.evidence import QUOTE
from refold.fold.material import Material, Passage
from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, from_text
from refold.lab.importers.pi import parse_pi
from refold.log.text import words
from refold.wire import wire_for

RECORDED = DATA / "pi_before-compaction.jsonl"
REMOVED = 0.05
subjects = st.sampled_from(list(HEADINGS))


@pytest.mark.parametrize("start", range(0, 60, 12))
def test_no_lie_stands(start):
    cases = [
        (one, attack)
        for at, one in enumerate(worlds(12, start), start)
        for attack in attacks(one, at)
    ]
    assert len(cases) >= 120  # of 600
    left = [
        (attack.kind, attack.written, found)
        for one, attack in cases
        if (found := leaks(ground(attack.written, one.material), one, attack))
    ]
    assert left == []


@pytest.mark.parametrize("language", ORDERS)
def test_no_invented_directive_stands_in_any_phrasing(language):
    place = world(1)
    for order in ORDERS[language]:
        for thing in THINGS[language]:
            for subject in HEADINGS:
                said = DraftClaim(subject, order.format(thing=thing), (1,))
                found = texts(ground(Draft("", (said,)), place.material))
                assert not any(thing in text and not QUOTE.match(text) for text in found)


def test_what_is_true_stays():
    claims = removed = 0
    for one in worlds(40):
        report = ground(one.written(), one.material).report
        claims += report.checked
        removed += report.count("left out", "masked")
    assert claims > 600
    assert removed <= REMOVED * claims


def test_flipped_outcomes_are_noticed_mostly():
    flipped = [(one, said) for one in worlds(25) for said in one.flipped]
    missed = sum(not noticed(ground(Draft("", (s,)), one.material)) for one, s in flipped)
    assert missed <= 0.1 * len(flipped)


def test_swapped_citations_are_put_right_mostly():
    cases = [(one, *case) for at, one in enumerate(worlds(25)) for case in swapped(one, at)]
    missed = 0
    for one, said, right in cases:
        found = ground(Draft("", (said,)), one.material).sections
        cited = {ref.seq for section in found for claim in section.claims for ref in claim.sources}
        missed += bool(found) and not cited & right
    assert missed <= 0.1 * len(cases)


@given(st.integers(0, 10_000), subjects, st.text(max_size=200), st.text(max_size=40))
def test_whatever_is_written_something_sound_comes_of_it(seed, subject, text, title):
    one = world(seed % 20)
    found = ground(Draft(title, (DraftClaim(subject, text, (seed,)),)), one.material)
    for claim in texts(found):
        assert claim.strip()
        assert not any(line.startswith(("## ", "[Summary of")) for line in claim.splitlines())
        assert claim.isprintable() or "\n" in claim or "\u00a0" in claim or "\u202f" in claim
    assert found.report.checked == 1
    assert [one.heading for one in found.sections] in ([], [HEADINGS[subject]])


@given(st.integers(0, 50), st.data())
def test_names_and_numbers_are_the_logs_own(seed, data):
    """Letters at random make words that no log holds; as names they must not come through."""
    one = world(seed)
    name = data.draw(
        st.from_regex(r"[a-z]{5,9}[A-Z][a-z]{4,8}|[a-z]{4,8}_[a-z]{4,8}", fullmatch=True)
    )
    true = data.draw(st.sampled_from(one.said))
    found = ground(Draft("", (DraftClaim("notes", f"{true.text} in {name}"),)), one.material)
    assert name in one.text or not any(name in text for text in texts(found))


@pytest.mark.skipif(
    not RECORDED.exists(), reason="the recordings are not here: set REFOLD_DATA to their folder"
)
def test_what_models_wrote_of_a_recorded_session_stays():
    claims = removed = 0
    for written, material in recorded():
        report = ground(written, material).report
        claims += report.checked
        removed += report.count("left out", "masked")
    assert claims >= 60
    assert removed <= REMOVED * claims


def recorded():
    """The recorded summaries, each with what it was written of."""
    lines = RECORDED.read_bytes().splitlines()
    wire = wire_for("pydantic-ai")
    for at, line in enumerate(lines):
        record = json.loads(line)
        if record["type"] == "compaction":
            payloads = parse_pi(lines[:at], "pi").payloads
            described = (wire.describe(payload) for payload in payloads)
            passages = tuple(
                Passage(seq, one.role, one.shapes) for seq, one in enumerate(described, 1)
            )
            yield from_text(record["summary"]), Material(passages)


def test_the_worlds_are_worth_testing():
    """The truth of a world has names, and its lies are not in it."""
    one = world(7)
    assert len(one.said) >= 12
    assert all(name in one.text for name in one.names)
    for attack in attacks(one, 7):
        if attack.kind == "name":
            assert not {*words(attack.never[0])} <= {*words(one.text)}
