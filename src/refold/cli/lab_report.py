"""The report of `refold lab`, as one would show it to a colleague."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from refold.cli.output import NOTHING
from refold.lab.measure import Total, Totals, same
from refold.lab.metrics import DEFAULT_PRICES
from refold.lab.replay import Mark
from refold.lab.report import Case
from refold.lab.session_files import SessionFile
from refold.view.budget import ASSUMED_WINDOW

# What `refold lab` found, in words.

POLICIES: Final = {
    "none": "everything",
    "sliding window, naive": "newest messages that fit",
    "sliding window, pair-safe": "the same, calls whole",
    "mask, rolling": "old results out, always",
    "mask, batched": "old results out, when full",
    "head / empty summary / tail": "a summary of nothing",
    "head / ledger / tail": "a summary of names",
}
"""The rules of others, in a few words each."""
FOLDING: Final = frozenset({"head / empty summary / tail", "head / ledger / tail"})
"""Those of them that fold."""

_THOUSAND = 1_000
_MILLION = 1_000_000
_ALMOST_ALL = 0.995


def finding(of: Totals) -> str:
    """The one sentence for who reads no more."""
    lead, base = of.leading, of.everything
    many = sessions(len(of.cases))
    if base.row is None or lead.row is None:
        return f"{many} could not be compared: {base.error or lead.error}"
    if len(of.short) == len(of.cases) and not lead.folds and same(lead.share):
        end = "; sending everything is the cheapest" if _cheapest_is_everything(of) else ""
        large = tokens(base.row.peak)
        return (
            f"{_short(len(of.cases))} ({large} tokens at most): nothing would have been folded"
            f"{end}."
        )
    paid = f"{dollars(lead.row.cost)} instead of {dollars(base.row.cost)}"
    if lead.share > 1 and not same(lead.share):
        return (
            f"Of {these(len(of.cases))} with {lead.policy} you would have paid "
            f"{lead.share - 1:.0%} more than for sending everything ({paid}). {_cheapest(of)}"
        ).rstrip()
    if same(lead.share):
        end = "" if lead.folds else ": nothing would have been folded"
        return (
            f"Of {these(len(of.cases))} with {lead.policy} you would have paid as much as for "
            f"sending everything ({dollars(lead.row.cost)}){end}."
        )
    return (
        f"Of {these(len(of.cases))} with {lead.policy} you would have paid {share(lead)} of what "
        f"sending everything costs ({paid}){_kept(lead)}."
    )


def notes(of: Totals) -> list[str]:
    """What must be known to read the table rightly."""
    base = of.everything
    found: list[str] = []
    if base.refused:
        found.append(
            f"Everything would not have fitted the window {base.refused:,} times: what it costs is "
            "what it would have cost if it had."
        )
    if of.short and len(of.short) < len(of.cases):
        found.append(f"{_short(len(of.short))}: the rules act at {_thresholds(of.cases)} tokens.")
    found += _on_prices(of.cases)
    if any(one.ours and one.policy != "balanced" for one in of.every):
        found.append(
            "No model was asked: where a profile lets one summarize, 1,500 tokens that say nothing "
            "stand in for it, so what it keeps is the least it would."
        )
    found += [f"{label(one)} could not be replayed: {one.error}" for one in of.every if one.error]
    return found


def label(one: Total) -> str:
    """The name of a policy, for people."""
    return one.policy if one.ours else POLICIES.get(one.policy, one.policy)


def sessions(count: int) -> str:
    return f"{count:,} session" if count == 1 else f"{count:,} sessions"


def these(count: int) -> str:
    """The same, of which was spoken already."""
    return "this session" if count == 1 else f"these {count:,} sessions"


def share(one: Total) -> str:
    """What a policy costs, of what sending everything costs."""
    return f"{one.share:.0%}"


def percent(rate: float) -> str:
    """A share; what is not all of it is never shown as all."""
    return ">99%" if _ALMOST_ALL <= rate < 1 else f"{rate:.0%}"


def dollars(amount: float) -> str:
    """An amount, with as many digits as say something."""
    return f"${amount:,.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"  # noqa: PLR2004


def tokens(count: int) -> str:
    if count < _THOUSAND:
        return f"{count}"
    if count < 10 * _THOUSAND:
        return f"{count / _THOUSAND:.1f}k"
    return f"{count / _THOUSAND:,.0f}k" if count < _MILLION else f"{count / _MILLION:.1f}M"


def plain(text: str) -> str:
    """A name from a file, without what a terminal would take for an order."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _kept(lead: Total) -> str:
    retained = lead.row.retained if lead.row else None
    if not retained or not retained.of:
        return ""
    return f" and kept {percent(retained.rate)} of the names used again"


def _short(count: int) -> str:
    return "This session is short" if count == 1 else f"{count:,} sessions are short"


def _cheapest(of: Totals) -> str:
    return "Sending everything is the cheapest here." if _cheapest_is_everything(of) else ""


def _cheapest_is_everything(of: Totals) -> bool:
    return all(one.share >= 1 or same(one.share) for one in of.every if one.row)


def _thresholds(cases: Sequence[Case]) -> str:
    return " or ".join(tokens(one) for one in sorted({case.threshold for case in cases}))


def _on_prices(cases: Sequence[Case]) -> list[str]:
    known = sorted({plain(case.model) for case in cases if case.priced and case.model})
    unknown = sum(not case.priced for case in cases)
    wide = sum(not case.windowed for case in cases)
    said: list[str] = []
    if known and not unknown:
        said.append(f"Prices: {', '.join(known)}, as published or given.")
    if unknown:
        usual = DEFAULT_PRICES
        said.append(
            f"{sessions(unknown)} of no model whose prices are known: counted at "
            f"${usual.input:g} in, ${usual.output:g} out, ${usual.cache_read:g} from the cache, "
            f"${usual.cache_write:g} into it, a million tokens (--prices)."
        )
    if wide:
        window = tokens(ASSUMED_WINDOW)
        said.append(
            f"{sessions(wide)} of no model whose window is known: taken as {window} (--window)."
        )
    return said


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


def report(
    of: Totals, files: Sequence[SessionFile], *, width: int, unread: int = 0
) -> RenderableType:
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


def _read(files: Sequence[SessionFile], unread: int, width: int) -> Iterable[RenderableType]:
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


def _about(one: SessionFile) -> str:
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
