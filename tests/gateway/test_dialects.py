"""Requests are read without changing them, and changed only where they are to be."""

import json

import pytest
from amounts import amount, seeds
from hypothesis import given
from hypothesis import strategies as st

from refold.errors import InvalidInput
from refold.gateway.dialects import DIALECTS, Unreadable
from refold.testing.gateway import FORMATS, request, requests, source
from refold.wire.splice import MAX_DEPTH

NAMED = {dialect.name: dialect for dialect in DIALECTS.values()}
FIELD = {"openai-responses": "input"}
SEEDS = seeds(amount(few=20, quick=100, ci=400, nightly=4_000, thorough=20_000))
MORE = b'{"role":"user","content":"one more"}'

CHAT, RESPONSES, MESSAGES = (NAMED[name] for name in FORMATS)


def exact(value):
    """JSON in which 1 and 1.0 differ, and the order of keys does not count."""
    return json.dumps(value, sort_keys=True)


def listed(body, name):
    sent = body[FIELD.get(name, "messages")]
    return [{"role": "user", "content": sent}] if isinstance(sent, str) else sent


def test_there_is_one_for_each_path():
    assert {path: one.name for path, one in DIALECTS.items()} == {
        "/v1/chat/completions": "openai-chat",
        "/v1/responses": "openai-responses",
        "/v1/messages": "anthropic-messages",
    }


@pytest.mark.parametrize("name", FORMATS)
def test_requests_are_read_and_written_with_equal_values(name):
    dialect = NAMED[name]
    for seed in SEEDS:
        raw = request(name, source(seed))
        parsed_request, sent = dialect.read(raw), json.loads(raw)
        assert parsed_request.unmanaged == "", seed
        assert dialect.body(parsed_request, list(parsed_request.messages)) == raw
        messages = listed(sent, name)
        said = [json.loads(message) for message in parsed_request.messages]
        assert exact(said) == exact(messages[parsed_request.lead :]), seed
        changed = json.loads(dialect.body(parsed_request, [*parsed_request.messages, MORE]))
        sent[FIELD.get(name, "messages")] = [*messages, json.loads(MORE)]
        assert exact(changed) == exact(sent), seed
        assert list(changed) == list(sent)


@pytest.mark.parametrize("name", FORMATS)
@given(st.data())
def test_other_messages_change_nothing_else(name, data):
    dialect = NAMED[name]
    raw = data.draw(requests(name))
    parsed_request, sent = dialect.read(raw), json.loads(raw)
    messages = data.draw(st.lists(st.sampled_from([*parsed_request.messages, MORE]), max_size=5))
    changed = json.loads(dialect.body(parsed_request, messages))
    expected = [*listed(sent, name)[: parsed_request.lead], *map(json.loads, messages)]
    if tuple(messages) != parsed_request.messages:
        assert exact(changed.pop(FIELD.get(name, "messages"))) == exact(expected)
        del sent[FIELD.get(name, "messages")]
    assert exact(changed) == exact(sent)


@pytest.mark.parametrize("name", FORMATS)
@given(st.data())
def test_what_stands_beside_the_conversation_is_told_whole(name, data):
    raw = data.draw(requests(name))
    parsed_request, sent = NAMED[name].read(raw), json.loads(raw)
    beside = {key: json.loads(value) for key, value in parsed_request.extras.items()}
    rest = beside.pop("settings")
    field = {"anthropic-messages": "system", "openai-responses": "instructions"}.get(name)
    del sent[FIELD.get(name, "messages")]
    assert exact(sent.pop(field, None) if field else beside.get("instructions")) == exact(
        beside.get("instructions")
    )
    assert exact(sent.pop("tools", None)) == exact(beside.get("tools"))
    assert exact(rest) == exact(sent)
    assert exact([json.loads(tool) for tool in parsed_request.tools]) == exact(
        beside.get("tools") or []
    )
    assert parsed_request.stream is (rest["stream"] is True)
    assert parsed_request.model == rest["model"]


