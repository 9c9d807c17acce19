"""The difference of two requests: what was added, dropped, changed and moved, and what that cost.

A provider's cache holds a prefix: tools, instructions, then messages. It can be read up to the
first byte that differs from what was sent before; everything behind that is paid in full.
"""

import json
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, Literal, NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import JsonValue

from refold.console.pages import Page, page
from refold.console.requests import PastRequest, past_request
from refold.errors import InvalidInput, InvalidMessage
from refold.log import Log, PartRef
from refold.models.catalog import Overrides, counter_for, facts_of
from refold.models.receipt import Basis
from refold.recall.text import rebuilt_with_sources
from refold.service.api.routing import CallerLog, Reader, ServiceDep, SessionName
from refold.service.api.schemas import Seq
from refold.service.api.sessions import state_of
from refold.view import Counter, Plan
from refold.view.budget import PER_MESSAGE
from refold.view.explanation import sentence
from refold.view.record import SentMessage
from refold.view.tokens import corrected
from refold.wire import Wire, wire_for

router = APIRouter(prefix="/sessions/{session}/requests", route_class=Page)
Kind = Literal["same", "added", "dropped", "changed", "moved"]
_AROUND: Final = 120
"""Characters before the first difference of two texts that are shown."""
_SHOWN: Final = 900
"""Characters of a text that are shown."""
_MAX_STEPS: Final = 400
_MILLION: Final = 1_000_000


class Sent(NamedTuple):
    """A message of one of the two, as a comparison needs it."""

    key: Hashable
    """The same in both requests for the same message."""
    seq: int | None
    payload: bytes
    role: str
    text: str
    tokens: int


class Step(NamedTuple):
    """A message that is in one of the two requests, or in both."""

    kind: Kind
    seq: int | None
    role: str
    why: str
    before: str
    after: str
    tokens: int
    """How many more tokens it has in the later request."""


class Same(NamedTuple):
    """Messages in a row that did not change."""

    messages: int
    tokens: int
    kind: Kind = "same"


class Break(NamedTuple):
    """Where the later request stops being the earlier one with something added."""

    place: Literal["", "model", "tools", "instructions", "message"]
    """What differs first; empty: nothing does."""
    same: int
    """How many messages are the same before that."""
    byte: int
    """Among the bytes of the messages."""
    tokens: int
    """Of what both sent, and only the first paid for in full: it is sent anew behind the break."""
    dollars: float | None
    """What that cost more than from the cache; None if a price is unknown."""


class Beside(NamedTuple):
    """Something besides the messages that changed."""

    name: str
    before: str
    after: str


class Difference(NamedTuple):
    """How a later request comes from an earlier one."""

    before: PastRequest
    after: PastRequest
    steps: list[Step | Same]
    counts: dict[str, int]
    broken: Break
    beside: list[Beside]

    @property
    def tokens(self) -> int:
        """How many more tokens the later one has."""
        return self.after.explanation.account.sent - self.before.explanation.account.sent


async def difference(
    log: Log, session: str, earlier: int, later: int, models: Overrides
) -> Difference:
    """How the later request comes from the earlier one, both by their records."""
    before, after = (
        await past_request(log, session, earlier),
        await past_request(log, session, later),
    )
    wire = wire_for(after.lens.info.format)
    counter = counter_of(after)
    old = sent_messages(wire, counter, await rebuilt_with_sources(log, session, earlier))
    new = sent_messages(wire, counter, await rebuilt_with_sources(log, session, later))
    steps = [*_steps(before, after, old, new)]
    kinds = [step.kind for step in steps]
    counts = {kind: kinds.count(kind) for kind in ("added", "dropped", "changed", "moved")}
    beside = [*_beside(before, after)]
    broken = _break(before, after, old, new, models)
    return Difference(before, after, [*_joined(steps)], counts, broken, beside)


def counter_of(past: PastRequest) -> Counter:
    plan = past.lens.plan
    return corrected(counter_for(past.record.model), plan.correction if plan else None)


