"""The report of `refold lab` for people: the finding in words, a table, and timelines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refold.cli.output import NOTHING
from refold.lab.measure import Total, Totals, same
from refold.lab.metrics import DEFAULT_PRICES
from refold.lab.policies import MORE, SKI_RENTAL, TIMED, TWICE
from refold.lab.replay import Mark
from refold.lab.report import Case
from refold.lab.session_files import SessionFile
from refold.terminal_text import counted
from refold.view.budget import ASSUMED_WINDOW

POLICIES: Final = {
    "none": "everything",
    "sliding window, naive": "newest messages that fit",
    "sliding window, pair-safe": "the same, calls whole",
    "mask, rolling": "old results out, always",
    "mask, batched": "old results out, when full",
    "head and tail only": "head and tail only",
    "head / ledger / tail": "a summary of names",
    TWICE: "the same at twice its size",
    MORE: "the same at 2.5 times that",
    SKI_RENTAL: "the same, by ski rental",
}
"""The baselines, in a few words each."""
FOLDING: Final = frozenset({"head and tail only", "head / ledger / tail", *TIMED})

_CONTENT: Final = {
    "other_names": "names of other kinds",
    "edits": "texts that an edit replaced",
    "lines": "long lines",
}
_THOUSAND = 1_000
_MILLION = 1_000_000
_ALMOST_ALL = 0.995
_WIDE = 100
_MAX_FOLDS = 6
_MAX_SESSIONS = 12
_MAX_FILES = 12
_LABEL = 26
_TITLES: Final = ("cost", "share", "cached", "kept", "refused", "largest", "folds")
_LEGEND = (
    "share: of what sending everything costs. cached: tokens that a provider had in its cache. "
    "kept: of the old names that the model used again, those it was still shown. "
    "refused: requests too long for the window, or with a tool call cut from its result."
)
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
_BEST = "* the cheapest that keeps nine names of ten and is never refused."
_ASCII = str.maketrans({"├": "|", "┤": "|", "─": "-", "▼": "v", "→": ">", NOTHING: "-", "…": "."})


def finding(results: Totals) -> str:
    """The result in one sentence."""
    lead, base, count = results.leading, results.everything, len(results.cases)
    if base.row is None or lead.row is None:
        return f"{counted(count, 'session')} could not be compared: {base.error or lead.error}"
    cheapest = all(one.share >= 1 or same(one.share) for one in results.every if one.row)
    if len(results.short) == count and not lead.folds and same(lead.share):
        end = "; sending everything is the cheapest" if cheapest else ""
        large = tokens(base.row.peak)
        return f"{_short(count)} ({large} tokens at most): nothing would have been folded{end}."
    these = "this session" if count == 1 else f"these {count:,} sessions"
    start = f"Of {these} with {lead.policy} you would have paid"
    paid = f"{dollars(lead.row.cost)} instead of {dollars(base.row.cost)}"
    if same(lead.share):
        end = "" if lead.folds else ": nothing would have been folded"
        return f"{start} as much as for sending everything ({dollars(lead.row.cost)}){end}."
    if lead.share > 1:
        end = " Sending everything is the cheapest here." if cheapest else ""
        return f"{start} {lead.share - 1:.0%} more than for sending everything ({paid}).{end}"
    retained = lead.row.retained
    kept = f" and kept {percent(retained.rate)} of the names used again" if retained.of else ""
    return f"{start} {lead.share:.0%} of what sending everything costs ({paid}){kept}."


def notes(results: Totals) -> list[str]:
    """What one must know to read the table rightly."""
    base, short = results.everything, results.short
    lines: list[str] = []
    if base.refused:
        lines.append(
            f"Everything would not have fitted the window {base.refused:,} times: what it costs is "
            "what it would have cost if it had."
        )
    if short and len(short) < len(results.cases):
        thresholds = sorted({case.threshold for case in results.cases})
        act = f"the rules act at {' or '.join(map(tokens, thresholds))} tokens"
        lines.append(f"{_short(len(short))}: {act}.")
    lines += _price_notes(results.cases)
    lines += _condition_notes(results.cases)
    if content := _content(results.leading):
        lines.append(content)
    if any(total.ours and total.policy != "balanced" for total in results.every):
        lines.append(
            "No model was asked: where a profile lets one summarize, 1,500 tokens that say nothing "
            "stand in for it, so what it keeps is the least it would."
        )
    failed = (total for total in results.every if total.error)
    lines += [f"{label(total)} could not be replayed: {total.error}" for total in failed]
    return lines


def label(total: Total) -> str:
    return total.policy if total.ours else POLICIES.get(total.policy, total.policy)


def percent(rate: float) -> str:
    """Less than everything is never shown as 100%."""
    return ">99%" if _ALMOST_ALL <= rate < 1 else f"{rate:.0%}"


def dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"  # noqa: PLR2004


def tokens(count: int) -> str:
    if count < _THOUSAND:
        return f"{count}"
    if count < 10 * _THOUSAND:
        return f"{count / _THOUSAND:.1f}k"
    return f"{count / _THOUSAND:,.0f}k" if count < _MILLION else f"{count / _MILLION:.1f}M"


def plain(text: str) -> str:
    """A name from a file, without control characters."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _short(count: int) -> str:
    return "This session is short" if count == 1 else f"{count:,} sessions are short"


