"""A chat in plain lines: from a pipe, with a question, a list, and Ctrl-C."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from io import StringIO
from typing import Any

import pytest
from rich.table import Table

from refold.cli.chat.plain import Plain, status_line
from refold.cli.chat.status import Status
from refold.cli.chat.surface import (
    ChatCallbacks,
    ContextEvent,
    RemoteMessage,
    Row,
    TextDelta,
    ToolCall,
    ToolResult,
)
from refold.cli.outcome import INTERRUPTED, READER_GONE
from refold.fold.events import CompactionComplete, CompactionStart, CompactionWait
from refold.session import Filled

STATUS = Status("s", "m", 200_000, 0, Filled(4_000, 10_000, 10_000), exact=True, cost=0.03)


def hosted(
    chat: Callable[[Plain], Coroutine[Any, Any, object]],
    typed: str = "",
    interrupt: Callable[[], bool] = lambda: False,
) -> tuple[object, str]:
    out = StringIO()
    plain = Plain(stdin=StringIO(typed), stdout=out)
    got = []

    async def main() -> int:
        plain.begin(ChatCallbacks(lambda: STATUS, interrupt, lambda: False, lambda _: ()))
        got.append(await asyncio.wait_for(chat(plain), 30))
        return 0

    code = plain.host(main)
    return got[0] if got else code, out.getvalue()


def test_a_turn_is_told_in_words():
    async def chat(plain: Plain) -> object:
        plain.show("Welcome [to it].")
        lines = [await plain.read()]
        plain.on_event(ToolCall("1", "read_file", "path=a.py"))
        plain.on_event(ToolResult("1", "read_file", "x\n" * 120, 0.2))
        plain.on_event(ToolResult("2", "add", "42\x1b[2J", 0.1))
        plain.on_event(ToolResult("3", "write", "not allowed", 0.1, failed=True))
        for piece in ("It is *fi", "ne*.\x1b[3", "1m\n\nReally"):
            plain.on_event(TextDelta(piece))
        plain.settle()
        return [*lines, await plain.read()]

    got, said = hosted(chat, "hello\n")
    assert got == ["hello", None]
    assert said == (
        "Welcome [to it].\n"
        "You: hello\n"
        "Calls read_file: path=a.py\n"
        "read_file answered in 0.2 s: 120 lines\n"
        "add answered in 0.1 s: 42\n"
        "write failed: not allowed\n"
        "It is *fine*.\n"
        "\n"
        "Really\n"
        "Context: 12 % of 200,000 tokens. Cost so far: $0.03.\n"
        "You: \n"
    )


def test_the_answer_is_said_as_it_comes_and_no_word_in_pieces():
    out = StringIO()
    plain = Plain(stdin=StringIO(), stdout=out)
    seen = []
    for piece in ("Some", "thing is", " coming"):
        plain.on_event(TextDelta(piece))
        seen.append(out.getvalue())
    assert seen == ["", "Something ", "Something is "]


def test_events_are_lines():
    out = StringIO()
    plain = Plain(stdin=StringIO(), stdout=out)
    plain.on_event(ContextEvent(CompactionStart("hard", 1, 2, 3)))
    assert not out.getvalue()
    plain.on_event(ContextEvent(CompactionWait("hard")))
    done = CompactionComplete("f", pre_tokens=9_000, post_tokens=100, messages_removed=4)
    plain.on_event(ContextEvent(done))
    plain.on_event(RemoteMessage("you", "hi"))
    assert out.getvalue().splitlines() == [
        "Compacting conversation history.",
        "Conversation folded: 4 messages, 9,000 to 100 tokens (/unfold reads it, /undo",
        "takes it back)",
        "You, in another terminal: hi",
    ]


def test_a_long_row_of_a_list_is_wrapped_between_words():
    words = "the parcel of Zurich, last used a while ago, 24 messages, 2,244 tokens in full"

    async def chat(plain: Plain) -> object:
        return await plain.pick("Which one?", [Row("support-42-about-a-long-name", words)])

    picked, said = hosted(chat, "1\n")
    title, *lines = said.splitlines()
    assert (picked, title) == (0, "Which one? 1 of 1.")
    shown, rest = " ".join(lines).split(" Number, or")
    assert shown == f"1. support-42-about-a-long-name, {words}"
    assert rest
    assert max(map(len, lines)) <= 80


def test_nothing_is_drawn_or_colored():
    table = Table("a", "b", title="[red]t", style="red")
    table.add_row("1\x1b[2J", "█░")

    async def chat(plain: Plain) -> object:
        plain.show(table)
        return plain.width

    width, said = hosted(chat)
    assert width == 80
    assert said.isascii()
    assert "\x1b" not in said
    assert "| 1 " in said
    assert "#." in said


def test_a_line_from_a_pipe_answers_only_if_it_is_an_answer():
    async def chat(plain: Plain) -> object:
        asked = [await plain.ask("Fold now?", ["yes", "no"]) for _ in range(3)]
        lines = [await plain.read() for _ in range(2)]
        return asked, lines, await plain.ask("Fold now?", ["yes", "no"])

    got, said = hosted(chat, "N\n\nmaybe\n\nyes or no\n\nYES\n")
    assert got == (["no", None, None], ["maybe", "yes or no"], "yes")
    assert said.startswith("Fold now? [Y]es / [n]o N\nFold now? [Y]es / [n]o (no answer)\n")


def test_a_line_that_finds_nothing_in_a_list_is_the_next_message():
    async def chat(plain: Plain) -> object:
        row = await plain.pick("Resume", [Row("one"), Row("two")])
        return row, await plain.read()

    assert hosted(chat, "tell me more\n")[0] == (None, "tell me more")


def test_what_is_typed_before_a_plain_question_or_beside_it_is_a_message():
    out, typed = StringIO(), _Silent()
    plain = Plain(stdin=typed, stdout=out)
    got = []

    async def main() -> int:
        typed.type("yes\nhello\n")
        await until(lambda: len(plain._lines._lines) == 2)
        asking = asyncio.create_task(plain.ask("Fold now?", ["yes", "no"]))
        await until(lambda: "Fold now?" in out.getvalue())
        typed.type("not that\n")
        await until(lambda: "it is your next message" in out.getvalue())
        typed.type("n\nand then\n")
        got.extend([await asking, *[await plain.read() for _ in range(4)]])
        return 0

    plain.host(main)
    typed.end()
    assert got == ["no", "yes", "hello", "not that", "and then"]


def test_a_row_is_picked_by_its_number():
    rows = [Row(f"Session {n}", f"{n} days ago", f"about {n * 7}") for n in range(30)]

    async def chat(plain: Plain) -> object:
        return [await plain.pick("Resume", rows) for _ in range(4)]

    got, said = hosted(chat, "3\nabout 203\n99\n30\n\n")
    assert got == [2, 29, None, None]
    assert "Resume: 30 of 30.\n1. Session 0, 0 days ago\n" in said
    assert "And 10 more." in said
    assert "Resume: 1 of 30.\n30. Session 29, 29 days ago\n" in said
    assert "There is no number 99." in said


def test_a_number_too_long_to_be_one_is_no_row():
    async def chat(plain: Plain) -> object:
        return await plain.pick("Resume", [Row("one", "", ""), Row("two", "", "")])

    got, said = hosted(chat, f"{'7' * 5_000}\n0\n2\n")
    assert got == 1
    assert "There is no number 7777" in said
    assert "There is no number 0." in said
    assert "7" * 100 not in said.replace(f": {'7' * 5_000}\n", "")


def test_a_line_of_controls_only_is_no_prompt():
    async def chat(plain: Plain) -> object:
        return [await plain.read(), await plain.read()]

    got, _ = hosted(chat, "\x00\x07\n\x1b[A\n \u200b\nhello\n")
    assert got == ["hello", None]


class _Broken(StringIO):
    """Somebody who reads a little, and goes."""

    def write(self, text: str) -> int:
        if "two" in self.getvalue():
            raise BrokenPipeError
        return super().write(text)


def test_what_is_under_way_ends_though_nobody_reads_on():
    plain = Plain(stdin=StringIO("a\nb\nc\n"), stdout=_Broken())
    done = []

    async def main() -> int:
        while (line := await plain.read()) is not None:
            for word in ("one ", "two ", "three ", "four "):
                plain.on_event(TextDelta(word))
            plain.settle()
            done.append(line)
        return 0

    assert plain.host(main) == READER_GONE
    assert done == ["a"]


def test_a_chat_without_input_ends(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    plain = Plain()

    async def main() -> int:
        return 7 if await plain.read() is None else 0

    assert plain.host(main) == 7


@pytest.mark.parametrize("seen", [0, 200_000])
def test_what_is_not_known_is_said_to_be_unknown(seen):
    bare = Status("s", "m", seen or None, 32_000)
    assert status_line(bare) == "Context: unknown. Cost so far: unknown."
    some = Status("s", "m", None, 32_000, Filled(1, 2, 3))
    assert "about 6 tokens, window unknown" in status_line(some)


class _Silent(StringIO):
    """A person who types nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def isatty(self) -> bool:
        return True

    def type(self, text: str) -> None:
        os.write(self._write, text.encode())

    def end(self, text: str = "") -> None:
        os.write(self._write, text.encode())
        os.close(self._write)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)


