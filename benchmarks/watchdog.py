"""What the watchdog notices on recorded sessions, and what its pins cost.

The recorded agent reads whatever a view shows it, so a replay cannot tell how many reads it would
have saved: it counts those that are noticed, and those for which an earlier result was in the view.
The recordings are not part of the project: REFOLD_DATA names their folder.
"""

import sys
from typing import NamedTuple

from benchmarks.figures import Figure
from benchmarks.replay import DATA, PI, WINDOW
from refold.fold.events import FoldEvent
from refold.fold.watchdog import OTHER, ReadAgain
from refold.lab import Reader, Recording, Replay, o200k, play, read_pi
from refold.lab.metrics import rereads
from refold.lab.session_policy import SessionPolicy
from refold.models import counter_for
from refold.models.experience import Setup
from refold.view import PROFILES, Budget, Event

THRESHOLDS = (100_000, 40_000)


class _Watched(SessionPolicy):
    """A replayed session that keeps what the watchdog told."""

    def __init__(self, setup: Setup) -> None:
        self.told: list[ReadAgain] = []
        super().__init__(setup)

    def _watch(self, event: Event | FoldEvent) -> None:
        super()._watch(event)
        if isinstance(event, ReadAgain):
            self.told.append(event)


class _Played(NamedTuple):
    told: list[ReadAgain]
    folds: int
    shown: int
    """Reads of a file that was read before, while an earlier result was in the view."""
    of: int
    sent: int
    cost: float


def figures(*, quick: bool) -> list[Figure]:
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return []
    found: list[Figure] = []
    for name in PI[1:] if quick else PI:
        recording = read_pi(DATA / f"pi_{name}.jsonl")
        for threshold in THRESHOLDS:
            counted, kept = (_played(recording, threshold, share) for share in (0, 0.1))
            found += _figures(f"{name}, folds at {threshold:,}", counted, kept)
    return found


def _figures(label: str, counted: _Played, kept: _Played) -> list[Figure]:
    return [
        Figure(f"{label}: folds", kept.folds),
        Figure(f"{label}: read again", len(kept.told)),
        Figure(f"{label}: by the very same call", sum(one.remedy != OTHER for one in kept.told)),
        Figure(f"{label}: pinned", sum(one.pinned for one in kept.told)),
        Figure(f"{label}: tokens of those", sum(one.tokens for one in kept.told if one.pinned)),
        Figure(f"{label}: an earlier read in the view, without pins", counted.shown / counted.of),
        Figure(f"{label}: an earlier read in the view, with pins", kept.shown / kept.of),
        Figure(f"{label}: sent, x without pins", kept.sent / counted.sent, 1.05, "at most"),
        Figure(f"{label}: cost, x without pins", kept.cost / counted.cost, 1.05, "at most"),
    ]


def _played(recording: Recording, threshold: int, share: float) -> _Played:
    balanced = PROFILES["balanced"]
    trigger = balanced.trigger.model_copy(update={"tokens": threshold})
    watch = balanced.watch.model_copy(update={"share": share})
    profile = balanced.model_copy(update={"trigger": trigger, "watch": watch})
    model = "openai:gpt-4o"
    policy = _Watched(Setup(model, counter_for(model), Budget(window=WINDOW), profile))
    reader = Reader(o200k())
    replay = play(recording, policy, reader)
    shown, of = _shown(replay, reader)
    sent = sum(one.sent for one in replay.requests)
    cost = sum(one.new + 0.1 * one.cached for one in replay.requests)
    return _Played(policy.told, len(policy.folds), shown, of, sent, cost)


def _shown(replay: Replay, reader: Reader) -> tuple[int, int]:
    views = {one.at: one.view for one in replay.requests}
    every = rereads(replay.recording, reader)
    shown = 0
    for again in every:
        text = "\n".join(reader.read(payload).text for payload in views[again.at])
        shown += any(result and result in text for _, result in again.earlier)
    return shown, len(every)
