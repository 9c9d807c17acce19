"""`refold sessions`, `refold search` and `refold show`."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Protocol

import typer

from refold.cli.chat.clean import cleaned
from refold.cli.options import (
    BEGIN,
    STORE,
    SessionChoice,
    StoreOption,
    TenantOption,
    chosen,
    log_to_read,
    session_names,
)
from refold.cli.outcome import exit_on_error
from refold.cli.output import GAP, NOTHING, Line, ago, print_lines, terminal_width
from refold.cli.transcript import Placed, last_messages, lines_of, readable
from refold.cli.transcript import as_json as moment_json
from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.exports.as_json import session_json
from refold.exports.moments import MessageMoment, Moment, day_and_time, moments
from refold.fold.checkpoints import checkpoints
from refold.log import (
    CODEC,
    DEFAULT_TENANT,
    Log,
    Message,
    Origin,
    Requested,
    SessionInfo,
    SessionPage,
    Span,
)
from refold.log.entry import check_name
from refold.log.text import placed_words
from refold.memory.board import conversations
from refold.recall.search import SearchHit, search, terms_of
from refold.recall.text import shapes_of, wire_of
from refold.session.explain import explanation
from refold.terminal_text import Piece, columns, counted, first_words, padded, wrapped

_MAX_NAME, _MAX_TITLE, _MIN_TITLE = 28, 44, 12  # columns
_MAX_INDENT = 12
_PAGE = 200
_FIRST_ENTRIES = 6  # that are searched for the opening
_PREVIEW = 200
_EXCERPT_LINES = 3


@dataclass(frozen=True, slots=True)
class Listed:
    """A session, with the model and the profile of its last request."""

    info: SessionInfo
    folds: int
    """As the chat's `/unfold` numbers them, with those beneath others."""
    tokens: int | None = None
    """Of the whole next request, as `refold explain` counts them; None before the first one."""
    model: str | None = None
    profile: str | None = None
    opening: str = ""
    """The first prompt, where the session has no title."""
    depth: int = 0
    """How many sessions it lies beneath, in a tree."""

    @property
    def relation(self) -> str:
        """What it is to the session above it in a tree; empty if nothing is."""
        if self.info.forked_from:
            return "fork"
        origin = self.info.origin
        if origin is None or origin.parent is None:
            return ""
        # Other programs' sessions that were imported do not say which of the two they are.
        return "child" if origin.id else "sub-agent"


class _List(Protocol):
    """Lists sessions, a page at a time."""

    async def __call__(self, *, limit: int, page: str | None = None) -> SessionPage: ...


class _Column(NamedTuple):
    head: str
    width: int
    right: bool = False


