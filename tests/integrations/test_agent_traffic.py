"""What an agent with a memory sends: the whole traffic of ten typical sessions, as it is sent."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false, reportGeneralTypeIssues=false
# Tests know which of many kinds of parts they look at.

import asyncio

import pytest
from agents import Scripted, agent_with, call, check_rebuilt, last, small
from pydantic_ai import BinaryContent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from syrupy.extensions.amber import AmberSnapshotExtension

from refold import Refold

LONGEST = 160
IMAGE = BinaryContent(b"\x89PNG....", media_type="image/png")


class Traffic(AmberSnapshotExtension):
    """Kept apart from other snapshots, because people read it."""


@pytest.fixture
def traffic(snapshot):
    return snapshot.use_extension(Traffic)


def lines(model: Scripted) -> str:
    """Each request as lines; what the request before it began with is not said again."""
    before: list[str] = []
    found: list[str] = []
    for nth, (messages, info) in enumerate(zip(model.sent, model.infos, strict=True), 1):
        shown = [line for message in messages for line in _message(message)]
        same = 0
        while same < min(len(before), len(shown)) and before[same] == shown[same]:
            same += 1
        tools = ", ".join(sorted(one.name for one in info.function_tools))
        found.append(f"request {nth}: {len(messages)} messages; tools: {tools or 'none'}")
        if same:
            found.append(f"  … {same} lines as before")
        found += [f"  {line}" for line in shown[same:]]
        before = shown
    return "\n".join(found)


def _message(message) -> list[str]:
    who = "user" if isinstance(message, ModelRequest) else "model"
    return [f"{who}: {_part(part)}" for part in message.parts]


def _part(part) -> str:
    match part:
        case ToolCallPart(tool_name=tool, args=args, tool_call_id=id):
            return f"call {tool} {args} ({id})"
        case ToolReturnPart(tool_name=tool, content=content, tool_call_id=id):
            return f"result of {tool} ({id}): {_cut(content)}"
        case ThinkingPart(content=content, signature=signature):
            return f"thought: {_cut(content)} [signed {signature}]"
        case RetryPromptPart(content=content):
            return f"retry: {_cut(content)}"
        case _:
            content = part.content
            pieces = content if isinstance(content, list | tuple) else [content]
            words = " + ".join(one if isinstance(one, str) else f"<{one.kind}>" for one in pieces)
            return f"{part.part_kind}: {_cut(words)}"


def _cut(text) -> str:
    words = " ⏎ ".join(str(text).split("\n"))
    if len(words) <= LONGEST:
        return words
    return f"{words[: LONGEST // 2]} […{len(words):,} chars…] {words[-LONGEST // 2 :]}"


def tooled(agent, size=12, at_work=None):
    @agent.tool_plain
    def read(path: str) -> str:
        return f"contents of {path}: " + "word " * size

    @agent.tool_plain
    async def slow(seconds: int) -> str:
        if at_work is not None:
            at_work.set()
        await asyncio.sleep(seconds)
        return "done"

    return agent


def reads(scripted, messages):
    """`read a b` reads two files at once; everything else is answered."""
    words = last(messages).split()
    if words[0] == "read":
        nth = len(scripted.sent)
        return [call("read", f"c{nth}.{path}", path=path) for path in words[1:]]
    return f"answer {len(scripted.sent)}"


async def played(memory, model, *prompts, size=12, **given):
    agent = tooled(agent_with(memory, model, **given), size)
    for prompt in prompts:
        await agent.run(prompt, conversation_id="c")
    return agent


async def test_plain(traffic):
    model, memory = Scripted(reads), Refold()
    await played(memory, model, "Hello.", "And now?", system_prompt="You are kind.")
    assert lines(model) == traffic


async def test_tools(traffic):
    model, memory = Scripted(reads), Refold()
    await played(memory, model, "read a.py", "Thanks.", "read b.py")
    assert lines(model) == traffic


async def test_parallel_tools(traffic):
    model, memory = Scripted(reads), Refold()
    await played(memory, model, "read a.py b.py c.py", "Thanks.")
    assert lines(model) == traffic


async def test_thinking(traffic):
    def thinks(scripted, messages):
        nth = len(scripted.sent)
        thought = ThinkingPart(f"Let me see {nth}.", signature=f"s{nth}", provider_name="x")
        if last(messages).startswith("read"):
            return ModelResponse([thought, ToolCallPart("read", {"path": "a.py"}, f"c{nth}")])
        return ModelResponse([thought, TextPart(f"answer {nth}")])

    model, memory = Scripted(thinks), Refold()
    await played(memory, model, "read a.py", "Why?")
    assert lines(model) == traffic


async def test_images(traffic):
    model, memory = Scripted(reads), Refold()
    agent = tooled(agent_with(memory, model))
    await agent.run(["What is this?", IMAGE], conversation_id="c")
    await agent.run("And its colour?", conversation_id="c")
    assert model.sent[1][0].parts[0].content[1].data == IMAGE.data
    assert lines(model) == traffic


async def test_interrupt(traffic):
    def script(scripted, messages):
        if last(messages) == "wait":
            return [call("slow", "c1", seconds=3600)]
        return reads(scripted, messages)

    model, memory = Scripted(script), Refold()
    at_work = asyncio.Event()
    agent = tooled(agent_with(memory, model), at_work=at_work)
    task = asyncio.create_task(agent.run("wait", conversation_id="c"))
    await at_work.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await agent.run("Never mind. read b.py", conversation_id="c")
    await agent.run("read b.py", conversation_id="c")
    assert lines(model) == traffic


TURNS = [f"read file{nth}.py" for nth in range(9)]


async def test_fold(traffic):
    model, memory = Scripted(reads, window=4_000), Refold(profile=small())
    agent = await played(memory, model, *TURNS, size=200)
    session = await memory.session("c", model.model)
    if not (await memory.log.visible("c")).outline.folds:
        await session.compact()
    await agent.run("What was in file1.py?", conversation_id="c")
    assert lines(model) == traffic
    assert await check_rebuilt(memory, "c") == len(model.sent)


async def test_second_fold(traffic):
    model, memory = Scripted(reads, window=200_000), Refold(profile=small())
    agent = await played(memory, model, *TURNS[:4], size=100)
    session = await memory.session("c", model.model)
    await session.compact()
    for prompt in TURNS[4:]:
        await agent.run(prompt, conversation_id="c")
    await session.compact("the files")
    await agent.run("What was in file1.py?", conversation_id="c")
    assert lines(model) == traffic
    assert await check_rebuilt(memory, "c") == len(model.sent)


async def test_overflow(traffic):
    def refuses(scripted, messages):
        if len(scripted.sent) == 9:
            said = "the request exceeds the available context size"
            body = {"code": 400, "message": said, "type": "exceed_context_size_error"}
            return ModelHTTPError(400, "local", {"error": {**body, "n_ctx": 2048}})
        return reads(scripted, messages)

    model, memory = Scripted(refuses, window=None), Refold()
    await played(memory, model, *TURNS[:5], size=300)
    assert lines(model) == traffic
    assert await check_rebuilt(memory, "c") == len(model.sent)


async def test_delegate(traffic):
    def script(scripted, messages):
        words = last(messages)
        if words == "review":
            tasks = (("d1", "auth"), ("d2", "ui"))
            return [call("ask", id, task=f"read {path}.py") for id, path in tasks]  # noqa: A001
        return reads(scripted, messages)

    model, memory = Scripted(script), Refold()
    helper = tooled(agent_with(memory, model, name="helper"))
    main = agent_with(memory, model, name="main")

    @main.tool_plain(sequential=True)
    async def ask(task: str) -> str:
        return (await helper.run(task)).output

    await main.run("Hello.", conversation_id="c")
    await main.run("review", conversation_id="c")
    await main.run("Which was worse?", conversation_id="c")
    assert lines(model) == traffic
    assert await check_rebuilt(memory, "c") == len(model.sent)
