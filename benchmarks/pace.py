"""Requests while conversations are compacted, beside the same requests with compaction off.

Twenty conversations of one tenant talk through two `refold serve` processes, turn and turn about,
over one PostgreSQL server with one `refold worker`. Nothing holds a model's key, so no compaction
calls a model; and once more with a model that takes three seconds to write a summary. The tokens
are estimated (nobody knows the model), the limit is 12,000 of them, and every conversation grows
past the mark at which a fold starts. The upstream answers at once: what is timed is the gateway.

The pace is that of recorded coding sessions: how long after one request the next one comes, and how
many tokens it adds. `REFOLD_DATA` names the folder of the recordings (`pi_*.jsonl`), which are not
part of the project; without it the deciles below are used, which were read from the same two
recordings. `--quick` plays short rounds, eight times as fast: all bars apply but that on the p99,
which belongs to the recorded pace and takes more requests than a minute has.

Rounds of all three kinds take turns on one machine, so the ratios are what counts. The marks are
read from the log afterwards: which requests were cut to fit, which conversations passed the soft
mark, and which of these were folded. How many requests waited for a fold is the service's own
metric, `refold.fold.wait.duration`.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final, NamedTuple

from benchmarks import gateway_upstream
from benchmarks.figures import Figure
from benchmarks.gateway import running
from benchmarks.gateway_load import Client
from refold.engine.dbos import prepare
from refold.fold.summary import parse
from refold.lab import read_pi
from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStarted, Log, Requested, Span
from refold.models import counter_for
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs
from refold.wire import wire_for

CONVERSATIONS: Final = 20
LIMIT: Final = 12_000
SOFT: Final = 0.8
MODEL: Final = "bench-model"
ROLE: Final = "app"
MAX_RATIO: Final = 3.0
_GAPS: Final = (3.7, 4.2, 4.6, 5.1, 5.7, 6.7, 8.8, 11.5, 27.0)
"""Deciles of the seconds from one request of a recorded session to the next."""
_GROWTH: Final = (64, 80, 95, 128, 200, 290, 390, 575, 1_180)
"""Deciles of the tokens that a request of a recorded session adds."""
_LONGEST_GAP: Final = 30.0
_HISTORY: Final = 8_400
"""Tokens of a conversation when it begins, so that each one passes the soft mark soon."""
_FOLDS: Final = {"REFOLD_BUDGET": str(LIMIT)}
_UPSTREAMS: Final = "REFOLD_SERVE__UPSTREAMS"
_NO_FOLDS: Final = {f"REFOLD_TRIGGER__{mark}": "0" for mark in ("SOFT", "HARD", "TOKENS")}
_BYTES_PER_TOKEN: Final = 3.25
"""As the estimate counts these texts, so that what the upstream reports changes no count."""
_MAX_SESSIONS: Final = 50 * CONVERSATIONS
_PATIENCE: Final = 60.0
_TRY_AGAIN: Final = "HTTP/1.1 503"
_RETRY_AFTER: Final = 1.0
"""Seconds, as the service says."""
_WAIT_COUNT: Final = re.compile(
    r'^refold_fold_wait_duration_seconds_count\{.*refold_fold_trigger="(\w+)".*\} ([\d.]+)',
    re.MULTILINE,
)


class Plan(NamedTuple):
    """How much is played."""

    rounds: int
    turns: int
    speed: float


class Pace(NamedTuple):
    """Seconds between the requests of a conversation, and the tokens that they add."""

    gaps: Sequence[float]
    growth: Sequence[int]


@dataclass
class Outcome:
    """What came of all rounds of one kind."""

    seconds: list[float] = field(default_factory=list[float])
    conversations: int = 0
    past_soft: int = 0
    folded: int = 0
    started: int = 0
    failed: int = 0
    completed: int = 0
    by_model: int = 0
    cut: int = 0
    refused: int = 0
    """Requests that were told to try again."""
    waits: dict[str, int] = field(default_factory=dict[str, int])

    def percentile(self, share: float) -> float:
        times = sorted(self.seconds)
        return times[min(len(times) - 1, int(share * len(times)))]

    @property
    def waits_below_hard(self) -> int:
        return sum(count for mark, count in self.waits.items() if mark not in {"hard", "forced"})

    @property
    def folded_share(self) -> float:
        return self.folded / max(1, self.past_soft)


def figures(*, quick: bool) -> list[Figure]:
    if programs() is None:
        print("PostgreSQL is not installed: there is nothing to measure.", file=sys.stderr)
        return []
    plan = Plan(rounds=2, turns=4, speed=8.0) if quick else Plan(rounds=4, turns=8, speed=1.0)
    pace = _recorded_pace()
    with Cluster(durable=True) as cluster, ExitStack() as stack:
        cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
        counting = gateway_upstream.serve_counting
        upstream = stack.enter_context(running(counting, _BYTES_PER_TOKEN, plan.speed))
        off = stack.enter_context(_service(cluster, "off", upstream.port, _NO_FOLDS))
        on = stack.enter_context(_service(cluster, "on", upstream.port, _FOLDS))
        model = stack.enter_context(
            _service(cluster, "model", upstream.port, _by_model(upstream.port))
        )
        services = (off, on, model)
        for service in services:
            service.ready()
        for index in range(plan.rounds):
            # In turns, each first as often: a machine that slows down favors neither.
            for service in services if index % 2 == 0 else reversed(services):
                service.play(f"round-{index}", plan, pace)
        for service in services:
            service.read()
    found = _compared(on.outcome, off.outcome, at_pace=not quick)
    return found + _with_a_model(model.outcome, off.outcome, at_pace=not quick)


def _by_model(upstream: int) -> dict[str, str]:
    """The server needs no key, so its model may be asked for summaries."""
    server = {"name": "bench", "base_url": f"http://127.0.0.1:{upstream}/v1", "key": "none"}
    return {**_FOLDS, _UPSTREAMS: json.dumps([server])}


def _compared(on: Outcome, off: Outcome, *, at_pace: bool) -> list[Figure]:
    label = f"{CONVERSATIONS} conversations, 2 gateways, 1 worker"
    bar = MAX_RATIO if at_pace else None
    below_hard = on.waits_below_hard
    return [
        Figure(f"p99, folds ÷ no folds, {label}", _ratio(on, off, 0.99), bar, "at most"),
        Figure("p50, folds ÷ no folds", _ratio(on, off, 0.5)),
        Figure("slowest, folds ÷ no folds", max(on.seconds) / max(off.seconds)),
        Figure("requests that waited below the hard mark", below_hard, 0, "at most"),
        Figure("requests that waited at the hard mark", sum(on.waits.values()) - below_hard),
        Figure("folded, of the conversations past soft", on.folded_share, 1),
        Figure("past soft, of all conversations", on.past_soft / max(1, on.conversations), 1),
        Figure("requests that were told to try again", on.refused + off.refused, 0, "at most"),
        Figure("folds that failed", on.failed, 0, "at most"),
        Figure("folds for each conversation past soft", on.started / max(1, on.past_soft)),
        Figure("requests that were cut to fit", on.cut, 0, "at most"),
        Figure("requests, with folds and without", len(on.seconds) + len(off.seconds)),
        Figure("p99 in ms, folds", 1e3 * on.percentile(0.99)),
        Figure("p99 in ms, no folds", 1e3 * off.percentile(0.99)),
    ]


def _with_a_model(model: Outcome, off: Outcome, *, at_pace: bool) -> list[Figure]:
    label = f"summaries of {gateway_upstream.SUMMARY_SECONDS:.0f} s"
    bar = MAX_RATIO if at_pace else None
    below_hard, all_waits = model.waits_below_hard, sum(model.waits.values())
    return [
        Figure(f"p99, folds ÷ no folds, {label}", _ratio(model, off, 0.99), bar, "at most"),
        Figure(f"requests that waited below the hard mark, {label}", below_hard, 0, "at most"),
        Figure(f"requests that waited at the hard mark, {label}", all_waits - below_hard),
        Figure(f"folded, of the conversations past soft, {label}", model.folded_share, 1),
        Figure(f"requests that were told to try again, {label}", model.refused, 0, "at most"),
        Figure(f"folds that failed, {label}", model.failed, 0, "at most"),
        Figure(f"requests that were cut to fit, {label}", model.cut, 0, "at most"),
        Figure("summaries by the model", model.by_model / max(1, model.completed), 0.5),
    ]


def _ratio(on: Outcome, off: Outcome, share: float) -> float:
    return on.percentile(share) / off.percentile(share)


def _recorded_pace() -> Pace:
    folder = os.environ.get("REFOLD_DATA")
    if not folder:
        return Pace(_GAPS, _GROWTH)
    gaps: list[float] = []
    growth: list[int] = []
    wire, counter = wire_for("pydantic-ai"), counter_for("openai:gpt-4o")
    for path in sorted(Path(folder).glob("pi_*.jsonl")):
        tokens, last = 0, None
        for message in read_pi(path).messages:
            shape = wire.describe(message.payload)
            tokens += sum(map(counter.part, shape.shapes))
            if shape.role == "assistant" and message.at is not None:
                if last is not None:
                    gaps.append(min(_LONGEST_GAP, max(0.0, (message.at - last) / 1_000)))
                    growth.append(tokens)
                tokens, last = 0, message.at
    if not gaps:
        raise RuntimeError(f"No recordings (pi_*.jsonl) in {folder}.")
    return Pace(gaps, growth)


class _Service:
    """Two gateways and a worker over one database, and what came of all rounds played on them."""

    def __init__(self, database: str, gateways: Sequence[subprocess.Popen[str]]) -> None:
        self.outcome = Outcome()
        self._database = database
        self._gateways = gateways
        self._ports: list[int] = []

    def ready(self) -> None:
        """Wait until it listens."""
        self._ports = [_port(gateway) for gateway in self._gateways]
        for port in self._ports:
            _waits(port)  # a service measures from the first time that its metrics are read

    def play(self, name: str, plan: Plan, pace: Pace) -> None:
        """One round, with conversations of its own."""
        seconds, refused = asyncio.run(_talk(self._ports, name, plan, pace))
        self.outcome.seconds += seconds
        self.outcome.refused += refused
        asyncio.run(_settle(self._database))

    def read(self) -> None:
        """Read what the metrics and the log say of all rounds."""
        for port in self._ports:
            for mark, count in _waits(port):
                self.outcome.waits[mark] = self.outcome.waits.get(mark, 0) + count
        asyncio.run(_read_logs(self._database, self.outcome))


@contextmanager
def _service(
    cluster: Cluster, name: str, upstream: int, settings: Mapping[str, str]
) -> Iterator[_Service]:
    database = _database(cluster, name)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        begin = _Processes(folder, database, settings)
        stack.enter_context(begin.worker())
        gateways = [stack.enter_context(begin.gateway(upstream)) for _ in range(2)]
        yield _Service(database, gateways)


def _database(cluster: Cluster, name: str) -> str:
    async def prepared() -> None:
        await migrate(cluster.database(name), roles=[ROLE])
        await prepare(cluster.address(name), roles=[ROLE])

    asyncio.run(prepared())
    return cluster.address(name, user=ROLE)


class _Processes:
    """Starts `refold` in processes of their own."""

    def __init__(self, folder: str, database: str, settings: Mapping[str, str]) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("REFOLD_")}
        self._environment = {
            **own,
            **settings,
            "HOME": folder,
            "REFOLD_SERVE__METRICS": "true",
            "REFOLD_STORE": database,
        }
        self._folder = folder

    def gateway(self, upstream: int) -> AbstractContextManager[subprocess.Popen[str]]:
        address = f"http://127.0.0.1:{upstream}/v1"
        named = () if _UPSTREAMS in self._environment else ("--upstream", address)
        return self._running("serve", "--port", "0", "--json", "--no-worker", *named)

    def worker(self) -> AbstractContextManager[subprocess.Popen[str]]:
        return self._running("worker")

    @contextmanager
    def _running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        with (Path(self._folder) / f"{arguments[0]}.log").open("a") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "refold.cli", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._folder,
                env=self._environment,
            )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(gateway: subprocess.Popen[str]) -> int:
    """The port that a gateway says it listens on."""
    assert gateway.stdout is not None
    return int(json.loads(gateway.stdout.readline())["address"].rpartition(":")[2])


class _Conversation:
    """What a client sends: the whole history each time, with what is new."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._random = Random(name)
        self._counter = counter_for(MODEL)
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are a careful engineer. Say what you changed."}
        ]
        self._begin()

    def bodies(self, growth: Iterator[int]) -> list[bytes]:
        """The requests, each of which adds so many tokens."""
        answer = self._counter.text(gateway_upstream.TEXT)
        bodies: list[bytes] = []
        for tokens in growth:
            prompt = self._text(max(1, tokens - answer))
            self._messages.append({"role": "user", "content": prompt})
            request = {"model": MODEL, "stream": True, "messages": self._messages}
            bodies.append(json.dumps(request).encode())
            self._messages.append({"role": "assistant", "content": gateway_upstream.TEXT})
        return bodies

    def _begin(self) -> None:
        """Half of the history is results of tools, as in a coding session."""
        left = _HISTORY
        while left > 0:
            call = f"call_{len(self._messages)}"
            function = {"name": "read", "arguments": json.dumps({"path": f"src/{call}.py"})}
            calls = [{"id": call, "type": "function", "function": function}]
            self._messages += [
                {"role": "user", "content": self._text(250)},
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": call, "content": self._text(450)},
                {"role": "assistant", "content": self._text(200)},
            ]
            left -= 950

    def _text(self, tokens: int) -> str:
        """Words, names of files and numbers, as many tokens as are wanted."""
        lines: list[str] = []
        counted = 0
        while counted < tokens:
            what, where = self._random.choice(_VERBS), self._random.choice(_NOUNS)
            number = self._random.randrange(10_000)
            line = (
                f"{what} src/{where}/{where}.py again, since what it says of the {where} in line "
                f"{number} is not what the tests say of it."
            )
            lines.append(line)
            counted += self._counter.text(line)
        return "\n".join(lines)


