"""The real model and its server do what the tests that lean on them believe."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from local_model.deciding import Deciding, local
from local_model.journal import Exchange, Journal, exchanges_of, lines_of, live
from local_model.legality import faults_of, figures_of, too_long
from local_model.server import require_local_model
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

N_CTX = 512
ASKED = {"role": "user", "content": "Go on."}
RESULT = {"role": "tool", "tool_call_id": "one", "content": "found"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "one", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
    ],
}
ILLEGAL = {
    "a result without its call": [ASKED, RESULT],
    "a call without its result": [ASKED, CALL, ASKED],
    "a call at the end": [ASKED, CALL],
}


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    yield journal
    journal.close()


def post(url, messages, **more):
    body = {"messages": messages, "max_tokens": 1, **more}
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - our own server
            status, told = answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            status, told = error.code, json.load(error)
    return Exchange(0, body, status, told.get("error"), told.get("usage"))


def answers(url, *, tries):
    """Whether it still does after so many."""
    try:
        for _ in range(tries):
            post(url, [ASKED])
    except OSError:
        return False
    return True


@pytest.mark.parametrize("messages", ILLEGAL.values(), ids=ILLEGAL)
def test_the_server_refuses_what_our_own_check_finds(local_model, messages):
    answered = post(local_model(N_CTX), messages)
    assert answered.status == 400
    assert not too_long(answered)
    assert any("call" in fault for fault in faults_of(answered._replace(status=200), "Go on."))


def test_the_server_takes_and_counts_tools_calls_and_results(local_model):
    url = local_model(N_CTX)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    plain = post(url, [ASKED, {"role": "assistant", "content": ""}])
    called = post(url, [ASKED, CALL, RESULT])
    with_tools = post(url, [ASKED, CALL, RESULT], tools=[tool])
    assert list(faults_of(with_tools, "Go on.")) == []
    counts = [one.usage["prompt_tokens"] for one in (plain, called, with_tools) if one.usage]
    assert counts == sorted(set(counts))
    assert len(counts) == 3


def test_a_request_that_is_too_long_is_refused_with_the_limit(local_model):
    answered = post(local_model(N_CTX), [{"role": "user", "content": "word " * N_CTX}])
    assert too_long(answered)
    assert answered.error
    assert answered.error["n_ctx"] == N_CTX
    assert answered.error["n_prompt_tokens"] > N_CTX
    assert list(faults_of(answered, "word")) == []


def test_other_faults_are_found():
    good = Exchange(0, {"messages": [ASKED, CALL, RESULT], "tools": [{}]}, 200)
    assert list(faults_of(good, "Go on.")) == []
    assert list(faults_of(good, "Stop.")) == ["The user's prompt is not there: 'Stop.'."]
    strange = [{"role": "developer", "content": "x"}, ASKED]
    assert len(list(faults_of(good._replace(body={"messages": strange}), "Go on."))) == 1
    ended = [ASKED, {"role": "assistant", "content": "Done."}]
    assert len(list(faults_of(good._replace(body={"messages": ended}), "Go on."))) == 1
    assert len(list(faults_of(good._replace(status=500), "Go on."))) == 1


async def test_an_agent_calls_what_is_decided_and_the_server_sees_each_request(
    local_model, journal, tmp_path
):
    script = {
        (7, 0): [("look", {"at": "a"}), ("look", {"at": "b"})],
        (7, 1): [("look", {"at": "c"})],
    }
    agent = Agent(model_settings={"max_tokens": 4})

    @agent.tool_plain
    def look(at: str) -> str:
        return f"seen {at}"

    journal.turn = 7
    async with journal.client() as client:
        real = local(local_model(N_CTX), client)
        decided = Deciding(real, lambda *at: script.get(at, ()), journal)
        result = await agent.run("Turn 7.", model=decided)
    assert result.output.endswith("(end of turn 7)")
    assert result.usage.input_tokens > 0
    made = list(exchanges_of(tmp_path / "journal.jsonl"))
    assert [fault for one in made for fault in faults_of(one, "Turn 7.")] == []
    assert [len(one.body["messages"]) for one in made] == [1, 4, 6]
    told = [one["content"] for one in made[-1].body["messages"] if one["role"] == "tool"]
    assert told == ["seen a", "seen b", "seen c"]
    figures = figures_of(made)
    assert (figures["requests"], figures["refused for length"]) == (3, 0)
    assert figures["tokens cached"] > 0


async def test_a_refusal_is_written_down_and_raised(local_model, journal, tmp_path):
    async with journal.client() as client:
        model = Deciding(local(local_model(N_CTX), client), lambda *_: (), journal)
        with pytest.raises(ModelHTTPError):
            await Agent(model).run("word " * N_CTX)
    [made] = exchanges_of(tmp_path / "journal.jsonl")
    assert too_long(made)
    assert figures_of([made])["refused for length"] == 1


def test_a_request_without_an_answer_is_one_too(tmp_path):
    (tmp_path / "j").write_text('{"what": "request", "turn": 3, "number": "n", "body": {}}\n')
    assert list(exchanges_of(tmp_path / "j")) == [Exchange(3, {})]
    assert lines_of(tmp_path / "none") == []


def test_a_line_that_a_kill_cut_is_none(tmp_path):
    path = tmp_path / "j"
    path.write_bytes(b'{"what": "request", "body": {"messa')
    journal, seen = Journal(path), live(path)
    assert next(seen) is None
    journal.write("asked")
    journal.close()
    assert [line["what"] for line in lines_of(path)] == ["asked"]
    assert next(seen) == {"what": "asked", "turn": 0}
    assert next(seen) is None


def test_the_server_ends_with_who_started_it():
    require_local_model()
    code = (
        "import time; from local_model.server import serving\n"
        "with serving(64) as url:\n    print(url, flush=True); time.sleep(600)"
    )
    tests = Path(__file__).parent.parent
    starter = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tests, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    url = starter.stdout.readline().strip()
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    assert not answers(url, tries=1000)
