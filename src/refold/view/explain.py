"""Why each part of a session is, or is not, in what the model sees.

`explain` says it of one request, for people (`as_text`) and for programs (`as_json`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.log import Entry, PartRef, SessionInfo
from refold.terminal_text import Piece, Tone, clipped, columns, counted, first_words, wrapped
from refold.view.budget import Budget
from refold.view.explanation import (
    Context,
    Findings,
    Inserted,
    Line,
    PartLine,
    Run,
    Total,
    inserts_of,
    lines_of,
    runs_of,
    sentence,
    unlisted,
)
from refold.view.plan import Plan
from refold.view.timeline import SYMBOLS, Fate, every_part, fate_of, span_text, timeline
from refold.view.view_input import ViewInput

EXPLANATION_VERSION: Final = 1
"""Raised when a key of the JSON changes its meaning, or is removed."""
NARROWEST: Final = 60
"""Below this the columns do not fit next to each other."""
_MIN_SENTENCE: Final = 28
"""Columns that a sentence must have to be next to its figures."""
_MAX_SOURCES: Final = 3

Text = Sequence[Piece]
"""One line of text."""

_CAUSES: Final = {
    "": "Nothing that was sent before is changed.",
    "target": "It passed its target, so old results and arguments were shortened.",
    "limit": "It would not have fitted, so the least needed was left out.",
    "window": "The profile's fixed limits took something out.",
    "restart": "The program was started again, and the profile restores the newest turns as text.",
    "rule": "The profile's rules change what is sent, on each request anew.",
}


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
                "program": self.program,
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
            "context": {
                "by": "provider" if self.context.provider else "refold",
                "reason": self.context.provider or None,
                "held": self.context.held,
                "sentence": self.context.sentences or None,
            },
            "request": {"messages": self.sent + len(self.inserts), "tokens": account.sent},
            "totals": [_total_json(total) for total in self.totals],
            "inserts": [_insert_json(insert) for insert in self.inserts],
            "unlisted": [
                {**asdict(span), "reason": reason, "sentence": sentence(reason)}
                for span, reason in self.unlisted
            ],
            "runs": [_run_json(run) for run in self.runs],
            "messages": [_line_json(line) for line in self.lines],
        }


def explain(  # noqa: PLR0913 - what must be there comes first, the rest by name
    inputs: ViewInput,
    plan: Plan,
    budget: Budget,
    *,
    info: SessionInfo | None = None,
    model: str | None = None,
    entries: Iterable[Entry] = (),
    context: Context = Context(),  # noqa: B008 - it is a tuple
) -> Explanation:
    """Explain the request that `plan` makes of `inputs`.

    `entries` are the session's, as far as they were read: messages among them that are not in the
    view (rewound, folded, forgotten) are then described too.
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
        context=context,
        program=info.origin.program if info and info.origin else None,
    )


class _Share(NamedTuple):
    name: str
    tokens: int
    mark: str
    tone: Tone
    note: str = ""


def causes(cause: str) -> str:
    return _CAUSES.get(cause, cause)


def pieces(findings: Findings, width: int, *, every: bool = False) -> Iterator[Text]:
    width = max(NARROWEST, width)
    yield from _head(findings, width)
    if sentences := findings.context.sentences:
        yield from _sentences(sentences, width, "strong")
    yield ()
    yield from _window(findings, width)
    yield ()
    yield from _left_out(findings, width)
    if findings.inserts:
        yield ()
        yield from _added(findings, width)
    yield ()
    yield from _legend(findings, width)
    yield from (every_part if every else timeline)(findings, width)


def _head(findings: Findings, width: int) -> Iterator[Text]:
    name = first_words(findings.session or "This session", width)
    title = first_words(findings.title, width) if findings.title else ""
    if title and title != name:
        name = clipped(f"{name} · {title}", width)
    yield (Piece(name, "strong"),)
    facts = [
        counted(len(findings.lines), "message", "messages"),
        # An import converts each agent's messages to one format, which says nothing of the agent.
        f"from {findings.program}" if findings.program else findings.format,
        f"profile {findings.profile}",
        f"model {findings.model or 'not named'}",
    ]
    if findings.scope != "/":
        facts.append(f"scope {findings.scope}")
    yield from _sentences(" · ".join(first_words(fact, width) for fact in facts), width, "faint")


