"""Request records: what was sent, kept so that it can be made again.

A record holds the plan as it was applied: whole every 64 requests, else as the difference to the
record before. Making the request again applies those edits to the log's own bytes and plans
nothing, so today's limits, prices and rules do not matter.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from refold.errors import Unrebuildable
from refold.log import MAIN_SCOPE, Artifact, Entry, Message, PartRef, Requested
from refold.log.entry import Span, seqs, spans_of, subtract, union, up_to
from refold.view.budget import Account
from refold.view.explanation import Context
from refold.view.plan import Event, Layout, LeftOut, Omission, Pace, Plan, events
from refold.view.tokens import Correction
from refold.view.view import Edits, Request, assemble
from refold.view.view_input import Row
from refold.wire import Drop, Insert, Part, Replace, Wire, wire_for

WHOLE_EVERY = 64
"""How many records may be chained before one is whole again."""
RECORD_VERSION = 1
INLINE_CHARS = 1024
"""Longer inserted texts are kept once, as artifacts, and named by their hash."""


@dataclass(frozen=True, slots=True)
class _Drop:
    part: PartRef
    reason: str
    sources: tuple[PartRef, ...] = ()


@dataclass(frozen=True, slots=True)
class _Replace:
    part: PartRef
    head: int
    text: str
    tail: int
    reason: str
    sources: tuple[PartRef, ...] = ()
    hashed: bool = False
    """The text is in the artifact that `text` is the hash of."""


@dataclass(frozen=True, slots=True)
class _Insert:
    insert: Insert
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """How one layout comes from another; from nothing, the whole layout."""

    gone: tuple[Omission, ...] = ()
    """Runs that only the later layout leaves out."""
    shown_again: tuple[Omission, ...] = ()
    """Runs that only the earlier one leaves out."""
    drops: tuple[_Drop, ...] = ()
    replaces: tuple[_Replace, ...] = ()
    unchanged: tuple[PartRef, ...] = ()
    """Parts that only the earlier one changes."""
    inserts: tuple[_Insert, ...] = ()
    kept_inserts: int | None = None
    """How many inserts of the earlier layout come first; None: all of them."""

    def hashes(self) -> set[str]:
        replaced = {edit.text for edit in self.replaces if edit.hashed}
        return replaced | {edit.insert.text for edit in self.inserts if edit.hashed}


def difference(before: Layout, after: Layout, texts: dict[str, Artifact]) -> Difference:
    """How `after` comes from `before`; long texts go to `texts`, by their hashes."""
    if before is after:
        return Difference()
    old, new = set(before.omissions), set(after.omissions)
    common = 0
    for left, right in zip(before.inserts, after.inserts, strict=False):
        if left != right:
            break
        common += 1
    drops: list[_Drop] = []
    replaces: list[_Replace] = []
    for ref, change in after.changes.items():
        if before.changes.get(ref) == change:
            continue
        match change:
            case Drop(reason, sources):
                drops.append(_Drop(ref, reason, sources))
            case Replace(head, text, tail, reason, sources):
                stored, hashed = _store(text, texts)
                replaces.append(_Replace(ref, head, stored, tail, reason, sources, hashed))
    inserts: list[_Insert] = []
    for insert in after.inserts[common:]:
        stored, hashed = _store(insert.text, texts)
        inserts.append(_Insert(replace(insert, text=stored), hashed))
    return Difference(
        gone=tuple(omission for omission in after.omissions if omission not in old),
        shown_again=tuple(omission for omission in before.omissions if omission not in new),
        drops=tuple(drops),
        replaces=tuple(replaces),
        unchanged=tuple(ref for ref in before.changes if ref not in after.changes),
        inserts=tuple(inserts),
        kept_inserts=None if common == len(before.inserts) else common,
    )


def _store(text: str, texts: dict[str, Artifact]) -> tuple[str, bool]:
    if len(text) <= INLINE_CHARS:
        return text, False
    artifact = Artifact.of(text.encode(errors="surrogatepass"), "text/plain")
    texts[artifact.hash] = artifact
    return artifact.hash, True


def patched(before: Layout, difference: Difference, texts: Mapping[str, str]) -> Layout:
    """The layout that comes from `before` by this difference. Raises Unrebuildable."""

    def restored(text: str, *, hashed: bool) -> str:
        try:
            return texts[text] if hashed else text
        except KeyError:
            raise Unrebuildable(f"The text {text} that was inserted is gone.") from None

    shown_again, unchanged = set(difference.shown_again), set(difference.unchanged)
    changes = {ref: x for ref, x in before.changes.items() if ref not in unchanged}
    changes.update({drop.part: Drop(drop.reason, drop.sources) for drop in difference.drops})
    for edit in difference.replaces:
        text = restored(edit.text, hashed=edit.hashed)
        changes[edit.part] = Replace(edit.head, text, edit.tail, edit.reason, edit.sources)
    inserts = (
        replace(stored.insert, text=restored(stored.insert.text, hashed=stored.hashed))
        for stored in difference.inserts
    )
    return Layout(
        (*(x for x in before.omissions if x not in shown_again), *difference.gone),
        changes,
        (*before.inserts[: difference.kept_inserts], *inserts),
    )


@dataclass(frozen=True, slots=True)
class Applied:
    wire: str
    wire_version: int
    profile: str
    head: int
    account: Account
    tokens: int
    layout: Difference
    scope: str = MAIN_SCOPE
    cause: str = ""
    rewrites: int = 0
    tried: int = 0
    untold: int = 0
    """The plan's `hidden_until`, under the name that records have."""
    settings: Mapping[str, str] | None = None
    """Hashes of instructions, tools and settings, by name."""
    messages: int = 0
    """How many were sent; 0 in records of older versions."""
    left_out: LeftOut = field(default=LeftOut())
    correction: Correction | None = None
    pace: Pace = field(default=Pace())
    version: int = RECORD_VERSION


