"""Whether drafts may be appended, and what a store must then write.

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
from refold.log.protocol import State

# What is left of an entry when it is forgotten, and what goes with it.

NOTHING = b"{}"


def tombstone(entry: Entry) -> Entry:
    """What stays of an entry (given whole): its id, time and place, and what its kind keeps."""
    return entry._replace(body=_kept(entry), holes=(), attached=(), scope="/", forgotten=True)


def fallen(forgotten: Iterable[Span], derived: Iterable[Entry]) -> list[Entry]:
    """The derived entries that rest, directly or through one another, on forgotten ones."""
    gone = union(forgotten)
    taken: list[Entry] = []
    for entry in sorted(derived, key=lambda entry: entry.seq):
        # An entry rests on earlier ones, so one pass in order is enough. Only the opening may rest
        # on a later one, and nothing rests on the opening.
        if intersect(entry.rests_on, gone) and not intersect([Span(entry.seq, entry.seq)], gone):
            gone = union((*gone, Span(entry.seq, entry.seq)))
            taken.append(entry)
    return taken


def _kept(entry: Entry) -> bytes:
    kind = CODEC.kind(entry.kind)
    if kind is None or not kind.KEPT or entry.version > kind.VERSION:
        return NOTHING
    body: dict[str, JsonValue] = json.loads(entry.body)
    kept = {key: body[key] for key in sorted(kind.KEPT & body.keys())}
    return json.dumps(kept, separators=(",", ":")).encode()


# Whether a control entry has a meaning where it would be placed.


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
            _check_standing(outline, fold, controls)
        case _:
            pass


def _check_standing(outline: Outline, fold: UUID, controls: Iterable[Entry]) -> None:
    if any(one.fold == fold for one in outline.folds):
        return
    for entry in controls:  # one that is forgotten stands no more, but may have when this was said
        if (
            entry.kind == FoldCompleted.KIND
            and entry.forgotten
            and str(fold) in entry.body.decode()
        ):
            return
    raise InvalidEntry(
        f"Fold {fold} does not stand in the view.",
        "Take back the folds that stand over it first.",
    )


def _check_running(outline: Outline, fold: UUID) -> None:
    if not any(running.fold == fold for running in outline.running):
        raise InvalidEntry(
            f"Fold {fold} is not running: it was never started, or has ended.",
            "End each started fold once.",
        )


def _check_spans(outline: Outline, head: int, spans: tuple[Span, ...]) -> None:
    if not spans or subtract(spans, outline.on_line(head)):
        raise InvalidEntry(
            "The fold would stand for entries that are not on the session's line.",
            "Read the session again and fold what its view holds now.",
        )


_CLOCK_TOLERANCE: Final = 60_000
"""Milliseconds that the clocks of two writers may differ."""
_NONE_SEEN: Mapping[UUID, Entry] = {}
_NONE_LIFTED: Mapping[UUID, Lifted] = {}


class Facts(NamedTuple):
    """What a store has read of a session before it appends to it."""

    state: State | None = None
    seen: Mapping[UUID, Entry] = _NONE_SEEN
    """Those of its entries, read whole, that have an id of one of the drafts."""
    controls: Sequence[Entry] = ()
    """Its control entries, when `needs_controls` says so."""
    forgotten_at: int = 0
    """When a session of this name was forgotten, if there is none now."""
    lifted: Mapping[UUID, Lifted] = _NONE_LIFTED
    """The large drafts, by id, as `lift_large` made them before."""
    now: int = 0
    """The time by the store's clock, in milliseconds; 0 if it is not known."""
    replay: Replay | None = None
    """A replay of the controls, continued here, of whoever admits one draft after another."""


class Repeat(NamedTuple):
    """The drafts are in the log already, at these positions."""

    first: int
    last: int


class Write(NamedTuple):
    """The entries and artifacts to write, and the session's state afterwards."""

    entries: tuple[Entry, ...]
    artifacts: tuple[Artifact, ...]
    state: State


def check_drafts(drafts: Sequence[Draft]) -> None:
    """Refuse an append of nothing, or of one draft twice."""
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
    """Whether `admit` must be given the session's control entries."""
    return not REPLAYED_KINDS.isdisjoint([draft.kind for draft in drafts])


def admit(
    session: str, drafts: Sequence[Draft], expected: int | None, facts: Facts
) -> Repeat | Write:
    """What appending the drafts at `expected` (None: wherever the head is) comes to."""
    if facts.seen:
        return _repeated(drafts, facts.seen)
    return admit_new(session, drafts, expected, facts)


