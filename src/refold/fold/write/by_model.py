"""Summaries by a model: written chunk by chunk, and checked against the log before they are used.

If that fails, for whatever reason, the extractive summary is used and says why; in profiles without
one, the fold fails.
"""

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import FoldCancelled, FoldNotMade, WindowExceeded
from refold.fold.compactor import read_context
from refold.fold.extractive import extractive_summary
from refold.fold.job import Job, Steps
from refold.fold.material import Material
from refold.fold.secrets import redact, without_secrets
from refold.fold.summary import Report, Summary, sound
from refold.fold.write.draft import (
    EMPTY,
    Draft,
    DraftClaim,
    Form,
    earlier_claims,
    from_form,
    from_text,
    merged,
)
from refold.fold.write.transcript import GUARD, Chunk, build_prompt, chunks
from refold.view import Counter, Fold

TOO_OFTEN: Final = "the summarizer failed too often"
TOO_SLOW: Final = "the summarizer took too long"
FAILURES: Final = 2
"""How many failures in a row open the breaker."""
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 64  # folds

_MIN_ROOM = 400  # tokens of a prompt; with less, none are left for the conversation
_CLAIMS_SHARE = 5  # the fraction of the room for the claims so far
_RETRIES = 5  # with half the room each, after the model was shown too much
_WORDS_PER_TOKEN = 0.35  # of what a fold may show
_MAX_REASON = 200
_MAX_ANSWER = 200_000  # characters
_MAX_CLAIMS = 150  # of one answer; the prompt asks for far fewer
_MAX_RETIRED = 3  # earlier claims that a chunk may call obsolete, however few there are


@dataclass
class Breaker:
    """Counts the failures of one summarizer, in one process.

    A summarizer that is down fails every fold, after a wait and perhaps at a cost. After a few
    failures in a row it is called only now and then, until a call works. After any failure, only
    one fold at a time calls it.
    """

    failures: int = 0
    """In a row."""
    last: str = ""
    """The reason for the last failure."""
    _pause: int = 0
    _left: int = 0
    _calls: int = 0

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES

    def allows(self) -> bool:
        """Whether to call the summarizer now; while the breaker is open, once in a while."""
        if self.failures and self._calls:
            return False
        if not self.is_open:
            return True
        self._left -= 1
        return self._left < 0

    @contextmanager
    def call(self) -> Generator[None]:
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    def worked(self) -> None:
        self.failures, self._pause, self.last = 0, 0, ""

    def failed(self, why: str) -> None:
        self.failures += 1
        self.last = why
        if self.is_open:
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
            self._left = self._pause


class SummarizerAnswer(NamedTuple):
    text: str
    form: Form | None = None
    """The filled-in form, if it was asked for one and gave one."""
    usage: Mapping[str, int] = {}


