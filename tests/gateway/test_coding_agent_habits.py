"""Coding agents rewrite what they send back: one conversation stays one session all the same.

Each habit was seen in a real agent, and stands here alone, before a running gateway.
"""

import json
import re

import pytest
from coding_agents import KEYS, Agent, bench, scripted, with_arguments, without_blank_text
from gateway_world import PATHS, RESPONSES

from refold.log import CODEC, Message, Note
from refold.testing.upstream import Call, Reply

FOLDER = "/home/me/project"
CALLS = 12


def call(nth, **arguments):
    return Call(f"toolu_01Kq7ZxV{nth:04d}bYpM3rTs", "Edit" if arguments else "Bash", arguments)


def edits(nth):
    return call(nth, file_path=f"src/{nth}.py", old_string="a  ", new_string=f"b{nth}")


def commands(nth):
    return call(nth, command=f"cd {FOLDER} && pytest tests/test_{nth}.py")


def spaced(nth):
    return call(nth, file_path=f"{nth}.md", content=f"# Title {nth}   \n\ntext \n")


def with_default(given):
    return {**given, "replace_all": False}


def without_folder(given):
    return {key: one.replace(f"cd {FOLDER} && ", "") for key, one in given.items()}


def trimmed(given):
    return {
        key: "\n".join(line.rstrip() for line in one.splitlines()) for key, one in given.items()
    }


HABITS = {
    "adds a default argument": (edits, with_default, ""),
    "strips the change of folder": (commands, without_folder, ""),
    "trims trailing spaces": (spaced, trimmed, ""),
    "drops blank text": (edits, None, "\n\n"),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("habit", HABITS)
async def test_a_habit_of_a_client_begins_no_new_session(path, habit):
    made, change, text = HABITS[habit]
    answers = [Reply(text, (made(nth),)) for nth in range(CALLS)]
    rewrite = with_arguments(path, change) if change else without_blank_text(path)
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path, rewrite)
        await agent.say("Fix the failing tests, please.")
        await agent.say("And now the documentation.")
        assert len(set(agent.served_by)) == 1
        assert await b.sessions() == [agent.served_by[0]]
        assert b.faults == []
        assert len(b.upstream.got) == CALLS + 2


@pytest.mark.parametrize("path", PATHS)
async def test_what_the_client_sends_back_is_what_goes_on_and_the_log_says_that_it_differs(path):
    answers = [Reply("", (edits(nth),)) for nth in range(4)]
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path, with_arguments(path, with_default))
        await agent.say("Fix the failing tests, please.")
        assert b.upstream.got[-1].raw.count(b"replace_all") == 4
        [session] = await b.sessions()
        entries = [CODEC.decode(one) for one in await b.store.log().read(session)]
        notes = [one.data for one in entries if isinstance(one, Note) and "entries" in one.data]
        said = [one.payload for one in entries if isinstance(one, Message)]
        assert not any(b"replace_all" in one for one in said)
        differing = [seq for note in notes for seq in note["entries"]]
        assert len(differing) == len(set(differing)) == 4
        assert all(entries[seq - 1].payload in said for seq in differing)


def cleared(body, path):
    """The history with all results but the newest cleared, as agents do to save tokens."""
    key = KEYS[path]
    body = json.loads(json.dumps(body))
    for message in body[key][:-1]:
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_result":
                block["content"] = "[Old tool result content cleared]"
        if message.get("role") == "tool":
            message["content"] = "[Old tool result content cleared]"
        if message.get("type") == "function_call_output":
            message["output"] = "[Old tool result content cleared]"
    return body


@pytest.mark.parametrize("path", PATHS)
async def test_old_results_that_a_client_clears_are_the_same_results(path):
    answers = [Reply("", (edits(nth),)) for nth in range(CALLS)]
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path)
        whole = agent.body
        agent.body = lambda: cleared(whole(), path)
        await agent.say("Fix the failing tests, please.")
        assert await b.sessions() == [agent.served_by[0]]
        assert len(set(agent.served_by)) == 1
        assert b.upstream.got[-1].raw.count(b"cleared") == CALLS - 1


