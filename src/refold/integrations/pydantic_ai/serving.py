"""What is known of the models that serve: their windows, what they refused, how they count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


class Offer(NamedTuple):
    """What a request offers the model beside its messages."""

    tools: tuple[str, ...] = ()
    """Their definitions, each as JSON."""
    instructions: str = ""


@dataclass(eq=False)
class ModelUse:
    """How one conversation uses models. A delegation has its own, as it has its own tools."""

    model: Model | None = None
    """The one that serves it: others may have the same name, and other keys."""
    offer: Offer = field(default_factory=Offer)
    """Of its newest request."""
    setups: dict[str, tuple[object, Setup]] = field(default_factory=dict[str, tuple[object, Setup]])
    """By model: what the newest setup was made of, and the setup."""


class Models:
    """Makes the setup of each request, and learns from how it went."""

    def __init__(
        self, profile: Profile, overrides: Overrides = NONE, summariser: Model | None = None
    ) -> None:
        self._profile = profile
        self._overrides = overrides
        self._experiences = Experiences()
        self._summariser = summariser

    def named(self, name: str, job: Job, use: ModelUse | None) -> Model:
        """The model of that name for a fold: the summariser, the session's own, or a new one."""
        own = self._summariser
        if own is not None and job.trigger != MANUAL and own.model_id == name:
            return own
        primary = use.model if use is not None else None
        return primary if primary and primary.model_id == name else inferred(name)

    def setup_for_request(
        self,
        use: ModelUse,
        model: Model,
        parameters: ModelRequestParameters,
        settings: Mapping[str, Any] | None,
    ) -> Setup:
        """For which model, with which tools and instructions, a request is to be planned."""
        use.offer = Offer(_tools(parameters), _instructions(parameters))
        return self.setup(use, model, settings)

    def setup(
        self, use: ModelUse, model: Model, settings: Mapping[str, Any] | None = None
    ) -> Setup:
        """The same between requests: with the tools and instructions of the newest one."""
        name = model.model_id
        known = self._experiences.of(name)
        own = self._settings(model, settings or {})
        made_of = (own, use.offer, known.counter, known.window, known.undercount)
        before, setup = use.setups.get(name, (None, None))
        if setup is None or before != made_of:
            setup = self._experiences.setup(name, self._profile, own, *use.offer)
            use.setups[name] = made_of, setup
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


def _tools(parameters: ModelRequestParameters) -> tuple[str, ...]:
    offered: Iterable[Any] = (*parameters.function_tools, *parameters.output_tools)
    return tuple(
        to_json([one.name, one.description, one.parameters_json_schema]).decode() for one in offered
    )


def _instructions(parameters: ModelRequestParameters) -> str:
    return "\n\n".join(part.content for part in parameters.instruction_parts or ())
