"""`refold wrap` in a real terminal: the agent has it, as without Refold."""

import sys
from contextlib import closing

import pytest
from terminal.tmux import Terminal

# An agent with a menu: it takes each key itself, as the terminal sends it.
MENU = """
import os, select, signal, sys, termios, tty

def say(text):
    os.write(1, f"{text}\\r\\n".encode())

def size():
    columns, rows = os.get_terminal_size()
    say(f"size {columns} by {rows}")

def resized(*_):
    os.write(writing, b"w")

reading, writing = os.pipe()
signal.signal(signal.SIGWINCH, resized)
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"\\x1b[?2004h")
say("\\x1b[31mred\\x1b[0m and \\x1b[38;2;10;200;30mgreen\\x1b[0m, to a terminal: %s" % os.isatty(1))
size()
while True:
    ready, _, _ = select.select([0, reading], [], [])
    if reading in ready:
        os.read(reading, 9)
        size()
    if 0 not in ready:
        continue
    keys = os.read(0, 1000)
    if keys == b"\\x1a":
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        os.kill(os.getpid(), signal.SIGTSTP)
        tty.setraw(0)
        say("continued")
    elif keys == b"q":
        break
    else:
        say(f"keys {keys!r}")
termios.tcsetattr(0, termios.TCSADRAIN, before)
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A shell, with the agent's program in its folder."""
    folder = tmp_path_factory.mktemp("wrapped")
    with closing(Terminal(folder, {"PS1": "ready$ "})) as terminal:
        program = terminal.home / "menu"
        program.write_text(f"#!{sys.executable} -IS\n{MENU}")
        program.chmod(0o755)
        terminal.start(["bash", "--norc", "-i"])
        terminal.wait_for("ready$")
        yield terminal


@pytest.fixture(scope="module")
def started(shell):
    """The agent in its menu."""
    shell.type("refold wrap --no-keep -- ./menu")
    shell.press("Enter")
    shell.wait_for("size 80 by 24")
    yield shell
    shell.type("q")
    shell.wait_for("No request came through the gateway")


def test_the_agent_writes_to_the_terminal_itself(started):
    assert "to a terminal: True" in started.screen()
    colors = started.screen(colors=True)
    assert "\x1b[31mred" in colors
    assert "38;2;10;200;30mgreen" in colors


def test_the_agent_learns_a_new_size(started):
    started.resize(90, 30)
    started.wait_for("size 90 by 30")
    started.resize(80, 24)
    started.wait_for("size 80 by 24")


def test_ctrl_c_in_the_agents_menu_is_a_key(started):
    started.press("C-c")
    started.wait_for(r"keys b'\x03'")
    started.press("Up")
    started.wait_for(r"keys b'\x1b[A'")


def test_a_paste_is_one(started):
    started.paste("two\nlines")
    started.wait_for(r"keys b'\x1b[200~two\rlines\x1b[201~'")


def test_a_suspended_agent_gives_the_shell_back(started):
    started.press("C-z")
    started.wait_for("Stopped")
    started.type("echo in the $((40 + 2))")
    started.press("Enter")
    started.wait_for("in the 42")
    started.type("fg")
    started.press("Enter")
    started.wait_for("continued")
    started.type("x")
    started.wait_for("keys b'x'")


def test_keys_of_the_terminal_stop_and_end_an_agent_that_leaves_them_to_it(tmp_path):
    with closing(Terminal(tmp_path, {"PS1": "ready$ "})) as shell:
        shell.start(["bash", "--norc", "-i"])
        shell.wait_for("ready$")
        shell.type("refold wrap --no-keep -- sh -c 'echo h''ere; exec cat'")
        shell.press("Enter")
        shell.wait_for("here")
        shell.type("one")
        shell.press("Enter")
        shell.wait_for("one\none")
        shell.press("C-z")
        shell.wait_for("Stopped")
        shell.type("fg")
        shell.press("Enter")
        shell.type("two")
        shell.press("Enter")
        shell.wait_for("two\ntwo")
        shell.press("C-c")
        shell.wait_for("No request came through the gateway")
