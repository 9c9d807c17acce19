"""How much of what answers a question is found again, on LoCoMo, and how long a search takes.

Each dated session of a conversation becomes a session of the log, each turn a message, and each
conversation a tenant. Recall@k is the share of a question's evidence that is among the first k
found, averaged over the questions: evidence turns among messages, evidence sessions among sessions.
Evidence that names no turn of the conversation is left out, and questions with nothing left.

The ranking was tuned on the first five conversations; the other five are given apart.
LoCoMo is not part of the project: REFOLD_DATA names the folder of `locomo10.json`.
"""

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import Figure
from refold.log import Author, Log, Message, Opened, Store
from refold.recall import search, search_sessions
from refold.stores import MemoryStore, SqliteStore

DATA = Path(os.environ.get("REFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))
CUTS = (5, 10, 20)
BARS = {("turn", 10): 0.65, ("session", 10): 0.92}
TUNED_ON = 5
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
ENTRIES, AT_ONCE, COMMON, SEARCHES = 100_000, 2_000, 10, 20


class Question(NamedTuple):
    text: str
    evidence: frozenset[tuple[int, int]]


class Answered(NamedTuple):
    """For each cut, the share of the evidence that was found."""

    turns: list[float]
    sessions: list[float]
    seconds: float


def figures(*, quick: bool) -> list[Figure]:
    path = DATA / "locomo10.json"
    if not path.is_file():
        print(f"No LoCoMo in {DATA}: name its folder in REFOLD_DATA.", file=sys.stderr)
        return []
    conversations = json.loads(path.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_figures(conversations, Path(folder), quick=quick))


async def _figures(conversations: list[Any], folder: Path, *, quick: bool) -> list[Figure]:
    used = [0, TUNED_ON] if quick else range(len(conversations))
    async with SqliteStore(folder / "locomo.db") as store:
        answered = {at: await _conversation(store, at, conversations[at]) for at in used}
    found = _recall(answered, "all" if not quick else "two conversations", bars=True)
    if quick:
        return found
    tuned = {at: some for at, some in answered.items() if at < TUNED_ON}
    rest = {at: some for at, some in answered.items() if at >= TUNED_ON}
    found += _recall(tuned, "1-5, tuned on") + _recall(rest, "6-10, held out")
    async with MemoryStore() as store:
        again = {at: await _conversation(store, at, conversations[at]) for at in used}
    same = sum(
        one[:2] == other[:2]
        for at in used
        for one, other in zip(answered[at], again[at], strict=True)
    )
    count = sum(map(len, answered.values()))
    found.append(Figure("LoCoMo, questions answered alike by both stores", same / count, 1))
    return [*found, *await _large(folder)]


def _recall(answered: dict[int, list[Answered]], label: str, *, bars: bool = False) -> list[Figure]:
    every = [one for some in answered.values() for one in some]
    found = [Figure(f"LoCoMo, {label}: questions", len(every))]
    for kind, shares in (
        ("turn", [one.turns for one in every]),
        ("session", [one.sessions for one in every]),
    ):
        for cut, column in zip(CUTS, zip(*shares, strict=True), strict=True):
            bar = BARS.get((kind, cut)) if bars else None
            found.append(
                Figure(f"LoCoMo, {label}: R@{cut} by {kind}", statistics.mean(column), bar)
            )
    typical = statistics.median(one.seconds for one in every)
    return [*found, Figure(f"LoCoMo, {label}: ms for 20 messages, median", typical * 1000)]


async def _conversation(store: Store, at: int, conversation: dict[str, Any]) -> list[Answered]:
    log = store.log(f"conversation {at}")
    places = await _keep(log, conversation["conversation"])
    return [
        await _answer(log, question, places)
        for question in _questions(conversation["qa"], frozenset(places.values()))
    ]


async def _keep(log: Log, conversation: dict[str, Any]) -> dict[tuple[str, int], tuple[int, int]]:
    """Append the sessions; where each turn is."""
    author = Author()
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for name, turns in conversation.items():
        if not isinstance(turns, list):
            continue
        number = int(name.removeprefix("session_"))
        drafts = [
            author.draft(Opened("openai-chat", "balanced", conversation[f"{name}_date_time"]))
        ]
        for turn in turns:
            role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
            drafts.append(author.draft(Message(_payload(role, turn))))
            _, nth = turn["dia_id"].split(":")
            places[name, len(drafts)] = number, int(nth)
        await log.append(name, drafts, expected=0)
    return places


def _payload(role: str, turn: dict[str, Any]) -> bytes:
    shared = f" [image: {turn['blip_caption']}]" if "blip_caption" in turn else ""
    return json.dumps(
        {"role": role, "content": f"{turn['speaker']}: {turn['text']}{shared}"}
    ).encode()


def _questions(asked: list[Any], turns: frozenset[tuple[int, int]]) -> Iterator[Question]:
    for one in asked:
        named = EVIDENCE.findall(" ".join(one.get("evidence", ())))
        evidence = turns & {(int(session), int(nth)) for session, nth in named}
        if evidence:
            yield Question(one["question"], frozenset(evidence))


async def _answer(
    log: Log, question: Question, places: dict[tuple[str, int], tuple[int, int]]
) -> Answered:
    begun = time.perf_counter()
    hits = await search(log, question.text, limit=CUTS[-1])
    seconds = time.perf_counter() - begun
    turns = [places.get((hit.session, hit.seq)) for hit in hits]
    found = await search_sessions(log, question.text, limit=CUTS[-1])
    sessions = [int(one.info.session.removeprefix("session_")) for one in found]
    in_sessions = {session for session, _ in question.evidence}
    return Answered(
        [len(question.evidence & set(turns[:cut])) / len(question.evidence) for cut in CUTS],
        [len(in_sessions & set(sessions[:cut])) / len(in_sessions) for cut in CUTS],
        seconds,
    )


async def _large(folder: Path) -> list[Figure]:
    """Searches in one long session: for a rare word, and for one that every tenth entry holds."""
    author = Author()
    async with SqliteStore(folder / "large.db") as store:
        log = store.log()
        await log.append("long", [author.draft(Opened("openai-chat", "balanced"))], expected=0)
        for first in range(0, ENTRIES, AT_ONCE):
            drafts = [author.draft(_message(at)) for at in range(first, first + AT_ONCE)]
            await log.append("long", drafts, expected=first + 1)
        await search(log, "nothing", session="long")  # the index is made by the first search
        rare = await _median(lambda at: search(log, f"rare{at * 97}", session="long"))
        common = await _median(lambda at: search(log, f"common rare{at * 97}", session="long"))
    return [
        Figure(f"{ENTRIES:,} entries: ms for a rare word, median", rare * 1000),
        Figure(f"{ENTRIES:,} entries: ms for a common word too, median", common * 1000),
    ]


def _message(at: int) -> Message:
    common = "common" if at % COMMON == 0 else "other"
    words = f"rare{at} {common} words that each of them has, and then some more {at % 977}"
    return Message(json.dumps({"role": "user", "content": words}).encode())


async def _median(work: Callable[[int], Awaitable[Sequence[object]]]) -> float:
    times: list[float] = []
    for at in range(SEARCHES):
        begun = time.perf_counter()
        assert await work(at)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)
