"""The report of `refold lab` in a terminal: the finding, a table, and timelines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refold.cli.output import NOTHING
from refold.lab.findings import (
    BEST,
    FOLDING,
    LEGEND,
    dollars,
    finding,
    label,
    notes,
    percent,
    plain,
    share_text,
    tokens,
)
from refold.lab.measure import Total, Totals
from refold.lab.metrics import Share
from refold.lab.replay import Mark
from refold.lab.report import Case
from refold.lab.session_files import SessionFile
from refold.terminal_text import counted

_WIDE = 100
_MAX_FOLDS = 6
_MAX_SESSIONS = 12
_MAX_FILES = 12
_LABEL = 26
_MIN_PROFILE = 10
_TITLES: Final = ("cost", "share", "cached", "kept", "refused", "largest", "folds")
_BOUND_TITLES: Final = (
    *("timing", "max", "all in", "max"),
    *("names", "other", "edits", "lines", "again"),
)
_BOUND_LEGEND = (
    "Costs of input as a ratio to what the best fold times cost, which only hindsight knows. "
    "timing: when a row folds, each fold being as large as the bound's. all in: what the row "
    "itself costs, with its summaries, and with reading again what it lost. max: of one session. "
    "names to lines: what was kept of old content used again. again: how often something had to "
    "be read again."
)
_ASCII = str.maketrans({"├": "|", "┤": "|", "─": "-", "▼": "v", "→": ">", NOTHING: "-", "…": "."})


def report(
    results: Totals,
    files: Sequence[SessionFile],
    *,
    width: int,
    unread: int = 0,
    bound: bool = False,
) -> RenderableType:
    """The finding, the table, where the folds would have been, and which files were read."""
    legend = [LEGEND, *([BEST] if results.best else []), *notes(results)]
    return Group(
        Text(finding(results), style="bold"),
        "",
        _table(results, wide=width >= _WIDE),
        "",
        Text("\n".join(legend), style="dim"),
        "",
        *(_against_bound(results) if bound else ()),
        *_timelines(results, width),
        *_read(files, unread, width),
    )


def show(report: RenderableType, console: Console) -> None:
    """Print it, in ASCII where the terminal has no more."""
    if console.encoding.lower().startswith("utf"):
        console.print(report)
        return
    with console.capture() as captured:
        console.print(report)
    console.file.write(captured.get().translate(_ASCII))


def _table(results: Totals, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3 if wide else 1, 0, 0))
    table.add_column("what is sent", min_width=_LABEL + 2, no_wrap=True, header_style="dim")
    for title in _TITLES:
        table.add_column(title, justify="right", no_wrap=True, header_style="dim")
    best = results.best
    last_profile = [total for total in results.every if total.ours][-1]
    for total in results.every:
        style = "bold green" if total is best else ""
        table.add_row(*_cells(total, "* " if total is best else "  "), style=style)
        if total is results.everything:
            table.add_row(Text("Refold", style="dim"))
        elif total is last_profile and total is not results.every[-1]:
            table.add_row(Text("rules of others", style="dim"))
    return table


def _against_bound(results: Totals) -> Iterable[RenderableType]:
    folds = sorted({case.measure.fold for case in results.cases})
    yield Text("Against the best fold times", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("what is sent", min_width=_LABEL, no_wrap=True, header_style="dim")
    for title in _BOUND_TITLES:
        table.add_column(title, justify="right", no_wrap=True, header_style="dim")
    for total in results.every:
        row = total.row
        if row is None:
            table.add_row(label(total), *[NOTHING] * len(_BOUND_TITLES))
            continue
        timing = total.of_bound(lambda one: one.timing)
        all_in = total.of_bound(lambda one: one.all_in)
        shares = (row.retained, *row.other_content.values())
        table.add_row(
            label(total),
            f"{timing.pooled:.2f}",
            f"{timing.worst:.2f}",
            f"{all_in.pooled:.2f}",
            f"{all_in.worst:.2f}",
            *(_short_share(share) for share in shares),
            f"{row.account.misses:,}",
        )
    yield table
    sizes = " or ".join(f"{fold:,}" for fold in folds)
    yield Text(f"{_BOUND_LEGEND} The bound's folds leave {sizes} tokens.", style="dim")
    yield ""


def _cells(total: Total, mark: str) -> list[str]:
    row = total.row
    if row is None:
        return [f"{mark}{label(total)}", *[NOTHING] * len(_TITLES)]
    return [
        f"{mark}{label(total)}",
        dollars(row.cost),
        f"{total.share:.0%}",
        percent(row.cache_hits),
        share_text(row.retained.found, row.retained.of) if row.retained.of else NOTHING,
        f"{total.refused:,}",
        tokens(row.peak),
        f"{total.folds:,}" if total.ours or total.policy in FOLDING else NOTHING,
    ]


def _short_share(share: Share) -> str:
    return share_text(share.found, share.of).replace(" of ", "/") if share.of else NOTHING


def _timelines(results: Totals, width: int) -> Iterable[RenderableType]:
    profiles = [total.policy for total in results.every if total.ours]
    marks: dict[int, dict[str, Sequence[Mark]]] = {}
    for outcome in results.outcomes:
        if outcome.policy in profiles and outcome.marks:
            marks.setdefault(outcome.session, {})[outcome.policy] = outcome.marks
    if not marks:
        return
    yield Text("Where the folds would have been", style="bold")
    for session in sorted(marks)[:_MAX_SESSIONS]:
        yield from _timeline(results.cases[session], marks[session], profiles, width)
    if len(marks) > _MAX_SESSIONS:
        yield Text(f"… and in {len(marks) - _MAX_SESSIONS:,} more sessions", style="dim")
    yield ""


def _timeline(
    case: Case, marks: Mapping[str, Sequence[Mark]], profiles: Sequence[str], width: int
) -> Iterable[RenderableType]:
    messages = len(case.recording.messages)
    yield Text(f"{plain(case.recording.name)}, {counted(messages, 'message')}")
    label = max(_MIN_PROFILE, *map(len, marks))
    room = max(10, min(width, 120) - 16 - label)
    for policy in profiles:
        if policy in marks:
            cells = ["─"] * room
            for mark in marks[policy]:
                cells[min(room - 1, mark.at * room // max(1, messages))] = "▼"
            yield Text(
                f"  {policy:<{label}} ├{''.join(cells)}┤ {counted(len(marks[policy]), 'fold')}"
            )
    lead = marks.get(profiles[0], ())
    for mark in lead[:_MAX_FOLDS]:
        sizes = f"{tokens(mark.before)} → {tokens(mark.after)} tokens"
        place = f"{profiles[0]} at message {mark.at:,} of {messages:,}"
        yield Text(f"  {place}: {sizes}", style="dim")
    if len(lead) > _MAX_FOLDS:
        yield Text(f"  … and {counted(len(lead) - _MAX_FOLDS, 'more fold')}", style="dim")


def _read(files: Sequence[SessionFile], unread: int, width: int) -> Iterable[RenderableType]:
    yield Text("What was read", style="bold")
    ordered = sorted(files, key=lambda file: not file.why)
    for file in ordered[:_MAX_FILES]:
        about = _about(file)
        room = max(_LABEL, width - len(about) - 4)
        path = file.path if len(file.path) <= room else f"…{file.path[1 - room :]}"
        yield Text(f"  {plain(path)}  ").append(about, style="dim")
    if rest := ordered[_MAX_FILES:]:
        messages = sum(file.messages for file in rest)
        sizes = f"{counted(len(rest), 'more file')}, {counted(messages, 'message')}"
        yield Text(f"  … and {sizes}", style="dim")
    if unread:
        more = counted(unread, "more session was", "more sessions were")
        yield Text(f"  {more} found: --all replays them too.", style="dim")


def _about(file: SessionFile) -> str:
    if file.why:
        return f"not read: {plain(file.why)}"
    sessions = len(file.recordings)
    parts = [
        file.format,
        f"{sessions:,} sessions" if sessions > 1 else "",
        counted(file.messages, "message"),
        f"{counted(file.broken, 'broken line')} skipped" if file.broken else "",
        f"{file.older:,} older ones left out" if file.older else "",
    ]
    return ", ".join(part for part in parts if part)
