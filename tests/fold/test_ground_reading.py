"""How a claim is read: its sentences, what it names, what hides in it, what it asks for."""

import pytest

from refold.fold.ground.directives import _any, _compiled, directive, imperative, language_of
from refold.fold.ground.disguise import cleaned, folded, is_block, mixed, readings
from refold.fold.ground.grounding import _noun
from refold.fold.ground.words import (
    Clause,
    _listed,
    _read,
    _spaced,
    _unspaced,
    asides,
    clauses,
    content,
    named,
    sentences,
    spellings,
    stem,
)


class TestSentences:
    def test_a_sentence_ends_with_what_ends_it(self):
        assert sentences("One. Two! Three? Four") == ["One. ", "Two! ", "Three? ", "Four"]
        assert sentences("a; b | c") == ["a; ", "b | ", "c"]
        assert sentences("   ") == []

    def test_short_forms_end_no_sentence(self):
        assert sentences("Files, e.g. a.ts, etc. and more.") == ["Files, e.g. a.ts, etc. and more."]

    def test_clauses_know_what_stands_before_them(self):
        found = clauses("it ran, but failed because of b")
        assert found == [("", "it ran"), (", but ", "failed"), (" because ", "of b")]
        assert clauses("one") == [("", "one")]

    def test_what_stands_in_brackets_is_an_aside(self):
        assert [one.group(1) for one in asides("a (bcde) f [ghij] (k)")] == ["bcde", "ghij"]


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
            ("~/x and ./y and /z", [("~/x", "path"), ("./y", "path"), ("/z", "path")]),
            ("w\u043erd", [("w\u043erd", "name")]),
            ("_private and $HOME", [("_private", "name"), ("$HOME", "name")]),
            ("(see a.ts)", [("a.ts", "name")]),
            ("a\\b", [("a\\b", "path")]),
        ],
    )
    def test_what_a_claim_names(self, text, found):
        there = named(text)
        assert [(one.text, one.sort) for one in there] == found
        for one in there:
            assert one.text in text[one.start : one.end]

    def test_what_is_quoted_is_named_once(self):
        text = "in `src/a.ts` and src/b.ts"
        assert named(text) == [(3, 13, "src/a.ts", "code"), (18, 26, "src/b.ts", "path")]

    @pytest.mark.parametrize(
        ("number", "also"),
        [
            ("1,234", {"1234", "1.234", "1'234", "1 234", "1_234"}),
            ("1234", {"1,234", "1\u00a0234", "1\u202f234"}),
            ("2.50", {"2.5", "2,50", "2,5"}),
            ("12ms", {"12ms", "12"}),
            ("3.5k", {"3.5", "3,5", "3.50"}),
        ],
    )
    def test_a_number_is_written_in_many_ways(self, number, also):
        assert {*spellings(number)} >= also
        assert spellings(number)[0] == number
        assert "" not in spellings(number)
        assert len({*spellings(number)}) == len(spellings(number))

    def test_other_numbers_are_not_the_same_number(self):
        assert not {*spellings("1,234")} & {"123", "12340", "1.23", "234", "0"}
        assert not {*spellings("2.50")} & {"250", "25", "2", "2.05"}


class TestDisguise:
    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("  plain   words \n", "plain words"),
            ("- one\n- two", "one two"),
            ("a<!-- hidden -->b", "a b"),
            ("a<!-- hidden", "a"),
            ("<b>bold</b> &amp; more", "bold & more"),
            ("[text](http://x.org)", "text http://x.org"),
            ("zero\u200bwidth and \u202eturned", "zerowidth and turned"),
            ("a\u2028b\x0cc\rd", "a b c d"),
            ("a\x00b", "a b"),
            ("\ue000private", "private"),
            ("star\ufe0f", "star"),
            ("a\ud800b", "ab"),
            ("```one```", "one"),
            ("[Summary of 3", "Summary of 3"),
            ("The user (entry 3): so", "The user: so"),
            ("[x] done", "done"),
            ("e\u0301", "é"),
        ],
    )
    def test_nothing_is_hidden_or_forged(self, text, clean):
        assert cleaned(text) == clean

    def test_what_is_too_long_is_cut(self):
        assert cleaned("x" * 2_000) == "x" * 2_000
        assert cleaned("x" * 2_001) == "x" * 1_999 + "…"
        block = "```\n" + "\n".join(["y" * 1_000] * 9) + "\n```"
        assert len(cleaned(block)) == 8_000
        assert cleaned(block)[-1] == "…"
        assert max(map(len, cleaned("```\n" + "y" * 3_000 + "\n```").splitlines())) == 2_000

    def test_a_block_has_a_fence_or_is_drawn(self):
        assert is_block("```\nx\n```")
        assert is_block("a\n├── b")
        assert not is_block("```")
        assert not is_block("a\nb")
        assert cleaned("```py\n  x = 1\n\n# y\n```") == "  x = 1\ny"
        assert cleaned("a\n├── # b") == "a\n├── # b"

    def test_texts_are_compared_without_case_accents_and_variants(self):
        assert folded("ABC") == "abc"
        assert folded("Éàß\u00ad") == "eass"
        assert folded("\uff21\u200b") == "a"

    def test_a_text_is_read_in_every_way_a_reader_may_take_it(self):
        assert readings("Plain.") == ["plain."]
        assert "delete all" in readings("d e l e t e all")
        assert "delete" in readings("de**le**te")
        assert "delete" in readings("d\u0435l\u0435t\u0435")
        assert "don't" in readings("don\u2019t")
        assert "a & b" in readings("a &amp; b")

    def test_words_of_two_scripts_are_told(self):
        assert mixed("p\u0430y")
        assert not mixed("pay")
        assert not mixed("\u0431\u0430\u043d\u043a")
        assert not mixed("日本x")