def test_system_messages_in_front_are_instructions():
    said = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "Now in verse."},
    ]
    parsed_request = CHAT.read(
        json.dumps({"messages": said, "user": "ada", "stream": True}).encode()
    )
    assert (parsed_request.lead, parsed_request.instructions) == (2, "Be brief.\nBe kind.")
    assert [json.loads(one)["role"] for one in parsed_request.messages] == ["user", "system"]
    assert json.loads(parsed_request.extras["instructions"]) == said[:2]
    assert (parsed_request.model, parsed_request.identity, parsed_request.stream) == (
        "",
        ("ada",),
        True,
    )
    new = json.loads(CHAT.body(parsed_request, [MORE]))["messages"]
    assert new == [*said[:2], json.loads(MORE)]


def test_instructions_users_and_tools_are_found_where_each_format_has_them():
    messages = [{"role": "user", "content": "hi"}]
    system = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = {"messages": messages, "system": system, "metadata": {"user_id": "ada"}}
    parsed_request = MESSAGES.read(json.dumps(body).encode())
    assert (parsed_request.instructions, parsed_request.identity, parsed_request.lead) == (
        "a\nb",
        ("ada",),
        0,
    )
    body = {"input": messages, "instructions": "c", "safety_identifier": "bob"}
    parsed_request = RESPONSES.read(json.dumps(body).encode())
    assert (parsed_request.instructions, parsed_request.identity) == ("c", ("", "bob"))
    body = {"messages": messages, "functions": [{"name": "old"}]}
    parsed_request = CHAT.read(json.dumps(body).encode())
    assert (parsed_request.tools, parsed_request.identity) == (('{"name":"old"}',), ())
    parsed_request = CHAT.read(json.dumps({**body, "user": 7}).encode())
    assert parsed_request.unmanaged == "an identifier of its user is no text"
    assert "tools" not in parsed_request.extras


def test_a_lone_text_is_one_message_and_stays_a_text():
    raw = b'{"input": "say \\u0022hi\\u0022", "model": "m"}'
    parsed_request = RESPONSES.read(raw)
    assert parsed_request.messages == (b'{"role":"user","content":"say \\"hi\\""}',)
    assert RESPONSES.body(parsed_request, parsed_request.messages) == raw
    new = json.loads(RESPONSES.body(parsed_request, [MORE, *parsed_request.messages]))
    assert new["input"] == [json.loads(MORE), {"role": "user", "content": 'say "hi"'}]
    assert CHAT.read(b'{"messages": "hi"}').unmanaged


HI = b'{"role":"user","content":"hi"}'


@pytest.mark.parametrize(
    ("name", "fields", "why"),
    [
        ("openai-responses", b'"previous_response_id":7', "previous_response_id"),
        ("openai-responses", b'"conversation":{"name":"conv_1"}', "conversation"),
        (
            "openai-responses",
            b'"conversation":"conv_1","previous_response_id":"resp_1"',
            "previous_response_id and conversation",
        ),
        ("anthropic-messages", b'"compaction":{"type":"summarize"}', "shorten"),
        ("anthropic-messages", b'"thread":"msg_1"', "thread"),
        ("anthropic-messages", b'"thread":{"previous_message_id":7}', "thread"),
        ("openai-responses", b'"prompt":{"id":"pmpt_1"}', "prompt"),
        ("openai-responses", b'"background":true', "background"),
        ("openai-chat", b'"n":2', "more than one answer"),
    ],
)
def test_what_others_hold_is_not_managed(name, fields, why):
    dialect, field = NAMED[name], FIELD.get(name, "messages").encode()
    raw = b'{"model":"m","stream":true,"' + field + b'":[' + HI + b"]," + fields + b"}"
    parsed_request = dialect.read(raw)
    assert why in parsed_request.unmanaged
    assert (parsed_request.model, parsed_request.stream) == ("m", True)
    assert dialect.body(parsed_request, parsed_request.messages) == raw
    with pytest.raises(InvalidInput):
        dialect.body(parsed_request, [HI])


