"""What a shell may offer where a command takes a name. It is quick, and silent on every error."""

import asyncio
from collections.abc import Iterable

import typer

from refold.cli.options import STORE, store_at
from refold.log import DEFAULT_TENANT
from refold.models import WELL_KNOWN, model_names
from refold.settings import ALIASES, KEYS, load_settings
from refold.settings.keys import PROFILE
from refold.view.profiles import PROFILES

MOST = 100
"""How many names are offered at most; of sessions, those used last."""
_SECONDS = 1.0
_FORMS = ("jsonl", "markdown", "json", "html")


def session_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The sessions that were used last."""
    address = str(ctx.params.get("store") or STORE)
    tenant = str(ctx.params.get("tenant") or DEFAULT_TENANT)
    try:
        names = asyncio.run(_names(address, tenant))
    except Exception:  # noqa: BLE001 - a shell that completes has nobody to tell
        return []
    return _beginning(names, incomplete)


def profiles(incomplete: str) -> list[str]:
    """The profiles."""
    return _beginning(PROFILES, incomplete)


def models(incomplete: str) -> list[str]:
    """The well-known models; once something is typed, all that are known."""
    try:
        known = model_names(load_settings().models) if incomplete else WELL_KNOWN
    except Exception:  # noqa: BLE001 - as above
        known = WELL_KNOWN
    return _beginning(known, incomplete)


def setting_names(incomplete: str) -> list[str]:
    """The settings, by our names and the seeds'."""
    seeds = (one.file for one in ALIASES if one.file)
    return _beginning((PROFILE, *KEYS, *seeds), incomplete)


def setting_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a setting may be, where that is one of a few."""
    key = str(ctx.params.get("key") or "")
    if key == PROFILE:
        return profiles(incomplete)
    field = KEYS.get(key)
    if field is None:
        return []
    if field.annotation is bool:
        return _beginning(("true", "false"), incomplete)
    chosen = getattr(field.annotation, "__args__", ())
    return _beginning((one for one in chosen if isinstance(one, str)), incomplete)


def forms(incomplete: str) -> list[str]:
    """The forms in which a session can be exported."""
    return _beginning(_FORMS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:MOST]


async def _names(address: str, tenant: str) -> list[str]:
    async with asyncio.timeout(_SECONDS), store_at(address, create=False, quiet=True) as store:
        page = await store.log(tenant).sessions(limit=MOST)
    return [one.session for one in page.sessions]
