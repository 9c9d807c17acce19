"""Summaries by a model: asked chunk by chunk, checked against the log, and only then used.

Where that fails, for whatever reason, the log's own summary stands in its place and says why; in
profiles that have none, the fold fails as theirs does.
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
from refold.fold.gate import EMPTY
from refold.fold.job import Job, Steps
from refold.fold.material import Earlier, Material
from refold.fold.secrets import redact, without_secrets
from refold.fold.summary import Report, Summary, sound
from refold.fold.write.draft import (
    Draft,
    DraftClaim,
    Form,
    from_form,
    from_text,
    known_from,
    merged,
)
from refold.fold.write.transcript import GUARD, Chunk, build_prompt, chunks
from refold.view import Counter, Fold

# A breaker: who failed again and again is left alone for a while, and then tried once.
#
# A summarizer that is down fails every fold, and each failure is waited and paid for. After a few
# in
# a row it is not asked any more; the log writes the summaries until a probe works. After any
# failure
# one fold at a time finds out for all: who hangs is not asked by many at once.

TOO_OFTEN: Final = "the summarizer failed too often"
"""Why a summarizer was not asked."""
FAILURES: Final = 2
"""How many failures in a row open it."""
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 64  # folds


@dataclass
class Breaker:
    """Counts the failures of one summarizer, in one process."""

    failures: int = 0
    """In a row."""
    last: str = ""
    """Why it failed last."""
    _pause: int = 0
    _left: int = 0
    _asking: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it failed too often."""
        return self.failures >= FAILURES

    def allows(self) -> bool:
        """Whether to ask now; while it is open, once in a while."""
        if self.failures and self._asking:
            return False
        if not self.is_open:
            return True
        self._left -= 1
        return self._left < 0

    @contextmanager
    def asking(self) -> Generator[None]:
        """While it is asked; whoever is in doubt meanwhile does not ask too."""
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    def worked(self) -> None:
        """It was asked, and what it wrote is used."""
        self.failures, self._pause, self.last = 0, 0, ""

    def failed(self, why: str) -> None:
        """It was asked in vain."""
        self.failures += 1
        self.last = why
        if self.is_open:
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
            self._left = self._pause


_LEAST_ROOM = 400  # tokens of a prompt; with less, nothing is left for what was said
_SLOT = 5  # of the room, the fraction for what earlier summaries say
_SMALLER = 5  # times that less is shown, after what was shown was too long
_WORDS_OF_A_FOLD = 0.35  # words for each token that a fold may show
_LONGEST_REASON = 200
_LONGEST_ANSWER = 200_000  # characters that are read of an answer
_MOST_CLAIMS = 150  # of one answer; it was asked for far fewer
_RETIRED = 3  # earlier claims that a chunk may call obsolete, however few there are
TOO_SLOW = "the summarizer took too long"


class SummarizerAnswer(NamedTuple):
    """What a summarizer answered."""

    text: str
    form: Form | None = None
    """The same, where it was asked to fill in a form and did."""
    usage: Mapping[str, int] = {}


class Summarizer(Protocol):
    """A model that can be asked for a summary, and can do nothing else."""

    @property
    def name(self) -> str:
        """The model."""
        ...

    @property
    def counter(self) -> Counter:
        """Counts its tokens."""
        ...

    @property
    def room(self) -> int:
        """How many tokens it may be shown; less, once it refused as much."""
        ...

    @property
    def structured(self) -> bool:
        """Whether it can fill in a form."""
        ...

    async def ask(self, guard: str, prompt: str, job: Job) -> SummarizerAnswer:
        """Its answer. Raises WindowExceeded where it was shown too much."""
        ...


Choose = Callable[[Job], Summarizer | None]
"""Who writes the summary of a fold; None: the log itself."""


