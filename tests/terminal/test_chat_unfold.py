"""What `/unfold` says of the next request is what that request sends."""

import re

import pytest
from terminal.chatting_in import settings
from terminal.pieces import Call

WINDOW = 16_000
FILES = 12
SETTINGS = """
reserve = 1000
[trigger]
soft = 0.97
hard = 0.99
"""


def read_all(chat, files=FILES):
    """Have the model read files, a turn each; each result is large."""
    for nth in range(files):
        chat.provider.script += [[Call("read_file", {"path": f"f{nth}.txt"})], f"Read {nth}."]
        chat.say(f"Read file {nth}", f"Read {nth}.")


def results(asked):
    """What tools returned, as the model was shown it, in order."""
    return [one["content"] for one in asked.messages if one["role"] == "tool"]


def folded(chat):
    """Fold by hand; the number of the checkpoint."""
    chat.type("/compact")
    chat.terminal.wait_for("Fold now?")
    chat.terminal.press("y", "Enter")
    shown = chat.terminal.wait_for(re.compile(r"as fold (\d+)\."))
    return re.findall(r"as fold (\d+)\.", shown)[-1]


def started(talks, words, **about):
    chat = talks(window=WINDOW)
    settings(chat, SETTINGS)
    folder = chat.terminal.home / "files"
    folder.mkdir()
    for nth in range(FILES):
        text = "\n".join(f"file {nth} line {line} about the sea" for line in range(words))
        (folder / f"f{nth}.txt").write_text(text)
    chat.start("--files", str(folder), **about)
    return chat


def said(shown):
    """What the chat said of the next request: how many messages as said, of how many."""
    flat = " ".join(shown.split())
    if whole := re.search(r"The next request sends all ([\d,]+) messages as said", flat):
        return int(whole[1]), int(whole[1])
    found = re.findall(r"The next request sends ([\d,]+) of ([\d,]+) messages as said", flat)
    return tuple(int(one.replace(",", "")) for one in found[-1])


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40)])
def test_what_is_shortened_again_is_said_and_sent_so(talks, columns, rows):
    chat = started(talks, 170, columns=columns, rows=rows)
    read_all(chat)
    originals = [results(asked)[-1] for asked in chat.provider.asked[1::2]]
    number = folded(chat)
    chat.empty()
    chat.type(f"/unfold {number}")
    chat.terminal.wait_for("shortened so?")
    promised = said(chat.settled())
    chat.terminal.type("yes")
    chat.terminal.press("Enter")
    chat.terminal.wait_for("The fold is open.")
    shown = chat.idle().partition("The fold is open.")[2]
    assert said(shown) == promised
    whole, everything = promised
    assert 0 < whole < everything
    chat.say("Go on", "You said: Go on")
    sent = results(chat.provider.asked[-1])
    assert len(sent) == len(originals) == FILES
    shortened = [nth for nth in range(FILES) if sent[nth] != originals[nth]]
    assert len(shortened) == everything - whole
    assert f"{len(shortened)} parts: a large tool result, left as a reference" in shown
    assert all(f"Read {nth}." in str(chat.provider.asked[-1].messages) for nth in range(FILES))


def test_what_fits_is_sent_word_for_word(talks):
    chat = started(talks, 5)
    read_all(chat, 4)
    whole = chat.provider.asked[-1].messages
    chat.type(f"/unfold {folded(chat)}")
    chat.terminal.wait_for("Show the model these")
    chat.terminal.press("y", "Enter")
    chat.terminal.wait_for(re.compile("The next request sends all .* word for word"))
    chat.idle()
    chat.say("Go on", "You said: Go on")
    assert chat.provider.asked[-1].messages[: len(whole)] == whole


def test_what_does_not_fit_is_not_offered(talks):
    chat = started(talks, 4)
    number = None
    for nth in range(20):
        chat.provider.script.append(" ".join(f"{nth}: the wide sea, {at}." for at in range(150)))
        chat.say(f"Tell me {nth}", re.compile(rf"{nth}:\s+the\s+wide\s+sea,\s+149\."))
        if nth == 7:
            number = folded(chat)
    chat.empty()
    chat.type(f"/unfold {number}")
    chat.terminal.wait_for("It does not fit")
    chat.terminal.wait_for("Read on?")
    head = len(chat.provider.received)
    chat.type("yes")
    chat.terminal.wait_for("queued: yes")
    chat.terminal.press("Escape")
    chat.terminal.wait_for("You said: yes")
    assert len(chat.provider.received) == head + 1
