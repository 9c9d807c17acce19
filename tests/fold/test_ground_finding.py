"""What comes of a claim, and why: outcomes, sources, masks, whose word it is."""

import pytest
from test_ground import TALK, claims, grounded, left, model, tool, user, verdicts

from refold.fold.ground import GONE, MEANT, UNCHECKED, ground
from refold.fold.ground.directives import Authority
from refold.fold.ground.evidence import Evidence, outcomes, refuted, unheard
from refold.fold.ground.grounding import Attribution
from refold.fold.ground.occurrence import Occurrence
from refold.fold.material import Material
from refold.fold.summary import Finding
from refold.fold.write.draft import Draft, DraftClaim
from refold.log import PartRef


def evidence(*said, claim="", earlier=()):
    return Evidence(Material(tuple(said), tuple(earlier)), [claim])


class TestOutcomes:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("All tests passed", {"good"}),
            ("It failed", {"bad"}),
            ("It did not pass", {"bad"}),
            ("no errors", {"good"}),
            ("error handling was added", {"good"}),
            ("it failed, then passed", {"good", "bad"}),
            ("not found", {"bad"}),
            ("It isn\u2019t broken; it never crashed", {"good"}),
            ("plain", set()),
            ("❌ one", {"bad"}),
            ("exit code 0", {"good"}),
            ("exit code 2", {"bad"}),
            ("✅❌", {"good", "bad"}),
            ("❌✅", {"good", "bad"}),
            ("never crashed", {"good"}),
            ("never " + "x" * 60 + " passed", {"good"}),
        ],
    )
    def test_how_something_came_out(self, text, found):
        assert outcomes(text) == found

    def test_a_claim_is_refuted_by_all_that_is_told_and_not_by_some(self):
        assert refuted("it passed", ["it failed"])
        assert not refuted("it passed", ["it failed", "it passed"])
        assert not refuted("it passed", [])
        assert not refuted("it passed", ["plain"])
        assert not refuted("plain", ["it failed"])
        assert not refuted("it failed, then passed", ["it failed"])

    def test_of_the_present_only_the_newest_counts(self):
        assert refuted("it still fails", ["it failed", "it passed"])
        assert refuted("it fails again", ["it failed", "it passed", "plain"])
        assert not refuted("it now passes", ["it failed", "it passed"])

    def test_a_failure_is_unheard_where_nothing_tells_of_one(self):
        assert unheard("it failed", ["it passed", "plain"])
        assert not unheard("it failed", ["it failed"])
        assert not unheard("it passed", [])


class TestSources:
    def test_the_best_of_the_cited_entries_bear_a_claim_out(self):
        found = grounded("retryLimit was missing in src/core/session.ts", 8, 4, 6, 8)
        assert [ref.seq for ref in claims(found)[0].sources] == [6, 8]

    def test_at_most_three_entries_are_named_for_what_cites_none(self):
        talk = tuple(tool(nth, "port 8080 is open") for nth in range(1, 8))
        found = grounded("port 8080 is open", talk=talk)
        assert [ref.seq for ref in claims(found)[0].sources] == [5, 6, 7]

    def test_what_rests_on_nothing_and_cites_nothing_needs_no_putting_right(self):
        found = grounded("Pleasant weather throughout", talk=TALK)
        assert claims(found)[0].sources == ()
        assert verdicts(found) == ["marked"]

    def test_what_rests_on_nothing_is_not_borne_out_by_what_it_cites(self):
        found = grounded("Pleasant weather throughout", 4)
        assert claims(found)[0].sources == ()
        assert verdicts(found) == ["attributed", "marked"]

    def test_a_common_word_counts_where_a_rarer_one_is(self, monkeypatch):
        monkeypatch.setattr("refold.fold.ground.evidence._COMMON", 2)
        said = ("alpha beta", "alpha", "beta", "beta")
        talk = tuple(tool(seq, text) for seq, text in enumerate(said, 1))
        assert evidence(*talk, claim="alpha beta").best(["~alpha", "~beta"], ["tool"], 9) == [0, 1]

    def test_where_the_names_stand_together_is_near(self):
        there = evidence(
            tool(1, "a.ts ok\nb.ts failed"), tool(2, "c.ts passed"), claim="a.ts and b.ts failed"
        )
        assert Attribution(there).near("a.ts and b.ts failed") == ["a.ts ok\nb.ts failed"]

    def test_lines_next_to_the_names_are_near_and_others_are_not(self):
        text = "zero\none\na.ts here\nthree\nfour"
        there = evidence(tool(1, text), claim="a.ts passed")
        assert Attribution(there).near("a.ts passed") == ["one\na.ts here\nthree"]


