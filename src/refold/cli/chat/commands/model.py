"""`/model`: who answers. `/config`: how the conversation is managed."""

import json
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

from pydantic_ai.models import Model
from rich.text import Text

from refold.cli.chat.commands.output import (
    Chat,
    Values,
    clean,
    counted,
    dollars,
    faint,
    say,
    strong,
    table,
    words,
)
from refold.cli.chat.surface import Row
from refold.models import ModelFacts, facts_of
from refold.settings import ALIASES, KEYS, SERVE_KEYS, Settings
from refold.settings.names import PROFILE, leaves
from refold.view import PROFILES

_WORDS: Final = 50


async def model(chat: Chat, typed: str) -> None:
    """Go on with another model; where its window is too small, ask, and fold first."""
    name = typed or await _picked(chat)
    if not name:
        return
    talk = chat.conversation
    chosen = talk.model_named(name)
    if chosen.model_id == talk.model.model_id:
        say(chat, f"{chosen.model_id} answers already.")
        return
    folded = await talk.must_fold_for(chosen)
    if folded and not await _agreed(chat, chosen):
        say(chat, f"Nothing changed: {talk.model.model_id} goes on answering.")
        return
    await talk.switch(chosen)
    await chat.note_endpoint()
    window = _window(chat, chosen)
    size = f"Its window: {counted(window, 'token')}." if window else "Its window is unknown."
    told = [faint(size)]
    if folded:
        told.insert(0, Text(await _came_of(chat, chosen)))
    say(chat, f"{chosen.model_id} answers from now on.", *told)


async def _came_of(chat: Chat, chosen: Model) -> str:
    """What folding for a smaller window came to."""
    if await chat.conversation.must_fold_for(chosen):
        return "It could not all be compacted: requests leave out what does not fit."
    return "The conversation was compacted for it; /undo takes that back."


def model_values(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """The models that could be talked with."""
    here = chat.conversation.model.model_id
    return [(one, "answers now" if one == here else "") for one in chat.known_models]


async def _picked(chat: Chat) -> str | None:
    names = [*chat.known_models]
    if not names:
        say(chat, f"{chat.conversation.model.model_id} answers.", faint("/model NAME changes it."))
        return None
    here = chat.conversation.model.model_id
    known = chat.conversation.settings.models
    rows = [_row(facts_of(one, known), here) for one in names]
    at = await chat.surface.pick("Who is to answer?", rows)
    return None if at is None else names[at]


def _row(facts: ModelFacts, here: str) -> Row:
    name = facts.name
    window = f"window {facts.window:,}" if facts.window else "window unknown"
    now = " · answers now" if name == here else ""
    prices = f"{dollars(facts.prices.input)} in, {dollars(facts.prices.output)} out"
    told = f"{name}\n{window}\nprices for a million tokens: {prices}"
    return Row(name, f"{window}{now}", told)


def _window(chat: Chat, chosen: Model) -> int | None:
    """What is set goes before what the model says of itself, and that before what is published."""
    known = chat.conversation.settings.models
    own = known.get(chosen.model_id) or known.get(chosen.model_name)
    set_to = own.window if own else None
    return set_to or chosen.context_window or facts_of(chosen.model_id).window


async def _agreed(chat: Chat, chosen: Model) -> bool:
    filled = chat.conversation.status.filled
    now = f"about {counted(filled.total, 'token')}" if filled else "more than that"
    window = _window(chat, chosen)
    room = f"a window of {counted(window, 'token')}" if window else "too small a window"
    say(
        chat,
        f"The conversation has {now}, and {chosen.model_id} has {room}.",
        faint("It would be compacted first; the log keeps every word."),
    )
    return await chat.surface.ask("Compact and switch?", ("yes", "no")) == "yes"


async def config(chat: Chat, typed: str) -> None:
    """Show settings, or set one and keep it."""
    key, _, value = typed.partition(" ")
    if value.strip():
        await _set(chat, key, value.strip())
        return
    settings = chat.conversation.settings
    if key in {"", "all"}:
        _show_all(chat, settings, every=key == "all")
    else:
        _show_one(chat, settings, key)


def config_values(chat: Chat, typed: str) -> Values:
    """The settings with what they are now; after one, what it may be."""
    key, space, _ = typed.partition(" ")
    own = chat.conversation.profile.model_dump(exclude={"name"})
    now: dict[str, object] = {PROFILE: chat.conversation.profile.name, **dict(leaves(own))}
    for one in ALIASES:
        if one.file:
            now[one.file] = now.get(one.keys[0])
    if not space:
        return [(name, f"now {_told(value)}") for name, value in now.items()]
    return [(f"{key} {one}", "") for one in _choices(key)]


def _choices(key: str) -> list[str]:
    if key == PROFILE:
        return [*PROFILES]
    field = KEYS.get(key)
    kind = field.annotation if field else None
    if kind is bool:
        return ["true", "false"]
    return [str(one) for one in get_args(kind)] if get_origin(kind) is Literal else []


async def _set(chat: Chat, key: str, value: str) -> None:
    from refold.settings.writing import set_setting  # noqa: PLC0415 - only who sets one needs it

    kept = set_setting(key, value)
    await chat.conversation.reload()
    was = "" if kept.before is None or kept.before == kept.value else f" (was {_told(kept.before)})"
    told = [faint(f"Kept in {_short(kept.path)} for every session from now on.")]
    if kept.instead:
        told.insert(0, strong(f"It does not apply here: {clean(kept.instead)}."))
    say(chat, f"{kept.key} is {_told(kept.value)}{was}.", *told)


def _show_one(chat: Chat, settings: Settings, key: str) -> None:
    value = settings.value(key)
    alias = next((one.keys[0] for one in ALIASES if key in (one.file, one.variable)), key)
    about = KEYS[alias].description if alias in KEYS else None
    source = settings.sources.get(alias)
    told = [faint(f"It comes from {source}.")] if source else []
    say(chat, strong(f"{key} is {_told(value)}"), *([about] if about else []), *told)


def _show_all(chat: Chat, settings: Settings, *, every: bool) -> None:
    values = {key: one for key, one in settings.values().items() if key not in SERVE_KEYS}
    own = {key for key in values if settings.sources[key].level != "profile" or key == PROFILE}
    shown = [key for key in values if every or key in own]
    rows = [(key, words(_told(values[key]), _WORDS), str(settings.sources[key])) for key in shown]
    left = len(values) - len(shown)
    name = settings.profile.name
    rest = f"{counted(left, 'more is', 'more are')} as profile {name} has them: /config all."
    say(
        chat,
        table(rows),
        *([faint(rest)] if left else []),
        faint("/config KEY VALUE sets one and keeps it, such as /config profile copilot."),
    )


def _told(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return clean(str(value)) or '""'


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
