"""What is particular to OpenAI's and Anthropic's messages."""

import json

import pytest

from refold.errors import InvalidInput, UnknownFormat
from refold.testing.wire import conversations
from refold.wire import (
    WIRES,
    AnthropicMessages,
    Drop,
    Insert,
    OpenAIChat,
    Replace,
    wire_for,
)

OPENAI, ANTHROPIC = OpenAIChat(), AnthropicMessages()
GONE = Drop("test")
USER = {"role": "user", "content": "Go."}


def raw(*messages: object) -> list[bytes]:
    return [json.dumps(message, ensure_ascii=False).encode() for message in messages]


def kinds(wire, payload):
    return [shape.kind for shape in wire.describe(payload).shapes]


def texts(wire, payload):
    return [shape.text for shape in wire.describe(payload).shapes]


def says(text: str) -> Replace:
    return Replace(0, text, 0, "test")


def test_wires_are_found_by_name():
    assert {name: wire_for(name).name for name in WIRES} == {name: name for name in WIRES}
    with pytest.raises(UnknownFormat, match="openai-chat"):
        wire_for("smoke signals")
    with pytest.raises(UnknownFormat):
        conversations("smoke signals")


@pytest.mark.req("R001")
def test_an_assistant_of_openai_has_its_parts_in_a_fixed_order():
    [payload] = raw(
        {
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"id": "b", "type": "custom", "custom": {"name": "c", "input": "plain"}},
            ],
            "function_call": {"name": "old", "arguments": "{}"},
            "audio": {"id": "audio_1"},
            "refusal": "No.",
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "reasoning_details": [{"data": "x"}],
            "reasoning": "hm",
            "role": "assistant",
        }
    )
    role, shapes, _ = OPENAI.describe(payload)
    assert role == "assistant"
    assert [(one.kind, one.text, one.tool, one.call, one.sealed) for one in shapes] == [
        ("thought", "hm", None, None, True),
        ("text", "one", None, None, False),
        ("text", "two", None, None, False),
        ("text", "No.", None, None, False),
        ("other", "", None, None, True),
        ("call", "{}", "old", "function:old", False),
        ("call", '{"x":1}', "f", "a", False),
        ("call", "plain", "c", "b", False),
    ]
    left = OPENAI.edit(payload, dict.fromkeys(range(8), GONE) | {3: says("Sorry.")})
    assert json.loads(left or b"") == {"refusal": "Sorry.", "content": None, "role": "assistant"}


@pytest.mark.parametrize("content", ['"text"', "null", '""'])
def test_calls_that_go_take_their_key(content):
    call = '{"id":"%s","type":"function","function":{"name":"f","arguments":"{}"}}'
    calls = ", ".join(call % name for name in "ab")
    payload = f'{{"role":"assistant", "content" : {content} , "tool_calls": [{calls}]}}'.encode()
    first = kinds(OPENAI, payload).index("call")
    one = OPENAI.edit(payload, {first: GONE})
    assert one == payload.replace(f"{call % 'a'}, ".encode(), b"")
    if first:
        none = OPENAI.edit(payload, {first: GONE, first + 1: GONE})
        assert none == b'{"role":"assistant", "content" : "text"}'
    quiet = OPENAI.edit(payload, {0: GONE})
    assert first == 0 or quiet == payload.replace(b'"text"', b"null")
    assert not OPENAI.problems([quiet or b"", *_answers(quiet)])


def _answers(payload):
    calls = [one for one in OPENAI.describe(payload).shapes if one.kind == "call"]
    return OPENAI.make([Insert(1, "return", "x", "t", one.tool, one.call) for one in calls])


def test_old_functions_are_answered_by_name():
    [payload] = raw({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}})
    made = _answers(payload)
    assert json.loads(made[0]) == {"role": "function", "name": "f", "content": "x"}
    assert OPENAI.problems([payload, *made]) == []
    assert len(OPENAI.problems([payload, *made, *made])) == 1


def test_arguments_stay_what_they_were():
    calls = [{"function": {"name": "f", "arguments": given}} for given in ("{}", {}, None)]
    [payload] = raw({"role": "assistant", "tool_calls": calls})
    new = json.loads(OPENAI.edit(payload, dict.fromkeys(range(3), says('{"x":1}'))) or b"")
    given = [call["function"]["arguments"] for call in new["tool_calls"]]
    assert given == ['{"x":1}', {"x": 1}, '{"x":1}']


