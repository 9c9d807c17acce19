"""The profile `cowagent` on the surfaces that people use.

What the model was sent decides, not what the log holds.
"""

# ruff: noqa: F811, F401 - fixtures are imported

import json
from contextlib import suppress
from itertools import chain

import pytest
from pydantic_ai.exceptions import UsageLimitExceeded
from refold_commands import quick, terminal
from surfaces import (
    capability,
    chat,
    passing_service,
    provider,
    service,
    short_chat,
    surface,
    texts,
)
from terminal.pieces import Call, Gate, Pause, Refuse

from refold.log import FoldCompleted, FoldFailed, FoldStarted
from refold.memory import Board, Branch
from refold.stores import open_store

COWAGENT = "cowagent"
SUMMARY = "[Summary of "
SYSTEM = ("system", "developer")
LINES = "a" * 99 + "\n"
ON = {"memory.daily": True, "agent_max_context_turns": 20}
"""What switches the daily file on where the profile does not."""
_TOO_LONG = {"message": "Your input exceeds the context window of this model.", "code": None}
REFUSAL = Refuse(400, json.dumps({"error": {**_TOO_LONG, "type": "invalid_request_error"}}))


def prompts(count: int, first: int = 0, words: int = 3) -> list[str]:
    return [f"Prompt {nth}: {'and so on ' * words}." for nth in range(first, first + count)]


def turns(asked) -> list[str]:
    return [text for text in texts(asked) if "Prompt " in text and not text.startswith("You said")]


