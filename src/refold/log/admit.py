"""Whether drafts may be appended, what a store must then write, and what forgetting leaves.

The whole rule of appending is here, as a function of what the store has read; the stores only read,
write and commit. Nothing is written before everything is checked.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from pydantic import JsonValue

from refold.errors import (
    Conflict,
    IdReused,
    InvalidEntry,
    InvalidInput,
    LogError,
    SessionForgotten,
    SessionNotFound,
)
from refold.log.artifact import INLINE_LIMIT, Artifact, Lifted, lift
from refold.log.codec import CODEC
from refold.log.entry import (
    Draft,
    Entry,
    Span,
    check_draft,
    check_name,
    intersect,
    placed,
    subtract,
    union,
)
from refold.log.kinds import (
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Forgotten,
    Message,
    Opened,
    Pinned,
    Rewound,
    Unknown,
    Unpinned,
)
from refold.log.outline import CONTROL_KINDS, REPLAYED_KINDS, Outline, Replay, advance, effect
from refold.log.protocol import Appended, State

NOTHING = b"{}"
"""The body of a tombstone that keeps no field."""
_CLOCK_TOLERANCE: Final = 60_000
"""Milliseconds that the clocks of two writers may differ."""
_NO_ENTRIES: Mapping[UUID, Entry] = {}
_NO_LIFTED: Mapping[UUID, Lifted] = {}


def tombstone(entry: Entry) -> Entry:
    """What stays of an entry (given whole): its id, time and seq, and the fields its kind keeps."""
    body, kind = NOTHING, CODEC.kind(entry.kind)
    if kind is not None and kind.KEPT and entry.version <= kind.VERSION:
        fields: dict[str, JsonValue] = json.loads(entry.body)
        kept = {key: fields[key] for key in sorted(kind.KEPT & fields.keys())}
        body = json.dumps(kept, separators=(",", ":")).encode()
    return entry._replace(body=body, holes=(), attached=(), scope="/", forgotten=True)


def dependents(forgotten: Iterable[Span], derived: Iterable[Entry]) -> list[Entry]:
    """The derived entries that rest, directly or through one another, on forgotten ones."""
    erased = union(forgotten)
    resting: list[Entry] = []
    for entry in sorted(derived, key=lambda entry: entry.seq):
        # An entry rests on earlier ones, so one pass in order is enough. Only the opening may rest
        # on a later one, and nothing rests on the opening.
        own = Span(entry.seq, entry.seq)
        if intersect(entry.rests_on, erased) and not intersect([own], erased):
            erased = union((*erased, own))
            resting.append(entry)
    return resting


def check_meaning(outline: Outline, entry: Entry, controls: Iterable[Entry]) -> None:
    """Refuse a control entry that has no meaning where it would be placed."""
    head = entry.seq - 1
    match effect(entry):
        case Rewound(to) if not 1 <= to <= head:
            raise InvalidEntry(f"Nothing is at {to}: the session has entries 1 to {head}.")
        case Pinned(parts) | Unpinned(parts) if any(part.seq > head for part in parts):
            raise InvalidEntry(f"A pinned part is beyond the head, {head}.")
        case FoldStarted(fold, spans):
            if any(running.fold == fold for running in outline.running):
                raise InvalidEntry(f"Fold {fold} has started already.")
            if not entry.forgotten:
                _check_spans(outline, head, spans)
        case FoldCompleted(fold, spans):
            _check_running(outline, fold)
            _check_spans(outline, head, spans)
        case FoldFailed(fold):
            _check_running(outline, fold)
        case FoldUndone(fold):
            # A forgotten fold is not in the outline any more, but may have been when it was undone.
            if not any(folded.fold == fold for folded in outline.folds) and not any(
                control.kind == FoldCompleted.KIND
                and control.forgotten
                and str(fold) in control.body.decode()
                for control in controls
            ):
                raise InvalidEntry(
                    f"Fold {fold} does not stand in the view.",
                    "Undo the folds above it first.",
                )
        case _:
            pass


def _check_running(outline: Outline, fold: UUID) -> None:
    if not any(running.fold == fold for running in outline.running):
        raise InvalidEntry(
            f"Fold {fold} is not running: it was never started, or has ended.",
            "End each started fold once.",
        )


def _check_spans(outline: Outline, head: int, spans: tuple[Span, ...]) -> None:
    if not spans or subtract(spans, outline.on_line(head)):
        raise InvalidEntry(
            "The fold would replace entries that are not on the session's line.",
            "Read the session again, and fold what its view contains now.",
        )


class Facts(NamedTuple):
    """What a store has read of a session before it appends to it."""

    state: State | None = None
    existing: Mapping[UUID, Entry] = _NO_ENTRIES
    """Those of its entries, read whole, that have an id of one of the drafts."""
    controls: Sequence[Entry] = ()
    """Its control entries, when `needs_controls` says so."""
    forgotten_at: int = 0
    """When a session of this name was forgotten, if there is none now."""
    lifted: Mapping[UUID, Lifted] = _NO_LIFTED
    """The large drafts, by id, as `lift_large` made them before."""
    now: int = 0
    """The time by the store's clock, in milliseconds; 0 if it is not known."""
    replay: Replay | None = None
    """A replay of the controls, continued here, of whoever admits one draft after another."""


