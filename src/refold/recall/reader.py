"""Who reads, and so what may be shown of a session."""

from dataclasses import dataclass

from refold.log import MAIN_SCOPE, Entry, Log, Message, Note, Outline
from refold.log.span import Span
from refold.view.delegation import seen


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose eyes to read with: by default a person's, who may see all that the log keeps."""

    scope: str | None = None
    """A model's scope: it sees its own work, its callers' and that of those it called."""
    off_line: bool = True
    """Whether it sees what was rewound or cleared."""
    notes: bool = True
    """Whether it sees notes, which no model does."""

    @classmethod
    def model(cls, scope: str = MAIN_SCOPE) -> "Reader":
        """A model, which has forgotten what was cleared."""
        return cls(scope, off_line=False, notes=False)

    def may_see(self, kind: str, scope: str) -> bool:
        """Whether entries of this kind and scope are for this reader."""
        return (kind == Message.KIND or (kind == Note.KIND and self.notes)) and (
            self.scope is None or seen(scope, self.scope) != "none"
        )


async def outline_of(log: Log, session: str) -> tuple[Outline, tuple[Span, ...]]:
    """The session's outline, and what is on its line."""
    visible = await log.visible(session, last=0)
    return visible.outline, visible.outline.on_line(visible.info.entries)


async def whole(log: Log, session: str, entry: Entry) -> Entry:
    """The entry with its large bodies put back."""
    if not entry.holes:
        return entry
    [entry] = await log.read(session, Span(entry.seq, entry.seq))
    return entry
