"""The list of sessions: search, filters, and what each has cost."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response

from refold.console.items import Fate, Lens, MessageItem, Run, items_of, sent_tokens
from refold.console.pages import Page, access_of, one_line, page, program_name, render
from refold.errors import SessionForgotten, SessionNotFound
from refold.log import Log, Message, Span
from refold.models.catalog import Overrides
from refold.recall.text import shapes_of, wire_of
from refold.service.api import schemas
from refold.service.api.events import Pace, event_stream
from refold.service.api.requests import Tally, record_of, session_tally
from refold.service.api.routing import CallerLog, Reader, ServiceDep
from refold.service.api.search import search_entries
from refold.service.api.sessions import list_sessions, state_of
from refold.service.callers import Caller
from refold.terminal_text import first_words

router = APIRouter(route_class=Page)
PAGE: Final = 25
"""Sessions that one page lists."""
MAX_LOOKED_AT: Final = 250
"""Sessions that one page looks at to find those that a filter lets through."""
_MAX_HITS: Final = 8
_ENTRIES_AT_ONCE: Final = 2_000
"""Entries that one page reads to sum up what sessions cost; a stream reads on."""
_MAX_TOTALS: Final = 5_000
"""Sessions whose sums are kept in memory."""
_OPENING: Final = 6  # entries that are looked through for the first prompt
_WORDS: Final = 160
_PAUSE: Final = 3.0
"""Seconds between two looks at the list, at most."""
_DAYS: Final = {"today": 1, "week": 7, "month": 30}

Words = Annotated[str, Query(max_length=1_000, pattern=schemas.PLAIN_TEXT)]
PageName = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")]
Choice = Annotated[str, Query(max_length=200, pattern=schemas.PLAIN_TEXT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is to be listed."""

    q: str = ""
    model: str = ""
    agent: str = ""
    """The program that it is from, or the beginning of its name."""
    form: str = ""
    """The format of its messages."""
    since: str = ""
    folded: bool = False
    refused: bool = False

    @property
    def earliest(self) -> datetime | None:
        days = _DAYS.get(self.since)
        return None if days is None else datetime.now(UTC) - timedelta(days)

    @property
    def any(self) -> bool:
        """Whether sessions are left out, apart from the search."""
        return bool(
            self.model or self.agent or self.form or self.since or self.folded or self.refused
        )

    def admits(self, row: "Row") -> bool:
        """Whether a session is to be listed; one that was not counted yet is."""
        return (
            (not self.model or self.model.lower() in row.model.lower())
            and row.agent.lower().startswith(self.agent.lower())
            and (not self.form or self.form == row.state.format)
            and (not self.folded or row.state.folds > 0)
            and (not self.refused or row.totals is None or row.totals.refusals > 0)
        )


class Row(NamedTuple):
    """A session as the list shows it."""

    state: schemas.SessionState
    title: str
    """Its title, or else how it begins."""
    record: schemas.RequestRecord | None
    """Its newest request."""
    totals: Tally | None
    """None: not counted yet."""
    sent: int = 0
    """The tokens of the newest request, with instructions and tools."""

    @property
    def model(self) -> str:
        return one_line(self.record.model) if self.record else ""

    @property
    def agent(self) -> str:
        """The program that it was imported from, if it was."""
        return program_name(self.state.origin.program) if self.state.origin else ""

    @property
    def recorded(self) -> bool:
        """Whether something is recorded of what it cost; nothing is of an imported session."""
        totals = self.totals
        return totals is not None and bool(totals.requests or totals.summaries or totals.unpriced)

    @property
    def share(self) -> float | None:
        """How full the newest request made what it could hold."""
        limit = self.record.limit if self.record else None
        return min(1.0, self.sent / limit) if limit else None


class Match(NamedTuple):
    """An entry that a search found, and what became of it in the newest request."""

    found: schemas.Found
    fate: Fate | None
    """None: no message, so no model sees it."""
    fold: int | None = None
    """The fold whose summary is sent instead."""