def test_fields_that_refer_to_nothing_do_not_matter():
    raw = b'{"input":[' + HI + b'],"previous_response_id":null,"background":false}'
    assert RESPONSES.read(raw).unmanaged == ""
    assert CHAT.read(b'{"messages":[' + HI + b'],"n":1}').unmanaged == ""


@pytest.mark.parametrize(
    ("name", "fields", "reference"),
    [
        ("openai-responses", b'"previous_response_id":"resp_1"', "previous_response_id resp_1"),
        ("openai-responses", b'"conversation":"conv_1"', "conversation conv_1"),
        ("openai-responses", b'"conversation":{"id":"conv_1"}', "conversation conv_1"),
        ("anthropic-messages", b'"thread":{"previous_message_id":"msg_1"}', "thread msg_1"),
    ],
)
def test_what_is_referred_to_leaves_the_body_with_the_reference(name, fields, reference):
    dialect, field = NAMED[name], FIELD.get(name, "messages").encode()
    raw = b'{"model":"m","' + field + b'":[' + HI + b"]," + fields + b"}"
    parsed_request = dialect.read(raw)
    assert str(parsed_request.reference) == reference
    assert dialect.body(parsed_request, parsed_request.messages) == raw
    whole = dialect.read(dialect.body(parsed_request, [MORE, HI]))
    assert (whole.reference, whole.messages) == (None, (MORE, HI))
    assert dialect.detached(parsed_request).reference is None


def test_what_the_provider_lost_is_sent_without_its_names():
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "sealed"},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
    ]
    history = [json.dumps(item).encode() for item in items]
    raw = b'{"model":"m","input":"And?","previous_response_id":"resp_1"}'
    parsed_request = RESPONSES.continuing(RESPONSES.read(raw), history)
    assert (parsed_request.held, parsed_request.raw) == (4, raw)
    sent = json.loads(RESPONSES.detached(parsed_request, lost=True).raw)["input"]
    call = {key: value for key, value in items[2].items() if key != "id"}
    assert sent == [items[1], call, items[3], {"role": "user", "content": "And?"}]
    whole = json.loads(RESPONSES.detached(parsed_request).raw)["input"]
    assert whole[:-1] == items


@pytest.mark.parametrize(
    "item",
    [b'{"type":"item_reference","id":"msg_1"}', b'{"id":"msg_1"}', b'{"type":null,"id":"x"}'],
)
def test_references_to_items_are_not_managed(item):
    assert "provider holds" in RESPONSES.read(b'{"input":[' + HI + b"," + item + b"]}").unmanaged


def test_what_the_provider_shortens_is_not_managed():
    raw = b'{"input":[' + HI + b',{"type":"compaction_trigger"}]}'
    assert "shorten" in RESPONSES.read(raw).unmanaged


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("sent", [b"null", b"[]", b"7", b"{}", b"[7]", b'["hi"]', b"[{}]", b"[[]]"])
def test_messages_of_no_known_form_are_not_managed(name, sent):
    field = FIELD.get(name, "messages").encode()
    raw = b'{"model":"m","' + field + b'":' + sent + b"}"
    parsed_request = NAMED[name].read(raw)
    assert parsed_request.unmanaged
    assert NAMED[name].body(parsed_request, parsed_request.messages) == raw
    assert NAMED[name].read(b'{"model":"m"}').unmanaged


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"[]", b"null", b'"{}"', b"{}{}", b"\xff", b"\xef\xbb\xbf{}", b'{"a":1,}'),
        *(b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":"\n"}', b'{"a":"\xed\xa0\x80"}', b'{"a":01}'),
        *(b"[" * 5_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":"\\ud800"} x'),
    ],
)
def test_what_is_no_object_is_unreadable(raw):
    for dialect in DIALECTS.values():
        with pytest.raises(Unreadable):
            dialect.read(raw)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 990, 5_000, 200_000])
