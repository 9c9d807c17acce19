"""What identifies a message is the same however a client writes it, and differs if it says more."""

import json

import pytest
from amounts import amount, seeds

from refold.errors import InvalidMessage
from refold.gateway.dialects import DIALECTS
from refold.testing.gateway import FORMATS, changed, conversation, sent_again, source
from refold.wire import wire_for
from refold.wire.fingerprint import FingerprintCache, canonical, digest

NAMED = {dialect.name: dialect for dialect in DIALECTS.values()}
CHAT, RESPONSES, MESSAGES = (NAMED[name] for name in FORMATS)
SEEDS = seeds(amount(few=10, quick=50, ci=500, nightly=5_000, thorough=20_000))


def content(dialect, message):
    return dialect.fingerprint(json.dumps(message).encode()).content


def contents(dialect, messages):
    return [content(dialect, message) for message in messages]


def identity(dialect, messages):
    return [one for one in contents(dialect, messages) if one]


@pytest.mark.parametrize("name", FORMATS)
def test_clients_that_send_the_same_again_are_recognised(name):
    dialect = NAMED[name]
    for seed in SEEDS:
        random = source(seed)
        messages = conversation(name, random)
        again = sent_again(name, random, messages)
        assert contents(dialect, again) == contents(dialect, messages), seed


@pytest.mark.parametrize("name", FORMATS)
def test_other_conversations_are_told_apart(name):
    dialect = NAMED[name]
    for seed in SEEDS:
        random = source(seed)
        messages = conversation(name, random)
        other = changed(random, messages)
        assert identity(dialect, other) != identity(dialect, messages), seed
        again = sent_again(name, random, other) if seed % 2 else other
        assert identity(dialect, again) != identity(dialect, messages), seed


def call(arguments, **fields):
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "1", "function": function, **fields}]}


def used(given):
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "1", "name": "f", "input": given}],
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [2.0]}', '{"b":[2],"a":1.0}'),
        ('{"a": -0.0, "b": 1e22}', '{"b":10000000000000000000000,"a":0}'),
        ('{"a": "\\u00e9"}', '{"a":"é"}'),
        ("", "{}"),
        (" ", None),
        ({"a": 1}, '{"a":1}'),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_arguments_are_alike_by_value(one, other):
    assert content(CHAT, call(one)) == content(CHAT, call(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1}', '{"a":"1"}'),
        ('{"a":1}', '{"a":true}'),
        ('{"a":null}', "{}"),
        ('{"a":9007199254740993}', '{"a":9007199254740992}'),
        ('{"a":[1,2]}', '{"a":[2,1]}'),
        ('{"a":0.1}', '{"a":0.2}'),
        ('{"a":"1.0"}', '{"a":"1"}'),
        ('{"a":', '{"a": '),
        ('{"a":NaN}', '{"a":null}'),
        ('["a"]', '{"a":1}'),
        ("[" * 500, "[" * 501),
        ('{"cache_control":1}', "{}"),
    ],
)
def test_arguments_of_other_values_differ(one, other):
    assert content(CHAT, call(one)) != content(CHAT, call(other))


def test_inputs_are_alike_by_value():
    assert content(MESSAGES, used({"a": 1.0, "b": 2})) == content(MESSAGES, used({"b": 2, "a": 1}))
    assert content(MESSAGES, used({"a": None})) != content(MESSAGES, used({}))
    assert content(MESSAGES, used({"cache_control": 1})) != content(MESSAGES, used({}))


def text(*texts):
    return {"role": "user", "content": [{"type": "text", "text": one} for one in texts]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("ab"), text("a", "b")),
        (text("a", "bc"), text("ab", "c")),
        (text("1:a"), text("a")),
        ({"role": "user", "content": '[{"type":"text","text":"a"}]'}, text("a")),
        ({"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}),
    ],
)
def test_words_put_together_are_not_the_same_words(one, other):
    assert content(CHAT, one) != content(CHAT, other)
    assert content(MESSAGES, one) != content(MESSAGES, other)


