"""A chat in a terminal: keys, order, waiting lines, questions, lists, and every way out."""

import asyncio
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pytest
from chatting import FakeSurface, model_of
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.layout import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from prompt_toolkit.output.vt100 import Vt100_Output
from pydantic_ai import Agent

from refold.cli.chat.chat import Chat as RealChat
from refold.cli.chat.conversation import Conversation, Parts
from refold.cli.chat.status import Status
from refold.cli.chat.surface import ChatCallbacks, Prompt, Row, TextDelta, ToolCall, ToolResult
from refold.cli.chat.terminal import screen
from refold.cli.chat.terminal.input import (
    PAUSE,
    KeyboardPause,
    PasteLabels,
    Pastes,
    TypedHistory,
    chosen,
    letters,
    offered,
)
from refold.cli.chat.terminal.picker import Picker
from refold.cli.chat.terminal.screen import LEAVE_HINT
from refold.cli.chat.terminal.terminal import INTERRUPTED, Terminal
from refold.session import Filled
from refold.settings import load_settings
from refold.stores import SqliteStore

ENTER, ALT_ENTER, ESC, CTRL_C, CTRL_D, UP, DOWN, TAB = (
    "\r",
    "\x1b\r",
    "\x1b",
    "\x03",
    "\x04",
    "\x1b[A",
    "\x1b[B",
    "\t",
)
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
STATUS = Status("s", "test:model", 1_000, 0, Filled(10, 20, 70), cost=0.5)


@dataclass
class Person:
    """Who types, and looks."""

    pipe: PipeInput
    out: StringIO
    history: Any = None
    size: list[int] = field(default_factory=lambda: [80, 24])
    interrupts: list[bool] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)
    terminal: Terminal | None = None

    def type(self, text: str) -> None:
        self.pipe.send_text(text)

    @property
    def seen(self) -> str:
        return _SEQUENCE.sub("", self.out.getvalue()).replace("\r", "")

    async def sees(self, text: str) -> None:
        until = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < until, f"never seen: {text!r} in {self.seen!r}"
            await asyncio.sleep(0.01)

    async def sees_nothing_new(self) -> None:
        """Return when all keys were handled and the screen has stood still for a pause since."""
        before = None
        while before != (before := self.out.getvalue()) or not await self._paused():  # noqa: ASYNC110 - it is a screen
            await asyncio.sleep(PAUSE)

    async def _paused(self) -> bool:
        assert self.terminal
        drawn = self.terminal._screen

        def look(paused: "Future[bool]") -> None:  # where keys are handled: none is half handled
            since = [drawn._keyboard._newest]
            since += [drawn.question._visible] if drawn.question else []
            since += [drawn.picker.visible] if drawn.picker else []
            late = None not in since and drawn._keyboard.clock() - max(since) >= PAUSE
            paused.set_result(late and not drawn.app.has_input())

        return await self.terminal._answer(look)

    def listening(self) -> ChatCallbacks:
        def cancel() -> bool:
            self.cancelled.set()
            return True

        def complete(line: str) -> list[tuple[str, str]]:
            names = [("/compact", "fold what is old"), ("/context", "what fills the window")]
            return [one for one in names if one[0].startswith(line)]

        return ChatCallbacks(
            lambda: STATUS,
            lambda: self.interrupts.pop(0) if self.interrupts else False,
            cancel,
            complete,
        )


Chat = Callable[[Terminal, Person], Coroutine[Any, Any, int]]


def hosted(chat: Chat, history=None, size=(80, 24), early="") -> tuple[int, Person]:
    out = StringIO()
    with create_pipe_input() as pipe:
        person = Person(pipe, out, size=list(size))
        output = Vt100_Output(
            out, lambda: Size(person.size[1], person.size[0]), term="xterm", enable_cpr=False
        )
        with create_app_session(input=pipe, output=output):
            terminal = person.terminal = Terminal(history=history)

            async def main() -> int:
                terminal.begin(person.listening())
                return await asyncio.wait_for(chat(terminal, person), 240)

            person.type(early)
            code = terminal.host(main)
    return code, person


