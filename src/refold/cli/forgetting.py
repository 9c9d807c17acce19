"""`refold forget`."""

import asyncio
import json
import re
import sys
from dataclasses import asdict
from shlex import quote
from typing import Annotated

import typer

from refold.cli.choosing import SessionName
from refold.cli.options import STORE, StoreOption, TenantOption, where_is
from refold.cli.outcome import FAILED, explained
from refold.cli.reading import log_to_read
from refold.cli.scrubbing import run_scrub, say_scrubbed
from refold.errors import InvalidInput
from refold.exports.moments import counted
from refold.log import DEFAULT_TENANT, Erased, Log, Span
from refold.log.names import check_name
from refold.memory.forgetting import forget as forget_with_facts
from refold.memory.forgetting import forgotten_words, shares_words

_NAMED = (
    "The session's name still has words of what was forgotten. A name cannot change: export the "
    "session, import it under another name (refold import FILE --as NAME), then run: "
    "refold forget {session}"
)
_TO_SCRUB = (
    "Nobody can read it any more. The server still has its bytes in its {what}, and has noted "
    "that. To remove them, run as the store's owner: refold store scrub"
)
_SCRUB_WAIT = 60.0
"""Seconds that a scrub waits for each table that others use."""
_SPAN = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")


def forget(  # noqa: PLR0913 - an option each
    session: SessionName,
    *,
    span: Annotated[
        str | None,
        typer.Option(
            "--span", metavar="A-B", help="Only these entries; `refold show` has their numbers."
        ),
    ] = None,
    scrub: Annotated[
        bool,
        typer.Option(
            "--scrub", help="Wait until the bytes are off the server's disk, too (PostgreSQL)."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Erase a session for good, or some of its entries, and all that was derived from them.

    It says what would go and asks first. It cannot be undone: afterwards nobody can read or find
    the text, nor a title made of it. An SQLite file no longer contains it. A PostgreSQL server
    still has its bytes in tables, indexes and the write-ahead log, and has noted that: `refold
    store scrub` removes them, or --scrub at once, if the role in --store may. Copies outside the
    store (backups, archived log, replicas, exports) are yours to erase. Without a terminal to ask
    on, it does nothing unless there is --yes.

    Example: refold forget support-42 --span 12-14
    """
    with explained():
        check_name(session)
        wanted = _span(span)
        would = asyncio.run(_would_go(session, wanted, store, tenant))
        if not yes and not _agreed(would):
            typer.echo("Nothing was forgotten.", err=True)
            raise typer.Exit(FAILED)
        erased, named = asyncio.run(_forget(session, wanted, store, tenant))
        typer.echo(json.dumps(asdict(erased)) if as_json else _sentence(erased, wanted))
        if named:
            typer.echo(_NAMED.format(session=quote(session)), err=True)
        if erased.to_scrub and scrub:
            say_scrubbed(run_scrub(where_is(store), wait=_SCRUB_WAIT))
        elif erased.to_scrub:
            typer.echo(_TO_SCRUB.format(what=" and ".join(erased.to_scrub)), err=True)


def _span(text: str | None) -> Span | None:
    if text is None:
        return None
    found = _SPAN.fullmatch(text.strip())
    if not found or int(found[2] or found[1]) < int(found[1]):
        raise InvalidInput(f"{text!r} is no span.", "Write it like 12 or 12-14.")
    return Span(int(found[1]), int(found[2] or found[1]))


async def _would_go(session: str, span: Span | None, address: str, tenant: str) -> str:
    """What would be erased, as a sentence."""
    async with log_to_read(address, tenant, gone="It is gone already.") as log:
        info = await log.info(session)
        if span is None:
            title = f" ({info.title})" if info.title else ""
            return f"All of session {session!r}{title}: {counted(info.messages, 'message')}."
        entries = await _living(log, session, span)
        if not entries:
            raise InvalidInput(
                f"Nothing is left at {span.first}-{span.last} of session {session!r}.",
                f"It has entries 1 to {info.entries}; `refold show` has their numbers.",
            )
        return f"{_entries(entries)} of session {session!r}, and every fold made of them."


async def _living(log: Log, session: str, span: Span) -> int:
    """How many entries of the span there are that were not forgotten before."""
    return sum(not one.forgotten for one in await log.read(session, span, whole=False))


def can_ask() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _agreed(would: str) -> bool:
    if not can_ask():
        raise InvalidInput(
            "There is no terminal to ask on, and this cannot be undone.",
            "Add --yes if you are sure.",
        )
    typer.echo(f"This would be erased for good:\n  {would}", err=True)
    try:
        return typer.confirm("Go on?", err=True)
    except typer.Abort as error:
        raise KeyboardInterrupt from error


async def _forget(
    session: str, span: Span | None, address: str, tenant: str
) -> tuple[Erased, bool]:
    """Forget it; also whether the session's name still has words of it."""
    async with log_to_read(address, tenant, gone="It is gone already.") as log:
        gone = await forgotten_words(log, session, span) if span is not None else set[str]()
        return await forget_with_facts(log, session, span), shares_words(session, gone)


def _sentence(erased: Erased, span: Span | None) -> str:
    derived = f", and {_entries(erased.derived)} made of them" if erased.derived else ""
    if span is None:
        return f"Forgot session {erased.session!r}: {_entries(erased.entries)}{derived}."
    return f"Forgot {_entries(erased.entries)} of session {erased.session!r}{derived}."


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"