def test_nested_lists_have_no_digest_in_common():
    nested = [
        "",
        "a",
        [],
        [""],
        ["a"],
        [["a"]],
        ["a", "a"],
        ["aa"],
        [["a"], "a"],
        ["a", ["a"]],
        "1:a",
    ]
    nested += [["ab", "c"], ["a", "bc"], ["abc", ""], ["", "abc"]]
    assert len({digest(canonical(value)) for value in nested}) == len(nested)


def test_the_index_of_a_call_does_not_count():
    odd = {"role": "assistant", "tool_calls": [{"id": "1", "type": "odd"}]}
    again = {"role": "assistant", "tool_calls": [{"id": "1", "type": "odd", "index": 3}]}
    assert content(CHAT, odd) == content(CHAT, again)


def test_empty_texts_say_nothing():
    for dialect in (CHAT, MESSAGES):
        assert content(dialect, text("", "a")) == content(dialect, {"role": "user", "content": "a"})
        assert content(dialect, text("")) == content(dialect, {"role": "user", "content": ""})


def test_who_speaks_and_which_call_is_answered_count():
    said = {"role": "user", "content": "hi"}
    assert content(CHAT, said) != content(CHAT, {**said, "name": "ada"})
    assert content(CHAT, said) == content(CHAT, {**said, "name": None})
    answer = {"role": "assistant", "content": "hi"}
    assert content(CHAT, answer) == content(CHAT, {**answer, "name": "agent"})
    result = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    assert content(CHAT, result) != content(CHAT, {**result, "tool_call_id": "2"})
    output = {"type": "function_call_output", "call_id": "1", "output": "ok"}
    assert content(RESPONSES, output) == content(
        RESPONSES, {**output, "id": "x", "status": "completed"}
    )
    assert content(RESPONSES, output) != content(RESPONSES, {**output, "call_id": "2"})
    failed = {"type": "tool_result", "tool_use_id": "1", "content": "ok", "is_error": True}
    fine = {**failed, "is_error": False}
    assert content(MESSAGES, {"role": "user", "content": [failed]}) != content(
        MESSAGES, {"role": "user", "content": [fine]}
    )


def test_images_are_what_they_carry():
    def image(url, **beside):
        item = {"type": "image_url", "image_url": {"url": url, **beside}}
        return {"role": "user", "content": [item]}

    assert content(CHAT, image("u", detail="low")) == content(CHAT, image("u"))
    assert content(CHAT, image("u")) != content(CHAT, image("v"))

    def block(data, **beside):
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"role": "user", "content": [{"type": "image", "source": source, **beside}]}

    marked = block("aa", cache_control={"type": "ephemeral"})
    assert content(MESSAGES, marked) == content(MESSAGES, block("aa"))
    assert content(MESSAGES, block("aa")) != content(MESSAGES, block("ab"))


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        (CHAT, {"role": "assistant", "content": None, "reasoning_content": "hm"}),
        (CHAT, {"role": "assistant", "content": ""}),
        (MESSAGES, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}),
        (RESPONSES, {"type": "reasoning", "summary": [], "encrypted_content": "eA=="}),
    ],
)
def test_thoughts_alone_identify_nothing(dialect, message):
    assert content(dialect, message) == b""
    assert dialect.fingerprint(json.dumps(message).encode()).answers


