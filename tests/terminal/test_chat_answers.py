"""Talking: what streams, what is typed meanwhile, what is broken off, and what goes wrong."""

import re

import pytest
from terminal.chatting_in import PROMPT, piped
from terminal.pieces import Cut, Gate, Refuse, Thought

MARKDOWN = """# A heading

Some **bold** and *slanted* words, and `code`.

- one
- two
  - within two

1. at first
2. at last

| city | people |
|------|-------:|
| Bern | 134000 |
| Graz |   9    |

```python
def added(a, b):
    return a + b
```

> said by somebody
"""
HOSTILE = (
    "before \x1b]0;TITLE TAKEN\x07\x1b[2J\x1b[H\x1b[31mred\x1b[0m \x9b2J "
    "\x1bPq#0\x1b\\ \x1b[?1049h\r\b\b after"
)


@pytest.fixture(scope="module")
def chatting(talks):
    """One chat for all tests of this file."""
    return talks()


@pytest.fixture
def chat(chatting):
    """It, on an empty screen and with something said, whatever the tests before did."""
    chatting.provider.script.clear()
    if not chatting.rests():
        chatting.start()
        chatting.say("hello", "You said: hello")
    chatting.terminal.resize(80, 24)
    chatting.terminal.press("C-u")
    chatting.empty()
    return chatting


def test_an_answer_is_seen_before_it_is_complete(chat, snapshot):
    chat.provider.script += [["Once upon a time ", Gate(), "there was an end."]]
    chat.type("Tell me a story")
    chat.provider.wait_for_gate()
    shown = chat.terminal.wait_for("Once upon a time")
    assert "there was an end" not in shown
    assert "writing" in shown.splitlines()[-1]
    chat.provider.release()
    chat.terminal.wait_for("there was an end.")
    chat.idle()
    chat.shows(snapshot)


def test_markdown_is_rendered(chat, snapshot):
    chat.terminal.resize(80, 40)
    chat.empty()
    chat.provider.script += [MARKDOWN]
    shown = chat.say("Show me Markdown", "said by somebody")
    for mark in ("**", "# A", "|--", "```"):
        assert mark not in shown
    chat.shows(snapshot(name="80x40"))
    chat.terminal.resize(200, 60)
    chat.empty()
    chat.provider.script += [MARKDOWN]
    chat.say("Show me Markdown", "said by somebody")
    chat.shows(snapshot(name="200x60"))


@pytest.mark.req("R048")
def test_an_answer_is_interrupted_and_the_next_turn_works(chat, snapshot):
    chat.provider.script += [["I will count: one, two, ", Gate("never"), "three"]]
    chat.type("Count to three")
    chat.provider.wait_for_gate("never")
    chat.terminal.wait_for("one, two,")
    chat.terminal.press("C-c")
    chat.terminal.wait_for("Interrupted.")
    chat.shows(snapshot)
    chat.provider.wait_until(lambda: chat.provider.asked[-1].left)
    chat.say("go on", "You said: go on")
    sent = [one["content"] for one in chat.provider.asked[-1].messages]
    assert sent[-3:] == ["Count to three", "I will count: one, two, ", "go on"]


def test_lines_typed_during_an_answer_wait_their_turn(chat, snapshot):
    chat.provider.script += [["Slowly ", Gate("slow"), "said."]]
    chat.type("first")
    chat.provider.wait_for_gate("slow")
    chat.type("second")
    chat.type("third")
    chat.terminal.type("not sent")
    shown = chat.terminal.wait_for("queued: third")
    assert "queued: second" in shown
    chat.shows(snapshot)
    chat.provider.release("slow")
    chat.terminal.wait_for("You said: third", scrolled=True)
    chat.idle()
    prompts = [asked.prompt for asked in chat.provider.asked[-3:]]
    assert prompts == ["first", "second", "third"]
    assert f"{PROMPT}not sent" in chat.terminal.screen()
    chat.terminal.press("C-c")  # clears the line, and does not leave
    chat.terminal.wait_until_gone("not sent")


def test_several_lines_typed_and_pasted(chat, snapshot):
    chat.terminal.type("one")
    chat.terminal.press("M-Enter")
    chat.terminal.type("two")
    chat.terminal.wait_for(re.compile(r"one\n\s*two"))
    chat.terminal.press("Enter")
    chat.terminal.wait_for("You said: one")
    chat.idle()
    assert chat.provider.asked[-1].prompt == "one\ntwo"
    chat.terminal.paste("def f():\n\treturn 1\n\nf()\n")
    chat.terminal.wait_for("f()")
    assert chat.provider.asked[-1].prompt == "one\ntwo"  # a paste sends nothing by itself
    chat.terminal.press("Enter")
    chat.provider.wait_until(lambda: chat.provider.asked[-1].prompt.startswith("def f"))
    assert chat.provider.asked[-1].prompt.rstrip() == "def f():\n\treturn 1\n\nf()"
    chat.terminal.wait_for("You said: def f():")
    chat.shows(snapshot)


def test_a_slash_opens_the_list_of_commands(chat, snapshot):
    chat.terminal.type("/")
    chat.terminal.wait_for("/context")
    chat.shows(snapshot)
    chat.terminal.type("hist")
    chat.terminal.wait_until_gone("/context")
    chat.terminal.press("Tab", "Enter")
    chat.terminal.wait_for("in what the model sees")
    chat.terminal.type("/contxt")
    chat.terminal.press("Enter")
    chat.terminal.wait_for("Did you mean /context?")