@pytest.mark.parametrize("path", PATHS)
async def test_a_resumed_agent_has_other_reminders_and_the_same_session(path):
    answers = [Reply("", (edits(nth),)) for nth in range(4)]
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path)
        reminder = "<system-reminder>\nToday is Monday.\n</system-reminder>\n"
        await agent.say(f"{reminder}Fix the failing tests, please.")
        later = agent.history[0]["content"].replace("Monday", "Tuesday")
        agent.history[0] = {"role": "user", "content": later}
        await agent.say("Go on, please.")
        assert await b.sessions() == [agent.served_by[0]]
        assert b"Monday" not in b.upstream.got[-1].raw


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ["call_0", "call_Qw3rTy7uIoP0aSdF"])
@pytest.mark.parametrize("rewrites", [False, True])
async def test_an_id_that_every_answer_has_identifies_nothing(path, name, rewrites):
    """Some servers name every call alike: conversations with the same opening stay apart."""

    def reply(got):
        nth = got.raw.count(b"result of") + 1
        which = re.search(rb"agent (\d)", got.raw)[1].decode()
        if nth > 5:
            return Reply(f"Agent {which} is done.")
        return Reply("", (Call(name, "Edit", {"file_path": f"{which}/{nth}.py", "new": "b"}),))

    async with bench(reply) as b:
        b.upstream.checker = None  # a provider that gives such ids takes them too
        change = with_arguments(path, with_default) if rewrites else None
        agents = [Agent(b, path, change, instructions=f"You are agent {nth}.") for nth in range(3)]
        for agent in agents:
            agent.history.append({"role": "user", "content": "Fix the failing tests, please."})
        for _ in range(6):
            for agent in agents:
                answer = await agent.send()
                agent.history += [*answer, *agent.results(answer)]
        sessions = [set(agent.served_by) for agent in agents]
        if not rewrites:
            assert [len(one) for one in sessions] == [1, 1, 1]
        # A rewritten call whose id says nothing may begin a session anew, once.
        assert all(len(one) <= 2 for one in sessions)
        assert len(set.union(*sessions)) == sum(map(len, sessions))
        for nth, agent in enumerate(agents):
            last = [one for one in b.upstream.got if f"agent {nth}".encode() in one.raw][-1]
            others = {f"{other}/1.py".encode() for other in range(3)} - {f"{nth}/1.py".encode()}
            assert not any(other in last.raw for other in others)
            assert agent.served_by[-1] in await b.sessions()


@pytest.mark.parametrize("path", PATHS)
async def test_going_back_and_on_is_a_fork(path):
    answers = [Reply("", (edits(nth),)) for nth in range(4)]
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path, with_arguments(path, with_default))
        await agent.say("Fix the failing tests, please.")
        first = len(agent.history)
        await agent.say("Now the documentation.")
        agent.history = agent.history[:first]
        await agent.say("No: now the changelog.")
        one, other = dict.fromkeys(agent.served_by)
        assert (await b.store.log().info(other)).forked_from == one


SUMMARY = """<analysis>
The user wants the failing tests fixed, and I looked at twelve files on the way to it.
</analysis>
<summary>
1. The user asked to fix the failing tests in the project, and nothing else.
2. Twelve files were edited; the suite of the parser still fails in two places.
3. Next: look at the tokenizer's handling of empty input, then run the suite again.
</summary>"""
SHORT = SUMMARY.split("<summary>\n")[1].removesuffix("\n</summary>")
COMPACTIONS = {
    "in the user's place": [
        {
            "role": "user",
            "content": f"This session is continued from an earlier one.\nSummary:\n{SHORT}\nGo on.",
        }
    ],
    "in the model's place": [
        {"role": "user", "content": "What did we do so far?"},
        {"role": "assistant", "content": SHORT},
        {"role": "user", "content": "Continue if you have next steps."},
    ],
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("compaction", COMPACTIONS)
@pytest.mark.parametrize("aside", [False, True])
async def test_a_client_that_compacts_its_history_keeps_its_session(path, compaction, aside):
    """The request for a summary may be another agent's, with instructions of its own."""
    script = [Reply("", (edits(nth),)) for nth in range(6)]
    script += [Reply("Half is done."), Reply(SUMMARY)]
    script += [Reply("", (edits(nth),)) for nth in range(10, 14)]
    async with bench(scripted(script)) as b:
        agent = Agent(b, path, with_arguments(path, with_default))
        agent.extra = {"tools": [tool(path, "Edit")]}
        await agent.say("Fix the failing tests, please.")
        if aside:
            agent.instructions, main = "Summarize conversations.", agent.instructions
            agent.extra = {"tools": [tool(path, "Read")]}
        await agent.say("Write a detailed summary of this conversation.")
        if aside:
            agent.instructions = main
            agent.extra = {"tools": [tool(path, "Edit")]}
        agent.history = json.loads(json.dumps(COMPACTIONS[compaction]))
        sent = len(agent.served_by)
        answer = await agent.send()
        agent.history += [*answer, *agent.results(answer)]
        await agent.say("Go on.")
        conversation = agent.served_by[: sent - 1] + agent.served_by[sent:]
        assert len(set(conversation)) == 1
        assert len(await b.sessions()) == (2 if aside else 1)
        assert b.faults == []
        assert b"Fix the failing tests, please" not in b.upstream.got[-1].raw


def tool(path, name):
    schema = {"type": "object", "properties": {}}
    match path:
        case "/v1/chat/completions":
            return {"type": "function", "function": {"name": name, "parameters": schema}}
        case "/v1/responses":
            return {"type": "function", "name": name, "parameters": schema}
        case _:
            return {"name": name, "input_schema": schema}


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_that_leaves_out_its_oldest_messages_keeps_its_session(path):
    answers = [Reply("", (edits(nth),)) for nth in range(CALLS)]
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path)
        whole = agent.body

        def windowed():
            body = whole()
            history = body[KEYS[path]]
            lead = [one for one in history if one.get("role") == "system"]
            history = history[len(lead) :]
            note = {"role": "user", "content": "[Earlier messages were left out.]"}
            body[KEYS[path]] = [*lead, *history[:1], note, *history[-6:]]
            return body if history[7:] else whole()

        agent.body = windowed
        await agent.say("Fix the failing tests, please.")
        assert await b.sessions() == [agent.served_by[0]]


