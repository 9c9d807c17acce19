"""What `refold lab` found, in words."""

from collections.abc import Sequence
from typing import Final

from refold.lab.cases import Case
from refold.lab.metrics import Prices
from refold.lab.totals import Total, Totals, same
from refold.view.budget import ASSUMED_WINDOW

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
            "No model was asked: where a profile lets one summarise, 1,500 tokens that say nothing "
            "stand in for it, so what it keeps is the least it would."
        )
    found += [f"{label(one)} could not be replayed: {one.error}" for one in of.every if one.error]
    return found


def label(one: Total) -> str:
    """The name of a policy, for people."""
    return one.policy if one.ours else POLICIES.get(one.policy, one.policy)


def sessions(count: int) -> str:
    """So many sessions."""
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
    """A count of tokens, short."""
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
        usual = Prices()
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
