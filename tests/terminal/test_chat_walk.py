"""Every slash command, typed by a person into a real terminal."""

import re

import pytest
from terminal.chatting_in import piped
from terminal.pieces import own_words

from refold.cli.chat.commands import COMMANDS

SHOWN = ("/context", "/history", "/explain", "/session", "/config", "/help")
"""Those whose screens are kept."""


@pytest.fixture(scope="module")
def chat(talks):
    """A chat in which something was said; its summaries are written by the model."""
    made = talks(window=20_000)
    made.provider.summary = own_words
    made.start("talk", env={"REFOLD_SUMMARIZER": "primary"})
    return made


def asked(chat, command, question, key, *shown):
    """Send a command that asks, and answer with a key."""
    chat.empty()
    chat.type(command)
    chat.terminal.wait_for(question)
    chat.settled()
    chat.terminal.press(key, "Enter")
    for one in shown:
        chat.terminal.wait_for(one)
    return chat.idle()


@pytest.mark.req("R106", "R107", "R108", "R110", "R111", "R112", "R113", "R114", "R115")
def test_every_command_does_what_it_says(chat, snapshot):
    chat.run("/history", "0 turns, 0 messages")
    chat.run(
        "/session checkpoints", re.compile("checkpoints? .*compact", re.IGNORECASE | re.DOTALL)
    )
    chat.run("/subconscious run", "Nothing was said in this session yet.")
    chat.run("/board", "Nothing is on the board")
    for nth in ("first", "second", "third"):
        chat.say(f"My {nth} thing", f"You said: My {nth} thing")
    before = len(chat.provider.asked)

    for command, wanted in (
        ("/context", "6 messages (3 from you, 3 from the model, 0 tool results)"),
        ("/context 1", "of the window"),
        ("/history", "3 turns, 6 messages"),
        ("/explain", "My first thing"),
        ("/session", "the log keeps"),
        ("/config", "/config KEY VALUE"),
        ("/help", "The log keeps this conversation"),
        ("/help pin", "/pin [entry]"),
    ):
        chat.run(command, wanted)
        if command in SHOWN:
            chat.shows(snapshot(name=f"{command}, 80x24"))
    assert len(chat.provider.asked) == before  # nothing of it entered the conversation

    chat.run("/config agent_max_context_turns 30", "30", "Kept in")
    kept = chat.terminal.home / ".config" / "refold" / "config.toml"
    assert "30" in kept.read_text("utf-8")
    chat.run("/undo", 'Took back your last turn: "My third thing"')
    chat.run("/redo", "Brought back")
    chat.run("/retry", "There is nothing to send again")
    chat.run("/rewind 1", 'Back to just before "My third thing"')
    chat.terminal.press("C-u")
    chat.run("/undo", "Took back the rewind")
    asked(chat, "/compact", "Fold anyway?", "y", re.compile(r"Folded \d+ messages"))
    assert chat.provider.folds
    chat.run("/session checkpoints", re.compile(r"^1 .* 2 +\d+$", re.MULTILINE))
    asked(chat, "/unfold 1", "[y]es", "y", "The fold is open.")
    chat.run("/undo", "Took back the unfolding")
    chat.run("/allow drop_table", "drop_table is allowed: entry")
    chat.run("/allow", re.compile(r"drop_table +entry \d+"))
    chat.run("/allow drop_table no", "drop_table is no longer allowed")
    chat.run("/fork elsewhere", "Now in session elsewhere")
    chat.run("/sessions talk", "Now in session talk")
    asked(chat, "/pin", "Enter picks", "Escape")
    asked(chat, "/sessions", "Sessions, last used first", "Escape")
    asked(chat, "/context open", "largest first", "Escape")
    asked(chat, "/model", "Who is to answer?", "Escape")
    for form in ("markdown", "json", "html"):
        chat.run(f"/export {form} out.{form}", f"Wrote the session as {form}")
        text = (chat.terminal.home / f"out.{form}").read_text("utf-8")
        assert "My first thing" in text
        assert form != "html" or "Conversation Compacted" in text
    chat.run("/context clear", "The conversation begins anew")
    chat.say("After that", "You said: After that")
    assert "My first thing" not in str(chat.provider.asked[-1].messages)
    chat.run("/clear", "The conversation begins anew")
    chat.run("/nonsense", "There is no command /nonsense.")

    missed = {one.name for one in COMMANDS} - _walked() - {"quit"}
    assert not missed
    chat.type("/quit")
    assert chat.terminal.wait_until_ended() == 0
    assert "Come back with: refold chat --resume talk" in chat.terminal.everything()
    assert "My third thing" in piped(chat, "export", "talk").stdout  # the log keeps everything


def _walked():
    """The commands that the walk above types."""
    import inspect  # noqa: PLC0415 - of this test alone

    source = inspect.getsource(test_every_command_does_what_it_says)
    return set(re.findall(r'f?"/([a-z]+)', source))
