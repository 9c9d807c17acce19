"""Names: what of a claim must occur in the log, and when it does, however it is written."""

import pytest
from ground_worlds import called, point, tool

from refold.fold.ground import GONE
from refold.fold.ground.evidence import Evidence
from refold.fold.ground.names import content, named, spellings, stem
from refold.fold.ground.occurrence import Occurrence
from refold.fold.material import Earlier, Material
from refold.fold.summary import Claim, Name, Section, Summary
from refold.fold.write.draft import HEADINGS

ADMIN = "root"
"""Whose home lies elsewhere."""


def missing(claim, *said, earlier=()) -> list[str]:
    """The names of a claim that the log does not have."""
    talk = (tool(seq, one) if isinstance(one, str) else one for seq, one in enumerate(said, 1))
    evidence = Evidence(Material(tuple(talk), tuple(earlier)), [claim])
    return [one.text for one in Occurrence(evidence).missing(claim)]


class TestNamed:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("see src/a.ts now", [("src/a.ts", "path")]),
            ("run `npm test` now", [("npm test", "code")]),
            ('it says "no way" now', [("no way", "quote")]),
            ("«no way» it says", [("no way", "quote")]),
            ("at https://x.org/a. Then", [("https://x.org/a", "link")]),
            ("mail me@x.org, please", [("me@x.org", "link")]),
            ("snake_case and camelCase", [("snake_case", "name"), ("camelCase", "name")]),
            ("call() and v2", [("call()", "name"), ("v2", "name")]),
            ("took 1,234 lines", [("1,234", "number")]),
            ("took 12ms or -5%", [("12ms", "number"), ("5", "number")]),
            ("costs $99.", [("99", "number")]),
            ("API and QWERTZ", [("QWERTZ", "caps")]),
            ("my-own-thing but well-known", [("my-own-thing", "name")]),
            ("e.g. this etc. that", []),
            ("plain words only", []),
            ("{a, b} of x, x{1,3} of it", [("1,3", "number")]),
            ("~/x and ./y and /z", [("~/x", "path"), ("./y", "path"), ("/z", "path")]),
            ("w\u043erd", [("w\u043erd", "name")]),
            ("_private and $HOME", [("_private", "name"), ("$HOME", "name")]),
            ("(see a.ts)", [("a.ts", "name")]),
            ("a\\b", [("a\\b", "path")]),
            ("in `src/a.ts` and src/b.ts", [("src/a.ts", "code"), ("src/b.ts", "path")]),
        ],
    )
    def test_what_a_claim_names(self, text, found):
        there = named(text)
        assert [(one.text, one.sort) for one in there] == found
        for one in there:
            assert one.text in text[one.start : one.end]

    @pytest.mark.parametrize(
        ("number", "also", "other"),
        [
            ("1,234", {"1234", "1.234", "1'234", "1 234", "1_234"}, {"123", "12340", "1.23", "0"}),
            ("1234", {"1,234", "1\u00a0234", "1\u202f234"}, {"234", "12.34"}),
            ("2.50", {"2.5", "2,50", "2,5"}, {"250", "25", "2", "2.05"}),
            ("12ms", {"12ms", "12"}, {"1", "12s"}),
            ("3.5k", {"3.5", "3,5", "3.50"}, {"35", "3500"}),
        ],
    )
    def test_a_number_is_written_in_many_ways(self, number, also, other):
        assert {*spellings(number)} >= also
        assert not {*spellings(number)} & {*other, ""}
        assert spellings(number)[0] == number
        assert len({*spellings(number)}) == len(spellings(number))

    @pytest.mark.parametrize(
        "forms",
        [
            ("deploy", "deploys", "deployed", "deploying", "deployment", "deployments"),
            ("migrate", "migrated", "migrates", "migrating"),
            ("stop", "stopped", "stopping", "stops"),
            ("copied", "copies"),
        ],
    )
    def test_forms_of_one_word_meet(self, forms):
        assert len({stem(one) for one in forms}) == 1

    def test_short_words_and_numbers_stay_whole(self):
        for word in ("red", "ring", "bus", "ass", "1000", "100", "5500"):
            assert stem(word) == word
        assert content("The tests and the test of 12,345 rows") == ["~test", "~12345", "~row"]


