"""One turn with `-p`: what is printed where, and how it ends when nobody reads it."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import errno
import io
import json
import sys
from dataclasses import replace
from types import ModuleType

import pytest
import typer
from chatting import chat_with
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResult, AgentRunResultEvent
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import PartStartEvent, TextPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from typer.testing import CliRunner

from refold import cli
from refold.cli.app import app
from refold.cli.chat import run
from refold.cli.chat.conversation import TurnTracker
from refold.cli.chat.errors import describe_error
from refold.cli.chat.printing import print_turn
from refold.cli.outcome import FAILED, INTERRUPTED, READER_GONE
from refold.errors import InvalidInput

PIECES = ("one ", "two \x1b[3", "1mred", "\x9b2J end")


class City(BaseModel):
    name: str
    people: int


async def said(_, __):
    for piece in PIECES:
        yield piece


async def given(_, __):
    yield {0: DeltaToolCall("final_result", '{"name": "Köln", "people": 5}', tool_call_id="c")}


def talking(stream=said):
    return chat_with({"function:large": FunctionModel(stream_function=stream)})


class Output(io.StringIO):
    """Takes so many pieces, and then no more."""

    def __init__(self, most=99, error=errno.EPIPE, *, tty=False):
        super().__init__()
        self._most, self._error, self._tty = most, error, tty
        self.writes = 0

    def isatty(self):
        return self._tty

    def write(self, text):
        self.writes += 1
        if self.writes > self._most:
            raise OSError(self._error, "It takes no more")
        return super().write(text)


async def print_to(monkeypatch, output, *, as_json=False):
    chat = talking()
    monkeypatch.setattr(sys, "stdout", output)
    code = await print_turn(chat.conversation, "hi", as_json=as_json)
    assert await chat.model_context() == ["hi", "".join(PIECES)], "the turn is not kept whole"
    return code


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_turn_ends_though_nobody_reads_on(monkeypatch, capsys, as_json):
    output = Output(0 if as_json else 2)
    assert await print_to(monkeypatch, output, as_json=as_json) == READER_GONE
    assert output.writes == (1 if as_json else 3), "it is written to after the reader has gone"
    assert capsys.readouterr().err == ""


async def test_a_turn_ends_where_there_is_no_output(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert await print_to(monkeypatch, None) == READER_GONE


async def test_a_turn_that_fails_needs_nobody_to_tell(monkeypatch):
    async def failing(_, __):
        raise ValueError("no")
        yield ""

    monkeypatch.setattr(sys, "stdout", Output())
    monkeypatch.setattr(sys, "stderr", None)
    assert await print_turn(talking(failing).conversation, "hi", as_json=False) == FAILED


async def test_a_full_disk_is_told_after_the_turn(monkeypatch, capsys):
    assert await print_to(monkeypatch, Output(1, errno.ENOSPC)) == FAILED
    assert capsys.readouterr().err == (
        "error[file]: 'standard output': It takes no more.\nFree some disk space and try again.\n"
    )


async def test_a_terminal_gets_nothing_to_obey_and_a_pipe_gets_all(monkeypatch):
    pipe, terminal = Output(), Output(tty=True)
    assert await print_to(monkeypatch, pipe) == 0
    assert await print_to(monkeypatch, terminal) == 0
    assert pipe.getvalue() == "".join(PIECES) + "\n"
    assert terminal.getvalue() == "one two red2J end\n"
    terminal = Output(tty=True)
    await print_to(monkeypatch, terminal, as_json=True)
    assert "\x9b" not in terminal.getvalue()
    assert json.loads(terminal.getvalue())["text"] == "".join(PIECES)


async def test_an_answer_that_is_a_value_is_shown(monkeypatch):
    chat = talking(given)
    talk = chat.conversation
    talk._parts = replace(talk._parts, agent=Agent(output_type=City))
    shown = '```json\n{\n  "name": "Köln",\n  "people": 5\n}\n```'
    for as_json in (False, True):
        monkeypatch.setattr(sys, "stdout", Output())
        assert await print_turn(talk, "hi", as_json=as_json) == 0
        text = sys.stdout.getvalue()
        assert (json.loads(text)["text"] if as_json else text.removesuffix("\n")) == shown


@pytest.mark.parametrize(
    ("text", "output", "more"),
    [
        ("", "made elsewhere", "made elsewhere"),
        ("said", "said", ""),
        ("Here:", [1], "\n\n```json\n[\n  1\n]\n```"),
        ('{"name":"A","people":1}', City(name="A", people=1), ""),
        ("", {1: object}, '```json\n{\n  "1": "<class \'object\'>"\n}\n```'),
        ("", None, ""),
    ],
)
def test_what_was_said_is_not_said_again(text, output, more):
    tracker = TurnTracker()
    tracker.translate(PartStartEvent(index=0, part=TextPart(text)))
    heard = tracker.translate(AgentRunResultEvent(AgentRunResult(output)))
    assert (heard.text if heard else "") == more
    assert tracker.text == text + more


@pytest.mark.parametrize(("prompt", "found"), [("hi", "hi"), (None, None)])
def test_a_closed_input_says_nothing(monkeypatch, prompt, found):
    monkeypatch.setattr(sys, "stdin", None)
    if found is None:
        with pytest.raises(InvalidInput):
            run._with_input(prompt)
    else:
        assert run._with_input(prompt) == found


def test_a_chat_without_input_or_output_is_plain(monkeypatch):
    how = []

    def run_chat(_, *, plain):
        how.append(plain)
        return 0

    monkeypatch.setattr(run, "run_chat", run_chat)
    for name in ("stdin", "stdout"):
        with monkeypatch.context() as closed:
            closed.setattr(sys, name, None)
            with pytest.raises(typer.Exit):
                run.chat()
    assert how == [True, True]


KEY = "a.key.of.its.own.kind"


@pytest.mark.parametrize("name", ["SOME_API_KEY", "hub_token", "A_SECRET_2", "DB_PASSWORD"])
def test_no_key_of_the_environment_is_shown(monkeypatch, name):
    monkeypatch.setenv(name, f"{KEY}\n")
    monkeypatch.setenv("SHORT_KEY", "wrong")
    for error in (
        ModelHTTPError(401, "m", {"error": {"message": f"wrong: {KEY}"}}),
        UnexpectedModelBehavior(f"wrong {KEY}"),
        InvalidInput(f"wrong {KEY}", f"Not {KEY}."),
        ValueError(f"wrong {KEY}"),
        ValueError(f"wrong {'x ' * 142}{KEY}, and on {'y ' * 50}"),
    ):
        what, fix, _ = describe_error(error, "p:m")
        assert "key" not in what + fix.lower().replace("its key", "")
        assert "wrong" in what
        assert "…" in what


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"type": "error", "error": {"type": "x", "message": "Too busy."}}, "Too busy."),
        ({"message": "Too busy.", "code": 3}, "Too busy."),
        ([{"error": {"code": 503, "message": "Too busy."}}], "Too busy."),
        ('{"detail": "Too busy."}', "Too busy."),
        ("Too busy.", "Too busy."),
        ("<html><body>No</body></html>", "Service Unavailable."),
        ({"object": "error", "id": 7}, "Service Unavailable."),
        (None, "Service Unavailable."),
    ],
)
def test_a_provider_is_told_in_its_own_words(body, said):
    assert describe_error(ModelHTTPError(503, "m", body), "p:m")[0] == f"p:m answered 503: {said}"


def test_what_a_model_sent_is_not_dumped():
    what, *_ = describe_error(UnexpectedModelBehavior("It made no sense.", '{"a": 1}'), "p:m")
    assert what == "It made no sense."


def test_ctrl_c_while_all_is_imported_is_said_in_a_word(monkeypatch, capsys):
    class Interrupted(ModuleType):
        def __getattr__(self, _):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "refold.cli.app", Interrupted("refold.cli.app"))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == "\nInterrupted.\n"


def test_ctrl_c_before_a_command_has_begun_is_said_in_a_word(monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "where_is", interrupt)
    done = CliRunner().invoke(app, ["chat"])
    assert (done.exit_code, done.stderr) == (INTERRUPTED, "\nInterrupted.\n")
