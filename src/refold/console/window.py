"""The window over time: what each request was made of, and what of it the provider had cached."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse

from refold.console.pages import HEADERS, Page, page, render, short
from refold.errors import RefoldError
from refold.log import CODEC, Entry, FoldCompleted, Log, Requested, Span, Used
from refold.models.catalog import Usage, counter_for
from refold.recall.text import plan_of
from refold.service.api.routing import CallerLog, Reader, SessionName
from refold.service.api.schemas import MAX_INTEGER, moment
from refold.service.api.sessions import INERT, read_page, state_of
from refold.view.budget import PER_MESSAGE, Account
from refold.view.plan import Layout
from refold.view.record import hashes_of, layout_after, recorded

router = APIRouter(prefix="/sessions/{session}", route_class=Page)
MAX_REQUESTS: Final = 240
"""Requests that one picture shows."""
MAX_ENTRIES: Final = 1_000
"""Entries that are looked through for them."""
_KINDS: Final = frozenset({FoldCompleted.KIND, Requested.KIND, Used.KIND})
LAYERS: Final = (
    ("instructions", "Instructions"),
    ("tools", "Tools"),
    ("summaries", "Summaries"),
    ("messages", "Messages"),
)
CACHE: Final = (
    ("read", "Read from the cache"),
    ("written", "Written to the cache"),
    ("fresh", "Not in the cache"),
)
WIDTH, LEFT, RIGHT = 1_200, 58, 12
TOP, HEIGHT, GAP, CACHE_HEIGHT, BOTTOM = 16, 300, 34, 96, 26
_LINES: Final = 4
"""Horizontal lines of a scale, without its zero."""
_MAX_WIDE: Final = 44.0
"""How wide one request may be: few do not fill the picture."""
_NEAR: Final = 3
"""How many times the largest request a limit may be to be in the picture."""
_SUMMARY: Final = "summary"

Place = Annotated[int | None, Query(ge=1, le=MAX_INTEGER)]


@dataclass(slots=True)
class Sent:
    """One request: what it was made of, and what came of it."""

    seq: int
    at: datetime
    model: str
    scope: str
    account: Account
    summaries: int
    usage: Usage | None = None
    estimated: bool = False
    cost: float | None = None
    unmanaged: float | None = None

    @property
    def layers(self) -> dict[str, int]:
        """Its tokens by what they are for, from the bottom to the top."""
        account = self.account
        return {
            "instructions": account.system,
            "tools": account.tools,
            "summaries": min(self.summaries, account.conversation),
            "messages": max(0, account.conversation - self.summaries),
        }

    @property
    def cache(self) -> dict[str, int]:
        """The provider's count of what was sent: read from its cache, written to it, neither."""
        usage = self.usage or Usage(0)
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        return {"read": usage.cache_read, "written": usage.cache_write, "fresh": fresh}

    @property
    def cached(self) -> float | None:
        usage = self.usage
        return usage.cache_read / usage.input if usage and usage.input else None


class Compaction(NamedTuple):
    """A fold that was completed before a request."""

    seq: int
    at: datetime
    before: int
    """How many of the requests came before it."""


class History(NamedTuple):
    """The requests of a picture."""

    requests: list[Sent]
    compactions: list[Compaction]
    first: int
    """The entry from which they were looked for."""
    last: int
    head: int


async def history(log: Log, session: str, last: int | None = None) -> History:
    """The newest requests up to an entry, of all scopes."""
    head = await log.head(session)
    last = head if last is None else min(last, head)
    first = max(1, last - MAX_ENTRIES + 1)
    after, entries = first - 1, list[Entry]()
    while after < last:
        batch = await read_page(
            *(log, session), after=after, limit=last - after, kinds=_KINDS, whole=False, last=last
        )
        entries += batch.entries
        if batch.next is None:
            break
        after = batch.next
    reader = _Reader(log, session)
    for entry in entries:
        await reader.take(entry)
    requests, compactions = reader.requests, reader.compactions
    if len(requests) > MAX_REQUESTS:
        cut = len(requests) - MAX_REQUESTS
        requests = requests[cut:]
        first = requests[0].seq
        compactions = [
            each._replace(before=each.before - cut) for each in compactions if each.before >= cut
        ]
    return History(requests, compactions, first, last, head)


