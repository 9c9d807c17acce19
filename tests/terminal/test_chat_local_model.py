"""A chat with a real model: a small one, that runs on this machine."""

import json
import re

import pytest
from amounts import amount
from terminal.chatting_in import Talk, is_idle, piped
from terminal.provider import Provider
from terminal.tmux import Terminal

N_CTX = 2048
TURNS = amount(few=0, quick=0, ci=0, nightly=60, thorough=60)
BUSY = re.compile("thinking|writing")
_PATIENCE = 240.0
"""Seconds; a model on a busy machine is slow."""


class _Real(Provider):
    """The address of a real server, where a scripted provider is asked for."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url


@pytest.fixture
def chat(tmp_path, local_model):
    """A chat with the local model, not started."""
    terminal = Terminal(tmp_path)
    yield Talk(terminal, _Real(local_model(N_CTX)))
    terminal.close()


def answered(chat, line):
    """Say something, and wait for the end of the answer; the screen then."""
    chat.type(line)
    chat.terminal.wait_for(lambda screen: BUSY.search(screen.splitlines()[-1]))
    return chat.terminal.wait_for(is_idle, timeout=_PATIENCE)


def test_a_real_model_streams_is_interrupted_and_comes_back(chat):
    assert "Every word is kept" in chat.start()
    chat.terminal.wait_for(lambda screen: "window 2.0k" in screen.splitlines()[-1])  # so it says
    answered(chat, "Say hello in one short sentence.")
    chat.type("Write a very long story about the sea.")
    chat.terminal.wait_for(BUSY, timeout=_PATIENCE)
    chat.terminal.wait_for(re.compile(r"story about the sea\.\s+\S+ \S+"), timeout=_PATIENCE)
    chat.terminal.press("C-c")
    chat.terminal.wait_for("Interrupted.", timeout=_PATIENCE)
    chat.terminal.wait_for(is_idle, timeout=_PATIENCE)
    hint = chat.leave()

    chat.start(*hint.replace("--resume", "-r").split())
    assert "story about the sea" in chat.terminal.screen()
    answered(chat, "In one short sentence: what did I ask for?")
    chat.type("/compact")
    # Which of the two is offered first, the length of the real model's answers says.
    chat.terminal.wait_for(re.compile(r"\[y\]es", re.IGNORECASE))
    chat.terminal.press("y", "Enter")
    chat.terminal.wait_for("Conversation folded:", timeout=_PATIENCE)
    chat.idle()
    answered(chat, "Thank you. Say goodbye in one short sentence.")
    into, out = _used(chat, hint.split()[1])
    chat.type("/context")
    shown = chat.terminal.wait_for("The log keeps everything", timeout=_PATIENCE)
    [said] = re.findall(r"The next request has (?:about )?([\d,]+) tokens", shown)
    # The next request has what the last one had, and its answer.
    assert int(said.replace(",", "")) == pytest.approx(into + out, rel=0.35)


def _used(chat, name):
    """The tokens of the newest request, and of its answer."""
    done = piped(chat, "export", name, "--as", "jsonl")
    assert done.returncode == 0, done.stderr
    used = re.findall(r'(in|out)put_tokens\\*": ?(\d+)', done.stdout)
    return (int([count for side, count in used if side == one][-1]) for one in ("in", "out"))


@pytest.mark.skipif(not TURNS, reason="it takes minutes: `make nightly` runs it")
@pytest.mark.parametrize("profile", ["co-cli", "copilot", "cowagent", "inkeep"])
def test_sixty_turns_are_answered_and_compacted(chat, profile):
    chat.start("--profile", profile, "long", "--no-board")
    # Asked for less, so small a model goes on until its server stops it.
    prompts = [f"In one short sentence: what is {nth} and {nth + 2}?" for nth in range(TURNS)]
    for prompt in prompts:
        answered(chat, prompt)
    chat.leave()
    done = piped(chat, "export", "long", "--as", "jsonl")
    assert done.returncode == 0, done.stderr
    assert all(prompt in done.stdout for prompt in prompts)
    kinds = [json.loads(line).get("kind") for line in done.stdout.splitlines()]
    assert kinds.count("fold.complete") >= 1, {*kinds}
    assert kinds.count("message") >= 2 * TURNS