class ByModel:
    """Writes summaries with models. One of them serves all sessions of a process."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._breakers: dict[str, Breaker] = {}

    async def __call__(self, material: Material, job: Job, steps: Steps) -> Summary:
        """The summary: the model's, where it is to be believed."""
        values = read_context(job.context).values
        own = await asyncio.to_thread(extractive_summary, material)
        try:
            summarizer = self._choose(job)
        except Exception as error:  # noqa: BLE001 - a name that is wrong, a key that is missing
            return _instead(own, values, _why(error))
        if summarizer is None:
            return _instead(own, values)
        breaker = self._breakers.setdefault(summarizer.name, Breaker())
        if not breaker.allows():
            return _instead(own, values, f"{TOO_OFTEN}: {breaker.last}")
        asking = _Asking(summarizer, job, steps, values)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            with breaker.asking():
                written = await asking.about(material)
            summary = await asyncio.to_thread(_believed, written, material, own, values, summarizer)
        except asyncio.CancelledError:
            if clock() - began >= values.wait:  # nobody waited for it any longer
                breaker.failed(TOO_SLOW)
            raise
        except FoldCancelled:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model does, the session goes on
            breaker.failed(_why(error))
            return replace(_instead(own, values, _why(error), asking.usage), usage=asking.usage)
        breaker.worked()
        return replace(summary, usage=asking.usage)


