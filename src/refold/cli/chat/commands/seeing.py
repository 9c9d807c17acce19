"""What the model would be sent now, read for people; nothing is sent, folded or written."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from refold.cli.chat.commands.works_on import Talk
from refold.fold.sizing import while_folding
from refold.log import Entry, Log, SessionInfo, Visible
from refold.log.span import spans_of, subtract, up_to
from refold.models.setup import Setup
from refold.recall.records import last_record
from refold.view import Explanation, Plan, Profile, Sheet, explain, project
from refold.view.assemble import assemble
from refold.wire import Described, wire_for


@dataclass(frozen=True)
class Seen:
    """A session as its next request would show it."""

    info: SessionInfo
    setup: Setup
    sheet: Sheet
    plan: Plan
    entries: tuple[Entry, ...]
    """Those that were read for it."""

    @cached_property
    def explanation(self) -> Explanation:
        """What becomes of each part, and why."""
        return explain(
            self.sheet,
            self.plan,
            self.setup.budget,
            info=self.info,
            model=self.setup.model,
            entries=self.entries,
        )

    @cached_property
    def messages(self) -> Sequence[Described]:
        """The messages that would be sent, as parts."""
        made = assemble(self.sheet.wire, self.sheet.rows, self.plan.layout, {})
        return [self.sheet.wire.describe(payload) for payload in made]


async def seen(talk: Talk, *, every: bool = False) -> Seen | None:
    """What the next request would show; None before anything was said.

    With `every`, also what the view does not need is read, to be told of.
    """
    session = await talk.session()
    if session is None:
        return None
    log, name, setup = talk.log, session.name, session.setup
    visible = await log.visible(name, last=setup.profile.window.read or None)
    before = await last_record(log, name, visible.outline.record)
    wire = wire_for(visible.info.format)
    apart = setup.profile.delegates == "apart"
    sheet = Sheet.of(visible, wire, setup.counter, apart=apart)
    values = _followed(setup.profile)
    plan = project(sheet, values, setup.budget, before and before.plan)
    others = await _others(log, visible) if every else []
    return Seen(visible.info, setup, sheet, plan, (*visible.entries, *others))


def _followed(values: Profile) -> Profile:
    """The values by which a session is planned that can fold."""
    folds = values.summariser or values.fold.writer == "model" or values.fold.breadcrumb
    return while_folding(values) if folds else values


async def _others(log: Log, visible: Visible) -> list[Entry]:
    known = spans_of(entry.seq for entry in visible.entries)
    missing = subtract(up_to(visible.info.entries), known)
    return [entry for span in missing for entry in await log.read(visible.info.session, span)]
