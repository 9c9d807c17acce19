"""What summaries cost on a warm cache, on recorded sessions, beside a transcript.

Each replay is a whole session with its folds. At each fold the request for its summary is put
together as it would be sent, and priced: below the request before it, cached and not, and as a
transcript, for the same model and for a cheaper one. No model is called. The recordings are not
part of the project: REFOLD_DATA names their folder.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters

from benchmarks.figures import Figure
from benchmarks.replay import DATA, PI, WINDOW
from refold.fold.extractive import extractive_summary
from refold.fold.job import Job, Steps
from refold.fold.material import Material, Passage
from refold.fold.summary import Summary
from refold.fold.write.by_model import SummarizerAnswer
from refold.fold.write.draft import earlier_claims
from refold.fold.write.transcript import warm_prompt
from refold.lab import compare, read_pi
from refold.lab.session_policy import SessionPolicy
from refold.models import Usage, counter_for, facts_of
from refold.models.catalog import cost_of
from refold.models.experience import Setup
from refold.models.summarizer_choice import CHEAPER, AgentRequest, WarmSummarizer, choose_cheapest
from refold.view import PROFILES, Budget, Counter, Messages
from refold.view.budget import PER_MESSAGE
from refold.wire import wire_for

MODEL = "anthropic:claude-sonnet-4-5"
CHEAP = f"anthropic:{CHEAPER['anthropic']}"
ANSWER = 1_200  # tokens of a summary, about
SHARE, CACHED = 0.99, 0.25
WORDS = 2_800  # as in `balanced`


@dataclass
class _Writer:
    """A model that would write from a transcript."""

    name: str
    room: int = 150_000
    structured: bool = False
    warm: bool = False

    @property
    def counter(self) -> Counter:
        return counter_for(self.name)

    async def ask(
        self, guard: str, prompt: str, job: Job, history: Sequence[Passage] = ()
    ) -> SummarizerAnswer:
        raise NotImplementedError


@dataclass(frozen=True)
class _Priced:
    """One fold: the share of its request that was sent before, and what each way costs."""

    share: float
    warm: float
    uncached: float
    transcript: float
    cheaper: float
    auto: float


class _Replay(SessionPolicy):
    """A session that prices its summaries, and lets the log write them."""

    def __init__(self) -> None:
        counter = counter_for(MODEL)
        # Named, it is waited for: a replay has no time between requests.
        profile = PROFILES["balanced"].model_copy(update={"summarizer": "primary"})
        setup = Setup(MODEL, counter, Budget(window=WINDOW), profile)
        super().__init__(setup, write=self._write)
        self.priced: list[_Priced] = []
        self._sent: Sequence[bytes] = ()
        self._counter = counter

    def view(self, messages: Sequence[bytes]) -> Messages:
        """What the session sends; the next fold asks below it."""
        sent = self._sent = super().view(messages)
        return sent

    async def _write(self, material: Material, job: Job, steps: Steps) -> Summary:  # noqa: ARG002
        self.priced.append(self._price(material, job))
        return extractive_summary(material)

    def _price(self, material: Material, job: Job) -> _Priced:
        count, describe = self._counter, wire_for("pydantic-ai").describe
        parts = (shape for message in self._sent for shape in describe(message).shapes)
        before = sum(map(count.part, parts)) + PER_MESSAGE * len(self._sent)
        asked = count.text(warm_prompt(earlier_claims(material.earlier), "", WORDS), "prompt")
        usage, prices = Usage(before + asked, ANSWER), facts_of(MODEL).prices
        last = AgentRequest(
            cast("Model", None),
            (),
            {"cache": True},
            ModelRequestParameters(),
            ModelResponse([]),
            0,
            (),
            before,
            0.0,
        )
        warm = WarmSummarizer(MODEL, last, count, {})
        choice = choose_cheapest(
            job, material, MODEL, warm, [_Writer(MODEL), _Writer(CHEAP)], clock=lambda: 1.0
        )
        prices_of = {(one.model, one.how): one.dollars or 0.0 for one in choice.offers}
        return _Priced(
            before / (before + asked),
            cost_of(usage._replace(cache_read=before), prices) or 0.0,
            cost_of(usage, prices) or 0.0,
            prices_of[MODEL, "transcript"],
            prices_of[CHEAP, "transcript"],
            choice.offers[0].dollars or 0.0,
        )


def figures(*, quick: bool) -> list[Figure]:
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return []
    found: list[Figure] = []
    for name in PI[1:] if quick else PI:
        made: list[_Replay] = []

        def replay(_: object, made: list[_Replay] = made) -> _Replay:
            made.append(_Replay())
            return made[-1]

        compare([read_pi(DATA / f"pi_{name}.jsonl")], {"balanced": replay})
        found += _figures(name, [one for policy in made for one in policy.priced])
    return found


def _figures(name: str, folds: list[_Priced]) -> list[Figure]:
    warm, uncached = sum(one.warm for one in folds), sum(one.uncached for one in folds)
    lowest = max(one.auto / min(one.warm, one.transcript, one.cheaper) for one in folds)
    return [
        Figure(f"{name}: folds", len(folds), 1),
        Figure(f"{name}: share sent before, least", min(one.share for one in folds), SHARE),
        Figure(f"{name}: warm ÷ nothing cached, dollars", warm / uncached, CACHED, "at most"),
        Figure(f"{name}: warm, dollars", warm),
        Figure(f"{name}: transcript, dollars", sum(one.transcript for one in folds)),
        Figure(f"{name}: transcript, cheaper model, dollars", sum(one.cheaper for one in folds)),
        Figure(f"{name}: auto, dollars", sum(one.auto for one in folds)),
        Figure(f"{name}: auto ÷ the lowest, most", lowest, 1.001, "at most"),
    ]