class _Asking:
    """One summary that is being asked for."""

    def __init__(self, summarizer: Summarizer, job: Job, steps: Steps, values: Fold) -> None:
        self._summarizer = summarizer
        self._job = job
        self._steps = steps
        self._structured = summarizer.structured and values.ground == "check"
        self._words = max(80, int(values.max_tokens * _WORDS_OF_A_FOLD))
        self._limit = values.call_limit
        self.usage: dict[str, int] = {}

    async def about(self, material: Material) -> Draft:
        """What the model wrote; with less room each time that it was shown too much."""
        room = self._summarizer.room
        for _ in range(_SMALLER):
            try:
                return await self._through(material, room)
            except WindowExceeded:
                room = min(self._summarizer.room, room // 2)
        return await self._through(material, room)

    async def _through(self, material: Material, room: int) -> Draft:
        """All of the material, chunk by chunk; each is told what is known before it."""
        if room < _LEAST_ROOM:
            raise WindowExceeded(
                f"{self._summarizer.name} has room for {room} tokens of a conversation.",
                "Choose a summarizer with a larger window.",
            )
        so_far = Draft(claims=tuple(_known(material.earlier)))
        new = 0
        of = await asyncio.to_thread(lambda: sum(1 for _ in self._chunks(material, room)))
        for chunk in self._chunks(material, room):  # made twice, but never all held at once
            shown, hidden = _within(so_far.claims, self._summarizer.counter, room // _SLOT)
            told = await self._told(chunk, of, shown)
            written = from_form(told.form) if told.form else from_text(told.text)
            new += len(written.claims)
            newer = merged([_tamed(written, len(shown))], shown)
            text = f"{so_far.text}\n\n{told.text}".strip()
            so_far = Draft(newer.title or so_far.title, (*hidden, *newer.claims), text=text)
        if not new:  # one chunk may hold nothing new, but not all of them
            raise FoldNotMade(f"The summary cannot be used: {EMPTY}.")
        return so_far

    def _chunks(self, material: Material, room: int) -> Iterator[Chunk]:
        counter = self._summarizer.counter
        empty = build_prompt(
            Chunk(1, (), "", 0),
            of=1,
            focus=self._job.focus or "",
            words=self._words,
            structured=self._structured,
        )
        beside = counter.text(empty) + room // _SLOT
        return chunks(material, counter, max(_LEAST_ROOM // 2, room - beside))

    async def _told(self, chunk: Chunk, of: int, known: Sequence[DraftClaim]) -> SummarizerAnswer:
        """What the model says of one chunk, asked for once however often the fold is made."""
        prompt = build_prompt(
            chunk,
            of=of,
            known=known,
            focus=self._job.focus or "",
            words=self._words,
            structured=self._structured,
        )
        digest = sha256(f"{self._summarizer.name}\0{prompt}".encode()).hexdigest()[:16]
        kept = await self._steps.step(f"chunk {chunk.number} {digest}", lambda: self._ask(prompt))
        told = _read(kept)
        self._count(told.usage)
        return told

    async def _ask(self, prompt: str) -> JsonValue:
        async with asyncio.timeout(self._limit):
            told = await self._answer(prompt)
        text, form = sound(told.text[:_LONGEST_ANSWER]), None
        if told.form is not None and len(told.text) <= _LONGEST_ANSWER:
            form = from_json(sound(told.form.model_dump_json()))
        return {"text": text, "form": form, "usage": dict(told.usage)}

    async def _answer(self, prompt: str) -> SummarizerAnswer:
        """What the model says; whatever else its client does is an error like any other."""
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

    def _count(self, usage: Mapping[str, int]) -> None:
        for name, tokens in {"calls": 1, **usage}.items():
            self.usage[name] = self.usage.get(name, 0) + tokens


def _read(kept: JsonValue) -> SummarizerAnswer:
    match kept:
        case {"text": str(text), "form": dict(form), "usage": dict(usage)}:
            return SummarizerAnswer(text, Form.model_validate(form), _figures(usage))
        case {"text": str(text), "usage": dict(usage)}:
            return SummarizerAnswer(text, None, _figures(usage))
        case _:
            return SummarizerAnswer("")


def _figures(usage: Mapping[str, JsonValue]) -> dict[str, int]:
    return {name: count for name, count in usage.items() if isinstance(count, int)}


def _tamed(written: Draft, shown: int) -> Draft:
    """Without secrets; and who would retire most of what was known is not heard on that."""
    said = (replace(one, text=redact(one.text)) for one in written.claims[:_MOST_CLAIMS])
    retired = written.obsolete if len(written.obsolete) <= max(_RETIRED, shown // 2) else ()
    title = redact(written.title)
    return replace(written, title=title, claims=tuple(said), obsolete=retired)


def _known(earlier: Sequence[Earlier]) -> Iterator[DraftClaim]:
    """What earlier summaries say: claim by claim, or in the words of who only wrote words."""
    yield from known_from(earlier)
    for one in earlier:
        yield from from_text(one.summary.words).claims


def _within(
    said: Sequence[DraftClaim], counter: Counter, room: int
) -> tuple[list[DraftClaim], list[DraftClaim]]:
    """The claims that there is room for, and the others: what may change soon goes first."""
    order = sorted(range(len(said)), key=lambda at: _soon_changed(said[at]), reverse=True)
    fitting: set[int] = set()
    for at in order:
        room -= counter.text(f"{len(said)}. ({said[at].subject}) {said[at].text}\n")
        if room < 0:
            break
        fitting.add(at)
    shown = [one for at, one in enumerate(said) if at in fitting]
    return shown, [one for at, one in enumerate(said) if at not in fitting]


def _soon_changed(said: DraftClaim) -> tuple[bool, int]:
    return said.subject in ("goal", "state", "next", "questions"), max(said.cites, default=0)


def _believed(
    written: Draft, material: Material, own: Summary, values: Fold, summarizer: Summarizer
) -> Summary:
    # Its rules take a while to import, and only who asked a model needs them.
    from refold.fold.acceptance import accept_draft  # noqa: PLC0415

    return accept_draft(
        written, material, own, values, by=summarizer.name, counter=summarizer.counter
    )


def _instead(
    own: Summary, values: Fold, why: str = "", usage: Mapping[str, int] | None = None
) -> Summary:
    """The log's own summary, which says why no model's stands there."""
    if not values.breadcrumb:
        paid = "".join(f"; {name}: {count:,}" for name, count in (usage or {}).items() if count)
        raise FoldNotMade(f"No summary was written: {why or 'there is no summarizer'}{paid}.")
    return replace(own, report=Report(refused=why)) if why else own


def _why(error: Exception) -> str:
    if isinstance(error, FoldNotMade):
        return error.what.rstrip(".")
    if isinstance(error, TimeoutError):
        return TOO_SLOW
    said = " ".join(without_secrets(str(error)).split())[:_LONGEST_REASON]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
