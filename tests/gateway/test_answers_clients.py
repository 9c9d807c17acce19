"""Answers made of streams are what the official clients make of the same bytes."""

import json
from typing import Any

import anthropic
import httpx2
import openai
from amounts import amount
from answer_streams import CHATS, MESSAGES, RESPONSES, assembled, chunked
from hypothesis import given, settings
from hypothesis import strategies as st

from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.anthropic_messages import MessagesAssembler
from refold.gateway.dialects.openai_chat import ChatAssembler
from refold.gateway.dialects.openai_responses import ResponsesAssembler


class Served:
    """Clients of a provider that streams what it is told to."""

    def __init__(self):
        self.chunks = []
        transport = httpx2.MockTransport(lambda _: self._response())
        http = httpx2.Client(transport=transport)
        self.openai = openai.OpenAI(api_key="none", base_url="http://served/v1", http_client=http)
        self.anthropic = anthropic.Anthropic(
            api_key="none", base_url="http://served", http_client=http
        )

    def _response(self):
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=iter(self.chunks))


SERVED = Served()
COUNT = amount(few=3, quick=8, ci=15, nightly=100, thorough=500)
ASKED: Any = [{"role": "user", "content": "Go on."}]


def said(value):
    """Without what says nothing."""
    return {key: one for key, one in value.items() if one not in (None, [], "")}


def alike(path, payloads, theirs):
    """Whether ours are found again by what the client would send."""
    sent = [one.model_dump_json(warnings=False).encode() for one in theirs]
    fingerprint = DIALECTS[path].fingerprint
    ours, sent_back = [*map(fingerprint, payloads)], [*map(fingerprint, sent)]
    return [one.content for one in ours] == [one.content for one in sent_back]


@settings(max_examples=COUNT)
@given(CHATS, st.data())
def test_a_chat_is_the_message_that_the_client_would_send_back(stream, data):
    SERVED.chunks = chunked(stream.raw, data.draw)
    with SERVED.openai.chat.completions.stream(model="m", messages=ASKED) as told:
        choice = told.get_final_completion().choices[0]
    answer = assembled(ChatAssembler(), chunked(stream.raw, data.draw))
    [payload] = answer.payloads
    assert alike("/v1/chat/completions", answer.payloads, [choice.message])
    theirs: Any = said(choice.message.to_dict())
    theirs.pop("parsed", None)
    for call in theirs.get("tool_calls", []):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    assert said(json.loads(payload)) == theirs
    assert (answer.complete, answer.finish) == (True, choice.finish_reason)


@settings(max_examples=COUNT)
@given(MESSAGES, st.data())
def test_a_message_is_what_the_client_would_send_back(stream, data):
    SERVED.chunks = chunked(stream.raw, data.draw)
    with SERVED.anthropic.messages.stream(model="m", max_tokens=1, messages=ASKED) as told:
        message = told.get_final_message()
    answer = assembled(MessagesAssembler(), chunked(stream.raw, data.draw))
    [payload] = answer.payloads
    assert alike("/v1/messages", answer.payloads, [message])
    blocks = [block.to_dict() for block in message.content]
    theirs = [{key: one for key, one in block.items() if one is not None} for block in blocks]
    assert json.loads(payload) == {"role": "assistant", "content": theirs}
    assert (answer.complete, answer.finish) == (True, message.stop_reason)
    usage = message.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    total = usage.input_tokens + read + written
    assert answer.usage == (total, usage.output_tokens, read, written)


@settings(max_examples=COUNT)
@given(RESPONSES, st.data())
def test_items_are_those_that_the_client_would_send_back(stream, data):
    SERVED.chunks = chunked(stream.raw, data.draw)
    with SERVED.openai.responses.stream(model="m", input="Go on.") as told:
        response = told.get_final_response()
    answer = assembled(ResponsesAssembler(), chunked(stream.raw, data.draw))
    assert alike("/v1/responses", answer.payloads, response.output)
    theirs: list[Any] = [item.to_dict() for item in response.output]
    for item in theirs:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or []:
            part.pop("parsed", None)
    assert [said(json.loads(one)) for one in answer.payloads] == [said(one) for one in theirs]
    assert answer.complete
    assert answer.usage is not None
    assert response.usage is not None
    assert answer.usage.output == response.usage.output_tokens