def test_what_is_typed_is_read_and_what_is_shown_stays_in_order():
    async def chat(terminal: Terminal, person: Person) -> int:
        terminal.show("Welcome.")
        person.type(f"hello{ENTER}")
        assert await terminal.read() == "hello"
        terminal.on_event(ToolCall("1", "read_file", "path=a.py"))
        await person.sees("read_file path=a.py 0.")
        terminal.on_event(ToolResult("1", "read_file", "x\ny\n", 0.2))
        for piece in ("One", ".\n\nTw", "o *thr", "ee*"):
            terminal.on_event(TextDelta(piece))
        terminal.settle()
        terminal.show("Bye.", gap=False)
        return 7

    code, person = hosted(chat)
    assert code == 7
    told = ["Welcome.", "› hello", "● read_file path=a.py", "2 lines in 0.2 s", "One.", "Two three"]  # noqa: RUF001
    at = [person.seen.rindex(one) for one in [*told, "\nBye.\n"]]
    assert at == sorted(at)
    assert "test:model" in person.seen
    assert "\x1b[?2004l" in person.out.getvalue()[-200:]


def test_lines_wait_while_nobody_reads_and_can_be_taken_back():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(f"one{ENTER}two{ENTER}three{ENTER}")
        await person.sees("queued: three")
        person.type(f"{UP}!{ENTER}")
        await person.sees("!")  # only what has changed is drawn
        return [await terminal.read() for _ in range(3)] == ["one", "two", "three!"]

    assert hosted(chat)[0]


def test_an_input_may_have_many_lines():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(f"a{ALT_ENTER}b\nc{ENTER}")
        assert await terminal.read() == "a\nb\nc"
        person.type(f"\x1b[200~x\r\ny\rz\x1b[201~{ENTER}")
        assert await terminal.read() == "x\ny\nz"
        person.type(f"  {ENTER}said{ENTER}")
        assert await terminal.read() == "said"
        return 1

    assert hosted(chat)[0]


def test_enter_typed_before_there_was_a_prompt_sends():
    async def chat(terminal: Terminal, person: Person) -> int:
        assert await terminal.read() == "early"
        person.type("a\nb\r")
        return await terminal.read() == "a\nb"

    # What a terminal makes of Enter unless told otherwise.
    assert hosted(chat, early="early\n")[0]


def test_ctrl_c_clears_then_interrupts_then_warns_then_leaves():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.interrupts = [True]
        person.type(f"not sent{CTRL_C}{CTRL_C}")
        person.type("x")
        await person.sees("x")
        assert person.interrupts == []
        person.type(f"{CTRL_C}{CTRL_C}")
        await person.sees(LEAVE_HINT)
        person.type(CTRL_C)
        return await terminal.read() is None

    assert hosted(chat)[0]


def test_a_hint_has_its_time_from_when_it_is_drawn_whatever_hint_came_before():
    async def chat(terminal: Terminal, _: Person) -> int:
        drawn = terminal._screen

        def hints(result: "Future[Any]") -> None:
            drawn._hint("one")
            waiting = drawn._hint_timer
            drawn._rendered(None)
            first = drawn._hint_timer
            drawn._hint("two")
            drawn._rendered(None)
            second = drawn._hint_timer
            drawn._rendered(None)
            same = drawn._hint_timer is second and not second.cancelled()
            result.set_result((waiting, first.cancelled(), same, drawn.hint))

        assert await terminal._answer(hints) == (None, True, True, "two")
        return 1

    assert hosted(chat)[0]


def test_a_turn_that_cannot_be_stopped_holds_nobody():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.interrupts = [True] * 9
        person.type(CTRL_C * 3)
        return await terminal.read() is None

    assert hosted(chat)[0]


def test_a_chat_that_does_not_end_is_stopped():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(CTRL_D)
        assert await terminal.read() is None
        person.type(CTRL_C)
        await asyncio.sleep(60)
        return 0

    assert hosted(chat)[0] == INTERRUPTED


def test_escape_cancels():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(ESC)
        await asyncio.to_thread(person.cancelled.wait, 9)
        person.type(f"a{CTRL_C}{CTRL_D}")
        return await terminal.read() is None

    assert hosted(chat)[0]