class Listing(NamedTuple):
    """A page of the list."""

    rows: list[Row]
    next: str | None
    looked_at: int

    @property
    def counted(self) -> bool:
        """Whether the sums of all rows are there."""
        return all(row.totals is not None for row in self.rows)

    @property
    def models(self) -> list[str]:
        return _choices(row.model for row in self.rows)

    @property
    def agents(self) -> list[str]:
        return _choices(row.agent for row in self.rows)


def _choices(names: Iterable[str]) -> list[str]:
    """Those that a filter offers."""
    return sorted({name for name in names if name})


@dataclass(slots=True)
class Totals:
    """What sessions have cost, counted on from where it was counted last."""

    known: OrderedDict[tuple[str, str, datetime], tuple[Tally, int]] = field(
        default_factory=OrderedDict[tuple[str, str, datetime], tuple[Tally, int]]
    )

    async def count(
        self, log: Log, session: schemas.Session, models: Overrides, max_entries: int
    ) -> tuple[Tally | None, int]:
        """The sums if they are whole, and how many entries were read for them."""
        # A session that was forgotten and begun anew under its name was created at another time.
        key = (log.tenant, session.name, session.created_at)
        before = self.known.pop(key, (Tally(), 0))
        after = await session_tally(log, session.name, models, before, max_entries=max_entries)
        self.known[key] = after
        while len(self.known) > _MAX_TOTALS:
            self.known.popitem(last=False)
        return (after[0] if after[1] >= session.entries else None), after[1] - before[1]


async def listing(  # noqa: PLR0913 - each a choice
    caller: Caller,
    log: Log,
    filters: Filters,
    models: Overrides,
    totals: Totals,
    *,
    after: str | None = None,
) -> Listing:
    """The sessions that the filters let through, the one used last first."""
    rows: list[Row] = []
    earliest, looked_at, max_entries = filters.earliest, 0, _ENTRIES_AT_ONCE
    while True:
        found = await list_sessions(caller, log, search=filters.q or None, limit=PAGE, page=after)
        after = found.next
        recent = [x for x in found.sessions if earliest is None or x.updated_at >= earliest]
        looked_at += len(recent)
        if len(recent) < len(found.sessions):  # all others were used before
            after = None
        for row in await asyncio.gather(*(_row(log, session) for session in recent)):
            if row is None or not filters.admits(row):
                continue
            counted, read = await _count(log, row, models, totals, max_entries)
            max_entries = max(0, max_entries - read)
            if counted is not None and filters.admits(counted):
                rows.append(counted)
        if after is None or len(rows) >= PAGE or looked_at >= MAX_LOOKED_AT:
            return Listing(rows, after, looked_at)


async def matches(caller: Caller, log: Log, words: str) -> list[Match]:
    """The entries with these words, the best first."""
    lenses: dict[str, Lens] = {}
    results: list[Match] = []
    for found in (await search_entries(caller, log, words, limit=_MAX_HITS)).found:
        with suppress(SessionForgotten, SessionNotFound):
            if found.session not in lenses:
                lenses[found.session] = await Lens.of(log, found.session)
            lens, place = lenses[found.session], Span(found.seq, found.seq)
            inside = next((each for each in lens.regions() if found.seq in each.span), None)
            for item in await items_of(log, lens, [Run(place)], inside):
                fate = _fate(item, words) if isinstance(item, MessageItem) else None
                fold = inside.fold.seq if inside and inside.fold else None
                is_folded = fate is not None and fate.name == "folded"
                results.append(Match(found, fate, fold if is_folded else None))
    return results


def _fate(item: MessageItem, words: str) -> Fate:
    """What became of the part that has one of these words."""
    wanted = [word.casefold() for word in words.split()]
    for part in item.parts:
        if any(word in part.text.casefold() for word in wanted):
            return part.fate
    return item.parts[0].fate if item.parts else item.fate