def _window(findings: Findings, width: int) -> Iterator[Text]:
    account, window = findings.account, findings.window
    shown = findings.budget.shown_window
    of = f" of {shown}" if findings.budget.window is not None else f", which is {shown}"
    full = f"The next request takes {account.sent:,} tokens: "
    full += f"{_percent(account.sent, window)} of the window{of}."
    yield from _sentences(full, width, "strong")
    shares = [share for share in _shares(findings) if share.tokens or not share.note]
    yield _bar(shares, width)
    names = max(len(share.name) for share in shares)
    digits = max(len(f"{share.tokens:,}") for share in shares)
    for name, tokens, mark, tone, note in shares:
        figures = f" {name:{names}}  {tokens:>{digits},}  {_percent(tokens, window):>4}"
        room = width - 1 - len(figures) - 2
        yield (
            Piece(mark, tone),
            Piece(figures),
            Piece(f"  {clipped(note, room)}" if note else "", "faint"),
        )
    sent = f"It sends {findings.sent:,} of {counted(len(findings.lines), 'message', 'messages')}"
    added = len(findings.inserts)
    are = "is" if added == 1 else "are"
    sent += f", and {added:,} that {are} not in the log." if added else "."
    spread = f", up to {100 * findings.spread:.0f}% too low" if findings.spread else ""
    how = f"{sent} {_rewrite_sentence(findings)} Counted by {findings.counter}{spread}."
    yield from _sentences(how, width, "")


def _rewrite_sentence(findings: Findings) -> str:
    changed = any(total.disposition.edit != "keep" for total in findings.totals) or findings.inserts
    if not findings.cause and not changed:
        return "Nothing is changed."
    repeated = findings.cause and findings.rewrites > 1
    times = f" (rewrite {findings.rewrites} of this session)" if repeated else ""
    return f"{causes(findings.cause)[:-1]}{times}."


def _shares(findings: Findings) -> Iterator[_Share]:
    account = findings.account
    yield _Share("system", account.system, "▓", "system")
    yield _Share("tools", account.tools, "▒", "tools")
    yield _Share("conversation", account.conversation, "█", "conversation")
    yield _Share(
        "headroom", account.headroom, "░", "headroom", "in case the count is too low by this much"
    )
    yield _Share("free", account.free, "·", "free")
    yield _Share("reserve", account.reserve, "▚", "reserve", "kept free for the answer")
    above = findings.window - account.reserve - account.limit
    yield _Share("above", max(0, above), "-", "faint", f"the limit is set to {account.limit:,}")


