"""The report of `refold lab`, as one would show it to a colleague."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refold.cli.lab_words import (
    FOLDING,
    dollars,
    finding,
    label,
    notes,
    percent,
    plain,
    share,
    tokens,
)
from refold.cli.tables import NOTHING
from refold.lab.finding import Found
from refold.lab.replay import Mark
from refold.lab.totals import Total, Totals

_WIDE = 100
_MOST_FOLDS = 6
_MOST_SESSIONS = 12
_MOST_FILES = 12
_LABEL = 26
_TITLES: Final = ("cost", "share", "cached", "kept", "refused", "largest", "folds")
_LEGEND = (
    "share: of what sending everything costs. cached: tokens that a provider had in its cache. "
    "kept: of the old names that the model used again, those it was still shown. "
    "refused: requests too long for the window, or with a tool call cut from its result."
)
_BEST = "* the cheapest that keeps nine names of ten and is never refused."
_ASCII = str.maketrans({"├": "|", "┤": "|", "─": "-", "▼": "v", "→": ">", NOTHING: "-", "…": "."})


def report(of: Totals, files: Sequence[Found], *, width: int, unread: int = 0) -> RenderableType:
    """All of it: the finding, the table, where the folds would have been, what was read."""
    blocks: list[RenderableType] = [
        Text(finding(of), style="bold"),
        "",
        _table(of, wide=width >= _WIDE),
        "",
        Text("\n".join([_LEGEND, *([_BEST] if of.best else []), *notes(of)]), style="dim"),
        "",
        *_timelines(of, width),
        *_read(files, unread, width),
    ]
    return Group(*blocks)


def show(report: RenderableType, console: Console) -> None:
    """Print it; where a terminal knows only ASCII, in ASCII."""
    if console.encoding.lower().startswith("utf"):
        console.print(report)
        return
    with console.capture() as captured:
        console.print(report)
    console.file.write(captured.get().translate(_ASCII))


def _table(of: Totals, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3 if wide else 1, 0, 0))
    table.add_column("what is sent", min_width=_LABEL + 2, no_wrap=True, header_style="dim")
    for title in _TITLES:
        table.add_column(title, justify="right", no_wrap=True, header_style="dim")
    best = of.best
    for one in of.every:
        style = "bold green" if one is best else ""
        table.add_row(*_cells(one, "* " if one is best else "  "), style=style)
        if one is of.everything:
            table.add_row(Text("Refold", style="dim"))
        elif one is [each for each in of.every if each.ours][-1] and one is not of.every[-1]:
            table.add_row(Text("rules of others", style="dim"))
    return table


def _cells(one: Total, mark: str) -> list[str]:
    row = one.row
    if row is None:
        return [f"{mark}{label(one)}", *[NOTHING] * len(_TITLES)]
    return [
        f"{mark}{label(one)}",
        dollars(row.cost),
        share(one),
        percent(row.cache_hits),
        percent(row.retained.rate) if row.retained.of else NOTHING,
        f"{one.refused:,}" if one.refused else "0",
        tokens(row.peak),
        f"{one.folds:,}" if one.ours or one.policy in FOLDING else NOTHING,
    ]


def _timelines(of: Totals, width: int) -> Iterable[RenderableType]:
    ours = [one.policy for one in of.every if one.ours]
    folded = [at for at, _ in enumerate(of.cases) if any(_marks(of, at, one) for one in ours)]
    if not folded:
        return
    yield Text("Where the folds would have been", style="bold")
    for at in folded[:_MOST_SESSIONS]:
        yield from _timeline(of, at, ours, width)
    if len(folded) > _MOST_SESSIONS:
        yield Text(f"… and in {len(folded) - _MOST_SESSIONS:,} more sessions", style="dim")
    yield ""


def _timeline(of: Totals, at: int, ours: Sequence[str], width: int) -> Iterable[RenderableType]:
    recording = of.cases[at].recording
    messages = len(recording.messages)
    yield Text(f"{plain(recording.name)}, {messages:,} messages")
    room = max(10, min(width, 120) - 26)
    for policy in ours:
        marks = _marks(of, at, policy)
        if marks:
            count = f"{len(marks):,} fold{'s' if len(marks) > 1 else ''}"
            yield Text(f"  {policy:<10} {_bar(marks, messages, room)} {count}")
    lead = _marks(of, at, ours[0])
    for mark in lead[:_MOST_FOLDS]:
        sizes = f"{tokens(mark.before)} → {tokens(mark.after)} tokens"
        yield Text(f"  {ours[0]} at message {mark.at:,} of {messages:,}: {sizes}", style="dim")
    if len(lead) > _MOST_FOLDS:
        yield Text(f"  … and {len(lead) - _MOST_FOLDS:,} more folds", style="dim")


def _marks(of: Totals, session: int, policy: str) -> tuple[Mark, ...]:
    outcome = of.of(session, policy)
    return outcome.marks if outcome else ()


def _bar(marks: Sequence[Mark], messages: int, room: int) -> str:
    cells = ["─"] * room
    for mark in marks:
        cells[min(room - 1, mark.at * room // max(1, messages))] = "▼"
    return f"├{''.join(cells)}┤"


def _read(files: Sequence[Found], unread: int, width: int) -> Iterable[RenderableType]:
    yield Text("What was read", style="bold")
    shown = sorted(files, key=lambda one: not one.why)[:_MOST_FILES]
    for one in shown:
        about = _about(one)
        text = Text(f"  {plain(_end(one.path, max(_LABEL, width - len(about) - 4)))}  ")
        yield text.append(about, style="dim")
    rest = sum(one.messages for one in files) - sum(one.messages for one in shown)
    if len(files) > len(shown):
        more = len(files) - len(shown)
        yield Text(f"  … and {more:,} more files, {rest:,} messages", style="dim")
    if unread:
        yield Text(f"  {unread:,} more sessions were found: --all replays them too.", style="dim")


def _about(one: Found) -> str:
    if one.why:
        return f"not read: {plain(one.why)}"
    many = len(one.recordings)
    parts = [
        one.format,
        f"{many:,} sessions" if many > 1 else "",
        f"{one.messages:,} messages",
        f"{one.broken:,} broken line{'s' if one.broken > 1 else ''} skipped" if one.broken else "",
        f"{one.older:,} older ones left out" if one.older else "",
    ]
    return ", ".join(part for part in parts if part)


def _end(path: str, width: int) -> str:
    return path if len(path) <= width else f"…{path[1 - width :]}"
