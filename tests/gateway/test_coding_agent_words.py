"""Whose words are whose behind the gateway: in folds, titles, and what the lab reads."""

import asyncio
import json
import subprocess
import sys

import pytest
from coding_agents import Agent, bench, scripted
from gateway_world import PATHS

from refold.lab.session_files import read_session_file
from refold.log import export_session
from refold.testing.upstream import Call, Reply
from refold.wire.fingerprint import users_words

REMINDER = "<system-reminder>\nNever mention the blue whale.\n</system-reminder>"
CALLS = 30
LONG = "what the tool found in this file, line by line. " * 60


def edits(nth):
    arguments = {"file_path": f"src/part_{nth}.py", "old_string": "a", "new_string": "b"}
    return Call(f"toolu_01Kq7ZxV{nth:04d}bYpM3rTs", "Edit", arguments)


def answers():
    return [Reply("", (edits(nth),), thought=f"Step {nth}.") for nth in range(CALLS)]


@pytest.mark.parametrize("path", PATHS)
async def test_a_fold_quotes_the_user_and_promises_nothing_that_the_gateway_lacks(path):
    async with bench(scripted(answers()), window=14_000) as b:
        agent = Agent(b, path, result=lambda _: LONG)
        await agent.say(f"{REMINDER}\nMove every part to its new place.")
        await agent.say(f"{REMINDER}\nAnd now tell me what you did.")
        sent = b.upstream.got[-1].raw.decode()
        [fold] = [one for one in texts_of(b.upstream.got[-1].body) if "folded here" in one]
        assert "Move every part to its new place." in sent
        assert "blue whale" not in fold
        for promise in ("read again", "session's log", "recall"):
            assert promise not in fold
        names = fold.partition("Names in use")[2]
        assert "src/part_" in fold
        for key in ("file_path", "old_string", "new_string"):
            assert key not in names


def texts_of(value):
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from texts_of(one)
        case list():
            for one in value:
                yield from texts_of(one)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mend the door.", "Mend the door."),
        (f"{REMINDER}\nMend the door.", "Mend the door."),
        (f"Mend the door.\n\n{REMINDER}", "Mend the door."),
        ("<current_datetime>2026-11-17</current_datetime>\n\nMend it.", "Mend it."),
        ("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", ""),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>", ""),
        (
            "<task>\nMend it.\n</task>\n<environment_details>\nx\n</environment_details>",
            "Mend it.",
        ),
        ("<bash-stdout>a.py</bash-stdout><bash-stderr>no b.py</bash-stderr>", ""),
        ("<bash-input>ls</bash-input>\nMend it.", "Mend it."),
        ("<local-command-stdout>Set model to x</local-command-stdout>", ""),
        (
            "<command-name>/plan</command-name>\n<command-args>Mend it.</command-args>",
            "Mend it.",
        ),
        ("[Request interrupted by user for tool use]", ""),
        ("Base directory for this skill: /x/.claude/skills/y\n\nBe kind.", ""),
        ("<div>\nWhy is this not centered?\n</div>", "<div>\nWhy is this not centered?\n</div>"),
        ("Is a < b, and <T> a type?", "Is a < b, and <T> a type?"),
        ("<system-reminder>never closed", "<system-reminder>never closed"),
    ],
)
def test_what_a_harness_puts_into_a_users_message_is_not_the_users(text, words):
    assert users_words(text) == words


EXAMPLES = [
    {"role": "user", "content": "Change get_factorial() to use math.factorial"},
    {"role": "assistant", "content": "To make this change I need to modify mathweb/flask/app.py."},
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("before", "said"),
    [
        ([], "<current_datetime>2026-11-17T10:00</current_datetime>\n\nMend the door."),
        ([], f"{REMINDER}\nMend the door.\n{REMINDER}"),
        (EXAMPLES, "Mend the door."),
        ([{"role": "user", "content": REMINDER}], "Mend the door."),
    ],
)
async def test_a_title_is_the_users_words(path, before, said):
    async with bench(scripted([Reply("Done.")])) as b:
        agent = Agent(b, path, history=[*before])
        await agent.say(said)
        [session] = await b.sessions()
        assert (await b.store.log().info(session)).title == "Mend the door."


@pytest.mark.parametrize("path", PATHS)
async def test_the_lab_reads_what_the_gateway_logged(path, tmp_path):
    async with bench(scripted(answers()), window=14_000) as b:
        agent = Agent(b, path, result=lambda _: LONG)
        await agent.say("Move every part to its new place.")
        await agent.say("And now tell me what you did.")
        [session] = await b.sessions()
        lines = [line async for line in export_session(b.store.log(), session)]
    file = tmp_path / "session.jsonl"
    file.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
    [recording] = read_session_file(file).recordings
    messages = [json.loads(one) for one in recording.payloads]
    kinds = [part["part_kind"] for message in messages for part in message["parts"]]
    assert kinds.count("tool-call") == kinds.count("tool-return") == CALLS
    assert kinds.count("user-prompt") == 2
    assert kinds.count("thinking") == CALLS
    command = [sys.executable, "-m", "refold.cli", "lab", str(file), "--json"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["policies"]
