"""`refold lab`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import JsonValue
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from refold.cli.lab_report import finding, notes, plain, report, show
from refold.cli.outcome import exit_on_error
from refold.errors import InvalidInput
from refold.lab.measure import EVERYTHING, Outcome, Total, Totals, each_measured, jobs_for, totals
from refold.lab.policies import baselines
from refold.lab.report import Case, CaseOptions, Row, case_of, prices_of
from refold.lab.session_files import FIX, SessionFile, recordings
from refold.models import Prices
from refold.view.profiles import profile as profile_of

# The report of `refold lab` for programs.


def as_json(of: Totals, files: Sequence[SessionFile], unread: int) -> dict[str, JsonValue]:
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
        "prices": case.prices._asdict(),
        "prices_known": case.priced,
        "short": short,
    }


def _file(one: SessionFile) -> dict[str, JsonValue]:
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


_PROFILES = ("balanced", "copilot", "co-cli", "inkeep", "cowagent")
_MOST = 6_000
"""Messages that are replayed unless all are asked for: some minutes."""
_LEAST_TOKENS = 1_000
_FEW_FILES = 20


def lab(  # noqa: PLR0913 - the choices that there are
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...", help="Session files, or folders of them.", show_default=False
        ),
    ],
    *,
    window: Annotated[
        int | None,
        typer.Option(
            min=_LEAST_TOKENS,
            metavar="N",
            help="Tokens that a request may have, whatever the model.",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            min=_LEAST_TOKENS,
            metavar="N",
            help="Act at this many tokens: rules of others, balanced, cowagent.  [default: 100000]",
        ),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these profiles; may be given again."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only rules of others with this in their name."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|IN,OUT,READ,WRITE",
            help="Prices of this model, or dollars for a million tokens.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Replay all sessions, however long it takes.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Show what your recorded sessions would have cost, and lost, under each policy.

    Reads sessions of Claude Code, Codex, Gemini CLI and pi, OpenAI chats, and what `refold export`
    wrote; finds the format by itself. Nothing is sent anywhere, and no model is asked.

    Example: refold lab ~/.claude/projects
    """
    with exit_on_error():
        profiles = [profile_of(name) for name in dict.fromkeys(profile or _PROFILES)]
        rules = _rules(policy)
        given = CaseOptions(window, threshold, _prices(prices))
        read = _read(files, given, everything=everything)
        jobs = jobs_for(read.cases, profiles, rules)
        outcomes: list[Outcome] = []
        with _progress() as progress:
            task = progress.add_task("Replaying", total=sum(len(job.policies) for job in jobs))
            for job, done in each_measured(jobs):
                outcomes += done
                progress.advance(task, len(job.policies))
        of = totals(read.cases, outcomes, [one.name for one in profiles], rules)
        _print(of, read, json_=json_)


class _Read(NamedTuple):
    files: list[SessionFile]
    cases: list[Case]
    unread: int


def _print(of: Totals, read: _Read, *, json_: bool) -> None:
    if json_:
        typer.echo(json.dumps(as_json(of, read.files, read.unread), indent=2))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    show(report(of, read.files, width=console.width, unread=read.unread), console)


def _read(paths: Sequence[str], given: CaseOptions, *, everything: bool) -> _Read:
    """The sessions, up to as many messages as are replayed; of those left, how many there are."""
    files: list[SessionFile] = []
    cases: list[Case] = []
    messages = unread = 0
    with _progress() as progress:
        task = progress.add_task("Reading", total=None)
        for found in recordings(map(Path, paths)):
            progress.advance(task)
            files.append(found)
            for recording in found.recordings:
                if cases and messages + len(recording.messages) > _MOST and not everything:
                    unread += 1
                    continue
                messages += len(recording.messages)
                cases.append(case_of(recording, given))
    if not cases:
        raise InvalidInput(_nothing(files), FIX)
    return _Read(files, cases, unread)


def _nothing(files: Sequence[SessionFile]) -> str:
    lines = [f"{plain(one.path)}: {one.why}." for one in files[:_FEW_FILES]]
    if len(files) > _FEW_FILES:
        lines.append(f"... and {len(files) - _FEW_FILES:,} more.")
    return "\n".join(["No session could be read.", *lines])


def _rules(wanted: Sequence[str] | None) -> list[str]:
    every = [*baselines()]
    chosen = [
        one
        for one in every
        if one == EVERYTHING or not wanted or any(each.lower() in one for each in wanted)
    ]
    if wanted and len(chosen) == 1:
        raise InvalidInput(
            f"No rule has {', '.join(map(repr, wanted))} in its name.",
            f"There are: {'; '.join(every[1:])}.",
        )
    return chosen


def _prices(given: str | None) -> Prices | None:
    if given is None:
        return None
    fix = "Give a model (anthropic:claude-sonnet-4-5), or four dollar amounts: 3,15,0.30,3.75."
    numbers = given.split(",")
    try:
        amounts = [float(one) for one in numbers]
    except ValueError:
        found = prices_of(given)
        if found is None:
            raise InvalidInput(f"No prices of {given!r} are known.", fix) from None
        return found
    if len(amounts) != 4 or not all(0 <= one < 1e6 for one in amounts):  # noqa: PLR2004 - as said
        raise InvalidInput(f"{given!r} is not four amounts.", fix)
    return Prices(*amounts)


def _progress() -> Progress:
    """A bar on standard error, gone when it is done; none where nobody looks."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
