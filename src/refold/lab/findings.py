"""What replays have shown, in words and figures: for a terminal, a page or a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from refold.lab.measure import Outcome, Total, Totals, same
from refold.lab.metrics import DEFAULT_PRICES, Share, bootstrapped
from refold.lab.policies import MORE, SKI_RENTAL, TIMED, TWICE
from refold.lab.report import Case
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
    "other_names": ("name of another kind", "names of other kinds"),
    "edits": ("text that an edit replaced", "texts that an edit replaced"),
    "lines": ("long line", "long lines"),
}
LEGEND = (
    "share: of what sending everything costs. cached: tokens that a provider had in its cache. "
    "kept: of the old names that the model used again, those it was still shown; a count where "
    "there are fewer than ten. refused: requests too long for the window, or with a tool call cut "
    "from its result."
)
BEST = "* the cheapest that keeps nine names of ten and is never refused."
_THOUSAND = 1_000
_MILLION = 1_000_000
_ALMOST_ALL = 0.995
_MIN_OF_SHARE = 10
"""Of fewer, a percentage would say more than is known."""
_MAX_SERIES: Final = 300
"""Requests of a session that a picture shows: of more, the largest of each few."""


@dataclass(frozen=True, slots=True)
class PolicyFindings:
    """One policy on all sessions: a point of the picture, a row of the table."""

    name: str
    ours: bool
    best: bool
    """Whether it is the cheapest of those that keep enough."""
    error: str = ""
    """Why it has no figures."""
    cost: float = 0.0
    """Dollars."""
    share: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Its cost, of what sending everything costs, with its 95 % interval over sessions."""
    kept: tuple[float, float, float] | None = None
    """Of the old names that were used again, those still shown; None if there were none."""
    names: tuple[int, int] = (0, 0)
    """The same as counts: how many, of how many."""
    cached: float = 0.0
    refused: int = 0
    largest: int = 0
    folds: int | None = None
    """None: it makes none."""


