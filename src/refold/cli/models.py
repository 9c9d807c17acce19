import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from refold.cli.options import ProfileChoice
from refold.cli.options import models as known_names
from refold.cli.outcome import exit_on_error
from refold.cli.output import NOTHING, aligned
from refold.errors import InvalidInput
from refold.fold.trigger import while_folding
from refold.models import (
    WELL_KNOWN,
    ModelFacts,
    Overrides,
    budget_for,
    counter_for,
    facts_of,
    model_names,
)
from refold.settings import load_settings
from refold.view.budget import thresholds
from refold.view.profiles import PROFILES, Profile

_MAX_IN_FULL = 3
"""How many models are shown in full."""
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
            help="Only models whose name contains this.",
            autocompletion=known_names,
        ),
    ] = None,
    *,
    profile: ProfileChoice = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """Show models' windows and prices, and at how many tokens each profile acts.

    Without a name, a few well-known models are listed. Prices are dollars for a million tokens.
    Your settings override the published values.

    Example: refold models anthropic:claude-sonnet-4-5
    """
    with exit_on_error():
        overrides = load_settings(profile).models
        chosen = [profile] if profile else list(PROFILES)
        profiles = [load_settings(name).profile for name in chosen]
        shown = [facts_of(name, overrides) for name in _chosen(names or [], overrides)]
        if as_json:
            rows = [_as_json(facts, profiles, overrides) for facts in shown]
            typer.echo(json.dumps(rows, indent=2))
        elif names and len(shown) <= _MAX_IN_FULL:
            blocks = ("\n".join(_block(facts, profiles, overrides)) for facts in shown)
            typer.echo("\n\n".join(blocks))
        else:
            typer.echo("\n".join(_list(shown)))
            typer.echo(_NOTE)


def _chosen(names: Sequence[str], overrides: Overrides) -> list[str]:
    if not names:
        return sorted({*WELL_KNOWN, *overrides})
    return list(dict.fromkeys(model for name in names for model in _matching(name, overrides)))


def _matching(name: str, overrides: Overrides) -> list[str]:
    if ":" in name or name in overrides:
        return [name]
    models = model_names(overrides)
    lower = name.lower()
    exact = [model for model in models if model.partition(":")[2].lower() == lower]
    found = exact or [model for model in models if lower in model.lower()]
    if not found:
        raise InvalidInput(
            f"No known model has {name!r} in its name.",
            f'Describe it in refold.toml: [models."{name}"] with a line window = 128000.',
        )
    return found


def _list(shown: Sequence[ModelFacts]) -> list[str]:
    head = ("model", "window", "input", "cached", "output")
    rows: list[tuple[str, ...]] = []
    for facts in shown:
        prices = (facts.prices.input, facts.prices.cache_read, facts.prices.output)
        rows.append((facts.name, facts.shown_window, *map(_dollars, prices)))
    return aligned([head, *rows], right=(1, 2, 3, 4))


def _dollars(price: float | None) -> str:
    if price is None:
        return NOTHING
    return max(f"{price:.2f}", f"{price:.6f}".rstrip("0"), key=len)


def _block(facts: ModelFacts, profiles: Sequence[Profile], overrides: Overrides) -> list[str]:
    counter = counter_for(facts.name)
    prices = zip(("input", "output", "cache read", "cache write"), facts.prices, strict=True)
    published = [f"{name} {_dollars(price)}" for name, price in prices if price is not None]
    about = [
        ("  window", facts.shown_window),
        ("  answer", f"{facts.output:,} at most" if facts.output else "unknown"),
        ("  prices", ", ".join(published) or "unknown"),
        ("  counted by", f"{counter.name}, {counter.spread:.0%} headroom"),
    ]
    marks = [_marks(facts.name, profile, overrides) for profile in profiles]
    rows = [
        (f"  {label}", *(f"{mark[field]:,}" if mark[field] else NOTHING for mark in marks))
        for field, label in _MARKS.items()
        if any(mark[field] for mark in marks)
    ]
    head = ("", *(profile.name for profile in profiles))
    right = range(1, len(head))
    return [facts.name, *aligned(about), "", *aligned([head, *rows], right)]


def _marks(model: str, profile: Profile, overrides: Overrides) -> Mapping[str, int]:
    """The marks of a session that folds, with the fixed limits of one that cannot."""
    budget, spread = budget_for(model, profile, models=overrides), counter_for(model).spread
    fixed = thresholds(profile, budget, spread)
    marks = thresholds(while_folding(profile), budget, spread)
    marks = replace(marks, window=fixed.window, messages=fixed.messages, turns=fixed.turns)
    return marks.as_json()


def _as_json(
    facts: ModelFacts, profiles: Sequence[Profile], overrides: Overrides
) -> dict[str, object]:
    counter = counter_for(facts.name)
    return {
        "model": facts.name,
        "window": facts.window,
        "output": facts.output,
        "prices": facts.prices._asdict(),
        "counter": counter.name,
        "headroom": counter.spread,
        "thresholds": {one.name: _marks(facts.name, one, overrides) for one in profiles},
    }
