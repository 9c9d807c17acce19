"""Request records in a real store: read back, rebuilt, and honest about what was forgotten."""

import json
import sys

import pytest
from sessions import Quarter

from refold.errors import Unrebuildable
from refold.log import CODEC, Author, Forgotten, Message, Opened, Requested, Span
from refold.stores import open_store
from refold.view.budget import Budget
from refold.view.profiles import PROFILES, Archive, Arguments, Rewrite
from refold.view.record import WHOLE_EVERY, Previous, hashes_of, planned, rebuild, record
from refold.view.view import View
from refold.view.view_input import ViewInput
from refold.wire import wire_for

SMALL = PROFILES["balanced"].model_copy(
    update={
        "rewrite": Rewrite(target_tokens=4_000, target=1.0, low_water=0.4),
        "archive": Archive(min_chars=80, names=40, recent=0.1),
        "arguments": Arguments(max_chars=60, keep=10, names=0.2),
    }
)
BUDGET = Budget(window=8_000)


def step(number):
    call = f"call_{number}"
    asked = {"path": f"src/file_{number % 7}.py", "text": f"line {number} " * 12}
    yield {"parts": [{"content": f"Look at file {number}.", "part_kind": "user-prompt"}]}, "request"
    parts = [{"tool_name": "read", "args": asked, "tool_call_id": call, "part_kind": "tool-call"}]
    yield {"parts": parts}, "response"
    answer = {"tool_name": "read", "content": f"value_{number} = {number}\n" * 20}
    answer |= {"tool_call_id": call, "part_kind": "tool-return"}
    yield {"parts": [answer]}, "request"


class Chat:
    """A session in a store with a record of every request, reopened whenever asked."""

    def __init__(self, log):
        self.log = log
        self.author = Author()
        self.head = 0
        self.sent = {}

    async def append(self, *values, artifacts=()):
        drafts = [self.author.draft(value, artifacts=artifacts) for value in values]
        done = await self.log.append("s", drafts, expected=self.head)
        self.head = done.last
        return done.last

    async def begin(self):
        await self.append(Opened("pydantic-ai", "balanced"))
        await self.open()

    async def open(self):
        visible = await self.log.visible("s")
        chain = await self.chain(visible.outline.record) if visible.outline.record else []
        plan = planned(chain, await self.texts(chain)) if chain else None
        inputs = ViewInput.of(visible, wire_for("pydantic-ai"), Quarter())
        self.view = View(inputs, SMALL, plan)
        self.previous = (
            Previous(visible.outline.record, chain[-1].chain, plan) if chain and plan else None
        )

    async def chain(self, seq):
        async def value(at) -> Requested:
            (entry,) = await self.log.read("s", Span(at, at))
            found = CODEC.decode(entry)
            assert isinstance(found, Requested)
            return found

        last = await value(seq)
        return [*[await value(at) for at in last.chain], last]

    async def texts(self, chain):
        return {name: (await self.log.artifact(name)).data.decode() for name in hashes_of(chain)}

    async def turn(self, number):
        for body, kind in step(number):
            payload = json.dumps(body | {"kind": kind}).encode()
            seq = await self.append(Message(payload))
            self.view.extend(await self.log.read("s", Span(seq, seq)))
        request = self.view.request(BUDGET)
        made, artifacts = record(request, "test:model", previous=self.previous)
        seq = await self.append(made, artifacts=artifacts)
        self.view.extend(await self.log.read("s", Span(seq, seq)))
        self.previous = Previous(seq, made.chain, request.plan)
        self.sent[seq] = tuple(request.messages)
        return request

    async def rebuilt(self, seq):
        chain = await self.chain(seq)
        return rebuild(chain, await self.log.read("s"), await self.texts(chain))


@pytest.fixture(params=["memory:", "sqlite"])
async def chat(request, tmp_path):
    address = request.param if request.param == "memory:" else f"sqlite:///{tmp_path / 'a.db'}"
    async with open_store(address) as store:
        chat = Chat(store.log())
        await chat.begin()
        yield chat


async def test_every_record_is_rebuilt_without_planning(chat, monkeypatch):
    for number in range(WHOLE_EVERY + 6):
        await chat.turn(number)

    def never(*_, **__):
        pytest.fail("rebuilding must not plan")

    for name in ("project", "thresholds", "dedupe"):
        monkeypatch.setattr(sys.modules["refold.view.project"], name, never)
    for name in (
        "refold.view.policies.tool_output.archive",
        "refold.view.policies.tool_output.arguments",
        "refold.view.policies.fit.fit",
        "refold.view.policies.pair.pair",
    ):
        monkeypatch.setattr(name, never)
    monkeypatch.setattr("refold.view.budget.PER_MESSAGE", 1_000)
    monkeypatch.setattr("refold.view.policies.tool_output._mentions", never)
    for seq, messages in chat.sent.items():
        assert await chat.rebuilt(seq) == messages


async def test_records_are_whole_again_after_a_while_and_small_between(chat):
    sizes = []
    for number in range(WHOLE_EVERY + 2):
        request = await chat.turn(number)
        stored = (await chat.chain(chat.previous.seq))[-1]
        sizes.append((len(stored.chain), len(json.dumps(stored.plan)), request.plan.cause))
    assert max(chained for chained, _, _ in sizes) == WHOLE_EVERY - 1
    assert sizes[WHOLE_EVERY][0] == 0
    whole = sizes[WHOLE_EVERY][1]
    between = [size for chained, size, cause in sizes[10:] if chained and not cause]
    assert between
    assert max(between) < whole / 4


async def test_a_reopened_view_sends_the_same_prefix(chat):
    for number in range(20):
        before = await chat.turn(number)
    await chat.open()
    after = chat.view.request(BUDGET)
    assert list(after.messages) == list(before.messages)
    assert after.plan.rewrites == before.plan.rewrites
    assert after.plan.cause == ""


async def test_what_was_forgotten_cannot_be_rebuilt_and_says_so(chat):
    for number in range(6):
        await chat.turn(number)
    last = max(chat.sent)
    await chat.log.forget("s", Span(2, 2))
    (entry,) = await chat.log.read("s", Span(last, last))
    left = CODEC.decode(entry)
    assert isinstance(left, Forgotten)
    assert left.state == "unrebuildable"


async def test_other_bytes_are_refused(chat):
    for number in range(3):
        await chat.turn(number)
    seq = chat.previous.seq
    chain = await chat.chain(seq)
    entries = await chat.log.read("s")
    changed = [
        entry._replace(body=entry.body.replace(b"Look at file 1", b"Look at file 9"))
        for entry in entries
    ]
    with pytest.raises(Unrebuildable, match="not what was sent"):
        rebuild(chain, changed, {})


async def test_another_wire_version_is_refused(chat, monkeypatch):
    await chat.turn(1)
    chain = await chat.chain(chat.previous.seq)
    monkeypatch.setattr("refold.wire.pydantic_ai.PydanticAI.version", 2)
    with pytest.raises(Unrebuildable, match="version 1 of the pydantic-ai wire"):
        rebuild(chain, await chat.log.read("s"), {})


def test_a_record_is_a_control_entry_of_the_log():
    assert Requested.CONTROL