def sent_messages(wire: Wire, counter: Counter, messages: Sequence[SentMessage]) -> list[Sent]:
    found: list[Sent] = []
    repeated: dict[bytes, int] = {}
    for payload, seq in messages:
        key: Hashable = seq
        if seq is None:  # it is not in the log: the same bytes are the same message
            repeated[payload] = nth = repeated.get(payload, 0) + 1
            key = (payload, nth)
        try:
            role, shapes, _ = wire.describe(payload)
        except InvalidMessage:
            found.append(Sent(key, seq, payload, "message", "", 0))
            continue
        tokens = sum(map(counter.part, shapes)) + PER_MESSAGE
        text = "\n".join(shape.text for shape in shapes)
        found.append(Sent(key, seq, payload, role, text, tokens))
    return found


def _steps(
    before: PastRequest, after: PastRequest, old: Sequence[Sent], new: Sequence[Sent]
) -> Iterator[Step]:
    """All messages in order: those of the later request, the dropped ones where they were."""
    earlier = {each.key: each for each in old}
    later = {each.key: each for each in new}
    matcher = SequenceMatcher(
        None, [each.key for each in old], [each.key for each in new], autojunk=False
    )
    for tag, first, end, start, stop in matcher.get_opcodes():
        for each in old[first:end]:
            if each.key not in later:
                why = _why_dropped(after.lens.plan, each.seq)
                yield Step("dropped", each.seq, each.role, why, _cut(each.text), "", -each.tokens)
        for each in new[start:stop]:
            other = earlier.get(each.key)
            if other is None:
                why = _why_added(before, after, each)
                yield Step("added", each.seq, each.role, why, "", _cut(each.text), each.tokens)
            elif other.payload != each.payload:
                why = _why_changed(after.lens.plan, each.seq)
                texts = _around(other.text, each.text)
                yield Step("changed", each.seq, each.role, why, *texts, each.tokens - other.tokens)
            elif tag == "equal":
                yield Step("same", each.seq, each.role, "", "", "", each.tokens)
            else:
                yield Step("moved", each.seq, each.role, "", _cut(each.text), "", 0)


def _joined(steps: Sequence[Step]) -> Iterator[Step | Same]:
    for kind, group in groupby(steps, key=lambda step: step.kind):
        if kind == "same":
            same = [*group]
            yield Same(len(same), sum(step.tokens for step in same))
        else:
            yield from group


def _why_dropped(plan: Plan | None, seq: int | None) -> str:
    if plan is None or seq is None:
        return "no longer inserted"
    reason = plan.disposition(PartRef(seq, 0)).reason
    return "" if reason == "kept" else f"{reason}: {sentence(reason)}"


def _why_added(before: PastRequest, after: PastRequest, message: Sent) -> str:
    plan = after.lens.plan
    if message.seq is not None:
        return "said since" if message.seq > before.explanation.head else "shown again"
    inserts = plan.layout.inserts if plan else ()
    reason = next((each.reason for each in inserts if each.text in message.text), "")
    return f"{reason}: {sentence(reason, added=True)}" if reason else "inserted"


def _why_changed(plan: Plan | None, seq: int | None) -> str:
    if plan is None or seq is None:
        return ""
    reasons = {change.reason for ref, change in plan.layout.changes.items() if ref.seq == seq}
    return "; ".join(f"{x}: {sentence(x)}" for x in sorted(reasons)) or "sent whole again"


