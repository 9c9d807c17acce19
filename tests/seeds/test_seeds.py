"""docs/seeds.toml is complete, and its page comes out the same for the same tests."""

import re
from pkgutil import resolve_name

import seed_mutants
import seeds
from project_paths import ROOT, TESTS

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


def test_the_page_counts_what_is_shown_on_a_surface():
    tests = {"tests/test_b.py::two": [], "tests/test_a.py::one": ["chat", "service"]}
    page = seeds.render(SEEDS, {"R101": tests, "R102": {"tests/test_c.py::three": []}})
    assert "**1 of 150 are shown.**" in page
    assert page.count("| open |") == 148
    expected = r"\| R101 \|.*\| yes \|  \| yes \| `test_a.py::one`, `test_b.py::two` \|"
    assert re.search(expected, page)


def test_a_mark_on_a_test_that_runs_no_surface_is_refused():
    tests = {"tests/test_a.py::one": [], f"tests/{SEEDS.pure[0]}::two": []}
    found = [one for one in seeds.problems(SEEDS, {"R101": tests}) if "test_a.py" in one]
    assert found == [
        "R101: tests/test_a.py::one runs no surface, and its file is none of the pure rules."
    ]
    assert not any(SEEDS.pure[0] in one for one in seeds.problems(SEEDS, {"R101": tests}))


def test_a_surface_that_is_claimed_must_be_shown():
    claimed = SEEDS.requirements["R101"].model_copy(update={"surfaces": ("chat", "service")})
    claiming = SEEDS.model_copy(update={"requirements": {"R101": claimed}})
    held = {"R101": {"tests/test_a.py::one": ["service"]}}
    assert [*seeds.problems(claiming, held)] == ["R101: no passing test shows it in chat."]


def test_the_pure_rules_are_files_and_few():
    assert all((TESTS / name).is_file() for name in SEEDS.pure)
    assert len(SEEDS.pure) <= 30


def test_the_page_does_not_depend_on_the_order_of_tests():
    one, two = ("tests/test_a.py::one", ["chat"]), ("tests/test_b.py::two", ["service"])
    backwards = {"R102": dict([one, two]), "R101": dict([two, one])}
    assert seeds.render(SEEDS, backwards) == seeds.render(
        SEEDS, {"R101": dict([one, two]), "R102": dict([one, two])}
    )


def test_a_cell_cannot_break_its_table():
    for line in seeds.render(SEEDS, {}).splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in {3, 6, 8}, line


def test_every_mutant_changes_one_place_and_names_known_requirements():
    mutants = seed_mutants.load()
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new
        assert SEEDS.requirements.keys() >= {*mutant.req}, mutant.name
