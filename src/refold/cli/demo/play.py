"""Plays the demo through the real thing: an agent, the capability, its folds and its recall."""

import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from pydantic_ai import Agent, AgentRunResultEvent, FunctionToolResultEvent
from pydantic_ai.messages import AgentStreamEvent, ToolReturnPart

from refold.cli.demo.model import (
    DETAIL,
    INSTRUCTIONS,
    PRICED_AS,
    PROMPTS,
    WINDOW,
    demo_model,
    demo_models,
    demo_profile,
    demo_tools,
)
from refold.cli.demo.script import script
from refold.fold.extractive import BY as THE_LOG
from refold.integrations.pydantic_ai import Refold, SessionEvent
from refold.log import CODEC, Entry, FoldCompleted, FoldStarted, Message, Store, Used
from refold.recall.text import tell, wire_of

# What came of playing the demo: figures that were measured while it played.


@dataclass(frozen=True, slots=True)
class Folded:
    """One fold that made itself while the conversation went on."""

    turn: int
    """The turn during which it was made, from 1."""
    messages: int
    """How many messages it stands for."""
    tokens_before: int
    """What the conversation took up."""
    tokens_after: int
    written_by: str
    """Who wrote the summary: a model, or the log itself."""
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Detail:
    """Something that was folded away, asked for, and found again."""

    asked: str
    answer: str
    found: str
    """The detail, letter for letter; empty where it was not found."""
    entry: int
    """The entry of the log that it stands in."""
    said_in_turn: int
    asked_in_turn: int
    shown_when_asked: bool
    """Whether the model could still see it when it was asked."""
    read_with: tuple[str, ...]
    """The tools by which the model found it."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What all requests together came to."""

    tokens_sent: int
    largest_request: int
    dollars: float | None
    """None where no price is known."""


