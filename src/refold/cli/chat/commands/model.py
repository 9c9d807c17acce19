"""`/model`: which model answers. `/allow`: what it may run. `/config`: how all that is managed."""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

from pydantic_ai.models import Model

from refold.cli.chat.commands.output import (
    NOTHING_SAID,
    Chat,
    Values,
    clean,
    dollars,
    faint,
    say,
    strong,
    table,
    words,
)
from refold.cli.chat.endpoint import server_of
from refold.cli.chat.models.providers import (
    LOCAL,
    listed_models,
    local_models,
    missing_key,
)
from refold.cli.chat.surface import Row
from refold.errors import InvalidSetting
from refold.models import ModelFacts, facts_of
from refold.models.catalog import settings_of
from refold.session.permissions import grants
from refold.settings import ALIASES, KEYS, SERVE_KEYS, Settings
from refold.settings.names import PROFILE, leaves
from refold.terminal_text import counted
from refold.view import PROFILES

_WIDTH: Final = 50
_ALLOW: Final = "/allow TOOL allows one; /allow TOOL no takes that back."


async def model(chat: Chat, typed: str) -> None:
    """Switch to another model; if its window is too small, ask, and fold first."""
    name = typed or await _pick_model(chat)
    if not name:
        return
    talk = chat.conversation
    model = talk.model_named(name)
    if model.model_id == talk.model.model_id:
        say(chat, f"{model.model_id} answers already.")
        return
    must_fold = await talk.must_fold_for(model)
    if must_fold and not await _confirm_fold(chat, model):
        say(chat, f"Nothing changed: {talk.model.model_id} goes on answering.")
        return
    await talk.switch(model)
    await chat.note_endpoint()
    lines = [f"{model.model_id} answers from now on."]
    if must_fold and await talk.must_fold_for(model):
        lines.append("It could not all be folded: requests leave out what does not fit.")
    elif must_fold:
        lines.append("The conversation was folded for it; /undo takes that back.")
    window = _window(chat, model)
    size = f"Its window: {counted(window, 'token')}." if window else "Its window is unknown."
    say(chat, *lines, faint(size))


def model_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - the signature of all
    current = chat.conversation.model.model_id
    names = listed_models(chat.known_models, os.environ)
    return [(name, "answers now" if name == current else _needs(name)) for name in names]


def _needs(name: str) -> str:
    key = missing_key(name, os.environ)
    return f"needs {key}" if key else ""


async def _pick_model(chat: Chat) -> str | None:
    current = chat.conversation.model.model_id
    is_local = current.startswith(f"{LOCAL}:")
    server = server_of(chat.conversation.model) if is_local else None
    local = await asyncio.to_thread(local_models, os.environ, server)
    names = list(dict.fromkeys([*local, *listed_models(chat.known_models, os.environ)]))
    if not names:
        say(chat, f"{current} answers.", faint("/model NAME changes it."))
        return None
    models = chat.conversation.settings.models
    rows = [_row(facts_of(name, models), current, local.get(name)) for name in names]
    index = await chat.surface.pick("Who is to answer?", rows)
    return None if index is None else names[index]


def _row(facts: ModelFacts, current: str, reported: int | None) -> Row:
    name, tokens = facts.name, facts.window or reported
    window = f"window {tokens:,}" if tokens else "window unknown"
    needs = _needs(name)
    now = " · answers now" if name == current else ""
    first = f"{needs} · " if needs and not now else ""  # where a narrow list does not cut it off
    prices = f"{dollars(facts.prices.input)} in, {dollars(facts.prices.output)} out"
    lines = [name, *([needs] if needs else []), window, f"prices for a million tokens: {prices}"]
    return Row(name, f"{first}{window}{now}", "\n".join(lines))


def _window(chat: Chat, model: Model) -> int | None:
    """The setting wins over the model's own figure, and that over the published one."""
    configured = settings_of(model.model_id, chat.conversation.settings.models)
    return configured.window or model.context_window or facts_of(model.model_id).window


async def _confirm_fold(chat: Chat, model: Model) -> bool:
    filled = chat.conversation.status.filled
    now = f"about {counted(filled.total, 'token')}" if filled else "more than that"
    window = _window(chat, model)
    room = f"a window of {counted(window, 'token')}" if window else "too small a window"
    say(
        chat,
        f"The conversation has {now}, and {model.model_id} has {room}.",
        faint("It would be folded first; the log keeps every word."),
    )
    return await chat.surface.ask("Fold and switch?", ("yes", "no")) == "yes"


