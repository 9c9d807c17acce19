"""What is typed is never taken for an answer to a question that came up meanwhile."""

import pytest
from terminal.chatting_in import PROMPT, is_idle

QUESTION = "Fold now? [Y]es / [n]o"
FOLDED = "Conversation folded"


@pytest.fixture(scope="module")
def chatting(talks):
    """A chat with enough in it to be folded."""
    made = talks()
    made.start("asked")
    for nth in range(4):
        made.say(f"Question {nth}: {'about the sea ' * 40}", f"You said: Question {nth}")
    return made


@pytest.fixture
def chat(chatting):
    """It, at rest and on an empty screen."""
    chatting.terminal.press("Escape")
    chatting.terminal.press("C-u")
    chatting.idle()
    chatting.empty()
    return chatting


def prompts(chat):
    return [asked.prompt for asked in chat.provider.asked]


@pytest.mark.parametrize("text", ["hello there", "no, wait: first this", "yes but later"])
def test_text_typed_while_a_question_stands_is_the_next_message(chat, text):
    chat.type("/compact")
    chat.terminal.wait_for(QUESTION)
    chat.type(text)
    shown = chat.terminal.wait_for("Queued as your next message.")
    assert f"queued: {text}" in shown
    assert QUESTION in shown
    chat.terminal.press("Enter")  # nor is a bare Enter after it an answer
    chat.settled()
    assert QUESTION in chat.terminal.screen()
    assert text not in prompts(chat)
    chat.terminal.press("n", "Enter")
    chat.terminal.wait_for("Nothing was folded")
    chat.terminal.wait_for(f"You said: {text}")
    assert FOLDED not in chat.idle()
    assert prompts(chat)[-1] == text


def test_keys_typed_before_the_question_are_messages(chat):
    chat.terminal.press("/", "c", "o", "m", "p", "a", "c", "t", "Enter", *"hello", "Enter", "y")
    chat.terminal.press("Enter", "Enter")
    shown = chat.terminal.wait_for(QUESTION)
    chat.terminal.wait_for("queued: hello")
    chat.terminal.wait_for("queued: y")
    assert FOLDED not in chat.settled()
    assert QUESTION in chat.terminal.screen(), shown
    chat.terminal.press("Escape")
    chat.terminal.wait_for("You said: y")
    assert FOLDED not in chat.idle()
    assert prompts(chat)[-2:] == ["hello", "y"]


def test_a_line_half_typed_stays_where_it_is(chat):
    chat.terminal.press("/", "c", "o", "m", "p", "a", "c", "t", "Enter", *"yes")
    chat.terminal.wait_for(QUESTION)
    chat.terminal.wait_for(f"{PROMPT}yes")
    chat.terminal.type(" and more")
    chat.terminal.wait_for(f"{PROMPT}yes and more")
    chat.terminal.press("Escape")
    chat.terminal.wait_for("Nothing was folded")
    shown = chat.idle()
    assert f"{PROMPT}yes and more" in shown
    assert FOLDED not in shown


@pytest.mark.parametrize("text", ["y", "yes", "yes\nno", "one\ntwo"])
def test_a_paste_is_no_answer(chat, text):
    chat.type("/compact")
    chat.terminal.wait_for(QUESTION)
    chat.terminal.paste(text)
    chat.terminal.wait_for(f"{PROMPT}{text.partition(chr(10))[0]}")
    chat.terminal.press("Enter")
    chat.terminal.wait_for("Queued as your next message.")
    chat.settled()  # what comes in the flow of messages is one of them
    chat.terminal.press("n", "Enter")
    chat.terminal.wait_for("Nothing was folded")
    chat.terminal.wait_for("You said:")
    assert FOLDED not in chat.idle()
    assert prompts(chat)[-1] == text


def test_a_list_waits_for_what_is_being_typed(chat):
    chat.terminal.press(*"/sessions", "Enter", *"asked and")
    chat.terminal.wait_for("the list opens when your line is sent")
    chat.terminal.type(" more")
    chat.terminal.press("Enter")
    chat.terminal.wait_for("type to search")
    chat.terminal.press("Escape")
    chat.terminal.wait_for("You said: asked and more")
    assert is_idle(chat.idle())


def test_a_fold_that_was_asked_about_is_asked_about_again_after_another_terminal_spoke(chat, talks):
    chat.type("/compact")
    chat.terminal.wait_for(QUESTION)
    other = talks(chat)
    other.start("asked")
    other.say("Something else", "You said: Something else")
    chat.terminal.wait_for("You said: Something else")
    chat.terminal.press("y", "Enter")
    chat.terminal.wait_for("Look again:")
    chat.terminal.wait_for(QUESTION)
    assert FOLDED not in chat.settled()
    chat.terminal.press("y", "Enter")
    chat.terminal.wait_for(FOLDED)
