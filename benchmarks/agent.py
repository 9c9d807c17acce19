"""An agent with Refold, beside the same agent without it: what a request takes, short and long.

The agent without Refold is given the whole history, as its users do. A turn is two requests: a call
and its return, then the answer. Turns of all agents are timed one after the other, so that what
else the machine does meets them alike. A long conversation was folded every 1,000 messages while it
grew; since its last fold 100 messages were said, so that its view is about as large as that of a
conversation of 100 messages, unless a name says otherwise.

`work` is the processor's time, which a busy machine changes least; `clock` is what passes, with the
waiting for the disk.
"""

import asyncio
import gc
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from benchmarks.agent_beside import beside
from benchmarks.figures import Figure
from benchmarks.sessions import INSTRUCTIONS, session
from refold.integrations.pydantic_ai import Refold
from refold.log import Author, Opened

NAME = "long"
WINDOW = 200_000
SHORT, LONG, LONGEST = 100, 10_000, 100_000
FOLDED_EVERY = 1_000
SINCE_FOLD, MOST_SINCE_FOLD = 100, 600
"""Messages since the last fold: the usual ones, and nearly as many as make the next fold due."""
WARMING, TIMED, RESUMES = 3, 12, 5
REQUESTS = 2
"""In a turn."""
AT_SHORT, AT_LONG, GROWTH, RESUMED = 1.5, 0.2, 1.5, 2.0
"""The bars: ours ÷ bare at 100 messages, and at 10,000; ours at 100,000 ÷ at 10,000; first requests
after opening at 100,000 ÷ at 100. What is in a file is held to them by the clock too, with its
waiting for the disk, though bare keeps nothing."""


def figures(*, quick: bool) -> list[Figure]:
    found = asyncio.run(_timed(quick=quick))
    return found if quick else [*found, *beside()]


async def _timed(*, quick: bool) -> list[Figure]:
    longest = LONG if quick else LONGEST
    with tempfile.TemporaryDirectory(prefix="refold-agent-") as folder:
        made = Conversations(Path(folder))
        found = [*await _beside_bare(made)]
        found += await _growth(made, longest, None if quick else LONG)
        found += await _resumed(made, longest)
        await made.close()
    return found


async def _beside_bare(made: "Conversations") -> Sequence[Figure]:
    """With Refold ÷ without, at the same length."""
    found: list[Figure] = []
    for size, limit in ((SHORT, AT_SHORT), (LONG, AT_LONG)):
        cases = {
            "bare": _bare(size),
            "in memory": _talking(await _filled("memory:", size)),
            "in a file": _talking(await made.stored(size)),
        }
        if size > SHORT:
            full = await _filled("memory:", size, since=MOST_SINCE_FOLD)
            cases["just before a fold"] = _talking(full)
        took = await _turns(cases)
        what = f"{size:,} messages"
        found.append(Figure(f"{what}, bare: work of a request, ms", took["bare"].work))
        for name in list(cases)[1:]:
            ours = took[name]
            work, clock = ours.beside(took["bare"])
            by_clock = limit if name == "in a file" else None
            found.append(Figure(f"{what}, {name}: work of a request, ms", ours.work))
            found.append(Figure(f"{what}, {name}: work ÷ bare", work, limit, "at most"))
            found.append(Figure(f"{what}, {name}: clock ÷ bare", clock, by_clock, "at most"))
    return found


async def _growth(made: "Conversations", longest: int, before: int | None) -> Sequence[Figure]:
    """With Refold at the longest ÷ with Refold at shorter lengths."""
    shorter = [size for size in (SHORT, before) if size]
    sizes = [*shorter, longest]
    took = await _turns({str(size): _talking(await made.stored(size)) for size in sizes})
    last = took[str(longest)]
    found: list[Figure] = []
    for size in shorter:
        work, clock = last.beside(took[str(size)])
        what = f"{longest:,} messages ÷ {size:,}"
        # A view with a fold is larger than one of 100 messages without: no bar between those.
        bar = None if size == SHORT and before else GROWTH
        found.append(Figure(f"{what}: work of a request", work, bar, "at most"))
        found.append(Figure(f"{what}: clock of a request", clock))
    return found


async def _resumed(made: "Conversations", longest: int) -> Sequence[Figure]:
    """The first request after opening the file, in a long conversation ÷ in a short one."""
    took = {SHORT: Times(), longest: Times()}
    files = {size: await made.file(size) for size in took}
    for _ in range(RESUMES):
        for size, times in took.items():
            times.append(await _measured(_Resume(files[size])))
    work, clock = took[longest].beside(took[SHORT])
    what = f"resumed, {longest:,} messages ÷ {SHORT}: "
    return [
        Figure(f"{what}work of the first turn", work, RESUMED, "at most"),
        Figure(f"{what}clock of the first turn", clock),
        Figure(f"resumed, {longest:,} messages: work, ms", took[longest].work * REQUESTS),
    ]