def _interrupted(after: float = 0.02) -> None:
    asyncio.get_running_loop().call_later(after, os.kill, os.getpid(), signal.SIGINT)


def test_ctrl_c_interrupts_the_turn_and_twice_at_the_prompt_leaves():
    out, typed, told = StringIO(), _Silent(), []
    plain = Plain(stdin=typed, stdout=out)

    async def main() -> int:
        def interrupt() -> bool:
            told.append(True)
            return True

        plain.begin(ChatCallbacks(lambda: STATUS, interrupt, lambda: False, lambda _: ()))
        _interrupted()
        await until(lambda: told)
        assert told == [True]
        plain.settle()
        _interrupted()
        assert await plain.ask("Well?", ["yes"]) is None
        leaving = asyncio.create_task(leave())
        left = await plain.read() is None
        await leaving
        return left

    async def leave() -> None:
        _interrupted()
        await until(lambda: "Press Ctrl-C again to leave." in out.getvalue())
        _interrupted()

    assert plain.host(main)
    typed.end()
    assert told == [True]
    assert "Press Ctrl-C again to leave." in out.getvalue()


def test_a_chat_that_cannot_be_interrupted_is_stopped():
    async def chat(_: Plain) -> object:
        for at in range(1, 6):
            _interrupted(at / 50)
        await asyncio.sleep(60)
        return 0

    assert hosted(chat)[0] == INTERRUPTED


def test_lines_come_from_a_pipe_whole():
    typed, out = _Silent(), StringIO()
    typed.end("é one\r\ntwo")
    plain = Plain(stdin=typed, stdout=out)

    async def main() -> int:
        return [await plain.read() for _ in range(4)] == ["é one", "two", None, None]

    assert plain.host(main)
