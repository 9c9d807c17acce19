"""What the next request would send of some entries: planned as it will be, without sending it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from refold.errors import ViewTooLarge
from refold.log import Folded, Message, Span, Visible
from refold.log.entry import placed, subtract, union
from refold.session.live_view import LiveView
from refold.view import ViewInput
from refold.view.budget import Budget
from refold.view.explanation import Line, Total, lines_of, totals
from refold.view.project import project


@dataclass(frozen=True, slots=True)
class Forecast:
    """How the messages of some spans would be in the next request."""

    fits: bool
    """Whether the request can be sent without leaving whole messages out."""
    messages: tuple[Line, ...] = ()
    """Those of the spans, each with what becomes of its parts; empty where nothing can be sent."""

    @property
    def verbatim(self) -> int:
        """How many of them are sent as they were said."""
        return sum(_is_kept(line) for line in self.messages)

    @property
    def changes(self) -> tuple[Total, ...]:
        """What happens to the parts of the others, by reason."""
        changed = [line for line in self.messages if not _is_kept(line)]
        return tuple(one for one in totals(changed) if one.disposition.edit != "keep")


def _is_kept(line: Line) -> bool:
    return all(part.disposition.edit == "keep" for part in line.parts)


async def forecast(live: LiveView, spans: Sequence[Span], said: bytes, *, unfold: bool) -> Forecast:
    """Plan the next request and look these entries up in it; nothing is written.

    Args:
        live: The session's view.
        spans: The entries that are asked about.
        said: What the user says next, as a message. A request follows a prompt, and which results
            count as old depends on it.
        unfold: Plan as if the folds over the spans were opened.
    """
    await live.catch_up()
    view = live.view
    inputs = await _sheet(live, spans if unfold else ())
    draft = live.author.draft(Message(said), scope=live.scope)
    inputs.extend([placed(draft, inputs.head + 1)])
    try:
        plan = project(inputs, view.profile, _budget(live), view.plan)
    except ViewTooLarge:
        return Forecast(fits=False)
    lines = lines_of(inputs, plan)
    found = tuple(line for line in lines if any(line.seq in span for span in spans))
    return Forecast(not plan.left_out.messages, found)


async def _sheet(live: LiveView, opened: Iterable[Span]) -> ViewInput:
    """A sheet of its own, with these spans not folded."""
    log, name, setup = live.log, live.name, live.setup
    read = setup.profile.window.read or None
    visible = await log.visible(name, last=read)
    outline, spans = visible.outline, tuple(opened)
    if spans:
        # As unfolding does it: a fold goes on standing for what is not opened of it.
        rest = ((one, subtract(union(one.spans), spans)) for one in outline.folds)
        folds = tuple(Folded(one.seq, one.fold, left) for one, left in rest if left)
        outline = replace(outline, folds=folds)
        needed = outline.needed(visible.info.entries, read)
        entries = [entry for span in needed for entry in await log.read(name, span)]
        visible = Visible(visible.info, outline, tuple(entries))
    known = live.view.inputs
    apart = setup.profile.delegates == "apart"
    return ViewInput.of(visible, known.wire, setup.counter, live.scope, apart=apart, known=known)


def _budget(live: LiveView) -> Budget:
    """With the tools and instructions of the newest request, where this program made none yet."""
    budget, previous = live.setup.budget, live.previous
    if budget.tools or previous is None:
        return budget
    account = previous.plan.account
    instructions = max(budget.instructions, account.system)
    return budget._replace(tools=account.tools, instructions=instructions)