class Previous(NamedTuple):
    """The record before: its place in the log, what it is a difference to, and its plan."""

    seq: int
    chain: tuple[int, ...]
    plan: Plan


class Record(NamedTuple):
    """A request record, and the texts to store with it."""

    value: Requested
    artifacts: tuple[Artifact, ...]


def record(
    request: Request,
    model: str,
    *,
    previous: Previous | None = None,
    hashes: Mapping[str, str] | None = None,
) -> Record:
    """The record of a request, to be appended to the log."""
    plan, wire = request.plan, request.wire
    whole = previous is None or len(previous.chain) + 1 >= WHOLE_EVERY
    before = Layout() if whole or previous is None else previous.plan.layout
    texts: dict[str, Artifact] = {}
    applied = Applied(
        wire.name,
        wire.version,
        plan.profile,
        plan.head,
        plan.account,
        plan.tokens,
        difference(before, plan.layout, texts),
        plan.scope,
        plan.cause,
        plan.rewrites,
        plan.tried,
        plan.hidden_until,
        hashes,
        len(request.messages),
        plan.left_out,
        plan.correction,
        plan.pace,
    )
    quoted = spans_of(ref.seq for insert in plan.layout.inserts for ref in insert.sources)
    value = Requested(
        spans=union((*shown_spans(plan), *quoted)),
        plan=_ADAPTER.dump_python(applied, mode="json", exclude_defaults=True),
        model=model,
        digest=request.digest,
        limit=plan.account.limit,
        chain=() if whole or previous is None else (*previous.chain, previous.seq),
    )
    return Record(value, tuple(texts.values()))


class RecordedRequest(NamedTuple):
    """What a record alone says about its request, without earlier records."""

    account: Account
    events: list[Event]
    """The events of the request; none if an older version wrote the record."""


def recorded(value: Requested, *, initial: bool = False) -> RecordedRequest:
    """What this record says. Raises Unrebuildable if it cannot be read."""
    applied = _applied(value)
    plan = Plan(applied.profile, applied.head, Layout(), applied.account, applied.tokens)
    plan = replace(plan, left_out=applied.left_out)
    messages = applied.messages
    return RecordedRequest(
        applied.account, events(plan, messages, initial=initial) if messages else []
    )


def correction_in(value: Requested) -> Correction | None:
    """How the counter of this request was corrected; None too where nobody can read it."""
    with suppress(Unrebuildable):
        return _applied(value).correction
    return None


