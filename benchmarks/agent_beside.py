"""What an agent sends and pays with Refold, beside the harness's `SummarizingCompaction`.

Both play the same script (`agent_script`), each in its own environment. What was sent is counted by
one tokenizer and priced by one table, with a provider's prefix cache: of each request, the pieces
that it has in common with the request before are read from the cache, and the others are written to
it. Instructions and tools are the first piece. Summaries are asked for without a cache, which is
the cheaper way. What a model could still answer afterwards is not measured here: see `fold`.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.agent_script import TURNS, WINDOW, Asked, Script, Sent
from benchmarks.figures import Figure
from benchmarks.peers.environment import ROOT, python_of, surroundings
from refold.integrations.pydantic_ai import Refold
from refold.lab import o200k

AT_MOST = 600
"""Seconds for one run of the harness."""
INPUT, OUTPUT, WRITTEN, READ = 3.0, 15.0, 3.75, 0.30
"""Dollars for a million tokens, as for a model like Claude Sonnet."""
SETTINGS: dict[str, tuple[dict[str, Any], float | None]] = {
    "as documented": ({"max_fraction": 0.9, "keep_messages": 20}, 1.0),
    "at 24,000 tokens": ({"max_tokens": 24_000, "keep_tokens": 8_000}, None),
    "at 15,000 tokens": ({"max_tokens": 15_000, "keep_tokens": 5_000}, None),
}
"""What it is given, and the bar for ours ÷ theirs. The first is its documentation's own example;
the second is the limit that Refold keeps to in this window, the third what it sends on average."""


@dataclass(frozen=True)
class Bill:
    """What one run came to."""

    summaries: int
    tokens: int
    """Sent to the main model."""
    largest: int
    cost: float


def beside() -> Iterator[Figure]:
    """Ours ÷ theirs; nothing, and a sentence, where the harness cannot be had."""
    try:
        python = python_of("harness")
    except (OSError, RuntimeError) as error:
        print(f"No harness, so no figures beside it: {error}", file=sys.stderr)
        return
    ours = bill(asyncio.run(_ours()))
    yield Figure("scripted run: summaries asked for", ours.summaries, 0, "at most")
    yield Figure("scripted run: largest request ÷ window", ours.largest / WINDOW, 1, "at most")
    for name, (settings, bar) in SETTINGS.items():
        theirs = bill(_theirs(python, settings))
        # What never compacts proves nothing.
        assert theirs.summaries > 0
        what = f"SummarizingCompaction {name}"
        yield Figure(f"{what}: its summaries", theirs.summaries)
        yield Figure(f"{what}: its largest request ÷ window", theirs.largest / WINDOW)
        yield Figure(f"tokens ÷ {what}", ours.tokens / theirs.tokens, bar, "at most")
        yield Figure(f"cost ÷ {what}", ours.cost / theirs.cost, bar, "at most")


def bill(sent: Sent) -> Bill:
    """Count and price what was sent."""
    count = o200k()
    tokens = [count(text) for text in sent.texts]
    main = [one for one in sent.asked if not one.summary]
    asked = [one for one in sent.asked if one.summary]
    sizes = [sum(tokens[piece] for piece in one.pieces) for one in main]
    first = Asked([], 0)
    cached = [
        sum(tokens[piece] for piece in one.pieces[: _common(before.pieces, one.pieces)])
        for before, one in pairwise([first, *main])
    ]
    read, written = sum(cached), sum(sizes) - sum(cached)
    plain = sum(tokens[piece] for one in asked for piece in one.pieces)
    made = sum(tokens[one.answer] for one in sent.asked)
    cost = read * READ + written * WRITTEN + plain * INPUT + made * OUTPUT
    return Bill(len(asked), sum(sizes), max(sizes), cost / 1_000_000)


def _common(before: list[int], after: list[int]) -> int:
    """How many pieces at the beginning are the same."""
    pairs = list(zip(before, after, strict=False))
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(pairs))


async def _ours() -> Sent:
    script = Script(TURNS)
    async with Refold() as refold:
        agent = script.agent(refold)
        for prompt in script.prompts:
            await agent.run(prompt, conversation_id="scripted")
    return script.sent


def _theirs(python: Path, settings: dict[str, Any]) -> Sent:
    command = [str(python), "-P", "-m", "benchmarks.agent_harness"]
    done = subprocess.run(  # noqa: S603 - our script, by the peer's Python
        [*command, str(TURNS), str(WINDOW), json.dumps(settings)],
        env=surroundings(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        timeout=AT_MOST,
    )
    if done.returncode != 0:
        raise RuntimeError(f"The harness could not be measured:\n{done.stderr.strip()}")
    return Sent.from_json(done.stdout)
