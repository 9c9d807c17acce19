"""`refold lab tune`: values for a profile from one's own sessions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from refold.cli.lab import (
    LIFETIMES,
    Lifetime,
    fixed_given,
    prices_given,
    progress_bar,
    read_cases,
)
from refold.cli.options import ProfileChoice
from refold.cli.outcome import exit_on_error, wrong_usage
from refold.cli.output import Line, print_lines, terminal_width
from refold.lab.findings import dollars, percent
from refold.lab.metrics import Share
from refold.lab.report import CaseOptions
from refold.lab.tune import Comparison, Interval, Trial, Tuned, tune
from refold.settings import load_settings, set_setting
from refold.terminal_text import Piece, counted, padded, wrapped

_ABOUT = (
    "Costs are of input, with folds, summaries, and what the model must read again. A replay sees "
    "what each profile would have sent, and not what the agent would have done otherwise."
)


def tune_command(  # noqa: PLR0913 - an option each
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...", help="Session files, or folders of them.", show_default=False
        ),
    ],
    *,
    profile: ProfileChoice = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the proposal to your settings, if there is one.")
    ] = False,
    project: Annotated[
        bool, typer.Option("--project", help="With --write: save it for this project instead.")
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(min=1_000, metavar="N", help="Maximum tokens of a request, for every model."),
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
    ] = "recorded",
    lifetime: Annotated[
        Lifetime,
        typer.Option(
            metavar="none|5m|1h", help="How long the provider's cache lasts after each request."
        ),
    ] = "5m",
    everything: Annotated[
        bool, typer.Option("--all", help="Replay all sessions, however long it takes.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Propose values for your profile from your own sessions.

    Replays your sessions with other values of the profile. The values that are cheapest on half of
    them, and keep as much, are measured on the other half, and proposed only if they are better
    there too. Otherwise, the advice is to keep the profile as it is. Nothing is sent anywhere.

    Example: refold lab tune ~/.claude/projects
    """
    with exit_on_error():
        own = load_settings(profile).profile
        with wrong_usage():
            options = CaseOptions(
                window, None, prices_given(prices), fixed_given(fixed), LIFETIMES[lifetime]
            )
        _, cases, unread = read_cases(files, options, everything=everything)
        with progress_bar() as bar:
            task = bar.add_task("Replaying", total=None)
            found = tune(cases, own, lambda done, of: bar.update(task, completed=done, total=of))
        written: list[str] = []
        if write and found.proposal:
            for key, value in found.proposal.items():
                change = set_setting(key, f"{value:g}", project=project)
                written.append(str(change.path))
        if json_:
            result = {**as_json(found), "unread": unread, "written": sorted({*written})}
            typer.echo(json.dumps(result, indent=2))
            return
        print_lines([*_lines(found, unread)])
        for path in sorted({*written}):
            typer.echo(f"Written to {path.replace(f'{Path.home()}/', '~/', 1)}.")


def as_json(found: Tuned) -> dict[str, JsonValue]:
    comparison = found.comparison
    return {
        "profile": found.profile,
        "proposal": {**found.proposal} if found.proposal else None,
        "why_not": found.why_not or None,
        "sessions": {
            "short": found.short,
            "chosen_on": found.chosen_on,
            "measured_on": found.measured_on,
        },
        "trials": [_trial_json(trial) for trial in found.trials],
        "measured": None
        if comparison is None
        else {
            "own": _trial_json(comparison.own),
            "chosen": _trial_json(comparison.chosen),
            "cost_ratio": comparison.cost._asdict(),
            "names_kept_more": comparison.names._asdict(),
        },
    }


def _trial_json(trial: Trial) -> dict[str, JsonValue]:
    return {
        "values": {**trial.values},
        "cost": trial.cost,
        "names": _share_json(trial.names),
        "edits": _share_json(trial.edits),
        "refused": trial.refused,
        "error": trial.error or None,
    }


def _share_json(share: Share) -> dict[str, JsonValue]:
    return {"found": share.found, "of": share.of, "rate": share.rate}


def _lines(found: Tuned, unread: int) -> Iterator[Line]:
    width = min(100, terminal_width())
    for line in wrapped(_finding(found), width):
        yield [Piece(line, "strong")]
    yield []
    if found.proposal:
        for key, value in found.proposal.items():
            yield [Piece(f"  refold config {key} {value:g}")]
        yield []
    if found.trials:
        yield [Piece(f"Chosen on {counted(found.chosen_on, 'session')}", "faint")]
        yield from _table(found.trials, found.profile)
        yield []
    if comparison := found.comparison:
        others = counted(found.measured_on, "other session")
        yield [Piece(f"Measured on {others}", "faint")]
        yield from _table((comparison.own, comparison.chosen), found.profile)
        yield [Piece(f"  {_intervals(comparison)}", "faint")]
        yield []
    if found.short:
        yield [Piece(f"{counted(found.short, 'session')} too short to fold: not used.", "faint")]
    if unread:
        yield [Piece(f"{counted(unread, 'more session')} found: --all replays them too.", "faint")]
    for line in wrapped(_ABOUT, width):
        yield [Piece(line, "faint")]


def _finding(found: Tuned) -> str:
    comparison = found.comparison
    if found.why_not or comparison is None:
        best = f" The best candidate was {comparison.chosen.text}." if comparison else ""
        return f"Keep {found.profile} as it is: {found.why_not}.{best}"
    saved = 1 - comparison.cost.value
    low, high = 1 - comparison.cost.high, 1 - comparison.cost.low
    return (
        f"Set {comparison.chosen.text}: on {found.measured_on} sessions that had no part in the "
        f"choice, this costs {saved:.1%} less than {found.profile} (95% interval {low:.1%} to "
        f"{high:.1%}) and keeps {percent(comparison.chosen.names.rate)} of the names used again "
        f"({found.profile}: {percent(comparison.own.names.rate)})."
    )


def _intervals(comparison: Comparison) -> str:
    cost, names = _span(comparison.cost), _span(comparison.names)
    return f"cost as a share: {cost}; names kept more: {names}"


def _span(interval: Interval) -> str:
    return f"{interval.value:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def _table(trials: tuple[Trial, ...], profile: str) -> Iterator[Line]:
    width = max(len(trial.text or profile) for trial in trials)
    titles = (("cost", 10), ("names", 7), ("edits", 7))
    head = "".join(padded(title, room, right=True) for title, room in titles)
    yield [Piece(f"  {' ' * width}{head}", "faint")]
    for trial in trials:
        cells = (dollars(trial.cost), percent(trial.names.rate), percent(trial.edits.rate))
        row = "".join(
            padded(cell, room, right=True) for cell, (_, room) in zip(cells, titles, strict=True)
        )
        failed = f"  not replayed: {trial.error}" if trial.error else ""
        yield [Piece(f"  {padded(trial.text or profile, width)}{row}{failed}")]
