"""Folds, seen from the chat: made while one types, cancelled, asked for, and for another model."""

import re

import pytest
from terminal.chatting_in import settings
from terminal.pieces import Gate, overflow, own_words

WINDOW = 4_000
SMALL = 1_500
SETTINGS = f"""
summarizer = "primary"
reserve = 400
[trigger]
soft = 0.7
at_least = 0
savings = 0
[models."openai:small"]
window = {SMALL}
"""
COMPACTING = "Compacting conversation history"


def held(asked):
    """A summary that waits until it is let through."""
    return [Gate("fold"), own_words(asked)]


@pytest.fixture(scope="module")
def chatting(talks):
    """A chat whose window is soon full, and whose summaries a model writes."""
    made = talks(window=WINDOW)
    settings(made, SETTINGS)
    return made


@pytest.fixture
def chat(chatting):
    """It, at rest, on an empty screen and with an empty view."""
    provider = chatting.provider
    provider.script.clear()
    provider.summary = own_words
    if not chatting.rests():
        chatting.start(env=provider.environment())
    chatting.terminal.press("C-u")
    if "nothing said yet" not in chatting.settled():
        chatting.say("/clear", "The conversation begins anew")
    chatting.empty()
    return chatting


def heard(chat, line, facts):
    """Say something that is answered at such length; whether a fold began by itself."""
    asked, folds = len(chat.provider.asked), len(chat.provider.folds)
    chat.provider.script.append(
        " ".join(
            f"{line}, part {nth}: more quiet words about the mountains and the sea."
            for nth in range(facts)
        )
    )
    chat.type(line)
    chat.provider.wait_until(lambda: len(chat.provider.asked) > asked)
    chat.provider.wait_until(lambda: chat.provider.asked[-1].answered)
    last = rf"{line}, part {facts - 1}:".replace(" ", r"\s+")  # a line may end anywhere
    chat.terminal.wait_for(re.compile(last))
    chat.settled()
    return len(chat.provider.folds) > folds


def folding(chat):
    """Talk until a fold is made that is held open, while nobody waits for it."""
    chat.provider.summary = held
    for nth, facts in enumerate([65, 65, *12 * [12]]):
        if heard(chat, f"Question {nth}", facts):
            break
    chat.provider.wait_for_gate("fold")


@pytest.mark.req("R131")
def test_keys_are_echoed_while_a_fold_is_made(chat, snapshot):
    for nth in range(2):
        heard(chat, f"Question {nth}", 65)
    chat.provider.summary = held
    chat.type("/compact")
    chat.terminal.wait_for("Fold now?")
    chat.settled()
    chat.terminal.press("y", "Enter")
    chat.terminal.wait_for(COMPACTING)
    chat.empty()
    for letter in "still typing":
        chat.terminal.type(letter)
    chat.shows(snapshot(name="while it is made"))
    chat.provider.summary = own_words  # should it ask again, nothing holds it
    chat.provider.release("fold")
    chat.shows(snapshot(name="once it is made"))
    chat.terminal.press("C-c")
    chat.terminal.wait_until_gone("still typing")
    chat.say("What did I say?", "You said: What did I say?")
    sent = chat.provider.asked[-1].messages
    assert "earlier messages are folded here" in str(sent) or "earlier message is" in str(sent)
    assert not [one for one in sent if str(one["content"]).startswith("Question 0, part 0")]


@pytest.mark.req("R131")
def test_escape_cancels_a_fold_that_nobody_waits_for(chat):
    folding(chat)
    assert COMPACTING not in chat.terminal.screen()
    chat.terminal.press("C-l", "Escape")
    chat.provider.wait_until(lambda: chat.provider.folds[-1].left)
    chat.terminal.wait_for("cancelled")
    chat.provider.summary = own_words
    chat.say("And on", "You said: And on")
    assert "Question 0" in str(chat.provider.asked[-1].messages)


