"""A fold: what it would do before it is made, its sources, and how a person changes it.

Each change is a form of its own, sent with the token of the browser's session, and calls the
function of the API that does it: the same roles, the same entries in the log.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from refold.console.difference import counter_of, sent_messages, uncached_dollars
from refold.console.pages import SEE_OTHER, Page, fields_of, is_part, page, session_url
from refold.console.requests import past_request
from refold.errors import InvalidInput, NothingToFold, RefoldError, Unrebuildable
from refold.fold.summary import HAND, Claim, Summary, parse
from refold.log import CODEC, FoldCompleted, FoldFailed, Log, Message, Outline, PartRef, Span
from refold.log.entry import subtract, up_to
from refold.models.experience import Setup
from refold.recall.text import rebuilt_with_sources, shapes_of, wire_of
from refold.service.api import folds as api
from refold.service.api import schemas
from refold.service.api.routing import CallerLog, Reader, ServiceDep, SessionName, Writer
from refold.service.api.schemas import MAX_INTEGER, FoldId, Seq
from refold.service.api.sessions import read_page, state_of
from refold.service.callers import Caller
from refold.service.service import Service
from refold.session.compaction import preview_of
from refold.session.explain import last_model
from refold.settings import load_settings
from refold.wire import wire_for

router = APIRouter(prefix="/sessions/{session}", route_class=Page)
_MAX_EVIDENCE: Final = 600
"""Characters of a source that are shown beside a claim."""
_MAX_SHOWN: Final = 120
"""Claims, findings and names that a page shows of each sort."""
_MAX_EDIT: Final = 600_000  # bytes of a form: percent-encoding takes three times the text
_MAX_FOCUS: Final = 2_000
_ENTRIES_BACK: Final = 2_000
_OPENING: Final = re.compile(r"\A\[[^\n]*\]\s*")
"""The line that says what a summary is: an edited one gets its own."""
_ENDS: Final = frozenset({FoldCompleted.KIND, FoldFailed.KIND})


class Source(NamedTuple):
    """A part of the log that a claim rests on."""

    ref: PartRef
    role: str
    text: str
    """As much of it as is shown, around the quote; empty if it was forgotten."""


class Evidence(NamedTuple):
    """A claim of a summary, and what the log has for it."""

    heading: str
    claim: Claim
    sources: list[Source]


class Price(NamedTuple):
    """What a change of a fold costs the provider's cache with the next request."""

    tokens: int
    """Behind the summary: they are sent again in full."""
    dollars: float | None


def may_change(service: Service, caller: Caller) -> bool:
    """Whether this caller may change sessions here, for the pages to offer it."""
    return not _reads_only(service) and caller.may("write")


@router.get("/folds/new")
async def preview_fold(
    request: Request, caller: Reader, log: CallerLog, service: ServiceDep, session: SessionName
) -> Response:
    """What a compaction would do now. Nothing is changed."""
    preview, nothing = None, ""
    state = await state_of(log, session)
    try:
        preview = await _preview(caller, log, service, session)
    except NothingToFold as error:
        nothing = error.what
    return page(
        request,
        "fold_new.html",
        state=state,
        preview=preview,
        nothing=nothing,
        max_focus=_MAX_FOCUS,
        may_change=may_change(service, caller),
        reads_only=_reads_only(service),
    )


async def _preview(caller: Caller, log: Log, service: Service, session: str) -> schemas.Preview:
    if not _reads_only(service):
        return await api.preview_fold(caller, service, session)
    # Without a gateway, the session's own profile and its newest model say what would be done.
    settings = service.settings
    with suppress(RefoldError):  # a profile of another machine
        settings = load_settings((await log.info(session)).profile)
    setup = Setup.of(await last_model(log, session), settings.profile, models=settings.models)
    return schemas.Preview.model_validate(await preview_of(log, session, setup))


@router.post("/folds")
async def make_fold(
    request: Request, caller: Writer, log: CallerLog, service: ServiceDep, session: SessionName
) -> Response:
    """Begin a compaction, and lead to its progress."""
    focus = (await fields_of(request)).get("focus", "").strip()
    _check_writable(service)
    if len(focus) > _MAX_FOCUS:
        raise InvalidInput(f"The focus is longer than {_MAX_FOCUS} characters.", "Shorten it.")
    body = schemas.NewFold(focus=focus or None, wait=False)
    folded = await api.start_fold(caller, log, service, session, body, request, Response())
    return RedirectResponse(session_url(session, f"/folds/under-way/{folded.fold}"), SEE_OTHER)


