"""Plays the demo with a real agent, its compactions and its recall, and measures the result."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent, FunctionToolResultEvent
from pydantic_ai.messages import AgentStreamEvent, ToolReturnPart

from refold.cli.demo.model import PRICED_AS, demo_model, demo_models, demo_profile, demo_tools
from refold.cli.demo.script import DETAIL, INSTRUCTIONS, PROMPTS, WINDOW, script
from refold.fold.extractive import BY as THE_LOG
from refold.integrations.pydantic_ai import Refold, SessionEvent
from refold.log import CODEC, Entry, FoldCompleted, FoldStarted, Message, Store, Used
from refold.models.accounts import receipt_of
from refold.models.receipt import Receipt
from refold.recall.text import entry_text, wire_of

SESSION = "demo"
"""The session that is played, unless another is named."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold that was made during the conversation."""

    turn: int
    """The turn during which it was made, from 1."""
    messages: int
    """How many messages it replaces."""
    tokens_before: int
    tokens_after: int
    written_by: str
    """The model that wrote the summary; empty for an extractive one."""
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Detail:
    """A folded detail that the user asks for."""

    asked: str
    answer: str
    found: str
    """The detail, letter for letter; empty where it was not found."""
    entry: int
    """The entry of the log that holds it."""
    said_in_turn: int
    asked_in_turn: int
    shown_when_asked: bool
    """Whether the model could still see it when it was asked."""
    read_with: tuple[str, ...]
    """The tools by which the model found it."""


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """The figures of all requests together."""

    tokens_sent: int
    largest_request: int
    dollars: float | None
    """As on the session's receipt; None where no price is known."""


@dataclass(frozen=True, slots=True)
class Played:
    session: str
    window: int
    turns: int
    requests: int
    folds: tuple[Folded, ...]
    with_refold: RequestTotals
    without: RequestTotals
    """The same requests, if each had sent everything."""
    refused_from_turn: int | None
    """Without Refold: the turn from which on requests are larger than the window."""
    priced_as: str
    """The model whose published prices are used."""
    detail: Detail
    said: int
    """The number of prompts, answers and results."""
    kept: int
    """How many of them the log holds, word for word."""
    seconds: float

    @property
    def good(self) -> bool:
        """Whether there were folds, and nothing was lost."""
        return bool(self.folds and self.detail.found) and self.kept == self.said

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def as_text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        with_, without = self.with_refold, self.without
        yield f"{self.turns} turns, {self.requests} requests, in a window of {self.window:,} tokens"
        if self.refused_from_turn is not None:
            turn = self.refused_from_turn
            yield f"  without Refold   too long for the model from turn {turn} on"
        for fold in self.folds:
            writer = f"written by {fold.written_by}" if fold.written_by else "no model asked"
            yield (
                f"  turn {fold.turn:<11} {fold.messages} messages folded, "
                f"{fold.tokens_before:,} → {fold.tokens_after:,} tokens, {writer}"
            )
        largest = f"{with_.largest_request:,} tokens, not {without.largest_request:,}"
        yield f"  largest request  {largest}"
        yield f"  sent in all      {with_.tokens_sent:,} tokens, not {without.tokens_sent:,}"
        if with_.dollars is None or without.dollars is None:
            yield f"  cost             unknown: no prices are known of {self.priced_as}"
        else:
            cost = f"${with_.dollars:.3f}, and ${without.dollars:.3f} for everything"
            yield f"  cost             {cost} (prices of {self.priced_as})"
            yield "                   what is too long for the model counts as paid in both"
        detail = self.detail
        yield f"  found again      {detail.found or 'nothing'}"
        if detail.found:
            view = "still in view" if detail.shown_when_asked else "out of view by then"
            turn = f"read in turn {detail.said_in_turn}"
            yield f"                   {turn}, {view}: entry {detail.entry}"
        kept = f"{self.kept} of {self.said} prompts, answers and results, each word"
        yield f"  kept             {kept}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The start of a turn."""

    turn: int
    """From 1."""
    prompt: str


Hear = Callable[[Prompt | AgentStreamEvent | AgentRunResultEvent[str]], None]
"""Receives the prompts and the events of Pydantic AI and Refold as they happen."""


