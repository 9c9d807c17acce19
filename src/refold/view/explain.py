"""Why each part of a session is, or is not, in what the model sees.

`explain` says it of one request, for people (`as_text`) and for programs (`as_json`).
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

from pydantic import JsonValue

from refold.log import Entry, PartRef, SessionInfo
from refold.view.budget import Budget
from refold.view.dispositions import inserts_of, lines_of, runs_of, unlisted
from refold.view.explain_text import causes, pieces
from refold.view.explained import Findings, Inserted, Line, Run, Told, Total, sentence
from refold.view.plan import Plan
from refold.view.sheet import Sheet

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
    sheet: Sheet,
    plan: Plan,
    budget: Budget,
    *,
    info: SessionInfo | None = None,
    model: str | None = None,
    entries: Iterable[Entry] = (),
) -> Explanation:
    """Explain the request that `plan` makes of `sheet`.

    `entries` are the session's, as far as they were read: among them may be messages that are not
    on the sheet, which can then be described too (rewound, folded, forgotten).
    """
    given = tuple(entries)
    lines = lines_of(sheet, plan, given)
    return Explanation(
        session=info.session if info else None,
        title=sheet.outline.title,
        format=sheet.wire.name,
        scope=plan.scope,
        head=plan.head,
        profile=plan.profile,
        model=model,
        counter=sheet.counter.name,
        spread=sheet.counter.spread,
        budget=budget,
        account=plan.account,
        rewrites=plan.rewrites,
        cause=plan.cause,
        lines=lines,
        inserts=inserts_of(sheet, plan),
        unlisted=unlisted(sheet, lines, given),
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
