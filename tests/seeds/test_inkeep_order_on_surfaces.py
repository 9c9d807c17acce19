"""Inkeep's order of work, by what models were sent: each surface, one request after the other.

Watch, trigger, archive, summarize, fall back; and read, filter by delegation, manage, optimize.
"""

# ruff: noqa: F811, F401 - fixtures are imported

import re

import pytest
from agents import Scripted, agent_with, call, last, said
from refold_commands import quick, terminal
from surfaces import answer, capability, chat, provider, service, texts
from terminal.pieces import Call, Refuse

from refold import Refold
from refold.view.profiles import PROFILES, STATIC_MARKER

WITH_A_SUMMARIZER = ["chat", "capability", "service"]
WINDOW = 20_000
STUDIED = "They read the studies."
LINE = "a finding of study {nth}, and what follows\n"
REFERENCE = re.compile(r"\b(\d+\.\d+)\b")


def studies(played, count: int) -> list[str]:
    """Prompts that have so many large files read."""
    for nth in range(count):
        played.write(f"{nth}.txt", LINE.format(nth=nth) * 200)
    return [f"read {nth}.txt" for nth in range(count)]


def reads_back(asked):
    """Reads a part of the conversation again when told to, and otherwise as usual."""
    if asked.messages[-1]["role"] == "user" and asked.prompt.startswith("again "):
        [*_, part] = REFERENCE.findall("\n".join(texts(asked)))
        return [Call("recall_read", {"at": part})]
    return answer(asked)


def size(asked) -> int:
    """The tokens of a request, roughly."""
    return sum(map(len, texts(asked))) // 4


def results(asked) -> list[str]:
    return [text for text in texts(asked) if "a finding of study" in text]


@pytest.mark.req("R020", "R021", "R032", "R035", "R148", "R149")
@pytest.mark.parametrize("where", WITH_A_SUMMARIZER)
async def test_it_watches_triggers_archives_and_then_summarizes(request, provider, where):
    played = request.getfixturevalue(where)
    provider.otherwise, provider.summary = reads_back, STUDIED
    prompts = [*studies(played, 6), "What do they have in common?"]
    prompts += ["again the last one"] if where != "service" else []  # which has no such tool
    await played.play(prompts, profile="inkeep", window=WINDOW)
    received = list(provider.received)
    first = next(nth for nth, one in enumerate(received) if one.for_fold)
    before, after = received[first - 1], received[first + 1]
    # 1 watch: below half of the window each request holds all that there is.
    assert size(before) < WINDOW / 2
    assert len(results(before)) == len({*results(before)}) > 2
    assert min(map(len, results(before))) > 7_000
    # 2 trigger: the request that would pass it waits for the summary.
    assert size(before) + 2_500 > WINDOW / 2
    # 4 summarize: everything before the latest prompt.
    [summary] = [text for text in texts(after) if STUDIED in text]
    assert summary.startswith("[Summary of ")
    assert sum(text.startswith("read ") for text in texts(after)) == 1
    assert size(after) < WINDOW / 4
    # 3 archive: in it a reference stands for each large result, which is still there, whole.
    assert len(REFERENCE.findall(summary)) == len(results(before))
    if where != "service":
        again = texts(received[-1])[-1]
        assert again.count("a finding of study") > 100


@pytest.mark.req("R037", "R038", "R148")
@pytest.mark.parametrize("where", WITH_A_SUMMARIZER)
async def test_it_falls_back_to_fixed_limits_after_the_summary_failed(request, provider, where):
    surface = request.getfixturevalue(where)
    provider.summary = [Refuse(500, "{}")]
    prompts = [*studies(surface, 6), *(f"Prompt {nth}." for nth in range(30))]
    await surface.play(prompts, profile="inkeep", window=WINDOW)
    received = list(provider.received)
    first = next(nth for nth, one in enumerate(received) if one.for_fold)
    limited = [one for one in received[first:] if not one.for_fold]
    for one in limited:
        talk = [message for message in one.messages if message["role"] != "system"]
        assert len(talk) <= 50
        latest = max(nth for nth, message in enumerate(talk) if message["role"] == "user")
        assert sum(len(str(message.get("content") or "")) for message in talk[:latest]) / 4 < 8_000
    assert any(STATIC_MARKER.partition("{")[0] in text for text in texts(limited[-1]))
    assert texts(limited[-1])[-1] == "Prompt 29."


@pytest.mark.req("R036", "R037", "R039", "R091")
async def test_what_a_delegate_may_not_see_takes_none_of_its_room():
    """Fixed limits are applied to what is left once other delegates' work is filtered out."""

    def main_script(_, messages):
        words = last(messages)
        return [call("send", words, to=words[5:])] if words.startswith("send ") else "Noted."

    def script(_, messages):
        told = said(messages)
        steps = sum(text == "look()" for text in told)
        return [call("look", f"l{steps}")] if "Go A" in told and steps < 30 else "done"

    fold = PROFILES["inkeep"].fold.model_copy(update={"writer": "log"})
    memory = Refold(profile=PROFILES["inkeep"].model_copy(update={"fold": fold}))
    main_model, model = Scripted(main_script), Scripted(script)
    main = agent_with(memory, main_model, name="main")
    clerk = agent_with(memory, model, name="clerk")

    @main.tool_plain
    async def send(to: str) -> str:
        return (await clerk.run(f"Go {to}")).output

    @clerk.tool_plain
    def look() -> str:
        return "seen by A " * 400

    for nth in range(20):
        await main.run(f"top {nth}", conversation_id="c")
    await main.run("send A", conversation_id="c")
    await main.run("send B", conversation_id="c")
    [its] = [texts for texts in model.texts if "Go B" in texts]
    assert [text for text in its if text.startswith("top ")] == [f"top {nth}" for nth in range(20)]
    assert not any("seen by A" in text for text in its)
    assert its[-1] == "Go B"
