"""A request: what was sent, each part with its reason; what was left out; and the body itself."""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, NamedTuple, cast

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import JsonValue

from refold.console.items import MAX_TEXT, Lens, MessageItem, Run, items_of, oldest
from refold.console.pages import Page, escaped_json, page
from refold.errors import InvalidInput, Unrebuildable
from refold.fold.debt import OpenFold, RuleState
from refold.gateway.sent_body import SentBody, sent_body
from refold.log import CODEC, Entry, Log, Outline, PartRef, Requested, Span, Used
from refold.log.entry import spans_of
from refold.models.receipt import Basis
from refold.service.api import schemas
from refold.service.api.requests import record_of
from refold.service.api.routing import CallerLog, Reader, ServiceDep, SessionName, using
from refold.service.api.schemas import MAX_INTEGER, Seq
from refold.service.api.sessions import INERT, json_list, read_page, state_of
from refold.session.explain import explain_past
from refold.view.explain import Explanation, causes
from refold.view.explanation import Line, sentence
from refold.view.plan import Omission, Reason
from refold.wire import Insert

router = APIRouter(prefix="/sessions/{session}/requests", route_class=Page)
PAGE: Final = 100
"""Messages of a request that one page shows."""
_MAX_BESIDE: Final = 100_000
"""Characters of instructions or tools that a page shows."""
_MAX_TOOLS: Final = 400_000
"""Characters of all of them; what finds no room is in the saved body."""
_NEAR: Final = 500
"""Entries in which the request before and after it and its usage are looked for."""
_MAX_INLINE: Final = 200_000
"""Bytes of a body that a command has in itself; a larger one it reads from the saved file."""
_ROLES: Final = {"prompt": "user", "reply": "assistant", "return": "tool", "system": "system"}
_RECORDS: Final = frozenset({Requested.KIND})
_USES: Final = frozenset({Requested.KIND, Used.KIND})
_CURL_HEADERS: Final = ("anthropic-version", "anthropic-beta", "openai-beta")

Offset = Annotated[int, Query(ge=0, le=MAX_INTEGER)]
Place = Annotated[int, Query(ge=1, le=MAX_INTEGER)]
Nth = Annotated[int, Path(ge=0, le=MAX_INTEGER)]


@dataclass(frozen=True, slots=True)
class InsertItem:
    """A message that was sent and is not in the log."""

    SORT: ClassVar[str] = "insert"
    nth: int
    before: int
    """The entry it stands in front of."""
    role: str
    reason: str
    sentence: str
    tokens: int
    text: str
    chars: int
    sources: tuple[PartRef, ...]


class SentMessage(NamedTuple):
    """A message of the log as it was sent, whole or in part."""

    item: MessageItem
    before: int
    """Its tokens in the log."""
    after: int
    """Those that were sent."""

    SORT = "sent"


class Neighbors(NamedTuple):
    """What is near a request in the log."""

    before: int | None
    comparable: bool
    """Whether the request before can be made again."""
    after: int | None
    used: Used | None


class PastRequest(NamedTuple):
    """A request, and all that is known of it."""

    record: schemas.RequestRecord
    explanation: Explanation
    lens: Lens
    sent: SentBody
    neighbors: Neighbors

    @property
    def places(self) -> "list[int | InsertItem]":
        """What was sent, in order: entries of the log, and messages that are not in it."""
        inserts = insert_items(self.lens.plan.layout.inserts if self.lens.plan else (), self)
        places: list[int | InsertItem] = []
        for line in self.explanation.lines:
            while inserts and inserts[0].before <= line.seq:
                places.append(inserts.pop(0))
            if not line.reason:
                places.append(line.seq)
        return [*places, *inserts]

    @property
    def left_out(self) -> list[Omission]:
        """What was not sent, in runs, with the reason of each."""
        runs = [*self.explanation.unlisted]
        absent = (line for line in self.explanation.lines if line.reason)
        runs += [Omission(Span(x.seq, x.seq), cast("Reason", x.reason)) for x in absent]
        return merged(runs)

    @property
    def debt(self) -> OpenFold | None:
        """What folds had cost before it, less what they saved; None where no account is kept."""
        basis = Basis.parse(self.neighbors.used.basis) if self.neighbors.used else None
        return RuleState.of(basis.rule.state).now if basis and basis.rule else None

    @property
    def cause(self) -> str:
        """Why it changed what had been sent before; empty if it only added to it."""
        return causes(self.explanation.cause) if self.explanation.cause else ""


