"""Inkeep's memory, as the models of agents that use it receive it."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportAttributeAccessIssue=false
# Tests know which of many kinds of parts they look at.

import pytest
from agents import (
    Scripted,
    agent_with,
    call,
    check_rebuilt,
    folds,
    is_summarizer,
    last,
    logged,
    said,
)
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.tools import ToolDefinition
from refold_commands import quick, terminal
from surfaces import capability, chat, passing_service, provider, service, surface

from refold import Refold
from refold.view.profiles import PROFILES

SUMMARY = "They read the pages."


def asked(model) -> list[list[str]]:
    """What each request for an answer said, without those for summaries."""
    return [said(one) for one in model.sent if not is_summarizer(one)]


def summarized(model) -> list[str]:
    return ["\n".join(said(one)) for one in model.sent if is_summarizer(one)]


@pytest.mark.req("R149")
async def test_a_step_with_a_note_on_new_tools_is_folded_like_any_other():
    def script(_, messages):
        if is_summarizer(messages):
            return SUMMARY
        return [call("page", "p1")] if last(messages) == "read it" else "ok"

    memory, model = Refold(profile="inkeep"), Scripted(script, window=8_000)
    agent = agent_with(memory, model)
    has_read = []

    @agent.tool_plain
    def page() -> str:
        has_read.append(True)
        return "PAGE " * 1_500

    async def once_read(_: RunContext, tool: ToolDefinition) -> ToolDefinition | None:
        return tool if has_read else None

    @agent.tool_plain(prepare=once_read)
    def annotate() -> str:
        return "annotated"

    for prompt in ("read it", "long " * 2_500, "and now?"):
        await agent.run(prompt, conversation_id="c")
    assert len(await folds(memory)) == 1
    assert "PAGE" in summarized(model)[0]
    latest = asked(model)[-1]
    assert not any("PAGE" in text or text == "page()" for text in latest)
    assert latest[0].startswith(f"[Summary of 4 earlier messages]\n{SUMMARY}")
    # The note itself stays: without it the framework would take the tool away again.
    assert any("annotate" in text for text in latest)
    assert [tool.name for tool in model.infos[-1].function_tools].count("annotate") == 1
    assert await check_rebuilt(memory, "c") == len(asked(model))


# A sub-agent whose tool results fill its window.

TASK = "Analyze this codebase for security issues."
FOUND = "Analyzed 15 files, found 3 SQL injection risks in auth.py, 2 XSS holes in templates."
REFUSED = "Your input exceeds the context window of this model."
FILES = 15
WINDOW = 6_000


def words(texts: list[str]) -> int:
    """How many there are: the scripted model counts a token for each."""
    return sum(len(text.split()) for text in texts)


def audit(memory: Refold, *, summary: str | Exception = FOUND, window=WINDOW):
    """A main agent, its auditor and what they were sent; the auditor reads file after file."""

    def main_script(_, messages):
        return [call("audit", "m1")] if last(messages) == "Is it safe?" else "I see."

    def script(_, messages):
        if is_summarizer(messages):
            return summary
        read = sum(text == "read_file()" for text in said(messages))
        path = f"src/part_{read}.py"
        return [call("read_file", f"r{read}", path=path)] if read < FILES else "5 risks."

    main_model, model = Scripted(main_script), Scripted(script, window=window)
    main = agent_with(memory, main_model, name="main")
    auditor = agent_with(memory, model, name="auditor")

    @main.tool_plain
    async def audit() -> str:
        return (await auditor.run(TASK)).output

    @auditor.tool_plain
    def read_file(path: str) -> str:
        return f"of {path}: " + "query = f'select {name}'\n" * 150

    return main, model


@pytest.mark.req("R033", "R092", "R021", "R020")
async def test_a_sub_agents_results_become_findings_and_its_task_and_the_conversation_stay():
    events = []
    memory = Refold(profile="inkeep", watch=lambda _, event: events.append(event))
    main, model = audit(memory)
    await main.run("We build a shop.", conversation_id="c")
    await main.run("Is it safe?", conversation_id="c")
    requests = asked(model)
    first = next(nth for nth, texts in enumerate(requests) if any(FOUND in x for x in texts))
    before, after = requests[first - 1], requests[first]
    # Up to 75 % of the window everything is sent as it was.
    assert not any("archived" in text for text in before)
    assert 0.6 < words(before) / WINDOW < 0.75
    # Then what a model found in the results, and a reference in the place of each.
    [findings] = [text for text in after if FOUND in text]
    assert findings.startswith(f"[Findings from {first - 1} tool results")
    assert sum("[…archived: " in text and ", part " in text for text in after) == first - 1
    assert max(len(text) for text in after if "archived: " in text) < 120
    assert "of src/part_0.py" in summarized(model)[0]
    # The conversation, the task, all calls and the newest result are as they were.
    for nth, texts in enumerate(requests[first:], first):
        assert texts[:3] == ["We build a shop.", "I see.", "Is it safe?"]
        assert TASK in texts
        newest = f"of src/part_{nth - 1}.py"
        assert any(one.startswith(newest) and words([one]) > 600 for one in texts)
    assert [texts.count("read_file()") for texts in requests] == [*range(FILES + 1)]
    # After more results there are new findings, made of the earlier ones and what came since.
    causes = [event.trigger for event in events if event.NAME == "session.compaction_start"]
    assert causes == ["generation"] * 2
    assert FOUND in summarized(model)[-1]
    assert "of src/part_0.py" not in summarized(model)[-1]
    assert max(map(words, requests)) < WINDOW
    assert await folds(memory) == []
    assert await check_rebuilt(memory, "c") == len(requests) + 3


@pytest.mark.req("R033", "R038")
@pytest.mark.parametrize("failing", [True, False], ids=["it fails", "there is none"])
async def test_without_a_summarizer_a_sub_agents_results_are_excerpts(failing):
    profile = PROFILES["inkeep"]
    if not failing:
        fold = profile.fold.model_copy(update={"writer": "log"})
        profile = profile.model_copy(update={"fold": fold})
    memory = Refold(profile=profile)
    main, model = audit(memory, summary=RuntimeError("down"))
    await main.run("Is it safe?", conversation_id="c")
    latest = asked(model)[-1]
    excerpts = [text for text in latest if "[…archived: " in text]
    assert len(excerpts) == FILES - 1
    assert all(text.startswith("of src/part_") and 200 < len(text) < 300 for text in excerpts)
    assert 0 < len(summarized(model)) < 4 if failing else summarized(model) == []


@pytest.mark.req("R033", "R080")
async def test_a_refusal_of_a_sub_agents_request_leads_to_findings():
    memory = Refold(profile="inkeep")
    main, model = audit(memory, window=200_000)
    reply, refused = model._reply, []

    def limited(scripted, messages):
        if not is_summarizer(messages) and words(said(messages)) > 4_000:
            refused.append(messages)
            return ModelHTTPError(400, "scripted", {"message": REFUSED, "type": "invalid_request"})
        return reply(scripted, messages)

    model._reply = limited
    await main.run("Is it safe?", conversation_id="c")
    assert 1 <= len(refused) < 4
    latest = asked(model)[-1]
    assert any(FOUND in text for text in latest)
    assert TASK in latest


@pytest.mark.req("R033")
async def test_a_setting_switches_findings_on_in_any_profile(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refold.toml").write_text("[trigger]\ngeneration = [[0, 0.75]]\n", "utf-8")
    memory = Refold(profile="copilot")
    main, model = audit(memory)
    await main.run("Is it safe?", conversation_id="c")
    assert any(FOUND in text for text in asked(model)[-1])


# Delegates side by side: each sees the top level and its own work, summarized or not.

READ_BY_A = "the safe is behind the clock"
PLAN = "They plan a shop."
LONG = ("long " * 2_200, "more " * 800)


def summary_of(messages) -> str:
    return f"{PLAN} The first clerk read {READ_BY_A}." if READ_BY_A in str(messages) else PLAN


def clerks(summary=summary_of):
    """A main agent that sends clerks; the first one reads what is none of the others'."""

    def main_script(_, messages):
        if is_summarizer(messages):
            return summary(messages)
        words = last(messages)
        return [call("send", words, to=words[5:])] if words.startswith("send ") else "Noted."

    def script(_, messages):
        return [call("read", "r")] if last(messages).startswith("Go ") else "done"

    memory = Refold(profile="inkeep")
    main_model, model = Scripted(main_script, window=5_000), Scripted(script)
    main = agent_with(memory, main_model, name="main")
    clerk = agent_with(memory, model, name="clerk")

    @main.tool_plain
    async def send(to: str) -> str:
        return (await clerk.run(f"Go {to}")).output

    @clerk.tool_plain
    def read() -> str:
        return f"{READ_BY_A}." if len(model.sent) == 1 else "nothing"

    return memory, main, main_model, model


