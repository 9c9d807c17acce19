"""A script computes the same receipt from an export, with the standard library alone."""

# pyright: reportAttributeAccessIssue=false

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from agents import small
from amounts import amount
from chatting import chat_with, place  # noqa: F401 - a fixture
from gateway_world import CHAT, World
from hypothesis import given, settings
from hypothesis import strategies as st
from project_paths import ROOT
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage
from receipt import account

from refold import Refold
from refold.fold.debt import Ruled
from refold.log import (
    Author,
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    Message,
    Opened,
    Requested,
    Rewound,
    Span,
    Used,
    export_session,
    import_session,
)
from refold.models import ModelSettings
from refold.models.accounts import receipt_of
from refold.models.catalog import Prices, Usage, cost_of
from refold.models.receipt import Basis
from refold.stores import MemoryStore
from refold.testing.upstream import Call, Reply
from refold.view.profiles import Trigger

SCRIPT = ROOT / "tools" / "receipt.py"
PRICED = ModelSettings(input_price=3, output_price=15, cache_read_price=0.3, cache_write_price=3.75)
SUMMARY = """Title: A novel
## Goal
- The novel gets an end. "Chapter 1"
"""


async def lines_of(log, session):
    return [line async for line in export_session(log, session)]


async def agreed(log, session, lifetime=300.0):
    """The receipt of a session, by the script too."""
    found = await receipt_of(log, session, lifetime)
    sums = account(await lines_of(log, session), lifetime)
    own = (found.paid, found.whole, found.over_window_cost, found.older_cost)
    own += (found.promised, found.broken, found.outside_cost)
    assert own == pytest.approx(tuple(sums.values()), abs=1e-9)
    return found


async def with_pauses(log, session, every, minutes):
    """The same session, as if its user had often gone away for so long."""
    lines, requests = [], 0
    for line in await lines_of(log, session):
        fields = json.loads(line)
        if "seq" in fields:
            requests += fields["kind"] == "request"
            fields["at"] += requests // every * minutes * 60_000
            if fields["kind"] == "usage":  # the rule went by the pauses that there were
                fields["body"]["basis"].pop("rule", None)
        lines.append(json.dumps(fields) + "\n")

    async def each():
        for line in lines:
            yield line

    other = MemoryStore().log()
    await import_session(other, each())
    return other


class Novelist:
    """A model that caches what it was sent before, and asks for what is folded when told to."""

    def __init__(self, *, fails=False):
        self.fails = fails
        self.known = ""
        self.recalls = 0
        self.model = FunctionModel(self.answer, model_name="novelist")

    def answer(self, messages, info):
        text = "".join(
            str(part.content)
            for m in messages
            for part in m.parts
            if part.part_kind in {"user-prompt", "tool-return", "text"}
        )
        same = next(
            (i for i, (a, b) in enumerate(zip(text, self.known, strict=False)) if a != b),
            min(len(text), len(self.known)),
        )
        last, names = messages[-1].parts[-1], [tool.name for tool in info.function_tools]
        words = str(last.content)
        read, sent = same // 4, len(text) // 4 + 40 * len(names)
        usage = RequestUsage(
            input_tokens=sent,
            output_tokens=30,
            cache_read_tokens=min(read, sent),
            cache_write_tokens=sent - min(read, sent),
        )
        if "compacted" in words or "Summarize the record" in words:
            call = [ToolCallPart("look_up", {"what": "x"})]
            return ModelResponse(call if self.fails else [TextPart(SUMMARY)], usage=usage)
        self.known = text
        if last.part_kind == "user-prompt" and "recall" in words and "recall_search" in names:
            self.recalls += 1
            parts = [ToolCallPart("recall_search", {"query": "Chapter"})]
            return ModelResponse(parts, usage=usage)
        return ModelResponse([TextPart(f"Noted, {'well ' * 300}")], usage=usage)