def insert_items(inserts: Iterable[Insert], request: PastRequest) -> list[InsertItem]:
    counted = request.explanation.inserts
    return [
        InsertItem(
            nth,
            insert.before,
            _ROLES.get(insert.kind, insert.kind),
            insert.reason,
            sentence(insert.reason, added=True),
            counted[nth].tokens,
            insert.text[:MAX_TEXT],
            len(insert.text),
            insert.sources,
        )
        for nth, insert in enumerate(inserts)
    ]


def merged(runs: Iterable[Omission]) -> list[Omission]:
    """The runs in order; those that follow one another for one reason as one."""
    found: list[Omission] = []
    for run in sorted(runs, key=lambda run: run.span):
        last = found[-1] if found else None
        if last and last.reason == run.reason and run.span.first <= last.span.last + 1:
            end = max(last.span.last, run.span.last)
            found[-1] = Omission(Span(last.span.first, end), run.reason)
        else:
            found.append(run)
    return found


async def past_request(log: Log, session: str, seq: int) -> PastRequest:
    """A request by its record. Raises Unrebuildable if it cannot be made again."""
    record = record_of(await record_entry(log, session, seq))
    lens = await Lens.of(log, session, seq)
    # What is pinned or folded now says nothing of a past request: its plan does.
    then = Lens(lens.info, Outline(), lens.plan, seq)
    return PastRequest(
        record,
        await explain_past(log, session, seq, every=False),
        then,
        await sent_body(log, session, seq),
        await neighbors(log, session, seq),
    )


async def record_entry(log: Log, session: str, seq: int) -> Entry:
    for entry in await log.read(session, Span(seq, seq)):
        if entry.kind == Requested.KIND:
            return entry
    raise InvalidInput(
        f"Entry {seq} is not a request.", "The session's timeline shows its requests."
    )


async def neighbors(log: Log, session: str, seq: int) -> Neighbors:
    first = max(0, seq - 1 - _NEAR)
    earlier = await read_page(
        *(log, session), after=first, limit=_NEAR, kinds=_RECORDS, whole=False, last=seq - 1
    )
    before = earlier.entries[-1] if earlier.entries else None
    later = await read_page(
        *(log, session), after=seq, limit=20, kinds=_USES, whole=False, last=seq + _NEAR
    )
    after = [entry.seq for entry in later.entries if entry.kind == Requested.KIND]
    values = map(CODEC.decode, later.entries)
    used = (value for value in values if isinstance(value, Used) and value.request == seq)
    comparable = before is not None and not before.forgotten
    previous = before.seq if before else None
    return Neighbors(previous, comparable, after[0] if after else None, next(used, None))


async def sent_items(log: Log, request: PastRequest, offset: int) -> list[SentMessage | InsertItem]:
    """A page of what was sent."""
    places = request.places[offset : offset + PAGE]
    seqs = [place for place in places if isinstance(place, int)]
    runs = [Run(span) for span in spans_of(seqs)]
    items = await items_of(log, request.lens, runs)
    messages = {item.seq: item for item in items if isinstance(item, MessageItem)}
    lines: dict[int, Line] = {line.seq: line for line in request.explanation.lines}
    return [
        place
        if isinstance(place, InsertItem)
        else SentMessage(messages[place], lines[place].before, lines[place].after)
        for place in places
    ]


@router.get("/{seq}")
async def show_request(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
    offset: Offset = 0,
) -> Response:
    """A request as it was sent; with an offset, more of its messages."""
    try:
        found = await past_request(log, session, seq)
    except Unrebuildable:
        return page(
            request,
            "request_gone.html",
            state=await state_of(log, session),
            record=record_of(await record_entry(log, session, seq)),
            near=await neighbors(log, session, seq),
            session=session,
        )
    places = found.places
    state = await state_of(log, session)
    decision = None
    if not offset and seq == state.last_request and not getattr(service, "read_only", False):
        async with using(service, caller, session) as opened:
            decision = opened.decide().worth
    return page(
        request,
        "request_messages.html" if offset else "request.html",
        state=state,
        decision=decision,
        past=found,
        items=await sent_items(log, found, offset),
        more=offset + PAGE if offset + PAGE < len(places) else None,
        count=len(places),
        instructions=_instructions(found.sent),
        tools=_tools(found.sent),
        settings=_pretty(found.sent.extras.get("settings")),
        session=session,
    )