def test_hostile_output_does_not_reach_the_terminal(chat):
    chat.provider.script += [f"First.\n\n{HOSTILE}\n\nLast."]
    shown = chat.say("Attack me", "Last.")
    assert "First." in shown
    assert "before" in shown
    assert "after" in shown
    assert f"{PROMPT}Attack me" in shown
    raw = chat.terminal.screen(colors=True)
    assert "\x1b[31mred" not in raw
    title = chat.terminal.title()
    assert "TITLE TAKEN" not in title


def test_reasoning_is_not_the_answer(chat):
    chat.provider.script += [[Thought("They greet me. "), Gate("thought"), "Good morning."]]
    chat.type("Hello")
    chat.provider.wait_for_gate("thought")
    chat.terminal.wait_for("Thinking")
    chat.provider.release("thought")
    chat.terminal.wait_for("Good morning.")
    assert "They greet me" not in chat.idle()


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (Refuse(429, '{"error": {"message": "slow down"}}'), "Its limit is reached"),
        (Refuse(500, '{"error": {"message": "on fire"}}'), "The fault is the provider's"),
        (Refuse(401, '{"error": {"message": "bad key"}}'), "Check its key"),
    ],
    ids=["429", "500", "401"],
)
def test_an_error_says_what_to_do_and_the_next_turn_works(chat, refusal, said):
    chat.provider.otherwise = [refusal]
    try:
        shown = chat.say("Hello?", said)
    finally:
        chat.provider.otherwise = lambda asked: f"You said: {asked.prompt}"
    assert f"answered {refusal.status}" in shown
    assert "Traceback" not in shown
    chat.run("/retry", "You said: Hello?")
    chat.say("And now?", "You said: And now?")
    sent = [one["content"] for one in chat.provider.asked[-1].messages]
    assert sent[-1].endswith("And now?")
    assert sent[-3].endswith("Hello?")
    assert sent[-2] == "You said: Hello?"


def test_a_connection_that_is_cut_keeps_what_was_said(chat, snapshot):
    chat.provider.script += [["The first half, ", Gate("cut"), Cut(), "the second"]]
    chat.type("Say two halves")
    chat.terminal.wait_for("The first half,")
    chat.provider.release("cut")
    chat.terminal.wait_for("/retry sends your message again")
    chat.shows(snapshot)
    chat.say("once more", "You said: once more")
    sent = [one["content"] for one in chat.provider.asked[-1].messages]
    assert "Say two halves" in sent[-1] or "Say two halves" in sent


def test_resizing_in_mid_answer_leaves_no_garbage(chat):
    words = " ".join(f"word{nth}" for nth in range(60))
    lines = "\n".join(f"- item {nth}" for nth in range(5))
    chat.provider.script += [[f"{words}\n\n", Gate("one"), f"{lines}\n\n", Gate("two"), "The end."]]
    chat.type("Talk at length")
    chat.provider.wait_for_gate("one")
    chat.terminal.wait_for("word59")
    chat.terminal.resize(50, 20)
    chat.settled()
    chat.provider.release("one")
    chat.provider.wait_for_gate("two")
    chat.terminal.wait_for("item 4")
    chat.terminal.resize(120, 30)
    chat.provider.release("two")
    chat.terminal.wait_for("The end.")
    chat.idle()
    seen = chat.terminal.everything()
    seen = seen[seen.rindex(f"{PROMPT}Talk at length") :]
    for one in [f"word{nth}" for nth in range(60)] + [f"item {nth}" for nth in range(5)]:
        assert len(re.findall(rf"\b{one}\b", seen)) == 1, one
    assert seen.count("The end.") == 1
    assert seen.count(PROMPT.strip()) == 2  # what was said, and the input
    assert seen.count("local:scripted") == 1


@pytest.mark.req("R097")
def test_up_brings_back_what_was_typed_after_a_restart(talk, snapshot):
    talk.start()
    talk.say("hello", "You said: hello")
    talk.say("something to remember", "You said: something to remember")
    hint = talk.leave()
    assert "something-to-remember" not in hint  # the session's name is of its first words
    talk.start(*hint.replace("--resume", "-r").split())
    talk.terminal.wait_for("You said: something to remember")
    talk.shows(snapshot)
    talk.terminal.press("Up")
    talk.terminal.wait_for(re.compile(rf"^{PROMPT}something to remember$", re.MULTILINE))
    talk.terminal.press("Enter")
    talk.provider.wait_until(lambda: talk.provider.asked[-1].prompt == "something to remember")
    talk.idle()


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
def test_one_prompt_that_is_too_long_does_not_end_the_chat(talk, columns, rows):
    talk.start(columns=columns, rows=rows, env=talk.provider.environment())
    talk.say("Hello?", "You said: Hello?")
    talk.terminal.paste("\n".join("all of the log " * 5 for _ in range(10_000)))
    talk.terminal.press("Enter")
    talk.terminal.wait_for("The prompt is too long")
    talk.idle()
    screen = talk.terminal.screen()
    assert "/undo" in screen
    assert "file" in screen
    asked = len(talk.provider.asked)
    talk.say("hello again", "You said: hello again")
    [request] = talk.provider.asked[asked:]
    assert "too long for the context window" in str(request.messages)
    assert len(str(request.messages)) < 10_000
    talk.say("/undo", 'Took back your last turn: "hello again"')
    talk.say("/undo", 'Took back your last turn: "all of the log')
    talk.say("And now?", "You said: And now?")
    assert "too long" not in str(talk.provider.asked[-1].messages)
    [name] = re.findall(r"--resume (\S+)", talk.leave())
    kept = piped(talk, "export", name, "--as", "markdown").stdout
    assert all(words in kept for words in ("hello again", "all of the log", "And now?"))