async def novel(*, fails=False, turns=14):
    """A conversation through the capability, with folds and recalls."""
    novelist = Novelist(fails=fails)
    store = MemoryStore()
    profile = small(summarizer="auto", trigger=Trigger(soft=0.5, hard=0.9))
    memory = Refold(store, profile=profile, models={novelist.model.model_id: PRICED})
    agent = Agent(novelist.model, capabilities=[memory])

    @agent.tool_plain
    def look_up(what: str) -> str:
        """Look something up."""
        return what

    for turn in range(turns):
        said = f"Chapter {turn}. " + "word " * 400
        await agent.run(said, conversation_id="novel")
    session = await memory.session("novel", novelist.model)
    await session.compact()
    for said in ("Please recall it.", "And then?", "Please recall it again.", "The end."):
        await agent.run(said, conversation_id="novel")
    await memory.close()
    return store.log(), novelist


@pytest.mark.parametrize("fails", [False, True])
async def test_through_the_capability(fails):
    log, novelist = await novel(fails=fails)
    found = await agreed(log, "novel")
    assert found.rereads == novelist.recalls > 0
    assert found.rereads_cost > 0 < found.added_cost
    assert found.summaries > 0 < found.summaries_cost
    assert bool(found.unused) == fails
    assert found.compared > 10
    assert found.promised > 0
    assert not found.broken
    later = await with_pauses(log, "novel", 3, 6)
    paused = await agreed(later, "novel")
    assert paused.paid == pytest.approx(found.paid)
    assert paused.whole > found.whole
    assert (await agreed(later, "novel", 3_600.0)).whole == pytest.approx(found.whole)


async def test_through_the_chat(place):  # noqa: F811, ARG001
    store = MemoryStore()
    chat = chat_with(store=store)
    await chat.say(*(f"{number} {'parcel ' * 300}" for number in range(8)))
    await chat.type("/compact")
    await chat.say("and now?")
    found = await agreed(store.log(), "talk")
    assert found.requests == 9
    assert found.unpriced == 10  # nobody knows the price of a function, or of its summary


RECALL = {"name": "mcp__refold__recall_search", "parameters": {"type": "object"}}


async def test_through_the_gateway():
    said, recalls = [], 0

    def reply(got):
        nonlocal recalls
        sent = got.body["messages"]
        usage = (len(json.dumps(sent)) // 4, 20)
        if sent[-1]["role"] == "user" and "recall" in sent[-1]["content"]:
            recalls += 1
            call = Call(f"call_{recalls}", RECALL["name"], {"query": "word"})
            return Reply(calls=(call,), usage=usage)
        return Reply("well " * 300, usage=usage)

    world = World(reply, models={"gpt-4o": PRICED.model_copy(update={"window": 14_000})})
    asked = {"model": "gpt-4o", "tools": [{"type": "function", "function": RECALL}]}
    for turn in range(20):
        recall = "please recall it " if turn % 5 == 4 else ""
        said.append({"role": "user", "content": f"{turn} {recall}" + "word " * 300})
        while said[-1]["role"] != "assistant":
            answer = await world.ask(CHAT, {**asked, "messages": said})
            message = answer.json()["choices"][0]["message"]
            said.append(message)
            for call in message.get("tool_calls") or ():
                text = "word " * 100
                said.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    [session] = (await world.log.sessions()).sessions
    found = await agreed(world.log, session.session)
    assert 0 < found.rereads < recalls == 4  # some of them over the window
    assert found.requests == 24
    assert found.over_window > 0 < found.compared
    assert found.added_cost > 0
    await agreed(await with_pauses(world.log, session.session, 4, 10), session.session)
    await world.aclose()


def test_the_script_needs_nothing_else(tmp_path):
    async def exported():
        log, _ = await novel(turns=4)
        return await lines_of(log, "novel"), await receipt_of(log, "novel")

    lines, found = asyncio.run(exported())
    (tmp_path / "novel.jsonl").write_text("".join(lines), encoding="utf-8")
    with (tmp_path / "novel.jsonl").open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-I", "-S", SCRIPT], stdin=file, capture_output=True, check=True
        )
    assert json.loads(done.stdout)["whole"] == pytest.approx(found.whole)


