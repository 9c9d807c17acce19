"""Settings, and the model that a chat would talk with."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from refold.cli.chat.models.known_providers import PROVIDERS, keys_found
from refold.cli.chat.models.local_servers import Server, public, running_here
from refold.cli.chat.models.providers import LOCAL, Choice, chosen_model
from refold.cli.checks.row import Row, ok, problem, short, warning
from refold.cli.left_out import left_out_notice
from refold.errors import RefoldError
from refold.models import counter_for, facts_of, family_of
from refold.settings import Settings, load_settings
from refold.settings.files import project_files, user_files


def configured(environ: Mapping[str, str] = os.environ) -> Iterator[Row]:
    """Settings, keys, servers, the model and what is known of it."""
    try:
        settings = load_settings()
    except RefoldError as error:
        yield problem("settings", error.what, error.fix)
        settings = None
    else:
        files = [*user_files(), *project_files(Path.cwd())]
        where = ", ".join(short(one.path) for one in files) or "no files, all as the profile says"
        yield ok("settings", f"profile {settings.profile.name}; {where}")
        if settings.left_out:
            yield warning("trust", left_out_notice(settings.left_out), "refold trust")
    keys = keys_found(environ)
    yield ok("keys", ", ".join(keys) or "none in the environment")
    yield _servers(running_here())
    if settings is not None:
        yield from _model(settings, environ)


def _servers(found: list[Server]) -> Row:
    said = [f"{one.kind} at {public(one.url)} ({', '.join(one.models[:3])})" for one in found]
    return ok("local servers", "; ".join(said) or "none answers")


def _model(settings: Settings, environ: Mapping[str, str]) -> Iterator[Row]:
    try:
        chosen = chosen_model(None, settings, environ)
    except RefoldError as error:
        yield warning("model", error.what, error.fix)
        return
    provider = next((one for one in PROVIDERS if chosen.name.startswith(f"{one.name}:")), None)
    if provider is not None and not provider.installed:
        yield problem(
            "model",
            f"{chosen.name}, because {chosen.why}; its package is not installed",
            f'pip install "pydantic-ai-slim[{provider.name}]"',
        )
    else:
        yield ok("model", f"{chosen.name}, because {chosen.why}")
    yield _window(chosen, settings)
    yield _price(chosen, settings)
    yield _tokens(chosen)


def _window(chosen: Choice, settings: Settings) -> Row:
    window = chosen.window or facts_of(chosen.name, settings.models).window
    if window:
        return ok("window", f"{window:,} tokens")
    return warning(
        "window",
        f"unknown for {chosen.name}: a request may be larger than it takes",
        f"refold config 'models.\"{chosen.name}\".window' 32000  # or what its maker says",
    )


def _price(chosen: Choice, settings: Settings) -> Row:
    prices = facts_of(chosen.name, settings.models).prices
    if prices.input is not None and prices.output is not None:
        return ok("prices", f"${prices.input:g} in, ${prices.output:g} out, for a million tokens")
    if chosen.name.startswith(f"{LOCAL}:"):
        return ok("prices", "none: it runs on a server of yours")
    name = f'refold config \'models."{chosen.name}"'
    return warning(
        "prices",
        f"unknown for {chosen.name}: what it costs is not shown",
        f"{name}.input_price' 1.0 && {name}.output_price' 4.0  # dollars for a million tokens",
    )


def _tokens(chosen: Choice) -> Row:
    counter = counter_for(chosen.name)
    exact = not counter.name.startswith("estimate")
    if exact or family_of(chosen.name).encoding is None:
        how = "counted exactly" if exact else "estimated, as its maker publishes no tokenizer"
        return ok("tokens", f"{how} ({counter.name}, {counter.spread:.0%} headroom)")
    return warning("tokens", "estimated: the tokenizer is missing", 'pip install "refold[models]"')
