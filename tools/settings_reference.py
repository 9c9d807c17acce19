"""Writes docs/reference/settings.md from the settings themselves.

With --check it writes nothing and exits with 1 if the page is out of date.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from refold.models import ModelSettings
from refold.settings import ALIASES, DEFAULT_PROFILE, KEYS, variable_of
from refold.settings.keys import leaves
from refold.view.profiles import PROFILES, Profile

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

OPENING = """<!-- Made by tools/settings_reference.py from the settings: do not edit. -->
# Settings

Each setting has a name, such as `trim.max_chars`, and a variable, `REFOLD_TRIM__MAX_CHARS`.
[The guide](../guides/configure.md) says where to write them; `refold config` shows what applies.

`profile`, or `REFOLD_PROFILE`, names the profile that all values come from that nobody sets:
"""


def render() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield OPENING
    yield f"{', '.join(f'`{name}`' for name in PROFILES)}. It is `{DEFAULT_PROFILE}` by default.\n"
    ordered = sorted(KEYS, key=lambda key: "." in key)
    for table, keys in groupby(ordered, key=lambda key: key.rpartition(".")[0]):
        yield f"## {table or 'Top level'}\n"
        yield from _profile_table(table, list(keys))
    yield "## models\n"
    yield 'What you know better of a model, in a table for each: `[models."openai:gpt-4o"]`.\n'
    fields = ModelSettings.model_fields.items()
    yield from _table(("name", ""), ((f"`{name}`", one.description or "") for name, one in fields))
    yield "## Names of the seeds\n"
    yield "They set the same values, in every profile.\n"
    yield from _table(("in files", "in the environment", "sets"), map(_alias, ALIASES))


def _profile_table(table: str, keys: list[str]) -> Iterator[str]:
    about = {"": ""} | {name: _doc(name) for name in Profile.model_fields}
    if about[table]:
        yield f"{about[table]}\n"
    names = ((f"`{key}`", KEYS[key].description or "") for key in keys)
    yield from _table(("name", ""), names)
    values = {name: dict(leaves(one.model_dump())) for name, one in PROFILES.items()}
    rows = ((f"`{key}`", *(_value(own[key]) for own in values.values())) for key in keys)
    yield from _table(("in profile", *PROFILES), rows)
    yield f"Variables: {', '.join(f'`{variable_of(key)}`' for key in keys)}.\n"


def _doc(name: str) -> str:
    return getattr(Profile.model_fields[name].annotation, "__doc__", "") or ""


def _value(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _alias(alias: tuple[tuple[str, ...], str | None, str | None, object]) -> tuple[str, ...]:
    keys, file, variable, _ = alias
    sets = ", ".join(f"`{key}`" for key in keys)
    return f"`{file}`" if file else "", f"`{variable}`" if variable else "", sets


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(render(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != render():
        fix = "run `python tools/settings_reference.py`"
        print(f"{PAGE.name} is out of date: {fix}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
