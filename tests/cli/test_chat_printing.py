"""One turn with `-p`: what is printed where, and how it ends when nobody reads it."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import errno
import io
import json
import re
import sys
from dataclasses import replace
from types import ModuleType

import pytest
import typer
from chatting import chat_with
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResult, AgentRunResultEvent
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartStartEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from refold_commands import quick, terminal
from scripted_providers import Said, Script, provider_model
from typer.testing import CliRunner

from refold import cli
from refold.cli.app import app
from refold.cli.chat import run
from refold.cli.chat.conversation import TurnTracker
from refold.cli.chat.errors import Advice, describe_error
from refold.cli.chat.printing import PrintedTurn
from refold.cli.chat.surface import ContextEvent
from refold.cli.outcome import FAILED, INTERRUPTED, READER_GONE, write_json_failure
from refold.errors import InvalidInput, PromptTooLarge, WindowExceeded
from refold.fold.events import CompactionComplete
from refold.models import counter_for

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
    code = await PrintedTurn(as_json=as_json).run(chat.conversation, "hi")
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
    assert await PrintedTurn(as_json=False).run(talking(failing).conversation, "hi") == FAILED


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
        assert await PrintedTurn(as_json=as_json).run(talk, "hi") == 0
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
    tracker = TurnTracker(counter_for(""))
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


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["-p", "hi"], 1, "no-model"),
        ([], 2, "invalid-input"),
        (["-p", "hi", "--resume", "-m", "test", "nowhere"], 1, "session-not-found"),
        (["-p", "hi", "--profile", "none"], 2, "usage"),
        (["-p", "hi", "--files", "nowhere"], 1, "invalid-input"),
        (["-p", "hi", "--frob"], 2, "usage"),
        (["-p", "hi", "-m", "openai:x", "--base-url", "http://127.0.0.1:9/v1"], 1, "provider"),
    ],
)
def test_a_failure_is_the_last_line_of_json(terminal, words, status, code):
    done = terminal.run("chat", *words, "--json")
    assert done.returncode == status, done
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["ended"], last["error"]["code"]) == ("failed", code)
    assert last["error"]["what"]
    assert last["error"]["fix"]
    assert terminal.run("chat", *words).stdout == ("\n" if code == "provider" else "")


async def test_a_failure_has_the_fields_of_an_answer(monkeypatch, capsys):
    await print_to(monkeypatch, answer := Output(), as_json=True)
    monkeypatch.undo()
    write_json_failure("interrupted", "Interrupted.", "Run it again.")
    failure = json.loads(capsys.readouterr().out)
    assert failure.keys() == json.loads(answer.getvalue().splitlines()[-1]).keys()
    assert failure["ended"] == "interrupted"


async def test_a_fold_that_ends_last_comes_before_the_answer(monkeypatch):
    chat = talking()
    monkeypatch.setattr(sys, "stdout", Output())
    turn = PrintedTurn(as_json=True)
    close = chat.conversation.close

    async def closing(**how):
        turn.on_event(ContextEvent(CompactionComplete("f")))
        await close(**how)

    monkeypatch.setattr(chat.conversation, "close", closing)
    assert await turn.run(chat.conversation, "hi") == 0
    *_, event, last = map(json.loads, sys.stdout.getvalue().splitlines())
    assert event["type"] == CompactionComplete.NAME
    assert last["ended"] == "answered"


RESUME = "refold chat --resume talk"


async def print_scripted(monkeypatch, *answers, as_json):
    """The prompt said twice; what standard output had, and how many messages the log has."""
    model = provider_model("openai", Script(*answers))
    chat = chat_with({"openai:gpt-4o": model})
    talk = chat.conversation
    talk._parts = replace(talk._parts, resume="refold chat --resume {}".format)
    printed = []
    for _ in answers:
        monkeypatch.setattr(sys, "stdout", Output())
        code = await PrintedTurn(as_json=as_json).run(talk, "hi")
        printed.append((code, sys.stdout.getvalue()))
    return printed, (await talk.log.info("talk")).messages


@pytest.mark.parametrize("as_json", [False, True])
async def test_an_answer_that_is_cut_off_fails_and_the_same_command_asks_again(
    monkeypatch, capsys, as_json
):
    answers = Said("Half an ans", cut="ended"), Said("A whole answer.")
    printed, messages = await print_scripted(monkeypatch, *answers, as_json=as_json)
    assert [code for code, _ in printed] == [FAILED, 0]
    assert messages == 3, "the prompt is written twice"
    what, fix = "The answer stopped before its end.", f'`{RESUME} -p "…"` with the same words'
    if as_json:
        first, last = (json.loads(text.splitlines()[-1]) for _, text in printed)
        assert (first["ended"], first["text"]) == ("failed", "")
        assert first["error"]["what"] == what
        assert first["error"]["fix"].startswith(fix)
        assert last["text"] == "A whole answer."
    else:
        assert [text for _, text in printed] == ["Half an ans\n", "A whole answer.\n"]
        assert capsys.readouterr().err.startswith(f"error[provider]: {what}\n{fix}")


@pytest.mark.parametrize("as_json", [False, True])
async def test_an_answer_that_stopped_at_a_limit_says_so_beside_it(monkeypatch, capsys, as_json):
    said = Said("One, two", finish="length")
    [(code, text)], _ = await print_scripted(monkeypatch, said, as_json=as_json)
    assert code == 0
    if as_json:
        last = json.loads(text.splitlines()[-1])
        assert (last["text"], last["at_limit"]) == ("One, two", True)
    else:
        assert text == "One, two\n"
        assert capsys.readouterr().err == (
            f'The model stopped at its output limit. Run: {RESUME} -p "go on"\n'
        )


def test_what_to_do_after_p_is_of_the_shell():
    errors = [
        PromptTooLarge(seq=1, tokens=9, kept=1, limit=2),
        WindowExceeded("It was refused."),
        UnexpectedModelBehavior("No."),
        ValueError("no"),
        *(ModelHTTPError(status, "m") for status in (400, 401, 404, 429, 503)),
    ]
    advice = Advice(RESUME)
    fixes = [describe_error(error, "p:m", advice)[1] for error in errors]
    for fix in [*fixes, advice.more_steps(), advice.command("/allow tool")]:
        typed = fix.partition(f"(typed in `{RESUME}`)")
        commands = re.findall(r"(?<![\w.])/[a-z]+", typed[0] if typed[1] else fix)
        assert len(commands) == bool(typed[1]), fix
        assert "`go on`" not in fix
    assert all("/" in describe_error(error, "p:m")[1] for error in errors)


def test_what_the_model_does_is_said_in_a_word():
    tracker = TurnTracker(counter_for(""))
    call = ToolCallPart("read_file", {}, "c")
    doing = [tracker.doing]
    for event in (
        PartStartEvent(index=0, part=ThinkingPart("Hm.")),
        PartStartEvent(index=1, part=TextPart("Let me look.")),
        FunctionToolCallEvent(call),
        FunctionToolResultEvent(ToolReturnPart("read_file", "It is empty.", "c")),
        PartStartEvent(index=0, part=TextPart("It is empty.")),
    ):
        tracker.translate(event)
        doing.append(tracker.doing)
    assert doing == ["thinking", "thinking", "writing", "read_file", "thinking", "writing"]


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
