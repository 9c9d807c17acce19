"""The last words of a session that one comes back to."""

from rich.console import Group, RenderableType
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.log import CODEC, MAIN_SCOPE, Log, Message, Span
from refold.wire import wire_for

_LOOKED_AT = 60
"""Entries that are looked through."""
_SHOWN = 4
"""Things said."""
_LINES = 8
"""Of each; of a longer one, the end."""

_WHO = {"prompt": "› ", "text": ""}  # noqa: RUF001 - the mark of the input


async def tail(log: Log, session: str) -> RenderableType | None:
    """What was said last there, to go on from; None where nothing was."""
    info = await log.info(session)
    wire = wire_for(info.format)
    span = Span(max(1, info.entries - _LOOKED_AT + 1), info.entries)
    said: list[tuple[str, str]] = []
    for entry in await log.read(session, span):
        if entry.kind == Message.KIND and entry.scope == MAIN_SCOPE and not entry.forgotten:
            match CODEC.decode(entry):
                case Message(payload):
                    shapes = wire.describe(payload).shapes
                    said += [(one.kind, one.text) for one in shapes if one.kind in _WHO]
                case _:
                    pass
    lines = [_told(_WHO[kind], text) for kind, text in said[-_SHOWN:] if text.strip()]
    if not lines:
        return None
    return Group(*lines)


def _told(mark: str, text: str) -> Text:
    lines = cleaned(text).strip().splitlines()
    cut = ["…"] if len(lines) > _LINES else []
    return Text(mark + "\n".join([*cut, *lines[-_LINES:]]), style="dim")
