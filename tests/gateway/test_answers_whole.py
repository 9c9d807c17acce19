"""Whole answers, and errors in the provider's shape."""

import json

import pytest

from refold.gateway.dialects.anthropic_messages import answer as messages_answer
from refold.gateway.dialects.dialect import anthropic_refusal, openai_refusal
from refold.gateway.dialects.openai_chat import answer as chat_answer
from refold.gateway.dialects.openai_responses import answer as responses_answer
from refold.models.catalog import Usage

A = {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x":1}'}}


@pytest.mark.parametrize("answer", [chat_answer, messages_answer, responses_answer])
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"error":{"message":"x"}}', b'{"choices":[]}']
)
def test_what_is_no_answer(answer, body):
    assert answer(body) is None


def test_whole_answers():
    message = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
    message |= {"tool_calls": [{**A, "index": 0}], "audio": None}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    answer = chat_answer(json.dumps(body).encode())
    assert answer is not None
    assert [json.loads(one) for one in answer.payloads] == [
        {"role": "assistant", "content": None, "tool_calls": [A]}
    ]
    assert (answer.finish, answer.complete) == ("tool_calls", True)
    text = {"type": "text", "text": "a", "citations": None}
    body = {"role": "assistant", "content": [text], "stop_reason": "end_turn"}
    body["usage"] = {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3}
    answer = messages_answer(json.dumps(body).encode())
    assert answer is not None
    assert answer.payloads == (b'{"role":"assistant","content":[{"type":"text","text":"a"}]}',)
    assert answer.usage == Usage(3, 3, 2, 0)
    body = {"output": [{"type": "reasoning", "status": None}], "status": "in_progress"}
    assert responses_answer(json.dumps(body).encode()) is None
    answer = responses_answer(json.dumps({**body, "status": "completed"}).encode())
    assert answer is not None
    assert answer.payloads == (b'{"type":"reasoning"}',)
    answer = responses_answer(json.dumps({**body, "status": "failed"}).encode())
    assert answer is not None
    assert (answer.payloads, answer.complete) == ((), False)


STATUSES = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("authentication_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("invalid_request_error", "not_found_error"),
    408: ("invalid_request_error", "timeout_error"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_exceeded", "rate_limit_error"),
    503: ("server_error", "overloaded_error"),
    504: ("server_error", "timeout_error"),
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_refusal_has_the_shape_of_the_providers(status):
    for_openai, for_anthropic = STATUSES[status]
    told = {"message": 'No "<b>".', "type": for_openai, "param": None, "code": "why"}
    assert json.loads(openai_refusal(status, "why", 'No "<b>".')) == {"error": told}
    told = {"type": for_anthropic, "message": 'No "<b>".'}
    refusal = anthropic_refusal(status, "why", 'No "<b>".')
    assert json.loads(refusal) == {"type": "error", "error": told}
