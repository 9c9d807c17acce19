"""What others say in the session that is open here: another terminal, another program."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from refold.cli.chat.conversation import Conversation
from refold.cli.chat.heard import Elsewhere
from refold.cli.chat.surface import Surface
from refold.errors import SessionForgotten, SessionNotFound
from refold.log import CODEC, MAIN_SCOPE, Entry, Message, Span
from refold.wire import wire_for

_MOST = 50
"""Things told of at once; of more, the newest."""


class Newsboy:
    """Looks at the log now and then, and tells of what was not said here."""

    def __init__(self, conversation: Conversation, surface: Surface) -> None:
        self._conversation = conversation
        self._surface = surface
        self._session = ""
        self._seen = 0
        self._busy = False
        self._own: list[str] = []
        """Prompts of turns of our own since the log was last looked at."""

    @contextmanager
    def quiet(self, prompt: str | None = None) -> Generator[None]:
        """While a turn of our own goes on, which begins with this prompt; without one, many do."""
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before
            if prompt is None:
                self._session = ""  # begin anew from where the log is then
            else:
                self._own.append(prompt)

    async def look(self) -> bool:
        """Tell what is new; whether anything was."""
        name, log = self._conversation.name, self._conversation.log
        if self._busy or self._conversation.busy or not name:
            return False
        try:
            head = await log.head(name)
        except (SessionNotFound, SessionForgotten):
            return False
        if self._busy:
            return False
        if name != self._session:
            self._session, self._seen, self._own = name, head, []
            return False
        if head <= self._seen:
            return False
        span, own = Span(self._seen + 1, head), self._own
        self._seen, self._own = head, []  # at once: a turn may end while this is read
        for who, text in _others(await log.read(name, span), own)[-_MOST:]:
            self._surface.hear(Elsewhere(who, text))
        return True


def _others(entries: Sequence[Entry], own: list[str]) -> list[tuple[str, str]]:
    """What was not said here: a turn of our own goes from its prompt to the next one."""
    told: list[tuple[str, str]] = []
    ours = False
    for entry in entries:
        said = _said(entry)
        if prompts := [text for who, text in said if who == "you"]:
            ours = bool(own) and own[0] in prompts
            own = own[ours:]
        told += [] if ours else said
    return told


def _said(entry: Entry) -> list[tuple[str, str]]:
    """What people read of an entry."""
    if entry.kind != Message.KIND or entry.scope != MAIN_SCOPE:
        return []
    match CODEC.decode(entry):
        case Message(payload):
            return _spoken(payload)
        case _:
            return []


def _spoken(payload: bytes) -> list[tuple[str, str]]:
    """What people read of a message: prompts and answers."""
    kinds = {"prompt": "you", "text": "model"}
    shapes = wire_for("pydantic-ai").describe(payload).shapes
    return [(kinds[one.kind], one.text) for one in shapes if one.kind in kinds]
