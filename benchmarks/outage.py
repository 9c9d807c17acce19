"""The store is away under load: what clients notice, and what the log has afterwards.

Two real `refold serve` share one PostgreSQL server. Clients hold conversations through both, taking
turns, and send the whole history each time. Then the database goes away, in one of three ways:

- `frozen`: all processes of the server are stopped by SIGSTOP. Connections stay open, and nothing
  answers.
- `shut down`: the server ends in good order, and is started again.
- `silent`: nothing passes between gateways and server any more. New connections are accepted and
  never answered, as by a network that swallows packets.

Each way is tried with and without `--fail-open`. Some conversations begin during the outage. When
the store is back, all of them go on, and the log is compared with what the clients have.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final, Literal, NamedTuple

import httpx2

from benchmarks import gateway_upstream
from benchmarks.figures import Figure
from benchmarks.gateway import ROLE, Running, running
from refold.engine.dbos import prepare
from refold.log import CODEC, Log, Message
from refold.service.keys import keyring_of
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs

Way = Literal["frozen", "shut down", "silent"]
DEADLINE: Final = 2.0
"""Seconds: the default of `serve.times.store`."""
_TENANT: Final = "bench"
_PATH: Final = "/v1/chat/completions"
_CLIENTS: Final = 12
_TURNS: Final = 6
"""Messages of each conversation before the outage."""
_PATIENCE: Final = 60.0
_SLOWEST: Final = 1.5
"""How many deadlines an outage may add to a request, on a machine that does other things too."""


class Times(NamedTuple):
    """In seconds."""

    away: float
    after: float
    sent_again: float
    """That a conversation has to go on before its unmanaged turns count as lost."""


_WHOLE: Final = Times(60.0, 12.0, 5.0)
_SHORT: Final = Times(4.0, 4.0, 3.0)


class Scenario(NamedTuple):
    """How the store goes away, and what the gateways do then."""

    way: Way
    fail_open: bool

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.way}, fail_open {'on' if self.fail_open else 'off'}"


class Done(NamedTuple):
    """One request."""

    began: float
    seconds: float
    outcome: str
    gateway: int


@dataclass
class Talk:
    """A conversation, as its client has it."""

    name: str
    history: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    sessions: set[str] = field(default_factory=set[str])
    warm: asyncio.Event = field(default_factory=asyncio.Event)


def figures(*, quick: bool) -> list[Figure]:
    if programs() is None:
        print("PostgreSQL is not installed: there is nothing to measure.", file=sys.stderr)
        return []
    every = [Scenario(way, on) for way in ("frozen", "shut down", "silent") for on in (True, False)]
    scenarios = [every[3], every[4]] if quick else every
    wanted = os.environ.get("REFOLD_OUTAGE", "")
    found: list[Figure] = []
    for one in scenarios:
        if wanted in one.label:
            found += _tried(one, _SHORT if quick else _WHOLE)
    return found


def _tried(scenario: Scenario, times: Times) -> list[Figure]:
    with Cluster() as cluster, ExitStack() as stack:
        cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
        upstream = stack.enter_context(running(gateway_upstream.serve))
        return asyncio.run(_measured(scenario, times, cluster, upstream))


async def _measured(
    scenario: Scenario, times: Times, cluster: Cluster, upstream: Running
) -> list[Figure]:
    owner = cluster.database("outage")
    await migrate(owner, partitions=4, roles=[ROLE])
    await prepare(owner, roles=[ROLE])
    direct = cluster.address("outage", user=ROLE)
    async with PostgresStore(direct) as store:
        key = (await keyring_of(store).create(_TENANT, ["use"])).secret
    async with _wire_to(cluster.port) as wire:
        address = direct.replace(f":{cluster.port}/", f":{wire.port}/")
        async with _gateways(address, upstream, scenario, times) as gateways:
            load = _Load(gateways, key)
            async with load.client:
                talking = [asyncio.create_task(load.talk(one)) for one in range(_CLIENTS)]
                await asyncio.sleep(0)  # each has begun
                await load.warm()
                gone = monotonic()
                async with _away(scenario.way, cluster, wire):
                    await asyncio.sleep(times.away / 2)
                    late = range(_CLIENTS, _CLIENTS + _CLIENTS // 4)
                    talking += [asyncio.create_task(load.talk(one)) for one in late]
                    await asyncio.sleep(times.away / 2)
                back = monotonic()
                await asyncio.sleep(times.after)
                load.stop.set()
                await asyncio.gather(*talking)
                await load.once_more()
                await asyncio.sleep(
                    2 * times.sent_again
                )  # each gateway looks what the other has logged
                lost = [await _lost(load.client, one) for one in gateways]
            async with PostgresStore(direct) as store:
                logged = await _logged(store.log(_TENANT), load.talks)
    return [*_figures(scenario, load, gone, back), *logged.figures(scenario, sum(lost))]


class _Load:
    """Clients that hold conversations."""

    def __init__(self, gateways: list[str], key: str) -> None:
        self.client = httpx2.AsyncClient(
            timeout=_PATIENCE,
            headers={"Authorization": f"Bearer {key}"},
            limits=httpx2.Limits(max_connections=None),
        )
        self.stop = asyncio.Event()
        self.done: list[Done] = []
        self.talks: list[Talk] = []
        self._gateways = gateways

    async def talk(self, number: int) -> None:
        """One conversation after the other would be none that goes on: each client has one."""
        talk = Talk(f"conversation-{number:03d}")
        self.talks.append(talk)
        turn = 0
        while not self.stop.is_set():
            turn += 1
            await self._turn(talk, turn, number + turn)
            await asyncio.sleep(0.5)

    async def warm(self) -> None:
        """Wait until every conversation has some turns: the first ones take longer."""
        await asyncio.gather(*(one.warm.wait() for one in self.talks))

    async def once_more(self) -> None:
        """Each conversation goes on: its client sends its history again."""
        for number, talk in enumerate(self.talks):
            turn = 1_000
            while await self._turn(talk, turn, number + turn) != "managed":
                turn += 1

    async def _turn(self, talk: Talk, turn: int, nth: int) -> str:
        """Ask until it is answered; how it was."""
        prompt = {"role": "user", "content": f"{talk.name}, turn {turn}: go on."}
        while True:
            outcome, session = await self._asked([*talk.history, prompt], nth)
            if outcome in ("managed", "unmanaged"):
                break
            nth += 1
            await asyncio.sleep(0.3)
        answer = {"role": "assistant", "content": gateway_upstream.TEXT}
        talk.history += [prompt, answer]
        if session:
            talk.sessions.add(session)
        if len(talk.history) >= _TURNS:
            talk.warm.set()
        return outcome

    async def _asked(self, messages: list[dict[str, str]], nth: int) -> tuple[str, str]:
        at = nth % len(self._gateways)
        body = {"model": "some-model", "messages": messages, "stream": True}
        began, session = monotonic(), ""
        try:
            answer = await self.client.post(f"{self._gateways[at]}{_PATH}", json=body)
            session = answer.headers.get("refold-session", "")
            outcome = _outcome(answer)
        except httpx2.TransportError as error:
            outcome = type(error).__name__
        self.done.append(Done(began, monotonic() - began, outcome, at))
        return outcome, session


def _outcome(answer: httpx2.Response) -> str:
    if answer.status_code == 200:
        if not answer.content.endswith(gateway_upstream.DONE):
            return "200, cut off"
        managed = answer.headers["refold-managed"]
        return {"yes": "managed", "no; reason=store-unavailable": "unmanaged"}.get(managed, managed)
    code = answer.json()["error"].get("code")
    waits = "with" if "retry-after" in answer.headers else "without"
    return f"{answer.status_code} {code}, {waits} Retry-After"


_REFUSED: Final = "503 store-unavailable, with Retry-After"


def _figures(scenario: Scenario, load: _Load, gone: float, back: float) -> list[Figure]:
    label = scenario.label
    during = [one for one in load.done if one.began + one.seconds > gone and one.began < back]
    after = [one for one in load.done if one.began >= back]
    kinds = Counter(one.outcome for one in during)
    usual = {"managed", "unmanaged" if scenario.fail_open else _REFUSED}
    odd = sum(1 for one in load.done if one.outcome not in usual)
    longest = max((one.seconds for one in during), default=0.0)
    before = [one.seconds for one in load.done if one.began + one.seconds <= gone]
    usually = sorted(before[len(before) // 2 :])  # without the first of each conversation
    again = [
        min(one.began for one in after if one.outcome == "managed" and one.gateway == at)
        for at in range(2)
    ]
    last = max((one.began for one in after if one.outcome != "managed"), default=back)
    found = [
        Figure(f"requests, {label}", len(load.done)),
        Figure(f"requests under way during the outage, {label}", len(during)),
        *(Figure(f"of these {kind}, {label}", count) for kind, count in sorted(kinds.items())),
        Figure(f"errors of another kind, {label}", odd, 0, "at most"),
        Figure(f"longest request before the outage, s, {label}", usually[-1]),
        Figure(f"longest request in the outage, s, {label}", longest),
        Figure(f"longest request ÷ deadline, {label}", longest / DEADLINE),
        Figure(
            f"what the outage adds to the longest ÷ deadline, {label}",
            (longest - usually[-1]) / DEADLINE,
            _SLOWEST,
            "at most",
        ),
        Figure(f"longest request after it, s, {label}", max(one.seconds for one in after)),
        Figure(f"s from recovery to a managed request at both, {label}", max(again) - back),
        Figure(f"s from recovery to the last that was not, {label}", last - back),
    ]
    if scenario.fail_open:
        odd_in_all = sum(1 for one in load.done if one.outcome not in ("managed", "unmanaged"))
        found.append(Figure(f"requests that failed, {label}", odd_in_all, 0, "at most"))
    return found


class _Logged(NamedTuple):
    """What the log has of the conversations."""

    most_sessions: int
    missing: int
    twice: int
    spare: int

    def figures(self, scenario: Scenario, lost: float) -> list[Figure]:
        """For the table."""
        label = scenario.label
        return [
            Figure(f"sessions of one conversation, {label}", self.most_sessions, 1, "at most"),
            Figure(f"messages that the log lacks, {label}", self.missing, 0, "at most"),
            Figure(f"messages that the log has twice, {label}", self.twice, 0, "at most"),
            Figure(f"sessions beside those of the answers, {label}", self.spare),
            Figure(f"turns counted as lost, {label}", lost, 0, "at most"),
        ]


async def _logged(log: Log, talks: list[Talk]) -> _Logged:
    """Compare what the clients have with what the log has."""
    lines: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {}
    page = None
    while True:
        listed = await log.sessions(limit=100, page=page)
        for info in listed.sessions:
            line = await _line(log, info.session)
            lines.setdefault(line[0][1].partition(",")[0], []).append((info.session, line))
        page = listed.next
        if page is None:
            break
    missing = twice = spare = 0
    for talk in talks:
        own = lines.get(talk.name, [])
        spare += sum(1 for name, _ in own if name not in talk.sessions)
        whole = max((line for _, line in own), key=len, default=[])
        counts = Counter(whole)
        expected = Counter((one["role"], one["content"]) for one in talk.history)
        missing += sum((expected - counts).values())
        twice += sum((counts - expected).values())
    return _Logged(
        max((len(lines.get(one.name, [])) for one in talks), default=0), missing, twice, spare
    )


async def _line(log: Log, session: str) -> list[tuple[str, str]]:
    values = (CODEC.decode(one) for one in await log.read(session))
    said = [json.loads(one.payload) for one in values if isinstance(one, Message)]
    return [(one["role"], one["content"]) for one in said]


async def _lost(client: httpx2.AsyncClient, gateway: str) -> float:
    """What a gateway counts as lost."""
    text = (await client.get(f"{gateway}/metrics")).text
    found = re.findall(r"^refold_serve_unmanaged_lost_total\S* (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


@asynccontextmanager
async def _gateways(
    store: str, upstream: Running, scenario: Scenario, times: Times
) -> AsyncIterator[list[str]]:
    """Processes of `refold serve`, while they run; where each listens."""
    command = [str(Path(sys.executable).with_name("refold")), "serve", "--port", "0", "--json"]
    command += ["--store", store, "--upstream", f"http://127.0.0.1:{upstream.port}/v1"]
    command += ["--fail-open"] if scenario.fail_open else []
    variables = {
        **os.environ,
        "REFOLD_SERVE__METRICS": "true",
        "REFOLD_SERVE__TIMES__UNMANAGED": str(times.sent_again),
    }
    logs = Path(os.environ.get("REFOLD_OUTAGE_LOGS", os.devnull))
    made: list[asyncio.subprocess.Process] = []
    with logs.open("ab") as written:  # noqa: ASYNC230 - before anything is measured
        try:
            for _ in range(2):
                one = await asyncio.create_subprocess_exec(
                    *command, stdout=asyncio.subprocess.PIPE, stderr=written, env=variables
                )
                made.append(one)
            said = [await one.stdout.readline() for one in made if one.stdout is not None]
            yield [str(json.loads(line)["address"]) for line in said]
        finally:
            for one in made:
                one.kill()
                await one.wait()


class _Wire:
    """Passes bytes between gateways and the server, unless it is silent."""

    def __init__(self, to: int) -> None:
        self._to = to
        self.port = 0
        self.open = asyncio.Event()
        self.open.set()
        self._passing: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection of a gateway's."""
        self._writers.add(writer)
        try:
            await self.open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        self._writers.add(back)
        for one in (self._pass(reader, back), self._pass(there, writer)):
            task = asyncio.create_task(one)
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def close(self) -> None:
        """Break off what is left."""
        for task in self._passing:
            task.cancel()
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def _wire_to(port: int) -> AsyncIterator[_Wire]:
    wire = _Wire(port)
    server = await asyncio.start_server(wire.taken, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        wire.close()
        server.close()


@asynccontextmanager
async def _away(way: Way, cluster: Cluster, wire: _Wire) -> AsyncIterator[None]:
    """While the store is away."""
    if way == "silent":
        wire.open.clear()
        yield
        wire.open.set()
    elif way == "shut down":
        await asyncio.to_thread(cluster.stop, "fast")
        yield
        await asyncio.to_thread(cluster.start)
    else:
        postmaster = int((cluster.data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # first: then it starts no more
        for pid in _family(postmaster):
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in _family(postmaster):
                os.kill(pid, signal.SIGCONT)


def _family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]