class TestOccurrence:
    SAID = (
        "Wrote src/core/session.ts (1,234 lines) in 12ms; see src/core/",
        "src/core/session.ts:12 error TS2304 in /srv/dev and lib/util.ts",
        "read and write; seven of them; git commit -m fix; step-by-step; 50% of $99",
        "WP1 WP2 WP3 and key=value, --dry-run; \\nescaped; test_all(); 東京タワー",
        *(called(seq, "bash", "{}") for seq in (5, 6)),
    )

    @pytest.mark.parametrize(
        "text",
        [
            *("src/core/session.ts", "./src/core/session.ts", "src/core/session.ts:12"),
            *("session.ts", "src/core/*", "src/{core/session,core/session}.ts"),
            *("/srv/dev/lib/util.ts", "read/write", "core/session", "step-by-step", "WP1-WP3"),
            *("1234", "1.234", "12", "12ms", "7", "2", "50%", "$99", "entry 6", "entries 4, 5"),
            *("`git commit -m fix`", "`git commit`", '"read and write"', '"read … seven"'),
            *("key=value", "--dry-run", "test_all()", "`東京`", "the 2 files session.ts, util.ts"),
        ],
    )
    def test_what_the_log_has_is_there(self, text):
        assert missing(text, *self.SAID) == []

    @pytest.mark.parametrize(
        ("text", "gone"),
        [
            ("src/core/session.tsx", "src/core/session.tsx"),
            ("ession.ts", "ession.ts"),
            ("src/core/session.ts:13", "src/core/session.ts:13"),
            ("/srv/dev/other.ts", "/srv/dev/other.ts"),
            *((number, number) for number in ("123", "234", "13", "8")),
            ("entry 77", "77"),
            ("`git push`", "git push"),
            ('"write and read"', "write and read"),
            ("WP1-WP4", "WP1-WP4"),
            ("key=other_value", "key=other_value"),
            ("TS230", "TS230"),
            ("QWERTZ", "QWERTZ"),
            ("the 3 files session.ts, util.ts", "3"),
        ],
    )
    def test_what_it_does_not_have_is_missing(self, text, gone):
        assert missing(text, *self.SAID) == [gone]

    @pytest.mark.parametrize(
        ("text", "there"),
        [
            *(("some_name", True), ("a some_name.", True), ("path/some_name", True)),
            *(("x some_name2", False), ("x some_name_x", False), ("awesome_name", False)),
            *(("x_some_name", False), ("pre-some_name", False), ("--some_name", True)),
            *(("pre--some_name", False), ("some_name-x", False), ("some_name- x", True)),
            *(("some one\\nsome_name", True), ("ensome_name", False)),
            ("awesome_name and some_name", True),
        ],
    )
    def test_a_name_stands_by_itself(self, text, there):
        assert (missing("some_name was read", text) == []) == there

    @pytest.mark.parametrize(
        ("text", "there"),
        [
            *(("had 41 rows", True), ("had 41.", True), ("had 41.5", False), ("had 41,5", False)),
            *(("had 3.41", False), ("had 3,41", False), ("a,41", True), ("41abc", False)),
            *(("x41", False), ("x_41", False), ("141", False), ("410", False), ("#41", True)),
        ],
    )
    def test_a_number_stands_by_itself(self, text, there):
        assert (missing("it had 41 of them", text) == []) == there

    @pytest.mark.parametrize(
        ("claim", "text", "there"),
        [
            ("it had 41 rows", "v_41 took 41ms", False),
            ("it had 4.2 rows", "took 4.2k", False),
            ("it took 4.2 s", "took 4.2s", True),
            ("it took 4.2 seconds", "took 4.2s", True),
            ("it took 4.2 minutes", "took 4.2min", True),
            ("it took 4.2 mins", "took 4.2min", True),
            ("it took 4.2 seconds", "took 4.2ms", False),
            ("it took 4.2m", "took 4.2ms", False),
            ("it took 41ms", "41 rows", False),
            ("it took 41ms", "41 s", False),
            ("it took 41ms", "41 ms", True),
            ("it took 41ms", "41 milliseconds", True),
            ("it took 1,234.5ms", "1234.5ms in all", True),
            ("it took 1,234.5ms", "1234.5s in all", False),
            ("it took 41ms", "time_ms: 41, done", True),
            ("it has 12k lines", "12 lines", False),
            ("it was the 3rd try", "try 3 was it", True),
            ("it is 2.5 times faster", "2.5x faster", True),
            ("it took `wait 4.2 s` there", "wait for 4.2s", True),
            ("4.2 seconds and 4.2 rows", "took 4.2s", False),
        ],
    )
    def test_a_number_is_one_of_its_unit(self, claim, text, there):
        assert (missing(claim, text) == []) == there

    @pytest.mark.parametrize(
        ("claim", "text", "there"),
        [
            ("see src/a.ts:12 there", "src/a.ts on line 12", True),
            ("see src/b.ts:12 there", "src/a.ts on line 12", False),
            ("see src/a.ts:13 there", "src/a.ts on line 12", False),
            ("see src/a.ts:12 there", "src/a.ts took 3.12", False),
            ("see src/a.ts:12 there", "src/a.ts v_12 took 12ms", False),
            ("see src/core/ there", "in src/core now", True),
            ("see src/core/*.ts there", "in src/core now", True),
            ("see src/zoo/*.ts there", "in src/core now", False),
            ("see ../src/a.ts there", "src/a.ts", True),
            ("see /srv/dev/src/a.ts there", "in /srv/dev\nread src/a.ts", True),
            ("see /srv/dev/src/a.ts there", "in /srv/dev\nread lib/src/a.ts", False),
            ("see /srv/src/a.ts there", "in /opt\nread src/a.ts", False),
            ("see /srv/dev/a.ts there", "in /srv/dev\nread a.ts", False),
            ("see srv/dev/src/a.ts there", "in srv/dev\nread src/a.ts", False),
            ("see www.x.org/a/ there", "www.x.org/a", True),
            ("with retry_max=30 there", "retry_max is 30", True),
            ("with retry_max=31 there", "retry_max is 30", False),
        ],
    )
    def test_paths_links_and_settings(self, claim, text, there):
        assert (missing(claim, text) == []) == there

    @pytest.mark.parametrize("mark", ["", "`"])
    @pytest.mark.parametrize(
        ("path", "there"),
        [
            ("src/{a,b}.ts", True),
            ("src/{a, b}.ts", True),
            ("src/{a,c}.ts", False),
            ("{lib,src}/a.ts", False),
            ("src/a{,.test}.ts", True),
            ("src/b{,.test}.ts", False),
            ("{src,src}/{a,b}.ts", True),
            ("{src,src}/{a,c}.ts", False),
        ],
    )
    def test_each_of_what_stands_in_braces_must_be_there(self, path, there, mark):
        text = "src/a.ts, src/b.ts, src/a.test.ts"
        assert (missing(f"see {mark}{path}{mark}.", text) == []) == there

    @pytest.mark.parametrize("mark", ["", "`"])
    @pytest.mark.parametrize(
        ("text", "there"),
        [
            ("in ~/dev/a.ts now", True),
            ("in /home/me/dev/a.ts now", True),
            ("in /Users/me/dev/a.ts now", True),
            (f"in '/{ADMIN}/dev/a.ts' now", True),
            ("in /home/me/dev/a.tsx now", False),
            ("in /home/me/lib/dev/a.ts now", False),
            ("in /srv/home/me/dev/a.ts now", False),
            ("in lib/dev/a.ts now", False),
            ("in /dev/a.ts now", False),
        ],
    )
    def test_a_path_below_home_is_not_one_elsewhere(self, text, there, mark):
        assert (missing(f"see {mark}~/dev/a.ts{mark} there", text) == []) == there
        assert (missing(f"see {mark}~/dev/a.ts:12{mark} there", f"{text}, 12") == []) == there

    @pytest.mark.parametrize(
        ("claim", "text", "there"),
        [
            ("run `make a_b c_d` there", "c_d is needed to make a_b", True),
            ("run `make a_b e_f` there", "c_d is needed to make a_b", False),
            ("run `a_b` there", "a_bc", False),
            ("run `walk` there", "sleepwalk", False),
            ("run `go walk` there", "walk and go", True),
            ("it says «one two» there", "one, two", True),
            ("it says «one two» there", "two one", False),
            ("it says «one two» there", "someone two, and one", False),
            ("it says «one two» there", "one twofold, and two", False),
            ("it says «one [so] two» there", "one or two", True),
        ],
    )
    def test_code_and_quotations(self, claim, text, there):
        assert (missing(claim, text) == []) == there

    def test_code_of_which_the_words_are_in_two_messages_was_never_there(self):
        said = ("make one_thing", "other_thing")
        assert missing("run `make one_thing other_thing`", *said) == ["make one_thing other_thing"]

    def test_a_long_quotation_is_compared_to_its_end(self):
        said = " ".join(f"w{nth}" for nth in range(75))
        assert missing(f"it says «{said}» there", said) == []
        assert missing(f"it says «{said[:-3]}w2» there", said) != []

    @pytest.mark.parametrize(("count", "gone"), [(3, []), (4, ["4"]), (2, ["2"])])
    def test_how_many_are_listed_need_not_be_in_the_log(self, count, gone):
        text = "a.ts and b.ts and c.ts"
        assert missing(f"the {count} files a.ts, b.ts, c.ts", text) == gone

    def test_what_can_be_counted_is_counted(self):
        said = (*(called(seq, "bash", "{}") for seq in range(1, 4)), called(4, "read", "{}"))
        counts = Evidence(Material(said), []).counts
        assert counts == {4, 3, 1}

    def test_what_an_earlier_fold_named_occurs_but_is_only_a_name(self):
        claim = Section(HEADINGS["state"], (Claim("It uses beta_one"),))
        summary = Summary("a model", sections=(claim,), ledger=(Name("src/zeta.ts", 1.0, 2),))
        earlier = (Earlier(9, summary, 5),)
        assert missing("zeta.ts and beta_one", earlier=earlier) == []
        assert missing("zeta.ts and beta_one") == ["zeta.ts", "beta_one"]