async def _row(log: Log, session: schemas.Session) -> Row | None:
    """A session without its sums; None if it was forgotten meanwhile."""
    name = session.name
    try:
        state = await state_of(log, name)
        record, sent = None, 0
        if state.last_request is not None:
            seq = state.last_request
            for entry in await log.read(name, Span(seq, seq)):
                record, sent = record_of(entry), sent_tokens(entry)
        title = state.title or await _opening(log, state)
    except (SessionForgotten, SessionNotFound):
        return None
    return Row(state, title, record, None, sent)


async def _count(
    log: Log, row: Row, models: Overrides, totals: Totals, max_entries: int
) -> tuple[Row | None, int]:
    try:
        tally, read = await totals.count(log, row.state, models, max_entries)
    except (SessionForgotten, SessionNotFound):
        return None, 0
    return row._replace(totals=tally), read


async def _opening(log: Log, state: schemas.SessionState) -> str:
    """How the first prompt begins. It is kept nowhere, so it goes when it is forgotten."""
    wire = wire_of(state.format)
    span = Span(1, min(_OPENING, state.entries))
    for entry in await log.read(state.name, span, whole=False):
        if entry.kind == Message.KIND and not entry.forgotten:
            for shape in shapes_of(wire, entry)[1]:
                if shape.kind == "prompt" and shape.text.strip():
                    return first_words(shape.text, _WORDS)
    return ""


def _filters(  # noqa: PLR0913, PLR0917 - a field of the form each
    q: Words = "",
    model: Choice = "",
    agent: Choice = "",
    form: Choice = "",
    since: Choice = "",
    folded: Annotated[bool, Query()] = False,  # noqa: FBT002 - a field of the form
    refused: Annotated[bool, Query()] = False,  # noqa: FBT002 - a field of the form
) -> Filters:
    return Filters(
        q=q, model=model, agent=agent, form=form, since=since, folded=folded, refused=refused
    )


Asked = Annotated[Filters, Depends(_filters)]


@router.get("")
async def show_sessions(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    filters: Asked,
    after: PageName = None,
) -> Response:
    """The sessions, the one used last first; with words to look for, also what was said."""
    models, totals = service.settings.models, request.app.state.totals
    found = await listing(caller, log, filters, models, totals, after=after)
    hits = await matches(caller, log, filters.q) if filters.q and after is None else []
    return page(
        request,
        "sessions.html",
        filters=filters,
        listing=found,
        hits=hits,
        first=after is None,
        query=_query(filters),
    )


@router.get("/live")
async def follow_sessions(
    request: Request, caller: Reader, log: CallerLog, service: ServiceDep, filters: Asked
) -> Response:
    """The first page of the list as it changes, and what its sessions cost as it is counted."""
    access, models, totals = access_of(request), service.settings.models, request.app.state.totals

    async def chunks() -> AsyncGenerator[bytes]:
        pace, before = Pace(service.draining, _PAUSE), ""
        while not pace.is_over:
            found = await listing(caller, log, filters, models, totals)
            html = render("sessions_rows.html", listing=found, query=_query(filters), first=True)
            if html != before:
                yield fragment(html)
                before = html
                pace.restart()
            yield pace.heartbeat()
            if found.counted:
                await pace.wait()
            else:
                await asyncio.sleep(0)

    return event_stream(chunks(), lambda: access.admit(request), caller.tenant, service.draining)


def fragment(html: str) -> bytes:
    """A part of a page as an event without a name, which htmx puts in its place."""
    lines = html.encode(errors="replace").splitlines()
    return b"".join(b"data: %s\n" % line for line in lines) + b"\n"


def _query(filters: Filters) -> str:
    """The filters as the query of an address."""
    chosen = {name: value for name, value in asdict(filters).items() if value}
    return urlencode({name: "1" if value is True else value for name, value in chosen.items()})