@dataclass(slots=True)
class _Reader:
    """Reads requests in order: each record is a difference to the one before it in its scope."""

    log: Log
    session: str
    requests: list[Sent] = field(default_factory=list[Sent])
    compactions: list[Compaction] = field(default_factory=list[Compaction])
    _by_seq: dict[int, Sent] = field(default_factory=dict[int, Sent])
    _layouts: dict[int, Layout] = field(default_factory=dict[int, Layout])
    _texts: dict[str, str] = field(default_factory=dict[str, str])
    _tokens: dict[str, int] = field(default_factory=dict[str, int])

    async def take(self, entry: Entry) -> None:
        if entry.holes:
            [entry] = await self.log.read(self.session, Span(entry.seq, entry.seq))
        match CODEC.decode(entry):
            case Requested() as value:
                await self._request(entry, value)
            case FoldCompleted():
                found = Compaction(entry.seq, moment(entry.at), len(self.requests))
                self.compactions.append(found)
            case Used(request=request) as used if request in self._by_seq:
                self._used(self._by_seq[request], used)
            case _:
                pass

    async def _request(self, entry: Entry, value: Requested) -> None:
        try:
            account = recorded(value).account
            layout = await self._layout(entry.seq, value)
        except RefoldError:  # something that it was made of is gone
            return
        summaries = sum(
            self._count(value.model, insert.text)
            for insert in layout.inserts
            if insert.reason == _SUMMARY
        )
        sent = Sent(entry.seq, moment(entry.at), value.model, entry.scope, account, summaries)
        self.requests.append(sent)
        self._by_seq[entry.seq] = sent

    async def _layout(self, seq: int, value: Requested) -> Layout:
        before = self._layouts.pop(value.chain[-1], None) if value.chain else Layout()
        if before is None:  # the record before it is not among these entries
            layout = (await plan_of(self.log, self.session, seq)).layout
        else:
            for name in hashes_of([value]) - self._texts.keys():
                self._texts[name] = (await self.log.artifact(name)).data.decode()
            layout = layout_after(before, value, self._texts)
        self._layouts[seq] = layout
        return layout

    def _count(self, model: str, text: str) -> int:
        if text not in self._tokens:
            self._tokens[text] = counter_for(model).text(text) + PER_MESSAGE
        return self._tokens[text]

    @staticmethod
    def _used(sent: Sent, used: Used) -> None:
        usage = used.usage if isinstance(used.usage, dict) else {}
        counts = {name: x for name in Usage._fields if isinstance(x := usage.get(name), int)}
        if "input" in counts:
            sent.usage = Usage(**counts)
        sent.estimated = usage.get("estimated") is True
        sent.cost = used.cost
        match used.unmanaged:
            case {"cost": int() | float() as cost}:
                sent.unmanaged = float(cost)
            case _:
                pass


class Tick(NamedTuple):
    """A line of a scale."""

    y: float
    label: str


class Bar(NamedTuple):
    """Where a request is in the picture."""

    x: float
    width: float
    sent: Sent


class Shape(NamedTuple):
    """All bars of one kind, as one path."""

    name: str
    label: str
    path: str


class Mark(NamedTuple):
    """A compaction in the picture."""

    x: float
    compaction: Compaction


class Chart(NamedTuple):
    """The picture, in the units of its own coordinates."""

    height: float
    layers: list[Shape]
    ticks: list[Tick]
    limit: str
    """The line of the limit; empty if it is far above everything."""
    cache: list[Shape]
    cache_ticks: list[Tick]
    bars: list[Bar]
    marks: list[Mark]