class TestWhy:
    """Every finding says what was wrong, and with what."""

    @pytest.mark.parametrize(
        ("text", "verdict", "why"),
        [
            ("session.ts imports zebra.ts", "left out", "the log does not have zebra.ts"),
            (
                "session.ts, legacy.ts and zebra.ts belong together",
                "masked",
                "the log does not have zebra.ts",
            ),
            ("The user approved a zeppelin", "left out", "no message of the user says so"),
            (
                "Torch the glacier backups",
                "left out",
                "it asks for something that nobody asked for",
            ),
            (
                "The session code came from Bartholomew",
                "marked",
                "the log does not mention Bartholomew",
            ),
            (
                "Pleasant weather throughout spring",
                "marked",
                "most of its words are nowhere in the log",
            ),
            (
                "The user wants legacy.ts untouched",
                "quoted",
                "the user's own words stand for it",
            ),
            (
                "retryLimit was declared with the value 3",
                "attributed",
                "its sources were found by its words",
            ),
        ],
    )
    def test_a_finding_says_why(self, text, verdict, why):
        found = {one.verdict: one for one in grounded(text).report.findings}
        assert found[verdict].why == why
        assert found[verdict].text == text

    def test_every_claim_has_its_findings(self):
        said = tuple(DraftClaim("notes", f"The user approved a zeppelin {nth}") for nth in "ab")
        found = ground(Draft("", said), Material(TALK)).report
        assert [one.text for one in found.findings] == [one.text for one in said]

    def test_a_claim_that_is_nothing_but_its_names_goes_with_them(self):
        text = "zeta.ts, 1,234, 1234"  # one number, written in two ways
        (found,) = grounded(text, talk=(tool(1, "1234 of them"),)).report.findings
        assert (found.verdict, found.why) == ("left out", "without zeta.ts it says nothing")

    def test_what_was_put_right_says_where_it_was_found(self):
        (found,) = grounded("retryLimit was declared with the value 3", 4).report.findings
        assert (found.verdict, found.sources) == ("attributed", (PartRef(8, 0),))

    def test_a_plan_is_marked_as_the_models_own(self):
        (found, *_) = grounded("Delete the duplicated retry loop", subject="next").report.findings
        assert found.why == "it is the model's own plan, not the user's word"

    def test_what_came_out_otherwise_says_so(self):
        found = grounded("a.ts passed", talk=(tool(1, "a.ts failed"),)).report.findings
        assert found == (
            Finding("left out", "a.ts passed", "the log says that it came out otherwise", ()),
        )

    def test_what_is_only_there_in_pieces_says_so(self):
        claim = "alpha bravo charlie delta echo foxtrot"
        apart = tuple(model(seq, "golf") for seq in (2, 4))
        parts = (tool(1, "alpha bravo"), tool(3, "charlie delta"), tool(5, "echo foxtrot"))
        talk = (parts[0], apart[0], parts[1], apart[1], parts[2])
        assert grounded(claim, talk=talk).report.findings[-1].why == "no entry says it"
        assert verdicts(grounded(claim, talk=(*talk, tool(6, claim)))) == ["attributed"]

    def test_a_failure_that_nothing_tells_of_says_so(self):
        found = grounded("a.ts failed", talk=(tool(1, "a.ts was read"),)).report.findings
        assert found[-1].why == "the log does not say that it failed"


class TestMasking:
    def test_names_that_are_gone_leave_one_mark_between_what_stays(self):
        (found,) = left("session.ts, legacy.ts, retryLimit and 77, 78 belong together")
        assert found.removesuffix(UNCHECKED) == (
            f"session.ts, legacy.ts, retryLimit and {GONE} belong together"
        )

    def test_a_title_stands_only_where_nothing_is_wrong_with_it(self):
        def title(text):
            return ground(Draft(text, ()), Material(TALK)).title

        assert title("Moving the session code") == "Moving the session code"
        assert title("Moving zebra.ts") == ""
        assert title("Delete the session code") == ""
        assert title("Pleasant weather throughout") == ""
        longer = "session code " * 8
        assert title(longer) == longer[:79].rstrip() + "…"
        fitting = "session code " * 6 + "is"
        assert len(fitting) == 80
        assert title(fitting) == fitting

    def test_in_a_block_only_the_lines_that_are_wrong_go(self):
        text = "```\nsrc/core/session.ts\nThe user approved a zeppelin purge\n```"
        assert left(text) == ["src/core/session.ts"]


