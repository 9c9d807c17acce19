"""Agents that work for an agent: whose work is whose, and who sees it."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio
from itertools import pairwise

import pytest
from agents import (
    Scripted,
    agent_with,
    call,
    check_rebuilt,
    entries,
    is_summarizer,
    last,
    logged,
    said,
)
from pydantic_ai import Agent, RunContext

from refold import Refold
from refold.log import Message
from refold.models import ModelSettings

PARALLEL = "review both"


def script(scripted, messages):
    """The main agent asks two reviewers at once; each scans a file."""
    words = last(messages)
    if words == PARALLEL:
        return [call("review", f"m{len(scripted.sent)}{name}", name=name) for name in ("a", "b")]
    if words.startswith("Review "):
        return [call("scan", f"s{words[-1]}", path=f"{words[-1]}.py")]
    if words.startswith("risks in "):
        return f"{words} found"
    return "done"


def team(memory, model, size=1) -> Agent:
    main = agent_with(memory, model, name="main")
    reviewer = agent_with(memory, model, name="reviewer")

    @main.tool_plain
    async def review(name: str) -> str:
        return (await reviewer.run(f"Review {name}")).output

    @reviewer.tool_plain
    async def scan(path: str) -> str:
        await asyncio.sleep(0)
        return f"risks in {path}" + " and so on" * (size - 1)

    return main


def requests_with(model, words):
    return [texts for texts in model.texts if words in texts]


@pytest.mark.req("R006")
async def test_delegated_work_is_logged_in_scopes_of_one_session():
    memory, model = Refold(), Scripted(script)
    await team(memory, model).run(PARALLEL, conversation_id="c")
    assert [one.session for one in (await memory.log.sessions()).sessions] == ["c"]
    scopes = {scope for scope, _ in await entries(memory, "c", Message.KIND)}
    delegated = sorted(scopes - {"/"})
    assert len(delegated) == 2
    assert all(scope.startswith("/reviewer-") for scope in delegated)
    words = sorted([await logged(memory, "c", scope) for scope in delegated])
    assert words[0] == ["Review a", "scan()", "risks in a.py", "risks in a.py found"]
    assert await check_rebuilt(memory, "c") == 6


async def test_the_main_agent_sees_what_its_delegates_found():
    memory, model = Refold(), Scripted(script)
    await team(memory, model).run(PARALLEL, conversation_id="c")
    assert model.texts[-1] == [
        *(PARALLEL, "review()", "review()", "risks in a.py found", "risks in b.py found")
    ]


@pytest.mark.req("R090")
async def test_a_delegate_works_apart_and_sees_nothing_of_others():
    memory, model = Refold(), Scripted(script)
    main = team(memory, model)
    await main.run("a secret of the top level", conversation_id="c")
    await main.run(PARALLEL, conversation_id="c")
    for name in "ab":
        assert requests_with(model, f"Review {name}") == [
            [f"Review {name}"],
            [f"Review {name}", "scan()", f"risks in {name}.py"],
        ]


@pytest.mark.req("R088", "R089", "R090")
async def test_delegates_may_share_the_top_level():
    memory, model = Refold(profile="inkeep"), Scripted(script)
    main = team(memory, model)
    await main.run("a secret of the top level", conversation_id="c")
    await main.run(PARALLEL, conversation_id="c")
    for name, other in ("ab", "ba"):
        for texts in requests_with(model, f"Review {name}"):
            assert "a secret of the top level" in texts
            assert not any(f"{other}.py" in text for text in texts)
    [final] = [texts for texts in model.texts if "risks in a.py found" in texts]
    assert any("## Tool: scan" in text for text in final)  # all that they did, as text


def asking(agent):
    async def deeper(level: int) -> str:
        return (await agent.run(str(level))).output

    return deeper


async def test_delegates_of_delegates_have_scopes_below():
    memory = Refold()

    def nested(_, messages):
        words = last(messages)
        return [call("deeper", "c" + words, level=int(words) + 1)] if words in "01" else words

    model = Scripted(nested)
    agents = [agent_with(memory, model, name=f"level{nth}") for nth in range(3)]
    for above, below in pairwise(agents):
        above.tool_plain(asking(below))
    await agents[0].run("0", conversation_id="c")
    scopes = [scope for scope, _ in await entries(memory, "c", Message.KIND)]
    deepest = max(scopes, key=len)
    assert [part.split("-")[0] for part in deepest.split("/")[1:]] == ["level1", "level2"]


async def test_a_delegate_with_a_conversation_of_its_own_keeps_it():
    memory, model = Refold(), Scripted(script)
    main, clerk = (agent_with(memory, model, name=name) for name in ("main", "clerk"))

    @main.tool_plain
    async def review(name: str) -> str:
        return (await clerk.run(f"note {name}", conversation_id="clerk's own")).output

    for _ in range(2):
        await main.run(PARALLEL, conversation_id="c")
    assert {scope for scope, _ in await entries(memory, "c", Message.KIND)} == {"/"}
    assert len(await logged(memory, "clerk's own")) == 8


async def test_another_memory_is_another_matter():
    memory, other, model = Refold(), Refold(), Scripted(script)
    main = agent_with(memory, model)
    helper = agent_with(other, model)

    @main.tool_plain
    async def review(name: str) -> str:
        return (await helper.run(f"note {name}")).output

    await main.run(PARALLEL, conversation_id="c")
    assert {scope for scope, _ in await entries(memory, "c", Message.KIND)} == {"/"}
    assert len((await other.log.sessions()).sessions) == 2


async def test_two_that_keep_the_same_file_know_each_other(tmp_path):
    path = f"sqlite:///{tmp_path / 'refold.db'}"
    model = Scripted(script)
    async with Refold(path) as memory, Refold(path) as same:
        main, helper = agent_with(memory, model), agent_with(same, model, name="helper")

        @main.tool_plain
        async def review(name: str) -> str:
            return (await helper.run(f"note {name}")).output

        await main.run(PARALLEL, conversation_id="c")
        assert len({scope for scope, _ in await entries(memory, "c", Message.KIND)}) == 3


async def test_a_delegate_that_is_given_the_history_does_not_wait_for_its_caller():
    memory, model = Refold(wait=5), Scripted(script)
    main, helper = agent_with(memory, model), agent_with(memory, model, name="helper")

    @main.tool
    async def review(ctx: RunContext, name: str) -> str:
        history = ctx.messages[:-1]
        return (await helper.run(f"note {name}", message_history=history or None)).output

    await main.run("hello", conversation_id="c")
    await main.run(PARALLEL, conversation_id="c")
    noted = requests_with(model, "note a")
    assert noted
    assert noted[0][:2] == ["hello", "done"]


async def test_runs_within_a_run_that_go_on_with_it_do_not_wait_for_it():
    memory, model = Refold(wait=5), Scripted(lambda *_: "done")
    helper = agent_with(memory, model, name="helper")
    main = agent_with(memory, model, name="main")

    @main.output_validator
    async def checked(output: str) -> str:
        await helper.run("check it", conversation_id="c")
        return output

    async with main.iter("go", conversation_id="c") as run:
        async for _ in run:
            pass
        await helper.run("beside it", message_history=run.all_messages())
        await helper.run("another matter")
    scopes = {scope for scope, _ in await entries(memory, "c", Message.KIND)}
    assert len(scopes) == 3
    assert len((await memory.log.sessions()).sessions) == 2


async def test_what_a_tool_left_running_is_no_delegate_once_the_run_is_over():
    memory = Refold()
    model = Scripted(lambda _, messages: [call("start", "c1")] if last(messages) == "go" else "ok")
    agent = agent_with(memory, model)
    go, tasks = asyncio.Event(), []

    @agent.tool_plain
    async def start() -> str:
        async def later():
            await go.wait()
            await agent.run("much later", conversation_id="c")

        tasks.append(asyncio.create_task(later()))
        return "started"

    await agent.run("go", conversation_id="c")
    go.set()
    await tasks[0]
    assert (await logged(memory, "c"))[-2:] == ["much later", "ok"]


async def test_a_conversation_that_comes_back_to_itself_does_not_wait_for_itself():
    memory = Refold(wait=5)
    model = Scripted(lambda _, messages: [call("ask", "c1")] if last(messages) == "ask" else "ok")
    one, two = (agent_with(memory, model, name=name) for name in ("one", "two"))
    three = agent_with(memory, model, name="three")

    async def ask_two() -> str:
        return (await two.run("ask", conversation_id="b")).output

    async def ask_three() -> str:
        return (await three.run("hello", conversation_id="a")).output

    one.tool_plain(name="ask")(ask_two)
    two.tool_plain(name="ask")(ask_three)
    await one.run("ask", conversation_id="a")
    assert len({scope for scope, _ in await entries(memory, "a", Message.KIND)}) == 2


# In the middle of generation.


def reads_many(scripted, messages):
    """The scenario of a code review: fifteen files, and then some."""
    words = last(messages)
    if words == "go":
        return [call("delegate", "m1", task="TASK: find the auth bug in 15 files")]
    done = sum(1 for text in said(messages) if text == "read_file()")
    if words.startswith("TASK") or (done and done < 15 and "found" not in words):
        read = sum(1 for one in scripted.sent if any(t.startswith("TASK") for t in said(one)))
        return [call("read_file", f"r{read}", path=f"src/module_{read}.py")] if read <= 15 else "ok"
    return "found it in src/module_7.py"


@pytest.mark.req("R033", "R092", "R021")
@pytest.mark.parametrize("profile", ["balanced", "inkeep"])
async def test_a_delegate_reads_more_than_its_window_and_keeps_its_task(profile):
    window = 6_000
    memory = Refold(profile=profile, models={"scripted": ModelSettings(window=window)})
    model = Scripted(reads_many, window=None)
    main, worker = (agent_with(memory, model, name=name) for name in ("main", "worker"))

    @main.tool_plain
    async def delegate(task: str) -> str:
        return (await worker.run(task)).output

    @worker.tool_plain
    async def read_file(path: str) -> str:
        return f"def check_{path[-4]}(): ...\n" + f"# of {path}\n" * 250

    await main.run("go", conversation_id="c")
    task = "TASK: find the auth bug in 15 files"
    its = [texts for texts in model.texts if task in texts and "delegate()" not in texts[-1]]
    its = [texts for texts in its if texts[-1] == task or "# of " in texts[-1]]
    assert len(its) >= 15
    assert max(sum(map(len, texts)) // 4 for texts in its) <= window
    assert len(its[-1][-1]) > 2_000  # what it has just read is there in full
    assert any("archived" in text and "part " in text for text in its[-1])  # the rest by reference
    sent = [one for one in model.sent if not is_summarizer(one)]
    assert await check_rebuilt(memory, "c") == len(sent)