@router.get("/folds/under-way/{fold}")
async def follow_fold(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    fold: FoldId,
) -> Response:
    """Whether a compaction is still being made, and what came of it."""
    running = [x for x in (await log.outlined(session)).outline.running if x.fold == fold]
    end = None if running else await _end_of(log, session, fold)
    if isinstance(end, int):
        where = session_url(session, f"/folds/{end}/summary")
        if is_part(request):
            return Response(headers={"HX-Redirect": where})
        return RedirectResponse(where, SEE_OTHER)
    began = None
    for each in running:
        [entry] = await log.read(session, Span(each.seq, each.seq))
        began = api.fold_of(entry, "under way")
    template = "fold_progress.html" if is_part(request) else "fold_under_way.html"
    return page(
        request,
        template,
        state=await state_of(log, session),
        fold=fold,
        began=began,
        reason=end or "",
        may_change=may_change(service, caller),
    )


@router.post("/folds/under-way/{fold}/cancel")
async def cancel_fold(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    fold: FoldId,
) -> Response:
    """Stop a compaction that is being made."""
    await fields_of(request)
    _check_writable(service)
    await api.cancel_fold(caller, log, service, session, fold)
    return RedirectResponse(session_url(session, f"/folds/under-way/{fold}"), SEE_OTHER)


@router.get("/folds/{seq}/summary")
async def show_summary(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
) -> Response:
    """A summary: each claim beside its evidence, and what the check changed."""
    completed = await _completed(log, session, seq)
    summary = parse(completed.summary)
    info, outline, _ = await log.outlined(session)
    in_effect = any(fold.seq == seq for fold in outline.folds)
    [entry] = await log.read(session, Span(seq, seq))
    findings = summary.report.findings[:_MAX_SHOWN] if summary.report else ()
    price = await _price(log, service, session, summary) if in_effect else None
    return page(
        request,
        "fold_summary.html",
        state=await state_of(log, session),
        fold=api.fold_of(entry, "stands" if in_effect else "beneath"),
        summary=summary,
        by_hand=summary.by == HAND,
        claims=await _evidence(log, session, summary),
        findings=[(each, await _sources(log, session, each.sources)) for each in findings],
        more_claims=max(0, sum(len(x.claims) for x in summary.sections) - _MAX_SHOWN),
        max_shown=_MAX_SHOWN,
        in_effect=in_effect,
        superseded=None if in_effect else _superseded_by(outline, completed, seq),
        back=() if in_effect else _back(outline, completed, info.entries),
        price=price,
        words=summary.words or _OPENING.sub("", summary.text),
        may_change=in_effect and may_change(service, caller),
        reads_only=_reads_only(service),
    )


@router.post("/folds/{seq}/edit")
async def edit_summary(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
) -> Response:
    """Put a person's words in the place of a summary, and lead to the fold that has them."""
    text = (await fields_of(request, limit=_MAX_EDIT)).get("text", "").replace("\r\n", "\n")
    _check_writable(service)
    if not text.strip():
        raise InvalidInput("The summary is empty.", "Write one, or undo the compaction.")
    if len(text) > schemas.MAX_SUMMARY:
        raise InvalidInput(f"The summary is longer than {schemas.MAX_SUMMARY:,} characters.")
    completed = await _completed(log, session, seq)
    body = schemas.NewSummary(text=text)
    made = await api.edit_summary(caller, log, service, session, completed.fold, body)
    return RedirectResponse(session_url(session, f"/folds/{made.seq}/summary"), SEE_OTHER)


@router.post("/folds/{seq}/undo")
async def undo_fold(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
) -> Response:
    """Take a compaction back, and lead to its page, which says what is in the context again."""
    await fields_of(request)
    _check_writable(service)
    completed = await _completed(log, session, seq)
    await api.undo_fold(caller, log, service, session, completed.fold)
    return RedirectResponse(session_url(session, f"/folds/{seq}/summary"), SEE_OTHER)


@router.post("/folds/{seq}/unfold")
async def unfold_part(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    caller: Writer,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
) -> Response:
    """Show some of the entries again; the fold stays for the rest."""
    fields = await fields_of(request)
    _check_writable(service)
    completed = await _completed(log, session, seq)
    first, last = (_entry_number(fields.get(name, "")) for name in ("first", "last"))
    if first > last or not any(first <= x.last and x.first <= last for x in completed.spans):
        raise InvalidInput(
            f"Entries {first} to {last} are not in this fold.",
            "It replaces " + ", ".join(f"{x.first} to {x.last}" for x in completed.spans[:5]) + ".",
        )
    body = schemas.Run(first=first, last=last)
    await api.unfold_entries(caller, log, service, session, body)
    return _to_entry(session, first)


