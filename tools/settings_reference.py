"""Writes docs/reference/settings.md and the JSON Schema of refold.toml from the settings.

With --check it writes nothing and exits with 1 if either is out of date.
"""

import json
import sys
from collections.abc import Iterator
from inspect import cleandoc
from itertools import groupby
from pathlib import Path
from typing import cast

import settings_schema
from pydantic import BaseModel
from reference import table, write_or_check

from refold.models import ModelSettings
from refold.settings import ALIASES, DEFAULT_PROFILE, KEYS, SERVE_KEYS, Serve, variable_of
from refold.settings.names import leaves
from refold.settings.trust import right_of
from refold.view.profiles import PROFILES, Profile, ProjectRight, project_right

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

_RIGHTS = {
    ProjectRight.VALUE: "set it",
    ProjectRight.PROFILE: "choose it with a profile",
    ProjectRight.NONE: "–",  # noqa: RUF001 - a dash
}
OPENING = """<!-- Made by tools/settings_reference.py from the settings: do not edit. -->
# Settings

Each setting has a name, such as `trim.max_chars`, and a variable, `REFOLD_TRIM__MAX_CHARS`.
[The guide](../manage/configure.md) says where to write them; `refold config` shows what applies.

The column "a project may" says what the files of a project do that you
[don't trust](../manage/configure.md#trust-a-project): they set the value, choose it with a profile,
or neither. They may set nothing of `serve`.

`profile`, or `REFOLD_PROFILE`, names the profile that all values come from that nobody sets:
"""


def render() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield OPENING
    yield f"{', '.join(f'`{name}`' for name in PROFILES)}. It is `{DEFAULT_PROFILE}` by default.\n"
    ordered = sorted(KEYS, key=lambda key: "." in key)
    for section, keys in groupby(ordered, key=lambda key: key.rpartition(".")[0]):
        yield f"## {section or 'Top level'}\n"
        yield from _of_section(section, list(keys))
    yield "## models\n"
    yield 'What you know better of a model, in a table for each: `[models."openai:gpt-4o"]`.\n'
    fields = ModelSettings.model_fields.items()
    rights = {name: _RIGHTS[project_right(one)] for name, one in fields}
    rows = ((f"`{name}`", one.description or "", rights[name]) for name, one in fields)
    yield from table(("name", "", "a project may"), rows)
    yield from _of_serving()
    yield "## Names of the seeds\n"
    yield "They set the same values, in every profile.\n"
    yield from table(("in files", "in the environment", "sets"), map(_alias, ALIASES))


def _of_serving() -> Iterator[str]:
    usual = dict(leaves({"serve": Serve().model_dump(mode="json")}))
    for section, of_section in groupby(SERVE_KEYS, key=lambda key: key.rpartition(".")[0]):
        keys = list(of_section)
        yield f"## {section}\n"
        yield f"{_doc(section.removeprefix('serve').lstrip('.'), Serve)}\n"
        rows = ((f"`{key}`", SERVE_KEYS[key].description or "", _value(usual[key])) for key in keys)
        yield from table(("name", "", "usually"), rows)
        yield f"Variables: {', '.join(f'`{variable_of(key)}`' for key in keys)}.\n"


def _of_section(section: str, keys: list[str]) -> Iterator[str]:
    if section:
        yield f"{_doc(section)}\n"
    names = ((f"`{key}`", KEYS[key].description or "", _RIGHTS[right_of(key)]) for key in keys)
    yield from table(("name", "", "a project may"), names)
    values = {name: dict(leaves(one.model_dump())) for name, one in PROFILES.items()}
    rows = ((f"`{key}`", *(_value(own[key]) for own in values.values())) for key in keys)
    yield from table(("in profile", *PROFILES), rows)
    yield f"Variables: {', '.join(f'`{variable_of(key)}`' for key in keys)}.\n"


def _doc(section: str, kind: type[BaseModel] = Profile) -> str:
    for name in section.split(".") if section else ():
        kind = cast("type[BaseModel]", kind.model_fields[name].annotation)
    return cleandoc(kind.__doc__ or "")  # as newer Pythons have it already


def _value(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _alias(alias: tuple[tuple[str, ...], str | None, str | None, object]) -> tuple[str, ...]:
    keys, file, variable, _ = alias
    sets = ", ".join(f"`{key}`" for key in keys)
    return f"`{file}`" if file else "", f"`{variable}`" if variable else "", sets


def main() -> int:
    """The command line."""
    script = "settings_reference.py"
    return max(
        write_or_check(PAGE, render, script),
        write_or_check(settings_schema.FILE, settings_schema.render, script),
    )


if __name__ == "__main__":
    sys.exit(main())
