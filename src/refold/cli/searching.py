"""`refold search`."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from refold.cli.ago import ago
from refold.cli.chat.clean import cleaned
from refold.cli.completing import session_names
from refold.cli.lines import Line, print_lines
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import explained
from refold.cli.reading import log_to_read
from refold.cli.tables import terminal_width
from refold.exports.moments import day_and_time
from refold.log import DEFAULT_TENANT
from refold.log.names import check_name
from refold.log.text import placed_words
from refold.recall.query import terms_of
from refold.recall.search import Found, search
from refold.view.columns import Piece, first_words, wrapped

_LINES = 3
"""An excerpt takes about so many."""


def search_(  # noqa: PLR0913 - an option each
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Words to look for.", show_default=False)
    ],
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="Only in this session.",
            autocompletion=session_names,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="NUMBER", min=1, help="How many at most.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Find what was said, in all sessions, also beneath folds; what answers best comes first.

    Words are found in their other plain forms too; case and accents do not matter. That nothing is
    found is no error.

    Example: refold search "order number" --session support-42
    """
    with explained():
        if session is not None:
            check_name(session)
        width = terminal_width()
        wide = max(80, (width - 2) * _LINES)
        found = asyncio.run(_found(text, session, store, tenant, limit, wide))
        if as_json:
            typer.echo(json.dumps([_as_json(one) for one in found], ensure_ascii=False, indent=2))
        elif found:
            print_lines(list(_lines(found, _words(text), width)))
        else:
            where = f"session {session!r}" if session else "any session"
            typer.echo(f"Nothing in {where} answers {text!r}.", err=True)


async def _found(  # noqa: PLR0913, PLR0917 - what to look for, where, and how much of it
    text: str, session: str | None, address: str, tenant: str, limit: int, width: int
) -> list[Found]:
    async with log_to_read(address, tenant, gone="There is nothing left to search.") as log:
        # A model is also told what stands beside a match; people look for the words themselves.
        return await search(log, text, session=session, limit=limit, width=width, neighbors=False)


def _words(text: str) -> frozenset[str]:
    return frozenset(word for term in terms_of(text) for run in term for word in run)


def _lines(found: Sequence[Found], wanted: frozenset[str], width: int) -> Iterator[Line]:
    now = int(time.time() * 1000)
    for nth, one in enumerate(found):
        if nth:
            yield []
        standing = "" if one.standing == "in view" else f" · {one.standing}"
        about = f" · {one.role} · {ago(one.at, now)}{standing}"
        name = first_words(one.session, max(20, width - len(about) - 8))
        yield [Piece(f"{name} [{one.seq}]", "strong"), Piece(about, "faint")]
        for line in wrapped(cleaned(one.excerpt), width - 2):
            yield [Piece("  "), *emphasised(line, wanted)]


def emphasised(line: str, wanted: frozenset[str]) -> Iterator[Piece]:
    """The line in pieces, those strong that are words of the query."""
    at = 0
    for start, end, word in placed_words(line):
        if word in wanted and start >= at:
            yield Piece(line[at:start])
            yield Piece(line[start:end], "cut")
            at = end
    yield Piece(line[at:])


def _as_json(one: Found) -> dict[str, object]:
    return {**asdict(one), "at": day_and_time(one.at)}
