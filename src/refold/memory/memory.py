"""Notes that sessions leave to memory; and `forget`, which also erases facts and titles."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal, Protocol
from uuid import NAMESPACE_OID, UUID, uuid5

from pydantic import JsonValue

from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.compactor import Compactor, Remember, from_the_log
from refold.fold.facts import STATE
from refold.fold.job import Job, Make
from refold.fold.summary import Summary, one_line
from refold.fold.write.phrases import HEADINGS
from refold.log import CODEC, Entry, Erased, Forgot, Log, Opened, SessionInfo, Span, Titled
from refold.log.codec import Author, wall_clock
from refold.log.entry import intersect, subtract, union
from refold.log.text import text_of, words
from refold.memory.board import NAME, Fact, all_facts, is_internal
from refold.view import Counter, Plan
from refold.view.view_input import ViewInput

Reason = Literal["trimmed", "overflow", "daily"]
"""Why a note is written: messages leave the view, a provider refused them, a day is over."""

OVERFLOW = "overflow"
"""The trigger of notes that are written because a provider refused a request for its length."""
TRIMMED = "fixed limits"
"""The trigger of notes on messages that leave a view by fixed limits."""

_DIGITS = 32
_REFUSED = (OVERFLOW, "forced")
_MAX_LINES = 10
_LINE = 200
_PAGE: Final = 200
_BATCH: Final = 1_000  # entries
_TITLE_SHARE: Final = 0.8
"""A title with this share of its words forgotten is taken to be made of them."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a session leaves to memory."""

    session: str
    at: int
    """When, in milliseconds since 1970."""
    reason: Reason
    text: str
    fold: UUID | None = None
    """The fold that it comes from, if any."""
    messages: int = 0
    """How many messages it is about."""

    @property
    def digest(self) -> str:
        """Identifies the note.

        It is the same if a fold is made again after a crash, though the words and the time may
        differ. A note without a fold is identified by its words.
        """
        source = self.text if self.fold is None else str(self.fold)
        identity = json.dumps([self.session, self.reason, source])
        return sha256(identity.encode()).hexdigest()[:_DIGITS]


class MemorySink(Protocol):
    """Stores the notes of one tenant."""

    async def write(self, note: Note) -> None:
        """Store the note durably.

        Writing it again changes nothing. Raises a RefoldError if it cannot be stored.
        """
        ...


async def forget(log: Log, session: str, span: Span | None = None) -> Erased:
    """As `Log.forget`, but facts on boards and titles that come from the entries go too.

    Facts and most titles name their sources. A title that a client wrote, or an older version made,
    does not: it goes if most of its words are in the forgotten entries. Whoever has the session or
    a fork of it open, here or in another process, reads it again before its next request.
    """
    facts = 0
    for board in await _boards(log):
        for fact in all_facts(await log.read(board)):
            if await _rests_on(log, fact, session, span):
                await log.forget(board, Span(fact.number, fact.number))
                facts += 1
    titles = await _unsourced_titles(log, session, span) if span is not None else []
    # Titles go first: if a crash left only the titles, nothing would show whose words they hold.
    for seq in titles:
        await log.forget(session, Span(seq, seq))
    info = await log.info(session)
    gone = span or Span(info.own_from, info.entries)
    forks = await _forks(log, session, gone.first)
    erased = await log.forget(session, span)
    author = Author()
    for name in (*([session] if span is not None else ()), *forks):
        with suppress(SessionNotFound, SessionForgotten):
            await log.append(name, [author.draft(Forgot(gone))], expected=None)
    return replace(erased, derived=erased.derived + facts + len(titles))


async def _forks(log: Log, session: str, first: int) -> list[str]:
    """The sessions that share its entries from `first` on, forks of forks too."""
    children: defaultdict[str, list[str]] = defaultdict(list)
    async for info in _all_sessions(log):
        if info.forked_from is not None and (info.forked_at or 0) >= first:
            children[info.forked_from].append(info.session)
    forks = [session]
    for name in forks:
        forks += children[name]
    return forks[1:]


