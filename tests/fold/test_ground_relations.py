"""Four relations in which the log disagrees with a point: each marks it, with the entry."""

import pytest
from claimed import judge, worlds
from ground_attacks import rendered
from ground_worlds import claims, grounded, model, point, tool, user

from refold.fold.ground.evidence import Evidence
from refold.fold.ground.relations import bindings, clauses, disagreement, fits, newer_value
from refold.fold.material import Material
from refold.fold.write.draft import DraftClaim
from refold.log import PartRef

PORT = (
    user(1, "Set READ_TIMEOUT to 45 seconds."),
    model(2, "READ_TIMEOUT is now 60 seconds, as the link is slow."),
)


def mark(text, *talk) -> tuple[int, str] | None:
    """What speaks against a text: the entry, and why."""
    found = disagreement(Evidence(Material(talk), [text]), text)
    return (found.ref.seq, found.why) if found else None


def outdated(quote, ref, *talk) -> tuple[int, str] | None:
    found = newer_value(Evidence(Material(talk), [quote]), quote, ref)
    return (found.ref.seq, found.why) if found else None


class TestNewerValue:
    def test_an_outdated_value_is_marked_with_the_newest(self):
        assert mark("READ_TIMEOUT is 45 seconds", *PORT) == (2, "60 second since")
        assert mark("READ_TIMEOUT is 60 seconds", *PORT) is None

    def test_a_value_that_was_put_back_is_not(self):
        back = user(3, "Set READ_TIMEOUT to 45 seconds again.")
        assert mark("READ_TIMEOUT is 45 seconds", *PORT, back) is None
        assert mark("READ_TIMEOUT is 60 seconds", *PORT, back) == (3, "45 second since")

    def test_a_quote_of_an_outdated_value_is_marked(self):
        quote = "Set READ_TIMEOUT to 45 seconds"
        assert outdated(quote, PartRef(1, 0), *PORT) == (2, "60 second since")
        assert outdated("READ_TIMEOUT is now 60 seconds", PartRef(2, 0), *PORT) is None

    def test_what_came_before_a_quote_does_not_mark_it(self):
        talk = (model(1, "READ_TIMEOUT is 60 seconds."), user(2, "READ_TIMEOUT is 45 seconds."))
        assert outdated("READ_TIMEOUT is 45 seconds", PartRef(2, 0), *talk) is None

    def test_sentences_that_name_other_things_are_not_compared(self):
        talk = (
            tool(1, "FAILED src/a.ts - AssertionError: expected 40"),
            tool(2, "FAILED src/b.ts - AssertionError: expected 50"),
        )
        quote = "FAILED src/a.ts - AssertionError: expected 40"
        assert outdated(quote, PartRef(1, 0), *talk) is None

    def test_a_text_and_its_quote_are_marked_each_for_itself(self):
        shown = point("It waits READ_TIMEOUT of 45 seconds", PORT[0].shapes[0].text, talk=PORT)
        assert shown.against == shown.outdated == "entry 2: 60 second since"
        wrong = point(
            "READ_TIMEOUT is 30 seconds",
            "READ_TIMEOUT is now 60 seconds",
            talk=(*PORT, tool(3, "30")),
        )
        assert wrong.against == "entry 2: the log has 60 second"
        assert wrong.outdated == ""  # the quote is as true as before

    def test_marks_are_shown_beside_the_text_and_beside_the_quote(self):
        quote = "Set READ_TIMEOUT to 45 seconds"
        text = "The wait of READ_TIMEOUT is 45 seconds"
        fold = rendered(grounded(DraftClaim("state", text, (1,), quote), talk=PORT))
        assert fold.account == [f"- {text} — no source (but entry 2: 60 second since)"]
        assert f'- user 1: "{quote}." (but entry 2: 60 second since)' in fold.rest


