"""`refold sessions`."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import typer

from refold.cli.ago import ago
from refold.cli.lines import print_lines
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import explained
from refold.cli.reading import log_to_read
from refold.cli.tables import GAP, NOTHING, terminal_width
from refold.errors import SessionForgotten, SessionNotFound
from refold.exports.as_json import session_json
from refold.log import CODEC, DEFAULT_TENANT, Log, Message, Requested, SessionInfo, Span
from refold.recall.telling import shapes_of, wire_of
from refold.view.columns import Piece, columns, first_words, padded

_NAME, _TITLE = 28, 44  # columns
_LEAST = 12
_FEW = 6  # entries that are looked at for what was said first
_PREVIEW = 200


@dataclass(frozen=True, slots=True)
class Listed:
    """A session, and what is known of its last request."""

    info: SessionInfo
    folds: int
    """How many folds stand."""
    tokens: int | None = None
    """What the last request sent, as it was counted."""
    model: str | None = None
    profile: str | None = None
    opening: str = ""
    """What was said first, where the session has no title."""


class _Column(NamedTuple):
    head: str
    width: int
    right: bool = False


def sessions(
    *,
    search: Annotated[
        str | None,
        typer.Option(
            "--search", "-s", metavar="TEXT", help="Only those with these words, or so named."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="NUMBER", min=1, help="How many at most.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """List the sessions, the one used last first.

    Tokens, model and profile are those of a session's last request.

    Example: refold sessions --search parcel
    """
    with explained():
        found, more = asyncio.run(_listed(store, tenant, search, limit))
        if as_json:
            typer.echo(json.dumps([_as_json(one) for one in found], ensure_ascii=False, indent=2))
        elif not found:
            typer.echo(f"No session has {search!r} in it." if search else "No sessions yet.")
        else:
            print_lines(table(found, terminal_width(), int(time.time() * 1000)))
            if more:
                typer.echo(f"\nThere are more: refold sessions --limit {2 * limit}", err=True)


async def _listed(
    address: str, tenant: str, search: str | None, limit: int
) -> tuple[list[Listed], bool]:
    async with log_to_read(address, tenant, gone="It is gone for good.") as log:
        page = await log.sessions(search=search, limit=limit)
        found = [await listed(log, info) for info in page.sessions]
    return [one for one in found if one is not None], page.next is not None


async def listed(log: Log, info: SessionInfo) -> Listed | None:
    """A session of a list, with its last request; None if it was forgotten since."""
    try:
        visible = await log.visible(info.session, last=0)
    except (SessionForgotten, SessionNotFound):
        return None
    opening = "" if info.title else await _opening(log, info)
    known = Listed(info, len(visible.outline.folds), opening=opening)
    for entry in visible.entries:
        if entry.seq == visible.outline.record:
            match CODEC.decode(entry):
                case Requested(plan=dict() as plan, model=model):
                    tokens, profile = plan.get("tokens"), plan.get("profile")
                    known = Listed(
                        info,
                        known.folds,
                        tokens if isinstance(tokens, int) else None,
                        model,
                        profile if isinstance(profile, str) else None,
                        opening,
                    )
                case _:
                    pass
    return known


async def _opening(log: Log, info: SessionInfo) -> str:
    """What was said first in a session without a title. It is read each time and stored nowhere."""
    entries = await log.read(info.session, Span(1, min(_FEW, info.entries)))
    wire = wire_of(info.format)
    for entry in entries:
        if entry.kind == Message.KIND and not entry.forgotten:
            for shape in shapes_of(wire, entry)[1]:
                if shape.kind == "prompt" and shape.text.strip():
                    return shape.text[:_PREVIEW]
    return ""


_COLUMNS: Final = (
    _Column("last used", 15),
    _Column("messages", 8, right=True),
    _Column("tokens", 9, right=True),
    _Column("folds", 5, right=True),
    _Column("model", 28),
    _Column("profile", 8),
)
_FIRST_TO_GO: Final = ("profile", "model", "folds", "tokens")


def table(found: Sequence[Listed], width: int, now: int) -> list[list[Piece]]:
    """The sessions as lines with columns, as many as there is room for."""
    rows = [_cells(one, now) for one in found]
    name = min(_NAME, max(columns(row["session"]) for row in rows) or 1)
    titles = max(columns(row["title"]) for row in rows)
    shown = [one._replace(width=_width(one, rows)) for one in _COLUMNS]
    for going in _FIRST_TO_GO:
        if width - max(name, 7) - _taken(shown) >= min(titles, _LEAST) + len(GAP):
            break
        shown = [one for one in shown if one.head != going]
    left = width - max(name, 7) - _taken(shown) - len(GAP)
    title = [_Column("title", min(titles, _TITLE, left))] if titles and left >= _LEAST else []
    every = [_Column("session", max(name, 7)), *title, *shown]
    heads = {one.head: one.head for one in every}
    lines = [[Piece(_line(every, heads), "faint")]]
    for row in rows:
        first, rest = every[0], every[1:]
        start = padded(row[first.head], first.width)
        lines.append([Piece(start, "strong"), Piece(GAP + _line(rest, row))])
    return lines


def _taken(shown: Sequence[_Column]) -> int:
    return sum(len(GAP) + one.width for one in shown)


def _width(column: _Column, rows: Sequence[dict[str, str]]) -> int:
    widest = max(columns(row[column.head]) for row in rows)
    return max(len(column.head), min(column.width, widest))


def _line(shown: Sequence[_Column], row: dict[str, str]) -> str:
    cells = (padded(row[one.head], one.width, right=one.right) for one in shown)
    return GAP.join(cells).rstrip()


def _cells(one: Listed, now: int) -> dict[str, str]:
    return {
        "session": first_words(one.info.session, _NAME),
        "title": first_words(one.info.title or one.opening, _TITLE),
        "last used": ago(one.info.updated_at, now),
        "messages": f"{one.info.messages:,}",
        "tokens": f"{one.tokens:,}" if one.tokens is not None else NOTHING,
        "folds": f"{one.folds:,}",
        "model": first_words((one.model or "").partition(":")[2] or one.model or NOTHING, 28),
        "profile": one.profile or one.info.profile,
    }


def _as_json(one: Listed) -> dict[str, object]:
    own = session_json(one.info)
    opened = {"opened_with": own.pop("profile")}
    last = {"tokens": one.tokens, "model": one.model, "profile": one.profile or one.info.profile}
    return own | opened | {"folds": one.folds, "last_request": last}