def admit_new(session: str, drafts: Sequence[Draft], expected: int | None, facts: Facts) -> Write:
    """What appending drafts comes to, of which the log holds none."""
    state = facts.state
    if state is None:
        if expected or drafts[0].kind != Opened.KIND:
            raise _not_begun(session, drafts[0], expected, facts.forgotten_at)
        state = _opened(session, drafts[0], facts.forgotten_at)
    elif expected is not None and expected != state.head:
        raise Conflict(session, expected=expected, found=state.head)
    if _is_late(min(draft.at for draft in drafts), state.not_before, facts.now):
        raise SessionForgotten(
            f"The drafts are older than the day session {session!r} was forgotten."
        )
    return _placed(state, drafts, facts)


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


def _is_late(at: int, not_before: int, now: int) -> bool:
    """Whether a draft was made before the session of this name was forgotten."""
    if now and not_before > now + _CLOCK_TOLERANCE:
        # A clock has jumped: that of whoever forgot was ahead, or ours was set back. The name must
        # not be closed until it has caught up, so a draft is late only if it is old by our clock.
        not_before = now - _CLOCK_TOLERANCE
    return at < not_before


def _repeated(drafts: Sequence[Draft], seen: Mapping[UUID, Entry]) -> Repeat:
    entries = [seen.get(draft.id) for draft in drafts]
    first = entries[0].seq if entries[0] else 0
    for at, (draft, entry) in enumerate(zip(drafts, entries, strict=True)):
        if entry is None or entry.seq != first + at or not _same(draft, entry):
            raise IdReused(f"Draft {draft.id} is not what the log holds under these ids.")
    return Repeat(first, first + len(drafts) - 1)


def _same(draft: Draft, entry: Entry) -> bool:
    if entry.forgotten and not draft.forgotten:
        return entry.kind == draft.kind  # what it said is gone, so there is nothing to compare
    return entry._replace(seq=0, holes=()) == placed(draft, 0)


def _not_begun(
    session: str, draft: Draft, expected: int | None, forgotten_at: int
) -> LogError | InvalidEntry:
    if expected == 0 and not forgotten_at:
        return InvalidEntry(
            f"Session {session!r} would begin with a {draft.kind!r} entry.",
            "Append an Opened entry first: it names the session's format and profile.",
        )
    return missing(session, forgotten_at)


def _opened(session: str, opening: Draft, forgotten_at: int) -> State:
    check_name(session)
    check_draft(opening)
    form, profile = _format_and_profile(opening)
    return State(0, 0, form, profile, opening.at, opening.at, Outline(), forgotten_at)


def _format_and_profile(opening: Draft) -> tuple[str, str]:
    match CODEC.decode(opening):
        case Opened(form, profile):
            return form, profile
        case Forgotten(kept={"format": str(form), "profile": str(profile)}):
            return form, profile
        case _:
            raise InvalidEntry("This Refold cannot read the session's opening.", "Upgrade Refold.")


def _placed(state: State, drafts: Sequence[Draft], facts: Facts) -> Write:
    entries: list[Entry] = []
    artifacts: list[Artifact] = []
    outline, messages, seq = state.outline, state.messages, state.head
    known: list[Entry] = []
    replay = facts.replay
    for draft in drafts:
        seq += 1
        check_draft(draft)
        _check_opening(draft, seq)
        body, holes, lifted = facts.lifted.get(draft.id) or lift(draft.body)
        entry = placed(draft, seq, body, holes)
        # Only a title may be made of what comes after the entry that it stands in.
        earlier = draft.kind != Opened.KIND
        if earlier and draft.rests_on and max(span.last for span in draft.rests_on) >= seq:
            raise InvalidEntry(f"Entry {seq} would rest on entries that are not before it.")
        if draft.kind in CONTROL_KINDS:
            whole = entry._replace(body=draft.body) if holes else entry
            check_meaning(outline, whole, chain(facts.controls, known))
            _check_ground(whole)
            known.append(whole)
            if replay is not None:
                replay.take(whole)
            elif draft.kind in REPLAYED_KINDS:
                replay = Replay(chain(facts.controls, known))
            if replay is not None and draft.kind in REPLAYED_KINDS:
                outline = replay.outline
            else:
                outline = advance(outline, whole)
        elif draft.kind == Message.KIND:
            messages += 1
        entries.append(entry)
        artifacts += [*lifted, *draft.attached]
    after = State(
        seq,
        messages,
        state.format,
        state.profile,
        state.created_at,
        drafts[-1].at,
        outline,
        state.not_before,
    )
    return Write(tuple(entries), tuple(artifacts), after)


def _check_opening(draft: Draft, seq: int) -> None:
    if (draft.kind == Opened.KIND) != (seq == 1):
        raise InvalidEntry(
            "A session is opened once, by its first entry.",
            "Append an Opened entry first, and only then.",
        )


def _check_ground(entry: Entry) -> None:
    """An entry must name all it rests on, or it would survive when that is forgotten."""
    value = CODEC.decode(entry)
    if isinstance(value, Unknown | Forgotten):
        return
    if subtract(value.rests_on(), entry.rests_on):
        raise InvalidEntry(
            f"A {entry.kind!r} entry rests on more than it says.", "Make drafts with an Author."
        )
