"""Replays recorded sessions under a policy and a profile of your own, beside the default."""

import sys
from collections.abc import Sequence
from pathlib import Path

from refold.lab import Measure, Reader, baselines, compare, profiled, recordings
from refold.models import counter_for
from refold.view import Budget, Profile, profile


class Newest:
    """What many programs do: send the newest messages."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader  # counts tokens and describes messages

    def view(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        return messages[-12:]


def smaller_results() -> Profile:
    """The default profile, with large tool results stored apart from 2,000 characters on."""
    values = profile("balanced").model_dump()
    values["name"] = "smaller results"
    values["archive"]["min_chars"] = 2_000
    return Profile.model_validate(values)


paths = [Path(path) for path in sys.argv[1:]]
sessions = [session for file in recordings(paths) for session in file.recordings]
budget, counter = Budget(window=8_000, reserve=1_000), counter_for("openai:gpt-5")
profiles = profiled([profile("balanced"), smaller_results()], budget, counter)
policies = {"everything": baselines()["none"], "newest": Newest, **profiles}
report = compare(sessions, policies, measure=Measure(gap=2_000))
for row in report.rows:
    kept = f"{row.retained.found} of {row.retained.of} names"
    print(f"{row.policy:16} ${row.cost:.3f}, {kept} kept, {row.orphaned} requests not legal")