class Took(NamedTuple):
    """How long something took, in seconds."""

    work: float
    clock: float


class Times(list[Took]):
    """What the turns of one agent took."""

    @property
    def work(self) -> float:
        """The median work of a request, in milliseconds."""
        return median(one.work for one in self) / REQUESTS * 1e3

    def beside(self, other: "Times") -> Took:
        """The median of the ratios, turn by turn."""
        pairs = list(zip(self, other, strict=True))
        work = median(one.work / them.work for one, them in pairs)
        return Took(work, median(one.clock / them.clock for one, them in pairs))


Turn = Callable[[], Coroutine[Any, Any, object]]


async def _turns(cases: dict[str, Turn]) -> dict[str, Times]:
    took = {name: Times() for name in cases}
    for nth in range(WARMING + TIMED):
        for name, turn in cases.items():
            one = await _measured(turn)
            if nth >= WARMING:
                took[name].append(one)
    return took


async def _measured(turn: Turn) -> Took:
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        worked, began = process_time(), perf_counter()
        await turn()
        return Took(process_time() - worked, perf_counter() - began)
    finally:
        gc.enable()


def _bare(size: int) -> Turn:
    agent = _agent()
    history = [_message(payload) for payload in session(size)]

    async def turn() -> None:
        nonlocal history
        history = (await agent.run("What now?", message_history=history)).all_messages()

    return turn


def _talking(refold: Refold) -> Turn:
    agent = _agent(refold)

    async def turn() -> None:
        await agent.run("What now?", conversation_id=NAME)

    return turn


class _Resume:
    """Opens a file that nobody has open, goes on with its conversation, and closes it."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __call__(self) -> None:
        async with Refold(self._address) as refold:
            await _talking(refold)()


class Conversations:
    """Conversations of some length. Each use has a copy of its own: turns make them longer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = count()
        self._open: list[Refold] = []

    async def file(self, size: int) -> str:
        """The address of a file that nobody else uses."""
        made = self._folder / f"{size}.db"
        if not made.exists():
            await (await _filled(f"sqlite:///{made}", size)).close()
        assert not made.with_name(f"{made.name}-wal").exists()
        copied = self._folder / f"{size}-{next(self._copies)}.db"
        shutil.copyfile(made, copied)
        return f"sqlite:///{copied}"

    async def stored(self, size: int) -> Refold:
        """In a file."""
        self._open.append(Refold(await self.file(size)))
        return self._open[-1]

    async def close(self) -> None:
        for refold in self._open:
            await refold.close()


async def _filled(address: str, size: int, since: int = SINCE_FOLD) -> Refold:
    """A conversation said in batches, and folded as it grew."""
    refold = await Refold(address).__aenter__()  # closed by who uses it
    opened = Author().draft(Opened("pydantic-ai", "balanced"))
    await refold.log.append(NAME, [opened], expected=0)
    talk = await refold.session(NAME, _model())
    for batch, folds in _batches(session(size), since):
        await talk.say(*batch)
        if folds:
            await talk.compact()
    assert talk.shows_less == (size > FOLDED_EVERY)
    return refold


def _batches(payloads: list[bytes], since: int) -> Iterator[tuple[list[bytes], bool]]:
    """What is said at once, and whether a fold follows."""
    folded = len(payloads) - since if len(payloads) > FOLDED_EVERY else 0
    for first in range(0, folded, FOLDED_EVERY):
        yield payloads[first : min(first + FOLDED_EVERY, folded)], True
    yield payloads[folded:], False


def _agent(*capabilities: Any) -> Agent:  # noqa: ANN401 - any capability
    agent = Agent(_model(), instructions=INSTRUCTIONS, capabilities=capabilities)
    agent.tool_plain(look)
    return agent


def look(path: str) -> str:
    """Look at a file."""
    return f"{path} has three lines, none of them new."


def _model() -> FunctionModel:
    """A model that calls and then answers; it reports the same usage always, near the truth."""
    calls = count()
    given = 0

    def play(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        nonlocal given
        given = given or len(ModelMessagesTypeAdapter.dump_json(messages)) // 8
        usage = RequestUsage(input_tokens=given, output_tokens=20)
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse([TextPart("It is as it should be.")], usage=usage)
        call = ToolCallPart("look", {"path": "src/order.py"}, f"now_{next(calls)}_{id(calls)}")
        return ModelResponse([call], usage=usage)

    return FunctionModel(play, model_name="played", profile={"context_window": WINDOW})


def _message(payload: bytes) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(b"[%b]" % payload)[0]
