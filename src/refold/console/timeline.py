"""A session as a timeline: what was said beside what the model gets of it, page by page."""

from collections.abc import AsyncGenerator
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Path, Query, Request, Response

from refold.console.items import (
    Item,
    Lens,
    Region,
    Run,
    cover,
    items_of,
    newest,
    oldest,
)
from refold.console.pages import Page, access_of, page, render, session_url
from refold.console.sessions import fragment
from refold.errors import InvalidInput
from refold.log import CODEC, Entry, FoldCompleted, Folded, Log, Message, PartRef, Span
from refold.recall.text import shapes_of, wire_of
from refold.service.api.events import Pace, event_stream
from refold.service.api.routing import CallerLog, Reader, ServiceDep, SessionName
from refold.service.api.schemas import MAX_INTEGER, Seq
from refold.service.api.sessions import INERT, state_of

router = APIRouter(prefix="/sessions/{session}", route_class=Page)
PAGE: Final = 80
"""Entries that one page of a timeline shows."""
_MAX_LIVE: Final = 240
"""Entries that a page grows to while one watches; then it begins later."""
_MAX_DEPTH: Final = 10
"""Pages that are added to one another; then a new one begins."""
_MAX_PART: Final = 100_000
"""Characters of one part that a page shows at once."""
_LOOK: Final = 0.5
"""Seconds between two looks at a session, at most."""

Place = Annotated[int | None, Query(ge=1, le=MAX_INTEGER)]
Depth = Annotated[int, Query(ge=0, le=_MAX_DEPTH)]
Index = Annotated[int, Path(ge=0, le=1_000_000)]
Offset = Annotated[int, Query(ge=0, le=MAX_INTEGER)]


class Stretch(NamedTuple):
    """A page of a timeline."""

    items: list[Item]
    first: int
    last: int
    head: int


async def stretch(log: Log, lens: Lens, runs: list[Run], inside: Region | None = None) -> Stretch:
    items = await items_of(log, lens, runs, inside)
    first = runs[0].span.first if runs else 0
    return Stretch(items, first, runs[-1].span.last if runs else 0, lens.head)