@pytest.mark.req("R072", "R131")
def test_what_is_typed_while_a_fold_is_waited_for_goes_out_with_the_turn(chat):
    folding(chat)
    # The answer to this leaves no room for another request.
    heard(chat, "A long question", 60)
    chat.empty()
    asked = len(chat.provider.asked)
    chat.type("What was first?")
    chat.terminal.wait_for(COMPACTING)
    chat.type("And what was second?")
    chat.type("/session")
    chat.terminal.wait_for("second?")
    assert len(chat.provider.asked) == asked
    chat.provider.summary = own_words
    chat.provider.release("fold")
    chat.terminal.wait_for("You said: And what was second?")
    chat.terminal.wait_for("the log keeps")
    chat.idle()
    assert len(chat.provider.asked) == asked + 1
    sent = [one["content"] for one in chat.provider.asked[-1].messages if one["role"] == "user"]
    assert "What was first?" in str(sent[-2:])
    assert "And what was second?" in str(sent[-1])
    # Both are said once, and answered together: the next turn follows them.
    chat.say("And then?", "You said: And then?")
    said = str(chat.provider.asked[-1].messages)
    assert said.count("And what was second?") == 2  # the question, and the answer to it


@pytest.mark.req("R110", "R131")
def test_a_fold_that_is_asked_for_is_previewed_cancelled_and_made(chat, snapshot):
    for nth in range(3):
        heard(chat, f"Question {nth}", 20)
    chat.provider.summary = held
    folds = len(chat.provider.folds)
    chat.empty()
    chat.type("/compact the numbers")
    chat.terminal.wait_for("Fold now?")
    chat.shows(snapshot(name="preview"))
    assert len(chat.provider.folds) == folds
    chat.terminal.press("y", "Enter")
    chat.provider.wait_for_gate("fold")
    chat.terminal.wait_for(COMPACTING)
    chat.terminal.press("C-c")
    chat.terminal.wait_for("The fold was canceled.")
    assert "The conversation is unchanged." in chat.idle()
    chat.provider.wait_until(lambda: chat.provider.folds[-1].left)

    chat.provider.summary = own_words
    chat.empty()
    chat.type("/compact the numbers")
    chat.terminal.wait_for("Fold now?")
    chat.settled()
    chat.terminal.press("Enter")
    shown = chat.terminal.wait_for(re.compile(r"The next request has [\d,]+ tokens (less|more)"))
    chat.shows(snapshot(name="made"))
    assert "the numbers" in str(chat.provider.folds[-1].messages)
    assert "Conversation folded" in shown
    chat.say("What is left?", "You said: What is left?")
    sent = str(chat.provider.asked[-1].messages)
    assert "Question 0, part 19" not in sent
    assert "Question 2, part 19" in sent  # the newest stays


@pytest.mark.req("R085")
def test_a_model_with_a_smaller_window_asks_and_folds_first(chat, snapshot):
    for nth in range(2):
        heard(chat, f"Question {nth}", 65)
    before = len(chat.provider.received)
    chat.empty()
    chat.type("/model openai:small")
    chat.terminal.wait_for("Fold and switch?")
    chat.shows(snapshot(name="asked"))
    chat.terminal.press("n", "Enter")
    chat.terminal.wait_for("Nothing changed")
    assert chat.idle().splitlines()[-1].startswith("local:scripted")
    assert len(chat.provider.received) == before
    chat.type("/model openai:small")
    chat.terminal.wait_for("[Y]es")
    chat.settled()
    chat.terminal.press("y", "Enter")
    chat.terminal.wait_for("openai:small answers from now on.")
    chat.terminal.wait_for(re.compile(r"^openai:small .*of 1\.5k.*\Z", re.MULTILINE))
    assert all(one.for_fold for one in list(chat.provider.received)[before:])
    assert len(chat.provider.received) > before
    chat.say("Who are you?", "You said: Who are you?")
    assert chat.provider.asked[-1].body["model"] == "small"
    chat.say("/model local:scripted", "local:scripted answers from now on.")


def test_a_request_that_is_too_long_is_sent_again_shorter(chat):
    for nth in range(3):
        heard(chat, f"Question {nth}", 20)
    chat.provider.script += [[overflow(900, 1_400)], "It fits now."]
    chat.run("Too long?", "It fits now.")
    longer, shorter = (len(str(one.messages)) for one in chat.provider.asked[-2:])
    assert shorter < longer
    assert "Too long?" in chat.provider.asked[-1].prompt
    assert "400" not in chat.terminal.screen()
    chat.terminal.close()  # it has learned of a smaller window, and no other test shall know
