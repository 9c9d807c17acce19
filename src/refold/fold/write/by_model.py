"""Summaries by a model: written chunk by chunk, and checked against the log before they are used.

If that fails, for whatever reason, the extractive summary is used and says why; in profiles without
one, the fold fails.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, NamedTuple, Protocol, runtime_checkable

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import FoldCancelled, FoldNotMade, RefoldError, WindowExceeded
from refold.fold.compactor import read_context
from refold.fold.extractive import extractive_summary
from refold.fold.job import Job, Steps
from refold.fold.material import Material, Passage
from refold.fold.secrets import redact, without_secrets
from refold.fold.summary import Offer, Report, Summary, clipped, sound
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
from refold.fold.write.transcript import (
    CONVERSATION_GUARD,
    GUARD,
    Chunk,
    build_prompt,
    chunks,
    conversation_prompt,
    warm_prompt,
)
from refold.log import Span
from refold.view import Counter, Fold
from refold.view.budget import PER_MESSAGE
from refold.wire import Shape

TOO_OFTEN: Final = "the summarizer failed too often"
TOO_SLOW: Final = "the summarizer took too long"
CALLED_A_TOOL: Final = "The model called a tool instead of writing a summary."
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
    request: str = ""
    """The provider's id of the answer, if it gave one."""
    failure: str = ""
    """Why it is no summary, although it was paid for."""


def shows(entries: Iterable[int], head: int, unseen: Sequence[Span]) -> bool:
    """Whether a request up to this head shows all of these entries."""
    return all(seq <= head and not any(seq in span for span in unseen) for seq in entries)


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

    @property
    def warm(self) -> bool:
        """Whether it has the conversation before it already: it is asked for a summary there."""
        ...

    async def ask(
        self, guard: str, prompt: str, job: Job, history: Sequence[Passage] = ()
    ) -> SummarizerAnswer:
        """Its answer to the prompt, below this history.

        Raises WindowExceeded if that was too long.
        """
        ...


@runtime_checkable
class Priced(Protocol):
    """A summarizer that knows what a summary costs."""

    def offer(self, material: Material) -> Offer: ...


class Choice(NamedTuple):
    """Who writes the summary of a fold."""

    summarizers: Sequence[Summarizer] = ()
    """In the order in which they are asked, each if the one before failed. None: the log itself."""
    offers: tuple[Offer, ...] = ()
    """Between what was chosen, the cheapest first; empty if a setting names the summarizer."""
    why: str = ""
    """Why no model is asked, although there is one."""


Choose = Callable[[Job, Material], Awaitable[Choice]]
"""Chooses the summarizer of a fold."""


def always(summarizer: Summarizer | None) -> Choose:
    """Choose the same summarizer for every fold; or none."""

    async def choose(job: Job, material: Material) -> Choice:  # noqa: ARG001 - the same for all
        return Choice() if summarizer is None else Choice((summarizer,))

    return choose


Price = Callable[[str, Mapping[str, int]], float | None]
"""Dollars for what a model used; None if a price is unknown."""


