"""A preview of the fold that a person could ask for, with what requests would cost then."""

from uuid import uuid4

from refold.engine import LocalSteps
from refold.errors import NothingToFold
from refold.fold.job import Job
from refold.fold.preview import Preview, preview
from refold.fold.run import MANUAL, Folder, context
from refold.fold.summary import parse
from refold.models.spending import Usage, cost_of
from refold.session.folds import Folds
from refold.session.follow import Following


async def previewed(following: Following, folds: Folds) -> Preview:
    """What a fold would do, with the summary that the log itself gives."""
    await following.catch_up()
    where = folds.asked()
    if not where.spans:
        raise NothingToFold("There is nothing that a summary could stand for yet.")
    setup, sheet = following.setup, following.view.sheet
    given = context(folds.values(), folds.host(), where.whole)
    job = Job(following.name, uuid4(), where.spans, MANUAL, context=given)
    summary = parse(await Folder(following.log, setup.counter)(job, LocalSteps()))
    view, budget = following.view, setup.budget
    size = view.size(budget, prompt_follows=True)
    sent = where._replace(tokens=where.tokens - view.omitted(where.spans, budget))
    found = preview(sent, summary, size, len(sheet.rows), setup.counter)
    beside = setup.budget.tools + max(setup.budget.instructions, sheet.instructions)
    before, after = found.before + beside, found.after + beside
    return found._replace(
        cost_before=cost_of(_again(before), setup.prices),
        cost_after=cost_of(_again(after), setup.prices),
        cost_once=cost_of(Usage(after, cache_write=after), setup.prices),
    )


def _again(tokens: int) -> Usage:
    """One more request whose prefix is cached."""
    return Usage(tokens, cache_read=tokens)
