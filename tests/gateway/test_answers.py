"""Answers of servers that do things their own way."""

import json

import pytest

from refold.gateway.dialects import anthropic_messages, openai_chat, openai_responses
from refold.gateway.dialects.events import Event
from refold.models.catalog import Usage

CHAT = openai_chat.ChatAssembler
MESSAGES = anthropic_messages.MessagesAssembler
RESPONSES = openai_responses.ResponsesAssembler


def event(told, name=""):
    return Event(b"", name, told if isinstance(told, bytes) else json.dumps(told).encode())


def took(assembler, *told):
    """What came of these events, and whether each was held back."""
    one = assembler()
    held = [one.take(event(each)) for each in told]
    return one, held


def chunk(delta, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def chatted(*deltas):
    """The message of a chat stream."""
    one, _ = took(CHAT, *map(chunk, deltas), chunk({}, "stop"))
    [payload] = one.answer().payloads
    return json.loads(payload)


def called(name, arguments, **more):
    return {"function": {"name": name, "arguments": arguments}, **more}


def piece(arguments, **more):
    return {"function": {"arguments": arguments}, **more}


A = called("a", '{"x":1}', id="1", type="function")
B = called("b", "{}", id="2", type="function")


@pytest.mark.parametrize(
    "pieces",
    {
        "whole calls in one chunk": [[{**A, "index": 0}, {**B, "index": 1}]],
        "without an index": [[A], [B]],
        "without an index, in pieces": [
            [called("a", "", id="1")],
            [piece('{"x"')],
            [piece(":1}")],
            [called("b", "{}", id="2")],
        ],
        "ids repeated": [
            [called("a", '{"x"', id="1", index=0)],
            [called("a", ":1}", id="1", index=0)],
            [{**B, "index": 1}],
        ],
        "ids repeated, without an index": [
            [called("a", '{"x"', id="1")],
            [called("a", ":1}", id="1"), B],
        ],
        "each with the index 0": [[{**A, "index": 0}], [{**B, "index": 0}]],
        "arguments as an object": [[called("a", {"x": 1}, id="1", index=0)], [{**B, "index": 1}]],
        "the second begins first": [[{**B, "index": 1}], [{**A, "index": 0}]],
        "nulls in the pieces": [
            [called("a", None, id="1", index=0)],
            [{"index": 0, "id": None, "function": {"name": None, "arguments": '{"x":1}'}}],
            [{**B, "index": 1, "extra": None}],
        ],
        "the id in a later piece": [
            [called("a", "", index=0, id="")],
            [piece('{"x":1}', index=0, id="1")],
            [{**B, "index": 1}],
        ],
    }.values(),
)
def test_calls_are_the_same_however_they_are_streamed(pieces):
    message = chatted(*({"tool_calls": one} for one in pieces))
    assert message == {"role": "assistant", "content": None, "tool_calls": [A, B]}


def test_what_nobody_knows_stays_with_its_call_and_its_message():
    sealed = {"google": {"signature": "s"}}
    message = chatted(
        {"citations": ["a"], "note": "on", "meta": {"a": 1}},
        {"citations": ["b"], "note": "e", "meta": {"b": 2}},
        {"tool_calls": [{**A, "index": 0, "extra_content": sealed}]},
    )
    assert (message["citations"], message["note"]) == (["a", "b"], "one")
    assert message["meta"] == {"a": 1, "b": 2}
    assert message["tool_calls"] == [{**A, "extra_content": sealed}]


def test_reasoning_details_are_put_together_by_their_number():
    text = {"type": "reasoning.text", "index": 0, "format": "f"}
    sealed = {"type": "reasoning.encrypted", "data": "s", "index": 1}
    message = chatted(
        {"reasoning": "so ", "reasoning_details": [{**text, "text": "so ", "signature": None}]},
        {"reasoning": "it is", "reasoning_details": [{**text, "text": "it is"}]},
        {"reasoning_details": [{**text, "signature": "sig"}, sealed]},
        {"content": "Yes."},
    )
    assert message["reasoning"] == "so it is"
    assert message["reasoning_details"] == [
        {**text, "text": "so it is", "signature": "sig"},
        sealed,
    ]


def test_thoughts_among_the_content_stay_items():
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    message = chatted(
        {"content": [thought]}, {"content": [thought]}, {"content": "Ye"}, {"content": "s"}
    )
    both = {"type": "thinking", "thinking": thought["thinking"] * 2}
    assert message["content"] == [both, {"type": "text", "text": "Yes"}]


def test_legacy_calls_custom_calls_audio_and_refusals():
    call = {"function_call": {"name": "a", "arguments": '{"x"'}}
    message = chatted(call, {"function_call": {"arguments": ":1}"}})
    assert message["function_call"] == {"name": "a", "arguments": '{"x":1}'}
    custom = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "SELECT "}}
    message = chatted(
        {"tool_calls": [{**custom, "index": 0}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "1"}}]},
        {"audio": {"id": "au", "data": "AA"}},
        {"audio": {"data": "BB", "expires_at": 1}},
        {"refusal": "No"},
        {"refusal": "."},
    )
    assert message["tool_calls"][0]["custom"] == {"name": "sql", "input": "SELECT 1"}
    assert message["audio"] == {"id": "au"}
    assert message["refusal"] == "No."


