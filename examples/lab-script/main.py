"""Which of your sessions would have gained most from compaction: a table as CSV."""

import csv
import sys
from pathlib import Path

from refold.lab import baselines, compare, profiled, recordings
from refold.models import counter_for
from refold.view import Budget, profile

budget, counter = Budget(window=8_000, reserve=1_000), counter_for("openai:gpt-5")
policies = {
    "everything": baselines()["none"],
    **profiled([profile("balanced")], budget, counter),
}
table = csv.writer(sys.stdout)
table.writerow(["session", "messages", "dollars", "with balanced", "names kept"])
for file in recordings([Path(path) for path in sys.argv[1:]]):
    for session in file.recordings:
        everything, balanced = compare([session], policies).rows
        dollars = [f"{everything.cost:.3f}", f"{balanced.cost:.3f}"]
        kept = f"{balanced.retained.rate:.0%}"
        table.writerow([session.name, len(session.messages), *dollars, kept])