@pytest.mark.parametrize("extra", [b"1", b'"\\ud800"'])
def test_what_nests_too_deep_passes_with_its_model(depth, extra):
    deep = b'[{"a":' * (depth // 2) + extra + b"}]" * (depth // 2)
    raw = b'{"model":"m","messages":' + deep + b',"x":{"model":"y"},"stream":true}'
    for before in (b"{", b'{"s":"\\ud800",'):
        assert "deep" in CHAT.read(before + raw[1:]).unmanaged
    parsed_request = CHAT.read(raw)
    if depth < 50_000:  # beyond, nobody looks for the rest
        assert (parsed_request.model, parsed_request.stream) == ("m", True)
    assert CHAT.body(parsed_request, parsed_request.messages) == raw


def test_more_objects_than_are_read_pass_with_their_model():
    many = b"[" + b"[]," * 1_000_000 + b"[]]"
    parsed_request = CHAT.read(b'{"model":"m","messages":' + many + b"}")
    assert "objects and arrays" in parsed_request.unmanaged
    assert parsed_request.model == ""  # nobody looks for the end of so many
    text = b"[" * 1_000_001
    parsed_request = CHAT.read(
        b'{"messages":[{"role":"user","content":"' + text + b'"}],"model":"m"}'
    )
    assert ("objects and arrays" in parsed_request.unmanaged, parsed_request.model) == (True, "m")


def test_a_deep_end_that_never_comes_is_no_reason_to_fail():
    parsed_request = CHAT.read(b'{"model":"m","messages":' + b"[" * 5_000)
    assert "deep" in parsed_request.unmanaged
    assert parsed_request.model == ""


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 5_000])
def test_numbers_that_nobody_can_hold_pass_as_they_came(number):
    for raw in (
        b'{"messages":[{"role":"user","content":"hi","x":%s}]}' % number,
        b'{"messages":[{"role":"user","content":"hi","x":[0,%s]}]}' % number,
        b'{"messages":[{"role":"user","content":"hi","x":[%s]}]}' % number,
        b'{"messages":[%s],"t":%s}' % (HI, number),
    ):
        parsed_request = CHAT.read(raw)
        assert "number" in parsed_request.unmanaged
        assert CHAT.body(parsed_request, parsed_request.messages) == raw
    raw = b'{"messages":[%s],"system":%s}' % (HI, number)
    assert "number" in MESSAGES.read(raw).unmanaged


def test_odd_json_keeps_its_values():
    message = b'{"role":"user","content":"\\ud800 :Infinity","x":[1.0,-0.0,1E5,%d]}' % 10**400
    raw = b' {"messages":\n[' + message + b'],"y":"\\ud83d\\ude00","z":1.50} '
    parsed_request = CHAT.read(raw)
    assert parsed_request.unmanaged == ""
    assert exact(json.loads(parsed_request.messages[0])) == exact(json.loads(message))
    changed = json.loads(CHAT.body(parsed_request, [*parsed_request.messages, MORE]))
    assert exact(changed["messages"][0]) == exact(json.loads(message))
    assert (changed["y"], changed["z"]) == ("\U0001f600", 1.5)


def test_of_a_key_that_occurs_twice_the_last_counts():
    raw = b'{"model":"a","messages":[],"model":"b","messages":[' + HI + b"]}"
    parsed_request = CHAT.read(raw)
    assert (parsed_request.model, parsed_request.messages) == ("b", (HI,))
    assert CHAT.body(parsed_request, parsed_request.messages) == raw
    assert (
        CHAT.body(parsed_request, [HI, HI]) == b'{"model":"b","messages":[' + HI + b"," + HI + b"]}"
    )


@pytest.mark.parametrize(
    "crowd",
    [
        b'"messages":[' + b",".join([HI] * 20_001) + b"]",
        b'"messages":[{"role":"user","content":[' + b",".join([b"{}"] * 20_002) + b"]}]",
        b'"messages":[' + HI + b'],"tools":[' + b",".join([b"{}"] * 20_001) + b"]",
        b'"messages":[{"role":"user","content":[{"content":[' + b"0," * 20_002 + b"0]}]}]",
    ],
    ids=["messages", "items", "tools", "inner"],
)
def test_crowds_are_not_managed(crowd):
    parsed_request = MESSAGES.read(b'{"model":"m",' + crowd + b"}")
    assert "20,000" in parsed_request.unmanaged
    assert parsed_request.model == "m"