@dataclass(frozen=True, slots=True)
class SessionFindings:
    """One session: how large its requests would have been."""

    name: str
    messages: int
    model: str
    window: int
    short: bool
    """Whether it never grew to where the rules act."""
    requests: int
    sizes: Mapping[str, tuple[int, ...]]
    """The tokens of its requests, in order, by policy."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that a picture, a table and a page say of replays."""

    finding: str
    notes: tuple[str, ...]
    policies: tuple[PolicyFindings, ...]
    sessions: tuple[SessionFindings, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """Sessions that could not be replayed, and why."""

    @property
    def points(self) -> list[PolicyFindings]:
        """The policies that can be compared by what they cost and keep."""
        return [each for each in self.policies if not each.error and each.kept is not None]


def findings_of(
    results: Totals, left_out: Sequence[tuple[str, str]] = (), *, options: bool = True
) -> Findings:
    """What the replays have shown, small enough to keep and to send.

    Args:
        results: All policies on all sessions.
        left_out: Sessions that could not be replayed, and why.
        options: Whether the notes name options of the command line.
    """
    short = {*results.short}
    shown = [results.everything.policy, *(each.policy for each in results.every if each.ours)]
    return Findings(
        finding(results),
        tuple(notes(results, options=options)),
        tuple(_policy(total, results) for total in results.every),
        tuple(
            _session(case, shown, [results.of(nth, name) for name in shown], short=nth in short)
            for nth, case in enumerate(results.cases)
        ),
        tuple(left_out),
    )


def _policy(total: Total, results: Totals) -> PolicyFindings:
    name, row = label(total), total.row
    if row is None:
        return PolicyFindings(name, total.ours, best=False, error=total.error or "no figures")
    everything = results.everything.rows
    pairs = [(mine.cost, all_.cost) for mine, all_ in zip(total.rows, everything, strict=False)]
    kept = row.retained
    return PolicyFindings(
        name,
        total.ours,
        total is results.best,
        cost=row.cost,
        share=(total.share, *bootstrapped(pairs)),
        kept=(kept.rate, *total.interval(lambda each: each.retained)) if kept.of else None,
        names=(kept.found, kept.of),
        cached=row.cache_hits,
        refused=total.refused,
        largest=row.peak,
        folds=total.folds if total.ours or total.policy in FOLDING else None,
    )


def _session(
    case: Case, names: Sequence[str], outcomes: Sequence[Outcome | None], *, short: bool
) -> SessionFindings:
    found = {name: each.sent for name, each in zip(names, outcomes, strict=True) if each}
    sizes = {POLICIES.get(name, name): _thinned(each) for name, each in found.items() if each}
    return SessionFindings(
        case.recording.name,
        len(case.recording.messages),
        case.model,
        case.window,
        short,
        max(map(len, found.values()), default=0),
        sizes,
    )


def _thinned(sizes: Sequence[int]) -> tuple[int, ...]:
    step = -(-len(sizes) // _MAX_SERIES) or 1
    return tuple(max(sizes[at : at + step]) for at in range(0, len(sizes), step))


def finding(results: Totals) -> str:
    """The result in one sentence."""
    lead, base, count = results.leading, results.everything, len(results.cases)
    if base.row is None or lead.row is None:
        return f"{counted(count, 'session')} could not be compared: {base.error or lead.error}"
    cheapest = all(one.share >= 1 or same(one.share) for one in results.every if one.row)
    if len(results.short) == count and not lead.folds and same(lead.share):
        end = "; sending everything is the cheapest" if cheapest else ""
        large = tokens(base.row.peak)
        start = f"{_short(count)} ({large} tokens at most): with {lead.policy}, nothing would have"
        return f"{start} been folded{end}. It would have cost {dollars(lead.row.cost)}."
    these = "this session" if count == 1 else f"these {count:,} sessions"
    start = f"With {lead.policy}, {these} would have cost"
    paid = f"{dollars(lead.row.cost)} instead of {dollars(base.row.cost)}"
    if same(lead.share):
        end = "" if lead.folds else ": nothing would have been folded"
        return f"{start} as much as sending everything ({dollars(lead.row.cost)}){end}."
    if lead.share > 1:
        end = " Sending everything is the cheapest here." if cheapest else ""
        return f"{start} {lead.share - 1:.0%} more than sending everything ({paid}).{end}"
    return f"{start} {lead.share:.0%} of sending everything ({paid}){_kept(lead.row.retained)}."


def _kept(names: Share) -> str:
    if not names.of:
        return ""
    count = f"{names.found:,} of {counted(names.of, 'name')}"
    rate = f" ({percent(names.rate)})" if names.of >= _MIN_OF_SHARE else ""
    return f", and the model would still have seen {count} that it used again{rate}"


def notes(results: Totals, *, options: bool = True) -> list[str]:
    """What one must know to read the table rightly; `options`: and which option changes it."""
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
    lines += _price_notes(results.cases, options=options)
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


def share_text(found: int, of: int) -> str:
    """A share as a percentage; of few things, as a count."""
    return percent(found / of) if of >= _MIN_OF_SHARE else f"{found:,} of {of:,}"


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


def _price_notes(cases: Sequence[Case], *, options: bool) -> list[str]:
    models = sorted({plain(case.model) for case in cases if case.priced and case.model})
    unpriced = sum(not case.priced for case in cases)
    unwindowed = sum(not case.windowed for case in cases)
    lines: list[str] = []
    if models and not unpriced:
        lines.append(f"Prices: {', '.join(models)}, as published, recorded or given.")
    if unpriced:
        prices = DEFAULT_PRICES
        lines.append(
            f"{counted(unpriced, 'session')} of no model whose prices are known: counted at "
            f"${prices.input:g} in, ${prices.output:g} out, ${prices.cache_read:g} from the cache, "
            f"${prices.cache_write:g} into it, a million tokens{' (--prices)' if options else ''}."
        )
    if unwindowed:
        lines.append(
            f"{counted(unwindowed, 'session')} of no model whose window is known: "
            f"taken as {tokens(ASSUMED_WINDOW)}{' (--window)' if options else ''}."
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
    parts = [
        f"{share.found:,} of {counted(share.of, *nouns)}"
        + (f" ({percent(share.rate)})" if share.of >= _MIN_OF_SHARE else "")
        for nouns, share in shares.items()
    ]
    return (
        f"Of other old content used again, {total.policy} kept {', '.join(parts)}." if parts else ""
    )
