"""Renders docs/seeds.md: what the seed documents ask for, and which tests show it on which surface.

From docs/seeds.toml, kept by hand, and the report of a test run
(`pytest --requirements-report=FILE`). It refuses marks that show nothing: on a test that runs no
surface and is none of the pure rules in seeds.toml, and on pure rules that no test on a surface
stands beside. With --check it writes nothing and exits with 1 if the page is out of date.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

DOCS = Path(__file__).parent.parent / "docs"
SHOWN_TESTS = 3

SURFACES = ("chat", "capability", "service")

Held = Mapping[str, Mapping[str, Sequence[str]]]
"""Requirement number -> the passing tests that hold it -> the surfaces that each ran."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Requirement(_Record):
    """One thing the seeds ask for, in our words."""

    text: str
    profiles: tuple[str, ...]
    surfaces: tuple[Literal["chat", "capability", "service", "command", "project"], ...] = ()
    """Where a test shows it; `project` is what no surface can show, such as a page or a module."""


class Item(_Record):
    """One name in a seed, and what it is with us."""

    kind: str
    names: str
    req: tuple[str, ...]
    symbol: str | None = None
    deviation: str | None = None


class Seed(_Record):
    """One seed document."""

    name: str
    profile: str
    items: tuple[Item, ...]


class Seeds(_Record):
    """All of docs/seeds.toml."""

    requirements: dict[str, Requirement]
    pure: tuple[str, ...]
    """Files under tests/ with rules that need no surface; each rule is also shown on one."""
    conflicts: dict[str, str]
    seed: tuple[Seed, ...]


def load(path: Path = DOCS / "seeds.toml") -> Seeds:
    """The file as it is kept; an unknown field is an error."""
    return Seeds.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def problems(seeds: Seeds, held: Held) -> Iterator[str]:
    """What is claimed and not shown."""
    for number, each in seeds.requirements.items():
        tests = held.get(number, {})
        for test, surfaces in tests.items():
            file = test.partition("::")[0].removeprefix("tests/")
            if not surfaces and file not in seeds.pure and "project" not in each.surfaces:
                yield f"{number}: {test} runs no surface, and its file is none of the pure rules."
        shown = _surfaces(number, held)
        if tests and "project" in each.surfaces:
            shown.add("project")
        if missing := sorted({*each.surfaces} - shown):
            yield f"{number}: no passing test shows it in {', '.join(missing)}."


def render(seeds: Seeds, held: Held) -> str:
    """The whole page."""
    return "\n".join(_page(seeds, held)) + "\n"


def _page(seeds: Seeds, held: Held) -> Iterator[str]:
    shown = {number for number in seeds.requirements if _is_shown(number, seeds, held)}
    yield "<!-- Made by `make seeds` from seeds.toml and the tests that pass: do not edit. -->"
    yield "# The seeds and what became of them\n"
    yield (
        "Refold began from five documents about the memory of agents. What they ask for is "
        "numbered R001 to R150. *Shown* means that a passing test with the requirement's mark runs "
        "it where people use it: in `refold chat`, through the Pydantic AI capability, through the "
        "service and its gateway, or by another `refold` command. What has no behavior to run, "
        "such as the name of a module or a page of this documentation, is shown by the project. "
        "[Where the profiles differ](lab/choose-a-profile.md"
        "#where-the-profiles-differ-from-their-sources) names the differences that matter most.\n"
    )
    yield f"**{len(shown)} of {len(seeds.requirements)} are shown.**\n"
    if left := [number for number in seeds.requirements if number not in shown]:
        yield f"Open: {', '.join(left)}.\n"
    yield from _table(
        ("seed", "profile", "names", "requirements", "shown"),
        (
            (seed.name, f"`{seed.profile}`", str(len(seed.items)), str(len(asked)), str(len(done)))
            for seed in seeds.seed
            for asked in [{number for item in seed.items for number in item.req}]
            for done in [asked & shown]
        ),
    )
    for seed in seeds.seed:
        yield f"## {seed.name}\n"
        yield from _table(
            ("the seed names", "requirement", "ours", "tests", "deviation"),
            (
                (
                    f"{item.kind}: {item.names}",
                    ", ".join(item.req),
                    f"`{item.symbol}`" if item.symbol else "",
                    _tests({test for number in item.req for test in held.get(number, ())}),
                    item.deviation or "",
                )
                for item in seed.items
            ),
        )
    yield "## Where the seeds disagree\n"
    yield from _table(("number", "the conflict, and what we do"), seeds.conflicts.items())
    yield "## All requirements\n"
    yield from _table(
        ("number", "requirement", "profiles", *SURFACES, "tests"),
        (
            (
                number,
                each.text,
                ", ".join(each.profiles),
                *("yes" if surface in surfaces else "" for surface in SURFACES),
                _tests(held.get(number, {})) or "open",
            )
            for number, each in seeds.requirements.items()
            for surfaces in [_surfaces(number, held)]
        ),
    )


def _surfaces(number: str, held: Held) -> set[str]:
    return {surface for surfaces in held.get(number, {}).values() for surface in surfaces}


def _is_shown(number: str, seeds: Seeds, held: Held) -> bool:
    project = "project" in seeds.requirements[number].surfaces and number in held
    return project or bool(_surfaces(number, held))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        cells = [cell.replace("|", r"\|") for cell in row]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _tests(tests: Iterable[str]) -> str:
    names = sorted({f"`{test.removeprefix('tests/')}`" for test in tests})
    more = [f"and {len(names) - SHOWN_TESTS} more"] if len(names) > SHOWN_TESTS else []
    return ", ".join(names[:SHOWN_TESTS] + more)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, required=True, help="JSON of the test run")
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    options = parser.parse_args()
    page = DOCS / "seeds.md"
    seeds, held = load(), json.loads(options.report.read_text(encoding="utf-8"))
    if found := [*problems(seeds, held)]:
        print("\n".join(found), file=sys.stderr)
        return 1
    text = render(seeds, held)
    if not options.check:
        page.write_text(text, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        print("docs/seeds.md is out of date: run `make seeds` and commit it.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