@dataclass(slots=True)
class _Recorder:
    hear: Hear
    texts: list[str] = field(default_factory=list[str])
    answers: list[str] = field(default_factory=list[str])
    tools: list[list[str]] = field(default_factory=list[list[str]])
    folds: dict[str, tuple[int, dict[str, Any]]] = field(
        default_factory=dict[str, tuple[int, dict[str, Any]]]
    )
    shown_when_asked: bytes = b""

    def start_turn(self, prompt: str) -> None:
        self.texts.append(prompt)
        self.tools.append([])
        self.hear(Prompt(len(self.tools), prompt))

    def record(self, event: AgentStreamEvent | AgentRunResultEvent[str]) -> None:
        match event:
            case SessionEvent(name="session.compaction_complete", details=details):
                self.folds[str(details["fold"])] = len(self.tools), details
            case FunctionToolResultEvent(part=ToolReturnPart() as part):
                self.tools[-1].append(part.tool_name)
                self.texts.append(part.model_response_str())
            case AgentRunResultEvent():
                self.answers.append(event.result.output)
                self.texts.append(event.result.output)
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
    """Play the whole conversation and measure it.

    Args:
        store: Where it is kept.
        pace: Seconds for each word of an answer; 0 is as fast as possible.
        hear: Receives the events.
        session: The name of the session, which must be new.
        memory: An open memory to play with, instead of a new one in the store.
    """
    started = time.monotonic()
    model = demo_model(pace)
    recorder = _Recorder(hear or (lambda _: None))
    async with AsyncExitStack() as stack:
        memory = memory or await stack.enter_async_context(
            Refold(store, profile=demo_profile(), models=demo_models())
        )
        agent: Agent[None, str] = Agent(
            model, instructions=INSTRUCTIONS, toolsets=[demo_tools()], capabilities=[memory]
        )
        for turn, prompt in enumerate(PROMPTS):
            if turn == DETAIL:
                shown = await (await memory.session(session, model)).next_messages()
                recorder.shown_when_asked = b"\n".join(shown)
            recorder.start_turn(prompt)
            async with agent.run_stream_events(prompt, conversation_id=session) as events:
                async for event in events:
                    recorder.record(event)
        entries = await memory.log.read(session)
        receipt = await receipt_of(memory.log, session)
    return _measure(session, entries, receipt, recorder, time.monotonic() - started)


def _measure(
    session: str, entries: list[Entry], receipt: Receipt, heard: _Recorder, seconds: float
) -> Played:
    used = [value for value in map(CODEC.decode, entries) if isinstance(value, Used)]
    unmanaged: list[Any] = [one.unmanaged for one in used]
    texts = {entry.seq: _text(entry) for entry in entries if entry.kind == Message.KIND}
    everything = "\0".join(texts.values())
    return Played(
        session=session,
        window=WINDOW,
        turns=len(heard.answers),
        requests=len(used),
        folds=tuple(_folds(entries, heard)),
        with_refold=_totals([one.usage for one in used], receipt.cost),
        without=_totals(unmanaged, receipt.cost and receipt.everything),
        refused_from_turn=_refused_from(entries),
        priced_as=PRICED_AS,
        detail=_detail(texts, heard),
        said=len(heard.texts),
        kept=sum(text in everything for text in heard.texts),
        seconds=round(seconds, 3),
    )


def _text(entry: Entry) -> str:
    return entry_text(wire_of("pydantic-ai"), entry).text


def _folds(entries: Iterable[Entry], heard: _Recorder) -> Iterable[Folded]:
    started: dict[str, int] = {}
    for entry in entries:
        match CODEC.decode(entry):
            case FoldStarted(fold=fold):
                started[str(fold)] = entry.at
            case FoldCompleted(fold=fold, summary=summary) if str(fold) in heard.folds:
                turn, details = heard.folds[str(fold)]
                by = summary.get("by") if isinstance(summary, dict) else None
                yield Folded(
                    turn=turn,
                    messages=details["messagesRemoved"],
                    tokens_before=details["preCompactionTokens"],
                    tokens_after=details["postCompactionTokens"],
                    written_by="" if by == THE_LOG else str(by),
                    milliseconds=entry.at - started.get(str(fold), entry.at),
                )
            case _:
                continue


def _totals(usages: Sequence[Any], dollars: float | None) -> RequestTotals:
    sizes = [int(usage["input"]) for usage in usages]
    return RequestTotals(sum(sizes), max(sizes), None if dollars is None else round(dollars, 6))


def _refused_from(entries: Iterable[Entry]) -> int | None:
    """The first turn in which the full history does not fit the window."""
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


def _detail(texts: dict[int, str], heard: _Recorder) -> Detail:
    pattern = next(step.find for step in script().turns[DETAIL].steps if step.find)
    places = ((seq, re.search(pattern, text)) for seq, text in texts.items())
    entry, match = next(((seq, match) for seq, match in places if match), (0, None))
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