def shares_words(name: str, forgotten: set[str]) -> bool:
    """Whether a title or name seems to be made of forgotten words."""
    # A title that was cut ends in a piece of a word.
    own = {*(words(name)[:-1] if name.endswith("…") else words(name))}
    return bool(own) and len(own & forgotten) >= _TITLE_SHARE * len(own)


async def forgotten_words(log: Log, session: str, span: Span) -> set[str]:
    """The words of the entries in the span, before they are forgotten."""
    found: set[str] = set()
    for batch in _batches(span.first, min(span.last, (await log.info(session)).entries)):
        for entry in await log.read(session, batch):
            if not entry.forgotten:
                found |= {*words(text_of(entry))}
    return found


async def _unsourced_titles(log: Log, session: str, span: Span) -> list[int]:
    """The entries outside of the span whose title names no source and shares the span's words."""
    info = await log.info(session)
    [first] = await log.read(session, Span(1, 1))
    titled = _title_in(first)
    # Few sessions have later titles: they are looked for only if there is one.
    last = info.entries if info.title != titled else 1
    titles = {1: titled} if titled else {}
    for batch in _batches(2, last):
        for entry in await log.read(session, batch):
            if title := _title_in(entry):
                titles[entry.seq] = title
    outside = {seq: title for seq, title in titles.items() if seq not in span}
    if not outside:
        return []
    forgotten = await forgotten_words(log, session, span)
    return [seq for seq, title in outside.items() if shares_words(title, forgotten)]


def _title_in(entry: Entry) -> str | None:
    """The title that an entry sets without naming its source."""
    if entry.forgotten or entry.kind not in (Opened.KIND, Titled.KIND):
        return None
    match CODEC.decode(entry):
        case Opened(title=title, title_source=0) | Titled(title=title, source=0):
            return title
        case _:
            return None


def _batches(first: int, last: int) -> list[Span]:
    return [Span(seq, min(seq + _BATCH - 1, last)) for seq in range(first, last + 1, _BATCH)]


async def _boards(log: Log) -> list[str]:
    return [i.session async for i in _all_sessions(log, search=NAME) if is_internal(i)]


async def _all_sessions(log: Log, search: str | None = None) -> AsyncGenerator[SessionInfo]:
    page = None
    while True:
        found = await log.sessions(search=search, limit=_PAGE, page=page)
        for info in found.sessions:
            yield info
        if (page := found.next) is None:
            return


async def _rests_on(log: Log, fact: Fact, session: str, span: Span | None) -> bool:
    """Whether a fact comes from these entries, in the session itself or in a fork of it."""
    source: str | None = fact.session
    entries = fact.entries
    while source is not None:
        if source == session:
            return span is None or any(span.first <= seq <= span.last for seq in entries)
        try:
            info = await log.info(source)
        except (SessionNotFound, SessionForgotten):
            return False
        entries = tuple(seq for seq in entries if seq <= (info.forked_at or 0))
        source = info.forked_from if entries else None
    return False


def wall_ms() -> int:
    """The time in milliseconds since 1970."""
    return int(wall_clock().timestamp() * 1000)


def remembering(sink: MemorySink, *, now: Callable[[], int] = wall_ms) -> Remember:
    """Writes a note of each summary to the sink; pass it to a session or a `Compactor`.

    If the sink cannot store a note, the fold fails, and the view stays as it is.
    """

    async def remember(summary: Summary, job: Job) -> None:
        if text := noted(summary):
            reason: Reason = "overflow" if job.trigger in _REFUSED else "trimmed"
            await sink.write(Note(job.session, now(), reason, text, job.fold, summary.messages))

    return remember


