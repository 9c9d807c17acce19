"""What leaves a session's view without a fold: after a refusal, or by fixed limits.

Where the profile has an emergency, the first refusal of a request has everything remembered and the
next one cut hard. The second clears the view but for the latest prompt. The log keeps everything.
"""

from contextlib import suppress
from uuid import uuid4

from refold.engine.protocol import reason_of
from refold.errors import InvalidEntry
from refold.fold.compactor import Compactor, Remember, context
from refold.fold.material import everything
from refold.fold.summary import Summary
from refold.log import MAIN_SCOPE, FoldCompleted, FoldStarted, Span, Value
from refold.log.entry import subtract
from refold.memory import OVERFLOW, Leaving
from refold.session.compaction import Folds
from refold.session.events import CompactionEvents
from refold.session.live_view import LiveView
from refold.view import Plan
from refold.view.view_input import ViewInput, weight

LAST = 2
"""The refusal after which the view is cleared."""


class Emergencies:
    """Follows one session; `folder` makes the summaries that it remembers."""

    def __init__(
        self,
        live: LiveView,
        folds: Folds,
        telling: CompactionEvents,
        remember: Remember | None,
        folder: Compactor,
    ) -> None:
        self._following = live
        self._folds = folds
        self._telling = telling
        self._leaving = None
        if remember is not None and live.scope == MAIN_SCOPE:
            counter = live.setup.counter
            self._leaving = Leaving(live.log, live.name, counter, remember, folder)

    @property
    def on(self) -> bool:
        """Whether a refusal is an emergency in this profile, and this view may be cleared."""
        live = self._following
        return live.setup.profile.emergency.on and live.scope == MAIN_SCOPE

    async def refused(self, times: int) -> None:
        """The provider refused what was sent, so often in a row."""
        if times == 1:
            await self._remember_all()
        elif times == LAST:
            await self._clear()

    async def trimmed(self, plan: Plan) -> None:
        """A request is to go out by this plan: what fixed limits take out of it is noted first."""
        live = self._following
        if self._leaving is None or live.setup.profile.window.rolling:
            return
        try:
            before = live.previous.plan if live.previous else None
            await self._leaving.trimmed(before, plan)
        except Exception as error:  # noqa: BLE001 - the request goes on; who watches is told
            self._tell(error)

    async def _remember_all(self) -> None:
        if self._leaving is None:
            return
        setup, folds = self._following.setup, self._folds
        summarizer = setup.profile.summarizer
        given = context(folds.values(), folds.host(), model=setup.model, summarizer=summarizer)
        try:
            await self._leaving.all_of(self._following.view.inputs, given, setup.profile.fold.wait)
        except Exception as error:  # noqa: BLE001 - as above
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        note = uuid4()
        self._telling.begins(note, OVERFLOW)
        self._telling.fails(note, f"it was not remembered: {reason_of(error)}")

    async def _clear(self) -> None:
        await self._folds.cancel()  # what it would show is not wanted any more
        values = cleared(self._following.view.inputs)
        if values:
            with suppress(InvalidEntry):  # it was rewound meanwhile: that is planned anew
                await self._following.append(*values)


def cleared(inputs: ViewInput) -> list[Value]:
    """A fold that shows nothing, over all but the latest prompt: it can be taken back."""
    where = everything(inputs)
    prompt = inputs.rows[inputs.prompt] if inputs.prompt is not None else None
    kept = (Span(prompt.seq, prompt.seq),) if prompt else ()
    messages = where.messages - len(kept)
    spans = subtract(where.spans, kept)
    if messages <= 0 or not spans:
        return []
    tokens = where.whole - (weight(prompt) if prompt else 0)
    told = Summary(OVERFLOW, messages=messages, tokens=max(0, tokens), over=where.earlier)
    fold = uuid4()
    return [FoldStarted(fold, spans, OVERFLOW), FoldCompleted(fold, spans, told.as_json())]