def _price_notes(cases: Sequence[Case]) -> list[str]:
    models = sorted({plain(case.model) for case in cases if case.priced and case.model})
    unpriced = sum(not case.priced for case in cases)
    unwindowed = sum(not case.windowed for case in cases)
    lines: list[str] = []
    if models and not unpriced:
        lines.append(f"Prices: {', '.join(models)}, as published or given.")
    if unpriced:
        prices = DEFAULT_PRICES
        lines.append(
            f"{counted(unpriced, 'session')} of no model whose prices are known: counted at "
            f"${prices.input:g} in, ${prices.output:g} out, ${prices.cache_read:g} from the cache, "
            f"${prices.cache_write:g} into it, a million tokens (--prices)."
        )
    if unwindowed:
        lines.append(
            f"{counted(unwindowed, 'session')} of no model whose window is known: "
            f"taken as {tokens(ASSUMED_WINDOW)} (--window)."
        )
    return lines


def _condition_notes(cases: Sequence[Case]) -> list[str]:
    fixed = sorted({case.conditions.fixed for case in cases})
    if not fixed[-1]:
        return []
    span = tokens(fixed[0]) if len(fixed) == 1 else f"{tokens(fixed[0])} to {tokens(fixed[-1])}"
    return [f"Each request begins with {span} tokens of instructions and tools."]


def _content(total: Total) -> str:
    """What was kept that no list of names is made for: a figure that favors no method."""
    if total.row is None:
        return ""
    shares = {_CONTENT[name]: share for name, share in total.row.other_content.items() if share.of}
    parts = [f"{percent(share.rate)} of {share.of:,} {name}" for name, share in shares.items()]
    return (
        f"Of other old content used again, {total.policy} kept {', '.join(parts)}." if parts else ""
    )


def report(
    results: Totals,
    files: Sequence[SessionFile],
    *,
    width: int,
    unread: int = 0,
    bound: bool = False,
) -> RenderableType:
    """The finding, the table, where the folds would have been, and which files were read."""
    legend = [_LEGEND, *([_BEST] if results.best else []), *notes(results)]
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
            *(percent(share.rate) if share.of else NOTHING for share in shares),
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
        percent(row.retained.rate) if row.retained.of else NOTHING,
        f"{total.refused:,}",
        tokens(row.peak),
        f"{total.folds:,}" if total.ours or total.policy in FOLDING else NOTHING,
    ]


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
    room = max(10, min(width, 120) - 26)
    for policy in profiles:
        if policy in marks:
            cells = ["─"] * room
            for mark in marks[policy]:
                cells[min(room - 1, mark.at * room // max(1, messages))] = "▼"
            yield Text(f"  {policy:<10} ├{''.join(cells)}┤ {counted(len(marks[policy]), 'fold')}")
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