@pytest.mark.req("R039", "R088", "R089", "R090", "R091")
async def test_a_delegate_is_never_shown_what_another_ones_tools_returned_summarized_or_not():
    memory, main, main_model, model = clerks()
    for prompt in ("We plan a shop.", "send A", *LONG, "send B", *LONG, "send C"):
        await main.run(prompt, conversation_id="c")
    made = len(await folds(memory))
    assert made > 1
    # The main agent sees what all of its delegates did, before and after it is summarized.
    mains = asked(main_model)
    assert any(READ_BY_A in text and "## Tool: read" in text for text in mains[2])
    assert any(READ_BY_A in text for text in mains[-1])
    # A delegate sees the top level, in a summary that was made of the top level alone.
    for name in "BC":
        [first, *_] = its = [texts for texts in asked(model) if f"Go {name}" in texts]
        assert len(its) == 2
        assert any(PLAN in text for text in first)
        assert f"send {name}" in first
        assert not any(READ_BY_A in text for texts in its for text in texts)
        assert its[-1][-1] == "nothing"
    filtered = [one for one in summarized(main_model) if READ_BY_A not in one]
    assert len(filtered) == len(summarized(main_model)) // 2 == made
    assert "We plan a shop." in filtered[0]
    assert PLAN in filtered[1]
    assert await check_rebuilt(memory, "c") == len(mains) + len(asked(model))