class SentMessage(NamedTuple):
    """A message as it was sent."""

    payload: bytes
    seq: int | None
    """The entry that it is of; None where it is not in the log, or joined with what is not."""


def shown_spans(plan: Plan) -> tuple[Span, ...]:
    return subtract(up_to(plan.head), (omission.span for omission in plan.layout.omissions))


def planned(chain: Sequence[Requested], texts: Mapping[str, str]) -> Plan:
    """The plan that the last of these records holds, a whole one first."""
    layout = Layout()
    for value in chain:
        layout = patched(layout, _applied(value).layout, texts)
    last = _applied(chain[-1])
    return Plan(
        last.profile,
        last.head,
        layout,
        last.account,
        last.tokens,
        last.scope,
        last.rewrites,
        last.cause,
        last.tried,
        last.untold,
        correction=last.correction,
        pace=last.pace,
    )


def layout_after(before: Layout, value: Requested, texts: Mapping[str, str]) -> Layout:
    """The layout that this record holds, from that of the record it is a difference to."""
    return patched(before if value.chain else Layout(), _applied(value).layout, texts)


def context_of(value: object) -> Context:
    """Who decided what the model saw of a request, by its record."""
    match value:
        case Requested(plan={"settings": dict(settings)}):
            provider, held = settings.get("provider"), settings.get("held")
            count = int(held) if isinstance(held, str) and held.isdigit() else 0
            return Context(provider if isinstance(provider, str) else "", count)
        case _:
            return Context()


def hashes_of(chain: Iterable[Requested]) -> set[str]:
    """The artifacts whose texts `planned` needs."""
    return {name for value in chain for name in _applied(value).layout.hashes()}


def rebuild(
    chain: Sequence[Requested], entries: Iterable[Entry], texts: Mapping[str, str]
) -> tuple[bytes, ...]:
    """The messages of the last of these records, made again from the entries of its spans.

    Raises Unrebuildable when they are not what was sent.
    """
    return tuple(sent.payload for sent in rebuild_with_sources(chain, entries, texts))


def rebuild_with_sources(
    chain: Sequence[Requested], entries: Iterable[Entry], texts: Mapping[str, str]
) -> "tuple[SentMessage, ...]":
    """The same, each message with the entry that it is of."""
    applied = _applied(chain[-1])
    wire = wire_for(applied.wire)
    if wire.version != applied.wire_version:
        raise Unrebuildable(
            f"It was made by version {applied.wire_version} of the {wire.name} wire.",
            f"This Refold has version {wire.version}; use the one that wrote it.",
        )
    plan = planned(chain, texts)
    visible = set(seqs(shown_spans(plan)))
    rows = [
        _row(wire, entry)
        for entry in entries
        if entry.seq in visible and entry.kind == Message.KIND and not entry.forgotten
    ]
    edits: Edits = {}
    messages = tuple(assemble(wire, rows, plan.layout, edits))
    if sha256(b"[" + b",".join(messages) + b"]").hexdigest() != chain[-1].digest:
        raise Unrebuildable("What can be made of the log today is not what was sent then.")
    # Assembling passes on the very objects that it was given, or those that editing made.
    sources: dict[int, list[int]] = {}
    for row in rows:
        message = edits[row.seq].message if row.seq in edits else row.payload
        sources.setdefault(id(message), []).append(row.seq)
    found = (sources.get(id(message)) for message in messages)
    return tuple(
        SentMessage(message, seqs.pop(0) if seqs else None)
        for message, seqs in zip(messages, found, strict=True)
    )


def _row(wire: Wire, entry: Entry) -> Row:
    role, shapes, _ = wire.describe(entry.body)
    parts = tuple(
        Part(entry.seq, nth, shape.kind, 0, 0, shape.tool, shape.call)
        for nth, shape in enumerate(shapes)
    )
    return Row(entry.seq, entry.body, role, parts, 0)


def _applied(value: Requested) -> Applied:
    try:
        applied = _ADAPTER.validate_python(value.plan)
    except ValidationError:
        raise Unrebuildable("The record does not hold a plan that this Refold can read.") from None
    if applied.version > RECORD_VERSION:
        raise Unrebuildable("A newer Refold wrote the record.", "Upgrade Refold.")
    return applied


_ADAPTER = TypeAdapter(Applied)
