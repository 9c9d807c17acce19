"""Why each part of a session is, or is not, in what the model sees.

`explain` says it of one request, for people (`as_text`) and for programs (`as_json`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.log import Entry, PartRef, SessionInfo
from refold.view.budget import Budget
from refold.view.explanation import (
    Findings,
    Inserted,
    Line,
    Piece,
    Run,
    Told,
    Tone,
    Total,
    clipped,
    columns,
    first_words,
    inserts_of,
    lines_of,
    runs_of,
    sentence,
    unlisted,
    wrapped,
)
from refold.view.plan import Plan
from refold.view.timeline import SYMBOLS, Fate, counted, every_part, fate_of, timeline
from refold.view.view_input import ViewInput

# An explanation as text: how full the window is, what was left out and why, and the timeline.

NARROWEST: Final = 60
"""Below this the columns do not fit beside each other."""
_SENTENCE = 28
"""Columns that a sentence must have to stand beside its figures."""

Text = Sequence[Piece]
"""One line."""

_CAUSES: Final = {
    "": "Nothing that was sent before is changed.",
    "target": "It passed its target, so old results and arguments were shortened.",
    "limit": "It would not have fitted, so the least needed was left out.",
    "window": "The profile's fixed limits took something out.",
    "rule": "The profile's rules change what is sent, on each request anew.",
}


class _Share(NamedTuple):
    name: str
    tokens: int
    mark: str
    tone: Tone
    note: str = ""


def causes(cause: str) -> str:
    """Why what had been sent before is changed, for people."""
    return _CAUSES.get(cause, cause)


def pieces(found: Findings, width: int, *, every: bool = False) -> Iterator[Text]:
    """The lines of the explanation, as wide as `width` at most."""
    width = max(NARROWEST, width)
    yield from _head(found, width)
    yield ()
    yield from _window(found, width)
    yield ()
    yield from _left_out(found, width)
    if found.inserts:
        yield ()
        yield from _added(found, width)
    yield ()
    yield from _legend(found, width)
    yield from (every_part if every else timeline)(found, width)


def _head(found: Findings, width: int) -> Iterator[Text]:
    name = first_words(found.session or "This session", width)
    title = first_words(found.title, width) if found.title else ""
    if title and title != name:
        name = clipped(f"{name} · {title}", width)
    yield (Piece(name, "strong"),)
    facts = [
        counted(len(found.lines), "message", "messages"),
        found.format,
        f"profile {found.profile}",
        f"model {found.model or 'not named'}",
    ]
    if found.scope != "/":
        facts.append(f"scope {found.scope}")
    yield from _sentences(" · ".join(first_words(one, width) for one in facts), width, "faint")


def _window(found: Findings, width: int) -> Iterator[Text]:
    account, window = found.account, found.window
    shown = found.budget.shown_window
    of = f" of {shown}" if found.budget.window is not None else f", which is {shown}"
    full = f"The next request takes {account.sent:,} tokens: "
    full += f"{_percent(account.sent, window)} of the window{of}."
    yield from _sentences(full, width, "strong")
    shares = [one for one in _shares(found) if one.tokens or not one.note]
    yield _bar(shares, width)
    wide = max(len(one.name) for one in shares)
    most = max(len(f"{one.tokens:,}") for one in shares)
    for one in shares:
        figures = f" {one.name:{wide}}  {one.tokens:>{most},}  {_percent(one.tokens, window):>4}"
        room = width - 1 - len(figures) - 2
        note = f"  {clipped(one.note, room)}" if one.note else ""
        yield Piece(one.mark, one.tone), Piece(figures), Piece(note, "faint")
    sent = f"It sends {found.sent:,} of {counted(len(found.lines), 'message', 'messages')}"
    added = len(found.inserts)
    sent += (
        f", and {added:,} that {'is' if added == 1 else 'are'} not in the log." if added else "."
    )
    spread = f", up to {100 * found.spread:.0f}% too low" if found.spread else ""
    how = f"{sent} {_rewritten(found)} Counted by {found.counter}{spread}."
    yield from _sentences(how, width, "")


def _rewritten(found: Findings) -> str:
    changed = any(one.disposition.edit != "keep" for one in found.totals) or found.inserts
    if not found.cause and not changed:
        return "Nothing is changed."
    times = (
        f" (rewrite {found.rewrites} of this session)" if found.cause and found.rewrites > 1 else ""
    )
    return f"{causes(found.cause)[:-1]}{times}."


def _shares(found: Findings) -> Iterator[_Share]:
    account = found.account
    yield _Share("system", account.system, "▓", "system")
    yield _Share("tools", account.tools, "▒", "tools")
    yield _Share("conversation", account.conversation, "█", "conversation")
    yield _Share(
        "headroom", account.headroom, "░", "headroom", "in case the count is too low by this much"
    )
    yield _Share("free", account.free, "·", "free")
    yield _Share("reserve", account.reserve, "▚", "reserve", "kept free for the answer")
    above = found.window - account.reserve - account.limit
    yield _Share("above", max(0, above), "-", "faint", f"the limit is set to {account.limit:,}")


def _bar(shares: Sequence[_Share], width: int) -> Text:
    """The whole width, shared out; what is there at all gets a column at least."""
    there = [one for one in shares if one.tokens]
    whole = sum(one.tokens for one in there) or 1
    cells = [max(1, one.tokens * width // whole) for one in there]
    while cells and sum(cells) != width:
        largest = max(range(len(cells)), key=lambda at: cells[at])
        cells[largest] += 1 if sum(cells) < width else -1
    return [Piece(one.mark * count, one.tone) for one, count in zip(there, cells, strict=True)]


def _left_out(found: Findings, width: int) -> Iterator[Text]:
    changed = [one for one in found.totals if one.disposition.edit != "keep"]
    before = sum(one.before for one in found.totals)
    saved = sum(one.before - one.after for one in changed)
    if not changed and not found.unlisted:
        yield (Piece("Nothing is left out: every message is sent as it is.", "strong"),)
        return
    title = f"Left out or shortened: {saved:,} of {before:,} tokens"
    yield (Piece(clipped(title, width), "strong"),)
    rows = [_row_of(one) for one in changed]
    rows += [
        _Row("dropped", gone.reason, f"entries {_span(gone.span.first, gone.span.last)}", "?")
        for gone in found.unlisted
    ]
    yield from _table(rows, width)


def _added(found: Findings, width: int) -> Iterator[Text]:
    tokens = sum(one.tokens for one in found.inserts)
    title = f"Added, though not in the log: {counted(len(found.inserts), 'message', 'messages')}"
    yield (Piece(f"{title}, {tokens:,} tokens", "strong"),)
    by_reason: dict[str, list[Inserted]] = {}
    for one in found.inserts:
        by_reason.setdefault(one.reason, []).append(one)
    yield from _table([_added_row(reason, each) for reason, each in by_reason.items()], width)


class _Row(NamedTuple):
    fate: Fate
    reason: str
    size: str
    tokens: str
    more: str = ""


def _row_of(total: Total) -> _Row:
    size = (
        counted(total.parts, "part", "parts")
        if total.parts
        else counted(total.messages, "message", "messages")
    )
    tokens = f"{total.before:,} → {total.after:,}"
    return _Row(fate_of(total.disposition), total.disposition.reason, size, tokens)


def _added_row(reason: str, each: list[Inserted]) -> _Row:
    tokens = sum(one.tokens for one in each)
    names = [f"{ref.seq}.{ref.index}" for one in each for ref in one.sources]
    more = f"from {', '.join(names[:3])}" if names else ""
    more += f" and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004 - as above
    return _Row("inserted", reason, counted(len(each), "message", "messages"), f"{tokens:,}", more)


def _table(rows: Sequence[_Row], width: int) -> Iterator[Text]:
    """Symbol, reason, count, tokens, and the sentence: beside them, or below where it is narrow."""
    reasons = max(columns(one.reason) for one in rows)
    counts = max(len(one.size) for one in rows)
    tokens = max(len(one.tokens) for one in rows)
    used = 2 + reasons + 2 + counts + 2 + tokens + 2
    beside = width - used >= _SENTENCE
    for one in rows:
        figures = f" {one.reason:{reasons}}  {one.size:>{counts}}  {one.tokens:>{tokens}}"
        said = sentence(one.reason, added=one.fate == "inserted") + (
            f" ({one.more})" if one.more else ""
        )
        lines = wrapped(said, width - used if beside else width - 4)
        lead = (Piece(SYMBOLS[one.fate], one.fate), Piece(figures))
        yield (*lead, Piece(f"  {lines[0]}", "faint")) if beside else lead
        for line in lines[1:] if beside else lines:
            yield (Piece(" " * (used if beside else 4) + line, "faint"),)


def _legend(found: Findings, width: int) -> Iterator[Text]:
    fates = {fate_of(one.disposition) for one in found.totals}
    fates |= {"inserted"} if found.inserts else set()
    line = [Piece("Timeline", "strong")]
    room = width - len("Timeline")
    for fate, mark in SYMBOLS.items():
        room -= len(fate) + 4 if fate in fates else 0
        if fate in fates and room >= 0:
            line += [Piece(f"  {mark} ", fate), Piece(fate, "faint")]
    yield line


def _sentences(text: str, width: int, tone: Tone) -> Iterator[Text]:
    for line in wrapped(text, width):
        yield (Piece(line, tone),)


def _percent(tokens: int, whole: int) -> str:
    if not tokens or not whole:
        return "0%"
    share = 100 * tokens / whole
    return f"{share:.0f}%" if share >= 1 else "<1%"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


EXPLANATION_VERSION: Final = 1
"""Raised when a key of the JSON gets another meaning, or goes."""


class Explanation(Findings):
    """What becomes of each part of a session in one request, and why."""

    __slots__ = ()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The messages in runs that share one fate."""
        return runs_of(self.lines)

    def as_text(self, width: int = 80, *, every: bool = False) -> str:
        """The explanation for people: plain text, no line wider than `width` (60 at least).

        With `every`, each part has a line of its own; else the messages are grouped.
        """
        lines = pieces(self, width, every=every)
        return "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in lines)

    def as_json(self) -> dict[str, JsonValue]:
        """The explanation for programs. Parts are named "seq.index"."""
        account = self.account
        return {
            "explanation": EXPLANATION_VERSION,
            "session": {
                "name": self.session,
                "title": self.title,
                "format": self.format,
                "scope": self.scope,
                "head": self.head,
                "messages": len(self.lines),
            },
            "profile": self.profile,
            "model": self.model,
            "counter": {"name": self.counter, "spread": self.spread},
            "window": {"tokens": self.budget.window, "shown": self.budget.shown_window},
            "account": {**account._asdict(), "sent": account.sent, "free": account.free},
            "rewrite": {
                "count": self.rewrites,
                "cause": self.cause or None,
                "sentence": causes(self.cause),
            },
            "request": {"messages": self.sent + len(self.inserts), "tokens": account.sent},
            "totals": [_total(one) for one in self.totals],
            "inserts": [_insert(one) for one in self.inserts],
            "unlisted": [
                {**asdict(gone.span), "reason": gone.reason, "sentence": sentence(gone.reason)}
                for gone in self.unlisted
            ],
            "runs": [_run(run) for run in self.runs],
            "messages": [_line(line) for line in self.lines],
        }