class Write(NamedTuple):
    """The entries and artifacts to write, and the session's state afterwards."""

    entries: tuple[Entry, ...]
    artifacts: tuple[Artifact, ...]
    state: State


def check_drafts(drafts: Sequence[Draft]) -> None:
    if not drafts:
        raise InvalidInput("There is nothing to append.", "Pass at least one draft.")
    if len(drafts) > 1 and len({draft.id for draft in drafts}) < len(drafts):
        raise InvalidInput("The same draft is there twice.", "Give each entry an id of its own.")


def lift_large(drafts: Sequence[Draft]) -> Mapping[UUID, Lifted]:
    """The large drafts with their artifacts lifted out.

    To find and hash those takes long. A store does it before it takes a lock that others wait for.
    """
    large = (draft for draft in drafts if len(draft.body) > INLINE_LIMIT)
    return {draft.id: lift(draft.body) for draft in large}


def missing(session: str, forgotten_at: int) -> LogError:
    """Why a session that is not there cannot be read; 0 if it was never forgotten."""
    if forgotten_at:
        return SessionForgotten(f"Session {session!r} was forgotten.")
    return SessionNotFound(f"There is no session {session!r}.")


def needs_controls(drafts: Sequence[Draft]) -> bool:
    return not REPLAYED_KINDS.isdisjoint([draft.kind for draft in drafts])


def admit(
    session: str, drafts: Sequence[Draft], expected: int | None, facts: Facts
) -> Appended | Write:
    """What appending the drafts at `expected` (None: wherever the head is) comes to."""
    if facts.existing:
        return _repeat(drafts, facts.existing)
    return admit_new(session, drafts, expected, facts)


def admit_new(session: str, drafts: Sequence[Draft], expected: int | None, facts: Facts) -> Write:
    """What appending drafts comes to, of which the log holds none."""
    state = facts.state
    if state is None:
        opening = drafts[0]
        if expected == 0 and not facts.forgotten_at and opening.kind != Opened.KIND:
            raise InvalidEntry(
                f"Session {session!r} would begin with a {opening.kind!r} entry.",
                "Append an Opened entry first: it names the session's format and profile.",
            )
        if expected or opening.kind != Opened.KIND:
            raise missing(session, facts.forgotten_at)
        state = _initial_state(session, opening, facts.forgotten_at)
    elif expected is not None and expected != state.head:
        raise Conflict(session, expected=expected, found=state.head)
    not_before = state.not_before
    if facts.now and not_before > facts.now + _CLOCK_TOLERANCE:
        # A clock has jumped: the one that dated the forget was ahead, or ours was set back. The
        # name must not stay closed until ours catches up, so only drafts that are old by our own
        # clock are refused.
        not_before = facts.now - _CLOCK_TOLERANCE
    if min(draft.at for draft in drafts) < not_before:
        raise SessionForgotten(f"The drafts were made before session {session!r} was forgotten.")
    return _place(state, drafts, facts)


