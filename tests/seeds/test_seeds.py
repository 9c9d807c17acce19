"""docs/seeds.toml is complete, and its page comes out the same for the same tests."""

import re
from pkgutil import resolve_name

import seeds

SEEDS = seeds.load()
ITEMS = [item for seed in SEEDS.seed for item in seed.items]
PROFILES = {"all", "balanced", *(seed.profile for seed in SEEDS.seed)}


def test_every_requirement_is_there_in_order():
    assert list(SEEDS.requirements) == [f"R{number:03}" for number in range(1, 151)]


def test_every_conflict_is_there_in_order():
    assert list(SEEDS.conflicts) == [f"C-{number:02}" for number in range(1, 21)]


def test_the_five_seeds_are_there():
    assert len({seed.name for seed in SEEDS.seed}) == 5


def test_every_item_names_known_requirements_once():
    for item in ITEMS:
        assert item.req, item.names
        assert sorted(set(item.req)) == list(item.req), item.names
        assert SEEDS.requirements.keys() >= set(item.req), item.names


def test_every_requirement_comes_from_a_seed():
    asked = {number for item in ITEMS for number in item.req}
    assert SEEDS.requirements.keys() == asked


def test_every_profile_is_known():
    assert {name for each in SEEDS.requirements.values() for name in each.profiles} == PROFILES


def test_every_symbol_of_ours_exists():
    for symbol in {item.symbol for item in ITEMS if item.symbol}:
        resolve_name(symbol)


def test_the_page_counts_what_is_built():
    page = seeds.render(SEEDS, {"R101": ["tests/test_b.py::two", "tests/test_a.py::one"]})
    assert "**1 of 150 have a passing test with their mark, 149 have none.**" in page
    assert page.count("| open |") == 149
    assert re.search(r"\| R101 \|.*\| `test_a.py::one`, `test_b.py::two` \|", page)


def test_the_page_does_not_depend_on_the_order_of_tests():
    tests = ["tests/test_a.py::one", "tests/test_b.py::two"]
    backwards = {"R102": tests, "R101": tests[::-1]}
    assert seeds.render(SEEDS, backwards) == seeds.render(SEEDS, {"R101": tests, "R102": tests})


def test_a_cell_cannot_break_its_table():
    for line in seeds.render(SEEDS, {}).splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in {3, 5, 6}, line
