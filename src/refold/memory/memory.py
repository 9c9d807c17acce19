"""What a memory is given, and what it must do with it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal, Protocol
from uuid import NAMESPACE_OID, UUID, uuid5

from pydantic import JsonValue

from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.compactor import Compactor, Remember, from_the_log
from refold.fold.extractive import STATE
from refold.fold.job import Job, Make
from refold.fold.summary import Summary, one_line
from refold.fold.write.phrases import HEADINGS
from refold.log import CODEC, Entry, Erased, Log, Opened, Span, Titled
from refold.log.codec import wall_clock
from refold.log.entry import intersect, subtract, union
from refold.log.text import text_of, words
from refold.memory.board import NAME, PROFILE, Fact, all_facts
from refold.view import Counter, Plan
from refold.view.view_input import ViewInput

Reason = Literal["trimmed", "overflow", "daily"]
"""Why something is remembered: it leaves the view, a provider refused it, a day is over."""

_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Note:
    """What a session leaves to memory."""

    session: str
    at: int
    """When, in milliseconds since 1970."""
    reason: Reason
    text: str
    fold: UUID | None = None
    """The fold that it comes from, where it comes from one."""
    messages: int = 0
    """How many messages it tells of."""

    @property
    def digest(self) -> str:
        """The same for the same note.

        A fold that is made again after a crash leaves the same note, though a model may word it
        otherwise and the clock has moved on. What comes from no fold is known by its words.
        """
        said = self.text if self.fold is None else str(self.fold)
        known_by = json.dumps([self.session, self.reason, said])
        return sha256(known_by.encode()).hexdigest()[:_DIGITS]


class MemorySink(Protocol):
    """Where notes are kept. One belongs to one tenant."""

    async def write(self, note: Note) -> None:
        """Keep the note; it is there for good when this returns.

        The same note a second time changes nothing. Raises a RefoldError when it cannot be kept.
        """
        ...


# Forgetting reaches what holds the same words elsewhere: facts on boards, and titles.
#
# Facts and most titles know the entries that they rest on. A title that a client wrote, or an older
# version made, does not: it goes if most of its words are among those that are forgotten.

_PAGE: Final = 200
_READ: Final = 1_000  # entries at once
_SHARE: Final = 0.8
"""Of a title's words: if so many are forgotten, it is taken to be made of them."""


async def forget(log: Log, session: str, span: Span | None = None) -> Erased:
    """As `Log.forget`; the facts on boards and the titles that rest on it are forgotten too."""
    facts = 0
    for board in await _boards(log):
        for fact in all_facts(await log.read(board)):
            if await _rests_on(log, fact, session, span):
                await log.forget(board, Span(fact.number, fact.number))
                facts += 1
    titles = await _unsourced_titles(log, session, span) if span is not None else []
    # These first: when they alone were left by a crash, nobody could tell what they are made of.
    for seq in titles:
        await log.forget(session, Span(seq, seq))
    erased = await log.forget(session, span)
    return replace(erased, derived=erased.derived + facts + len(titles))


def shares_words(name: str, forgotten: set[str]) -> bool:
    """Whether a title or name is made of words that are forgotten, as far as that can be told."""
    # A title that was cut ends in a piece of a word.
    own = {*(words(name)[:-1] if name.endswith("…") else words(name))}
    return bool(own) and len(own & forgotten) >= _SHARE * len(own)


async def forgotten_words(log: Log, session: str, span: Span) -> set[str]:
    """The words of the entries that are to be forgotten."""
    found: set[str] = set()
    for some in _pages(span.first, min(span.last, (await log.info(session)).entries)):
        for entry in await log.read(session, some):
            if not entry.forgotten:
                found |= {*words(text_of(entry))}
    return found


async def _unsourced_titles(log: Log, session: str, span: Span) -> list[int]:
    """The entries outside of the span whose title has its words and names no source."""
    info = await log.info(session)
    [first] = await log.read(session, Span(1, 1))
    titled = _title_in(first)
    # Later titles are looked for only where there is one: few sessions have any.
    last = info.entries if info.title != titled else 1
    titles = {1: titled} if titled else {}
    for some in _pages(2, last):
        for entry in await log.read(session, some):
            if title := _title_in(entry):
                titles[entry.seq] = title
    outside = {seq: title for seq, title in titles.items() if seq not in span}
    if not outside:
        return []
    forgotten = await forgotten_words(log, session, span)
    return [seq for seq, title in outside.items() if shares_words(title, forgotten)]


def _title_in(entry: Entry) -> str | None:
    """The title that an entry gives, if it does not say what it is made of."""
    if entry.forgotten or entry.kind not in (Opened.KIND, Titled.KIND):
        return None
    match CODEC.decode(entry):
        case Opened(title=title, title_source=0) | Titled(title=title, source=0):
            return title
        case _:
            return None


def _pages(first: int, last: int) -> list[Span]:
    return [Span(at, min(at + _READ - 1, last)) for at in range(first, last + 1, _READ)]


async def _boards(log: Log) -> list[str]:
    found: list[str] = []
    page = None
    while True:
        some = await log.sessions(search=NAME, limit=_PAGE, page=page)
        found += [one.session for one in some.sessions if one.profile == PROFILE]
        if (page := some.next) is None:
            return found


