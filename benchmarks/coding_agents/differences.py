"""What an agent sends with and without `refold wrap`: headers, betas, fields, tools, cache marks.

The agent does the same small task three times: twice straight to the provider, once wrapped. What
differs between the first two is no difference: dates, ids, random numbers.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.coding_agents.clients import Client
from benchmarks.coding_agents.model import TASK, CodingModel, is_main, write_project
from benchmarks.coding_agents.run import served
from benchmarks.coding_agents.wrapped import WRAP, as_usual, run_agent, without_websockets
from refold.testing.upstream import Got, Reply, RequestChecker, ScriptedUpstream

_CALLS: Final = 3
_VOLATILE: Final = re.compile(r"ses_\w+|[0-9a-f]+(?:-[0-9a-f]+)+|[0-9a-f]{6,}|[0-9]+")
"""Ids and numbers."""
_SHOWN: Final = 100
"""Columns of a line that is only in one of two requests."""
_EXPECTED: Final = frozenset({"host", "content-length"})


async def differences(client: Client, programs: Path, folder: Path) -> list[str]:
    """The differences, a line each; the line says where there are none."""
    client = as_usual(client)
    alone, again, wrapped = [
        await _requests(client, programs, folder, prefix) for prefix in ((), (), WRAP)
    ]
    lines = [f"requests of the conversation: {len(alone)} without, {len(wrapped)} with"]
    found: Counter[str] = Counter()
    for first, second, third in zip(alone, again, wrapped, strict=False):
        noise = {*_compared(first, second)}
        found.update(line for line in _compared(first, third) if line not in noise)
    pairs = min(len(alone), len(wrapped))
    return [*lines, *(f"{line} ({count} of {pairs})" for line, count in found.items())]


async def _requests(
    client: Client, programs: Path, folder: Path, prefix: tuple[str, ...]
) -> list[Got]:
    """The requests of its conversation, as the provider got them."""
    shutil.rmtree(folder, ignore_errors=True)
    home, project = folder / "home", folder / "project"
    home.mkdir(parents=True)
    write_project(project)
    model = CodingModel(str(project), (_CALLS,))
    sent: list[Got] = []

    def reply(got: Got) -> Reply:
        if not got.body or got.path.endswith("count_tokens"):
            return Reply("", number=0)
        if is_main(got.body):
            sent.append(got)
        return model(got)

    upstream = ScriptedUpstream(reply, checker=RequestChecker())
    async with served(without_websockets(upstream)) as provider:
        given = client.configure(home, provider, client.model)
        command = [*prefix, client.command, *client.arguments(f"{TASK}.", 0)]
        program = shutil.which(client.command, path=str(programs))
        if not prefix and program:
            command[0] = program
        await run_agent(command, programs, folder, given)
    return sent


def _compared(one: Got, other: Got) -> Iterator[str]:
    for name in sorted({*one.headers, *other.headers} - _EXPECTED):
        before, after = one.headers.get(name), other.headers.get(name)
        if before != after:
            yield f"header {name}: {_presence(before, after)}"
    betas = [{*got.headers.get("anthropic-beta", "").split(",")} for got in (one, other)]
    yield from (f"beta {beta}: not with wrap" for beta in sorted(betas[0] - betas[1]))
    yield from (f"beta {beta}: with wrap only" for beta in sorted(betas[1] - betas[0]))
    if one.path != other.path:
        yield f"path {one.path} becomes {other.path}"
    for name in sorted({*one.body, *other.body}):
        before, after = one.body.get(name), other.body.get(name)
        if name == "tools":
            tools = [{_name(tool): tool for tool in value or ()} for value in (before, after)]
            for tool in sorted(tools[0].keys() | tools[1].keys()):
                before, after = (each.get(tool) for each in tools)
                if before != after:
                    yield f"tool {tool}: {_presence(before, after)}"
        elif before != after:
            yield f"field {name}: {_presence(before, after)}"
            lines = [{*_lines(value)} for value in (before, after)]
            yield from (f"  {name}, not with wrap: {line}" for line in sorted(lines[0] - lines[1]))
            yield from (f"  {name}, with wrap only: {line}" for line in sorted(lines[1] - lines[0]))
    marks = [got.raw.count(b'"cache_control"') for got in (one, other)]
    if marks[0] != marks[1]:
        yield f"cache marks: {marks[0]} without, {marks[1]} with"


def _lines(value: object) -> Iterator[str]:
    """The beginnings of all lines of text in a value."""
    match value:
        case str():
            lines = (_VOLATILE.sub("#", line) for line in value.splitlines())
            yield from (line[:_SHOWN] for line in lines if line.strip("# "))
        case dict():
            for inner in value.values():
                yield from _lines(inner)
        case list():
            for inner in value:
                yield from _lines(inner)
        case _:
            pass


def _presence(before: object, after: object) -> str:
    if before is None:
        return "with wrap only"
    return "not with wrap" if after is None else "another value"


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
