"""What a session's next request would send, or a past one sent, and why."""

from dataclasses import replace

from refold.errors import InvalidInput, InvalidSetting
from refold.fold.sizing import while_folding
from refold.log import CODEC, Entry, Log, Requested, Span, Visible
from refold.log.kinds import KINDS
from refold.log.replaying import replay
from refold.log.span import seqs, spans_of, subtract, up_to
from refold.models import ModelSettings, budget_for, counter_for
from refold.recall.records import last_record, plan_of
from refold.settings import load_settings
from refold.view.budget import Account, Budget
from refold.view.explain import Explanation
from refold.view.explain import explain as explain_request
from refold.view.profiles import PROFILES, Profile
from refold.view.profiles import profile as named
from refold.view.project import project
from refold.view.sheet import Sheet
from refold.wire import wire_for

_CONTROL = frozenset(kind.KIND for kind in KINDS if kind.CONTROL)
_PAGE = 500
"""Entries read at a time."""


async def explanation(  # noqa: PLR0913 - what to explain it for
    log: Log,
    session: str,
    *,
    profile: str | None = None,
    model: str | None = None,
    window: int | None = None,
    target_tokens: int | None = None,
) -> Explanation:
    """Why each part of a session is in its next request or not; nothing is sent or changed.

    Args:
        log: Where the session is.
        session: Its name.
        profile: The profile, else the session's own.
        model: The model, else that of the last request.
        window: The model's window, if you know better.
        target_tokens: Above how many tokens the past is rewritten, instead of the profile's.
    """
    settings = load_settings(profile or (await log.info(session)).profile)
    visible = await log.visible(session, last=settings.profile.window.read or None)
    values = _retargeted(_followed(settings.profile, visible), target_tokens)
    before = await last_record(log, session, visible.outline.record)
    asked = await _last_model(log, session, visible)
    model = model or asked or ""
    counter = counter_for(model)
    known = {model: ModelSettings(window=window)} if window else {}
    budget = budget_for(model, values, counter=counter, models={**settings.models, **known})
    apart = values.delegates == "apart"
    sheet = Sheet.of(visible, wire_for(visible.info.format), counter, apart=apart)
    if before is not None and model == asked:
        budget = _as_before(budget, before.plan.account, sheet)
    plan = project(sheet, values, budget, before and before.plan)
    entries = (*visible.entries, *await _others(log, visible))
    return explain_request(
        sheet, plan, budget, info=visible.info, model=model or None, entries=entries
    )


async def explained_at(log: Log, session: str, seq: int) -> Explanation:
    """Why each part of a session was in a past request or not, as its record says.

    The window and the counts of single parts are those known of the model today. Raises
    Unrebuildable when something that the request was made of is gone.
    """
    plan = await plan_of(log, session, seq)
    model = await _model_at(log, session, seq)
    info = replace(await log.info(session), entries=plan.head)
    values = _named(plan.profile)
    entries = await _up_to(log, session, plan.head)
    outline = replay(entry for entry in entries if entry.kind in _CONTROL)
    needed = {*seqs(outline.needed(plan.head))}
    seen = Visible(info, outline, tuple(one for one in entries if one.seq in needed))
    counter = counter_for(model)
    apart = values.delegates == "apart"
    sheet = Sheet.of(seen, wire_for(info.format), counter, plan.scope, apart=apart)
    budget = budget_for(model, values, counter=counter)
    return explain_request(sheet, plan, budget, info=info, model=model or None, entries=entries)


def _as_before(budget: Budget, account: Account, sheet: Sheet) -> Budget:
    """With the tools, the instructions and the answer's room of the newest request.

    Who asks the model knows them, the session alone does not.
    """
    said = (part for row in sheet.rows for part in row.parts if part.kind == "system")
    instructions = max(0, account.system - sum(part.tokens for part in said))
    return budget._replace(tools=account.tools, instructions=instructions, reserve=account.reserve)


async def _up_to(log: Log, session: str, head: int) -> list[Entry]:
    found: list[Entry] = []
    for first in range(1, head + 1, _PAGE):
        found += await log.read(session, Span(first, min(head, first + _PAGE - 1)))
    return found


def _named(profile: str) -> Profile:
    """The profile that a record names; one that is not there any more plans nothing here."""
    try:
        return named(profile)
    except InvalidSetting:
        return PROFILES["balanced"]


async def _model_at(log: Log, session: str, seq: int) -> str:
    for entry in await log.read(session, Span(seq, seq)):
        match CODEC.decode(entry):
            case Requested(model=model):
                return model
            case _:
                pass
    raise InvalidInput(f"Entry {seq} is no request record.")


async def _last_model(log: Log, session: str, visible: Visible) -> str | None:
    """The model of the newest request."""
    at = visible.outline.record
    try:
        return await _model_at(log, session, at) if at else None
    except InvalidInput:  # forgotten since
        return None


def _followed(values: Profile, visible: Visible) -> Profile:
    """The values by which the session is planned: one with folds goes on folding."""
    return while_folding(values) if visible.outline.folds and values.fold.breadcrumb else values


def _retargeted(values: Profile, tokens: int | None) -> Profile:
    if tokens is None:
        return values
    rewrite = values.rewrite.model_copy(update={"target_tokens": tokens})
    return values.model_copy(update={"rewrite": rewrite})


async def _others(log: Log, visible: Visible) -> list[Entry]:
    """The entries that the view does not need, because the explanation tells of them, too."""
    seen = spans_of(entry.seq for entry in visible.entries)
    missing = subtract(up_to(visible.info.entries), seen)
    return [entry for span in missing for entry in await log.read(visible.info.session, span)]