def test_commands_complete_themselves():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type("/co")
        await person.sees("what fills the window")
        person.type(f"{DOWN}{DOWN}{ENTER}")
        assert await terminal.read() == "/context"
        person.type("/comp")
        await person.sees_nothing_new()
        person.type(TAB)
        await person.sees("/compact")
        person.type(ENTER)
        return await terminal.read() == "/compact"

    assert hosted(chat)[0]


def waiting(terminal: Terminal) -> list[str]:
    """The lines that are drawn as queued; only what has changed is drawn."""
    return terminal._screen.lines.queued


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)


def asked(terminal: Terminal) -> "asyncio.Future[str | None]":
    return asyncio.ensure_future(terminal.ask("Fold now?", ["yes", "no"]))


async def stands(terminal: Terminal, person: Person) -> "asyncio.Future[str | None]":
    """A question that a person has seen."""
    before = person.seen.count("Fold now?")
    asking = asked(terminal)
    while person.seen.count("Fold now?") == before:  # noqa: ASYNC110 - it is a screen
        await asyncio.sleep(0.01)
    await person.sees_nothing_new()
    return asking


def test_a_question_is_answered_by_a_line_of_its_own():
    async def chat(terminal: Terminal, person: Person) -> int:
        got = []
        for keys in (f"n{ENTER}", f"YES{ENTER}", ENTER, ESC, CTRL_C, CTRL_D):
            asking = await stands(terminal, person)
            person.type(keys)
            got.append(await asking)
        assert got == ["no", "yes", "yes", None, None, None]
        return await terminal.read() is None

    code, person = hosted(chat)
    assert code
    assert "Fold now? [Y]es / [n]o" in person.seen
    assert "Fold now? no\n" in person.seen


@pytest.mark.parametrize(
    "text",
    ["hello", "no, rather not", "yes\x1b\r", "\x1b[200~y\x1b[201~", "\x1b[200~yes\r\nno\x1b[201~"],
)
def test_text_typed_while_a_question_stands_is_the_next_message(text):
    async def chat(terminal: Terminal, person: Person) -> int:
        asking = await stands(terminal, person)
        person.type(f"{text}{ENTER}")
        await until(lambda: waiting(terminal))
        person.type(ENTER)
        await person.sees_nothing_new()
        assert not asking.done()
        person.type(f"n{ENTER}")
        assert await asking == "no"
        said = _SEQUENCE.sub("", text).replace("\x1b\r", "\n").replace("\r\n", "\n").strip("\n")
        return (await terminal.read()) == said

    assert hosted(chat)[0]


@pytest.mark.parametrize("typed", ["y", "yes", "no", "hel", "", "one\ry", "one\ryes\r", "\r\r"])
def test_what_is_typed_before_a_question_is_seen_never_answers_it(typed):
    """Whatever is typed ahead, and goes on in the same flow, is what it was typed as."""
    expected = [line for line in f"{typed} more\ry".split("\r") if line.strip()]

    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(typed)
        asking = asked(terminal)
        person.type(f" more{ENTER}y{ENTER}{ENTER}")
        await until(lambda: waiting(terminal)[-1:] == ["y"])
        await person.sees_nothing_new()
        assert not asking.done()
        person.type(f"n{ENTER}")
        assert await asking == "no"
        got = [await terminal.read() for _ in expected]
        return [str(line).strip() for line in got] == [line.strip() for line in expected]

    assert hosted(chat)[0]


def test_what_follows_a_message_without_a_pause_is_no_answer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(screen, "KeyboardPause", lambda: KeyboardPause(lambda: now[0]))

    async def chat(terminal: Terminal, person: Person) -> int:
        asking = asked(terminal)
        await until(lambda: terminal._screen.question and terminal._screen.question._visible == 0)
        now[0] += PAUSE
        person.type(f"hello{ENTER}n{ENTER}")
        await until(lambda: asking.done() or waiting(terminal) == ["hello", "n"])
        assert not asking.done()
        now[0] += PAUSE
        person.type(f"n{ENTER}")
        assert await asking == "no"
        return [await terminal.read(), await terminal.read()] == ["hello", "n"]

    assert hosted(chat)[0]