@pytest.mark.req("R016")
def test_a_result_of_anthropic_keeps_all_but_its_words():
    block = (
        '{ "type":"tool_result","tool_use_id":"t", "is_error": true,%s "cache_control":{"x":1.0} }'
    )
    for content in (
        '"content" : "long text",',
        '"content":[{"type":"text","text":"long text","cache_control":{}}],',
    ):
        payload = ('{"content":[%s],"role":"user"}' % (block % content)).encode()
        new = ANTHROPIC.edit(payload, {0: Replace(4, "!", 0, "test")})
        assert new == payload.replace(b"long text", b"long!")
    payload = ('{"content":[%s],"role":"user"}' % (block % "")).encode()
    assert texts(ANTHROPIC, payload) == [""]
    assert texts(ANTHROPIC, ANTHROPIC.edit(payload, {0: says("now")})) == ["now"]


def test_what_was_found_becomes_words_and_leaves_the_picture():
    content = [{"type": "image"}, {"type": "search_result", "title": "t"}, {"type": "image"}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    [payload] = raw({"role": "user", "content": [result]})
    new = json.loads(ANTHROPIC.edit(payload, {0: Replace(1, "…", 0, "test")}) or b"")
    assert new["content"][0]["content"] == [
        {"type": "image"},
        {"type": "text", "text": "{…"},
        {"type": "image"},
    ]


def test_a_picture_may_become_words_and_keeps_its_cache_mark():
    image = {"type": "image", "source": {"type": "url", "url": "x"}}
    [payload] = raw({"role": "user", "content": [{**image, "cache_control": {"ttl": "1h"}}, image]})
    new = json.loads(ANTHROPIC.edit(payload, dict.fromkeys(range(2), says("[picture]"))) or b"")
    assert new["content"] == [
        {"type": "text", "text": "[picture]", "cache_control": {"ttl": "1h"}},
        {"type": "text", "text": "[picture]"},
    ]


def test_a_call_of_anthropic_has_an_object():
    [payload] = raw({"role": "assistant", "content": [{"type": "tool_use", "input": {"x": 1}}]})
    assert json.loads(ANTHROPIC.edit(payload, {0: says('{"y": 1.0}')}) or b"")["content"] == [
        {"type": "tool_use", "input": {"y": 1.0}}
    ]
    for text in ("short", "[]", "", '"x"', "{"):
        with pytest.raises(InvalidInput, match="object"):
            ANTHROPIC.edit(payload, {0: says(text)})


@pytest.mark.req("R046")
@pytest.mark.parametrize("content", ['"Go on."', '[ {"type":"text","text":"Go on."} ]', '""', "[]"])
def test_returns_go_before_what_the_user_says(content):
    payload = f'{{"role":"user","x":1.0,"content":{content} }}'.encode()
    inserts = [Insert(1, "return", "x", "test", "f", call) for call in "ab"]
    joined = ANTHROPIC.join(inserts, payload) or b""
    said = ["Go on."] if "Go" in content else []
    assert texts(ANTHROPIC, joined) == ["x", "x", *said]
    assert kinds(ANTHROPIC, joined) == ["return", "return", *["prompt"] * len(said)]
    assert b'"x":1.0' in joined
    calls = [{"type": "tool_use", "id": call, "name": "f", "input": {}} for call in "ab"]
    before = raw(USER, {"role": "assistant", "content": calls})
    assert ANTHROPIC.problems([*before, joined]) == []


def test_the_last_word_may_be_empty_and_the_system_may_interrupt():
    assert ANTHROPIC.problems(raw(USER, {"role": "assistant", "content": ""})) == []
    system = {"role": "system", "content": "From now on, in French."}
    assert ANTHROPIC.problems(raw(USER, system)) == []
    assert ANTHROPIC.problems(raw(USER, system, {"role": "assistant", "content": "Oui."})) == []
    served = {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s"}]}
    assert ANTHROPIC.problems(raw(USER, served, system)) == []
    assert ANTHROPIC.describe(raw(system)[0]).shapes[0].fixed


@pytest.mark.req("R087")
def test_a_providers_own_summary_stays():
    blocks = [{"type": "compaction", "content": "so far"}, {"type": "text", "text": "and on"}]
    [payload] = raw({"role": "assistant", "content": blocks})
    [summary, said] = ANTHROPIC.describe(payload).shapes
    assert (summary.text, summary.sealed, summary.fixed) == ("so far", True, True)
    assert (said.sealed, said.fixed) == (False, False)


def test_tools_that_a_result_names_stay_known():
    content = [{"type": "tool_reference", "tool_name": "x"}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": content}
    [shape] = ANTHROPIC.describe(raw({"role": "user", "content": [result]})[0]).shapes
    assert (shape.kind, shape.sealed, shape.fixed) == ("return", True, True)


@pytest.mark.req("R049")
@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC])
def test_markers_are_messages_of_the_user(wire):
    [made] = wire.make([Insert(1, "prompt", "[Summary]", "test")])
    assert json.loads(made) == {"role": "user", "content": "[Summary]"}
