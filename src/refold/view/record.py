"""Request records: what was sent, kept so that it can be made again.

A record holds the plan as it was applied: whole every 64 requests, else as the difference to the
record before. Making the request again applies those edits to the log's own bytes and plans
nothing, so today's limits, prices and rules do not matter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from refold.errors import Unrebuildable
from refold.log import MAIN_SCOPE, Artifact, Entry, Message, Requested
from refold.log.span import Span, seqs, spans_of, subtract, union, up_to
from refold.view.assemble import assemble
from refold.view.budget import Account
from refold.view.difference import Difference, difference, patched
from refold.view.plan import Layout, Plan
from refold.view.row import Row
from refold.view.view import Request
from refold.wire import Part, Wire, wire_for

WHOLE_EVERY = 64
"""How many records may be chained before one is whole again."""
RECORD_VERSION = 1


@dataclass(frozen=True, slots=True)
class Applied:
    """A plan as a record keeps it."""

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
    settings: Mapping[str, str] | None = None
    """Hashes of instructions, tools and settings, by name."""
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
        plan.untold,
        hashes,
    )
    value = Requested(
        spans=union((*shown(plan), *spans_of(_quoted(plan.layout)))),
        plan=_ADAPTER.dump_python(applied, mode="json", exclude_defaults=True),
        model=model,
        digest=request.digest,
        limit=plan.account.limit,
        chain=() if whole or previous is None else (*previous.chain, previous.seq),
    )
    return Record(value, tuple(texts.values()))


def shown(plan: Plan) -> tuple[Span, ...]:
    """The entries that the plan shows something of."""
    return subtract(up_to(plan.head), (gone.span for gone in plan.layout.gone))


def planned(chain: Sequence[Requested], texts: Mapping[str, str]) -> Plan:
    """The plan that the last of these records holds, a whole one first."""
    layout = Layout()
    for one in chain:
        layout = patched(layout, _applied(one).layout, texts)
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
    )


def hashes_of(chain: Iterable[Requested]) -> set[str]:
    """The artifacts whose texts `planned` needs."""
    return {name for one in chain for name in _applied(one).layout.hashes()}


def rebuild(
    chain: Sequence[Requested], entries: Iterable[Entry], texts: Mapping[str, str]
) -> tuple[bytes, ...]:
    """The messages of the last of these records, made again from the entries of its spans.

    Raises Unrebuildable when they are not what was sent.
    """
    applied = _applied(chain[-1])
    wire = wire_for(applied.wire)
    if wire.version != applied.wire_version:
        raise Unrebuildable(
            f"It was made by version {applied.wire_version} of the {wire.name} wire.",
            f"This Refold has version {wire.version}; use the one that wrote it.",
        )
    plan = planned(chain, texts)
    wanted = set(seqs(shown(plan)))
    rows = [
        _row(wire, entry)
        for entry in entries
        if entry.seq in wanted and entry.kind == Message.KIND and not entry.forgotten
    ]
    messages = tuple(assemble(wire, rows, plan.layout))
    if sha256(b"[" + b",".join(messages) + b"]").hexdigest() != chain[-1].digest:
        raise Unrebuildable("What can be made of the log today is not what was sent then.")
    return messages


def _row(wire: Wire, entry: Entry) -> Row:
    role, shapes, _ = wire.describe(entry.body)
    parts = tuple(
        Part(entry.seq, nth, shape.kind, 0, 0, shape.tool, shape.call)
        for nth, shape in enumerate(shapes)
    )
    return Row(entry.seq, entry.body, role, parts, 0)


def _quoted(layout: Layout) -> Iterable[int]:
    for insert in layout.inserts:
        yield from (source.seq for source in insert.sources)


def _applied(one: Requested) -> Applied:
    try:
        applied = _ADAPTER.validate_python(one.plan)
    except ValidationError:
        raise Unrebuildable("The record does not hold a plan that this Refold can read.") from None
    if applied.version > RECORD_VERSION:
        raise Unrebuildable("A newer Refold wrote the record.", "Upgrade Refold.")
    return applied


_ADAPTER = TypeAdapter(Applied)