def explain(  # noqa: PLR0913 - what must be there comes first, the rest by name
    inputs: ViewInput,
    plan: Plan,
    budget: Budget,
    *,
    info: SessionInfo | None = None,
    model: str | None = None,
    entries: Iterable[Entry] = (),
) -> Explanation:
    """Explain the request that `plan` makes of `inputs`.

    `entries` are the session's, as far as they were read: among them may be messages that are not
    on the sheet, which can then be described too (rewound, folded, forgotten).
    """
    given = tuple(entries)
    lines = lines_of(inputs, plan, given)
    return Explanation(
        session=info.session if info else None,
        title=inputs.outline.title,
        format=inputs.wire.name,
        scope=plan.scope,
        head=plan.head,
        profile=plan.profile,
        model=model,
        counter=inputs.counter.name,
        spread=inputs.counter.spread,
        budget=budget,
        account=plan.account,
        rewrites=plan.rewrites,
        cause=plan.cause,
        lines=lines,
        inserts=inserts_of(inputs, plan),
        unlisted=unlisted(inputs, lines, given),
    )


def _name(ref: PartRef) -> str:
    return f"{ref.seq}.{ref.index}"


def _total(total: Total) -> dict[str, JsonValue]:
    edit, reason = total.disposition
    return {
        "edit": edit,
        "reason": reason,
        "sentence": total.disposition.sentence,
        "parts": total.parts,
        "messages": total.messages,
        "before": total.before,
        "after": total.after,
    }


def _insert(insert: Inserted) -> dict[str, JsonValue]:
    return {
        "before": insert.before,
        "kind": insert.kind,
        "reason": insert.reason,
        "sentence": sentence(insert.reason, added=True),
        "tokens": insert.tokens,
        "words": insert.words,
        "sources": [_name(ref) for ref in insert.sources],
    }


def _run(run: Run) -> dict[str, JsonValue]:
    return {
        "first": run.lines[0].seq,
        "last": run.lines[-1].seq,
        "messages": len(run.lines),
        "totals": [_total(one) for one in run.totals],
    }


def _line(line: Line) -> dict[str, JsonValue]:
    return {
        "seq": line.seq,
        "role": line.role,
        "scope": line.scope,
        "turn": line.opens,
        "step": line.step,
        "reason": line.reason or None,
        "before": line.before,
        "after": line.after,
        "parts": [_part(part) for part in line.parts],
    }


def _part(part: Told) -> dict[str, JsonValue]:
    edit, reason = part.disposition
    return {
        "part": _name(part.ref),
        "kind": part.kind,
        "tool": part.tool,
        "edit": edit,
        "reason": reason,
        "before": part.before,
        "after": part.after,
        "words": part.words,
        "sources": [_name(ref) for ref in part.sources],
    }