def tokens(asked) -> int:
    said = (one for one in asked.messages if one["role"] not in ("system", "developer"))
    return sum(len(json.dumps(one)) // 4 for one in said)


def results(asked) -> list[str]:
    return [one["content"] for one in asked.messages if one["role"] == "tool"]


@pytest.mark.req("R029", "R030", "R064")
async def test_the_oldest_half_is_trimmed_before_the_request_that_has_too_many_turns(
    surface, provider
):
    await surface.play(prompts(24), profile=COWAGENT)
    sent = [turns(asked) for asked in provider.asked]
    assert [len(one) for one in sent] == [*range(1, 21), 11, 12, 13, 14]
    assert sent[20][0].endswith(prompts(1, 10)[0])


@pytest.mark.req("R031")
async def test_no_request_has_more_tokens_than_the_limit(surface, provider):
    said = prompts(30, words=150)
    await surface.play(said, profile=COWAGENT, agent_max_context_tokens=6_000)
    assert 5_000 < max(map(tokens, provider.asked)) <= 6_600  # as the provider counts them
    assert all(turns(one)[-1] == text for one, text in zip(provider.asked, said, strict=True))


@pytest.mark.req("R029", "R064", "R093")
@pytest.mark.parametrize("program", ["short_chat", "capability"])
async def test_in_short_processes_requests_are_trimmed_and_every_summary_is_finished(
    request, provider, program
):
    provider.summary = [Pause(0.5), "They spoke of numbers."]
    played = request.getfixturevalue(program)
    if program == "capability":
        await played.play(prompts(20), profile=COWAGENT)
    else:
        played.short = False
        await played.play(prompts(20), profile=COWAGENT)
        played.short = True
    await played.play_apart(prompts(6, 20), profile=COWAGENT, restore="replay")
    sent = [turns(asked) for asked in provider.asked]
    assert [len(one) for one in sent[20:]] == [11, 12, 13, 14, 15, 16]
    assert not any(text.startswith(SUMMARY) for text in texts(provider.asked[20]))
    for asked in provider.asked[21:]:
        [first, *_] = turns(asked)
        assert (
            first == f"{SUMMARY}20 earlier messages]\nThey spoke of numbers.\n\n{prompts(1, 10)[0]}"
        )
    [started] = await played.entries(FoldStarted)
    [ended] = await played.entries(FoldCompleted, FoldFailed)
    assert isinstance(ended, FoldCompleted)
    assert ended.fold == started.fold
    assert len(provider.folds) == 1


@pytest.mark.req("R064", "R093")
async def test_a_summary_that_a_chat_leaves_behind_is_finished_by_the_next(chat, provider):
    provider.summary = [Gate("summary"), "They spoke of numbers."]
    await chat.play(prompts(21), profile=COWAGENT)
    assert await chat.entries(FoldCompleted, FoldFailed) == []
    provider.release("summary", 9)
    for nth in (21, 22):
        await chat.play(prompts(1, nth), profile=COWAGENT, restore="replay")
    [started] = await chat.entries(FoldStarted)
    [ended] = await chat.entries(FoldCompleted, FoldFailed)
    assert isinstance(ended, FoldCompleted)
    assert ended.fold == started.fold
    assert turns(provider.asked[-1])[0].startswith(f"{SUMMARY}20 earlier messages]")


@pytest.mark.req("R018", "R019")
async def test_a_result_of_20001_characters_is_cut_to_both_ends_from_the_next_turn_on(
    surface, provider
):
    surface.write("a.txt", LINES * 200 + "a")
    await surface.play(["read a.txt", "And now?"], profile=COWAGENT)
    [during], [later] = (results(asked) for asked in provider.asked[1:])
    assert len(during) >= 20_001
    assert later == f"\n[…truncated, {len(during)} chars total…]\n".join(
        [during[:10_000], during[-10_000:]]
    )


@pytest.mark.req("R081", "R124")
async def test_a_result_of_10001_characters_is_cut_after_a_refusal(surface, provider):
    names = ["a.txt", "b.txt", "b.txt", "b.txt"]
    reads = [(turn, "Read.") for turn in ([Call("read_file", {"path": name})] for name in names)]
    provider.script = [*chain(*reads), [REFUSAL]]
    surface.write("a.txt", LINES * 100 + "a")
    surface.write("b.txt", LINES * 190)
    await surface.play([*names, "And now?"], profile=COWAGENT)
    [refused, *longer], [cut, *also] = (results(asked) for asked in provider.asked[8:])
    assert 10_001 <= len(refused) < 10_033 < min(map(len, longer))
    assert [len(text) for text in also] == [10_000] * 3
    assert len(cut) == 10_000
    start, end = cut.split(f"\n[…truncated, {len(refused)} chars total…]\n")
    assert (refused.startswith(start), refused.endswith(end)) == (True, True)
    assert len(start) - len(end) in {0, 1}


@pytest.mark.req("R007", "R121")
@pytest.mark.parametrize(("settings", "steps"), [({}, 15), ({"agent_max_steps": 3}, 3)])
async def test_a_turn_has_so_many_requests(request, provider, settings, steps):
    for played in map(request.getfixturevalue, ("chat", "capability")):
        provider.received.clear()
        provider.otherwise = [Call("read_file", {"path": "a.txt"})]
        played.write("a.txt", "Well.")
        with suppress(UsageLimitExceeded):
            await played.play(["Read on."], profile=COWAGENT, **settings)
        assert len(provider.asked) == steps
        provider.otherwise = "Done."
        await played.play(["Enough."], profile=COWAGENT, **settings)
        assert texts(provider.asked[-1])[-1] == "Enough."


@pytest.mark.req("R113", "R119", "R120", "R121")
async def test_config_shows_the_values_of_the_chosen_profile(chat):
    names = ["agent_max_context_tokens", "agent_max_context_turns", "agent_max_steps"]
    await chat.play([f"/config {name}" for name in names], profile=COWAGENT)
    for name, value in zip(names, ["50,000", "20", "15"], strict=True):
        assert f"{name} is {value}" in chat.printed
    changes = ["80000", "30", "10"]
    said = [f"/config {name} {value}" for name, value in zip(names, changes, strict=True)]
    await chat.play(said, profile=COWAGENT)
    for change in ("80,000 (was 50,000)", "30 (was 20)", "10 (was 15)"):
        assert change in chat.printed


@pytest.mark.req("R064", "R093")
@pytest.mark.parametrize(("profile", "settings"), [(COWAGENT, {}), ("balanced", ON)])
async def test_what_is_trimmed_is_noted_in_the_daily_file(surface, provider, profile, settings):
    provider.summary = "They spoke of numbers."
    await surface.play(prompts(24), profile=profile, **settings)
    assert surface.notes.startswith("# Daily Memory: ")
    assert "\n## Trimmed Context (" in surface.notes
    if profile == COWAGENT and getattr(surface, "key", "") != "pass":
        assert "They spoke of numbers." in surface.notes
    else:  # the log itself writes it
        assert '- The user: "Prompt ' in surface.notes


@pytest.mark.req("R093")
async def test_other_profiles_write_no_daily_file(surface):
    await surface.play(prompts(8), profile="balanced", agent_max_context_turns=5)
    assert surface.notes == ""


@pytest.mark.req("R081", "R093")
async def test_all_of_a_refused_request_is_noted(surface, provider):
    provider.script = ["One.", "Two.", [REFUSAL]]
    provider.summary = "They spoke of numbers."
    await surface.play(prompts(3), profile=COWAGENT)
    assert "\n## Context Overflow Recovery\n" in surface.notes
    assert "numbers" in surface.notes or "Prompt 1: " in surface.notes


def searches(asked):
    """A model that looks into its memory when it is asked what was chosen."""
    if texts(asked)[-1] == "What did we choose?":
        assert "memory_search" in {tool["function"]["name"] for tool in asked.body["tools"]}
        return [Call("memory_search", {"query": "database chosen"})]
    return "Well."


@pytest.mark.req("R094")
@pytest.mark.parametrize("program", ["chat", "capability"])
async def test_after_a_clear_the_model_finds_what_the_notes_hold(request, provider, program):
    played = request.getfixturevalue(program)
    provider.otherwise, provider.summary = searches, "The database that was chosen is SQLite."
    said = [*prompts(22), "/context clear", "What did we choose?"]
    await played.play(said[:-2], profile=COWAGENT)
    await played.play(said[-2:], profile=COWAGENT)
    before, after = provider.asked[-2:]
    assert turns(before) == []  # forgotten
    [found] = results(after)
    assert "The database that was chosen is SQLite." in found


@pytest.mark.req("R094")
async def test_memory_search_covers_the_board_too(capability, provider):
    board = Branch("repository", "main")
    capability.options["board"] = board
    async with open_store(capability.store) as store:
        await Board(store.log(), board).add("The database was chosen in May: SQLite.")
    provider.otherwise = searches
    await capability.play(["What did we choose?"], profile=COWAGENT)
    assert "chosen in May: SQLite" in results(provider.asked[-1])[0]


async def test_without_the_setting_no_memory_search_is_offered(surface, provider):
    await surface.play(["Hello."], profile="balanced")
    tools = provider.asked[-1].body.get("tools") or []
    assert "memory_search" not in {tool["function"]["name"] for tool in tools}


@pytest.mark.req("R098", "R099")
@pytest.mark.parametrize("program", ["chat", "short_chat", "capability"])
@pytest.mark.parametrize(("most", "restored"), [(20, 3), (30, 5)])
async def test_after_a_restart_the_newest_turns_are_restored_as_text(
    request, provider, program, most, restored
):
    played = request.getfixturevalue(program)
    settings = {"profile": COWAGENT, "agent_max_context_turns": most}
    played.write("a.txt", "Well.")
    provider.otherwise = _reads
    played.short = False
    await played.play([f"read {nth} a.txt" for nth in range(7)], **settings)
    played.short = program == "short_chat"
    await played.play(["Go on."], **settings)
    conversation = [one for one in provider.asked[-1].messages if one["role"] not in SYSTEM]
    assert {one["role"] for one in conversation} == {"user", "assistant"}
    assert not any(one.get("tool_calls") for one in conversation)
    first = 7 - restored
    assert [one["content"] for one in conversation] == [
        *chain(*((f"read {nth} a.txt", f"Read {nth}.") for nth in range(first, 7))),
        "Go on.",
    ]
    await played.play(["And on."], **settings, restore="replay")
    assert len(turns_of(provider.asked[-1])) == restored + 2  # it goes on from there


def _reads(asked):
    last = asked.messages[-1]
    if last["role"] == "tool":
        return f"Read {asked.prompt.split()[1]}."
    return [Call("read_file", {"path": "a.txt"})] if asked.prompt.startswith("read") else "Yes."


def turns_of(asked) -> list[str]:
    return [one["content"] for one in asked.messages if one["role"] == "user"]


@pytest.mark.req("R098")
@pytest.mark.parametrize("short", [False, True])
async def test_a_chat_goes_on_with_the_newest_session_by_itself(chat, provider, short):
    await chat.play(prompts(2), profile=COWAGENT, session="first")
    chat.short = short
    await chat.play(prompts(1, 2), profile=COWAGENT, session="")
    assert turns(provider.asked[-1]) == prompts(3)
    await chat.play(prompts(1, 3), profile="balanced", session="")
    assert turns(provider.asked[-1]) == prompts(1, 3)
    await chat.play(prompts(1, 4), profile="balanced", session="", auto_restore=True)
    assert turns(provider.asked[-1]) == prompts(2, 3)


async def test_changed_settings_are_no_restart(chat, provider):
    said = [*prompts(6), "/config agent_max_steps 20", *prompts(1, 6)]
    await chat.play(said, profile=COWAGENT)
    assert turns(provider.asked[-1]) == prompts(7)


@pytest.mark.req("R100")
@pytest.mark.parametrize("short", [False, True])
async def test_a_chat_says_once_that_unused_sessions_are_deleted(chat, short):
    chat.short = short
    said = "are deleted"
    await chat.play(["Hello."], profile="balanced")
    assert said not in chat.printed
    await chat.play(["Hello."], profile=COWAGENT, session="t")
    printed = " ".join(chat.printed.split())
    assert "profile cowagent that nobody uses for 30 days are deleted for good" in printed
    assert "refold config retention.days 0" in printed
    await chat.play(["Hello."], profile=COWAGENT, session="t")
    assert said not in chat.printed


@pytest.mark.req("R100")
async def test_a_chat_says_it_when_retention_is_switched_on(chat):
    await chat.play(["Hello.", "/config retention.days 7"], profile="balanced")
    printed = " ".join(chat.printed.split())
    assert "profile balanced that nobody uses for 7 days are deleted for good" in printed


@pytest.mark.req("R100")
async def test_an_agent_logs_once_that_unused_conversations_are_deleted(capability, caplog):
    for _ in range(2):
        await capability.play(["Hello."], profile=COWAGENT)
    said = [record.getMessage() for record in caplog.records if record.name == "refold"]
    assert len(said) == 1
    assert "nobody uses for 30 days" in said[0]
