"""What a request takes through the gateway of `refold wrap`, beside one straight to the provider.

The agent works once without Refold, and what it sends is recorded. Each of these requests is then
made twice, one right after the other: straight to a provider that answers at once, and through a
gateway that was started as `refold wrap` starts it. Which of the two is first changes with each
request. All of it is done some times, each time with a new gateway and an empty store.
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any, Final

import httpx2

from benchmarks.coding_agents.clients import Client
from benchmarks.coding_agents.model import TASK, CodingModel, write_project
from benchmarks.coding_agents.run import served
from benchmarks.coding_agents.wrapped import TURNS, as_usual, run_agent, without_websockets
from refold.cli.wrap.agent import anthropic, openai
from refold.cli.wrap.processes import GatewayKeeper
from refold.testing.upstream import Got, Rendered, Reply, ScriptedUpstream

PASSES: Final = 4
_HOPS: Final = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_PATIENCE: Final = httpx2.Timeout(300.0)


@dataclass(frozen=True)
class Recorded:
    """A request that the agent made, and the events that answered it."""

    got: Got
    answer: tuple[bytes, ...]


@dataclass
class Overhead:
    """Seconds that requests took, in pairs."""

    client: str
    requests: int
    direct: list[float] = field(default_factory=list)
    through: list[float] = field(default_factory=list)
    folds: int = 0
    failed: int = 0


async def measure_overhead(client: Client, programs: Path, folder: Path) -> Overhead:
    """Record an agent's requests, and time each of them on both ways."""
    client = as_usual(client)
    recorded = await _record(client, programs, folder)
    result = Overhead(client.name, len(recorded))
    for number in range(PASSES):
        await _replay(client, recorded, folder / f"pass-{number}", result)
    return result


async def _record(client: Client, programs: Path, folder: Path) -> list[Recorded]:
    shutil.rmtree(folder, ignore_errors=True)
    home, project = folder / "home", folder / "project"
    home.mkdir(parents=True)
    write_project(project)
    model = CodingModel(str(project), TURNS)
    recorded: list[Recorded] = []

    def reply(got: Got) -> Reply:
        if not got.body or got.path.endswith("count_tokens"):
            return Reply("", number=0)
        answer = replace(model(got), number=len(recorded) + 1)
        made = Rendered(got, answer, len(recorded) + 1)
        if got.body.get("stream"):
            recorded.append(Recorded(got, tuple(made.events())))
        return answer

    async with served(without_websockets(ScriptedUpstream(reply, keep=False))) as provider:
        given = client.configure(home, provider, client.model)
        program = str(programs / client.command)
        for turn in range(len(TURNS)):
            prompt = f"{TASK}, part {turn + 1} of {len(TURNS)}. Go note by note."
            command = [program, *client.arguments(prompt, turn)]
            await run_agent(command, programs, folder, given)
    return recorded


async def _replay(client: Client, recorded: list[Recorded], folder: Path, result: Overhead) -> None:
    settings = folder / "refold"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(
        f'[models."{client.model}"]\nwindow = {client.window}\n', encoding="utf-8"
    )
    answer: list[tuple[bytes, ...]] = [()]

    async def provider(_scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event in answer[0]:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with served(provider) as direct, httpx2.AsyncClient(timeout=_PATIENCE) as http:
        upstream = anthropic(direct) if client.api == "messages" else openai(f"{direct}/v1")
        keeper = _start(f"sqlite:///{folder / 'refold.db'}", folder, client.command)
        await asyncio.to_thread(keeper.start, [upstream.model_dump(mode="json")], {})
        try:
            # An agent lists recall's tools before its first request, and waits for them.
            await http.post(f"{keeper.address}/mcp", json={})
            for nth, each in enumerate(recorded):
                answer[0] = each.answer
                ways = [(direct, result.direct), (keeper.address, result.through)]
                for address, times in ways if nth % 2 else reversed(ways):
                    took, status = await _timed(http, address, each.got)
                    times.append(took)
                    result.failed += status != 200
        finally:
            await asyncio.to_thread(keeper.end)
            os.close(keeper.agents_end)
            keeper.close()
        result.folds += int(keeper.traffic.summary.get("folds", 0))


def _start(store: str, folder: Path, program: str) -> GatewayKeeper:
    """A gateway that has the settings of a folder; it inherits them."""
    os.environ |= {"XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    return GatewayKeeper(store, None, folder, program)


async def _timed(http: httpx2.AsyncClient, address: str, got: Got) -> tuple[float, int]:
    """Seconds to the end of the answer, and its status."""
    headers = {name: value for name, value in got.headers.items() if name not in _HOPS}
    began = perf_counter()
    async with http.stream(
        "POST", f"{address}{got.path}", headers=headers, content=got.raw
    ) as answer:
        async for _ in answer.aiter_raw():
            pass
    return perf_counter() - began, answer.status_code


def report_overhead(result: Overhead) -> bool:
    """Print what it takes; whether all requests were answered."""
    more = [after - before for before, after in zip(result.direct, result.through, strict=True)]
    rows: Mapping[str, list[float]] = {
        "direct": result.direct,
        "through refold wrap": result.through,
        "more, request by request": more,
    }
    print(f"\n{result.client}: {result.requests} requests, {PASSES} times, {result.folds} folds")
    middle: dict[str, tuple[float, float]] = {}
    for name, times in rows.items():
        parts = quantiles(times, n=100, method="inclusive")
        middle[name] = parts[49], parts[98]
        print(f"  {name:26} p50 {parts[49] * 1000:8.1f} ms   p99 {parts[98] * 1000:8.1f} ms")
    before, after = middle["direct"], middle["through refold wrap"]
    print(f"  {'ratio':26} p50 {after[0] / before[0]:8.1f}      p99 {after[1] / before[1]:8.1f}")
    if result.failed:
        print(f"  FAILED: {result.failed} requests")
    return not result.failed