@dataclass(frozen=True, slots=True)
class Played:
    session: str
    window: int
    turns: int
    requests: int
    folds: tuple[Folded, ...]
    with_refold: Spent
    without: Spent
    """The same requests, if each had sent everything."""
    refused_from_turn: int | None
    """Without Refold: the turn from which on requests are larger than the window."""
    priced_as: str
    """The model whose published prices are used."""
    detail: Detail
    said: int
    """Prompts, answers and results that the conversation had."""
    kept: int
    """How many of them the log holds, word for word."""
    seconds: float

    @property
    def good(self) -> bool:
        """Whether it showed what it is to show: folds, and nothing lost."""
        return bool(self.folds and self.detail.found) and self.kept == self.said

    def as_json(self) -> dict[str, Any]:
        """All of it, as `refold demo --json` prints it."""
        return asdict(self)

    def as_text(self) -> str:
        """All of it in a few lines, for people."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        with_, without = self.with_refold, self.without
        yield f"{self.turns} turns, {self.requests} requests, in a window of {self.window:,} tokens"
        if self.refused_from_turn is not None:
            turn = self.refused_from_turn
            yield f"  without Refold   too long for the model from turn {turn} on"
        for fold in self.folds:
            yield (
                f"  turn {fold.turn:<11} {fold.messages} messages folded, "
                f"{fold.tokens_before:,} → {fold.tokens_after:,} tokens, {_writer_played(fold)}"
            )
        largest = f"{with_.largest_request:,} tokens, not {without.largest_request:,}"
        yield f"  largest request  {largest}"
        yield f"  sent in all      {with_.tokens_sent:,} tokens, not {without.tokens_sent:,}"
        yield f"  cost             {self._cost()}"
        yield from self._found()
        kept = f"{self.kept} of {self.said} prompts, answers and results, each word"
        yield f"  kept             {kept}"

    def _cost(self) -> str:
        paid, instead = self.with_refold.dollars, self.without.dollars
        if paid is None or instead is None:
            return f"unknown: no prices of {self.priced_as} are at hand"
        return f"${paid:.3f}; for everything ${instead:.3f} ({self.priced_as}, cache counted)"

    def _found(self) -> Iterator[str]:
        one = self.detail
        yield f"  found again      {one.found or 'nothing'}"
        if one.found:
            seen = "still in view" if one.shown_when_asked else "out of view by then"
            yield f"                   read in turn {one.said_in_turn}, {seen}: entry {one.entry}"


def _writer_played(fold: Folded) -> str:
    return "no model asked" if not fold.written_by else f"written by {fold.written_by}"


SESSION = "demo"
"""The session that is played, unless another is named."""


@dataclass(frozen=True, slots=True)
class Asked:
    turn: int
    """From 1."""
    prompt: str


Hear = Callable[[Asked | AgentStreamEvent | AgentRunResultEvent[str]], None]
"""Is told what happens, as it happens: the prompts, and Pydantic AI's events, Refold's included."""


@dataclass(slots=True)
class _Heard:
    hear: Hear
    said: list[str] = field(default_factory=list[str])
    answers: list[str] = field(default_factory=list[str])
    tools: list[list[str]] = field(default_factory=list[list[str]])
    folds: dict[str, tuple[int, dict[str, Any]]] = field(
        default_factory=dict[str, tuple[int, dict[str, Any]]]
    )
    shown_when_asked: bytes = b""

    def begins(self, prompt: str) -> None:
        self.said.append(prompt)
        self.tools.append([])
        self.hear(Asked(len(self.tools), prompt))

    def happens(self, event: AgentStreamEvent | AgentRunResultEvent[str]) -> None:
        match event:
            case SessionEvent(name="session.compaction_complete", details=details):
                self.folds[str(details["requestId"])] = len(self.tools), details
            case FunctionToolResultEvent(part=ToolReturnPart() as part):
                self.tools[-1].append(part.tool_name)
                self.said.append(part.model_response_str())
            case AgentRunResultEvent():
                self.answers.append(event.result.output)
                self.said.append(event.result.output)
            case _:
                pass
        self.hear(event)


async def play(
    store: Store | str = "memory:",
    *,
    pace: float = 0.0,
    hear: Hear | None = None,
    session: str = SESSION,
    memory: Refold | None = None,
) -> Played:
    """Play the whole conversation, and measure what came of it.

    Args:
        store: Where it is kept.
        pace: Seconds for each word of an answer; 0 is as fast as it goes.
        hear: Is told what happens.
        session: The name of the session, which must be new.
        memory: The memory to play with, in its own store; else one is made.
    """
    began = time.monotonic()
    model = demo_model(pace)
    async with _with(memory, store) as own:
        agent: Agent[None, str] = Agent(
            model, instructions=INSTRUCTIONS, toolsets=[demo_tools()], capabilities=[own]
        )
        heard = _Heard(hear or _deaf)
        for at, prompt in enumerate(PROMPTS):
            if at == DETAIL:
                shown = await (await own.session(session, model)).shown()
                heard.shown_when_asked = b"\n".join(shown)
            heard.begins(prompt)
            async with agent.run_stream_events(prompt, conversation_id=session) as events:
                async for event in events:
                    heard.happens(event)
        entries = await own.log.read(session)
    return _played(session, entries, heard, time.monotonic() - began)


@asynccontextmanager
async def _with(memory: Refold | None, store: Store | str) -> AsyncGenerator[Refold]:
    """The memory that was given stays open; one that is made is closed."""
    if memory is not None:
        yield memory
        return
    async with Refold(store, profile=demo_profile(), models=demo_models()) as made:
        yield made


def _deaf(_: object) -> None:
    """Nobody listens."""


def _played(session: str, entries: list[Entry], heard: _Heard, seconds: float) -> Played:
    used = [one for one in map(CODEC.decode, entries) if isinstance(one, Used)]
    texts = {entry.seq: _text(entry) for entry in entries if entry.kind == Message.KIND}
    everything = "\0".join(texts.values())
    return Played(
        session=session,
        window=WINDOW,
        turns=len(heard.answers),
        requests=len(used),
        folds=tuple(_folds(entries, heard)),
        with_refold=_spent((one.usage, one.cost) for one in used),
        without=_spent((one.unmanaged, _cost(one.unmanaged)) for one in used),
        refused_from_turn=_refused_from(entries),
        priced_as=PRICED_AS,
        detail=_detail(texts, heard),
        said=len(heard.said),
        kept=sum(one in everything for one in heard.said),
        seconds=round(seconds, 3),
    )


def _text(entry: Entry) -> str:
    return tell(wire_of("pydantic-ai"), entry).text


def _folds(entries: Iterable[Entry], heard: _Heard) -> Iterable[Folded]:
    began: dict[str, int] = {}
    for entry in entries:
        match CODEC.decode(entry):
            case FoldStarted(fold=fold):
                began[str(fold)] = entry.at
            case FoldCompleted(fold=fold) if str(fold) in heard.folds:
                turn, details = heard.folds[str(fold)]
                yield Folded(
                    turn=turn,
                    messages=details["messagesRemoved"],
                    tokens_before=details["preCompactionTokens"],
                    tokens_after=details["postCompactionTokens"],
                    written_by=_writer(entry),
                    milliseconds=entry.at - began.get(str(fold), entry.at),
                )
            case _:
                continue


def _writer(entry: Entry) -> str:
    """The model that wrote the summary; none where the log did."""
    summary = cast("FoldCompleted", CODEC.decode(entry)).summary
    by = summary.get("by") if isinstance(summary, dict) else None
    return "" if by == THE_LOG else str(by)


def _spent(all_of_it: Iterable[tuple[Any, float | None]]) -> Spent:
    each = list(all_of_it)
    sizes = [int(usage["input"]) for usage, _ in each]
    costs = [cost for _, cost in each if cost is not None]
    dollars = round(sum(costs), 6) if len(costs) == len(each) else None
    return Spent(sum(sizes), max(sizes), dollars)


def _cost(unmanaged: Any) -> float | None:  # noqa: ANN401 - JSON of the log
    return unmanaged.get("cost")


def _refused_from(entries: Iterable[Entry]) -> int | None:
    """The first turn in which all that was said does not fit into the window."""
    turn = 0
    for entry in entries:
        match CODEC.decode(entry):
            case Message() if _text(entry) in PROMPTS:
                turn += 1
            case Used(unmanaged={"input": int(sent), "output": int(answered)}) if (
                sent + answered > WINDOW
            ):
                return turn
            case _:
                continue
    return None


def _detail(texts: dict[int, str], heard: _Heard) -> Detail:
    pattern = next(step.find for step in script().turns[DETAIL].steps if step.find)
    places = ((seq, re.search(pattern, text)) for seq, text in texts.items())
    entry, match = next(((seq, found) for seq, found in places if found), (0, None))
    answer = heard.answers[DETAIL]
    found = match[1] if match and match[1] in answer else ""
    prompts = [seq for seq, text in texts.items() if text in PROMPTS]
    return Detail(
        asked=PROMPTS[DETAIL],
        answer=answer,
        found=found,
        entry=entry,
        said_in_turn=sum(seq <= entry for seq in prompts),
        asked_in_turn=DETAIL + 1,
        shown_when_asked=bool(match) and match[1].encode() in heard.shown_when_asked,
        read_with=tuple(heard.tools[DETAIL]),
    )
