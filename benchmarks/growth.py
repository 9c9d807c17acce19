"""How long a fold takes as what it stands for grows."""

import asyncio
import json
import time
from uuid import uuid4

from benchmarks.figures import Figure
from refold.engine import LocalSteps
from refold.fold.compactor import Compactor, context
from refold.fold.job import Job
from refold.log import Author, Log, Message, Opened, Span
from refold.models import counter_for
from refold.stores import MemoryStore
from refold.view import PROFILES

AT_ONCE = 1_000


def growth(*, quick: bool) -> list[Figure]:
    few, many = (2_000, 20_000) if quick else (10_000, 100_000)
    return asyncio.run(_growth(few, many))


async def _growth(few: int, many: int) -> list[Figure]:
    log = MemoryStore().log()
    await _fill(log, many)
    folder = Compactor(log, counter_for("openai:gpt-4o"))
    ratios = []
    for _ in range(3):
        short = await _seconds(folder, few)
        ratios.append(await _seconds(folder, many) / short)
    name = f"fold of {many:,} messages / of {few:,}"
    return [Figure(name, sorted(ratios)[1], 10, "at most")]


async def _seconds(folder: Compactor, messages: int) -> float:
    given = context(PROFILES["balanced"].fold, {})
    job = Job("s", uuid4(), (Span(2, messages + 1),), "manual", context=given)
    started = time.perf_counter()
    await folder(job, LocalSteps())
    return time.perf_counter() - started


async def _fill(log: Log, messages: int) -> None:
    author = Author()
    await log.append("s", [author.draft(Opened("openai-chat", "balanced"))], expected=0)
    for first in range(0, messages, AT_ONCE):
        batch = [author.draft(Message(_message(first + nth))) for nth in range(AT_ONCE)]
        await log.append("s", batch, expected=None)


def _message(number: int) -> bytes:
    call = f"call_{number // 4}"
    match number % 4:
        case 0:
            message = {"role": "user", "content": f"Look at src/module_{number}.py, please."}
        case 1:
            asked = {"path": f"src/module_{number}.py", "text": f"value_{number} = {number}\n" * 5}
            function = {"name": "edit", "arguments": json.dumps(asked)}
            calls = [{"id": call, "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        case 2:
            text = f"value_{number} = {number}\n" * 40
            message = {"role": "tool", "tool_call_id": call, "content": text}
        case _:
            message = {"role": "assistant", "content": f"Done with module_{number}."}
    return json.dumps(message).encode()
