"""When a name of a claim is one of the log: numbers with units, braces, paths below `~`."""

import pytest
from test_ground import GONE, left, tool

from refold.fold.ground.evidence import Evidence
from refold.fold.ground.occurrence import Occurrence
from refold.fold.ground.words import named
from refold.fold.material import Material

ADMIN = "root"
"""Whose home lies elsewhere."""


def looked_up(claim, text):
    return Occurrence(Evidence(Material((tool(1, text),)), [claim])).missing(claim)[0]


def there_is(claim, text):
    return looked_up(claim, text) == []


class TestUnits:
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
            ("it took 41ms", "41ms in all", True),
            ("it took 1,234.5ms", "1234.5ms in all", True),
            ("it took 1,234.5ms", "1234.5s in all", False),
            ("it took 41ms", "time_ms: 41, done", True),
            ("it has 12k lines", "12 lines", False),
            ("it was the 3rd try", "try 3 was it", True),
            ("it is 2.5 times faster", "2.5x faster", True),
            ("it took `wait 4.2 s` there", "wait for 4.2s", True),
        ],
    )
    def test_a_number_is_one_of_its_unit(self, claim, text, there):
        assert there_is(claim, text) == there

    def test_one_number_may_be_there_in_one_unit_and_not_in_another(self):
        gone = looked_up("4.2 seconds and 4.2 rows", "took 4.2s")
        assert [(one.text, one.start) for one in gone] == [("4.2", 16)]


class TestBraces:
    @pytest.mark.parametrize("quote", ["", "`"])
    @pytest.mark.parametrize(
        ("path", "there"),
        [
            ("src/{a,b}.ts", True),
            ("src/{a, b}.ts", True),
            ("src/{a,c}.ts", False),
            ("src/{a, c}.ts", False),
            ("{lib,src}/a.ts", False),
            ("src/a{,.test}.ts", True),
            ("src/b{,.test}.ts", False),
            ("{src,src}/{a,b}.ts", True),
            ("{src,src}/{a,c}.ts", False),
        ],
    )
    def test_each_of_what_stands_in_braces_must_be_there(self, path, there, quote):
        text = "src/a.ts, src/b.ts, src/a.test.ts"
        assert there_is(f"see {quote}{path}{quote}.", text) == there

    def test_what_is_not_there_is_masked_with_its_braces(self):
        (found,) = left("session.ts, legacy.ts and src/{x,y}.ts belong together")
        assert found.startswith(f"session.ts, legacy.ts and {GONE} belong")

    @pytest.mark.parametrize("text", ["{a, b} of x", "x{1,3} of it", "at .{1,3} of it"])
    def test_braces_alone_make_no_path(self, text):
        assert not any(one.sort == "path" for one in named(text))


class TestHome:
    @pytest.mark.parametrize("quote", ["", "`"])
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
    def test_a_path_below_home_is_not_one_elsewhere(self, text, there, quote):
        assert there_is(f"see {quote}~/dev/a.ts{quote} there", text) == there
        assert there_is(f"see {quote}~/dev/a.ts:12{quote} there", f"{text}, 12") == there

    def test_of_a_path_below_home_nothing_is_left_where_it_is_not_there(self):
        (found,) = left("session.ts, legacy.ts and ~/zebra/a.ts belong together")
        assert found.startswith(f"session.ts, legacy.ts and {GONE} belong")
