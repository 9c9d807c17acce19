"""`refold lab`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from refold.cli.lab_json import as_json
from refold.cli.lab_report import report, show
from refold.cli.lab_words import plain
from refold.cli.outcome import explained
from refold.errors import InvalidInput
from refold.lab.cases import Case, Given, case_of, prices_of
from refold.lab.comparisons import baselines
from refold.lab.finding import FIX, Found, recordings
from refold.lab.in_parallel import each_measured
from refold.lab.measuring import EVERYTHING, Outcome, jobs_for
from refold.lab.metrics import Prices
from refold.lab.totals import Totals, totals
from refold.view.profiles import profile as profile_of

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
    with explained():
        profiles = [profile_of(name) for name in dict.fromkeys(profile or _PROFILES)]
        rules = _rules(policy)
        given = Given(window, threshold, _prices(prices))
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
    files: list[Found]
    cases: list[Case]
    unread: int


def _print(of: Totals, read: _Read, *, json_: bool) -> None:
    if json_:
        typer.echo(json.dumps(as_json(of, read.files, read.unread), indent=2))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    show(report(of, read.files, width=console.width, unread=read.unread), console)


def _read(paths: Sequence[str], given: Given, *, everything: bool) -> _Read:
    """The sessions, up to as many messages as are replayed; of those left, how many there are."""
    files: list[Found] = []
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


def _nothing(files: Sequence[Found]) -> str:
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
    """Four numbers, or a model's name."""
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