@pytest.mark.parametrize("path", PATHS)
async def test_a_sub_agent_has_a_session_of_its_own_that_names_its_call(path):
    prompt = "Find every place where the tokenizer is called, and report."
    task = Call("toolu_01Kq7ZxVmainbYpM3rTs", "Task", {"prompt": prompt, "kind": "search"})
    script = {
        "main": [Reply("", (task,)), Reply("It is called in two places.")],
        "sub": [Reply("", (edits(1),)), Reply("Two places.")],
    }
    which = {"main": 0, "sub": 0}

    def reply(got):
        name = "sub" if b"You search." in got.raw else "main"
        which[name] += 1
        return script[name][which[name] - 1]

    async with bench(reply) as b:
        main = Agent(b, path)
        main.history.append({"role": "user", "content": "Where is the tokenizer called?"})
        answer = await main.send()
        sub = Agent(b, path, instructions="You search.")
        await sub.say(f"<system-reminder>\nToday is Monday.\n</system-reminder>\n{prompt}")
        main.history += [*answer, *main.results(answer)]
        await main.send()
        assert len(set(main.served_by)) == len(set(sub.served_by)) == 1
        entries = [CODEC.decode(one) for one in await b.store.log().read(sub.served_by[0])]
        note = next(one for one in entries if isinstance(one, Note))
        assert note.data == {
            "gateway": "delegated",
            "session": main.served_by[0],
            "call": task.id,
        }
        info = await b.store.log().info(sub.served_by[0])
        assert info.origin.parent == main.served_by[0]


@pytest.mark.parametrize("path", PATHS)
async def test_reminders_in_a_message_of_their_own_may_change(path):
    answers = [Reply("", (edits(nth),)) for nth in range(4)]
    async with bench(scripted(answers)) as b:
        agent = Agent(b, path)
        context = "<environment_context>\n  <date>Monday</date>\n</environment_context>"
        agent.history.append({"role": "user", "content": context})
        await agent.say("Fix the failing tests, please.")
        later = context.replace("Monday", "Tuesday")
        agent.history[0] = {"role": "user", "content": later}
        await agent.say("Go on, please.")
        assert await b.sessions() == [agent.served_by[0]]
        assert b"Monday" not in b.upstream.got[-1].raw


async def test_an_answer_is_known_by_its_message_id():
    """The provider's id stays, though the client shortens the words."""
    answers = [Reply(f"This is answer {nth}. It goes on for a while.") for nth in range(6)]

    def shortened(items):
        for item in items:
            for piece in item["content"]:
                piece["text"] = piece["text"].split(".")[0]
        return items

    async with bench(scripted(answers)) as b:
        agent = Agent(b, RESPONSES, shortened)
        for turn in range(5):
            await agent.say(f"Say something, the {turn}th time.")
        assert await b.sessions() == [agent.served_by[0]]
        assert b"for a while" not in b.upstream.got[-1].raw


@pytest.mark.parametrize("path", PATHS)
async def test_a_history_with_no_words_of_the_user_gets_into_no_other_session(path):
    """What a harness says is no proof: an answer in the same words is not the same answer."""
    async with bench(scripted([], key=lambda _: "all")) as b:
        first, second = Agent(b, path), Agent(b, path)
        await first.say("<data-set-one>\n1, 2, 3\n</data-set-one>")
        answer = first.history[-1]
        second.history = [
            {"role": "user", "content": "<data-set-two>\n4, 5, 6\n</data-set-two>"},
            answer,
        ]
        await second.say("And now?")
        await first.say("And what else?")
        assert len(await b.sessions()) == 2
        assert len(set(first.served_by)) == len(set(second.served_by)) == 1