@pytest.mark.parametrize(
    ("dialect", "message", "answers"),
    [
        (CHAT, {"role": "assistant", "content": "a"}, True),
        (CHAT, {"role": "tool", "tool_call_id": "1", "content": "a"}, False),
        (CHAT, {"role": "user", "content": "a"}, False),
        (MESSAGES, {"role": "assistant", "content": "a"}, True),
        (MESSAGES, {"role": "user", "content": "a"}, False),
        (RESPONSES, {"role": "assistant", "content": "a"}, True),
        (RESPONSES, {"type": "message", "role": "user", "content": "a"}, False),
        (RESPONSES, {"type": "function_call", "call_id": "1", "name": "f", "arguments": ""}, True),
        (RESPONSES, {"type": "function_call_output", "call_id": "1", "output": ""}, False),
        (RESPONSES, {"type": "web_search_call", "id": "ws_1", "action": {}}, True),
        (RESPONSES, {"type": "mcp_approval_request", "id": "1", "name": "f"}, True),
        (RESPONSES, {"type": "mcp_approval_response", "approval_request_id": "1"}, False),
        (RESPONSES, {"type": "compaction", "encrypted_content": "eA=="}, True),
    ],
)
def test_what_the_model_says_is_known(dialect, message, answers):
    assert dialect.fingerprint(json.dumps(message).encode()).answers is answers
    assert content(dialect, message)


def test_what_is_not_known_counts_whole():
    item = {"type": "hologram", "id": "h_1", "data": {"x": [1.0, None]}, "status": "done"}
    assert content(RESPONSES, item) == content(RESPONSES, {**item, "id": "h_2", "status": None})
    assert content(RESPONSES, item) != content(RESPONSES, {**item, "data": {"x": [2]}})


def test_no_payload_fails():
    odd = [b"", b"[]", b"{", b"{}", b'{"role":7}', b'{"role":"user"}', b'{"type":[]}', b"[" * 9_000]
    odd += [b'{"role":"assistant","content":7,"tool_calls":{},"audio":1,"function_call":[]}']
    odd += [b'{"role":"user","content":[7,null,[],{"type":{}}]}', b'{"type":"function_call"}']
    for payload in odd:
        for dialect in DIALECTS.values():
            assert isinstance(dialect.fingerprint(payload).content, bytes)
            assert isinstance(dialect.fingerprint(payload).answers, bool)


def test_canonical_json_is_bounded_by_nothing_but_its_size():
    deep = json.loads("[" * 190 + "1.0" + "]" * 190)
    assert canonical(deep) == "[" * 190 + "1" + "]" * 190


def test_what_is_very_long_is_taken_as_it_is_written():
    long = json.dumps({"a": [1.0] * 300_000})
    assert content(CHAT, call(long)) == content(CHAT, call(long))
    assert content(CHAT, call(long)) != content(CHAT, call(long + " "))
    item = {"type": "hologram", "data": [1.0, None] * 200_000}
    assert content(RESPONSES, item) == content(RESPONSES, {**item, "id": "h"})
    assert content(RESPONSES, item) != content(RESPONSES, {**item, "data": item["data"][:-1]})


class Counting:
    """A wire that counts how often it is asked."""

    def __init__(self):
        self.parsed_request = 0

    def describe(self, payload):
        self.parsed_request += 1
        return wire_for("openai-chat").describe(payload)


def test_messages_seen_before_are_not_looked_at_again_and_few_are_kept():
    wire = Counting()
    cache = FingerprintCache(wire, lambda _message: False, max_messages=10)
    payloads = [json.dumps({"role": "user", "content": f"{n}"}).encode() for n in range(100)]
    for payload in payloads:
        assert cache(payload).content == CHAT.fingerprint(payload).content
        assert cache(payloads[0]).content == CHAT.fingerprint(payloads[0]).content
    assert wire.parsed_request == len(payloads)
    assert len(cache._recent) + len(cache._older) <= 20
    assert cache(b'{"role":7,"content":"x"}').fault
    assert cache(b"7").fault


def test_a_wire_says_why_it_does_not_take_a_message():
    with pytest.raises(InvalidMessage):
        wire_for("openai-chat").describe(b'{"role":"user"}')
    parsed_request = CHAT.read(b'{"messages":[{"role":"user","content":"a"},{"role":"user"}]}')
    assert parsed_request.unmanaged.startswith("message 1 is of no known form: ")