def test_enter_held_down_answers_nothing_and_picks_nothing(monkeypatch):
    now = [0.0]  # a machine that stands still for a while is no pause of the person
    monkeypatch.setattr(screen, "KeyboardPause", lambda: KeyboardPause(lambda: now[0]))

    async def chat(terminal: Terminal, person: Person) -> int:
        rows = [Row("one"), Row("two")]
        for nth in range(2):
            waiting = asked(terminal)
            if nth:
                person.type(ESC)
                await waiting
                waiting = asyncio.ensure_future(terminal.pick("Resume", rows))
            for _ in range(40):
                now[0] += 0.02
                person.type(ENTER)
                await asyncio.sleep(0.02)
            assert not waiting.done()
            person.type(ESC)
            assert await waiting is None
        return 1

    assert hosted(chat)[0]


def test_a_list_waits_for_the_line_that_is_being_typed():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type("half a mess")
        await person.sees("half a mess")
        picking = asyncio.ensure_future(terminal.pick("Resume", [Row("one"), Row("two")]))
        await person.sees("the list opens when your line is sent")
        person.type(f"age{ENTER}")
        await person.sees("type to search")
        await person.sees_nothing_new()
        person.type(ENTER)
        assert await picking == 0
        return await terminal.read() == "half a message"

    assert hosted(chat)[0]


def test_answers_have_keys_of_their_own():
    assert letters(["cancel", "compact", "c"]) == ["c", "o", ""]
    assert offered(["Yes", "no", "never"]) == "[Y]es / [n]o / n[e]ver"
    assert [chosen(typed, ["yes", "no"]) for typed in ("", "N", "no", "q")] == [
        "yes",
        "no",
        "no",
        None,
    ]


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (20, 6)])
def test_a_row_is_picked_with_search_and_preview(size):
    rows = [Row(f"Session {n} 日本", f"{n} days ago", f"about {n}\n\tdetail") for n in range(5_000)]

    async def chat(terminal: Terminal, person: Person) -> int:
        picking = asyncio.ensure_future(terminal.pick("Resume", rows))
        await person.sees("Resume")
        terminal.show("shown meanwhile")
        await person.sees_nothing_new()
        person.type(f"4 {DOWN}about 432{DOWN}{ENTER}")
        assert await picking == 1_432
        picking = asyncio.ensure_future(terminal.pick("Again", rows))
        await person.sees("Again")
        person.type(ESC)
        assert await picking is None
        return 1

    code, person = hosted(chat, size=size)
    assert code
    raw = person.out.getvalue()
    assert raw.index("\x1b[?1049l") < raw.index("shown meanwhile")
    assert raw.count("\x1b[?1049h") == 2
    assert size[0] < 80 or "about 0" in person.seen


def test_a_list_fits_its_screen():
    for columns, rows in ((80, 24), (200, 60), (100, 10), (50, 14), (30, 5)):
        size = Size(rows, columns)
        picker = Picker(
            "t", [Row("日" * 99, "d" * 99, "p\n" * 99)] * 99, Future(), lambda s=size: s
        )
        picker.query.text = "日日"
        picker.move(50)
        assert picker.selected == 50
        drawn = "".join(text for _, text, *_ in picker._body()).removesuffix("\n").split("\n")
        assert all(len(line) + line.count("日") <= columns for line in drawn)
        assert rows < 20 or len(drawn) <= rows - 3
        assert any(line.startswith("› ") for line in drawn)  # noqa: RUF001
        assert sum("d" in line for line in drawn) >= min(4, rows - 4)  # rows of the list


def test_what_fails_in_the_chat_is_raised_after_the_terminal_is_restored():
    async def chat(terminal: Terminal, _: Person) -> int:
        terminal.show("before")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hosted(chat)


