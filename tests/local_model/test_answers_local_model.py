"""Answers of a real server, streamed and whole, in all three APIs."""

import json
import urllib.request

import pytest

from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.events import Events

N_CTX = 512
SAID = "Say hello."
ASKED = {"messages": [{"role": "user", "content": SAID}], "max_tokens": 4}
BODIES = {
    "/v1/chat/completions": {**ASKED, "stream_options": {"include_usage": True}},
    "/v1/responses": {"input": SAID, "max_output_tokens": 4},
    "/v1/messages": ASKED,
}


def post(url, path, *, stream):
    body = {**BODIES[path], "model": "m", "temperature": 0, "stream": stream}
    request = urllib.request.Request(  # noqa: S310 - our own server
        url.removesuffix("/v1") + path,
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - our own server
        return answer.read()


@pytest.mark.parametrize("path", BODIES)
def test_a_stream_of_a_real_server_is_its_whole_answer(local_model, path):
    url, dialect = local_model(N_CTX), DIALECTS[path]
    whole = dialect.answer(post(url, path, stream=False))
    events, assembler = Events(), dialect.assembler()
    told = events.feed(post(url, path, stream=True))
    held = [assembler.take(event) for event in told]
    answer = assembler.answer()
    assert whole is not None
    assert (whole.complete, answer.complete, assembler.failed) == (True, True, False)
    assert events.rest() == b""
    assert held == sorted(held)
    assert held[-1]
    streamed, at_once = (
        [dialect.fingerprint(payload).content for payload in one.payloads]
        for one in (answer, whole)
    )
    assert streamed == at_once
    assert all(dialect.fingerprint(payload).answers for payload in answer.payloads)
    assert answer.finish == whole.finish
    assert answer.usage is not None
    assert whole.usage is not None
    assert answer.usage[:2] == whole.usage[:2]
    assert answer.usage.output == 4
