"""What is known of the models that serve: their windows, what they refused, how they count."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_core import to_json

from refold.fold.job import Job
from refold.fold.run import MANUAL
from refold.models import ModelSettings, Overrides
from refold.models.asking import inferred
from refold.models.catalogue import NONE
from refold.models.overflow import Overflow
from refold.models.setup import Setup
from refold.models.tokenizers import counter_for
from refold.view import Calibration, Counter, Profile, calibrated
from refold.view.calibration import ABSURD

_MARGIN = 0.98
"""Of a limit that was named, the share that is used: two requests seldom count alike."""
_MOST_SESSIONS = 1_000
"""Of how many sessions it is known which model serves them."""
_STEP = 0.05
"""By how much the correction of a counter must move before everything is counted anew."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What one model's answers and refusals have taught."""

    calibration: Calibration
    counter: Counter
    """The counter in use: everything that was counted, was counted by it."""
    factor: float = 1.0
    """By how much it corrects the plain one."""
    window: int | None = None
    """The smallest limit that it named."""
    undercount: float = 1.0
    """In a refusal: its count for each token of the plain counter's."""


class Models:
    """Makes the setup of each request, and learns from how it went."""

    def __init__(
        self, profile: Profile, overrides: Overrides = NONE, summariser: Model | None = None
    ) -> None:
        self._profile = profile
        self._overrides = overrides
        self._learned: dict[str, Experience] = {}
        self._made: dict[str, tuple[object, Setup]] = {}
        self._summariser = summariser
        self._offered: tuple[tuple[str, ...], str] = (), ""
        """The tools and instructions of the newest request."""
        self._serves: OrderedDict[str, Model] = OrderedDict()

    def serves(self, session: str, model: Model) -> None:
        """Know which model a session is for: others may have the same name, and other keys."""
        self._serves.pop(session, None)
        self._serves[session] = model
        while len(self._serves) > _MOST_SESSIONS:
            self._serves.popitem(last=False)

    def named(self, name: str, job: Job) -> Model:
        """The model of that name for a fold: the summariser, the session's own, or a new one."""
        own = self._summariser
        if own is not None and job.trigger != MANUAL and own.model_id == name:
            return own
        primary = self._serves.get(job.session)
        return primary if primary and primary.model_id == name else inferred(name)

    def setup(
        self,
        model: Model,
        parameters: ModelRequestParameters | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Setup:
        """For which model, with which tools and instructions, a request is to be planned."""
        offered = _tools(parameters), _instructions(parameters)
        if parameters is not None:
            self._offered = offered
        return self._setup_with(model, offered, settings)

    def setup_between(self, model: Model) -> Setup:
        """The same between requests: with the tools and instructions of the newest one."""
        return self._setup_with(model, self._offered, None)

    def _setup_with(
        self,
        model: Model,
        offered: tuple[tuple[str, ...], str],
        settings: Mapping[str, Any] | None,
    ) -> Setup:
        name = model.model_id
        known = self._experience(name)
        own = self._settings(model, known, settings or {})
        tools, instructions = offered
        asked = (own, tools, instructions, known.counter, known.window, known.undercount)
        before, setup = self._made.get(name, (None, None))
        if setup is None or before != asked:
            setup = self._setup(name, own, known, tools, instructions)
            self._made[name] = asked, setup
        return setup

    def answered(self, name: str, counted: int, reported: int) -> None:
        """A request of so many tokens, by our count and by the model's."""
        known = self._experience(name)
        plain = round(counted / known.factor)
        calibration = known.calibration.observed(plain, reported)
        known = replace(known, calibration=calibration)
        if abs(calibration.factor / known.factor - 1) > _STEP:
            counter = calibrated(counter_for(name), calibration)
            known = replace(known, counter=counter, factor=calibration.factor)
        self._learned[name] = known

    def refused(self, name: str, counted: int, said: Overflow) -> None:
        """A request of so many tokens, by our count, was refused."""
        known = self._experience(name)
        if said.limit:
            least = min(said.limit, known.window or said.limit)
            known = replace(known, window=least)
        if said.asked and counted:
            ratio = said.asked * known.factor / counted
            if ratio <= ABSURD:
                known = replace(known, undercount=max(ratio, known.undercount))
        self._learned[name] = known

    def answer_within(
        self, name: str, sent: int, settings: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """The settings, asking for no longer answer than the window that was named has room for."""
        known = self._experience(name)
        asked = (settings or {}).get("max_tokens")
        if not asked or not known.window:
            return settings
        room = known.window - int(sent * max(1.0, known.undercount / known.factor) / _MARGIN)
        return {**(settings or {}), "max_tokens": max(1, min(asked, room))}

    def limit_of(self, name: str) -> int | None:
        """The smallest limit that a model named, if it ever did."""
        return self._experience(name).window

    def _experience(self, name: str) -> Experience:
        if name not in self._learned:
            plain = counter_for(name)
            self._learned[name] = Experience(Calibration(prior=max(0.01, plain.spread)), plain)
        return self._learned[name]

    def _settings(
        self, model: Model, known: Experience, settings: Mapping[str, Any]
    ) -> ModelSettings:
        name = model.model_id
        found = [self._overrides[key] for key in (model.model_name, name) if key in self._overrides]
        own: dict[str, Any] = {}
        for one in found:
            own |= one.model_dump(exclude_none=True)
        window = own.get("window") or model.context_window
        if known.window:
            window = min(known.window, window or known.window)
        output = settings.get("max_tokens") or own.get("output")
        return ModelSettings.model_validate({**own, "window": window, "output": output})

    def _setup(
        self,
        name: str,
        own: ModelSettings,
        known: Experience,
        tools: tuple[str, ...],
        instructions: str,
    ) -> Setup:
        made = Setup.of(
            name, self._profile, instructions=instructions, tools=tools, models={name: own}
        )
        budget = made.budget
        if known.window:
            room = known.window - budget.reserve
            scale = min(1.0, known.factor / known.undercount)
            budget = budget._replace(learned=int(_MARGIN * scale * room))
        return replace(made, counter=known.counter, budget=budget)


def _tools(parameters: ModelRequestParameters | None) -> tuple[str, ...]:
    """The definitions of the tools, each as JSON."""
    if parameters is None:
        return ()
    offered: Iterable[Any] = (*parameters.function_tools, *parameters.output_tools)
    return tuple(
        to_json([one.name, one.description, one.parameters_json_schema]).decode() for one in offered
    )


def _instructions(parameters: ModelRequestParameters | None) -> str:
    parts = parameters.instruction_parts if parameters else None
    return "\n\n".join(part.content for part in parts or ())