def test_what_fails_in_the_drawing_is_raised_and_ends_the_chat():
    ended = []

    async def chat(terminal: Terminal, person: Person) -> int:
        terminal.begin(person.listening()._replace(status=lambda: 1 // 0))
        try:
            await terminal.read()
        finally:
            ended.append(True)
        return 0

    with pytest.raises(ZeroDivisionError):
        hosted(chat)
    assert ended


def test_what_libraries_print_is_shown_in_its_place():
    async def chat(_: Terminal, person: Person) -> int:
        print("stray", "line")  # noqa: T201 - as a library would
        sys.stderr.write("and a warning\n")
        await person.sees("and a warning")
        return 0

    assert "stray line\n" in hosted(chat)[1].seen


def test_a_narrower_window_leaves_nothing_behind():
    async def chat(terminal: Terminal, person: Person) -> int:
        terminal.on_event(TextDelta("```\n" + "x" * 70))
        await person.sees("x" * 70)
        await person.sees_nothing_new()
        person.out.truncate(0)
        person.size[0] = 40
        terminal.on_event(TextDelta("\ny"))
        await person.sees("y")
        return 0

    raw = hosted(chat)[1].out.getvalue()
    # The line of 70 takes two rows of 40, so one more row is erased than was drawn. What has not
    # changed may have been drawn once more before.
    same = r"(?:\x1b\[\?\d+[hl]|\x1b\[0m)*"
    assert re.match(rf"\x00*{same}\r\x1b\[A\x1b\[2D\x1b\[3A\x1b\[J", raw)


def test_history_is_kept_for_its_owner_alone(tmp_path):
    path = tmp_path / "state" / "typed"

    async def first(terminal: Terminal, person: Person) -> int:
        person.type(f"one\x1b\rline{ENTER} secret{ENTER}two{ENTER}")
        return [await terminal.read() for _ in range(3)] == ["one\nline", " secret", "two"]

    async def second(terminal: Terminal, person: Person) -> int:
        await person.sees_nothing_new()
        person.type(f"{UP}{UP}{ENTER}")
        return await terminal.read() == "one\nline"

    assert hosted(first, path)[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "secret" not in path.read_text()
    assert hosted(second, path)[0]


def test_a_history_that_cannot_be_kept_is_no_error(tmp_path):
    (tmp_path / "file").write_text("not\njson\n[1]\n")
    assert list(TypedHistory(tmp_path / "file").load_history_strings()) == []
    nowhere = TypedHistory(tmp_path / "file" / "below")
    nowhere.keep("one")
    assert list(nowhere.get_strings()) == ["one"]
    long = TypedHistory(tmp_path / "long")
    long._write([str(n) for n in range(5_000)], 0)
    assert next(iter(long.load_history_strings())) == "4999"
    assert len((tmp_path / "long").read_text().splitlines()) == 2_000


LONG = "\n".join(f"line {nth}" for nth in range(2_100))
OTHER = "x" * 4_321


def pasted(text):
    return f"\x1b[200~{text}\x1b[201~"


def test_a_long_paste_is_one_label_on_the_screen_and_whole_for_the_chat(tmp_path):
    path = tmp_path / "typed"

    async def first(terminal: Terminal, person: Person) -> int:
        person.type(f"Compare {pasted(LONG)} with {pasted(OTHER)}, please")
        await person.sees("[Pasted text, 2,100 lines]")
        await person.sees("[Pasted text, 4,321 characters]")
        person.type(ENTER)
        assert await terminal.read() == f"Compare {LONG} with {OTHER}, please"
        await person.sees("Compare [Pasted text, 2,100 lines] with [Pasted text, 4,321 characters]")
        assert "line 7" not in person.seen
        assert "xxx" not in person.seen
        person.type(pasted("a\nb"))
        await person.sees("b")
        person.type(ENTER)
        return await terminal.read() == "a\nb"

    async def again(terminal: Terminal, person: Person) -> int:
        await person.sees_nothing_new()  # the history is read
        person.type(f"{UP}{UP}{UP}")  # the newest has two lines
        await person.sees("[Pasted text, 2,100 lines]")
        person.type(f" Now{ENTER}")
        return await terminal.read() == f"Compare {LONG} with {OTHER}, please Now"

    assert hosted(first, path)[0]
    assert hosted(again, path)[0]


def test_a_paste_is_deleted_and_passed_as_one_character():
    left, backspace = "\x1b[D", "\x7f"

    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(f"a{pasted(LONG)}{pasted(OTHER)}{left}{left}b{ENTER}")
        assert await terminal.read() == f"ab{LONG}{OTHER}"
        person.type(f"a{pasted(LONG)}{pasted(OTHER)}b{left}{backspace}{ENTER}")
        return await terminal.read() == f"a{LONG}b"

    assert hosted(chat)[0]


def test_a_queued_paste_is_a_label_and_can_be_taken_back():
    async def chat(terminal: Terminal, person: Person) -> int:
        person.type(f"see {pasted(LONG)}{ENTER}")
        await person.sees("queued: see [Pasted text, 2,100 lines]")
        person.type(f"{UP}!{ENTER}")
        await until(lambda: waiting(terminal) and waiting(terminal)[0].endswith("!"))
        return await terminal.queued() == [f"see {LONG}!"]

    assert hosted(chat)[0]


def test_the_cursor_stands_where_the_label_is_drawn():
    drawn = PasteLabels(pastes := Pastes()).apply_transformation(
        TransformationInput(
            BufferControl(), Document(), 0, lambda at: at, [("", f"ab{pastes.mark(LONG)}c")], 80, 24
        )
    )
    assert fragment_list_to_text(drawn.fragments) == "ab[Pasted text, 2,100 lines]c"
    columns = [drawn.source_to_display(at) for at in range(5)]
    assert columns == [0, 1, 2, 28, 29]
    assert [drawn.display_to_source(column) for column in (0, 1, 2, 20, 28, 29)] == [
        *(0, 1, 2, 2, 3, 4)
    ]


def test_of_a_long_earlier_prompt_a_few_lines_are_printed():
    async def chat(terminal: Terminal, person: Person) -> int:
        terminal.on_event(Prompt(LONG))
        await person.sees("… 2,092 more lines")
        return 1

    seen = hosted(chat)[1].seen
    assert "› line 0\n  line 1" in seen  # noqa: RUF001
    assert "line 9" not in seen


class Timers:
    """The timers of all event loops that are still to fire."""

    def __init__(self, monkeypatch):
        self.pending = {}
        call_at = asyncio.BaseEventLoop.call_at

        def counted(loop, when, callback, *args, **more):
            def run(*args):
                self.pending.pop(key, None)
                callback(*args)

            key = object()
            handle = self.pending[key] = call_at(loop, when, run, *args, **more)
            return handle

        monkeypatch.setattr(asyncio.BaseEventLoop, "call_at", counted)

    def none(self):
        return all(handle.cancelled() for handle in [*self.pending.values()])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the store is looked at regularly")
def test_an_idle_chat_sets_no_timer_and_draws_nothing(tmp_path, monkeypatch):
    """And yet it shows what another terminal says in its session."""

    async def chat(terminal: Terminal, person: Person) -> int:
        def conversation(surface):
            model = model_of()
            store = SqliteStore(tmp_path / "s.db")
            parts = Parts(store, Agent(), model, load_settings, lambda _: model)
            return Conversation(parts, "talk", surface.on_event, surface.refresh)

        def idle() -> None:
            """In a thread: the loop of the chat has nothing to do while the test waits."""
            until = time.monotonic() + 60
            drawn = -1
            while not (timers.none() and terminal._screen.app.render_counter == drawn):
                assert time.monotonic() < until, timers.pending
                drawn = terminal._screen.app.render_counter
                time.sleep(0.3)

        async def person_there() -> int:
            await person.sees("nothing said yet")
            person.type(f"hello{ENTER}")
            await person.sees("I heard: hello")
            await asyncio.to_thread(idle)
            counter = terminal._screen.app.render_counter
            for _ in range(3):
                await asyncio.to_thread(idle)
            assert terminal._screen.app.render_counter == counter
            other = conversation(FakeSurface())
            async with other._parts.store:
                await other.turn("and me", lambda _: None)
                await other.close()
            await person.sees("From another terminal:")
            await person.sees("I heard: and me")
            await asyncio.to_thread(idle)
            person.type(CTRL_D)
            return 0

        talk = conversation(terminal)
        async with talk._parts.store:
            typing = asyncio.create_task(person_there())
            timers = Timers(monkeypatch)  # those of the test itself are older
            await talk.open()
            assert await RealChat(talk, terminal).run() == 0
            await talk.close()
        return await typing

    assert hosted(chat)[0] == 0