class TestNames:
    """Which names and numbers of a claim are in the log, as somebody who reads both would say."""

    def there(self, claim, text):
        return Occurrence(evidence(tool(1, text), claim=claim)).missing(claim)[0] == []

    def test_how_many_are_listed_need_not_be_in_the_log(self):
        text = "a.ts and b.ts and c.ts"
        assert self.there("the 3 files a.ts, b.ts, c.ts", text)
        assert not self.there("the 4 files a.ts, b.ts, c.ts", text)
        assert not self.there("the 2 files a.ts, b.ts, c.ts", text)

    def test_a_path_may_begin_with_a_folder_of_one_step(self):
        assert self.there("see /srv/src/a.ts there", "in /srv\nread src/a.ts")
        assert not self.there("see /srv/src/a.ts there", "in /opt\nread src/a.ts")

    def test_the_number_of_a_line_is_no_piece_of_another_number(self):
        assert self.there("see src/a.ts:12 there", "src/a.ts, 12 of them")
        assert not self.there("see src/a.ts:12 there", "src/a.ts took 3.12")
        assert not self.there("see src/a.ts:12 there", "src/a.ts v_12 took 12ms")

    def test_a_quotation_begins_and_ends_with_whole_words(self):
        assert self.there("it says «one two» there", "one two")
        assert not self.there("it says «one two» there", "someone two, and one")
        assert not self.there("it says «one two» there", "one twofold, and two")

    def test_a_setting_is_there_where_its_name_and_its_value_are(self):
        assert self.there("with retry_max=30 there", "retry_max is 30")
        assert not self.there("with retry_max=31 there", "retry_max is 30")


class TestAuthority:
    def test_a_goal_is_quoted_where_the_user_named_it(self):
        found = grounded("The session code in src/core/session.ts", subject="goal")
        assert verdicts(found) == ["quoted"]

    @pytest.mark.parametrize(("opinion", "kept"), [("It is suspicious.", 0), ("It is next.", 1)])
    def test_what_stands_around_a_plan_says_whether_it_is_one(self, opinion, kept):
        said = f"{opinion} " + "More of the same words. " * 19 + "\nWipe the archive folder next."
        found = left("Wipe the archive folder", subject="next", talk=(model(1, said),))
        assert len(found) == kept

    def test_half_of_what_is_asked_for_is_enough_of_the_users_words(self):
        talk = (user(1, "Alpha bravo here."), user(2, "Golf hotel."), model(3, "charlie delta"))
        claim = "alpha bravo charlie delta"
        rest = Authority(evidence(*talk, claim=claim)).user(claim)
        assert rest is not None
        assert (rest.text, rest.share) == ("Alpha bravo here.", 0.5)

    def test_a_plan_in_a_sentence_stands_without_what_comes_before_it(self):
        found = left("retryLimit was missing in session.ts, but delete the duplicated retry loop")
        plan = f"{MEANT}delete the duplicated retry loop"
        assert found == [plan, "retryLimit was missing in session.ts"]

    def test_two_words_before_a_directive_are_a_statement(self):
        text = "retryLimit declared, but the user approved a zeppelin purge"
        assert left(text) == ["retryLimit declared"]

    def test_what_is_said_in_brackets_is_read_without_them(self):
        text = "retryLimit was missing in session.ts (zeppelins only)"
        assert left(text) == ["retryLimit was missing in session.ts"]

    def test_the_last_word_of_the_user_counts(self):
        talk = (user(1, "You may drop the orders table."), user(3, "Do not drop the orders table."))
        found = left("The user allowed to drop the orders table", talk=talk)
        assert found == ['The user (entry 3): "Do not drop the orders table."']

    def test_what_turns_a_sentence_around_is_quoted_with_it(self):
        talk = (user(1, "Drop the orders table. But keep a copy. Then rest."),)
        found = left("The user wants to drop the orders table", talk=talk)
        assert found == ['The user (entry 1): "Drop the orders table. But keep a copy."']

    def test_a_list_that_follows_an_announcement_is_the_users_or_nothing(self):
        said = (DraftClaim("notes", "The user approved:"), DraftClaim("notes", "a zeppelin purge"))
        found = ground(Draft("", said), Material(TALK))
        assert claims(found) == []

    def test_what_follows_an_announcement_is_not_the_models_plan_either(self):
        plan = DraftClaim("notes", "Delete the duplicated retry loop")
        assert len(claims(ground(Draft("", (plan,)), Material(TALK)))) == 1
        said = (DraftClaim("notes", "The user approved:"), plan)
        assert claims(ground(Draft("", said), Material(TALK))) == []