def chart(requests: Sequence[Sent], compactions: Iterable[Compaction]) -> Chart:
    """The picture of these requests: a stack for each, the limit, and the cache beneath."""
    room = WIDTH - LEFT - RIGHT
    wide = min(_MAX_WIDE, room / max(1, len(requests)))
    gap = min(2.0, wide / 4)
    bars = [Bar(LEFT + nth * wide, wide - gap, sent) for nth, sent in enumerate(requests)]
    most = max((sent.account.sent for sent in requests), default=0)
    limits = [sent.account.limit for sent in requests if 0 < sent.account.limit <= _NEAR * most]
    scale = _Scale(max([most, *limits, 1]), TOP, TOP + HEIGHT)
    below = TOP + HEIGHT + GAP
    cache_most = max((sum(sent.cache.values()) for sent in requests), default=0)
    cache_scale = _Scale(max(cache_most, 1), below, below + CACHE_HEIGHT)
    limit = "".join(
        f"M{bar.x:.1f} {scale.y(bar.sent.account.limit):.1f}h{wide:.1f}"
        for bar in bars
        if bar.sent.account.limit in limits
    )
    return Chart(
        below + CACHE_HEIGHT + BOTTOM,
        [*_stacks(LAYERS, bars, [sent.layers for sent in requests], scale)],
        scale.ticks(_LINES),
        limit,
        [*_stacks(CACHE, bars, [sent.cache for sent in requests], cache_scale)],
        cache_scale.ticks(2),
        bars,
        [Mark(LEFT + each.before * wide - gap / 2, each) for each in compactions],
    )


class _Scale:
    """From tokens to heights; its top is a round number."""

    def __init__(self, most: int, top: float, bottom: float) -> None:
        self._top, self._bottom = top, bottom
        power = 10 ** (len(str(most)) - 1)
        steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
        self._most = next(step * power for step in steps if step * power >= most)

    def y(self, tokens: float) -> float:
        return self._bottom - tokens / self._most * (self._bottom - self._top)

    def ticks(self, count: int) -> list[Tick]:
        values = [round(nth * self._most / count) for nth in range(count + 1)]
        return [Tick(self.y(value), short(value)) for value in values]


def _stacks(
    names: Iterable[tuple[str, str]],
    bars: Sequence[Bar],
    values: Sequence[dict[str, int]],
    scale: _Scale,
) -> Iterator[Shape]:
    below = [0] * len(bars)
    for name, label in names:
        pieces: list[str] = []
        for nth, bar in enumerate(bars):
            if height := values[nth][name]:
                low, high = scale.y(below[nth]), scale.y(below[nth] + height)
                below[nth] += height
                pieces.append(f"M{bar.x:.1f} {low:.1f}V{high:.1f}h{bar.width:.1f}V{low:.1f}z")
        yield Shape(name, label, "".join(pieces))


@router.get("/window")
async def show_window(
    request: Request, _: Reader, log: CallerLog, session: SessionName, last: Place = None
) -> Response:
    """What each request was made of, over time."""
    found = await history(log, session, last)
    return page(
        request,
        "window.html",
        state=await state_of(log, session),
        history=found,
        chart=chart(found.requests, found.compactions),
        layers=LAYERS,
        cache=CACHE,
        last=last,
    )


@router.get("/window.svg")
async def export_window(
    _: Reader, log: CallerLog, session: SessionName, last: Place = None
) -> Response:
    """The same picture as a file, for a report."""
    found = await history(log, session, last)
    picture = chart(found.requests, found.compactions)
    svg = render("window_chart.svg", chart=picture, session=session, alone=True)
    headers = {
        **HEADERS,
        "Content-Security-Policy": INERT,
        "Content-Disposition": 'attachment; filename="window.svg"',
    }
    return Response(svg.encode(errors="replace"), headers=headers, media_type="image/svg+xml")


@router.get("/cost.json")
async def window_costs(
    _: Reader, log: CallerLog, session: SessionName, last: Place = None
) -> Response:
    """What the requests of the picture have cost so far, beside sending everything."""
    found = await history(log, session, last)
    priced = [x for x in found.requests if x.cost is not None and x.unmanaged is not None]
    costs = {
        "seq": [each.seq for each in priced],
        "paid": [*accumulate(each.cost or 0.0 for each in priced)],
        "everything": [*accumulate(each.unmanaged or 0.0 for each in priced)],
    }
    return JSONResponse(costs, headers=dict(HEADERS))