class TestMasking:
    @pytest.mark.parametrize(
        "fake",
        [
            *("src/core/sessions.ts", "src/modes/session.ts", "core/session.tsx", "session.ts:77"),
            *("retryLimits", "retryLim", "retry_limit", "retryL\u0456mit", "TS2305", "QWERTZ"),
            *("1235", "12345", "12.5%", "$99", "17:45", "7", "v4.2.0", "9f8e7d6c5b"),
            *("https://example.com/x", "dev@example.com", "~/zebra/a.ts", "src/{x,y}.ts"),
            *('"Cannot find the name"', "`npm run chick`", "«find no name»"),
        ],
    )
    def test_what_does_not_occur_is_masked_and_the_rest_stays(self, fake):
        shown = point(f"session.ts and retryLimit belong to {fake} there")
        assert shown.text.replace("$", "").replace("%", "") == (
            f"session.ts and retryLimit belong to {GONE} there"
        )

    def test_several_in_a_row_leave_one_mark(self):
        shown = point("session.ts, retryLimit and 77, 78 belong together")
        assert shown.text == f"session.ts, retryLimit and {GONE} belong together"

    def test_a_claim_that_is_nothing_but_such_a_name_goes(self):
        assert point("zebra.ts") is None
        assert point("zebra.ts, 77", "Wrote 1234 lines to /srv").text == ""