def _check_writable(service: Service) -> None:
    if _reads_only(service):
        raise InvalidInput("This console only reads.", "Use `refold serve` to change sessions.")


def _reads_only(service: Service) -> bool:
    return getattr(service, "read_only", False)


def _entry_number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0  # noqa: PLR2004 - 63 bits
    if not 1 <= number <= MAX_INTEGER:
        raise InvalidInput("That is not an entry.", "Entries are numbered from 1.")
    return number


def _to_entry(session: str, seq: int) -> Response:
    return RedirectResponse(f"{session_url(session)}?at={seq}#e{seq}", SEE_OTHER)


async def _completed(log: Log, session: str, seq: int) -> FoldCompleted:
    for entry in await log.read(session, Span(seq, seq)):
        value = CODEC.decode(entry)
        if isinstance(value, FoldCompleted):
            return value
    raise InvalidInput(f"Entry {seq} is not a fold.", "The session's timeline shows its folds.")


async def _end_of(log: Log, session: str, fold: UUID) -> int | str:
    """The entry that completed a fold, or why it was not made."""
    head = await log.head(session)
    batch = await read_page(
        *(log, session), after=max(0, head - _ENTRIES_BACK), limit=_ENTRIES_BACK, kinds=_ENDS
    )
    for entry in reversed(batch.entries):
        match CODEC.decode(entry):
            case FoldCompleted(fold=found) if found == fold:
                return entry.seq
            case FoldFailed(fold=found, reason=reason) if found == fold:
                return reason or "no reason was given"
            case _:
                pass
    raise InvalidInput("That fold is not known.", "The session's timeline shows its folds.")


def _superseded_by(outline: Outline, completed: FoldCompleted, seq: int) -> int | None:
    """The later fold in effect over the messages of one that no longer is."""
    first = completed.spans[0].first
    over = (x.seq for x in outline.folds if any(first in span for span in x.spans))
    return next((each for each in over if each > seq), None)


def _back(outline: Outline, completed: FoldCompleted, head: int) -> tuple[Span, ...]:
    """The entries of an undone fold that the next request has again."""
    others = [span for fold in outline.folds for span in fold.spans]
    off = subtract(up_to(head), outline.on_line(head))
    return subtract(completed.spans, [*others, *off])


async def _evidence(log: Log, session: str, summary: Summary) -> list[Evidence]:
    claims = [(section.heading, claim) for section in summary.sections for claim in section.claims]
    return [
        Evidence(heading, claim, await _sources(log, session, claim.sources, claim.quote))
        for heading, claim in claims[:_MAX_SHOWN]
    ]


async def _sources(
    log: Log, session: str, refs: Iterable[PartRef], quote: str = ""
) -> list[Source]:
    wire = wire_of((await log.info(session)).format)
    found: list[Source] = []
    for ref in [*refs][:3]:
        entries = await log.read(session, Span(ref.seq, ref.seq))
        entry = entries[0] if entries else None
        if entry is None or entry.forgotten or entry.kind != Message.KIND:
            found.append(Source(ref, "", ""))
            continue
        role, shapes = shapes_of(wire, entry)
        text = shapes[ref.index].text if ref.index < len(shapes) else ""
        at = max(0, text.find(quote) - _MAX_EVIDENCE // 3) if quote else 0
        cut = f"{'…' if at else ''}{text[at : at + _MAX_EVIDENCE]}"
        found.append(Source(ref, role, cut + ("…" if len(text) > at + _MAX_EVIDENCE else "")))
    return found


async def _price(log: Log, service: Service, session: str, summary: Summary) -> Price | None:
    """What the provider's cache loses if this summary changes; None if nobody was sent it."""
    record = (await log.outlined(session)).outline.record
    shown = next((message.text for message in summary.shown), "")
    if record is None or not shown:
        return None
    try:
        past = await past_request(log, session, record)
        sent = await rebuilt_with_sources(log, session, record)
    except (Unrebuildable, InvalidInput):
        return None
    messages = sent_messages(wire_for(past.lens.info.format), counter_of(past), sent)
    at = next((nth for nth, each in enumerate(messages) if shown in each.text), None)
    if at is None:
        return None
    tokens = sum(each.tokens for each in messages[at + 1 :])
    return Price(tokens, uncached_dollars(past, tokens, service.settings.models))