_VERBS: Final = ("Read", "Changed", "Looked at", "Tested", "Moved", "Found an error in")
_NOUNS: Final = ("parser", "store", "session", "ledger", "worker", "billing", "routing", "cache")


async def _talk(ports: Sequence[int], name: str, plan: Plan, pace: Pace) -> tuple[list[float], int]:
    """Hold all conversations at once; the seconds of each request, and how often one was refused.

    A request that is told to try again does so, as the providers' clients do; its time goes on.
    """
    seconds: list[float] = []
    refused = 0
    names = [f"{name}-{index}" for index in range(CONVERSATIONS)]
    randoms = [Random(index) for index in range(CONVERSATIONS)]
    # Made beforehand: what the clients compute must not be timed with the gateways.
    bodies = [
        _Conversation(name).bodies(random.choice(pace.growth) for _ in range(plan.turns))
        for name, random in zip(names, randoms, strict=True)
    ]

    async def hold(index: int) -> None:
        nonlocal refused
        random = randoms[index]
        header = f"Refold-Session: {names[index]}"
        await asyncio.sleep(random.uniform(0, min(pace.gaps)) / plan.speed)
        for turn, body in enumerate(bodies[index]):
            port, began = ports[(index + turn) % len(ports)], monotonic()
            async with asyncio.timeout(_PATIENCE):
                while problem := await _ask(port, header, body):
                    if not problem.startswith(_TRY_AGAIN):
                        raise RuntimeError(f"{names[index]}, turn {turn}: {problem}")
                    refused += 1
                    await asyncio.sleep(_RETRY_AFTER)
            if turn:  # the first one brings the whole history, folds or not
                seconds.append(monotonic() - began)
            await asyncio.sleep(random.choice(pace.gaps) / plan.speed)

    await asyncio.gather(*map(hold, range(CONVERSATIONS)))
    return seconds, refused