def sessions(  # noqa: PLR0913 - an option each
    *,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            "-s",
            metavar="TEXT",
            help="Only sessions with these words in their text or name.",
        ),
    ] = None,
    cwd: Annotated[
        Path | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="Only sessions that worked in or below this folder, in any program.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="NUMBER", min=1, help="Maximum number to show.")
    ] = 20,
    tree: Annotated[
        bool,
        typer.Option(
            "--tree", help="Show forks and sub-agents below the session that started them."
        ),
    ] = False,
    internal: Annotated[
        bool,
        typer.Option("--all", "-a", help="Include Refold's internal sessions, such as boards."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """List the sessions, most recently used first.

    Boards are not listed: `refold board` reads the one of this branch.

    Tokens are those of the whole next request, with instructions, tools and the newest answer, as
    in `refold explain` and the chat's `/context`. Folds are those that `/unfold` can open. Model
    and profile are those of the last request.

    With --cwd, the program and the branch are shown too, for sessions from `refold chat`, `refold
    wrap` and `refold import --from`.

    Example: refold sessions --search parcel

    With --tree, forks and the sessions of sub-agents are indented below the session that started
    them.

    Example: refold sessions --cwd . --tree
    """
    folder = cwd and cwd.resolve()

    async def list_() -> tuple[list[Listed], bool]:
        try:
            async with log_to_read(store, tenant, gone="It is gone for good.") as log:
                listed = log.sessions if internal else partial(conversations, log)
                listed = partial(listed, search=search)
                page = await (_within(folder, listed, limit) if folder else listed(limit=limit))
                infos = page.sessions
                if tree:
                    infos = await _with_ancestors(log, infos)
                found = [await _listed(log, info) for info in infos]
        except SessionNotFound:  # your own store is not there yet
            return [], False
        existing = [session for session in found if session is not None]
        return _as_tree(existing) if tree else existing, page.next is not None

    with exit_on_error():
        found, more = asyncio.run(list_())
        if as_json:
            _print_json([_session_json(session, tree=tree) for session in found])
        elif not found:
            typer.echo(_nothing(search, cwd))
            if not search and cwd is None and tenant == DEFAULT_TENANT:
                typer.echo(BEGIN, err=True)
        else:
            now = int(time.time() * 1000)
            lines = table(found, terminal_width(), now, origins=cwd is not None, relations=tree)
            print_lines(lines)
            if more:
                typer.echo(f"\nThere are more: refold sessions --limit {2 * limit}", err=True)


def _nothing(search: str | None, cwd: Path | None) -> str:
    what = f" has {search!r} in it" if search else ""
    if cwd is None:
        return f"No session{what}." if what else "No sessions yet."
    where = f"No session that worked in {str(cwd.resolve())!r}"
    return f"{where}{what}." if what else f"{where} is known."


async def _within(folder: Path, listed: _List, limit: int) -> SessionPage:
    """The newest sessions that worked in the folder or below it."""
    found: list[SessionInfo] = []
    page: str | None = None
    while True:
        each = await listed(limit=_PAGE, page=page)
        for info in each.sessions:
            worked = info.origin.folder if info.origin else None
            if worked and Path(worked).is_absolute() and _is_in(Path(worked), folder):
                found.append(info)
        page = each.next
        if page is None or len(found) > limit:
            return SessionPage(
                tuple(found[:limit]), page or (str(limit) if found[limit:] else None)
            )


async def _with_ancestors(log: Log, infos: Sequence[SessionInfo]) -> Sequence[SessionInfo]:
    """The sessions, and those that they were begun from."""
    found = {info.session: info for info in infos}
    waiting = [*infos]
    while waiting:
        parent = _parent(waiting.pop(), found)
        if parent is not None and parent not in found:
            with suppress(SessionNotFound, SessionForgotten):
                found[parent] = await log.info(parent)
                waiting.append(found[parent])
    return [*found.values()]


def _parent(info: SessionInfo, known: Mapping[str, SessionInfo]) -> str | None:
    """The session that this one was begun from; imported ones name it as their program does."""
    origin = info.origin
    if info.forked_from or origin is None or origin.parent is None:
        return info.forked_from
    names = (
        other.session
        for other in known.values()
        if other.origin
        and (other.origin.program, other.origin.id) == (origin.program, origin.parent)
    )
    return next(names, None) if origin.id else origin.parent


def _as_tree(sessions: Sequence[Listed]) -> list[Listed]:
    """Each session before those beneath it; the tree that was used last comes first."""
    known = {session.info.session: session.info for session in sessions}
    children: dict[str | None, list[Listed]] = {}
    for session in sessions:
        parent = _parent(session.info, known)
        children.setdefault(parent if parent in known else None, []).append(session)

    def beneath(name: str | None, depth: int) -> Iterator[list[Listed]]:
        for session in children.pop(name, ()):
            below = beneath(session.info.session, depth + 1)
            yield [replace(session, depth=depth), *(each for branch in below for each in branch)]

    trees = [*beneath(None, 0)]
    trees.sort(key=lambda tree: -max(session.info.updated_at for session in tree))
    return [session for tree in trees for session in tree]


def _is_in(path: Path, folder: Path) -> bool:
    """Whether a folder, which may be gone by now or a link, is the other or lies below it."""
    return path.is_relative_to(folder) or path.resolve().is_relative_to(folder)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


async def _listed(log: Log, info: SessionInfo) -> Listed | None:
    """None if the session was forgotten meanwhile."""
    try:
        visible = await log.visible(info.session, last=0)
    except (SessionForgotten, SessionNotFound):
        return None
    opening = "" if info.title else await _opening(log, info)
    listed = Listed(info, len(await checkpoints(log, info.session)), opening=opening)
    for entry in visible.entries:
        if entry.seq == visible.outline.record:
            match CODEC.decode(entry):
                case Requested(plan=dict() as plan, model=model):
                    profile, tokens = plan.get("profile"), None
                    with suppress(RefoldError):  # nothing of it fits, or something is gone
                        found = await explanation(log, info.session, every=False)
                        tokens = found.account.sent
                    return replace(
                        listed,
                        tokens=tokens,
                        model=model,
                        profile=profile if isinstance(profile, str) else None,
                    )
                case _:
                    pass
    return listed


async def _opening(log: Log, info: SessionInfo) -> str:
    """The first prompt; it is read each time and stored nowhere, so it can be forgotten."""
    entries = await log.read(info.session, Span(1, min(_FIRST_ENTRIES, info.entries)))
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
_ORIGINS: Final = (_Column("program", 8), _Column("branch", 24))
_RELATION: Final = _Column("relation", 9)
_DROPPED_FIRST: Final = ("profile", "model", "folds", "tokens", "branch")


def table(
    found: Sequence[Listed],
    width: int,
    now: int,
    *,
    origins: bool = False,
    relations: bool = False,
) -> list[list[Piece]]:
    """The sessions as lines with columns, as many as there is room for."""
    rows = [_cells(session, now) for session in found]
    widest = {name: max(columns(row[name]) for row in rows) for name in rows[0]}
    name = _Column("session", max(7, min(_MAX_NAME + _MAX_INDENT, widest["session"])))
    shown = [
        column._replace(width=max(len(column.head), min(column.width, widest[column.head])))
        for column in (
            *((_RELATION,) if relations else ()),
            *(_ORIGINS if origins else ()),
            *_COLUMNS,
        )
    ]
    for dropped in _DROPPED_FIRST:
        if _room(width, [name, *shown]) >= min(widest["title"], _MIN_TITLE):
            break
        shown = [column for column in shown if column.head != dropped]
    room = _room(width, [name, *shown])
    if widest["title"] and room >= _MIN_TITLE:
        shown.insert(0, _Column("title", min(widest["title"], _MAX_TITLE, room)))
    heads = {column.head: column.head for column in (name, *shown)}
    lines = [[Piece(_line([name, *shown], heads), "faint")]]
    for row in rows:
        start = padded(row[name.head], name.width)
        lines.append([Piece(start, "strong"), Piece(GAP + _line(shown, row))])
    return lines


def _room(width: int, shown: Sequence[_Column]) -> int:
    """What is left for a title."""
    return width - sum(len(GAP) + column.width for column in shown)


def _line(shown: Sequence[_Column], row: dict[str, str]) -> str:
    cells = (padded(row[column.head], column.width, right=column.right) for column in shown)
    return GAP.join(cells).rstrip()


def _cells(session: Listed, now: int) -> dict[str, str]:
    info, model = session.info, session.model or NOTHING
    origin = info.origin or Origin(NOTHING)
    indent = "  " * (session.depth - 1) + "└ " if session.depth else ""
    return {
        "relation": session.relation,
        "program": first_words(origin.program or NOTHING, 8),
        "branch": first_words(origin.branch or NOTHING, 24),
        "session": indent + first_words(info.session, _MAX_NAME),
        "title": first_words(info.title or session.opening, _MAX_TITLE),
        "last used": ago(info.updated_at, now),
        "messages": f"{info.messages:,}",
        "tokens": f"{session.tokens:,}" if session.tokens is not None else NOTHING,
        "folds": f"{session.folds:,}",
        "model": first_words(model.partition(":")[2] or model, 28),
        "profile": session.profile or info.profile,
    }


def _session_json(session: Listed, *, tree: bool) -> dict[str, object]:
    fields = session_json(session.info)
    profile = fields.pop("profile")
    last = {"model": session.model, "profile": session.profile or profile}
    counts = {"tokens": session.tokens, "folds": session.folds}
    above = {"depth": session.depth, "relation": session.relation or None} if tree else {}
    return fields | {"opened_with": profile, **counts, "last_request": last, **above}


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
        int, typer.Option("--limit", "-n", metavar="NUMBER", min=1, help="Maximum number to show.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Search the messages of all sessions, including compacted ones; best matches first.

    Plurals and other simple forms of a word match too; case and accents are ignored. No match is
    not an error.

    Example: refold search "order number" --session support-42
    """
    width = terminal_width()

    async def find() -> list[SearchHit]:
        async with log_to_read(store, tenant, gone="There is nothing left to search.") as log:
            excerpt = max(80, (width - 2) * _EXCERPT_LINES)
            # Neighbors of a match are for models; people look for the words themselves.
            return await search(
                log, text, session=session, limit=limit, width=excerpt, neighbors=False
            )

    with exit_on_error():
        if session is not None:
            check_name(session)
        found = asyncio.run(find())
        if as_json:
            _print_json([{**asdict(hit), "at": day_and_time(hit.at)} for hit in found])
        elif found:
            words = frozenset(word for term in terms_of(text) for run in term for word in run)
            print_lines(list(_hit_lines(found, words, width)))
        else:
            where = f"session {session!r}" if session else "any session"
            typer.echo(f"Nothing in {where} answers {text!r}.", err=True)


def _hit_lines(found: Sequence[SearchHit], words: frozenset[str], width: int) -> Iterator[Line]:
    now = int(time.time() * 1000)
    for nth, hit in enumerate(found):
        if nth:
            yield []
        standing = "" if hit.standing == "in view" else f" · {hit.standing}"
        about = f" · {hit.role} · {ago(hit.at, now)}{standing}"
        name = first_words(hit.session, max(20, width - len(about) - 8))
        yield [Piece(f"{name} [{hit.seq}]", "strong"), Piece(about, "faint")]
        for line in wrapped(cleaned(hit.excerpt), width - 2):
            yield [Piece("  "), *emphasized(line, words)]


def emphasized(line: str, words: frozenset[str]) -> Iterator[Piece]:
    """The line in pieces, with the words of the query in another tone."""
    position = 0
    for start, end, word in placed_words(line):
        if word in words and start >= position:
            yield Piece(line[position:start])
            yield Piece(line[start:end], "cut")
            position = end
    yield Piece(line[position:])


def show(  # noqa: PLR0913 - an option each
    session: SessionChoice = None,
    *,
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", metavar="NUMBER", min=1, help="Only the newest messages."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", "-a", help="Include folded and rewound messages."),
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Read a session: who said what, with tool calls and folds as one line each.

    On a terminal, a long session is shown page by page. The numbers in brackets are the entries'
    positions in the log; `refold forget --span` takes them.

    Example: refold show support-42 --last 10
    """

    async def read() -> tuple[SessionInfo, list[Moment]]:
        async with log_to_read(store, tenant, gone="There is nothing left to read.") as log:
            name = await chosen(log, session)
            return await log.info(name), [moment async for moment in moments(log, name)]

    with exit_on_error():
        info, found = asyncio.run(read())
        shown = readable(found, every=every)
        newest = last_messages(shown, last) if last else shown
        if json_:
            items = [moment_json(placed) for placed in newest]
            _print_json({"session": session_json(info), "items": items})
        else:
            lines = _transcript(info, found, newest, complete=len(newest) == len(shown))
            print_lines(lines, paged=True)


def _transcript(
    info: SessionInfo, found: Sequence[Moment], shown: Sequence[Placed], *, complete: bool
) -> list[Line]:
    now = int(time.time() * 1000)
    width = terminal_width()
    facts = [
        info.session,
        counted(info.messages, "message"),
        f"last used {ago(info.updated_at, now)}",
        f"profile {info.profile}",
    ]
    lines: list[Line] = [
        [Piece(first_words(info.title or info.session, width), "strong")],
        [Piece(first_words(" · ".join(facts), width), "faint")],
    ]
    if info.origin is not None:
        lines.append([Piece(first_words(_origin(info.origin), width), "faint")])
    lines.append([])
    if not complete:
        messages = counted(sum(isinstance(one, MessageMoment) for one in found), "message")
        notice = f"… earlier ones are left out; there are {messages} in all"
        lines += [[Piece(notice, "faint")], []]
    lines += lines_of(shown, found, width, lambda at: ago(at, now))
    return lines


def _origin(origin: Origin) -> str:
    branch = origin.branch and f"branch {origin.branch}"
    return " · ".join(filter(None, (f"from {origin.program}", origin.folder, branch)))