async def _rests_on(log: Log, fact: Fact, session: str, span: Span | None) -> bool:
    """Whether a fact comes from these entries, read in the session itself or in a fork of it."""
    of: str | None = fact.session
    entries = fact.entries
    while of is not None:
        if of == session:
            return span is None or any(span.first <= one <= span.last for one in entries)
        try:
            info = await log.info(of)
        except (SessionNotFound, SessionForgotten):
            return False
        entries = tuple(one for one in entries if one <= (info.forked_at or 0))
        of = info.forked_from if entries else None
    return False


# Folds, remembered: what a summary says is noted before anything leaves the view.

OVERFLOW = "overflow"
"""The trigger of what is summarized because a provider refused a request for its length."""

_REFUSED = (OVERFLOW, "forced")
_MOST_LINES = 10
_LINE = 200


def wall_ms() -> int:
    """The time, in milliseconds since 1970."""
    return int(wall_clock().timestamp() * 1000)


def remembering(sink: MemorySink, *, now: Callable[[], int] = wall_ms) -> Remember:
    """Notes what summaries say in the sink; give it to a session, or to a folder.

    When the sink cannot keep a note, the fold fails, and the view stays as it is.
    """

    async def remember(summary: Summary, job: Job) -> None:
        text = noted(summary)
        if text:
            reason: Reason = "overflow" if job.trigger in _REFUSED else "trimmed"
            await sink.write(Note(job.session, now(), reason, text, job.fold, summary.messages))

    return remember


def noted(summary: Summary) -> str:
    """What is worth a note: a model's words, else a few lines from the log."""
    return summary.words.strip() or _claims(summary) or "\n".join(_lines(summary))


def _claims(summary: Summary) -> str:
    """What a model claimed and the log bears out, where one wrote the summary."""
    if summary.report is None or summary.report.refused:
        return ""
    headings = {*HEADINGS.values()}
    told = (one for part in summary.sections if part.heading in headings for one in part.claims)
    return "\n".join(f"- {one_line(claim.text, 2 * _LINE)}" for claim in told)


def _lines(summary: Summary) -> Iterator[str]:
    """The user's newest messages, and what the model last said."""
    last = summary.section(STATE)[-1:]
    room = _MOST_LINES - len(last)
    said = [one.text for one in summary.directives if one.text.strip()]
    newest = said if len(said) + bool(summary.omitted) <= room else said[1 - room :]
    omitted = len(said) - len(newest) + summary.omitted
    if omitted:
        yield f"- [{omitted} earlier messages of the user]"
    yield from (f'- The user: "{one_line(text, _LINE)}"' for text in newest)
    yield from (f"- {one_line(claim.text, _LINE)}" for claim in last)


# What leaves a view without a fold is remembered first.
#
# That is so when a provider refuses a request for its length, and when fixed limits take turns out
# because nothing summarizes them.

TRIMMED = "fixed limits"
"""The trigger of what is noted because it leaves a view by fixed limits."""


class _Once:
    """Steps that are done when asked for, and kept nowhere: a note is made in one go."""

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:  # noqa: ARG002 - nothing is kept under it
        return await work()


class Leaving:
    """Notes what leaves the view of one session.

    `make` writes the summaries, and must remember them by itself; without one, or where it fails,
    the log is quoted.
    """

    def __init__(
        self, log: Log, session: str, counter: Counter, remember: Remember, make: Make | None = None
    ) -> None:
        self._session = session
        self._by_log = Compactor(log, counter, from_the_log, remember)
        self._make: Make = make or self._by_log
        self._owed: tuple[Span, ...] = ()
        """What left by fixed limits and could not be noted yet."""
        self._pause = self._left = 0
        """For how many requests it is not tried again, and how many of those are left."""

    async def all_of(self, inputs: ViewInput, context: JsonValue, limit: float) -> UUID | None:
        """Note everything that the view is made of; the model has so many seconds for it.

        What the note is known by; None where there is nothing to note. Raises what kept the log's
        own words from being noted.
        """
        if not inputs.rows:
            return None
        spans = intersect((Span(2, inputs.head),), inputs.outline.on_line(inputs.head))
        said = sha256(b"\n".join(row.payload for row in inputs.rows)).hexdigest()
        job = self._job(spans, OVERFLOW, said, context)
        try:
            async with asyncio.timeout(limit):
                await self._make(job, _Once())
        except Exception:  # noqa: BLE001 - whatever a model does, the log can be quoted
            await self._by_log(job, _Once())
        return job.fold

    async def trimmed(self, before: Plan | None, plan: Plan) -> None:
        """Note what this plan takes out by fixed limits, and the one before it did not.

        What cannot be noted now is tried again, ever less often; raises what keeps it from that.
        """
        new = subtract(_limited(plan), _limited(before) if before else ())
        self._owed = union((*self._owed, *new))
        self._left = 0 if new else max(0, self._left - 1)
        if not self._owed or self._left:
            return
        self._pause = self._left = 2 * self._pause + 1
        await self._by_log(self._job(self._owed, TRIMMED, "", None), _Once())
        self._owed, self._pause, self._left = (), 0, 0

    def _job(self, spans: tuple[Span, ...], trigger: str, said: str, context: JsonValue) -> Job:
        """The same for the same entries, so that they are noted once."""
        known_by = f"{self._session}\0{trigger}\0{spans}\0{said}"
        return Job(self._session, uuid5(NAMESPACE_OID, known_by), spans, trigger, context=context)


def _limited(plan: Plan) -> Iterable[Span]:
    return (one.span for one in plan.layout.gone if one.reason == "window")