def test_a_character_whose_halves_come_apart_is_one_again():
    one, _ = took(CHAT, b'{"choices":[{"delta":{"content":"\\ud83d"}}]}')
    one.take(event(b'{"choices":[{"delta":{"content":"\\ude00!"},"finish_reason":"stop"}]}'))
    [payload] = one.answer().payloads
    assert payload == '{"role":"assistant","content":"😀!"}'.encode()


def test_a_message_without_words_is_one_too():
    assert chatted({"role": "assistant"}) == {"role": "assistant", "content": ""}
    assert chatted({"reasoning_content": "hm"})["content"] == ""


@pytest.mark.parametrize(
    ("more", "usage"),
    [
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 2}}, Usage(9, 2)),
        ({"usage": None}, None),
        ({"usage": {}}, None),
        ({"usage": {"prompt_tokens": "9", "completion_tokens": -1}}, None),
        ({"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}}, Usage(9, 2)),
        (
            {"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
            Usage(9, 0, 4),
        ),
        ({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}}, Usage(9, 0, 4)),
        ({"usage": {"prompt_tokens": 9, "cache_creation_input_tokens": 4}}, Usage(9, 0, 0, 4)),
    ],
)
def test_tokens_of_a_chat(more, usage):
    one, _ = took(CHAT, chunk({"content": "a"}), chunk({}, "stop", **more))
    assert one.answer().usage == usage
    message = {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    answer = openai_chat.answer(json.dumps({"choices": [message], **more}).encode())
    assert answer is not None
    assert answer.usage == usage


def test_a_chat_is_held_back_from_its_end_on():
    counted = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    said = chunk({"content": "a"}, usage={"prompt_tokens": 1, "completion_tokens": 1})
    one, held = took(CHAT, {"choices": []}, counted, said, chunk({}, "stop"), counted, b"[DONE]")
    assert held == [False, False, False, True, True, True]
    assert one.answer().complete
    one, held = took(CHAT, said, b"[DONE]")
    assert (held, one.answer().complete, one.answer().finish) == ([False, True], True, "")


@pytest.mark.parametrize("told", [b"", b"nothing", b"[1]", b'{"choices":[7]}', b'{"choices":"x"}'])
@pytest.mark.parametrize("assembler", [CHAT, MESSAGES, RESPONSES])
def test_what_is_no_event_of_the_api_changes_nothing(assembler, told):
    one, held = took(assembler, told)
    assert held == [False]
    assert one.answer() == assembler().answer()
    assert one.answer().payloads == ()


ERROR = {"error": {"message": "too long", "code": "context_length_exceeded"}}


@pytest.mark.parametrize(
    ("assembler", "said", "told", "name"),
    [
        (CHAT, chunk({"content": "a"}), ERROR, ""),
        (CHAT, chunk({"content": "a"}), {**chunk({}, "error"), **ERROR}, ""),
        (CHAT, chunk({"content": "a"}), b"overloaded", "error"),
        (MESSAGES, {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
         {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "error"),
        (RESPONSES, {"type": "response.created"}, {"type": "error", "message": "x"}, "error"),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_not_held_back_and_cuts_the_answer(assembler, said, told, name):
    one = assembler()
    assert (one.take(event(said)), one.failed) == (False, False)
    assert (one.take(event(told, name)), one.failed) == (False, True)
    assert not one.answer().complete
    assert len(one.answer().payloads) == (assembler is not RESPONSES)
    assert not one.take(event(b"[DONE]"))
    assert not one.answer().complete


def test_a_response_that_failed_is_held_back_and_has_only_what_was_done():
    item = {"type": "message", "id": "m", "role": "assistant", "content": []}
    one, held = took(
        RESPONSES,
        {
            "type": "response.output_item.done",
            "item": {"type": "reasoning", "id": "r", "summary": []},
        },
        {"type": "response.output_item.added", "item": item},
        {"type": "response.output_text.delta", "item_id": "m", "delta": "Hel"},
        {"type": "response.failed", "response": {"status": "failed", "output": [item]}},
    )
    assert held == [False, False, False, True]
    answer = one.answer()
    assert (one.failed, answer.complete, answer.finish) == (True, False, "failed")
    [payload] = answer.payloads
    text = {"type": "output_text", "text": "Hel", "annotations": []}
    assert json.loads(payload) == {"type": "message", "role": "assistant", "content": [text]}


def test_a_response_that_says_nothing_again_at_its_end():
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "a", "arguments": "{}"}
    done = {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {**call, "status": None},
    }
    ended = {"type": "response.incomplete", "response": {"status": "incomplete", "output": []}}
    ended["response"]["incomplete_details"] = {"reason": "max_output_tokens"}
    one, held = took(RESPONSES, done, ended)
    answer = one.answer()
    assert held == [False, True]
    assert [json.loads(payload) for payload in answer.payloads] == [call]
    assert (answer.complete, answer.finish) == (True, "max_output_tokens")


def block(index, start, *deltas, stops=True):
    at = {"index": index}
    yield {"type": "content_block_start", **at, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", **at, "delta": delta}
    if stops:
        yield {"type": "content_block_stop", **at}


def use(name, text):
    start = {"type": "tool_use", "id": name, "name": "a", "input": {}}
    return start, {"type": "input_json_delta", "partial_json": text}


def test_a_message_cut_by_its_limit_has_the_input_that_came():
    end = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}}
    one, held = took(MESSAGES, *block(0, *use("1", '{"a": [1, 2], "b": "x'), stops=False), end)
    [payload] = one.answer().payloads
    assert json.loads(payload)["content"][0]["input"] == {"a": [1, 2]}
    assert held == [False, False, True]


def test_a_message_cut_by_its_connection_has_only_whole_blocks():
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    served = {"type": "server_tool_use", "id": "s", "name": "web", "input": {}}
    whole = [*block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hm"})]
    parts = [
        *whole,
        *block(1, *use("1", '{"a": 1}')),
        *block(2, served),
        *block(3, *use("2", '{"a": '), stops=False),
        *block(4, thought, {"type": "thinking_delta", "thinking": "so"}, stops=False),
        *block(5, {"type": "new_block"}, {"type": "new_delta", "new": 1}),
    ]
    one, _ = took(MESSAGES, *parts)
    [payload] = one.answer().payloads
    kinds = [part["type"] for part in json.loads(payload)["content"]]
    assert kinds == ["text", "tool_use", "new_block"]
    alone, _ = took(MESSAGES, *block(0, {**thought, "thinking": "so"}))
    assert alone.answer().payloads == ()