@router.get("")
async def show_session(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    _: Reader,
    log: CallerLog,
    session: SessionName,
    at: Place = None,
    before: Place = None,
    after: Annotated[int | None, Query(ge=0, le=MAX_INTEGER)] = None,
) -> Response:
    """The newest entries, those around one, or those on one side of it."""
    lens = await Lens.of(log, session)
    head, regions = lens.head, lens.regions()
    if at is not None:
        regions = [region for region in regions if at not in region.span]
        runs = newest(cover(regions, Span(1, min(head, at + PAGE // 3))), PAGE)
    elif after is not None and after < head:
        runs = oldest(cover(regions, Span(after + 1, head)), PAGE)
    else:
        last = head if before is None else max(1, min(head, before - 1))
        runs = newest(cover(regions, Span(1, last)), PAGE)
    shown = await stretch(log, lens, runs)
    return page(
        request,
        "session.html",
        lens=lens,
        state=await state_of(log, session),
        stretch=shown,
        live=shown.last == head and at is None,
        at=at,
        region=None,
    )


@router.get("/before/{seq}")
async def show_earlier(
    request: Request,
    _: Reader,
    log: CallerLog,
    session: SessionName,
    seq: Seq,
    depth: Depth = 0,
) -> Response:
    """What comes before an entry, to be put above it."""
    lens = await Lens.of(log, session)
    runs = newest(cover(lens.regions(), Span(1, min(seq - 1, lens.head))), PAGE) if seq > 1 else []
    shown = await stretch(log, lens, runs)
    return page(
        request, "timeline_earlier.html", lens=lens, stretch=shown, depth=depth + 1, region=None
    )


@router.get("/live")
async def follow_timeline(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    first: Annotated[int, Query(ge=1, le=MAX_INTEGER)],
    seen: Annotated[int | None, Query(ge=0, le=MAX_INTEGER)] = None,
) -> Response:
    """The newest page from its first entry on, again whenever the session grows.

    `seen` is the entry that the page ends with: what came while it was hidden is sent at once.
    """
    access = access_of(request)
    head = await log.head(session)

    async def chunks() -> AsyncGenerator[bytes]:
        pace, shown = Pace(service.draining, _LOOK), head if seen is None else seen
        while not pace.is_over:
            now = await log.head(session)
            if now != shown:
                shown = now
                yield fragment(await _live_page(log, session, first))
                pace.restart()
            yield pace.heartbeat()
            await pace.wait()

    return event_stream(chunks(), lambda: access.admit(request), caller.tenant, service.draining)


async def _live_page(log: Log, session: str, first: int) -> str:
    lens = await Lens.of(log, session)
    span = Span(min(first, lens.head), lens.head)
    shown = await stretch(log, lens, newest(cover(lens.regions(), span), _MAX_LIVE))
    return render("timeline_items.html", lens=lens, items=shown.items, region=None)


@router.get("/folds/{seq}")
async def show_fold(
    request: Request,
    _: Reader,
    log: CallerLog,
    session: SessionName,
    seq: Seq,
    after: Annotated[int, Query(ge=0, le=MAX_INTEGER)] = 0,
) -> Response:
    """A fold: its summary, and what it replaces, or replaced before it was undone or superseded."""
    lens = await Lens.of(log, session)
    found = [x for x in lens.regions() if x.fold is not None and x.fold.seq == seq]
    in_effect = bool(found)
    found = found or await _former_regions(log, session, seq)
    return await _opened(request, log, lens, found, after, in_effect=in_effect)


async def _former_regions(log: Log, session: str, seq: int) -> list[Region]:
    """Those of a fold that is in the log, and not in effect."""
    for entry in await log.read(session, Span(seq, seq)):
        value = CODEC.decode(entry)
        if isinstance(value, FoldCompleted):
            fold = Folded(seq, value.fold, tuple(value.spans))
            return [
                Region(span, "fold", fold, first=nth == 0) for nth, span in enumerate(fold.spans)
            ]
    raise InvalidInput(f"Entry {seq} is not a fold.", "The session's timeline shows its folds.")


@router.get("/branches/{seq}")
async def show_branch(
    request: Request,
    _: Reader,
    log: CallerLog,
    session: SessionName,
    seq: Seq,
    after: Annotated[int, Query(ge=0, le=MAX_INTEGER)] = 0,
) -> Response:
    """What was left behind when the session was rewound or cleared."""
    lens = await Lens.of(log, session)
    found = [x for x in lens.regions() if x.kind == "branch" and seq in x.span]
    if not found:
        raise InvalidInput(f"Entry {seq} is on the line.", "The session's timeline shows it.")
    return await _opened(request, log, lens, found[:1], after)


async def _opened(  # noqa: PLR0913 - what is shown, from where, and how
    request: Request,
    log: Log,
    lens: Lens,
    regions: list[Region],
    after: int,
    *,
    in_effect: bool = True,
) -> Response:
    """A page of the entries in regions: a part of the timeline, or a page of its own."""
    region = next((x for x in regions if x.span.last > after), regions[-1])
    name, first = lens.info.session, max(region.span.first, after + 1)
    runs = oldest([Run(Span(first, region.span.last))], PAGE) if first <= region.span.last else []
    # What became of the messages of a former fold does not depend on it.
    shown = await stretch(log, lens, runs, region if in_effect else None)
    seq = region.fold.seq if region.fold else region.span.last
    place = session_url(name, f"/{'folds' if region.fold else 'branches'}/{seq}")
    more = shown.last < max(x.span.last for x in regions)
    template = "region_part.html" if request.headers.get("hx-request") else "region.html"
    head = await items_of(log, lens, [Run(region.span, region)]) if not after else []
    return page(
        request,
        template,
        lens=lens,
        stretch=shown,
        region=region,
        card=head[0] if head else None,
        in_effect=in_effect,
        place=place,
        more=more,
        state=await state_of(log, name),
    )


@router.get("/entries/{seq}/parts/{index}")
async def show_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    _: Reader,
    log: CallerLog,
    session: SessionName,
    seq: Seq,
    index: Index,
    offset: Offset = 0,
) -> Response:
    """The text of one part, whole or a piece of it."""
    entry = await _message(log, session, seq)
    info = await log.info(session)
    shapes = shapes_of(wire_of(info.format), entry)[1]
    if index >= len(shapes):
        raise InvalidInput(f"There is no part {seq}.{index}.", "The session's timeline shows them.")
    text = shapes[index].text
    return page(
        request,
        "part.html",
        session=session,
        ref=PartRef(seq, index),
        text=text[offset : offset + _MAX_PART],
        offset=offset,
        end=min(len(text), offset + _MAX_PART),
        chars=len(text),
    )


@router.get("/entries/{seq}/body")
async def download_entry(_: Reader, log: CallerLog, session: SessionName, seq: Seq) -> Response:
    """A message as it lies in the log, byte for byte, as a file to keep."""
    entry = await _message(log, session, seq)
    headers = {
        "Content-Disposition": f'attachment; filename="entry-{seq}.json"',
        "Content-Security-Policy": INERT,
    }
    return Response(entry.body, headers=headers, media_type="application/json")


async def _message(log: Log, session: str, seq: int) -> Entry:
    for entry in await log.read(session, Span(seq, seq)):
        if entry.kind == Message.KIND and not entry.forgotten:
            return entry
    raise InvalidInput(f"Entry {seq} is not a message.", "The session's timeline shows them.")