TOKENS = st.integers(0, 5_000)
PRICES = st.sampled_from(
    [Prices(3, 15, 0.3, 3.75), Prices(2.5, 10, 1.25), Prices(1), Prices(), Prices(5, 25, 0.5, 6.25)]
)
DOLLARS = st.sampled_from([0.0, 0.0, 0.001, 0.01, 1.0])
MOVES = {
    "state": st.just(()),
    "chain": st.just(()),
    "stated": DOLLARS,
    "outside": DOLLARS,
    "unfolding": DOLLARS,
    "undone": st.booleans(),
    "reopened": st.booleans(),
    "moved_by": st.sampled_from(["", "fold", "cut"]),
    "carried": st.integers(0, 500),
}
REQUESTS = st.fixed_dictionaries(
    {
        "counts": st.tuples(TOKENS, TOKENS, TOKENS, TOKENS),
        "usage": st.tuples(TOKENS, TOKENS, TOKENS, TOKENS),
        "wait": st.sampled_from([0, 1, 299, 300, 301, 9_999]),
        "model": st.sampled_from("aab"),
        "scope": st.sampled_from(["/", "/", "/child"]),
        "prices": PRICES,
        "limit": st.sampled_from([1_000_000, 6_000]),
        "flags": st.tuples(st.booleans(), st.booleans(), st.booleans()),
        "read_back": st.one_of(st.just(0), st.integers(0, 500)),
        "old": st.sampled_from([False] * 5 + [True]),
        "rule": st.one_of(st.none(), st.builds(Ruled, **MOVES)),
    }
)
FOLDS = ["used", "unused", "unlogged", "failed"]
STEPS = st.lists(
    st.one_of(REQUESTS, REQUESTS, st.sampled_from(["rewind", "clear", *FOLDS])),
    max_size=25,
)


class Writing:
    """Appends drawn entries as a clock goes on."""

    def __init__(self, log):
        self.log = log
        self.now = datetime(2026, 11, 19, tzinfo=UTC)
        self.author = Author(lambda: self.now)

    async def add(self, value, scope="/"):
        return (
            await self.log.append("s", [self.author.draft(value, scope=scope)], expected=None)
        ).first

    async def request(self, drawn):
        self.now += timedelta(seconds=drawn["wait"])
        request = await self.add(Requested((), {}, drawn["model"], "x"), drawn["scope"])
        counted, more, before, added = drawn["counts"]
        usage = Usage(sum(drawn["usage"][:1]) + sum(drawn["usage"][2:]), *drawn["usage"][1:])
        extra, moved, estimated = drawn["flags"]
        basis = Basis(
            drawn["model"],
            counted + more,
            min(before, counted + more),
            counted,
            drawn["limit"],
            drawn["prices"],
            added=added // 50,
            read_back=drawn["read_back"],
            extra=extra,
            moved=moved,
            rule=drawn["rule"],
        )
        reported = usage._asdict() | ({"estimated": True} if estimated else {})
        cost = cost_of(usage, drawn["prices"])
        used = Used(request, reported, cost, None, None if drawn["old"] else basis.as_json())
        await self.add(used, drawn["scope"])

    async def fold(self, how):
        seq = await self.add(Message(b'{"role":"user","content":"x"}'))
        spans, fold = (Span(seq, seq),), self.author.draft(Cleared()).id
        await self.add(FoldStarted(fold, spans, "manual"))
        spent = {"by": "x", "usage": {"input": 1}, "cost": 0.125}
        if how != "unlogged":
            await self.add(FoldStepped(fold, "chunk 1", {"text": "x"}, spent))
        by = "breadcrumb" if how == "unused" else "x"
        summary = {"by": by, "usage": {"input": 1}, "cost": 0.25}
        failed = FoldFailed(fold, "no")
        await self.add(failed if how == "failed" else FoldCompleted(fold, spans, summary))


@settings(max_examples=amount(few=20, quick=100, ci=500, nightly=10_000, thorough=50_000))
@given(STEPS)
def test_whatever_was_recorded(steps):
    async def check():
        log = MemoryStore().log()
        writing = Writing(log)
        await writing.add(Opened("openai-chat", "balanced"))
        await writing.add(Message(b'{"role":"user","content":"x"}'))
        for step in steps:
            match step:
                case "rewind":
                    await writing.add(Rewound(max(1, await log.head("s") // 2)))
                case "clear":
                    await writing.add(Cleared())
                case str(how):
                    await writing.fold(how)
                case drawn:
                    await writing.request(drawn)
        await agreed(log, "s")

    asyncio.run(check())
