"""`refold doctor`."""

import asyncio
import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from refold.cli.checks.configured import configured
from refold.cli.checks.installed import installed
from refold.cli.checks.row import Row, Verdict
from refold.cli.checks.stored import stored
from refold.cli.checks.terminal import terminal
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import FAILED, explained
from refold.cli.tables import terminal_width
from refold.log import DEFAULT_TENANT

_STYLES: Final[dict[Verdict, str]] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_LEAST: Final = 24
"""Columns that a text has at least."""


def doctor(
    *,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Check that everything works, and say what to do where it does not.

    The exit code is 1 when there is a problem; warnings are none. Of keys only the names are shown.

    Example: refold doctor
    """
    with explained():
        rows = [*installed(), *asyncio.run(stored(store, tenant)), *configured(), *terminal()]
        if as_json:
            typer.echo(json.dumps([one._asdict() for one in rows], ensure_ascii=False, indent=2))
        else:
            _print(rows)
        if any(one.verdict == "problem" for one in rows):
            raise typer.Exit(FAILED)


def _print(rows: Sequence[Row]) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    wide = max(len(one.name) for one in rows)
    for one in rows:
        text = Text.assemble((f"{one.verdict:<9}", _STYLES[one.verdict]), f"{one.name:<{wide}}  ")
        indent = len(text)
        text.append(_wrapped(one.found, indent))
        if one.remedy:
            text.append(f"\n{' ' * indent}→ ", "bold")
            text.append(_remedy(one.remedy, indent + 2))
        console.print(text, soft_wrap=True)
    console.print(Text(_ending(rows), "bold"), soft_wrap=True)


def _remedy(text: str, indent: int) -> str:
    """A sentence is wrapped; a command stays in one piece, so that it can be copied."""
    return _wrapped(text, indent) if text[:1].isupper() else text


def _wrapped(text: str, indent: int) -> str:
    room = max(_LEAST, terminal_width() - indent)
    lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False)
    return f"\n{' ' * indent}".join(lines)


def _ending(rows: Sequence[Row]) -> str:
    count = Counter(one.verdict for one in rows)
    if not count["problem"] and not count["warning"]:
        return "All is well."
    return f"{_some(count['problem'], 'problem')}, {_some(count['warning'], 'warning')}."


def _some(count: int, name: str) -> str:
    return f"{count or 'no'} {name}{'' if count == 1 else 's'}"