class TestOtherName:
    @pytest.mark.parametrize(
        ("text", "against"),
        [
            ("orders_table has 300 rows", (1, "the log has 1200 row")),
            ("users_table has 1200 rows", (1, "the log has 300 row")),
            ("orders_table has 1,200 rows", None),
            ("orders_table has 1200 rows and users_table has 300 rows", None),
        ],
    )
    def test_a_number_of_another_name_is_marked(self, text, against):
        talk = (tool(1, "orders_table has 1200 rows, users_table has 300 rows"),)
        assert mark(text, *talk) == against

    def test_a_number_belongs_to_the_nearest_name_in_its_clause(self):
        found = list(bindings("a_b has 12 rows, and c_d took 7 ms after e_f"))
        assert [(one.keys, one.told) for one in found] == [
            (("a", "b"), "12 row"),
            (("c", "d"), "7 millisecond"),
        ]

    def test_clauses(self):
        assert clauses("One, two and three; four. Five — six") == [
            "One", "two", "three", "four.", "Five", "six",
        ]  # fmt: skip

    def test_a_number_without_a_unit_is_compared_only_where_it_is_said_alike(self):
        talk = (tool(1, "a_b at line 12"),)
        assert mark("a_b at line 14", *talk) == (1, "the log has 12")
        assert mark("a_b has 14 callers", *talk) is None


class TestUnit:
    @pytest.mark.parametrize(
        ("text", "against"),
        [
            ("label_x is valid for 14 weeks", (1, "the log has 14 day")),
            ("label_x is valid for 14 days", None),
            ("label_x is valid for 14", None),
        ],
    )
    def test_another_unit_is_marked(self, text, against):
        assert mark(text, tool(1, "label_x is valid for 14 days")) == against

    def test_another_rate_is_marked(self):
        talk = (tool(1, "api_limit is 100 requests per minute"),)
        assert mark("api_limit is 100 requests per hour", *talk) == (
            1,
            "the log has 100 request per minute",
        )
        assert mark("api_limit is 100 requests per minute", *talk) is None

    def test_units_fit_where_one_is_not_given(self):
        assert fits(("second", ""), ("second", ""))
        assert fits(("second", ""), ("", ""))
        assert not fits(("second", ""), ("minute", ""))
        assert not fits(("request", "hour"), ("request", "minute"))

    @pytest.mark.parametrize("unit", ["5 s", "5s", "5 sec", "5 secs", "5 second", "5 seconds"])
    def test_a_unit_is_written_in_many_ways(self, unit):
        assert mark(f"wait_x is {unit}", tool(1, "wait_x is 5 seconds")) is None


class TestOnlyPlanned:
    PLANNED = (
        user(1, "Please deploy api-gateway tonight."),
        model(2, "I will deploy api-gateway."),
    )

    @pytest.mark.parametrize(
        "text", ["api-gateway was deployed", "Deployed api-gateway", "api-gateway is deployed"]
    )
    def test_what_was_only_planned_or_ordered_is_marked_as_such(self, text):
        assert mark(text, *self.PLANNED) == (2, "the log only has it as planned or ordered")

    @pytest.mark.parametrize(
        "since",
        [
            model(3, "I deployed api-gateway."),
            model(3, "api-gateway was deployed at noon."),
            tool(3, "api-gateway: rollout complete"),
        ],
    )
    def test_what_is_reported_since_is_not(self, since):
        assert mark("api-gateway was deployed", *self.PLANNED, since) is None

    @pytest.mark.parametrize(
        "text",
        [
            "The user wants api-gateway deployed",
            "api-gateway will be deployed",
            "api-gateway is up",
        ],
    )
    def test_what_is_told_as_a_plan_is_not(self, text):
        assert mark(text, *self.PLANNED) is None

    def test_a_report_is_never_made_an_order(self):
        text = "checkout-api was rolled back"
        talk = (user(1, "Roll back checkout-api if it fails."),)
        shown = point(text, "Roll back checkout-api if it fails", talk=talk)
        assert shown.text == text
        assert shown.against == "entry 1: the log only has it as planned or ordered"


class TestTruth:
    def test_true_points_are_marked_only_where_a_value_changed_since(self):
        found = [
            (point_.text, outcome.claim)
            for material, points in worlds("development").values()
            for point_ in points
            if point_.true and (outcome := judge(point_, material)).fate == "marked"
        ]
        assert len(found) <= 2
        assert all(claim.against.endswith(" since") for _, claim in found)

    def test_of_points_that_say_nothing_else_none_is_marked(self):
        found = claims(
            grounded(
                DraftClaim("state", "src/core/session.ts has 1,234 lines"),
                DraftClaim("state", "retryLimit was declared with the value 3"),
                DraftClaim("state", "npm run check found TS2304 at line 12"),
            )
        )
        assert [one.against for one in found] == [""] * 3
