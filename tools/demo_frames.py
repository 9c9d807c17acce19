"""What the demo's log and its model's view held at each request: the figures of its picture."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from refold.cli.demo.play import SESSION, Played, play
from refold.cli.demo.script import PROMPTS
from refold.log import CODEC, Entry, Log, Message, Requested, Used
from refold.recall.text import entry_text, wire_of
from refold.session.explain import explain_past
from refold.stores import MemoryStore
from refold.view.explain import Explanation


@dataclass(frozen=True, slots=True)
class Cell:
    """One message, or a summary, and how large it is."""

    name: str
    kind: str
    """`prompt`, `answer`, `result`, `fold`, or `fixed`: instructions and tools."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One request: what the log holds, and what is sent."""

    turn: int
    log: tuple[Cell, ...]
    view: tuple[Cell, ...]
    sent: int
    unmanaged: int
    """What sending everything would have been."""

    @property
    def fold(self) -> Cell | None:
        """The summary that is shown, if there is one."""
        return next((cell for cell in self.view if cell.kind == "fold"), None)


def frames() -> tuple[Played, list[Frame]]:
    """Play the demo, and look at each of its requests."""
    return asyncio.run(_frames())


async def _frames() -> tuple[Played, list[Frame]]:
    async with MemoryStore() as store:
        played = await play(store)
        log = store.log()
        entries = await log.read(SESSION)
        kinds = {one.seq: _kind(one) for one in entries if one.kind == Message.KIND}
        return played, await _each(log, entries, kinds)


async def _each(log: Log, entries: Sequence[Entry], kinds: dict[int, str]) -> list[Frame]:
    found: list[Frame] = []
    sizes: dict[int, int] = {}
    turn = 0
    used = iter([one for one in map(CODEC.decode, entries) if isinstance(one, Used)])
    for entry in entries:
        turn += kinds.get(entry.seq) == "prompt"
        if entry.kind != Requested.KIND:
            continue
        told = await explain_past(log, SESSION, entry.seq)
        for line in told.lines:
            sizes.setdefault(line.seq, line.before)
        said = tuple(Cell(f"m{seq}", kinds[seq], sizes[seq]) for seq in sorted(sizes))
        spent = next(used)
        sent, unmanaged = _input(spent.usage), _input(spent.unmanaged)
        found.append(Frame(turn, said, _view(told, kinds), sent, unmanaged))
    return found


def _view(told: Explanation, kinds: dict[int, str]) -> tuple[Cell, ...]:
    fixed = Cell("fixed", "fixed", told.account.system + told.account.tools)
    cells = [
        (line.seq, Cell(f"m{line.seq}", kinds[line.seq], line.after))
        for line in told.lines
        if line.after
    ]
    cells += [
        (one.before, Cell(f"f{one.sources[0].seq}", "fold", one.tokens)) for one in told.inserts
    ]
    return fixed, *(cell for _, cell in sorted(cells, key=lambda one: one[0]))


def _kind(entry: Entry) -> str:
    told = entry_text(wire_of("pydantic-ai"), entry)
    if told.text in PROMPTS:
        return "prompt"
    return "answer" if told.role == "assistant" else "result"


def _input(usage: object) -> int:
    return int(usage["input"])  # pyright: ignore[reportIndexIssue] - JSON of the log