def _break(
    before: PastRequest,
    after: PastRequest,
    old: Sequence[Sent],
    new: Sequence[Sent],
    models: Overrides,
) -> Break:
    same = 0
    while same < min(len(old), len(new)) and old[same].payload == new[same].payload:
        same += 1
    place: Literal["", "model", "tools", "instructions", "message"] = ""
    if same < len(old):
        place = "message"
    for name in ("instructions", "tools"):
        if before.sent.extras.get(name) != after.sent.extras.get(name):
            place = name  # tools come first: they win
    if before.record.model != after.record.model:
        place = "model"
    byte = sum(len(each.payload) + 1 for each in old[:same]) + 1
    if place == "message" and same < len(new):
        byte += _common(old[same].payload, new[same].payload)
    if not place:
        return Break(place, same, byte, 0, 0.0)
    keys = {each.key for each in old}
    behind = new[same:] if place == "message" else new
    tokens = sum(each.tokens for each in behind if each.key in keys)
    if place in ("model", "tools"):
        tokens += after.explanation.account.system
    if place == "model":
        tokens += after.explanation.account.tools
    return Break(place, same, byte, tokens, uncached_dollars(after, tokens, models))


def uncached_dollars(after: PastRequest, tokens: int, models: Overrides) -> float | None:
    """What so many tokens cost more than if they had been read from the cache."""
    used = after.neighbors.used
    basis = Basis.parse(used.basis) if used else None
    recorded = basis.prices if basis and basis.prices.input is not None else None
    prices = recorded or facts_of(after.record.model, models).prices
    usage = used.usage if used else None
    written = isinstance(usage, dict) and bool(usage.get("cache_write"))
    price = prices.cache_write if written and prices.cache_write is not None else prices.input
    if price is None or prices.cache_read is None:
        return None
    return tokens * max(0.0, price - prices.cache_read) / _MILLION


def _beside(before: PastRequest, after: PastRequest) -> Iterator[Beside]:
    if before.record.model != after.record.model:
        yield Beside("Model", before.record.model, after.record.model)
    for name in ("instructions", "tools", "settings"):
        old, new = before.sent.extras.get(name), after.sent.extras.get(name)
        if old == new:
            continue
        title = {"settings": "Parameters"}.get(name, name.capitalize())
        if name == "settings":
            yield from _fields(old, new)
        else:
            yield Beside(title, *_around(_readable(old), _readable(new)))


def _fields(old: bytes | None, new: bytes | None) -> Iterator[Beside]:
    before, after = _object(old), _object(new)
    for name in sorted({*before, *after}):
        texts = tuple(
            json.dumps(x[name], ensure_ascii=False) if name in x else "(not set)"
            for x in (before, after)
        )
        if texts[0] != texts[1]:
            yield Beside(name, *_around(*texts))


def _object(raw: bytes | None) -> dict[str, JsonValue]:
    value: JsonValue = json.loads(raw or b"{}")
    return value if isinstance(value, dict) else {}


def _readable(raw: bytes | None) -> str:
    if raw is None:
        return ""
    value: JsonValue = json.loads(raw)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _common(first: bytes | str, second: bytes | str) -> int:
    """How many units both begin with."""
    # The first length at which they differ, by halving: comparing slices is fast.
    lengths = range(1, min(len(first), len(second)) + 1)
    return bisect_left(lengths, True, key=lambda n: first[:n] != second[:n])  # noqa: FBT003 - looked for


def _around(first: str, second: str) -> tuple[str, str]:
    """Both texts from a little before they first differ."""
    start = max(0, _common(first, second) - _AROUND)
    lead = "…" if start else ""
    return lead + _cut(first[start:]), lead + _cut(second[start:])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@router.get("/{seq}/since/{other}")
async def show_difference(  # noqa: PLR0913, PLR0917 - FastAPI gives each by its type
    request: Request,
    _: Reader,
    log: CallerLog,
    service: ServiceDep,
    session: SessionName,
    seq: Seq,
    other: Seq,
) -> Response:
    """What a request sent that an earlier one did not, and the other way around."""
    if other >= seq:
        raise InvalidInput(
            f"Request {other} does not come before request {seq}.", "Name the earlier one last."
        )
    found = await difference(log, session, other, seq, service.settings.models)
    return page(
        request,
        "difference.html",
        state=await state_of(log, session),
        session=session,
        found=found,
        steps=found.steps[:_MAX_STEPS],
        hidden=max(0, len(found.steps) - _MAX_STEPS),
    )