class TestWords:
    @pytest.mark.parametrize(
        "words",
        [
            ("deploy", "deploys", "deployed", "deploying", "deployment", "deployments"),
            ("migrate", "migrated", "migrates", "migrating"),
            ("migration", "migrations"),
            ("stop", "stopped", "stopping", "stops"),
            ("retry", "retrying"),
            ("copied", "copies"),
        ],
    )
    def test_forms_of_one_word_meet(self, words):
        assert len({stem(one) for one in words}) == 1

    def test_short_words_stay_whole(self):
        assert [stem(one) for one in ("red", "ring", "bus", "ass", "tree")] == [
            "red",
            "ring",
            "bus",
            "ass",
            "tre",
        ]

    def test_only_words_with_a_meaning_count_and_each_once(self):
        assert content("The tests and the test of 12,345 rows") == ["~test", "~12345", "~row"]

    def test_a_number_is_not_another_one_without_its_ending(self):
        assert [stem(one) for one in ("1000", "100", "5500")] == ["1000", "100", "5500"]


class TestDirectives:
    @pytest.mark.parametrize(
        ("text", "reading"),
        [
            ("The user approved it", "grant"),
            ("You may delete it", "grant"),
            ("The agent can delete the table", "grant"),
            ("The user wants it gone", "report"),
            ("As asked by the user", "report"),
            ("Delete the table", "order"),
            ("Then delete the table", "order"),
            ("Note: delete the table", "order"),
            ("torch the archive", "order"),
            ("It must be deleted", "oblige"),
            ("never push to main", "order"),
            ("Deleting is not allowed", "oblige"),
            ("Use tabs only", "order"),
            ("d e l e t e   t h e table", "grant"),
            ("The build passed", None),
            ("The cache can grow", None),
            ("The page can delete rows", None),
            ("`approve_refund` was read", None),
            ("The user table has rows", None),
            ("Deleted the table", None),
            ("read access was there", None),
            ("Lösche die Tabelle", "order"),
            ("Supprimer la table", "order"),
            ("删除表", "order"),
        ],
    )
    def test_how_a_sentence_reads(self, text, reading):
        assert directive(text) == reading

    @pytest.mark.parametrize(
        "word", ["off", "out", "up", "down", "on", "over", "away", "back", "through"]
    )
    def test_a_word_nobody_listed_is_an_order_before_a_noun(self, word):
        assert directive(f"zork {word} the archive") == "order"
        assert directive(f"zork {word} archives") is None

    def test_code_gives_no_orders(self):
        assert directive("delete the table", code=True) != "order"
        assert directive("delete the table") == "order"

    def test_an_imperative_begins_with_what_is_asked_for(self):
        assert imperative("delete the table")
        assert imperative("re-run the tests")
        assert imperative("delete!")
        assert not imperative("the table was deleted")
        assert not imperative("test: passed")
        assert not imperative("build 3 passed")
        assert not imperative("build passed, as before")
        assert not imperative("delete = true")
        assert not imperative("")

    def test_a_language_is_known_by_its_small_words(self):
        assert language_of("der Hund und die Katze") == "de"
        assert language_of("le chien et la table") == "fr"
        assert language_of("the dog") == "en"
        assert language_of("xyz") == "en"


class TestWordLists:
    def test_lists_are_words_between_commas(self):
        assert _listed(" one , two  words,\n, three ") == ("one", "two words", "three")

    def test_the_lists_of_all_languages_are_one_but_for_those_without_spaces(self):
        words = _read()["grant"]
        assert {*_spaced("grant")} == {
            one for language, listed in words.items() if language != "unspaced" for one in listed
        }
        assert len(_spaced("grant")) == len({*_spaced("grant")})
        assert _unspaced("grant") == words["unspaced"] != ()
        assert _unspaced("neutral") == ()

    @pytest.mark.parametrize(
        ("word", "text", "found"),
        [
            ("may", "you may go", True),
            ("may", "mayor", False),
            ("may", "dismay", False),
            ("go ahead", "go   ahead", True),
            ("approv*", "approval", True),
            ("approv*", "disapproval", False),
            ("todo:", "todo:x", True),
        ],
    )
    def test_a_word_is_found_whole_and_a_star_stands_for_any_ending(self, word, text, found):
        assert bool(_compiled([word], ["可"]).search(text)) == found
        assert _compiled([word], ["可"]).search("不可能")

    def test_longer_words_are_tried_first(self):
        assert _any(["go", "go ahead"]).startswith(r"(?<!\w)go\s+ahead")


class TestNouns:
    @pytest.mark.parametrize(
        ("before", "text", "noun"),
        [
            (", ", "test results were fine", False),
            (" and ", "write access", True),
            (", ", "write access", True),
            (" as ", "write access", True),
            (" but ", "write access", False),
            (" and ", "write the file", False),
            (" and ", "delete tables", False),
        ],
    )
    def test_a_clause_may_only_begin_like_an_order(self, before, text, noun):
        if noun:
            assert directive(text) == "order"
        assert _noun(Clause(before, text)) == noun
