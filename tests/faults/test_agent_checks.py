"""What is looked for after the kills is found where it is planted."""

import json

import agent_log
import httpx2
import pytest
from agent_child import next_turn, talk
from inspection import check
from local_model.journal import exchanges_of, lines_of
from local_model.legality import figures_of

N_CTX = 3000
ANSWER = {
    "id": "a",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "So."}}
    ],
}


def answer(request):
    """As the real server would; a token is four characters here."""
    tokens = len(request.content) // 4
    if tokens > N_CTX:
        error = {"type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": N_CTX}
        error |= {"code": 400, "message": f"request ({tokens} tokens) exceeds the available"}
        return httpx2.Response(400, json={"error": error})
    usage = {"prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": tokens + 2}
    return httpx2.Response(200, json={**ANSWER, "usage": usage})


@pytest.fixture
async def talked(tmp_path):
    """A conversation of five turns, in two lives."""
    for turns in (2, 5):
        await talk(tmp_path, "http://model", turns, None, httpx2.MockTransport(answer))
    return tmp_path


async def test_a_conversation_without_kills_has_all_of_it(talked):
    path, journal = talked / "refold.db", talked / "journal.jsonl"
    assert await next_turn(path) == 6
    agent_log.check_requests(journal)
    await agent_log.check_nothing_lost(path, journal)
    figures = figures_of(exchanges_of(journal))
    assert figures["refused for length"] > 0
    assert await agent_log.check_records(path, journal) == figures["requests"]
    await check(path)


def _say_otherwise(line):
    if line["what"] == "request":
        line["body"]["messages"][0]["content"] = "something else"


def _lose_a_result(line):
    if line["what"] == "request":
        messages = line["body"]["messages"]
        line["body"]["messages"] = [one for one in messages if one["role"] != "tool"]


def _fail(line):
    line["what"] = "error" if line["what"] == "answered" else line["what"]


def _refuse(line):
    if line["what"] == "response":
        line |= {"status": 400, "error": {"type": "invalid_request_error"}}


def _run_another(line):
    if line["what"] == "returned":
        line["call"] = "never made"


def _answer_otherwise(line):
    if line["what"] == "answered":
        line["text"] = "something else"


def _send_another(line):
    if line["what"] == "request":
        call = f"t{line['turn']}s9c9"
        line["body"]["messages"].append({"role": "tool", "tool_call_id": call, "content": ""})


def _ask_more(line):
    line["turn"] += 1


PLANTED = {
    "requests": [_lose_a_result, _fail, _refuse, _ask_more],
    "lost": [_run_another, _answer_otherwise, _send_another, _ask_more],
    "records": [_say_otherwise],
}


@pytest.mark.parametrize(
    ("where", "plant"), [(where, one) for where, planted in PLANTED.items() for one in planted]
)
async def test_what_is_planted_is_found(talked, where, plant):
    path, journal = talked / "refold.db", talked / "journal.jsonl"
    lines = lines_of(journal)
    for line in lines:
        plant(line)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(AssertionError):
        await _look(where, path, journal)


async def _look(where, path, journal):
    match where:
        case "requests":
            agent_log.check_requests(journal)
        case "lost":
            await agent_log.check_nothing_lost(path, journal)
        case _:
            await agent_log.check_records(path, journal)
