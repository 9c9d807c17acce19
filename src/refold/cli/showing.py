"""`refold show`."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from refold.cli.ago import ago
from refold.cli.choosing import SessionChoice
from refold.cli.choosing import chosen as chosen_session
from refold.cli.lines import Line, print_lines
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import explained
from refold.cli.reading import log_to_read
from refold.cli.tables import terminal_width
from refold.cli.transcript import Placed, as_json, lines_of, newest, readable
from refold.exports.as_json import session_json
from refold.exports.moments import Moment, Said, counted, moments
from refold.log import DEFAULT_TENANT, SessionInfo
from refold.view.columns import Piece, first_words


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
            lines = _lines(info, found, chosen, earlier=len(shown) - len(chosen))
            print_lines(lines, paged=True)


async def _read(session: str | None, address: str, tenant: str) -> tuple[SessionInfo, list[Moment]]:
    async with log_to_read(address, tenant, gone="There is nothing left to read.") as log:
        name = await chosen_session(log, session)
        return await log.info(name), [one async for one in moments(log, name)]


def _lines(
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
