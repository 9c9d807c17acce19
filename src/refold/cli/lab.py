"""`refold lab`, and its report as JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated, Final, Literal

import typer
from pydantic import JsonValue
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from refold.cli.lab_report import report, show
from refold.cli.options import known_profile
from refold.cli.outcome import exit_on_error, wrong_usage
from refold.errors import InvalidInput
from refold.lab.findings import POLICIES, finding, findings_of, notes, plain
from refold.lab.html_report import html_report
from refold.lab.measure import (
    EVERYTHING,
    Job,
    Outcome,
    Total,
    Totals,
    each_measured,
    jobs_for,
    totals,
)
from refold.lab.policies import TIMED, baselines
from refold.lab.report import Case, CaseOptions, Row, case_of, prices_of
from refold.lab.session_files import FIX, SessionFile, recordings
from refold.models import Prices
from refold.settings import Settings, load_settings
from refold.terminal_text import counted
from refold.user_files import check_writable, write_whole
from refold.view.profiles import Profile
from refold.view.profiles import profile as profile_of

_PROFILES = ("balanced", "copilot", "co-cli", "inkeep", "cowagent")
_MINE: Final = "mine"
YOURS: Final = "your settings"
"""The row of the settings that apply where the command runs."""
_NOT_REPLAYED: Final = frozenset({"name", "retention", "store", "memory", "hooks", "consolidate"})
"""Tables of settings that change no request of a replay."""
_MAX_MESSAGES = 6_000
"""Messages that are replayed unless all are asked for: some minutes."""
_SECONDS_BETWEEN_LINES: Final = 10
"""Of the progress, where standard error is no terminal."""
_MIN_TOKENS = 1_000
_MAX_FILES = 20
_MAX_PRICE = 1e6
_PAGES: Final = frozenset({".html", ".htm"})
_MAX_FIXED = 1_000_000
Lifetime = Literal["none", "5m", "1h"]
LIFETIMES: Final[dict[Lifetime, float | None]] = {"none": None, "5m": 300, "1h": 3_600}
"""Seconds; with none, the cache never expires."""


def as_json(results: Totals, files: Sequence[SessionFile], unread: int) -> dict[str, JsonValue]:
    best, short = results.best, results.short
    return {
        "finding": finding(results),
        "notes": [*notes(results)],
        "best": best.policy if best else None,
        "policies": [_policy(total, results) for total in results.every],
        "sessions": [_session(case, short=i in short) for i, case in enumerate(results.cases)],
        "files": [_file(file) for file in files],
        "unread": unread,
    }


def _policy(total: Total, results: Totals) -> dict[str, JsonValue]:
    outcomes = [outcome for outcome in results.outcomes if outcome.policy == total.policy]
    return {
        "policy": total.policy,
        "ours": total.ours,
        **(_figures(total.row) if total.row else {}),
        "cost_ratio": total.share if total.row else None,
        "intervals_over_sessions": {
            "retained": [*total.interval(lambda row: row.retained)],
            "other_names": [*total.interval(lambda row: row.other_names)],
            "edits": [*total.interval(lambda row: row.edits)],
            "lines": [*total.interval(lambda row: row.lines)],
        },
        "of_bound": {
            "timing": total.of_bound(lambda one: one.timing)._asdict(),
            "all_in": total.of_bound(lambda one: one.all_in)._asdict(),
        },
        "refused": total.refused,
        "folds": total.folds,
        "error": total.error or None,
        "sessions": [
            {
                "session": outcome.session,
                **(_figures(outcome.row) if outcome.row else {}),
                "refused": outcome.refused,
                "folds": [mark._asdict() for mark in outcome.marks],
                "error": outcome.error or None,
            }
            for outcome in outcomes
        ],
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
        "account": {**row.account._asdict(), "all_in": row.account.all_in},
        **{
            name: {"found": share.found, "of": share.of, "rate": share.rate}
            for name, share in row.other_content.items()
        },
        "orphaned": row.orphaned,
        "largest": row.peak,
        "read_again": {"found": row.reread.found, "of": row.reread.of},
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
        "fixed": case.conditions.fixed,
        "lifetime": case.conditions.lifetime,
        "fold_of_the_bound": case.measure.fold,
        "short": short,
    }


def _file(file: SessionFile) -> dict[str, JsonValue]:
    return {
        "path": file.path,
        "format": file.format or None,
        "sessions": len(file.recordings),
        "messages": file.messages,
        "broken_lines": file.broken,
        "left_out": file.older,
        "not_shown_to_the_model": dict(file.skipped),
        "why_not": file.why or None,
    }


def _known(names: list[str] | None) -> list[str] | None:
    known_profile([name for name in names or () if name != _MINE])
    return names


def _profiles(names: Sequence[str] | None, settings: Settings) -> list[Profile]:
    """Those that are named; else all, and first the user's own: the finding is about the first."""
    own = settings.profile
    mine = own.model_copy(update={"name": YOURS})
    if names:
        return [mine if name == _MINE else profile_of(name) for name in dict.fromkeys(names)]
    shipped = profile_of(own.name)
    changed = any(
        getattr(own, name) != getattr(shipped, name)
        for name in Profile.model_fields
        if name not in _NOT_REPLAYED
    )
    rest = [profile_of(name) for name in dict.fromkeys((own.name, *_PROFILES))]
    return [mine, *rest] if changed else rest


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
            min=_MIN_TOKENS,
            metavar="N",
            help="Maximum tokens of a request, for every model.",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            min=_MIN_TOKENS,
            metavar="N",
            help="Tokens at which baselines, balanced and cowagent act.  [default: 100000]",
        ),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this profile; `mine` is your settings. Repeatable.",
            callback=_known,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only baselines whose name contains this."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|IN,OUT,READ,WRITE",
            help="Use this model's prices, or these dollars per million tokens.",
        ),
    ] = None,
    fixed: Annotated[
        str,
        typer.Option(
            metavar="N|recorded",
            help="Tokens of instructions and tools in each request; `recorded`: as the usage in "
            "the file says.",
        ),
    ] = "0",
    lifetime: Annotated[
        Lifetime,
        typer.Option(
            metavar="none|5m|1h", help="How long the provider's cache lasts after each request."
        ),
    ] = "none",
    bound: Annotated[
        bool,
        typer.Option("--bound", help="Show how far each row is from the best fold times."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Replay all sessions, however long it takes.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page with the report and its pictures, which opens offline.",
            show_default=False,
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Show what your recorded sessions would have cost, and lost, under each policy.

    Reads sessions of Claude Code, Codex, Copilot CLI, Gemini CLI, opencode, pi and Qwen Code,
    OpenAI chats, and exports of `refold export`, also compressed with gzip. The format is detected.
    If your settings differ from their profile, they get a row of their own. Nothing is sent
    anywhere, and no model is called.

    Example: refold lab ~/.claude/projects
    """
    with exit_on_error():
        settings = load_settings()
        profiles = _profiles(profile, settings)
        with wrong_usage():
            rules = _rules(policy, timed=bound)
            options = CaseOptions(
                *(window, threshold, prices_given(prices), fixed_given(fixed)),
                *(LIFETIMES[lifetime], settings.models),
            )
            check_page(html)
        session_files, cases, unread = read_cases(files, options, everything=everything)
        jobs = jobs_for(cases, profiles, rules)
        results = totals(cases, _replayed(jobs), [one.name for one in profiles], rules)
        if html is not None:
            left_out = [(file.path, file.why) for file in session_files if file.why]
            page = html_report(findings_of(results, left_out), datetime.now(UTC))
            write_whole(html, page.encode(errors="replace"))
        if json_:
            typer.echo(json.dumps(as_json(results, session_files, unread), indent=2))
            return
        console = Console(highlight=False, markup=False, emoji=False)
        made = report(results, session_files, width=console.width, unread=unread, bound=bound)
        show(made, console)
        if html is not None:
            typer.echo(f"\nWritten to {html}.")


def _replayed(jobs: Sequence[Job]) -> list[Outcome]:
    """The outcomes; standard error says meanwhile how many sessions are done."""
    outcomes: list[Outcome] = []
    left = Counter(job.session for job in jobs)
    sessions = counted(len(left), "session")
    next_line = monotonic() + _SECONDS_BETWEEN_LINES
    with progress_bar() as progress:
        of = sum(job.requests for job in jobs)
        task = progress.add_task(f"Replayed 0 of {sessions}", total=of)
        # Within a session, too: a long one takes minutes.
        on_requests = None if progress.disable else partial(_show_requests, progress, task)
        for job, measured in each_measured(jobs, on_requests=on_requests):
            outcomes += measured
            left[job.session] -= 1
            status = f"Replayed {sum(not jobs for jobs in left.values()):,} of {sessions}"
            progress.update(task, description=status)
            if progress.disable and monotonic() >= next_line:
                typer.echo(f"{status}.", err=True)
                next_line = monotonic() + _SECONDS_BETWEEN_LINES
    return outcomes


def _show_requests(progress: Progress, task: TaskID, requests: int) -> None:
    progress.update(task, completed=requests)


def check_page(path: Path | None) -> None:
    """Refuse a file that a page cannot be, before minutes are spent; a page is overwritten."""
    if path is None:
        return
    if path.suffix.lower() not in _PAGES:
        raise InvalidInput(f"{str(path)!r} is not the name of a page.", "End it in .html.")
    check_writable(path)


def read_cases(
    paths: Sequence[str], options: CaseOptions, *, everything: bool
) -> tuple[list[SessionFile], list[Case], int]:
    """The files, the sessions to replay, and how many more sessions there are."""
    files: list[SessionFile] = []
    cases: list[Case] = []
    messages = unread = 0
    with progress_bar() as progress:
        task = progress.add_task("Reading", total=None)
        for file in recordings(map(Path, paths)):
            progress.advance(task)
            files.append(file)
            for recording in file.recordings:
                length = len(recording.messages)
                if cases and messages + length > _MAX_MESSAGES and not everything:
                    unread += 1
                    continue
                messages += length
                cases.append(case_of(recording, options))
    if not cases:
        lines = [f"{plain(file.path)}: {file.why}." for file in files[:_MAX_FILES]]
        if len(files) > _MAX_FILES:
            lines.append(f"... and {len(files) - _MAX_FILES:,} more.")
        raise InvalidInput("\n".join(["No session could be read.", *lines]), FIX)
    return files, cases, unread


def _rules(filters: Sequence[str] | None, *, timed: bool = False) -> list[str]:
    names = [*baselines(), *(TIMED if timed else ())]
    chosen = [
        name
        for name in names
        if name == EVERYTHING
        or not filters
        or any(text.lower() in name or text.lower() in POLICIES.get(name, "") for text in filters)
    ]
    if filters and len(chosen) == 1:
        raise InvalidInput(
            f"No rule has {', '.join(map(repr, filters))} in its name.",
            f"There are: {'; '.join(names[1:])}.",
        )
    return chosen


def fixed_given(text: str) -> int | None:
    if text == "recorded":
        return None
    if not text.isdecimal() or int(text) > _MAX_FIXED:
        fix = f"Give a number of tokens up to {_MAX_FIXED:,}, or: recorded."
        raise InvalidInput(f"{text!r} is not a number of tokens.", fix)
    return int(text)


def prices_given(text: str | None) -> Prices | None:
    if text is None:
        return None
    fix = "Give a model (anthropic:claude-sonnet-4-5), or four dollar amounts: 3,15,0.30,3.75."
    try:
        amounts = [float(number) for number in text.split(",")]
    except ValueError:
        published = prices_of(text)
        if published is None:
            raise InvalidInput(f"No prices of {text!r} are known.", fix) from None
        return published
    if len(amounts) != len(Prices._fields) or not all(
        0 <= amount < _MAX_PRICE for amount in amounts
    ):
        raise InvalidInput(f"{text!r} is not four amounts.", fix)
    return Prices(*amounts)


def progress_bar() -> Progress:
    """A bar on standard error while it lasts, if that is a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal or console.is_dumb_terminal,
    )
