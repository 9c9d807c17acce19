"""The difference between two layouts, as request records keep it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refold.errors import Unrebuildable
from refold.log import Artifact, PartRef
from refold.view.plan import Layout
from refold.view.reasons import Gone
from refold.wire import Change, Drop, Insert, Replace

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

    gone: tuple[Gone, ...] = ()
    shown_again: tuple[Gone, ...] = ()
    drops: tuple[_Drop, ...] = ()
    replaces: tuple[_Replace, ...] = ()
    unchanged: tuple[PartRef, ...] = ()
    inserts: tuple[_Insert, ...] = ()
    kept_inserts: int | None = None
    """How many inserts of the earlier layout come first; None: all of them."""

    def hashes(self) -> set[str]:
        """The artifacts that hold its long texts."""
        replaced = {edit.text for edit in self.replaces if edit.hashed}
        return replaced | {edit.insert.text for edit in self.inserts if edit.hashed}


def difference(before: Layout, after: Layout, texts: dict[str, Artifact]) -> Difference:
    """How `after` comes from `before`; long texts go to `texts`, by their hashes."""
    if before is after:
        return Difference()
    old, new = set(before.gone), set(after.gone)
    kept = _common(before.inserts, after.inserts)
    changed = {
        ref: change for ref, change in after.changes.items() if before.changes.get(ref) != change
    }
    return Difference(
        gone=tuple(one for one in after.gone if one not in old),
        shown_again=tuple(one for one in before.gone if one not in new),
        drops=tuple(
            _Drop(ref, one.reason, one.sources)
            for ref, one in changed.items()
            if isinstance(one, Drop)
        ),
        replaces=tuple(
            _kept_replace(ref, one, texts)
            for ref, one in changed.items()
            if isinstance(one, Replace)
        ),
        unchanged=tuple(ref for ref in before.changes if ref not in after.changes),
        inserts=tuple(_kept_insert(one, texts) for one in after.inserts[kept:]),
        kept_inserts=None if kept == len(before.inserts) else kept,
    )


def patched(before: Layout, change: Difference, texts: Mapping[str, str]) -> Layout:
    """The layout that comes from `before` by this difference. Raises Unrebuildable."""
    back = set(change.shown_again)
    dropped = set(change.unchanged)
    changes: dict[PartRef, Change] = {
        ref: one for ref, one in before.changes.items() if ref not in dropped
    }
    changes.update({one.part: Drop(one.reason, one.sources) for one in change.drops})
    for one in change.replaces:
        text = _text(one.text, texts) if one.hashed else one.text
        changes[one.part] = Replace(one.head, text, one.tail, one.reason, one.sources)
    inserts = before.inserts[: change.kept_inserts]
    return Layout(
        (*(one for one in before.gone if one not in back), *change.gone),
        changes,
        (*inserts, *(_restored(one, texts) for one in change.inserts)),
    )


def _common(left: Sequence[Insert], right: Sequence[Insert]) -> int:
    count = 0
    for one, two in zip(left, right, strict=False):
        if one != two:
            break
        count += 1
    return count


def _kept_replace(ref: PartRef, edit: Replace, texts: dict[str, Artifact]) -> _Replace:
    text, hashed = _stored(edit.text, texts)
    return _Replace(ref, edit.head, text, edit.tail, edit.reason, edit.sources, hashed)


def _kept_insert(edit: Insert, texts: dict[str, Artifact]) -> _Insert:
    text, hashed = _stored(edit.text, texts)
    return _Insert(_with_text(edit, text), hashed)


def _restored(kept: _Insert, texts: Mapping[str, str]) -> Insert:
    if not kept.hashed:
        return kept.insert
    return _with_text(kept.insert, _text(kept.insert.text, texts))


def _with_text(edit: Insert, text: str) -> Insert:
    return Insert(edit.before, edit.kind, text, edit.reason, edit.tool, edit.call, edit.sources)


def _stored(text: str, texts: dict[str, Artifact]) -> tuple[str, bool]:
    if len(text) <= INLINE_CHARS:
        return text, False
    artifact = Artifact.of(text.encode(errors="surrogatepass"), "text/plain")
    texts[artifact.hash] = artifact
    return artifact.hash, True


def _text(name: str, texts: Mapping[str, str]) -> str:
    try:
        return texts[name]
    except KeyError:
        raise Unrebuildable(f"The text {name} that was inserted is gone.") from None