def _bar(shares: Sequence[_Share], width: int) -> Text:
    used = [share for share in shares if share.tokens]
    whole = sum(share.tokens for share in used) or 1
    cells = [max(1, share.tokens * width // whole) for share in used]
    while cells and sum(cells) != width:
        largest = max(range(len(cells)), key=lambda index: cells[index])
        cells[largest] += 1 if sum(cells) < width else -1
    return [Piece(share.mark * count, share.tone) for share, count in zip(used, cells, strict=True)]


class _Row(NamedTuple):
    fate: Fate
    reason: str
    size: str
    tokens: str
    more: str = ""


def _left_out(findings: Findings, width: int) -> Iterator[Text]:
    changed = [total for total in findings.totals if total.disposition.edit != "keep"]
    before = sum(total.before for total in findings.totals)
    shortened = (total for total in changed if total.disposition.reason != "rendered")
    saved = sum(total.before - total.after for total in shortened)
    if not changed and not findings.unlisted:
        yield (Piece("Nothing is left out: every message is sent as it is.", "strong"),)
        return
    title = f"Left out or shortened: {saved:,} of {before:,} tokens"
    yield (Piece(clipped(title, width), "strong"),)
    rows: list[_Row] = []
    for disposition, parts, messages, tokens, after in changed:
        size = (
            counted(parts, "part", "parts") if parts else counted(messages, "message", "messages")
        )
        change = f"{tokens:,} → {after:,}"
        rows.append(_Row(fate_of(disposition), disposition.reason, size, change))
    for span, reason in findings.unlisted:
        rows.append(_Row("dropped", reason, f"entries {span_text(span)}", "?"))
    yield from _table(rows, width)


def _added(findings: Findings, width: int) -> Iterator[Text]:
    tokens = sum(insert.tokens for insert in findings.inserts)
    title = f"Added, though not in the log: {counted(len(findings.inserts), 'message', 'messages')}"
    yield (Piece(f"{title}, {tokens:,} tokens", "strong"),)
    by_reason: dict[str, list[Inserted]] = {}
    for insert in findings.inserts:
        by_reason.setdefault(insert.reason, []).append(insert)
    rows: list[_Row] = []
    for reason, inserts in by_reason.items():
        names = [_part_name(ref) for insert in inserts for ref in insert.sources]
        more = f"from {', '.join(names[:_MAX_SOURCES])}" if names else ""
        if len(names) > _MAX_SOURCES:
            more += f" and {len(names) - _MAX_SOURCES} more"
        size = counted(len(inserts), "message", "messages")
        tokens = sum(insert.tokens for insert in inserts)
        rows.append(_Row("inserted", reason, size, f"{tokens:,}", more))
    yield from _table(rows, width)


def _table(rows: Sequence[_Row], width: int) -> Iterator[Text]:
    """Symbol, reason, count, tokens, and the sentence: next to them, or below if it is narrow."""
    reasons = max(columns(row.reason) for row in rows)
    counts = max(len(row.size) for row in rows)
    tokens = max(len(row.tokens) for row in rows)
    used = 2 + reasons + 2 + counts + 2 + tokens + 2
    wide = width - used >= _MIN_SENTENCE
    for row in rows:
        figures = f" {row.reason:{reasons}}  {row.size:>{counts}}  {row.tokens:>{tokens}}"
        text = sentence(row.reason, added=row.fate == "inserted")
        text += f" ({row.more})" if row.more else ""
        lines = wrapped(text, width - used if wide else width - 4)
        lead = (Piece(SYMBOLS[row.fate], row.fate), Piece(figures))
        yield (*lead, Piece(f"  {lines[0]}", "faint")) if wide else lead
        for line in lines[1:] if wide else lines:
            yield (Piece(" " * (used if wide else 4) + line, "faint"),)


def _legend(findings: Findings, width: int) -> Iterator[Text]:
    fates = {fate_of(total.disposition) for total in findings.totals}
    fates |= {"inserted"} if findings.inserts else set()
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


def _part_name(ref: PartRef) -> str:
    return f"{ref.seq}.{ref.index}"


def _total_json(total: Total) -> dict[str, JsonValue]:
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


def _insert_json(insert: Inserted) -> dict[str, JsonValue]:
    return {
        "before": insert.before,
        "kind": insert.kind,
        "reason": insert.reason,
        "sentence": sentence(insert.reason, added=True),
        "tokens": insert.tokens,
        "words": insert.words,
        "sources": [_part_name(ref) for ref in insert.sources],
    }


def _run_json(run: Run) -> dict[str, JsonValue]:
    return {
        "first": run.lines[0].seq,
        "last": run.lines[-1].seq,
        "messages": len(run.lines),
        "totals": [_total_json(total) for total in run.totals],
    }


def _line_json(line: Line) -> dict[str, JsonValue]:
    return {
        "seq": line.seq,
        "role": line.role,
        "scope": line.scope,
        "turn": line.opens,
        "step": line.step,
        "reason": line.reason or None,
        "before": line.before,
        "after": line.after,
        "parts": [_part_json(part) for part in line.parts],
    }


def _part_json(part: PartLine) -> dict[str, JsonValue]:
    edit, reason = part.disposition
    return {
        "part": _part_name(part.ref),
        "kind": part.kind,
        "tool": part.tool,
        "edit": edit,
        "reason": reason,
        "before": part.before,
        "after": part.after,
        "words": part.words,
        "sources": [_part_name(ref) for ref in part.sources],
    }
