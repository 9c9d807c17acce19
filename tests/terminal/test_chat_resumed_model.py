"""A session comes back with the model that answered in it, however it is resumed."""

import asyncio
import shlex

import pytest
from terminal.chatting_in import is_idle, piped
from terminal.provider import Provider

from refold.cli.chat.endpoint import Endpoint, EndpointNotes
from refold.log import Author, Opened
from refold.stores import SqliteStore


@pytest.fixture
def other():
    """Another provider, which the environment names: who answers where nobody says otherwise."""
    made = Provider(model="other", otherwise="I am the other one.")
    made.start()
    yield made
    made.stop()


def environment(talk, other):
    return {
        "REFOLD_STORE": f"sqlite:///{talk.store}",
        "REFOLD_MODEL": "openai:other",
        "OPENAI_BASE_URL": other.url,
        "OPENAI_API_KEY": "sk-nothing",
    }


def come_back(talk, words, other):
    """Start a chat in an environment that names the other provider; the first screen at rest."""
    line = words if isinstance(words, str) else shlex.join(["refold", "chat", *words])
    talk.terminal.start(line, 120, 40, environment(talk, other))
    return talk.terminal.wait_for_or_end(is_idle)


def test_the_line_that_says_how_to_come_back_resumes_the_model_and_its_address(talk, other):
    talk.start("-m", "local:scripted")
    talk.say("Hello", "You said: Hello")
    hint = talk.leave()
    shown = come_back(talk, f"refold chat {hint}", other)
    assert f"local:scripted  (as before, at {talk.provider.url})" in shown
    talk.say("Again", "You said: Again")
    assert talk.provider.asked[-1].body["model"] == "scripted"
    assert not other.received
    assert "from now on" not in talk.terminal.everything()
    # It is in the log, where people read it, and every export has it.
    exported = piped(talk, "export", hint.split()[1])
    assert f"Answered by local:scripted at {talk.provider.url}." in exported.stdout
    assert "sk-nothing" not in exported.stdout


def test_every_way_to_resume_a_session_resumes_its_model(talk, other):
    env = environment(talk, other)
    served = ("-m", "local", "--base-url", talk.provider.url)
    assert piped(talk, "chat", "here", *served, "-p", "One").returncode == 0
    assert piped(talk, "chat", "there", "-p", "Two", env=env).stdout == "I am the other one.\n"
    asked = len(other.received)
    # By name, for one prompt.
    again = piped(talk, "chat", "--resume", "here", "-p", "Three", env=env)
    assert (again.stdout, again.stderr) == ("You said: Three\n", "")
    # From the list.
    talk.terminal.start(["refold", "chat", "--resume"], 120, 40, env)
    talk.terminal.wait_for("type to search")
    talk.terminal.type("You said")
    talk.terminal.wait_for("1 of 2")
    talk.terminal.press("Enter")
    talk.terminal.wait_for("as before")
    talk.idle()
    talk.say("Four", "You said: Four")
    # From within another session, there and back.
    talk.say("/sessions there", f"openai:other at {other.url} answers here, as before.")
    talk.say("Five", "I am the other one.")
    talk.say("/resume here", f"local:scripted at {talk.provider.url} answers here, as before.")
    talk.say("Six", "You said: Six")
    assert len(other.received) == asked + 1


def test_another_model_that_is_asked_for_answers_and_is_said_to(talk, other):
    served = ("-m", "local", "--base-url", talk.provider.url)
    assert piped(talk, "chat", "here", *served, "-p", "One").returncode == 0
    shown = come_back(talk, ["--resume", "here", "-m", "openai:other"], other)
    line = f"openai:other at {other.url} answers here from now on. "
    assert f"{line}Until now it was local:scripted at {talk.provider.url}." in " ".join(
        shown.split()
    )
    talk.say("Two", "I am the other one.")
    talk.type("/quit")
    assert talk.terminal.wait_until_ended() == 0
    # That is the session's model from then on.
    again = piped(talk, "chat", "--resume", "here", "-p", "Three", env=environment(talk, other))
    assert (again.stdout, again.stderr) == ("I am the other one.\n", "")
    changed = piped(talk, "chat", "--resume", "here", *served, "-p", "Four")
    assert changed.stdout == "You said: Four\n"
    assert "answers here from now on" in changed.stderr


def test_an_address_that_does_not_answer_is_named_and_nobody_else_is_asked(talk, other):
    served = ("-m", "local", "--base-url", talk.provider.url)
    assert piped(talk, "chat", "here", *served, "-p", "One").returncode == 0
    assert piped(talk, "chat", "there", "-p", "Two", env=environment(talk, other)).returncode == 0
    talk.provider.stop()
    asked = len(other.received)
    come_back(talk, ["--resume", "here"], other)
    shown = " ".join(talk.terminal.everything().split())
    assert f"Session 'here' was answered by local:scripted at {talk.provider.url}" in shown
    assert f"No model server answers at {talk.provider.url}." in shown
    assert "Start it" in shown
    assert "refold chat --resume here -m PROVIDER:MODEL" in shown
    # In a chat it is a question, and nothing is not an answer.
    come_back(talk, ["--resume", "there"], other)
    talk.type("/sessions here")
    talk.terminal.wait_for(f"Let openai:other at {other.url} answer there?")
    talk.terminal.press("Escape")
    talk.terminal.wait_for("You stay where you are")
    assert len(other.received) == asked


def test_a_model_without_its_key_is_named_and_nobody_else_is_asked(talk, other):
    asyncio.run(noted(talk, "here", "anthropic:claude-sonnet-4-5"))
    done = piped(talk, "chat", "--resume", "here", "-p", "Two", env=environment(talk, other))
    assert done.returncode == 1
    assert "was answered by anthropic:claude-sonnet-4-5" in done.stderr
    assert "export ANTHROPIC_API_KEY=" in done.stderr
    assert not other.received


async def noted(talk, session, model):
    """A session that says that it was answered by a model."""
    async with SqliteStore(talk.store) as store:
        log = store.log()
        draft = Author().draft(Opened("pydantic-ai", "balanced"))
        await log.append(session, [draft], expected=0)
        await EndpointNotes().note(log, session, Endpoint(model, "https://api.anthropic.com"))


def test_a_password_in_an_address_is_not_kept(talk):
    url = talk.provider.url.replace("://", "://someone:hunter2secret@")
    done = piped(talk, "chat", "here", "-m", "local", "--base-url", url, "-p", "One")
    assert done.returncode == 0, done.stderr
    lines = piped(talk, "export", "here").stdout.splitlines()
    [note] = [line for line in lines if "Answered by" in line]
    assert talk.provider.url in note
    assert "hunter2" not in note


def test_only_a_session_that_there_is_can_be_come_back_to(talk):
    talk.start("never-said")
    talk.terminal.press("C-c")
    talk.terminal.wait_for("Press Ctrl-C again to leave.")
    talk.terminal.press("C-c")
    assert talk.terminal.wait_until_ended() == 0
    assert "Come back with" not in talk.terminal.everything()