class Summarizer(Protocol):
    """A model that writes summaries, and can do nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def counter(self) -> Counter: ...

    @property
    def room(self) -> int:
        """How many tokens a prompt may have; fewer, once it refused as many."""
        ...

    @property
    def structured(self) -> bool:
        """Whether it can fill in a form."""
        ...

    async def ask(self, guard: str, prompt: str, job: Job) -> SummarizerAnswer:
        """Its answer. Raises WindowExceeded if the prompt was too long."""
        ...


Choose = Callable[[Job], Summarizer | None]
"""Chooses the summarizer of a fold; None for an extractive summary."""


class ByModel:
    """Writes summaries with models. One of them serves all sessions of a process."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._breakers: dict[str, Breaker] = {}

    async def __call__(self, material: Material, job: Job, steps: Steps) -> Summary:
        """The model's summary if it is accepted, else the extractive one."""
        values = read_context(job.context).values
        own = await asyncio.to_thread(extractive_summary, material)
        try:
            summarizer = self._choose(job)
        except Exception as error:  # noqa: BLE001 - a name that is wrong, a key that is missing
            return _fallback(own, values, _reason(error))
        if summarizer is None:
            return _fallback(own, values)
        breaker = self._breakers.setdefault(summarizer.name, Breaker())
        if not breaker.allows():
            return _fallback(own, values, f"{TOO_OFTEN}: {breaker.last}")
        writing = _Writing(summarizer, job, steps, values)
        clock = asyncio.get_running_loop().time
        start = clock()
        try:
            with breaker.call():
                draft = await writing.draft(material)
            # Its rules take a while to import, and are needed here only.
            from refold.fold.acceptance import accept_draft  # noqa: PLC0415

            summary = await asyncio.to_thread(
                accept_draft,
                draft,
                material,
                own,
                values,
                by=summarizer.name,
                counter=summarizer.counter,
            )
        except asyncio.CancelledError:
            if clock() - start >= values.wait:  # the request stopped waiting for it
                breaker.failed(TOO_SLOW)
            raise
        except FoldCancelled:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model does, the session goes on
            breaker.failed(_reason(error))
            summary = _fallback(own, values, _reason(error), writing.usage)
            return replace(summary, usage=writing.usage)
        breaker.worked()
        return replace(summary, usage=writing.usage)


