"""How the log is searched for what a claim says."""

import pytest
from test_ground import called, model, tool, user

from refold.fold.extractive import ERRORS
from refold.fold.ground.evidence import VOICES, Evidence
from refold.fold.ground.occurrence import Occurrence
from refold.fold.material import Earlier, Material
from refold.fold.summary import Claim, Directive, Name, Report, Section, Summary
from refold.log import PartRef


def evidence(*said, claim="", earlier=()):
    return Evidence(Material(tuple(said), tuple(earlier)), [claim])


class TestEvidence:
    def test_a_window_is_worth_the_weight_of_its_words(self):
        there = evidence(tool(1, "alpha beta"), tool(2, "beta"), claim="alpha beta gamma")
        whole = there.weight("~alpha") + there.weight("~beta")
        assert there.sum(["~alpha", "~beta", "~gamma"], 0) == pytest.approx(whole)
        assert there.sum(["~alpha", "~beta"], 1) == pytest.approx(there.weight("~beta"))

    def test_the_rarer_word_weighs_more(self):
        there = evidence(tool(1, "a common one"), tool(2, "common"), claim="common one absent")
        assert there.weight("~absent") > there.weight("~one") >= 0
        assert there.weight("~one") > there.weight("~common")
        assert there.has_key("~common")
        assert not there.has_key("~absent")

    def test_a_share_is_of_all_the_words(self):
        there = evidence(tool(1, "alpha beta"), claim="alpha beta gamma")
        assert there.share(["~alpha", "~beta"], {"~alpha", "~beta"}) == 1
        assert 0 < there.share(["~alpha", "~gamma"], {"~alpha"}) < 0.5
        assert there.share([], {"~alpha"}) == 0

    def test_the_best_window_is_first_and_of_equals_the_newest(self):
        there = evidence(
            tool(1, "alpha beta"), tool(2, "alpha"), model(3, "alpha beta"), claim="alpha beta"
        )
        keys = ["~alpha", "~beta"]
        assert there.best(keys, VOICES, 9) == [2, 0, 1]
        assert there.best(keys, ["tool"], 9) == [0, 1]
        assert there.best(keys, VOICES, 1) == [2]
        assert [there.ref(at).seq for at in there.best(keys, VOICES, 9)] == [3, 1, 2]

    def test_a_window_ends_between_lines_and_nothing_is_lost(self):
        text = "\n".join(f"line {nth} of the alpha file" for nth in range(60))
        there = evidence(tool(1, text), claim="alpha")
        parts = [there.text(at) for at in there.of_entry(1)]
        assert "".join(parts) == text
        assert all(one.endswith("\n") for one in parts[:-1])
        assert max(map(len, parts)) <= 480
        assert len(parts) < 6
        assert there.of_entry(9) == range(0)

    def test_text_without_lines_or_spaces_is_cut_all_the_same(self):
        for text in ("word " * 300, "x" * 1_500, "x" * 490 + "-" + "y" * 700):
            there = evidence(tool(1, text), claim="x")
            assert "".join(there.text(at) for at in there.of_entry(1)) == text
        whole = evidence(tool(1, "x" * 600 + " end"), claim="x")
        assert whole.text(0) == "x" * 600 + " "  # not within the word

    def test_the_users_words_are_kept_as_they_were_said(self):
        there = evidence(user(1, "Do it NOW. Then:\n- Stop.\n\nGo."), claim="now stop go")
        assert [there.text(at) for at in there.of_entry(1)] == [
            "Do it NOW.",
            "Then:",
            "- Stop.",
            "Go.",
        ]
        assert [one.lead for one in there.windows] == ["", "", "Do it NOW. Then:", ""]

    def test_neighbours_count_only_in_the_same_voice(self):
        there = evidence(
            tool(1, "alpha"), model(2, "beta"), model(3, "gamma"), claim="alpha beta gamma"
        )
        assert {one for one in there.around(1, 1) if one[0] == "~"} == {"~beta", "~gamma"}
        assert {one for one in there.around(1, 0) if one[0] == "~"} == {"~beta"}

    def test_whose_words_they_are(self):
        there = evidence(
            user(1, "one"),
            user(2, "two", delegated=True),
            model(3, "three"),
            called(4, "bash", '{"command": "four"}'),
            tool(5, "five"),
            claim="one two three four five bash",
        )
        assert [one.voice for one in there.windows] == ["user", "model", "model", "model", "tool"]
        assert there.text(3) == "bash\ncommand\nfour"

    def test_pieces_that_hold_all_words_are_found(self):
        there = evidence(tool(1, "alpha beta"), tool(2, "beta"), claim="alpha beta gamma")
        assert there.holding(["alpha", "beta"]) == [0]
        assert there.holding(["beta"]) == [0, 1]
        assert there.holding(["gamma"]) == there.holding([]) == []

    def test_what_can_be_counted_is_counted(self):
        there = evidence(
            *(called(nth, "bash", "{}") for nth in range(1, 4)),
            called(4, "read", "{}"),
            user(5, "Go."),
        )
        assert there.counts == {5, 4, 3, 1}

    def test_of_an_earlier_fold_each_piece_has_its_voice(self):
        section = Section("Files", (Claim("alpha was made"),))
        summary = Summary("a model", title="beta", sections=(section,))
        there = evidence(earlier=[Earlier(9, summary, 5)], claim="alpha beta")
        assert [(one.voice, one.ref) for one in there.pieces] == [("earlier", PartRef(9, 0))] * 2
        assert there.seqs == {9}

    def test_whose_words_an_earlier_fold_kept(self):
        quote = Claim('The user (entry 3): "Keep it."', (PartRef(3, 0),))
        sections = (Section("Goal", (quote,)), Section(ERRORS, (Claim("it broke"),)))
        summary = Summary(
            "a model",
            directives=(Directive("Go on.", PartRef(2, 0), 9),),
            sections=sections,
            ledger=(Name("zeta.ts", 1.0, 2),),
            report=Report(1),
        )
        there = evidence(earlier=[Earlier(9, summary, 5)], claim="x")
        assert [(one.voice, one.ref.seq, one.text) for one in there.pieces] == [
            ("user", 2, "go on."),
            ("user", 3, "keep it."),
            ("tool", 9, "it broke"),
            ("tool", 9, "zeta.ts"),
        ]


