"""`refold sessions`."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final, NamedTuple

import typer

from refold.cli.chat.clean import cleaned
from refold.cli.options import (
    STORE,
    SessionChoice,
    StoreOption,
    TenantOption,
    log_to_read,
    session_names,
)
from refold.cli.options import (
    chosen as chosen_session,
)
from refold.cli.outcome import explained
from refold.cli.output import GAP, NOTHING, Line, ago, print_lines, terminal_width
from refold.cli.transcript import Placed, as_json, lines_of, newest, readable
from refold.errors import SessionForgotten, SessionNotFound
from refold.exports.as_json import session_json
from refold.exports.moments import Moment, Said, counted, day_and_time, moments
from refold.log import CODEC, DEFAULT_TENANT, Log, Message, Requested, SessionInfo, Span
from refold.log.entry import check_name
from refold.log.text import placed_words
from refold.recall.search import SearchHit, search, terms_of
from refold.recall.text import shapes_of, wire_of
from refold.view.explanation import Piece, columns, first_words, padded, wrapped

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


# `refold search`.

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
            typer.echo(
                json.dumps([_as_json_searching(one) for one in found], ensure_ascii=False, indent=2)
            )
        elif found:
            print_lines(list(_lines(found, _words(text), width)))
        else:
            where = f"session {session!r}" if session else "any session"
            typer.echo(f"Nothing in {where} answers {text!r}.", err=True)


async def _found(  # noqa: PLR0913, PLR0917 - what to look for, where, and how much of it
    text: str, session: str | None, address: str, tenant: str, limit: int, width: int
) -> list[SearchHit]:
    async with log_to_read(address, tenant, gone="There is nothing left to search.") as log:
        # A model is also told what stands beside a match; people look for the words themselves.
        return await search(log, text, session=session, limit=limit, width=width, neighbors=False)


def _words(text: str) -> frozenset[str]:
    return frozenset(word for term in terms_of(text) for run in term for word in run)


def _lines(found: Sequence[SearchHit], wanted: frozenset[str], width: int) -> Iterator[Line]:
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


def _as_json_searching(one: SearchHit) -> dict[str, object]:
    return {**asdict(one), "at": day_and_time(one.at)}


# `refold show`.


def show(  # noqa: PLR0913 - an option each
    session: SessionChoice = None,
    *,
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", metavar="NUMBER", min=1, help="Only the newest messages."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", "-a", help="Also what folds stand for, and what was rewound."),
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Read a session: who said what, with tool calls and folds as one line each.

    On a terminal, a long session is shown page by page. The numbers in brackets are the entries'
    places in the log, as `refold forget --span` takes them.

    Example: refold show support-42 --last 10
    """
    with explained():
        info, found = asyncio.run(_read(session, store, tenant))
        shown = readable(found, every=every)
        chosen = newest(shown, last) if last else shown
        if json_:
            told = {"session": session_json(info), "items": [as_json(one) for one in chosen]}
            typer.echo(json.dumps(told, ensure_ascii=False, indent=2))
        else:
            lines = _lines_showing(info, found, chosen, earlier=len(shown) - len(chosen))
            print_lines(lines, paged=True)


async def _read(session: str | None, address: str, tenant: str) -> tuple[SessionInfo, list[Moment]]:
    async with log_to_read(address, tenant, gone="There is nothing left to read.") as log:
        name = await chosen_session(log, session)
        return await log.info(name), [one async for one in moments(log, name)]


def _lines_showing(
    info: SessionInfo, found: Sequence[Moment], chosen: Sequence[Placed], *, earlier: int
) -> list[Line]:
    now = int(time.time() * 1000)
    width = terminal_width()
    lines: list[Line] = [
        [Piece(first_words(info.title or info.session, width), "strong")],
        [Piece(first_words(f"{info.session} · {_facts(info, now)}", width), "faint")],
        [],
    ]
    if earlier:
        messages = sum(isinstance(one, Said) for one in found)
        said = f"… earlier ones are left out; there are {counted(messages, 'message')} in all"
        lines += [[Piece(said, "faint")], []]
    lines += lines_of(chosen, found, width, lambda at: ago(at, now))
    return lines


def _facts(info: SessionInfo, now: int) -> str:
    used = ago(info.updated_at, now)
    return f"{counted(info.messages, 'message')} · last used {used} · profile {info.profile}"