class _Writing:
    """One draft that is being written."""

    def __init__(self, summarizer: Summarizer, job: Job, steps: Steps, values: Fold) -> None:
        self._summarizer = summarizer
        self._job = job
        self._steps = steps
        self._structured = summarizer.structured and values.ground == "check"
        self._words = max(80, int(values.max_tokens * _WORDS_PER_TOKEN))
        self._timeout = values.call_limit
        self.usage: dict[str, int] = {}

    async def draft(self, material: Material) -> Draft:
        room = self._summarizer.room
        for _ in range(_RETRIES):
            try:
                return await self._draft_within(material, room)
            except WindowExceeded:
                room = min(self._summarizer.room, room // 2)
        return await self._draft_within(material, room)

    async def _draft_within(self, material: Material, room: int) -> Draft:
        """Summarize chunk by chunk; each prompt has the claims so far."""
        if room < _MIN_ROOM:
            raise WindowExceeded(
                f"{self._summarizer.name} has room for {room} tokens of a conversation.",
                "Choose a summarizer with a larger window.",
            )
        so_far = Draft(claims=tuple(earlier_claims(material.earlier)))
        new = 0
        # The chunks are made twice, so that they are never all in memory at once.
        count = await asyncio.to_thread(lambda: sum(1 for _ in self._chunks(material, room)))
        for chunk in self._chunks(material, room):
            counter = self._summarizer.counter
            shown, hidden = _within(so_far.claims, counter, room // _CLAIMS_SHARE)
            answer = await self._answer(chunk, count, shown)
            draft = from_form(answer.form) if answer.form else from_text(answer.text)
            new += len(draft.claims)
            newer = merged([_bounded(draft, len(shown))], shown)
            text = f"{so_far.text}\n\n{answer.text}".strip()
            so_far = Draft(newer.title or so_far.title, (*hidden, *newer.claims), text=text)
        if not new:  # one chunk may add nothing, but not all of them
            raise FoldNotMade(f"The summary cannot be used: {EMPTY}.")
        return so_far

    def _chunks(self, material: Material, room: int) -> Iterator[Chunk]:
        counter = self._summarizer.counter
        overhead = counter.text(self._prompt(Chunk(1, (), "", 0), 1)) + room // _CLAIMS_SHARE
        return chunks(material, counter, max(_MIN_ROOM // 2, room - overhead))

    def _prompt(self, chunk: Chunk, count: int, claims: Sequence[DraftClaim] = ()) -> str:
        return build_prompt(
            chunk,
            of=count,
            known=claims,
            focus=self._job.focus or "",
            words=self._words,
            structured=self._structured,
        )

    async def _answer(
        self, chunk: Chunk, count: int, claims: Sequence[DraftClaim]
    ) -> SummarizerAnswer:
        """The answer for one chunk, paid for once however often the fold is made."""
        prompt = self._prompt(chunk, count, claims)
        digest = sha256(f"{self._summarizer.name}\0{prompt}".encode()).hexdigest()[:16]
        step = await self._steps.step(f"chunk {chunk.number} {digest}", lambda: self._ask(prompt))
        answer = _from_step(step)
        for name, tokens in {"calls": 1, **answer.usage}.items():
            self.usage[name] = self.usage.get(name, 0) + tokens
        return answer

    async def _ask(self, prompt: str) -> JsonValue:
        async with asyncio.timeout(self._timeout):
            answer = await self._ask_safely(prompt)
        text, form = sound(answer.text[:_MAX_ANSWER]), None
        if answer.form is not None and len(answer.text) <= _MAX_ANSWER:
            form = from_json(sound(answer.form.model_dump_json()))
        return {"text": text, "form": form, "usage": dict(answer.usage)}

    async def _ask_safely(self, prompt: str) -> SummarizerAnswer:
        """Ask the model; a client that cancels itself or raises a BaseException just fails."""
        try:
            return await self._summarizer.ask(GUARD, prompt, self._job)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise FoldNotMade("The summarizer gave up.") from None
        except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            raise FoldNotMade(f"The summarizer failed: {type(error).__name__}.") from error


def _from_step(value: JsonValue) -> SummarizerAnswer:
    match value:
        case {"text": str(text), "usage": dict(usage)}:
            form = value.get("form")
            figures = {name: count for name, count in usage.items() if isinstance(count, int)}
            parsed = Form.model_validate(form) if isinstance(form, dict) else None
            return SummarizerAnswer(text, parsed, figures)
        case _:
            return SummarizerAnswer("")


def _bounded(draft: Draft, shown: int) -> Draft:
    """The draft without secrets; it may not retire most of the earlier claims."""
    retired = draft.obsolete if len(draft.obsolete) <= max(_MAX_RETIRED, shown // 2) else ()
    return replace(
        draft,
        title=redact(draft.title),
        claims=tuple(replace(c, text=redact(c.text)) for c in draft.claims[:_MAX_CLAIMS]),
        obsolete=retired,
    )


def _within(
    claims: Sequence[DraftClaim], counter: Counter, room: int
) -> tuple[list[DraftClaim], list[DraftClaim]]:
    """The claims that fit, and the others; those that may change soon come first."""

    def soon_changed(index: int) -> tuple[bool, int]:
        claim = claims[index]
        changing = claim.subject in ("goal", "state", "next", "questions")
        return changing, max(claim.cites, default=0)

    fitting: set[int] = set()
    for index in sorted(range(len(claims)), key=soon_changed, reverse=True):
        room -= counter.text(f"{len(claims)}. ({claims[index].subject}) {claims[index].text}\n")
        if room < 0:
            break
        fitting.add(index)
    shown = [claim for index, claim in enumerate(claims) if index in fitting]
    return shown, [claim for index, claim in enumerate(claims) if index not in fitting]


def _fallback(
    own: Summary, values: Fold, why: str = "", usage: Mapping[str, int] | None = None
) -> Summary:
    """The extractive summary, which says why it is not a model's."""
    if not values.breadcrumb:
        paid = "".join(f"; {name}: {count:,}" for name, count in (usage or {}).items() if count)
        raise FoldNotMade(f"No summary was written: {why or 'there is no summarizer'}{paid}.")
    return replace(own, report=Report(refused=why)) if why else own


def _reason(error: Exception) -> str:
    if isinstance(error, FoldNotMade):
        return error.what.rstrip(".")
    if isinstance(error, TimeoutError):
        return TOO_SLOW
    text = " ".join(without_secrets(str(error)).split())[:_MAX_REASON]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