class ByModel:
    """Writes summaries with models. One of them serves all sessions of a process."""

    def __init__(self, choose: Choose, price: Price = lambda _name, _usage: None) -> None:
        self._choose = choose
        self._price = price
        self._breakers: dict[str, Breaker] = {}

    async def offers(self, material: Material, job: Job) -> tuple[Offer, ...]:
        """Who could write the summary, and for how much, the cheapest first."""
        try:
            choice = await self._choose(job, material)
        except Exception:  # noqa: BLE001 - the fold says what was wrong
            return ()
        if choice.offers:
            return choice.offers
        return tuple(
            one.offer(material) if isinstance(one, Priced) else Offer(one.name, "transcript")
            for one in choice.summarizers
        )

    async def __call__(self, material: Material, job: Job, steps: Steps) -> Summary:
        """The model's summary if it is accepted, else the extractive one."""
        values = read_context(job.context).values
        own = await asyncio.to_thread(extractive_summary, material)
        try:
            choice = await self._choose(job, material)
        except Exception as error:  # noqa: BLE001 - a name that is wrong, a key that is missing
            return _fallback(own, values, _reason(error))
        why, spent = "", Spent(self._price)
        for summarizer in choice.summarizers:
            breaker = self._breakers.setdefault(_key(summarizer), Breaker())
            if not breaker.allows():
                why = f"{TOO_OFTEN}: {breaker.last}"
                continue
            writing = _Writing(summarizer, job, steps, values, spent)
            draft: Draft | None = None
            try:
                draft = await self._draft(writing, breaker, material)
                summary = await _accepted(draft, material, own, values, summarizer)
            except (asyncio.CancelledError, FoldCancelled):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a model does, the session goes on
                why = _reason(error)
                breaker.failed(why)
                if draft is not None:  # another one would hardly write a better one
                    break
                continue
            breaker.worked()
            report = replace(summary.report or Report(), offers=choice.offers)
            return replace(spent.on(summary), report=report, request=writing.request)
        summary = spent.on(_fallback(own, values, why, spent.usage))
        if not choice.offers:
            return summary
        report = summary.report or Report(not_asked=choice.why)
        return replace(summary, report=replace(report, offers=choice.offers))

    async def _draft(self, writing: "_Writing", breaker: Breaker, material: Material) -> Draft:
        clock = asyncio.get_running_loop().time
        start = clock()
        try:
            with breaker.call():
                return await writing.draft(material)
        except asyncio.CancelledError:
            if clock() - start >= writing.values.wait:  # the request stopped waiting for it
                breaker.failed(TOO_SLOW)
            raise


async def _accepted(
    draft: Draft, material: Material, own: Summary, values: Fold, summarizer: Summarizer
) -> Summary:
    # Its rules take a while to import, and are needed here only.
    from refold.fold.acceptance import accept_draft  # noqa: PLC0415

    by, counter = summarizer.name, summarizer.counter
    return await asyncio.to_thread(
        accept_draft, draft, material, own, values, by=by, counter=counter
    )


@dataclass
class Spent:
    """What all calls for one fold used and cost, failed ones too."""

    price: Price
    usage: dict[str, int] = field(default_factory=dict[str, int])
    cost: float | None = 0.0
    """Dollars; None if a price is unknown."""

    def add(self, usage: Mapping[str, int], cost: float | None) -> None:
        for name, tokens in {"calls": 1, **usage}.items():
            self.usage[name] = self.usage.get(name, 0) + tokens
        self.cost = None if self.cost is None or cost is None else self.cost + cost

    def on(self, summary: Summary) -> Summary:
        """The summary, with what it used and cost."""
        return replace(summary, usage=self.usage, cost=self.cost if self.usage else None)


def _key(summarizer: Summarizer) -> str:
    """One model may fail on its warm cache, where it has tools, and not with a transcript."""
    return f"{summarizer.name}, warm" if summarizer.warm else summarizer.name


