"""What is known of the models that serve: their windows, what they refused, how they count."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_core import to_json

from refold.fold.job import Job
from refold.fold.run import MANUAL
from refold.models import ModelSettings, Overrides
from refold.models.by_name import inferred
from refold.models.catalogue import NONE
from refold.models.experience import Experiences
from refold.models.overflow import Overflow
from refold.models.setup import Setup
from refold.view import Profile

_MOST_SESSIONS = 1_000
"""Of how many sessions it is known which model serves them."""


class Models:
    """Makes the setup of each request, and learns from how it went."""

    def __init__(
        self, profile: Profile, overrides: Overrides = NONE, summariser: Model | None = None
    ) -> None:
        self._profile = profile
        self._overrides = overrides
        self._experiences = Experiences()
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
        known = self._experiences.of(name)
        own = self._settings(model, settings or {})
        tools, instructions = offered
        asked = (own, tools, instructions, known.counter, known.window, known.undercount)
        before, setup = self._made.get(name, (None, None))
        if setup is None or before != asked:
            setup = self._experiences.setup(name, self._profile, own, tools, instructions)
            self._made[name] = asked, setup
        return setup

    def answered(self, name: str, counted: int, reported: int) -> None:
        """A request of so many tokens, by our count and by the model's."""
        self._experiences.answered(name, counted, reported)

    def refused(self, name: str, counted: int, said: Overflow) -> None:
        """A request of so many tokens, by our count, was refused."""
        self._experiences.refused(name, counted, said)

    def answer_within(
        self, name: str, sent: int, settings: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """The settings, asking for no longer answer than the window that was named has room for."""
        return self._experiences.answer_within(name, sent, settings)

    def limit_of(self, name: str) -> int | None:
        """The smallest limit that a model named, if it ever did."""
        return self._experiences.of(name).window

    def _settings(self, model: Model, settings: Mapping[str, Any]) -> ModelSettings:
        name = model.model_id
        found = [self._overrides[key] for key in (model.model_name, name) if key in self._overrides]
        own: dict[str, Any] = {}
        for one in found:
            own |= one.model_dump(exclude_none=True)
        window = own.get("window") or model.context_window
        output = settings.get("max_tokens") or own.get("output")
        return ModelSettings.model_validate({**own, "window": window, "output": output})


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
