"""The report of `refold lab` for programs."""

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import JsonValue

from refold.cli.lab_words import finding, notes
from refold.lab.cases import Case
from refold.lab.finding import Found
from refold.lab.measuring import Outcome
from refold.lab.report import Row
from refold.lab.totals import Total, Totals


def as_json(of: Totals, files: Sequence[Found], unread: int) -> dict[str, JsonValue]:
    """All of it."""
    best = of.best
    return {
        "finding": finding(of),
        "notes": [*notes(of)],
        "best": best.policy if best else None,
        "policies": [_policy(one, of) for one in of.every],
        "sessions": [_session(case, short=at in of.short) for at, case in enumerate(of.cases)],
        "files": [_file(one) for one in files],
        "unread": unread,
    }


def _policy(one: Total, of: Totals) -> dict[str, JsonValue]:
    found = [each for each in of.outcomes if each.policy == one.policy]
    return {
        "policy": one.policy,
        "ours": one.ours,
        **(_figures(one.row) if one.row else {}),
        "cost_ratio": one.share if one.row else None,
        "refused": one.refused,
        "folds": one.folds,
        "error": one.error or None,
        "sessions": [_outcome(each) for each in found],
    }


def _figures(row: Row) -> dict[str, JsonValue]:
    return {
        "cost": row.cost,
        "cost_uncached": row.cost_uncached,
        "requests": row.requests,
        "sent": row.sent,
        "cached": row.cached,
        "cache_hits": row.cache_hits,
        "retained": {
            "found": row.retained.found,
            "of": row.retained.of,
            "rate": row.retained.rate,
            "interval": [*row.retained.interval],
        },
        "orphaned": row.orphaned,
        "largest": row.peak,
        "read_again": {"found": row.reread.found, "of": row.reread.of},
    }


def _outcome(one: Outcome) -> dict[str, JsonValue]:
    return {
        "session": one.session,
        **(_figures(one.row) if one.row else {}),
        "refused": one.refused,
        "folds": [mark._asdict() for mark in one.marks],
        "error": one.error or None,
    }


def _session(case: Case, *, short: bool) -> dict[str, JsonValue]:
    return {
        "name": case.recording.name,
        "messages": len(case.recording.messages),
        "model": case.model or None,
        "window": case.window,
        "window_known": case.windowed,
        "threshold": case.threshold,
        "prices": asdict(case.prices),
        "prices_known": case.priced,
        "short": short,
    }


def _file(one: Found) -> dict[str, JsonValue]:
    return {
        "path": one.path,
        "format": one.format or None,
        "sessions": len(one.recordings),
        "messages": one.messages,
        "broken_lines": one.broken,
        "left_out": one.older,
        "not_shown_to_the_model": dict(one.skipped),
        "why_not": one.why or None,
    }
