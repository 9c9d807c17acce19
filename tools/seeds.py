"""Renders docs/seeds.md: what the seed documents ask for, and which tests hold it.

From docs/seeds.toml, kept by hand, and the report of a test run
(`pytest --requirements-report=FILE`). With --check it writes nothing and exits with 1 if the
page is out of date.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

DOCS = Path(__file__).parent.parent / "docs"
SHOWN_TESTS = 3

Held = Mapping[str, Sequence[str]]
"""Requirement number -> the passing tests that hold it."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Requirement(_Record):
    """One thing the seeds ask for, in our words."""

    text: str
    profiles: tuple[str, ...]


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
    conflicts: dict[str, str]
    seed: tuple[Seed, ...]


def load(path: Path = DOCS / "seeds.toml") -> Seeds:
    """The file as it is kept; an unknown field is an error."""
    return Seeds.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def render(seeds: Seeds, held: Held) -> str:
    """The whole page."""
    return "\n".join(_page(seeds, held)) + "\n"


def _page(seeds: Seeds, held: Held) -> Iterator[str]:
    total, built = len(seeds.requirements), sum(number in held for number in seeds.requirements)
    yield "<!-- Made by `make seeds` from seeds.toml and the tests that pass: do not edit. -->"
    yield "# The seeds and what became of them\n"
    yield (
        "Refold began from five documents about the memory of agents. What they ask for is "
        "numbered R001 to R150. *Built*, on this page, means one thing: a passing test carries the "
        "requirement's mark. It does not mean that every surface has the behavior. Tried one by "
        "one in the chat, in the Pydantic AI capability and in the service, 84 of the 150 held; "
        "the others work from Python only, on one surface only, or differently from the document. "
        "[Where the profiles differ](guides/choose-a-profile.md"
        "#where-the-profiles-differ-from-their-sources) names the differences that matter most.\n"
    )
    without = total - built
    yield f"**{built} of {total} have a passing test with their mark, {without} have none.**\n"
    yield from _table(
        ("seed", "profile", "names", "requirements", "built"),
        (
            (seed.name, f"`{seed.profile}`", str(len(seed.items)), str(len(asked)), str(len(done)))
            for seed in seeds.seed
            for asked in [{number for item in seed.items for number in item.req}]
            for done in [asked & held.keys()]
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
        ("number", "requirement", "profiles", "state"),
        (
            (number, each.text, ", ".join(each.profiles), _tests(held.get(number, ())) or "open")
            for number, each in seeds.requirements.items()
        ),
    )


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
    text = render(load(), json.loads(options.report.read_text(encoding="utf-8")))
    if not options.check:
        page.write_text(text, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        print("docs/seeds.md is out of date: run `make seeds` and commit it.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
