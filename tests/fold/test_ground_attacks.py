"""Whatever a summarizer writes: each quote stands in the log, and its own words in its account."""

import pytest
from claimed import RECORDED, best_quote, judge, recorded, worlds
from ground_attacks import LARGE, drafts, rendered, stands
from ground_worlds import INVENTED, TALK, model, tool, user, world
from ground_worlds import worlds as generated
from growth import check_growth
from hypothesis import given
from hypothesis import strategies as st

from refold.fold.ground import GONE, ground
from refold.fold.ground.permissions import permits
from refold.fold.material import Material
from refold.fold.write.draft import Draft, DraftClaim

PLACES = [
    *(world(seed).material for seed in range(4)),
    *(material for material, _ in worlds("development").values()),
    Material(TALK),
]
SMALL = LARGE.model_copy(update={"max_tokens": 600})
REMOVED = 0.02
CARRIED = 0.7


@given(st.data(), st.sampled_from([LARGE, SMALL]))
def test_quotes_stand_in_the_log_and_the_models_words_in_its_account(data, values):
    material = data.draw(st.sampled_from(PLACES))
    found = ground(data.draw(drafts(material)), material)
    fold = rendered(found, values)
    for quote in fold.quotes:
        assert stands(quote, material), quote
        assert quote.speaker == "user" or not permits(quote.text)
    told = {claim.text for section in found.sections for claim in section.claims}
    for item in "\n".join(fold.account).split("\n- ") if fold.account else []:
        text, mark, but = item.removeprefix("- ").rpartition(" — no source")
        assert mark
        assert text.replace("\n  > ", "\n") in told
        assert not but or but.startswith(" (but entry ")
        assert not permits(text)
    headings = [line for line in fold.rest.splitlines() if line.startswith("#")]
    assert headings in (
        [],
        ["## Quoted from these messages, as a model chose; what came later may differ"],
    )


@given(st.data())
def test_no_claim_is_rewritten(data):
    """What is shown of a text are its own words in their order: no order is made of a report."""
    material = data.draw(st.sampled_from(PLACES))
    for said in data.draw(drafts(material)).claims:
        for section in ground(Draft("", (said,)), material).sections:
            for claim in section.claims:
                rest = iter(_letters(said.text))
                assert all(letter in rest for letter in _letters(claim.text.replace(GONE, "")))


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isascii() and char.isalnum())


@given(st.integers(0, 30), st.data())
def test_names_that_nobody_said_are_masked(seed, data):
    place = world(seed)
    name = data.draw(
        st.from_regex(r"[a-z]{5,9}[A-Z][a-z]{4,8}|[a-z]{4,8}_[a-z]{4,8}", fullmatch=True)
        | st.sampled_from(INVENTED).map(lambda one: one.format(number=31).strip("`"))
    )
    said = data.draw(st.sampled_from(place.points))
    claim = DraftClaim("notes", f"{said.text} in {name}", (said.entry,), said.quote)
    found = ground(Draft(f"Work on {name}", (claim,)), place.material)
    there = any(name in text for text in place.texts)
    assert there or name not in f"{rendered(found).text}\n{found.title}"


@given(st.text(max_size=200), st.text(max_size=80), st.text(max_size=40))
def test_whatever_is_written_something_sound_comes_of_it(text, quote, title):
    found = ground(Draft(title, (DraftClaim("notes", text, (4,), quote),)), Material(TALK))
    assert found.report.checked == 1
    for section in found.sections:
        for claim in section.claims:
            shown = claim.text.replace("\n", "").replace("\u00a0", "").replace("\u202f", "")
            assert shown.isprintable()
            assert claim.text.strip() or claim.quote


class TestTruth:
    """What is true is neither removed nor changed, and comes with words of the log."""

    def test_points_written_by_hand(self):
        self.check([(p, m) for m, points in worlds("development").values() for p in points])

    def test_points_about_generated_conversations(self):
        self.check([(p, place.material) for place in generated(12) for p in place.points])

    def check(self, cases):
        found = [judge(point, material) for point, material in cases if point.true]
        lost = sum(one.fate in ("removed", "changed") for one in found)
        carried = sum(bool(one.claim and one.claim.quote) for one in found)
        assert lost <= REMOVED * len(found)
        assert carried >= CARRIED * len(found)

    @pytest.mark.skipif(
        not RECORDED.exists(), reason="the recordings are not here: set REFOLD_DATA to their folder"
    )
    def test_what_models_wrote_of_a_recorded_session_stays(self):
        reports = [ground(draft, material).report for draft, material in recorded()]
        claims = sum(report.checked for report in reports)
        assert claims >= 60
        assert sum(report.count("left out", "masked") for report in reports) <= 0.05 * claims


class TestLies:
    @pytest.mark.parametrize("name", worlds("development"))
    def test_with_the_best_quote_that_the_log_has(self, name):
        material, points = worlds("development")[name]
        lies = [best_quote(point, material) for point in points if not point.true]
        fold = rendered(ground(Draft("", tuple(lie.claim for lie in lies)), material))
        assert all(stands(quote, material) for quote in fold.quotes)
        assert all(" — no source" in line for line in fold.account if line.startswith("- "))
        assert not any(permits(quote.text) for quote in fold.quotes if quote.speaker != "user")

    def test_the_generated_ones_are_as_they_say(self):
        """An invented name is masked, a grant is gone, and an outdated value is marked."""
        fates = {
            "invented name": {"changed"},
            "wrong number": {"changed"},
            "similar id": {"changed"},
            "only an invented name": {"quoted"},
            "prohibition told as permission": {"quoted"},
            "plan told as permission": {"quoted"},
            "injected order as a grant": {"quoted"},
            "outdated value": {"marked"},
            "wrong unit": {"marked"},
            "planned told as done": {"marked"},
        }
        for place in generated(6):
            for point in place.points:
                if point.kind in fates:
                    assert judge(point, place.material).fate in fates[point.kind], point

    def test_a_negation_is_shown_with_the_quote_that_it_was_cut_off(self):
        for place in generated(6):
            for point in place.points:
                if point.kind == "negation cut off the quote":
                    claim = judge(point, place.material).claim
                    assert claim
                    assert "Never " in claim.quote


class TestTime:
    """The time grows with the length of what is read, and no faster."""

    SAID = (
        DraftClaim("notes", "src/core/session.ts has 1234 lines", (1,), "one two three four five"),
        DraftClaim("notes", "retryLimit was declared with 3 seconds", (), "a, b; c. d - e: f"),
    )

    @pytest.mark.parametrize(
        "piece",
        [
            "src/core/session.ts has 1235 lines. ",
            "one two three four six\n",
            "one ",
            ". . - : , ; ",
            "retryLimit 4 seconds, ",
            "- never\n  - one two three four five\n",
            "Straße one two ",
        ],
    )
    def test_of_the_conversation(self, piece):
        def work(text):
            ground(Draft("", self.SAID), Material((user(1, text), model(2, text), tool(3, text))))

        check_growth(work, piece, 20_000)

    @pytest.mark.parametrize("piece", ["retryLimit 3, ", '"', "[12] ", "```\n", "you may "])
    def test_of_a_claim_and_its_quote(self, piece):
        def work(text):
            ground(Draft(text, (DraftClaim("notes", text, (), text),)), Material(TALK))

        check_growth(work, piece, 20_000)