async def config(chat: Chat, typed: str) -> None:
    key, _, value = typed.partition(" ")
    if value.strip():
        await _set(chat, key, value.strip())
        return
    settings = chat.conversation.settings
    if key in {"", "all"}:
        _show_all(chat, settings, every=key == "all")
    else:
        _show_setting(chat, settings, key)


def config_values(chat: Chat, typed: str) -> Values:
    """The settings with their current values; after a key, its possible values."""
    key, space, _ = typed.partition(" ")
    if space:
        return [(f"{key} {choice}", "") for choice in _choices(key)]
    own = chat.conversation.profile.model_dump(exclude={"name"})
    values: dict[str, object] = {PROFILE: chat.conversation.profile.name, **dict(leaves(own))}
    for alias in ALIASES:
        if alias.file:
            values[alias.file] = values.get(alias.keys[0])
    return [(name, f"now {_as_text(value)}") for name, value in values.items()]


def _choices(key: str) -> list[str]:
    if key == PROFILE:
        return [*PROFILES]
    field = KEYS.get(key)
    kind = field.annotation if field else None
    if kind is bool:
        return ["true", "false"]
    return [str(choice) for choice in get_args(kind)] if get_origin(kind) is Literal else []


async def _set(chat: Chat, key: str, value: str) -> None:
    from refold.settings.writing import set_setting  # noqa: PLC0415 - only this needs it

    settings = chat.conversation.settings  # with the profile that the chat was started with
    change = set_setting(key, value)
    await chat.conversation.reload()
    before = change.before
    with suppress(InvalidSetting):  # a model may have no value set
        before = settings.value(key)
    same = before is None or before == change.value
    was = "" if same else f" (was {_as_text(before)})"
    home = Path.home()
    is_home = change.path.is_relative_to(home)
    path = f"~/{change.path.relative_to(home)}" if is_home else str(change.path)
    notes = [faint(f"Kept in {path} for every session from now on.")]
    if change.instead:
        notes.insert(0, strong(f"It does not apply here: {clean(change.instead)}."))
    say(chat, f"{change.key} is {_as_text(change.value)}{was}.", *notes)


def _show_setting(chat: Chat, settings: Settings, key: str) -> None:
    value = settings.value(key)
    full_key = next((one.keys[0] for one in ALIASES if key in (one.file, one.variable)), key)
    about = KEYS[full_key].description if full_key in KEYS else None
    source = settings.sources.get(full_key)
    origin = [faint(f"It comes from {source}.")] if source else []
    say(chat, strong(f"{key} is {_as_text(value)}"), *([about] if about else []), *origin)


def _show_all(chat: Chat, settings: Settings, *, every: bool) -> None:
    values = {key: value for key, value in settings.values().items() if key not in SERVE_KEYS}
    sources = settings.sources
    shown = [key for key in values if every or sources[key].level != "profile" or key == PROFILE]
    rows = [(key, words(_as_text(values[key]), _WIDTH), str(sources[key])) for key in shown]
    left = len(values) - len(shown)
    name = settings.profile.name
    rest = f"{counted(left, 'more is', 'more are')} as profile {name} has them: /config all."
    say(
        chat,
        table(rows),
        *([faint(rest)] if left else []),
        faint("/config KEY VALUE sets one and keeps it, such as /config profile copilot."),
    )


def _as_text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return clean(str(value)) or '""'


async def allow(chat: Chat, typed: str) -> None:
    """Allow a tool that needs permission, take that back, or list what is allowed."""
    session = await chat.conversation.session()
    if session is None:
        say(chat, NOTHING_SAID, faint("Say something first: what you allow is kept with it."))
        return
    name, _, more = typed.partition(" ")
    if not name:
        allowed = await grants(chat.conversation.log, session.name)
        rows = [(words(tool, 60), f"entry {entry}") for tool, entry in allowed.items()]
        empty = "Nothing is allowed that needs permission."
        say(chat, table(rows) if rows else empty, faint(_ALLOW))
        return
    allowed = more.strip().lower() not in {"no", "off", "not"}
    entry = await session.allow(name, allowed=allowed)
    what = f"{words(name, 60)} is allowed" if allowed else f"{words(name, 60)} is no longer allowed"
    say(chat, f"{what}: entry {entry}.", faint("It is looked up there, never in a summary."))
