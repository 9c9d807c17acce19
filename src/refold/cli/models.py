"""`refold models`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from refold.cli.options import ProfileChoice
from refold.cli.options import models as known_names
from refold.cli.outcome import explained
from refold.cli.output import NOTHING, aligned
from refold.errors import InvalidInput
from refold.fold.trigger import while_folding
from refold.models import (
    WELL_KNOWN,
    ModelFacts,
    Overrides,
    Prices,
    budget_for,
    counter_for,
    facts_of,
    model_names,
)
from refold.settings import load_settings
from refold.view.budget import thresholds
from refold.view.profiles import PROFILES, Profile

_FEW = 3
"""So many models are shown in full."""
_NOTE = """
Prices are dollars for a million tokens.
`refold models NAME` shows at how many tokens each profile acts."""
_MARKS = {
    "limit": "limit of a request",
    "soft": "starts to fold",
    "hard": "waits for the fold",
    "generation": "folds delegated work",
    "target": "rewrites old results",
    "room": "cuts messages to fit",
    "fold": "folds at tokens",
    "window": "cuts to tokens",
    "messages": "messages at most",
    "turns": "turns at most",
}


def models(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Only models with this in their name; provider:model is one.",
            autocompletion=known_names,
        ),
    ] = None,
    *,
    profile: ProfileChoice = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """Show the window and the prices of models, and at how many tokens each profile acts.

    Without a name, a few well-known models are listed. Prices are dollars for a million tokens.
    Your settings go before what is published.

    Example: refold models anthropic:claude-sonnet-4-5
    """
    with explained():
        known = load_settings(profile).models
        chosen = [profile] if profile else list(PROFILES)
        profiles = [load_settings(one).profile for one in chosen]
        shown = [facts_of(name, known) for name in _chosen(names or [], known)]
        if as_json:
            typer.echo(json.dumps([_as_json(one, profiles, known) for one in shown], indent=2))
        elif names and len(shown) <= _FEW:
            typer.echo("\n\n".join("\n".join(_block(one, profiles, known)) for one in shown))
        else:
            typer.echo("\n".join(_list(shown)))
            typer.echo(_NOTE)


def _chosen(names: Sequence[str], known: Overrides) -> list[str]:
    if not names:
        return sorted({*WELL_KNOWN, *known})
    found = [one for name in names for one in _matching(name, known)]
    return list(dict.fromkeys(found))


def _matching(name: str, known: Overrides) -> list[str]:
    if ":" in name or name in known:
        return [name]
    every = model_names(known)
    wanted = name.lower()
    exactly = [one for one in every if one.partition(":")[2].lower() == wanted]
    found = exactly or [one for one in every if wanted in one.lower()]
    if not found:
        raise InvalidInput(
            f"No model that is known here has {name!r} in its name.",
            f'Describe it in refold.toml: [models."{name}"] with a line window = 128000.',
        )
    return found


def _list(shown: Sequence[ModelFacts]) -> list[str]:
    head = ("model", "window", "input", "cached", "output")
    rows = [(one.name, one.shown_window, *_dollars(one.prices)) for one in shown]
    return aligned([head, *rows], right=(1, 2, 3, 4))


def _dollars(prices: Prices) -> tuple[str, str, str]:
    return _dollar(prices.input), _dollar(prices.cache_read), _dollar(prices.output)


def _dollar(price: float | None) -> str:
    if price is None:
        return NOTHING
    return max(f"{price:.2f}", f"{price:.6f}".rstrip("0"), key=len)


def _all_prices(prices: Prices) -> str:
    names = ("input", "output", "cache read", "cache write")
    known = [(name, price) for name, price in zip(names, prices, strict=True) if price is not None]
    return ", ".join(f"{name} {_dollar(price)}" for name, price in known) or "unknown"


def _block(one: ModelFacts, profiles: Sequence[Profile], known: Overrides) -> list[str]:
    counter = counter_for(one.name)
    about = [
        ("  window", one.shown_window),
        ("  answer", f"{one.output:,} at most" if one.output else "unknown"),
        ("  prices", _all_prices(one.prices)),
        ("  counted by", f"{counter.name}, {counter.spread:.0%} headroom"),
    ]
    marks = [_marks(one.name, profile, known) for profile in profiles]
    rows = [
        (f"  {label}", *(_number(mark[field]) for mark in marks))
        for field, label in _MARKS.items()
        if any(mark[field] for mark in marks)
    ]
    head = ("", *(profile.name for profile in profiles))
    right = range(1, len(head))
    return [one.name, *aligned(about), "", *aligned([head, *rows], right)]


def _marks(model: str, profile: Profile, known: Overrides) -> Mapping[str, int]:
    """The marks of a session that folds; beside them the fixed limits of one that cannot."""
    budget, spread = budget_for(model, profile, models=known), counter_for(model).spread
    fixed = thresholds(profile, budget, spread)
    marks = thresholds(while_folding(profile), budget, spread)
    marks = replace(marks, window=fixed.window, messages=fixed.messages, turns=fixed.turns)
    return marks.as_json()


def _number(value: int) -> str:
    return f"{value:,}" if value else NOTHING


def _as_json(one: ModelFacts, profiles: Sequence[Profile], known: Overrides) -> dict[str, object]:
    counter = counter_for(one.name)
    return {
        "model": one.name,
        "window": one.window,
        "output": one.output,
        "prices": one.prices._asdict(),
        "counter": counter.name,
        "headroom": counter.spread,
        "thresholds": {profile.name: _marks(one.name, profile, known) for profile in profiles},
    }