def noted(summary: Summary) -> str:
    """The text of a note: a model's words or checked claims, else a few lines from the log."""
    if summary.words.strip():
        return summary.words.strip()
    lines: list[str] = []
    if summary.report is not None and not summary.report.refused:
        headings = {*HEADINGS.values()}
        sections = (section for section in summary.sections if section.heading in headings)
        claims = (claim for section in sections for claim in section.claims)
        lines = [f"- {one_line(claim.text, 2 * _LINE)}" for claim in claims]
    return "\n".join(lines or _log_lines(summary))


def _log_lines(summary: Summary) -> list[str]:
    """The user's newest messages, and what the model last said."""
    last = summary.section(STATE)[-1:]
    room = _MAX_LINES - len(last)
    texts = [directive.text for directive in summary.directives if directive.text.strip()]
    newest = texts if len(texts) + bool(summary.omitted) <= room else texts[1 - room :]
    omitted = len(texts) - len(newest) + summary.omitted
    return [
        *([f"- [{omitted} earlier messages of the user]"] if omitted else []),
        *(f'- The user: "{one_line(text, _LINE)}"' for text in newest),
        *(f"- {one_line(claim.text, _LINE)}" for claim in last),
    ]


class _NoSteps:
    """Stores no results: a note is made at once."""

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:  # noqa: ARG002 - nothing is stored under it
        return await work()


class Leaving:
    """Writes notes on what leaves a session's view without a fold.

    That is when a provider refuses a request for its length, or when fixed limits drop turns.
    `make` writes the summaries, and must write their notes itself; without it, or if it fails, the
    log is quoted.
    """

    def __init__(
        self, log: Log, session: str, counter: Counter, remember: Remember, make: Make | None = None
    ) -> None:
        self._session = session
        self._by_log = Compactor(log, counter, from_the_log, remember)
        self._make: Make = make or self._by_log
        self._owed: tuple[Span, ...] = ()
        """What left by fixed limits and has no note yet."""
        self._pause = self._left = 0
        """For how many requests it is not tried again, and how many of those are left."""

    async def all_of(self, inputs: ViewInput, context: JsonValue, limit: float) -> UUID | None:
        """Write a note on everything in the view; the model has `limit` seconds for it.

        Returns the note's id, or None if the view is empty. Raises if not even the extractive
        summary could be written.
        """
        if not inputs.rows:
            return None
        spans = intersect((Span(2, inputs.head),), inputs.outline.on_line(inputs.head))
        digest = sha256(b"\n".join(row.payload for row in inputs.rows)).hexdigest()
        job = self._job(spans, OVERFLOW, digest, context)
        try:
            async with asyncio.timeout(limit):
                await self._make(job, _NoSteps())
        except Exception:  # noqa: BLE001 - whatever a model does, the log can be quoted
            await self._by_log(job, _NoSteps())
        return job.fold

    async def trimmed(self, before: Plan | None, plan: Plan) -> None:
        """Write a note on what this plan drops by fixed limits, and the one before did not.

        If that fails, it raises, and is tried again at later requests, ever less often.
        """
        new = subtract(_limited(plan), _limited(before) if before else ())
        self._owed = union((*self._owed, *new))
        self._left = 0 if new else max(0, self._left - 1)
        if not self._owed or self._left:
            return
        self._pause = self._left = 2 * self._pause + 1
        await self._by_log(self._job(self._owed, TRIMMED, "", None), _NoSteps())
        self._owed, self._pause, self._left = (), 0, 0

    def _job(self, spans: tuple[Span, ...], trigger: str, digest: str, context: JsonValue) -> Job:
        # The same id for the same entries, so that there is one note of them.
        identity = f"{self._session}\0{trigger}\0{spans}\0{digest}"
        return Job(self._session, uuid5(NAMESPACE_OID, identity), spans, trigger, context=context)


def _limited(plan: Plan) -> Iterable[Span]:
    return (gone.span for gone in plan.layout.omissions if gone.reason == "window")