@pytest.mark.req("R089", "R090")
async def test_a_delegates_summary_comes_from_the_log_when_no_model_writes_it():
    def once(messages):
        return summary_of(messages) if READ_BY_A in str(messages) else RuntimeError("down")

    _, main, main_model, model = clerks(once)
    for prompt in ("We plan a shop.", "send A", *LONG, "send B"):
        await main.run(prompt, conversation_id="c")
    assert any(READ_BY_A in text for text in asked(main_model)[-1])
    [first, _] = [texts for texts in asked(model) if "Go B" in texts]
    assert any("We plan a shop." in text for text in first)
    assert not any(READ_BY_A in text for text in first)


# Tool results in memory.

RENDERED = '## Tool: read_file\n\n**Input:**\n{\n  "path": "a.json"\n}\n\n**Output:**\n'


@pytest.mark.req("R009", "R010")
@pytest.mark.parametrize("profile", ["inkeep", "balanced"])
async def test_results_of_earlier_turns_are_markdown_with_input_and_output(
    surface, provider, profile
):
    surface.write("a.json", '{"results": ["OAuth"]}')
    settings = {"results": "markdown"} if profile == "balanced" else {}
    await surface.play(["read a.json", "And now?", "Well?"], profile=profile, **settings)
    during, *later = [
        [one["content"] for one in request.messages if one["role"] == "tool"]
        for request in provider.asked[1:]
    ]
    assert not during[0].startswith("## Tool")
    assert [text.startswith(RENDERED) for [text] in later] == [True, True]
    assert all("OAuth" in text for [text] in later)


@pytest.mark.req("R010")
async def test_a_history_with_results_as_markdown_is_known_again_and_logged_once():
    def script(_, messages):
        return [call("page", "p1")] if last(messages) == "read it" else "ok"

    memory, model = Refold(profile="inkeep"), Scripted(script)
    agent = agent_with(memory, model)

    @agent.tool_plain
    def page() -> dict[str, int]:
        return {"lines": 12}

    history = None
    for prompt in ("read it", "and?", "so?", "well?"):
        result = await agent.run(prompt, conversation_id="c", message_history=history)
        history = result.all_messages()
    rendered = '## Tool: page\n\n**Input:**\n{}\n\n**Output:**\n{\n  "lines": 12\n}'
    assert asked(model)[-1] == [
        *("read it", "page()", rendered, "ok", "and?", "ok", "so?", "ok", "well?")
    ]
    assert await logged(memory, "c") == [
        *("read it", "page()", "{'lines': 12}", "ok", "and?", "ok", "so?", "ok", "well?", "ok")
    ]