class _Writing:
    """One draft that is being written."""

    def __init__(
        self,
        summarizer: Summarizer,
        job: Job,
        steps: Steps,
        values: Fold,
        spent: Spent,
    ) -> None:
        self.summarizer = summarizer
        self.values = values
        self._job = job
        self._steps = steps
        self._structured = summarizer.structured and values.ground == "check"
        self._verbatim = values.ground == "report"
        self._as_history = values.input == "messages"
        self._words = max(80, int(values.max_tokens * _WORDS_PER_TOKEN))
        self._system = read_context(job.context).system
        self._timeout = values.call_limit
        self._spent = spent
        self.request = ""

    async def draft(self, material: Material) -> Draft:
        if self.summarizer.warm:
            return await self._draft_on_top(material)
        room = self.summarizer.room
        for _ in range(_RETRIES):
            try:
                return await self._draft_within(material, room)
            except WindowExceeded:
                room = min(self.summarizer.room, room // 2)
        return await self._draft_within(material, room)

    async def _draft_within(self, material: Material, room: int) -> Draft:
        """Summarize chunk by chunk; each prompt has the claims so far."""
        if room < _MIN_ROOM:
            raise WindowExceeded(
                f"{self.summarizer.name} has room for {room} tokens of a conversation.",
                "Choose a summarizer with a larger window.",
            )
        if self._verbatim:
            return await self._rewrite(material, room)
        so_far = Draft(claims=tuple(earlier_claims(material.earlier)))
        new = 0
        count = await self._count_chunks(material, room)
        for chunk in self._chunks(material, room):
            counter = self.summarizer.counter
            shown, hidden = _within(so_far.claims, counter, room // _CLAIMS_SHARE)
            answer = await self._answer(chunk.number, self._prompt(chunk, count, claims=shown))
            draft = from_form(answer.form) if answer.form else from_text(answer.text)
            new += len(draft.claims)
            newer = merged([_bounded(draft, len(shown))], shown)
            text = f"{so_far.text}\n\n{answer.text}".strip()
            so_far = Draft(newer.title or so_far.title, (*hidden, *newer.claims), text=text)
        if not new:  # one chunk may add nothing, but not all of them
            raise FoldNotMade(f"The summary cannot be used: {EMPTY}.")
        return so_far

    async def _draft_on_top(self, material: Material) -> Draft:
        """Ask in the conversation itself: one call, below the request that was sent last."""
        claims = earlier_claims(material.earlier)
        shown, hidden = _within(claims, self.summarizer.counter, self.summarizer.room)
        prompt = warm_prompt(shown, self._job.focus or "", self._words)
        answer = await self._answer(1, prompt)
        draft = from_text(answer.text)
        if not draft.claims:
            raise FoldNotMade(f"The summary cannot be used: {EMPTY}.")
        newer = merged([_bounded(draft, len(shown))], shown)
        return replace(newer, claims=(*hidden, *newer.claims), text=answer.text)

    async def _rewrite(self, material: Material, room: int) -> Draft:
        """Summarize in the model's own words; each call rewrites the previous summary."""
        earlier = "\n\n".join(fold.summary.words or fold.summary.text for fold in material.earlier)
        if history := self._history(material, earlier, room):
            prompt = conversation_prompt(self._job.focus or "")
            text = (await self._answer(1, prompt, history)).text
        else:
            text = ""
            count = await self._count_chunks(material, room)
            for chunk in self._chunks(material, room):
                so_far = self._shorten(text or earlier, room // _CLAIMS_SHARE)
                answer = await self._answer(chunk.number, self._prompt(chunk, count, so_far))
                text = answer.text if answer.text.strip() else text
        draft = _bounded(from_text(text), 0)
        if not draft.claims:
            raise FoldNotMade(f"The summary cannot be used: {EMPTY}.")
        return draft

    def _history(self, material: Material, earlier: str, room: int) -> list[Passage]:
        """All of the material as a conversation, if the profile says so and it fits as one."""
        if not self._as_history or any(passage.delegated for passage in material.passages):
            return []
        counter = self.summarizer.counter
        summary = Passage(0, "user", (Shape("prompt", earlier),))
        passages = [
            passage._replace(
                shapes=tuple(shape._replace(text=redact(shape.text)) for shape in passage.shapes)
            )
            for passage in (*([summary] if earlier else []), *material.passages)
        ]
        parts = sum(counter.part(shape) for passage in passages for shape in passage.shapes)
        prompt = counter.text(conversation_prompt(self._job.focus or ""))
        return passages if parts + prompt + PER_MESSAGE * len(passages) <= room else []

    def _shorten(self, text: str, room: int) -> str:
        tokens = self.summarizer.counter.text(text)
        return clipped(text, len(text) * room // tokens) if tokens > room else text

    async def _count_chunks(self, material: Material, room: int) -> int:
        # The chunks are made twice, so that they are never all in memory at once.
        return await asyncio.to_thread(lambda: sum(1 for _ in self._chunks(material, room)))

    def _chunks(self, material: Material, room: int) -> Iterator[Chunk]:
        counter = self.summarizer.counter
        overhead = counter.text(self._prompt(Chunk(1, (), "", 0), 1)) + room // _CLAIMS_SHARE
        return chunks(material, counter, max(_MIN_ROOM // 2, room - overhead))

    def _prompt(
        self,
        chunk: Chunk,
        count: int,
        earlier: str | None = None,
        claims: Sequence[DraftClaim] = (),
    ) -> str:
        return build_prompt(
            chunk,
            of=count,
            known=claims,
            earlier=earlier,
            focus=self._job.focus or "",
            system=self._system,
            words=self._words,
            structured=self._structured,
        )

    async def _answer(
        self, number: int, prompt: str, history: Sequence[Passage] = ()
    ) -> SummarizerAnswer:
        """The answer to one call, paid for only once even if the fold is retried."""
        read = "".join(f"\0{passage}" for passage in history)
        digest = sha256(f"{self.summarizer.name}\0{prompt}{read}".encode()).hexdigest()[:16]
        step = await self._steps.step(
            f"chunk {number} {digest}", lambda: self._ask(prompt, history)
        )
        answer = _from_step(step)
        self.request = answer.request or self.request
        match step:
            case {"spent": {"cost": int() | float() as cost}}:
                self._spent.add(answer.usage, cost)
            case _:
                self._spent.add(answer.usage, None)
        if answer.failure:
            raise FoldNotMade(answer.failure)
        return answer

    async def _ask(self, prompt: str, history: Sequence[Passage]) -> JsonValue:
        async with asyncio.timeout(self._timeout):
            answer = await self._ask_safely(prompt, history)
        text, form = sound(answer.text[:_MAX_ANSWER]), None
        if answer.form is not None and len(answer.text) <= _MAX_ANSWER:
            form = from_json(sound(answer.form.model_dump_json()))
        usage: dict[str, JsonValue] = {**answer.usage}
        cost = self._spent.price(self.summarizer.name, answer.usage)
        spent: JsonValue = {"by": self.summarizer.name, "usage": usage, "cost": cost}
        request = sound(answer.request)
        step: dict[str, JsonValue] = {"text": text, "form": form, "usage": usage}
        return step | {"request": request, "failure": answer.failure, "spent": spent}

    async def _ask_safely(self, prompt: str, history: Sequence[Passage]) -> SummarizerAnswer:
        """Ask the model; a client that cancels itself or raises a BaseException just fails."""
        try:
            if history:
                return await self.summarizer.ask(CONVERSATION_GUARD, prompt, self._job, history)
            return await self.summarizer.ask(GUARD, prompt, self._job)
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
            request, failure = (str(value.get(name) or "") for name in ("request", "failure"))
            return SummarizerAnswer(text, parsed, figures, request, failure)
        case _:
            return SummarizerAnswer("")


def _bounded(draft: Draft, shown: int) -> Draft:
    """The draft without secrets; it may not retire most of the earlier claims."""
    retired = draft.obsolete if len(draft.obsolete) <= max(_MAX_RETIRED, shown // 2) else ()
    return replace(
        draft,
        title=redact(draft.title),
        claims=tuple(
            replace(claim, text=redact(claim.text), quote=redact(claim.quote))
            for claim in draft.claims[:_MAX_CLAIMS]
        ),
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
    if isinstance(error, RefoldError):
        return error.what.rstrip(".")
    if isinstance(error, TimeoutError):
        return TOO_SLOW
    text = " ".join(without_secrets(str(error)).split())[:_MAX_REASON]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