def admit_plain(state: State, draft: Draft, expected: int | None) -> State | None:
    """The state after one plain draft that the log does not hold; None when `admit` must decide.

    It says what `admit` says, in fewer steps: nearly every append is of this sort.
    """
    if (expected is not None and expected != state.head) or draft.at < state.not_before:
        return None
    if draft.kind in CONTROL_KINDS or draft.rests_on or draft.attached or draft.forgotten:
        return None
    if len(draft.body) > INLINE_LIMIT:
        return None
    check_draft(draft)
    return State(
        state.head + 1,
        state.messages + (draft.kind == Message.KIND),
        state.format,
        state.profile,
        state.created_at,
        draft.at,
        state.outline,
        state.not_before,
    )


def _repeat(drafts: Sequence[Draft], existing: Mapping[UUID, Entry]) -> Appended:
    entries = [existing.get(draft.id) for draft in drafts]
    first = entries[0].seq if entries[0] else 0
    for index, (draft, entry) in enumerate(zip(drafts, entries, strict=True)):
        if entry is None or entry.seq != first + index or not _same(draft, entry):
            raise IdReused(f"Draft {draft.id} is not what the log holds under these ids.")
    return Appended(first, first + len(drafts) - 1, repeated=True)


def _same(draft: Draft, entry: Entry) -> bool:
    if entry.forgotten and not draft.forgotten:
        return entry.kind == draft.kind  # its text was erased: there is nothing else to compare
    return entry._replace(seq=0, holes=()) == placed(draft, 0)


def _initial_state(session: str, opening: Draft, forgotten_at: int) -> State:
    check_name(session)
    check_draft(opening)
    match CODEC.decode(opening):
        case Opened(form, profile):
            pass
        case Forgotten(kept={"format": str(form), "profile": str(profile)}):
            pass
        case _:
            raise InvalidEntry("This Refold cannot read the session's opening.", "Upgrade Refold.")
    return State(0, 0, form, profile, opening.at, opening.at, Outline(), forgotten_at)


def _place(state: State, drafts: Sequence[Draft], facts: Facts) -> Write:
    entries: list[Entry] = []
    artifacts: list[Artifact] = []
    outline, messages, seq = state.outline, state.messages, state.head
    new_controls: list[Entry] = []
    replay = facts.replay
    for draft in drafts:
        seq += 1
        check_draft(draft)
        if (draft.kind == Opened.KIND) != (seq == 1):
            raise InvalidEntry(
                "A session is opened once, by its first entry.",
                "Append an Opened entry first, and only then.",
            )
        body, holes, lifted = facts.lifted.get(draft.id) or lift(draft.body)
        entry = placed(draft, seq, body, holes)
        # Only a title may be made of what comes after the entry that it stands in.
        earlier = draft.kind != Opened.KIND
        if earlier and draft.rests_on and max(span.last for span in draft.rests_on) >= seq:
            raise InvalidEntry(f"Entry {seq} would rest on entries that are not before it.")
        if draft.kind in CONTROL_KINDS:
            whole = entry._replace(body=draft.body) if holes else entry
            check_meaning(outline, whole, chain(facts.controls, new_controls))
            _check_sources(whole)
            new_controls.append(whole)
            if replay is not None:
                replay.take(whole)
            elif draft.kind in REPLAYED_KINDS:
                replay = Replay(chain(facts.controls, new_controls))
            if replay is not None and draft.kind in REPLAYED_KINDS:
                outline = replay.outline
            else:
                outline = advance(outline, whole)
        elif draft.kind == Message.KIND:
            messages += 1
        entries.append(entry)
        artifacts += [*lifted, *draft.attached]
    after = state._replace(head=seq, messages=messages, updated_at=drafts[-1].at, outline=outline)
    return Write(tuple(entries), tuple(artifacts), after)


def _check_sources(entry: Entry) -> None:
    """An entry must name all it rests on, or it would survive when that is forgotten."""
    value = CODEC.decode(entry)
    if not isinstance(value, Unknown | Forgotten) and subtract(value.rests_on(), entry.rests_on):
        raise InvalidEntry(
            f"A {entry.kind!r} entry rests on more than it says.", "Make drafts with an Author."
        )