@router.get("/{seq}/left-out")
async def show_left_out(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    _: Reader,
    log: CallerLog,
    session: SessionName,
    seq: Seq,
    first: Place,
    last: Place,
) -> Response:
    """Some of the entries that a request left out."""
    lens = await Lens.of(log, session, seq)
    last = min(last, lens.head)
    runs = oldest([Run(Span(first, last))], PAGE) if first <= last else []
    items = await items_of(log, Lens(lens.info, Outline(), lens.plan, seq), runs)
    shown = runs[-1].span.last if runs else last
    return page(
        request,
        "left_out.html",
        lens=lens,
        session=session,
        seq=seq,
        items=[item for item in items if isinstance(item, MessageItem)],
        after=shown,
        last=last,
    )


@router.get("/{seq}/inserts/{nth}")
async def show_insert(
    request: Request, _: Reader, log: CallerLog, session: SessionName, seq: Seq, nth: Nth
) -> Response:
    """The whole text of a message that was sent and is not in the log."""
    plan = (await Lens.of(log, session, seq)).plan
    inserts: Sequence[Insert] = plan.layout.inserts if plan else ()
    if nth >= len(inserts):
        raise InvalidInput(f"Request {seq} has no such insert.", "Its page shows those it has.")
    return page(request, "text.html", text=inserts[nth].text[:_MAX_BESIDE])


@router.get("/{seq}/body.json")
async def download_body(_: Reader, log: CallerLog, session: SessionName, seq: Seq) -> Response:
    """The body as a file; only its messages where no more was kept."""
    sent = await sent_body(log, session, seq)
    headers = {
        "Content-Disposition": f'attachment; filename="request-{seq}.json"',
        "Content-Security-Policy": INERT,
    }
    body = sent.body or json_list(sent.messages)
    return Response(body, headers=headers, media_type="application/json")


@router.get("/{seq}/curl")
async def show_curl(
    request: Request, _: Reader, log: CallerLog, session: SessionName, seq: Seq
) -> Response:
    """The command that sends the same again, with the key in a variable."""
    return page(request, "copied.html", text=curl(await sent_body(log, session, seq), seq))


def curl(sent: SentBody, seq: int) -> str:
    """The command that sends a request again; empty if it did not come through the gateway."""
    if not sent.body:
        return ""
    anthropic = sent.path.endswith("/messages")
    key = "x-api-key: $API_KEY" if anthropic else "Authorization: Bearer $API_KEY"
    headers = [f"{name}: {sent.headers[name]}" for name in _CURL_HEADERS if name in sent.headers]
    lines = [
        f'curl "$BASE_URL{sent.path.removeprefix("/v1")}"',
        f'-H "{key}"',
        *(f"-H {shlex.quote(header)}" for header in ("content-type: application/json", *headers)),
    ]
    command = " \\\n  ".join(lines)
    if len(sent.body) > _MAX_INLINE:
        return f"{command} \\\n  --data-binary @request-{seq}.json"
    # The body is one line of JSON, so no line of it can end the text.
    return f"{command} \\\n  --data-binary @- <<'BODY'\n{escaped_json(sent.body.decode())}\nBODY"


def _instructions(sent: SentBody) -> str:
    raw = sent.extras.get("instructions")
    if raw is None:
        return ""
    value: JsonValue = json.loads(raw)
    return value[:_MAX_BESIDE] if isinstance(value, str) else _pretty(raw)


def _tools(sent: SentBody) -> list[tuple[str, str]]:
    """The tools that were defined, each with its definition."""
    value: JsonValue = json.loads(sent.extras.get("tools", b"[]"))
    found: list[tuple[str, str]] = []
    room = _MAX_TOOLS
    for tool in value if isinstance(value, list) else ():
        about: dict[str, JsonValue] = tool if isinstance(tool, dict) else {}
        function = about.get("function")
        name = function.get("name") if isinstance(function, dict) else about.get("name")
        text = json.dumps(tool, ensure_ascii=False, indent=2)[: min(_MAX_BESIDE, room)]
        found.append((str(name or about.get("type") or "tool"), text))
        room -= len(text)
    return found


def _pretty(raw: bytes | None) -> str:
    if raw is None:
        return ""
    return json.dumps(json.loads(raw), ensure_ascii=False, indent=2)[:_MAX_BESIDE]