class TestOccurrence:
    MATERIAL = (
        tool(4, "Wrote src/core/session.ts (1,234 lines) in 12ms; see src/core/"),
        tool(5, "src/core/session.ts:12 error TS2304 in /srv/dev and lib/util.ts"),
        tool(6, "read and write; seven of them; git commit -m fix; step-by-step; 50% of $99"),
        tool(7, "WP1 WP2 WP3 and key=value, --dry-run; \\nescaped; test_all(); 東京タワー"),
        *(called(nth, "bash", "{}") for nth in (8, 9)),
    )

    def missing(self, text):
        gone, count = Occurrence(Evidence(Material(self.MATERIAL), [text])).missing(text)
        return [one.text for one in gone], count

    @pytest.mark.parametrize(
        "text",
        [
            "src/core/session.ts",
            "./src/core/session.ts",
            "src/core/session.ts:12",
            "session.ts",
            "src/core/*",
            "src/{core/session,core/session}.ts",
            "/srv/dev/lib/util.ts",
            "read/write",
            "1234",
            "1.234",
            "12",
            "12ms",
            "7",
            "2",
            "entry 6",
            "entries 4, 5",
            "`git commit -m fix`",
            "`git commit`",
            '"read and write"',
            '"read … seven"',
            "step-by-step",
            "WP1-WP3",
            "key=value",
            "--dry-run",
            "test_all()",
            "50%",
            "$99",
            "`東京`",
            "the 2 files session.ts, util.ts",
        ],
    )
    def test_what_the_material_has_is_there(self, text):
        assert self.missing(text)[0] == []

    @pytest.mark.parametrize(
        ("text", "gone"),
        [
            ("src/core/session.tsx", "src/core/session.tsx"),
            ("core/session", ""),
            ("ession.ts", "ession.ts"),
            ("src/core/session.ts:13", "src/core/session.ts:13"),
            ("/srv/dev/other.ts", "/srv/dev/other.ts"),
            ("123", "123"),
            ("234", "234"),
            ("13", "13"),
            ("8", "8"),
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
        assert self.missing(text)[0] == [gone] * bool(gone)

    def test_how_many_things_are_named(self):
        assert self.missing("session.ts and zebra.ts and TS2304") == (["zebra.ts"], 3)

    def test_capitals_count_as_named_only_where_they_are_missing(self):
        for claim, found in (("QWERTZ and a_b", ([], 1)), ("QWERTY and a_b", (["QWERTY"], 2))):
            gone, count = Occurrence(evidence(tool(1, "QWERTZ a_b"), claim=claim)).missing(claim)
            assert ([one.text for one in gone], count) == found


class TestWholeNames:
    """A name stands in a text by itself, and not as a piece of a longer one."""

    @pytest.mark.parametrize(
        ("text", "there"),
        [
            ("some_name", True),
            ("a some_name.", True),
            ("x some_name2", False),
            ("x some_name_x", False),
            ("awesome_name", False),
            ("x_some_name", False),
            ("pre-some_name", False),
            ("--some_name", True),
            ("pre--some_name", False),
            ("some_name-x", False),
            ("some_name- x", True),
            ("some one\\nsome_name", True),
            ("ensome_name", False),
            ("awesome_name and some_name", True),
            ("path/some_name", True),
        ],
    )
    def test_a_name(self, text, there):
        assert self.found("some_name was read", text) == there

    @pytest.mark.parametrize(
        ("text", "there"),
        [
            ("had 41 rows", True),
            ("had 41.", True),
            ("had 41.5", False),
            ("had 41,5", False),
            ("had 3.41", False),
            ("had 3,41", False),
            ("a,41", True),
            ("41abc", False),
            ("x41", False),
            ("x_41", False),
            ("141", False),
            ("410", False),
            ("#41", True),
        ],
    )
    def test_a_number(self, text, there):
        assert self.found("it had 41 of them", text) == there

    @pytest.mark.parametrize(
        ("claim", "text", "there"),
        [
            ("see src/a.ts:12 there", "src/a.ts on line 12", True),
            ("see src/b.ts:12 there", "src/a.ts on line 12", False),
            ("see src/a.ts:13 there", "src/a.ts on line 12", False),
            ("see src/core/ there", "in src/core now", True),
            ("see src/core/*.ts there", "in src/core now", True),
            ("see src/zoo/*.ts there", "in src/core now", False),
            ("see ../src/a.ts there", "src/a.ts", True),
            ("see `src/{a,b}.ts` there", "src/a.ts and src/b.ts", True),
            ("see `src/{one,six}.ts` there", "src/one.ts and src/two.ts", False),
            ("see /srv/dev/src/a.ts there", "in /srv/dev\nread src/a.ts", True),
            ("see /srv/dev/src/a.ts there", "in /srv/dev\nread lib/src/a.ts", False),
            ("see /srv/dev/a.ts there", "in /srv/dev\nread a.ts", False),
            ("see srv/dev/src/a.ts there", "in srv/dev\nread src/a.ts", False),
            ("run `make a_b c_d` there", "c_d is needed to make a_b", True),
            ("run `make a_b e_f` there", "c_d is needed to make a_b", False),
            ("run `a_b` there", "a_bc", False),
            ("run `walk` there", "sleepwalk", False),
            ("run `go walk` there", "walk and go", True),
            ("it says «one two» there", "one, two", True),
            ("it says «one two» there", "two one", False),
            ("it says «one [so] two» there", "one or two", True),
            ("see www.x.org/a/ there", "www.x.org/a", True),
        ],
    )
    def test_paths_code_and_quotations(self, claim, text, there):
        assert self.found(claim, text) == there

    def test_code_of_which_the_words_are_in_two_messages_was_never_there(self):
        claim = "run `make one_thing other_thing`"
        said = (tool(1, "make one_thing"), tool(2, "other_thing"))
        gone, _ = Occurrence(evidence(*said, claim=claim)).missing(claim)
        assert [one.text for one in gone] == ["make one_thing other_thing"]

    def test_a_long_quotation_is_compared_to_its_end(self):
        said = " ".join(f"w{nth}" for nth in range(75))
        assert self.found(f"it says «{said}» there", said)
        assert not self.found(f"it says «{said[:-3]}w2» there", said)

    def found(self, claim, text):
        return not Occurrence(evidence(tool(1, text), claim=claim)).missing(claim)[0]