async def _ask(port: int, header: str, body: bytes) -> str:
    """Ask and take the whole answer; what was wrong with it, if anything was."""
    # A connection each: the service closes those that are idle for longer than a pause.
    client = Client(port, header, "X-At-Once: 1")
    await client.connect()
    try:
        answer = await client.ask(body)
    finally:
        client.close()
    return answer if isinstance(answer, str) else ""


async def _settle(database: str) -> None:
    """Wait until no fold is under way; one that never ends is counted as not folded."""
    async with PostgresStore(database) as store:
        log, until = store.log(), monotonic() + _PATIENCE
        for session in (await log.sessions(limit=_MAX_SESSIONS)).sessions:
            while monotonic() < until:
                if not (await log.outlined(session.session)).outline.running:
                    break
                await asyncio.sleep(0.1)


def _waits(port: int) -> list[tuple[str, int]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        found = _WAIT_COUNT.findall(response.read().decode())
    return [(mark, int(float(count))) for mark, count in found]


async def _read_logs(database: str, outcome: Outcome) -> None:
    async with PostgresStore(database) as store:
        log = store.log()
        names = [one.session for one in (await log.sessions(limit=_MAX_SESSIONS)).sessions]
        outcome.conversations += len(names)
        for name in names:
            await _read_log(log, name, outcome)


async def _read_log(log: Log, name: str, outcome: Outcome) -> None:
    past_soft = folded = False
    for entry in await log.read(name, Span(1, await log.head(name))):
        match CODEC.decode(entry):
            case Requested(plan={"cause": "limit"}):
                outcome.cut += 1
            case FoldStarted():
                # Whatever starts a fold here is a mark at or above the soft one.
                outcome.started += 1
                past_soft = True
            case FoldCompleted(summary=summary):
                folded = True
                outcome.completed += 1
                outcome.by_model += parse(summary).by.endswith(MODEL)
            case FoldFailed():
                outcome.failed += 1
            case _:
                pass
        match CODEC.decode(entry):
            case Requested(plan={"account": dict(account)}):
                past_soft |= _sent(account) >= ceil(SOFT * LIMIT)
            case _:
                pass
    outcome.past_soft += past_soft
    outcome.folded += folded


def _sent(account: dict[str, Any]) -> int:
    return sum(int(account.get(part, 0)) for part in ("system", "conversation", "tools"))
